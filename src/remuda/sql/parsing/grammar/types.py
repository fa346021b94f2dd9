"""Names of types in casts and in literals: ``numeric(10, 2)[]``, ``interval day to second``."""

from __future__ import annotations

from typing import Final

from remuda.catalog.pg_types import CATALOG_TYPES, OBJECTS, VECTORS
from remuda.datatypes.sql import EnumType, SqlType, enum_of
from remuda.datatypes.times.intervaltext import FIELDS
from remuda.errors import InvalidDefinition, Position
from remuda.sql.parsing.grammar.cursor import Cursor
from remuda.sql.text.keywords import RESERVED
from remuda.sql.text.lexemes import Token, TokenKind
from remuda.sql.text.types import (
    SERIAL_NAMES,
    array_of,
    is_type_name,
    type_from_name,
    undefined_type,
)
from remuda.sql.trees import ast

_LONG: Final = {
    ("double", "precision"): "double precision",
    ("character", "varying"): "varchar",
    ("char", "varying"): "varchar",
    ("bit", "varying"): "bit varying",
}
_ZONED: Final = ("timestamp", "time")
_SCHEMAS: Final = ("pg_catalog", "public")
_QUOTED_CHAR: Final = '"char"'
"""A type of one byte, in contrast to CHAR."""
CATALOG_NAMES: Final = frozenset(OBJECTS | VECTORS | {"oid", "xid", "cid", "name", _QUOTED_CHAR})
"""Types of PostgreSQL's catalog, which CAST and PREPARE take."""


def catalog_type(node: ast.TypeName, position: Position | None) -> SqlType | None:
    """The type of PostgreSQL's catalog that is written; None for another."""
    name, schema = str(node.this), node.args.get("schema") or "pg_catalog"
    if name not in CATALOG_NAMES or node.expressions or schema != "pg_catalog":
        return None
    found = CATALOG_TYPES["char" if name == _QUOTED_CHAR else name]
    for _ in range(node.args.get("array") or 0):
        found = array_of(found, position)
    return found


def declared_type(node: ast.TypeName, position: Position | None) -> SqlType:
    """The type that is written. One that no catalog has by itself is an enum, of which this is the
    name alone (``scope.enum_names`` looks it up). Raises UndefinedType, InvalidDefinition,
    NotSupported."""
    arguments: list[int] = []
    for part in node.expressions:
        if not part.this.isdecimal():
            raise InvalidDefinition("type arguments must be whole numbers", position=position)
        arguments.append(int(part.this))
    name, schema = str(node.this), str(node.args.get("schema") or "")
    if (schema not in ("", *_SCHEMAS) or not is_type_name(name)) and schema != "pg_catalog":
        if name in SERIAL_NAMES or arguments:
            raise undefined_type(name, position)
        found = enum_of(EnumType(name, namespace=schema))
        return array_of(found, position) if node.args.get("array") else found
    fields = str(node.args.get("fields") or "")
    span = tuple(fields.split(" to ")) if fields else ()
    found = type_from_name(name, tuple(arguments), position, span)
    for _ in range(node.args.get("array") or 0):
        found = array_of(found, position)
    return found


class TypeGrammar(Cursor):
    def type_name(self) -> ast.TypeName:
        first = self.token
        schema, name, quoted = self._type_word()
        name_end = self.tokens[self.index - 1].end
        fields = digits = ""
        arguments: list[ast.Node] = []
        if not quoted:
            second = self.token.word
            if (name, second) in _LONG:
                self.advance()
                name = _LONG[name, second]
            elif name == "national" and second in ("character", "char"):
                self.advance()
                name = "varchar" if self.accept("varying") else "character"
            if name == "interval":
                fields, digits = self.interval_fields()
        if self.token.word == "(":
            arguments = self._type_arguments()
        if digits:
            arguments = [ast.Literal.number(int(digits))]
        if name in _ZONED and not quoted:
            name = self._zoned(name)
        array = 0
        while self.token.word in ("[", "array"):
            array += 1
            self._array_bounds()
        last = self.tokens[self.index - 1]
        return ast.TypeName(
            this=name,
            expressions=arguments,
            array=array,
            fields=fields,
            place=(first.start, last.end),
            schema=schema,
            name_place=(first.start, name_end),
        )

    def _type_word(self) -> tuple[str, str, bool]:
        """The schema, the name, and whether the name stands in quotes."""
        token, schema = self.token, ""
        name, quoted = self._name_of_type()
        if self.token.word == ".":
            self.advance()
            schema = token.text if quoted else name
            name, quoted = self._name_of_type()
        return schema, name, quoted

    def _name_of_type(self) -> tuple[str, bool]:
        token = self.token
        if token.kind is TokenKind.WORD and token.word not in RESERVED:
            self.advance()
            return token.word, False
        if token.kind is TokenKind.NAME:
            self.advance()
            return f'"{token.text}"' if token.text == "char" else token.text, True
        return self.fail()

    def _type_arguments(self) -> list[ast.Node]:
        self.expect("(")
        found = [self._type_argument()]
        while self.accept(","):
            found.append(self._type_argument())
        self.expect(")")
        return found

    def _type_argument(self) -> ast.Node:
        token = self.token
        if token.kind is not TokenKind.NUMBER:
            self.fail()
        self.advance()
        return ast.Literal(token.start, token.end, this=token.text, is_string=False)

    def _zoned(self, name: str) -> str:
        if self.accept("with", "time", "zone"):
            return f"{name} with time zone"
        self.accept("without", "time", "zone")
        return name

    def _array_bounds(self) -> None:
        """``[]``, ``[3]``, ``ARRAY`` or ``ARRAY[3]``: a size means nothing, as in PostgreSQL."""
        if self.accept("array") and self.token.word != "[":
            return
        self.expect("[")
        if self.token.kind is TokenKind.NUMBER:
            self.advance()
        self.expect("]")

    def interval_fields(self) -> tuple[str, str]:
        """``DAY TO SECOND(2)``: the fields in lower case, and the digits of the seconds."""
        if self.token.word not in FIELDS:
            return "", ""
        fields = self.advance().word
        if self.token.word == "to" and self.ahead().word in FIELDS:
            self.advance()
            fields += " to " + self.advance().word
        return fields, self.interval_digits() if fields.endswith("second") else ""

    def interval_digits(self) -> str:
        """The number of ``(2)``, "" without one."""
        if self.token.word != "(" or not self._is_digits(self.ahead()):
            return ""
        if self.ahead(2).word != ")":
            return ""
        self.advance()
        digits = self.advance().text
        self.advance()
        return digits

    def _is_digits(self, token: Token) -> bool:
        return token.kind is TokenKind.NUMBER and token.text.isdecimal()
