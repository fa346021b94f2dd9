"""``remuda snapshot``: make, look at, verify, restore and give up snapshots of a running cluster.

The exit status is 1 when something fails, and when ``verify`` or ``restore --dry-run`` finds
anything wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from remuda.cli import snapshot_bulk
from remuda.cli.connecting import add_connect, client_of
from remuda.cli.results.table import Alignment, harmless, text_table
from remuda.client.blocking.client import Client
from remuda.client.values.row import Row
from remuda.errors import InputError
from remuda.plan.explain.explain import size_text

EXIT_FOUND = 1
Act: TypeAlias = Callable[[Client, argparse.Namespace], int]
_LEFT, _RIGHT = Alignment.LEFT, Alignment.RIGHT


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "snapshot",
        help="make, verify and restore snapshots",
        description="Snapshots of a running cluster, in the store that its members' setting "
        "snapshot_store names.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    create = _action(actions, "create", "make a base of all maps, while others write", _create)
    create.add_argument(
        "--increment", action="store_true", help="what the logs have since the cut before"
    )
    _action(actions, "list", "show every cut of every snapshot", _list, named=False)
    _action(actions, "describe", "show what the cuts of a snapshot hold", _describe)
    verify = _action(actions, "verify", "look for damage; the exit status tells", _verify)
    verify.add_argument(
        "--level", type=int, choices=(1, 2, 3), default=3, help="objects, rows, everything (3)"
    )
    snapshot_bulk.add_spark(verify)
    restore = _action(actions, "restore", "bring maps back, all of them together", _restore)
    restore.add_argument("--cut", type=int, metavar="N", help="which one (the last)")
    restore.add_argument("--to", metavar="MOMENT", help="ISO 8601; in UTC if it names no zone")
    restore.add_argument(
        "--map",
        action="append",
        metavar="M[=NEW]",
        help="only this map, perhaps under another name (may be repeated)",
    )
    restore.add_argument("--prefix", default="", metavar="TEXT", help="in front of all names")
    _dry(restore)
    snapshot_bulk.add_spark(restore)
    expire = _action(actions, "expire", "give up cuts that nothing later needs", _expire)
    expire.add_argument(
        "--before", required=True, metavar="MOMENT", help="ISO 8601; in UTC if it names no zone"
    )
    _dry(expire)
    drop = _action(actions, "drop", "give up cuts of a snapshot, or all of it", _drop)
    drop.add_argument(
        "--cut", type=int, action="append", default=[], metavar="N", help="(may be repeated)"
    )
    drop.add_argument("--cascade", action="store_true", help="and the cuts that rest on them")
    _dry(drop)
    snapshot_bulk.add_to(actions, _moment)
    parser.set_defaults(run=run)


def _action(
    actions: Any, name: str, about: str, act: Act, *, named: bool = True
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=about, description=about)
    if named:
        parser.add_argument("name", help="of the snapshot")
    add_connect(parser)
    parser.set_defaults(act=act)
    return parser


def _dry(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="check everything, change nothing")


def run(options: argparse.Namespace) -> int:
    act: Act = options.act
    if getattr(options, "spark", False):
        return _by_spark(options)
    with client_of(options, "remuda snapshot") as client:
        return act(client, options)


def _create(client: Client, options: argparse.Namespace) -> int:
    made = client.snapshots.create(options.name, increment=options.increment)
    _print_cuts([made])
    if made.note:
        sys.stdout.write(f"a base, not an increment: {harmless(made.note)}\n")
    return 0


def _list(client: Client, _options: argparse.Namespace) -> int:
    _print_cuts(client.snapshots.list())
    return 0


def _describe(client: Client, options: argparse.Namespace) -> int:
    rows = client.snapshots.describe(options.name)
    _print(
        ("cut", "kind", "map", "rows", "removed", "objects", "bytes"),
        [
            (
                row.cut,
                row.kind,
                row.map or "",
                *map(_count, (row["rows"], row.removed, row.objects)),
                "" if row.bytes is None else size_text(row.bytes),
            )
            for row in rows
        ],
        (_RIGHT, _LEFT, _LEFT, _RIGHT, _RIGHT, _RIGHT, _RIGHT),
    )
    print("\nmoments that can be restored (UTC); what lies between two lines is a gap:")
    moments = [
        tuple(f"{each.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}" for each in row)
        for row in client.snapshots.restorable(options.name)
    ]
    _print(("from", "to"), moments, (_LEFT, _LEFT))
    return 0


def _by_spark(options: argparse.Namespace) -> int:
    if options.act is _verify:
        return snapshot_bulk.verify(options)
    if options.dry_run:
        raise InputError("--dry-run is done by the members: leave --spark away")
    maps = None if options.map is None else dict(map(_renamed, options.map))
    moment = None if options.to is None else _moment(options.to, "--to")
    _print_restored(snapshot_bulk.restore(options, maps, moment), "restored as")
    return 0


def _verify(client: Client, options: argparse.Namespace) -> int:
    found = client.snapshots.verify(options.name, options.level)
    if not found:
        print(f"snapshot {options.name}: nothing found")
        return 0
    rows = [(row.kind, row.place, row.problem) for row in found]
    _print(("kind", "place", "problem"), rows, (_LEFT, _LEFT, _LEFT))
    return EXIT_FOUND


def _restore(client: Client, options: argparse.Namespace) -> int:
    rows = client.snapshots.restore(
        options.name,
        cut=options.cut,
        maps=None if options.map is None else dict(map(_renamed, options.map)),
        prefix=options.prefix,
        moment=None if options.to is None else _moment(options.to, "--to"),
        dry_run=options.dry_run,
    )
    _print_restored(rows, "would be" if options.dry_run else "restored as")
    return 0


def _print_restored(rows: Sequence[Row], what: str) -> None:
    _print(
        ("map", what, "rows", "objects", "bytes"),
        [
            (row.map, row.restored_as, f"{row.rows:,}", row.objects, size_text(row.bytes))
            for row in rows
        ],
        (_LEFT, _LEFT, _RIGHT, _RIGHT, _RIGHT),
    )


def _renamed(text: str) -> tuple[str, str]:
    old, _, new = text.partition("=")
    return old, new or old


def _expire(client: Client, options: argparse.Namespace) -> int:
    before = _moment(options.before, "--before")
    _print_gone(client.snapshots.expire(options.name, before, dry_run=options.dry_run), options)
    return 0


def _moment(text: str, option: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{text!r} is no moment", hint=f"Write {option} 2024-01-31T12:00:00+00:00."
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _drop(client: Client, options: argparse.Namespace) -> int:
    rows = client.snapshots.drop(
        options.name, *options.cut, cascade=options.cascade, dry_run=options.dry_run
    )
    _print_gone(rows, options)
    return 0


def _print_gone(rows: Sequence[Row], options: argparse.Namespace) -> None:
    gone = "would go" if options.dry_run else "gone"
    _print(
        ("cut", "state"), [(row.cut, "kept" if row.kept else gone) for row in rows], (_RIGHT, _LEFT)
    )


_CUTS: Final = (
    *("snapshot", "cut", "kind", "created", "maps"),
    *("rows", "removed", "bytes", "key", "problem"),
)


def _print_cuts(rows: Sequence[Row]) -> None:
    _print(
        _CUTS,
        [
            (
                row.snapshot,
                "" if row.cut is None else row.cut,
                row.kind or "",
                "" if row.created is None else f"{row.created.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
                "" if row.maps is None else row.maps,
                *map(_count, (row["rows"], row.removed)),
                "" if row.bytes is None else size_text(row.bytes),
                row.key or "",
                row.problem or "",
            )
            for row in rows
        ],
        (_LEFT, _RIGHT, _LEFT, _LEFT, _RIGHT, _RIGHT, _RIGHT, _RIGHT, _LEFT, _LEFT),
    )


def _count(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


def _print(
    head: Sequence[str], rows: Sequence[Sequence[object]], alignment: Sequence[Alignment]
) -> None:
    shown = [tuple(harmless(str(value)) for value in row) for row in rows]
    sys.stdout.write(text_table(tuple(head), shown, tuple(alignment)) if shown else "nothing\n")
