"""What stands in the parentheses of CREATE TABLE and behind ALTER TABLE ... ADD.

::

    element   column | LIKE name [INCLUDING | EXCLUDING option]...
              | [CONSTRAINT name] PRIMARY KEY (column, ...)
              | [CONSTRAINT name] UNIQUE [NULLS [NOT] DISTINCT] (column, ...)
              | [CONSTRAINT name] CHECK (condition)
              | [CONSTRAINT name] FOREIGN KEY (column, ...) REFERENCES parent ...
    column    name type [ [CONSTRAINT name] NOT NULL | NULL | PRIMARY KEY | DEFAULT value
              | UNIQUE [NULLS [NOT] DISTINCT] | CHECK (condition) | REFERENCES parent ...
              | GENERATED ALWAYS | BY DEFAULT AS IDENTITY [(clause ...)]
              | GENERATED ALWAYS AS (expression) STORED | COLLATE collation ]...

CREATE TABLE AS leaves types out.
"""

from __future__ import annotations

from typing import Final

from remuda.datatypes.sequences import RANGES
from remuda.datatypes.sql import Kind, SqlType
from remuda.errors import InvalidDefinition, Position, SqlSyntaxError, TypeMismatch
from remuda.sql.parsing.foreign_keys import read_references
from remuda.sql.parsing.grammar.types import TypeGrammar, declared_type
from remuda.sql.parsing.option_settings import skip_collation
from remuda.sql.parsing.sequences import read_generated
from remuda.sql.parsing.token_reader import TokenReader
from remuda.sql.trees.syntax import (
    CheckDefinition,
    ColumnDefinition,
    ForeignKeyDefinition,
    KeyDefinition,
    LikeDefinition,
    Name,
    Snippet,
    TableElements,
    UniqueDefinition,
)

_NOT_COLUMNS: Final = frozenset({"exclude"})
_LIKE_OPTIONS: Final = frozenset(
    {"all", "comments", "compression", "constraints", "defaults", "generated", "identity"}
    | {"indexes", "statistics", "storage"}
)
"""Of LIKE: what is copied besides names, types and NOT NULL."""
_COLLATED: Final = frozenset({Kind.CHAR, Kind.VARCHAR})
_COLUMN_OPTIONS: Final = frozenset({"as"})
_AFTER_DEFAULT: Final = frozenset(
    {"not", "null", "primary", "check", "constraint", "default"}
    | {"unique", "generated", "collate", "references"}
    | _COLUMN_OPTIONS
)
SERIALS: Final = {
    "smallserial": "smallint", "serial2": "smallint", "serial": "integer", "serial4": "integer",
    "bigserial": "bigint", "serial8": "bigint",
}  # fmt: skip
"""Types of columns that own a sequence, and those of its numbers."""


