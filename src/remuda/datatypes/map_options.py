"""Promises of a map besides its columns: the life of its entries, and how many there may be.

The names are those of ``CREATE TABLE ... WITH (ttl = '10 s')``, of ``ALTER TABLE ... SET`` and of
``create_map(ttl="10 s")``. An option is one field of ``MapOptions``, one line of ``OPTIONS`` and
one field of the message ``MapOptions`` (``rpc.codec``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from typing import Any, Final

from remuda.datatypes.timestamp import FOREVER, to_micros
from remuda.errors import InvalidDefinition

DURATION_MAX: Final = to_micros(FOREVER) // 2
"""In microseconds (about 142 years): a moment plus this is still a timestamp."""
SIZE_MAX: Final = 2**60

_TIME_UNITS: Final = {
    "us": 1, "ms": 1_000, "s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6, "d": 86_400 * 10**6,
}  # fmt: skip
_TIME_NAMES: Final = {
    "microsecond": "us", "microseconds": "us", "millisecond": "ms", "milliseconds": "ms",
    "sec": "s", "secs": "s", "second": "s", "seconds": "s", "m": "min", "mins": "min",
    "minute": "min", "minutes": "min", "hour": "h", "hours": "h", "day": "d", "days": "d",
}  # fmt: skip
_SIZE_UNITS: Final = {
    "b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_AMOUNT: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-z]*)\s*\Z", re.IGNORECASE)


class Eviction(Enum):
    """Which entries go when a map is full. NONE: no entry goes, and writes are refused."""

    NONE = "none"
    LRU = "LRU"
    LFU = "LFU"


@dataclass(frozen=True)
class MapOptions:
    """The options of a map; those at their default are not shown.

    ``ttl`` and ``max_idle`` are microseconds, ``max_bytes`` bytes; 0 is no limit. The limits of
    ``max_entries`` and ``max_bytes`` are for the whole map: each member keeps to its share, which
    is that of the partitions that it is the primary of.
    """

    ttl: int = 0
    max_idle: int = 0
    eviction: Eviction = Eviction.NONE
    max_entries: int = 0
    max_bytes: int = 0
    async_backups: bool = False
    """Writes of single entries are answered before backups have them."""
    change_retention: int = 0
    """Microseconds for which changes can be read again; 0: as long as members keep versions for
    other reasons, ten seconds."""
    change_retention_bytes: int = 0
    """Of the whole map: with more of kept changes, the oldest go before their time."""

    @property
    def watched(self) -> bool:
        """Whether somebody must look at the entries from time to time, and note who reads them."""
        return bool(self.max_idle or self.eviction is not Eviction.NONE)


NO_OPTIONS: Final = MapOptions()


@dataclass(frozen=True)
class Option:
    """How one option is written. ``read`` takes what a user wrote (text, a number, a boolean, or
    None for the default) and raises ValueError; ``shown`` gives an SQL literal."""

    read: Callable[[Any], Any]
    shown: Callable[[Any], str]
    wanted: str
    """Said when ``read`` refuses."""


def read_duration(value: Any) -> int:
    """Microseconds of "10 s", "1.5 min", a ``timedelta``, or a number of seconds; 0 for none.
    Raises ValueError."""
    if isinstance(value, timedelta):
        micros = value // timedelta(microseconds=1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise ValueError
        micros = _whole(value * 10**6)
    else:
        micros = _amount(value, _TIME_UNITS, _TIME_NAMES, "s")
    if not 0 <= micros <= DURATION_MAX:
        raise ValueError
    return micros


def duration_text(micros: int) -> str:
    """The opposite: "90 s", in the largest unit that needs no fraction."""
    return _in_units(micros, _TIME_UNITS)


def _read_size(value: Any) -> int:
    size = _amount(value, _SIZE_UNITS, {}, "b") if isinstance(value, str) else _read_count(value)
    if not 0 <= size <= SIZE_MAX:
        raise ValueError
    return size


def _read_count(value: Any) -> int:
    if isinstance(value, str):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= SIZE_MAX:
        raise ValueError
    return value


def _read_boolean(value: Any) -> bool:
    if isinstance(value, str):
        value = {"true": True, "false": False}[value.strip().lower()]
    if not isinstance(value, bool):
        raise ValueError
    return value


def _read_eviction(value: Any) -> Eviction:
    if isinstance(value, Eviction):
        return value
    return next(one for one in Eviction if one.value.lower() == str(value).lower())


def _amount(value: Any, units: Mapping[str, int], names: Mapping[str, str], unit: str) -> int:
    """A number and its unit; a bare number counts ``unit``."""
    if str(value).strip().lower() == "none":
        return 0
    found = _AMOUNT.match(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError
    name = found[2].lower() or unit
    factor = units.get(names.get(name, name))
    if factor is None:
        raise ValueError
    return _whole(float(found[1]) * factor) if "." in found[1] else int(found[1]) * factor


def _whole(amount: float) -> int:
    """0 means that there is no limit, so a value above 0 stays above 0."""
    return round(amount) or math.ceil(amount)


def _in_units(amount: int, units: Mapping[str, int]) -> str:
    name, factor = max(
        ((name, size) for name, size in units.items() if amount % size == 0),
        key=lambda unit: unit[1],
    )
    return f"{amount // factor} {name}"


def _quoted_size(size: int) -> str:
    shown = {name.upper(): _SIZE_UNITS[name] for name in ("b", "kb", "mb", "gb", "tb")}
    return f"'{_in_units(size, shown)}'"


def _quoted_duration(micros: int) -> str:
    return f"'{duration_text(micros)}'"


_DURATION: Final = Option(read_duration, _quoted_duration, "a duration, as '10 s' or '1 min'")

OPTIONS: Final[Mapping[str, Option]] = {
    "ttl": _DURATION,
    "max_idle": _DURATION,
    "eviction": Option(_read_eviction, lambda kind: f"'{kind.value}'", "'LRU', 'LFU' or 'none'"),
    "max_entries": Option(_read_count, str, "a number of entries"),
    "max_bytes": Option(_read_size, _quoted_size, "a size, as '64 MB' or a number of bytes"),
    "async_backups": Option(_read_boolean, lambda on: str(on).lower(), "true or false"),
    "change_retention": _DURATION,
    "change_retention_bytes": Option(
        _read_size, _quoted_size, "a size, as '64 MB' or a number of bytes"
    ),
}


def read_option(name: str, written: Any) -> Any:
    """The value of an option from what a user wrote (None: its default). Raises
    InvalidDefinition."""
    option = OPTIONS.get(name)
    if option is None:
        raise unknown_option(name)
    if written is None:
        return getattr(NO_OPTIONS, name)
    try:
        return option.read(written)
    except (ValueError, KeyError, StopIteration, OverflowError, TypeError):
        raise InvalidDefinition(
            f"invalid value for option {name}: {_as_written(written)}",
            hint=f"Write {option.wanted}.",
        ) from None


def changed(options: MapOptions, settings: Mapping[str, Any]) -> MapOptions:
    """``options`` with some of them set to what a user wrote (None: the default again).

    A limit without a word about eviction means LRU. With max_bytes and eviction = 'none', a full
    map refuses writes. Raises InvalidDefinition for an unknown name, a value that cannot be read,
    and options that do not fit together.
    """
    values = {name: read_option(name, written) for name, written in settings.items()}
    found = replace(options, **values)
    if found.change_retention_bytes and not found.change_retention:
        raise InvalidDefinition(
            "change_retention_bytes needs change_retention",
            hint="Example: change_retention = '1 h', change_retention_bytes = '1 GB'.",
        )
    limited = bool(found.max_entries or found.max_bytes)
    evicts = found.eviction is not Eviction.NONE
    if limited and not evicts and _by_default(options, settings):
        return replace(found, eviction=Eviction.LRU)
    if found.max_entries and not evicts:
        raise InvalidDefinition(
            "max_entries needs an eviction other than 'none'",
            hint="Example: eviction = 'LRU', max_entries = 100000. With eviction = 'none', "
            "max_bytes refuses writes to a full map. "
            "ALTER TABLE ... RESET (eviction, max_entries, max_bytes) ends it.",
        )
    if evicts and not limited:
        raise InvalidDefinition(
            f"eviction = '{found.eviction.value}' needs max_entries or max_bytes",
            hint="Example: eviction = 'LRU', max_entries = 100000. "
            "ALTER TABLE ... RESET (eviction, max_entries, max_bytes) ends it.",
        )
    return found


def _by_default(options: MapOptions, settings: Mapping[str, Any]) -> bool:
    """Whether nobody has said what to do with a full map, now or when the limit was set."""
    if "eviction" in settings:
        return settings["eviction"] is None
    return not (options.max_entries or options.max_bytes)


def refuse_for_replicated(options: MapOptions) -> None:
    """Raises InvalidDefinition: every member reads its own copy, so nobody sees all accesses."""
    if options.async_backups:
        raise InvalidDefinition("a replicated map has no backups that could be asynchronous")
    if options.watched:
        raise InvalidDefinition(
            "a replicated map has no max_idle and no eviction",
            hint="ttl works for replicated maps too.",
        )


def unknown_option(name: str) -> InvalidDefinition:
    return InvalidDefinition(
        f'unknown option "{name}"', hint=f"Known options: {', '.join(OPTIONS)}."
    )


def shown(options: MapOptions) -> list[str]:
    """``name = value`` in SQL for each option that is not at its default."""
    return [
        f"{name} = {option.shown(getattr(options, name))}"
        for name, option in OPTIONS.items()
        if getattr(options, name) != getattr(NO_OPTIONS, name)
    ]


def setting_text(name: str, written: Any) -> str:
    """``name = value`` in SQL for what a user wrote. Raises InvalidDefinition."""
    value = read_option(name, written)
    return f"{name} = DEFAULT" if written is None else f"{name} = {OPTIONS[name].shown(value)}"


def _as_written(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)
