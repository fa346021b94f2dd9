"""Structured logs: one event per line, as text or as JSON, with the member that speaks.

Use: ``log.info("member joined", extra=fields(peer=2, address="..."))``.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Final

from remuda.errors import UndefinedObject

_FIELDS = "remuda_fields"
ROOT = "remuda"


def fields(**values: object) -> dict[str, dict[str, object]]:
    """The ``extra`` argument of a logging call."""
    return {_FIELDS: values}


class _Identity:
    """The member that speaks; the number is known only after joining. Until then lines have
    none."""

    member: int = 0


class _Formatter(logging.Formatter):
    """``member`` gives the number of the member that speaks; 0: it has none."""

    def __init__(self, member: Callable[[], int]) -> None:
        super().__init__()
        self._member = member

    def entry(self, record: logging.LogRecord) -> dict[str, object]:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        entry: dict[str, object] = {
            "time": time,
            "level": record.levelname.lower(),
            "member": self._member() or None,
            "part": record.name.removeprefix(ROOT + "."),
            "event": record.getMessage(),
        }
        entry |= getattr(record, _FIELDS, {})
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return entry


class JsonFormatter(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(self.entry(record), default=str, ensure_ascii=False)


class TextFormatter(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = self.entry(record)
        head = f"{entry.pop('time')} {str(entry.pop('level')).upper():7} member "
        head += str(entry.pop("member") or "-")
        entry.pop("part")
        event, exception = entry.pop("event"), entry.pop("exception", None)
        pairs = "".join(f" {key}={_quoted(value)}" for key, value in entry.items())
        return f"{head} {event}{pairs}" + (f"\n{exception}" if exception else "")


def _quoted(value: object) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if " " in text or not text else text


LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
DEFAULT: Final = "default"


def set_level(part: str, level: str, configured: str) -> None:
    """Change the least level that a part of this process logs, and parts inside of it that have
    none of their own; "": the whole. ``level``: one of LEVELS, or "default": of the whole, it is
    the one that is ``configured``. Raises UndefinedObject for a part that never logs."""
    if part and not _is_part(part):
        near = get_close_matches(part, sorted(_parts()), n=5, cutoff=0.3)
        raise UndefinedObject(
            f'no part of the log is called "{part}"',
            hint=f"Parts with such names are {', '.join(near)}." if near else "",
        )
    logger = logging.getLogger(f"{ROOT}.{part}" if part else ROOT)
    if level == DEFAULT:
        logger.setLevel(logging.NOTSET if part else LEVELS[configured])
    else:
        logger.setLevel(LEVELS[level])


def levels() -> Iterator[tuple[str, str]]:
    """The parts that have a level, with the whole ("") first."""
    yield "", _named(logging.getLogger(ROOT).getEffectiveLevel())
    for part in sorted(_parts()):
        own = logging.getLogger(f"{ROOT}.{part}").level
        if own != logging.NOTSET:
            yield part, _named(own)


def _parts() -> Iterator[str]:
    """Those that log, and those around them."""
    known = logging.Logger.manager.loggerDict
    return (name.removeprefix(f"{ROOT}.") for name in list(known) if name.startswith(f"{ROOT}."))


def _is_part(part: str) -> bool:
    return part in set(_parts())


def _named(level: int) -> str:
    return logging.getLevelName(level).lower()


def set_up(level: str, form: str, file: str) -> _Identity:
    """Configure the process' log; returns what to tell the member number to."""
    identity = _Identity()
    handler: logging.Handler = (
        logging.FileHandler(file, encoding="utf-8") if file else logging.StreamHandler(sys.stderr)
    )
    formatter = JsonFormatter if form == "json" else TextFormatter
    handler.setFormatter(formatter(lambda: identity.member))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(ROOT).setLevel(level.upper())
    return identity
