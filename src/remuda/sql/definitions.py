"""CREATE, DROP, SHOW and DESCRIBE: a small recursive-descent parser over the tokens.

::

    CREATE TABLE|MAPPING [IF NOT EXISTS] name (element, ...)
        [WITH (option = value, ...)] [REPLICATED]
    element   column type [NOT NULL | NULL | PRIMARY KEY]...  |  PRIMARY KEY (column, ...)
    option    replicated = true|false  |  partition_by = 'column, ...'
    DROP TABLE|MAPPING [IF EXISTS] name
    SHOW TABLES|MAPS|MAPPINGS  |  SHOW COLUMNS FROM name  |  DESCRIBE name
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from remuda.errors import InvalidDefinition, NotSupported, Position, SqlSyntaxError
from remuda.sql.places import end_of, position_at, position_of_token
from remuda.sql.syntax import ColumnDefinition, CreateTree, DropTree, Name, ShowTree
from remuda.sql.tokens import CALL_MARK, near
from remuda.sql.types import type_from_name

_T = TokenType
_NOT_NAMES: Final = frozenset({_T.STRING, _T.NUMBER, _T.PARAMETER, _T.PLACEHOLDER})
_NOT_COLUMNS: Final = frozenset({"constraint", "check", "unique", "foreign", "like", "exclude"})
_COLUMN_OPTIONS: Final = frozenset(
    {"default", "check", "unique", "references", "generated", "collate", "constraint", "as"}
)
_TWO_WORD_TYPES: Final = {("double", "precision"), ("character", "varying")}
_ZONE_WORDS: Final = ("time", "zone")


@dataclass(slots=True)
class _Options:
    replicated: bool = False
    partition_by: tuple[Name, ...] | None = None
    seen: set[str] = field(default_factory=set)


class DefinitionParser:
    """Reads one definition from its tokens; every error has a position."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.index = 0

    # --- tokens ---

    def peek(self) -> Token | None:
        return self.tokens[self.index] if self.index < len(self.tokens) else None

    def word(self) -> str:
        """The current token as a lower-case word; "" at the end and for quoted text."""
        token = self.peek()
        if token is None or token.token_type in (_T.STRING, _T.IDENTIFIER):
            return ""
        return " ".join(token.text.removeprefix(CALL_MARK).lower().split())

    def fail(self, hint: str = "") -> NoReturn:
        token = self.peek()
        if token is None:
            raise SqlSyntaxError(
                "syntax error at end of input", position=end_of(self.text), hint=hint
            )
        raise near(self.text, token, hint)

    def position(self) -> Position:
        token = self.peek()
        return end_of(self.text) if token is None else position_of_token(self.text, token)

    def accept(self, *words: str) -> bool:
        """Skip ``words`` if they come next. A multi-word keyword may be one token or several."""
        start = self.index
        wanted = list(words)
        while wanted:
            current = self.word()
            if not current:
                break
            parts = current.split()
            if wanted[: len(parts)] != parts:
                break
            del wanted[: len(parts)]
            self.index += 1
        if wanted:
            self.index = start
        return not wanted

    def expect(self, *words: str, hint: str = "") -> None:
        if not self.accept(*words):
            self.fail(hint)

    def end(self) -> None:
        if self.peek() is not None:
            self.fail()

    # --- names ---

    def name(self, hint: str = "") -> Name:
        token = self.peek()
        if token is None or token.token_type in _NOT_NAMES:
            self.fail(hint)
        text = token.text.removeprefix(CALL_MARK)
        if token.token_type is _T.IDENTIFIER:
            if not text:
                raise SqlSyntaxError("zero-length delimited identifier", position=self.position())
        elif not text.replace("_", "a").replace("$", "a").isalnum():
            self.fail(hint)
        else:
            text = text.lower()
        position = self.position()
        self.index += 1
        return Name(text, position)

    def map_name(self) -> Name:
        name = self.name()
        if self.word() == ".":
            raise NotSupported(
                "schemas are not supported",
                position=name.position,
                hint="Write the name of the map alone.",
            )
        return name

    def names(self) -> tuple[Name, ...]:
        """``( name, ... )``"""
        self.expect("(")
        found = [self.name()]
        while self.accept(","):
            found.append(self.name())
        self.expect(")")
        return tuple(found)

    # --- statements ---

    def create(self) -> CreateTree:
        self.expect("create")
        if not (self.accept("table") or self.accept("mapping")):
            self.unsupported("CREATE", "CREATE TABLE name (column type, ..., PRIMARY KEY (...))")
        if_not_exists = self.accept("if", "not", "exists")
        name = self.map_name()
        if self.word() == "as":
            self.unsupported("CREATE TABLE AS", "CREATE TABLE and INSERT INTO ... SELECT")
        columns, key = self.elements()
        options = self.options()
        self.end()
        return CreateTree(
            name, if_not_exists, columns, key, options.replicated, options.partition_by
        )

    def unsupported(self, what: str, instead: str) -> NoReturn:
        word = self.word()
        full = f"{what} {word.upper()}" if word and word.isalpha() and what == "CREATE" else what
        raise NotSupported(
            f"{full} is not supported", position=self.position(), hint=f"Supported: {instead}."
        )

    def elements(self) -> tuple[tuple[ColumnDefinition, ...], tuple[Name, ...]]:
        self.expect("(", hint="A map needs columns: name (column type, ..., PRIMARY KEY (...)).")
        columns: list[ColumnDefinition] = []
        keys: list[tuple[Name, ...]] = []
        while True:
            start = self.position()
            if self.accept("primary", "key"):
                keys.append(self.names())
            elif self.word() in _NOT_COLUMNS:
                self.unsupported(
                    f"the constraint {self.word().upper()}", "PRIMARY KEY (column, ...)"
                )
            else:
                column, is_key = self.column()
                columns.append(column)
                if is_key:
                    keys.append((column.name,))
            if len(keys) > 1:
                raise InvalidDefinition("multiple primary keys are not allowed", position=start)
            if not self.accept(","):
                break
        self.expect(")")
        return tuple(columns), keys[0] if keys else ()

    def column(self) -> tuple[ColumnDefinition, bool]:
        name = self.name()
        type_position = self.position()
        column_type = type_from_name(self.type_name(), self.type_arguments(), type_position)
        nullable, is_key = True, False
        while True:
            if self.accept("not", "null"):
                nullable = False
            elif self.accept("primary", "key"):
                is_key = True
            elif not self.accept("null"):
                break
        word = self.word()
        if word in _COLUMN_OPTIONS:
            self.unsupported(f"the column option {word.upper()}", "NOT NULL, PRIMARY KEY")
        return ColumnDefinition(name, column_type, nullable), is_key

    def type_name(self) -> str:
        word = self.word()
        if not word or not word[0].isalpha():
            self.fail()
        self.index += 1
        if (word, self.word()) in _TWO_WORD_TYPES:
            word += " " + self.word()
            self.index += 1
        if word in ("timestamp", "time"):
            for zone in ("with", "without"):
                if self.accept(zone, *_ZONE_WORDS):
                    return f"{word} {zone} time zone"
        return word

    def type_arguments(self) -> tuple[int, ...]:
        if not self.accept("("):
            return ()
        found: list[int] = []
        while True:
            token = self.peek()
            if token is None or token.token_type is not _T.NUMBER or not token.text.isdecimal():
                self.fail()
            found.append(int(token.text))
            self.index += 1
            if not self.accept(","):
                break
        self.expect(")")
        return tuple(found)

    # --- options of CREATE ---

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
            else:
                return options

    def option(self, options: _Options) -> None:
        name = self.name()
        if name.text in options.seen:
            raise InvalidDefinition(f'option "{name.text}" is given twice', position=name.position)
        options.seen.add(name.text)
        self.expect("=")
        if name.text == "replicated":
            options.replicated = self.boolean()
        elif name.text == "partition_by":
            options.partition_by = self.name_list()
        else:
            raise InvalidDefinition(
                f'unknown option "{name.text}"',
                position=name.position,
                hint="Known options: replicated = true|false, partition_by = 'column, ...'.",
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
        token = self.peek()
        if token is None or token.token_type is not _T.STRING:
            self.fail("Write the columns as one string: partition_by = 'a, b'.")
        self.index += 1
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

    def drop(self) -> DropTree:
        self.expect("drop")
        if not (self.accept("table") or self.accept("mapping")):
            self.unsupported(f"DROP {self.word().upper()}".rstrip(), "DROP TABLE [IF EXISTS] name")
        if_exists = self.accept("if", "exists")
        name = self.map_name()
        self.end()
        return DropTree(name, if_exists)

    def show(self) -> ShowTree:
        """After the word SHOW."""
        if self.accept("tables") or self.accept("maps") or self.accept("mappings"):
            self.end()
            return ShowTree(None)
        if self.accept("columns"):
            if not self.accept("from"):
                self.expect("in")
            return self.describe()
        return self.fail("Supported: SHOW TABLES, SHOW MAPS, SHOW COLUMNS FROM name.")

    def describe(self) -> ShowTree:
        """After the word DESCRIBE."""
        name = self.map_name()
        self.end()
        return ShowTree(name)
