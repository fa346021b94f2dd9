"""COPY.

::

    COPY [BINARY] table [(column, ...)] FROM STDIN option ... [WHERE condition]
    COPY [BINARY] table [(column, ...)] TO STDOUT option ...
    COPY (query) TO STDOUT option ...
    option ...  [WITH] (name [value], ...)
              | [USING DELIMITERS 'x'] [WITH] BINARY | FREEZE | DELIMITER [AS] 'x' | NULL [AS] 'x'
                | CSV | HEADER | QUOTE [AS] 'x' | ESCAPE [AS] 'x' | FORCE QUOTE *|column, ...
                | FORCE NOT NULL column, ... | FORCE NULL column, ... | ENCODING 'x'
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from remuda.copying.options import Everything, Given, Value
from remuda.errors import Position, SqlSyntaxError, UndefinedParameter
from remuda.sql.parsing.grammar.changes import Grammar
from remuda.sql.text.lexemes import Token, TokenKind, position_of_token
from remuda.sql.trees import ast
from remuda.sql.trees.copy import CopyTree
from remuda.sql.trees.places import position_of

COPY: Final = "copy"
_CHANGES: Final = frozenset({"insert", "update", "delete", "merge"})
_OLD_TEXTS: Final = ("delimiter", "null", "quote", "escape")
_OLD_FLAGS: Final = {"binary": "format", "csv": "format", "freeze": "freeze", "header": "header"}
_VALUES: Final = (TokenKind.WORD, TokenKind.STRING, TokenKind.NUMBER, TokenKind.NAME)


class CopyParser:
    """All tokens of a statement."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self._tokens = Grammar(text, tokens)
        self._options: list[Given] = []
        self._places: list[ast.Node] = []

    def copy(self) -> CopyTree:
        self._tokens.expect(COPY)
        query = table = None
        columns: list[ast.Node] = []
        if self._tokens.token.word == "(":
            query = self._query()
        else:
            if self._is_word("binary"):
                self._add("format", "binary", self._place())
                self._tokens.advance()
            table = self._tokens.table_name()
            if self._tokens.token.word == "(":
                columns = self._tokens.names()
        incoming = self._direction(query)
        outside = self._other_end()
        if self._tokens.accept("using"):
            self._tokens.expect("delimiters")
            self._add("delimiter", self._string(), self._place())
        self._tokens.accept("with")
        if self._tokens.token.word == "(":
            self._new_options()
        else:
            while self._old_option():
                pass
        where = self._where(incoming=incoming)
        self._tokens.end()
        if self._tokens.parameters:
            raise UndefinedParameter("there is no parameter $1", hint="COPY takes no parameters.")
        return CopyTree(
            table=table,
            columns=tuple(columns),
            query=query,
            incoming=incoming,
            outside=outside,
            options=tuple(self._options),
            places=tuple(self._places),
            where=where,
            position=position_of(self._tokens.text, table if query is None else query),
        )

    def _query(self) -> ast.Node:
        self._tokens.expect("(")
        is_change = self._tokens.token.word in _CHANGES
        query = self._tokens.change() if is_change else self._tokens.statement_in_with()
        self._tokens.expect(")")
        return query

    def _is_word(self, word: str) -> bool:
        """Whether it comes next, and is no name of a table."""
        behind = self._tokens.ahead().word
        return self._tokens.token.word == word and behind not in ("from", "to", "(", ".")

    def _direction(self, query: ast.Node | None) -> bool:
        """Whether it is FROM. The rows of a query go out."""
        if query is None and self._tokens.accept("from"):
            return True
        self._tokens.expect("to")
        return False

    def _other_end(self) -> str:
        if self._tokens.accept("stdin") or self._tokens.accept("stdout"):
            return ""
        program = self._tokens.accept("program")
        if self._tokens.token.kind is not TokenKind.STRING:
            self._tokens.fail("Write FROM STDIN or TO STDOUT.")
        self._tokens.advance()
        return "program" if program else "file"

    def _where(self, *, incoming: bool) -> ast.Node | None:
        token = self._tokens.token
        if not self._tokens.accept("where"):
            return None
        if not incoming:
            raise SqlSyntaxError(
                "WHERE clause not allowed with COPY TO",
                position=position_of_token(self._tokens.text, token),
                hint="Try the COPY (SELECT ... WHERE ...) TO variant.",
            )
        return self._tokens.expression()

    # --- options ---

    def _place(self) -> Position:
        return position_of_token(self._tokens.text, self._tokens.token)

    def _add(self, name: str, value: Value, position: Position) -> None:
        self._options.append(Given(name, value, position))

    def _string(self) -> str:
        if self._tokens.token.kind is not TokenKind.STRING:
            self._tokens.fail()
        return self._tokens.advance().text

    def _new_options(self) -> None:
        self._tokens.expect("(")
        while True:
            position = self._place()
            name = self._tokens.label()
            text = str(name.this) if name.args.get("quoted") else str(name.this).lower()
            self._add(text, self._value(), position)
            if not self._tokens.accept(","):
                break
        self._tokens.expect(")")

    def _value(self) -> Value:
        token = self._tokens.token
        if token.word in (",", ")"):
            return None
        if token.word == "*":
            self._tokens.advance()
            return Everything.COLUMNS
        if token.word == "(":
            return self._listed_in_parentheses()
        sign = self._tokens.advance().word if token.word in ("+", "-") else ""
        if self._tokens.token.kind not in _VALUES:
            self._tokens.fail()
        found = self._tokens.advance()
        text = found.text.lower() if found.kind is TokenKind.WORD else found.text
        return sign.replace("+", "") + text

    def _listed_in_parentheses(self) -> tuple[str, ...]:
        self._tokens.expect("(")
        found = self._columns()
        self._tokens.expect(")")
        return found

    def _columns(self) -> tuple[str, ...]:
        found: list[str] = []
        while True:
            name = self._tokens.name()
            self._places.append(name)
            found.append(str(name.this) if name.args.get("quoted") else str(name.this).lower())
            if not self._tokens.accept(","):
                return tuple(found)

    def _old_option(self) -> bool:
        position, word = self._place(), self._tokens.token.word
        if word in _OLD_FLAGS:
            self._tokens.advance()
            name = _OLD_FLAGS[word]
            self._add(name, word if name == "format" else None, position)
        elif word in _OLD_TEXTS:
            self._tokens.advance()
            self._tokens.accept("as")
            self._add(word, self._string(), position)
        elif self._tokens.accept("encoding"):
            self._add("encoding", self._string(), position)
        elif self._tokens.accept("force"):
            self._force(position)
        else:
            return False
        return True

    def _force(self, position: Position) -> None:
        if self._tokens.accept("not", "null"):
            self._add("force_not_null", self._columns(), position)
        elif self._tokens.accept("null"):
            self._add("force_null", self._columns(), position)
        else:
            self._tokens.expect("quote")
            everything = self._tokens.accept("*")
            found: Value = Everything.COLUMNS if everything else self._columns()
            self._add("force_quote", found, position)
