"""Statements about SQL schemas as they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from remuda.sql.trees.names import Name


@dataclass(frozen=True, slots=True)
class DropSchemaTree:
    names: tuple[Name, ...]
    if_exists: bool
    cascade: bool
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class AlterSchemaTree:
    """``new`` None: OWNER TO, which changes nothing."""

    name: Name
    new: Name | None
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class CommentSchemaTree:
    name: Name
    comment: str
    reads_only: Literal[False] = False
