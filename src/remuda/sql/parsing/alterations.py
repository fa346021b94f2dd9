"""ALTER TABLE and ALTER VIEW.

::

    ALTER TABLE|MAPPING [IF EXISTS] name action, ...
    action    ADD [COLUMN] [IF NOT EXISTS] column  |  ADD [CONSTRAINT name] CHECK (condition)
              | ADD [CONSTRAINT name] PRIMARY KEY (column, ...)
              | ADD [CONSTRAINT name] UNIQUE [NULLS [NOT] DISTINCT] (column, ...)
              | ADD [CONSTRAINT name] UNIQUE USING INDEX name
              | ADD [CONSTRAINT name] FOREIGN KEY (column, ...) REFERENCES parent ...
              | DROP [COLUMN] [IF EXISTS] name [CASCADE]  |  DROP CONSTRAINT [IF EXISTS] name
              | ALTER [COLUMN] name [SET DATA] TYPE type
              | ALTER [COLUMN] name SET DEFAULT value  |  ALTER [COLUMN] name DROP DEFAULT
              | ALTER [COLUMN] name ADD GENERATED ALWAYS | BY DEFAULT AS IDENTITY [(clause ...)]
              | ALTER [COLUMN] name SET GENERATED ALWAYS | BY DEFAULT, SET clause, RESTART [WITH n]
              | ALTER [COLUMN] name DROP IDENTITY [IF EXISTS]
              | ALTER [COLUMN] name SET NOT NULL  |  ALTER [COLUMN] name DROP NOT NULL
              | SET (option = value, ...)  |  RESET (option, ...)
              | one of ``storage_actions``
    ALTER TABLE|MAPPING [IF EXISTS] name RENAME TO name
    ALTER TABLE|MAPPING [IF EXISTS] name RENAME [COLUMN] name TO name
    ALTER TABLE|MAPPING [IF EXISTS] name RENAME CONSTRAINT name TO name
    ALTER VIEW [IF EXISTS] name RENAME TO name
    ALTER TABLE|MAPPING|VIEW|SEQUENCE [IF EXISTS] name SET SCHEMA name  |  name OWNER TO user

Columns are read in ``table_elements``.
"""

from __future__ import annotations

from typing import Literal

from remuda.errors import NotSupported
from remuda.sql.parsing.foreign_keys import read_deferral
from remuda.sql.parsing.option_settings import read_settings
from remuda.sql.parsing.schemas import USERS, moved_or_owned, no_users, read_alter_schema
from remuda.sql.parsing.sequences import (
    read_alter_sequence,
    read_clause,
    read_identity,
    read_kind,
)
from remuda.sql.parsing.storage_actions import read_of_column, read_of_index, read_of_table
from remuda.sql.parsing.table_elements import ElementReader
from remuda.sql.parsing.types import read_alter_type
from remuda.sql.trees.namespaces import AlterSchemaTree
from remuda.sql.trees.sequences import AlterSequenceTree, IdentityClause, SequenceClauses
from remuda.sql.trees.syntax import (
    Action,
    AddCheck,
    AddColumn,
    AddForeignKey,
    AddIdentity,
    AddKey,
    AddUnique,
    AdoptIndex,
    AlterConstraint,
    AlterTree,
    ChangeDefault,
    ChangeNullable,
    ChangeOptions,
    ChangeType,
    CheckDefinition,
    DropColumn,
    DropConstraint,
    DropExpression,
    DropIdentity,
    KeyDefinition,
    Rename,
    SetExpression,
    SetIdentity,
    TableElements,
    ValidateConstraint,
)
from remuda.sql.trees.types import AlterTypeTree


