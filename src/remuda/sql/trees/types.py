"""Statements about types as they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from remuda.sql.trees.names import Name


@dataclass(frozen=True, slots=True)
class CreateTypeTree:
    """``labels`` have the places of their strings."""

    name: Name
    labels: tuple[Name, ...]
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class AddValue:
    """``beside`` is the label that the new one comes before, or after; None: it comes last."""

    label: Name
    if_not_exists: bool
    before: bool
    beside: Name | None


@dataclass(frozen=True, slots=True)
class RenameValue:
    old: Name
    new: Name


@dataclass(frozen=True, slots=True)
class RenameType:
    new: Name


@dataclass(frozen=True, slots=True)
class MoveType:
    """``target`` None: OWNER TO, which changes nothing."""

    target: Name | None


@dataclass(frozen=True, slots=True)
class AlterTypeTree:
    name: Name
    action: AddValue | RenameValue | RenameType | MoveType
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class DropTypeTree:
    names: tuple[Name, ...]
    if_exists: bool
    cascade: bool
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class CommentTypeTree:
    name: Name
    comment: str
    reads_only: Literal[False] = False


TypeTree: TypeAlias = CreateTypeTree | AlterTypeTree | DropTypeTree | CommentTypeTree
