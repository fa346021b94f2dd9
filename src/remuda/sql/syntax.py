"""Statements as parsed: queries stay trees of sqlglot, definitions are our own small trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from sqlglot import exp

from remuda.datatypes.sql import SqlType
from remuda.errors import Position


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier after case folding, and where it stands."""

    text: str
    position: Position


@dataclass(frozen=True, slots=True)
class QueryTree:
    root: exp.Expr
    reads_only: Literal[True] = True


@dataclass(frozen=True, slots=True)
class InsertTree:
    root: exp.Insert
    sink: bool
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class ChangeTree:
    """UPDATE or DELETE."""

    root: exp.Update | exp.Delete
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class TruncateTree:
    root: exp.TruncateTable
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    name: Name
    type: SqlType
    nullable: bool


@dataclass(frozen=True, slots=True)
class CreateTree:
    """``partition_by`` is None when the statement does not say."""

    name: Name
    if_not_exists: bool
    columns: tuple[ColumnDefinition, ...]
    key: tuple[Name, ...]
    replicated: bool
    partition_by: tuple[Name, ...] | None
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class DropTree:
    name: Name
    if_exists: bool
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class ShowTree:
    """``name`` is the map whose columns are asked for; None asks for the maps."""

    name: Name | None
    reads_only: Literal[True] = True


@dataclass(frozen=True, slots=True)
class ExplainTree:
    analyze: bool
    verbose: bool
    statement: QueryTree | InsertTree | ChangeTree

    @property
    def reads_only(self) -> bool:
        return not self.analyze or self.statement.reads_only


Tree: TypeAlias = (
    QueryTree
    | InsertTree
    | ChangeTree
    | TruncateTree
    | CreateTree
    | DropTree
    | ShowTree
    | ExplainTree
)