class AlterParser(ElementReader):
    """Reads one ALTER from its tokens; every error has a position."""

    def alter(self) -> AlterTree | AlterSequenceTree | AlterSchemaTree | AlterTypeTree:
        self.expect("alter")
        if self.accept("schema"):
            return read_alter_schema(self)
        if self.accept("type"):
            return read_alter_type(self)
        if self.accept("sequence"):
            return read_alter_sequence(self)
        if self.accept("index"):
            return self._alter_index()
        return self._alter_relation()

    def _alter_relation(self) -> AlterTree:
        kind: Literal["TABLE", "VIEW"] = "TABLE"
        if self.accept("view"):
            kind = "VIEW"
        elif self.word() in USERS:
            raise no_users(
                self, "ALTER", "remuda user set NAME SETTING VALUE, or remuda user password NAME"
            )
        elif self.accept("default", "privileges"):
            raise NotSupported(
                "ALTER DEFAULT PRIVILEGES is not supported",
                position=self.position(),
                hint="A role on a schema holds for all maps that will be in it: remuda user grant "
                "NAME ROLE --map 'SCHEMA.*'.",
            )
        elif not (self.accept("table") or self.accept("mapping")):
            self.unsupported(
                f"ALTER {self.word().upper()}".rstrip(),
                "ALTER TABLE, ALTER VIEW, ALTER SEQUENCE, ALTER INDEX",
            )
        if_exists = self.accept("if", "exists")
        if kind == "TABLE":
            self.accept("only")  # maps have no heirs
        name = self.map_name()
        if kind == "TABLE":
            self.accept("*")
        actions: list[Action] = []
        if self.accept("rename"):
            actions.append(self._rename(kind))
        elif (word := moved_or_owned(self)) is not None:
            actions.append(word)
        elif kind == "VIEW":
            self.unsupported(
                "this form of ALTER VIEW", "ALTER VIEW name RENAME TO name, SET SCHEMA, OWNER TO"
            )
        else:
            actions.append(self._action())
            while self.accept(","):
                actions.append(self._action())
        self.end()
        return AlterTree(kind, name, if_exists, tuple(actions))

    def _rename(self, kind: str) -> Rename:
        if self.accept("to"):
            return Rename("RELATION", None, self.name())
        if kind == "VIEW":
            self.unsupported("RENAME COLUMN of a view", "CREATE VIEW name (column, ...) AS query")
        if self.accept("constraint"):
            old = self.name()
            self.expect("to")
            return Rename("CONSTRAINT", old, self.name())
        self.accept("column")
        old = self.name()
        self.expect("to")
        return Rename("COLUMN", old, self.name())

    def _action(self) -> Action:
        if self.accept("add"):
            return self._add()
        if self.accept("drop"):
            return self._drop()
        if self.accept("alter", "constraint"):
            name = self.name()
            deferral = read_deferral(self, of_column=False)
            return AlterConstraint(name, deferral.deferrable, deferral.deferred)
        if self.accept("alter"):
            return self._alter_column()
        if self.accept("validate"):
            self.expect("constraint")
            return ValidateConstraint(self.name())
        for word in ("set", "reset"):
            if self.accept(word, "("):
                self.index -= 1
                return ChangeOptions(read_settings(self, with_values=word == "set"))
        kept = read_of_table(self)
        if kept is not None:
            return kept
        return self.unsupported(
            f"ALTER TABLE {self.word().upper()}".rstrip(),
            "ADD, DROP, ALTER [COLUMN], ALTER CONSTRAINT, VALIDATE CONSTRAINT, RENAME, "
            "SET (option = value), RESET (option)",
        )

    def _add(self) -> Action:
        start = self.position()
        constraint = self.name() if self.accept("constraint") else None
        if self.accept("primary", "key"):
            return AddKey(KeyDefinition(constraint, self.names(), start))
        if self.accept("check"):
            condition = self.enclosed()
            self.accept("no", "inherit")
            valid = not self.accept("not", "valid")
            return AddCheck(CheckDefinition(constraint, condition, None, valid))
        if self.accept("unique", "using", "index"):
            return AdoptIndex(constraint, self.name())
        if self.accept("unique"):
            return AddUnique(self.unique(constraint))
        if self.accept("foreign", "key"):
            return AddForeignKey(self.foreign_key(constraint))
        if constraint is not None:
            self.unsupported(
                f"ADD {self.word().upper()}",
                "ADD PRIMARY KEY (column), ADD CHECK (condition), ADD UNIQUE (column), "
                "ADD FOREIGN KEY (column) REFERENCES table, ADD COLUMN name type",
            )
        self.accept("column")
        if_not_exists = self.accept("if", "not", "exists")
        elements = TableElements()
        column = self.column(elements)
        if column.type is None:
            self.fail()
        return AddColumn(column, elements, if_not_exists)

    def _drop(self) -> Action:
        what = "constraint" if self.accept("constraint") else "column"
        if what == "column":
            self.accept("column")
        if_exists = self.accept("if", "exists")
        name = self.name()
        cascade = self.accept("cascade")
        if not cascade:
            self.accept("restrict")
        if what == "constraint":
            return DropConstraint(name, if_exists, cascade)
        return DropColumn(name, if_exists, cascade)

    def _alter_index(self) -> AlterTree:
        if_exists = self.accept("if", "exists")
        name = self.map_name()
        action: Action | None = read_of_index(self)
        if action is None:
            if not self.accept("rename", "to"):
                self.unsupported("this form of ALTER INDEX", "ALTER INDEX name RENAME TO name")
            action = Rename("RELATION", None, self.name())
        self.end()
        return AlterTree("INDEX", name, if_exists, (action,))

    def _alter_column(self) -> Action:
        self.accept("column")
        name = self.name()
        if self.accept("type") or self.accept("set", "data", "type"):
            position = self.position()
            new = self.type()
            using = self.until(frozenset()) if self.accept("using") else None
            return ChangeType(name, new, using, position)
        if self.accept("set", "default"):
            return ChangeDefault(name, self.until(frozenset()))
        if self.accept("drop", "default"):
            return ChangeDefault(name, None)
        if self.accept("set", "not", "null"):
            return ChangeNullable(name, nullable=False)
        if self.accept("drop", "not", "null"):
            return ChangeNullable(name, nullable=True)
        if self.accept("add", "generated"):
            return AddIdentity(name, read_identity(self))
        if self.accept("drop", "identity"):
            return DropIdentity(name, self.accept("if", "exists"))
        if self.accept("drop", "expression"):
            return DropExpression(name, self.accept("if", "exists"))
        if self.accept("set", "expression"):
            self.expect("as", hint="Write SET EXPRESSION AS (expression).")
            return SetExpression(name, self.enclosed())
        kept = read_of_column(self, name)
        if kept is not None:
            return kept
        if self.word() in ("set", "restart"):
            return SetIdentity(name, self._identity())
        return self.unsupported(
            f"ALTER COLUMN {self.word().upper()}".rstrip(),
            "TYPE type, SET DEFAULT value, DROP DEFAULT, SET NOT NULL, DROP NOT NULL, "
            "ADD GENERATED, SET GENERATED, DROP IDENTITY, SET EXPRESSION, DROP EXPRESSION",
        )

    def _identity(self) -> IdentityClause:
        """``SET GENERATED kind``, ``SET clause`` and ``RESTART`` in any number."""
        position, kind, clauses = self.position(), None, SequenceClauses()
        while True:
            if self.accept("set", "generated"):
                kind = read_kind(self)
            elif self.accept("set") or self.word() == "restart":
                if not read_clause(self, clauses, restart=True):
                    self.fail("Write SET GENERATED ALWAYS, SET INCREMENT BY n, RESTART ...")
            else:
                return IdentityClause(kind, clauses, position)