class ElementReader(TokenReader):
    """Reads columns and constraints."""

    def elements(self) -> TableElements:
        self.expect("(", hint="A map needs columns: name (column type, ..., PRIMARY KEY (...)).")
        found = TableElements()
        while True:
            self._element(found)
            if not self.accept(","):
                break
        self.expect(")")
        return found

    def _element(self, found: TableElements) -> None:
        start = self.position()
        constraint = self.name() if self.accept("constraint") else None
        if self.accept("primary", "key"):
            self.key(found, KeyDefinition(constraint, self.names(), start))
        elif self.accept("check"):
            found.checks.append(CheckDefinition(constraint, self.enclosed(), None))
            self.accept("no", "inherit")  # maps have no heirs
            self.accept("not", "valid")  # nor has a new one rows that a condition could pass over
        elif self.accept("unique"):
            found.uniques.append(self.unique(constraint))
        elif self.accept("foreign", "key"):
            found.foreign_keys.append(self.foreign_key(constraint))
        elif self.word() in _NOT_COLUMNS:
            self.unsupported(
                f"the constraint {self.word().upper()}",
                "PRIMARY KEY (column, ...), UNIQUE (column, ...), CHECK (...), FOREIGN KEY",
            )
        elif constraint is not None:
            self.fail()
        elif self.accept("like"):
            found.like.append(self._like(len(found.columns)))
        else:
            found.columns.append(self.column(found))

    def _like(self, place: int) -> LikeDefinition:
        name = self.map_name()
        wanted: set[str] = set()
        while (including := self.accept("including")) or self.accept("excluding"):
            word = self.word()
            if word not in _LIKE_OPTIONS:
                self.fail("Options: " + ", ".join(sorted(_LIKE_OPTIONS)).upper() + ".")
            self.index += 1
            words = set(_LIKE_OPTIONS) if word == "all" else {word}
            wanted = wanted | words if including else wanted - words
        return LikeDefinition(place, name, frozenset(wanted))

    def unique(self, constraint: Name | None) -> UniqueDefinition:
        """After UNIQUE of a constraint that names its columns."""
        distinct = self.nulls_distinct()
        return UniqueDefinition(constraint, self.names(), distinct)

    def foreign_key(self, constraint: Name | None) -> ForeignKeyDefinition:
        """After FOREIGN KEY of a constraint that names its columns."""
        columns = self.names()
        self.expect("references")
        return read_references(self, constraint, columns, of_column=False)

    def nulls_distinct(self) -> bool:
        """``[NULLS [NOT] DISTINCT]``"""
        if not self.accept("nulls"):
            return True
        different = not self.accept("not")
        self.expect("distinct")
        return different

    def key(self, found: TableElements, key: KeyDefinition) -> None:
        if found.key is not None:
            raise InvalidDefinition("multiple primary keys are not allowed", position=key.position)
        found.key = key

    def column(self, found: TableElements) -> ColumnDefinition:
        """One column; its constraints on whole rows go to ``found``."""
        name = self.name()
        if self.word() in (",", ")"):
            return ColumnDefinition(name, None)
        serial = SERIALS.get(self.word(), "")
        if serial:
            self.index += 1
            column = ColumnDefinition(name, RANGES[serial][0], serial=serial)
        else:
            position = self.position()
            column = ColumnDefinition(name, self.type(), type_position=position)
        for word in ("storage", "compression"):
            if self.accept(word):
                self.name()
        while self._column_constraint(column, found):
            pass
        word = self.word()
        if word in _COLUMN_OPTIONS:
            self.unsupported(
                f"the column option {word.upper()}",
                "NOT NULL, DEFAULT, CHECK, UNIQUE, PRIMARY KEY, REFERENCES",
            )
        return column

    def _column_constraint(self, column: ColumnDefinition, found: TableElements) -> bool:
        start = self.position()
        constraint = self.name() if self.accept("constraint") else None
        if self.accept("not", "null"):
            if column.nullable is True:
                self._conflicting(column.name)
            column.nullable = False
        elif self.accept("null"):
            if column.nullable is False:
                self._conflicting(column.name)
            column.nullable = True
        elif self.accept("primary", "key"):
            self.key(found, KeyDefinition(constraint, (column.name,), start))
        elif self.accept("check"):
            found.checks.append(CheckDefinition(constraint, self.enclosed(), column.name))
            self.accept("no", "inherit")
        elif self.accept("unique"):
            distinct = self.nulls_distinct()
            found.uniques.append(UniqueDefinition(constraint, (column.name,), distinct))
        elif self.accept("references"):
            key = read_references(self, constraint, (column.name,), of_column=True)
            found.foreign_keys.append(key)
        elif self.accept("default"):
            if column.default is not None:
                raise SqlSyntaxError(
                    f'multiple default values specified for column "{column.name.text}"',
                    position=start,
                )
            column.default = self.until(_AFTER_DEFAULT)
        elif constraint is None and self.accept("generated"):
            self._generated(column, start)
        elif constraint is None and self.word() == "collate":
            self._collation(column)
        elif constraint is not None:
            self.fail()
        else:
            return False
        return True

    def _generated(self, column: ColumnDefinition, start: Position) -> None:
        found = read_generated(self)
        problem = ""
        if isinstance(found, Snippet):
            if column.generated is not None:
                problem = f'multiple generation clauses specified for column "{column.name.text}"'
            column.generated = found
        else:
            if column.identity is not None:
                problem = f'multiple identity specifications for column "{column.name.text}"'
            column.identity = found
        if problem:
            raise SqlSyntaxError(problem, position=start)

    def _collation(self, column: ColumnDefinition) -> None:
        place = self.position()
        skip_collation(self)
        if column.type is not None and column.type.kind not in _COLLATED:
            raise TypeMismatch(
                f"collations are not supported by type {column.type}", position=place
            )

    def _conflicting(self, name: Name) -> None:
        raise SqlSyntaxError(
            f'conflicting NULL/NOT NULL declarations for column "{name.text}"',
            position=name.position,
        )

    # --- types ---

    def type(self) -> SqlType:
        position = self.position()
        grammar = TypeGrammar(self.text, self.tokens, self.index)
        written = grammar.type_name()
        self.index = grammar.index
        return declared_type(written, position)
