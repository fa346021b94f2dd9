"""CREATE, DROP, COMMENT, SHOW and DESCRIBE: a small recursive-descent parser over the tokens.

::

    CREATE [TEMPORARY | TEMP | UNLOGGED] TABLE|MAPPING [IF NOT EXISTS] name (element, ...)
        [WITH (option = value, ...)] [REPLICATED]
    CREATE TABLE|MAPPING [IF NOT EXISTS] name [(column, ..., PRIMARY KEY (column, ...))]
        [WITH (option = value, ...)] [REPLICATED] AS query [WITH [NO] DATA]
    after the options of a temporary one: ON COMMIT PRESERVE ROWS | DELETE ROWS | DROP
    option    replicated = true|false  |  partition_by = 'column, ...'
              | one of ``sql.parsing.option_settings``
    CREATE [OR REPLACE] VIEW name [(column, ...)] [WITH (option [= value], ...)] AS query
        [WITH [CASCADED | LOCAL] CHECK OPTION]
    DROP TABLE|MAPPING|VIEW|SEQUENCE [IF EXISTS] name, ... [CASCADE | RESTRICT]
    COMMENT ON TABLE|VIEW|SEQUENCE|INDEX name | COLUMN name.column | CONSTRAINT name ON map
        IS 'text' | NULL
    SHOW TABLES|MAPS|MAPPINGS|VIEWS  |  SHOW COLUMNS FROM name  |  DESCRIBE name
    SHOW CREATE TABLE|VIEW name

Elements are read in ``table_elements``, statements about schemas in ``sequences``, those about
types in ``types``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal, NoReturn

from remuda.catalog.temporary import DELETE, DROP, PRESERVE
from remuda.datatypes.map_options import OPTIONS
from remuda.datatypes.schema import PG_TEMP
from remuda.errors import InvalidDefinition, NotSupported, SqlSyntaxError
from remuda.sql.parsing.index_syntax import read_create_index, read_drop_index, read_show_indexes
from remuda.sql.parsing.option_settings import option_value, skip_storage, skip_tablespace
from remuda.sql.parsing.schema_elements import read_schema
from remuda.sql.parsing.schemas import (
    USERS,
    no_owners,
    no_users,
    read_comment_on_schema,
    read_drop_schema,
)
from remuda.sql.parsing.sequences import read_create_sequence
from remuda.sql.parsing.table_elements import ElementReader
from remuda.sql.parsing.types import (
    read_comment_on_type,
    read_create_type,
    read_drop_type,
)
from remuda.sql.text.places import position_at
from remuda.sql.trees.namespaces import CommentSchemaTree, DropSchemaTree
from remuda.sql.trees.sequences import CreateSequenceTree
from remuda.sql.trees.syntax import (
    CommentTree,
    CreateIndexTree,
    CreateSchemaTree,
    CreateTree,
    CreateViewTree,
    DropIndexTree,
    DropTree,
    Name,
    OptionSetting,
    ShowTree,
    Snippet,
    TableElements,
)
from remuda.sql.trees.types import CommentTypeTree, CreateTypeTree, DropTypeTree

_CREATES: Final = "CREATE TABLE name (column type, ..., PRIMARY KEY (...)), CREATE VIEW name AS ..."

NO_ROUTINES: Final = "There is no code on the members: run the statements from the client."
_REFUSED: Final = {
    **dict.fromkeys(("function", "procedure", "aggregate", "operator", "cast"), NO_ROUTINES),
    "trigger": "Write what it does into the client, or subscribe to the map's changes.",
    "rule": "Change the table that the view reads.",
    "domain": "Give the column the type, and the table a CHECK.",
    "extension": "Leave it out: the functions of extensions that exist here are built in.",
    "materialized": "Write CREATE TABLE ... AS, and fill it again by TRUNCATE and INSERT.",
}
"""By the word behind CREATE: what to do instead."""


@dataclass(slots=True)
class _Options:
    replicated: bool = False
    partition_by: tuple[Name, ...] | None = None
    settings: list[OptionSetting] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)


_COMMENTED: Final = "TABLE, VIEW, COLUMN, INDEX, CONSTRAINT, SEQUENCE, SCHEMA, TYPE"


_VIEW_OPTIONS: Final = frozenset({"check_option", "security_barrier", "security_invoker"})


class DefinitionParser(ElementReader):
    """Reads one definition from its tokens; every error has a position."""

    # --- CREATE ---

    def create(
        self,
    ) -> (
        CreateTree
        | CreateViewTree
        | CreateIndexTree
        | CreateSequenceTree
        | CreateSchemaTree
        | CreateTypeTree
    ):
        self.expect("create")
        or_replace = self.accept("or", "replace")
        temporary = self._temporary()
        if self.accept("view"):
            return self.view(or_replace, temporary=temporary)
        unlogged = not (or_replace or temporary) and self.accept("unlogged")
        if not or_replace and self.accept("sequence"):
            return read_create_sequence(self, temporary=temporary)
        if temporary and or_replace:
            self.fail("Write CREATE OR REPLACE TEMPORARY VIEW.")
        plain = not (or_replace or temporary or unlogged)
        if plain and self.word() in ("index", "unique"):
            return read_create_index(self)
        if plain and self.accept("schema"):
            return read_schema(self, lambda text, tokens: DefinitionParser(text, tokens).create())
        if plain and self.accept("type"):
            return read_create_type(self)
        if self.word() in USERS:
            raise no_users(self, "CREATE", "remuda user add NAME")
        if or_replace or not (self.accept("table") or self.accept("mapping")):
            self._refuse(or_replace=or_replace)
        if_not_exists = self.accept("if", "not", "exists")
        name = self.map_name()
        elements = TableElements()
        if self.word() not in ("as", "with", "replicated", "using", "on"):
            elements = self.elements()
        options = self.options()
        on_commit = self._on_commit(temporary=temporary or name.schema == PG_TEMP)
        query, with_data = None, True
        if self.accept("as"):
            query, with_data = self.query()
        elif not (elements.columns or elements.like):
            self.fail("A map needs columns: name (column type, ..., PRIMARY KEY (...)).")
        else:
            self._refuse_untyped(elements)
        self.end()
        return CreateTree(
            name,
            if_not_exists,
            elements,
            options.replicated,
            options.partition_by,
            query,
            with_data,
            tuple(options.settings),
            temporary,
            on_commit,
        )

    def _temporary(self) -> bool:
        """``[LOCAL | GLOBAL] TEMPORARY | TEMP``"""
        if self.word() in ("local", "global"):
            self.index += 1
            if not (self.accept("temporary") or self.accept("temp")):
                self.fail()
            return True
        return self.accept("temporary") or self.accept("temp")

    def _on_commit(self, *, temporary: bool) -> str:
        position = self.position()
        if not self.accept("on", "commit"):
            return PRESERVE
        for words in (PRESERVE, DELETE, DROP):
            if self.accept(*words.lower().split()):
                break
        else:
            self.fail("Write ON COMMIT PRESERVE ROWS, ON COMMIT DELETE ROWS or ON COMMIT DROP.")
        if not temporary:
            raise InvalidDefinition(
                "ON COMMIT can only be used on temporary tables", position=position
            )
        return words

    def _refuse_untyped(self, elements: TableElements) -> None:
        for column in elements.columns:
            if column.type is None:
                raise SqlSyntaxError(
                    f'column "{column.name.text}" has no type', position=column.name.position
                )

    def query(self) -> tuple[Snippet, bool]:
        """The query of CREATE TABLE AS, and whether its rows are wanted."""
        found = self.rest()
        words = [token.text.lower() for token in found.tokens]
        for tail, with_data in ((["with", "no", "data"], False), (["with", "data"], True)):
            if words[-len(tail) :] == tail:
                tokens = found.tokens[: -len(tail)]
                if not tokens:
                    break
                text = self.text[tokens[0].start : tokens[-1].end + 1]
                return replace(found, text=text, tokens=tokens), with_data
        return found, True

    def view(self, or_replace: bool, *, temporary: bool) -> CreateViewTree:
        if self.accept("if", "not", "exists"):
            self.index -= 1
            self.unsupported("CREATE VIEW IF NOT EXISTS", "CREATE OR REPLACE VIEW name AS ...")
        name = self.map_name()
        columns = self.names() if self.word() == "(" else ()
        if self.accept("with", "("):
            self._view_options()
        self.expect("as")
        return CreateViewTree(name, or_replace, columns, self._viewed(), temporary)

    def _view_options(self) -> None:
        """Readers of a view need the roles that its query needs, and nobody changes rows through a
        view: so each of these holds."""
        while True:
            option = self.name()
            if option.text not in _VIEW_OPTIONS:
                raise InvalidDefinition(
                    f'unrecognized parameter "{option.text}"',
                    position=option.position,
                    hint="Options of views: " + ", ".join(sorted(_VIEW_OPTIONS)) + ".",
                )
            if self.accept("="):
                option_value(self)
            if not self.accept(","):
                break
        self.expect(")")

    def _viewed(self) -> Snippet:
        """The query, without WITH CHECK OPTION."""
        found = self.rest()
        words = [token.word for token in found.tokens]
        for scope in (["cascaded"], ["local"], []):
            tail = ["with", *scope, "check", "option"]
            if words[-len(tail) :] == tail and len(words) > len(tail):
                tokens = found.tokens[: -len(tail)]
                text = self.text[tokens[0].start : tokens[-1].end + 1]
                return replace(found, text=text, tokens=tokens)
        return found

    # --- options of CREATE TABLE ---

    def options(self) -> _Options:
        options = _Options()
        while True:
            if self.accept("replicated"):
                options.replicated = True
            elif self.accept("with"):
                self.expect("(")
                self.option(options)
                while self.accept(","):
                    self.option(options)
                self.expect(")")
            elif self.word() == "tablespace":
                skip_tablespace(self)
            elif self.accept("without", "oids"):
                continue
            elif self.accept("using"):
                self.expect("heap", hint="Tables are kept by one method: leave the clause out.")
            else:
                return options

    def option(self, options: _Options) -> None:
        if skip_storage(self):
            return
        name = self.name()
        if name.text in options.seen:
            raise InvalidDefinition(f'option "{name.text}" is given twice', position=name.position)
        options.seen.add(name.text)
        self.expect("=")
        if name.text == "replicated":
            options.replicated = self.boolean()
        elif name.text == "partition_by":
            options.partition_by = self.name_list()
        elif name.text in OPTIONS:
            options.settings.append(OptionSetting(name, option_value(self)))
        else:
            raise InvalidDefinition(
                f'unknown option "{name.text}"',
                position=name.position,
                hint="Known options: replicated = true|false, partition_by = 'column, ...', "
                f"{', '.join(OPTIONS)}.",
            )

    def boolean(self) -> bool:
        token = self.peek()
        word = token.text.lower() if token is not None else ""
        if word not in ("true", "false"):
            self.fail("Write true or false.")
        self.index += 1
        return word == "true"

    def name_list(self) -> tuple[Name, ...]:
        """Column names in one string, separated by commas."""
        token = self.string("Write the columns as one string: partition_by = 'a, b'.")
        found: list[Name] = []
        offset = token.start + 1
        for part in token.text.split(","):
            stripped = part.strip()
            at = position_at(self.text, offset + len(part) - len(part.lstrip()), len(stripped))
            if not stripped:
                raise SqlSyntaxError("a column name is missing in partition_by", position=at)
            quoted = stripped[0] == stripped[-1] == '"' and len(stripped) > 2
            found.append(Name(stripped[1:-1] if quoted else stripped.lower(), at))
            offset += len(part) + 1
        return tuple(found)

    # --- the other statements ---

    def _refuse(self, *, or_replace: bool) -> NoReturn:
        """CREATE of what members do not have."""
        word = self.word()
        if word not in _REFUSED:
            self.unsupported("CREATE", _CREATES)
        verb = "CREATE OR REPLACE" if or_replace else "CREATE"
        what = "MATERIALIZED VIEW" if word == "materialized" else word.upper()
        raise NotSupported(
            f"{verb} {what} is not supported", position=self.position(), hint=_REFUSED[word]
        )

    def drop(self) -> DropTree | DropIndexTree | DropSchemaTree | DropTypeTree:
        self.expect("drop")
        if self.accept("type"):
            return read_drop_type(self)
        if self.accept("schema"):
            return read_drop_schema(self)
        if self.accept("index"):
            return read_drop_index(self)
        kind: Literal["TABLE", "VIEW", "SEQUENCE"] = "TABLE"
        if self.accept("view"):
            kind = "VIEW"
        elif self.accept("sequence"):
            kind = "SEQUENCE"
        elif self.word() in USERS:
            raise no_users(self, "DROP", "remuda user remove NAME")
        elif self.word() == "owned":
            raise no_owners(self, "DROP")
        elif not (self.accept("table") or self.accept("mapping")):
            self.unsupported(
                f"DROP {self.word().upper()}".rstrip(),
                "DROP TABLE [IF EXISTS] name, DROP VIEW [IF EXISTS] name, DROP SEQUENCE "
                "[IF EXISTS] name",
            )
        if_exists = self.accept("if", "exists")
        names = self.listed(self.map_name)
        cascade = self.accept("cascade")
        if not cascade:
            self.accept("restrict")
        self.end()
        return DropTree(kind, names, if_exists, cascade)

    def comment(self) -> CommentTree | CommentSchemaTree | CommentTypeTree:
        self.expect("comment")
        self.expect("on")
        if self.accept("schema"):
            return read_comment_on_schema(self)
        if self.accept("type"):
            return read_comment_on_type(self)
        kind: Literal["TABLE", "VIEW", "SEQUENCE", "COLUMN", "INDEX", "CONSTRAINT"] = "TABLE"
        part = None
        if self.accept("column"):
            kind = "COLUMN"
            parts = [self.name()]
            while self.accept("."):
                parts.append(self.name())
            if len(parts) < 2:
                self.fail("Write COMMENT ON COLUMN map.column IS 'text'.")
            *table, part = parts
            name = self.qualified(table)
        elif self.accept("constraint"):
            kind = "CONSTRAINT"
            part = self.name()
            self.expect("on")
            name = self.map_name()
        else:
            if self.accept("view"):
                kind = "VIEW"
            elif self.accept("sequence"):
                kind = "SEQUENCE"
            elif self.accept("index"):
                kind = "INDEX"
            elif not (self.accept("table") or self.accept("mapping")):
                self.unsupported("COMMENT ON this", f"COMMENT ON {_COMMENTED}")
            name = self.map_name()
        self.expect("is")
        comment = "" if self.accept("null") else self.string("Write IS 'text' or IS NULL.").text
        self.end()
        return CommentTree(kind, name, part, comment)

    def show(self) -> ShowTree:
        """After the word SHOW."""
        if self.accept("tables") or self.accept("maps") or self.accept("mappings"):
            self.end()
            return ShowTree("TABLES", None)
        if self.accept("views"):
            self.end()
            return ShowTree("VIEWS", None)
        if self.accept("indexes") or self.accept("index"):
            return read_show_indexes(self)
        if self.accept("columns"):
            if not self.accept("from"):
                self.expect("in")
            return self.describe()
        if self.accept("create"):
            if self.accept("view"):
                return self._shown("CREATE VIEW")
            if not (self.accept("table") or self.accept("mapping")):
                self.fail("Supported: SHOW CREATE TABLE name, SHOW CREATE VIEW name.")
            return self._shown("CREATE TABLE")
        return self.fail(
            "Supported: SHOW TABLES, SHOW VIEWS, SHOW COLUMNS FROM name, SHOW CREATE TABLE name."
        )

    def describe(self) -> ShowTree:
        """After the word DESCRIBE."""
        return self._shown("COLUMNS")

    def _shown(self, what: Literal["COLUMNS", "CREATE TABLE", "CREATE VIEW"]) -> ShowTree:
        name = self.map_name()
        self.end()
        return ShowTree(what, name)
