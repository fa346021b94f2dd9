"""``client.snapshots``: snapshots of the whole grid, and how they come back.

All of it is SQL underneath (``docs/durability.md``): the methods write the statement and give its
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TypeAlias

from remuda.client.values.row import Row
from remuda.errors import InputError

Maps: TypeAlias = Iterable[str] | Mapping[str, str]
"""Names of maps, or names and what they are to be called."""

Rows: TypeAlias = list[Row]


class Snapshots:
    """Made by ``Client.snapshots``. All methods need the role admin, and a cluster with the setting
    ``snapshot_store`` (NotSupported otherwise)."""

    def __init__(self, rows: Callable[[str], Rows]) -> None:
        self._rows = rows

    def create(self, name: str, *, increment: bool = False) -> Row:
        """A base of all maps at one moment, while others write: a new cut of the snapshot ``name``.
        ``increment``: only what the members' logs have since the cut before, if that is possible,
        else a base. The cut, as ``list`` gives it, and ``note``: why it is a base if an increment
        was asked for. InputError for a name that none can have;
        TransientError when members kept coming and going."""
        return self._rows(create_text(name, increment=increment))[0]

    def list(self) -> Rows:
        """Every cut of every snapshot: ``snapshot``, ``cut``, ``kind``, ``created``, ``timestamp``,
        ``maps``, ``rows``, ``removed``, ``objects``, ``bytes``, ``key``, and ``problem`` if it
        cannot be restored. Of an increment, ``maps`` are those that were written to since the cut
        before, ``rows`` were written and ``removed`` were taken away; NULL where the release that
        made it did not count them."""
        return self._rows("SHOW SNAPSHOTS")

    def describe(self, name: str) -> Rows:
        """The contents of the cuts of one snapshot: ``snapshot``, ``cut``, ``map``, ``rows``,
        ``objects``, ``bytes``. UndefinedObject."""
        return self._rows(f"SHOW SNAPSHOT {quoted(name)}")

    def restorable(self, name: str) -> Rows:
        """The moments that can be restored: ``first`` and ``last`` of each range, with the time
        zone; between two of them is a gap. With the archive of logs, if there is one."""
        return self._rows(restorable_text(name))

    def verify(self, name: str, level: int = 3) -> Rows:
        """The defects of a snapshot: ``place`` and ``problem``; empty if nothing is. ``level``
        1 looks at all objects by their SHA-256, 2 reads every row as well, 3 checks everything."""
        return self._rows(verify_text(name, level))

    def restore(
        self,
        name: str,
        *,
        cut: int | None = None,
        maps: Maps | None = None,
        prefix: str = "",
        moment: datetime | None = None,
        dry_run: bool = False,
    ) -> Rows:
        """Bring maps back, all together or none: the last cut, a given one, or the rows of a
        ``moment`` that increments reach; all maps (with their views, under their own names) or
        some; under other names, or with ``prefix`` in front of them. The maps that are there now:
        ``map``, ``restored_as``, ``rows``, ``objects``, ``bytes``.

        ``dry_run`` reads and checks all that would be restored, and changes nothing. Raises
        DuplicateMap when a name is taken, UndefinedMap, UndefinedObject, DataCorrupted for a
        damaged object, InputError for the wrong key; the cluster is as it was then.
        """
        text = restore_text(name, cut, maps, prefix, moment=moment, dry_run=dry_run)
        return self._rows(text)

    def expire(self, name: str, before: datetime, *, dry_run: bool = False) -> Rows:
        """Give up the cuts that are not needed for anything from ``before`` on; the last one that
        can be restored always stays. All cuts: ``snapshot``, ``cut``, ``kept``."""
        return self._rows(expire_text(name, before, dry_run=dry_run))

    def drop(
        self,
        name: str,
        *cuts: int,
        if_exists: bool = False,
        cascade: bool = False,
        dry_run: bool = False,
    ) -> Rows:
        """Give up the named cuts (none: all). DependentObjects when others rest on them, unless
        ``cascade``; UndefinedObject unless ``if_exists``. All cuts: ``snapshot``, ``cut``,
        ``kept``."""
        text = drop_text(name, cuts, if_exists=if_exists, cascade=cascade, dry_run=dry_run)
        return self._rows(text)


def create_text(name: str, *, increment: bool) -> str:
    return f"CREATE SNAPSHOT {quoted(name)}" + (" INCREMENT" if increment else "")


def restorable_text(name: str) -> str:
    moments = "SELECT first, last FROM sys.restorable WHERE snapshot = {} ORDER BY first"
    return moments.format(quoted(name))


def verify_text(name: str, level: int) -> str:
    return f"VERIFY SNAPSHOT {quoted(name)} LEVEL {_number(level, 'level')}"


def restore_text(
    name: str,
    cut: int | None,
    maps: Maps | None,
    prefix: str,
    *,
    moment: datetime | None = None,
    dry_run: bool,
) -> str:
    if maps is not None and prefix:
        raise InputError("restore takes maps or a prefix, not both")
    text = f"RESTORE SNAPSHOT {quoted(name)}"
    if cut is not None:
        text += f" CUT {_number(cut, 'cut')}"
    if moment is not None:
        if cut is not None:
            raise InputError("restore takes a cut or a moment, not both")
        text += f" TO {quoted(_moment(moment, 'moment'))}"
    if maps is not None:
        if isinstance(maps, str):
            raise InputError(f"maps must be a list of names, or a mapping, not {maps!r}")
        pairs = maps.items() if isinstance(maps, Mapping) else [(each, each) for each in maps]
        listed = ", ".join(f"{_identifier(old)} AS {_identifier(new)}" for old, new in pairs)
        if not listed:
            raise InputError("restore was given no maps")
        text += f" MAPS {listed}"
    if prefix:
        text += f" PREFIX {quoted(prefix)}"
    return text + _dry(dry_run)


def expire_text(name: str, before: datetime, *, dry_run: bool) -> str:
    moment = quoted(_moment(before, "before"))
    return f"EXPIRE SNAPSHOT {quoted(name)} BEFORE {moment}" + _dry(dry_run)


def drop_text(
    name: str, cuts: Iterable[int], *, if_exists: bool, cascade: bool, dry_run: bool
) -> str:
    text = f"DROP SNAPSHOT {'IF EXISTS ' if if_exists else ''}{quoted(name)}"
    listed = ", ".join(str(_number(cut, "cut")) for cut in cuts)
    text += f" CUT {listed}" if listed else ""
    return text + (" CASCADE" if cascade else "") + _dry(dry_run)


def quoted(text: str) -> str:
    if not isinstance(text, str):
        raise InputError(f"the name of a snapshot must be text, not {text!r}")
    return "'" + text.replace("'", "''") + "'"


def _moment(value: datetime, what: str) -> str:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InputError(f"{what} must be a datetime with a time zone, not {value!r}")
    return value.isoformat()


def _identifier(name: str) -> str:
    if not isinstance(name, str):
        raise InputError(f"the name of a map must be text, not {name!r}")
    return '"' + name.replace('"', '""') + '"'


def _number(value: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{what} must be a whole number, not {value!r}")
    return value


def _dry(dry_run: bool) -> str:
    return " DRY RUN" if dry_run else ""
