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
DEFINITIONS_STAY = Notice(
    "the definitions of this transaction and the changes before them are committed and stay",
    "01000",
    WARNING,
)


def definition_commits(what: str) -> Notice:
    """Of a definition in a transaction, with ``definitions_in_transactions``."""
    return Notice(f"{what} takes effect at once, and commits the changes before it")


def already_there(name: str) -> Notice:
    """Of IF NOT EXISTS."""
    return Notice(f'relation "{name}" already exists, skipping', "42P07")


def column_there(column: str, table: str) -> Notice:
    """Of ADD COLUMN IF NOT EXISTS."""
    return Notice(f'column "{column}" of relation "{table}" already exists, skipping', "42701")


def index_renamed(old: str, new: str) -> Notice:
    """Of ADD CONSTRAINT ... USING INDEX."""
    return Notice(f'ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index "{old}" to "{new}"')


def not_there(kind: str, name: str) -> Notice:
    """Of IF EXISTS. ``kind``: table, view, index."""
    return Notice(f'{kind} "{name}" does not exist, skipping')
