"""Structured logs: one event per line, as text or as JSON, with the member that speaks.

Use: ``log.info("member joined", extra=fields(peer=2, address="..."))``.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime

_FIELDS = "remuda_fields"
ROOT = "remuda"


def fields(**values: object) -> dict[str, dict[str, object]]:
    """The ``extra`` argument of a logging call."""
    return {_FIELDS: values}


class _Identity:
    """Who speaks; the number is known only after joining. Until then lines have none."""

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
