"""GRANT and REVOKE as parsed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from remuda.sql.trees.names import Name


class ObjectKind(Enum):
    TABLE = "table"
    SEQUENCE = "sequence"
    SCHEMA = "schema"
    DATABASE = "database"
    TABLES_IN_SCHEMA = "all tables in schema"
    SEQUENCES_IN_SCHEMA = "all sequences in schema"


@dataclass(frozen=True, slots=True)
class PrivilegeTree:
    """``privileges`` in lower case; empty: ALL. ``users`` without PUBLIC, which ``public`` says;
    the name of ``CURRENT_USER`` and its kind is ""."""

    grants: bool
    privileges: tuple[str, ...]
    kind: ObjectKind
    objects: tuple[Name, ...]
    users: tuple[Name, ...]
    public: bool
    reads_only: Literal[False] = False
