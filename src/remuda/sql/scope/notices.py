"""Remarks about statements that succeed: PostgreSQL's clients show them."""

from __future__ import annotations

from dataclasses import dataclass

NOTICE, WARNING = "NOTICE", "WARNING"


@dataclass(frozen=True, slots=True)
class Notice:
    message: str
    sqlstate: str = "00000"
    severity: str = NOTICE


NO_TRANSACTION = Notice("there is no transaction in progress", "25P01", WARNING)
ALREADY_BEGUN = Notice("there is already a transaction in progress", "25001", WARNING)


def already_there(name: str) -> Notice:
    """Of IF NOT EXISTS."""
    return Notice(f'relation "{name}" already exists, skipping', "42P07")


def not_there(kind: str, name: str) -> Notice:
    """Of IF EXISTS. ``kind``: table, view, index."""
    return Notice(f'{kind} "{name}" does not exist, skipping')
