"""Names of types in casts and in literals: ``numeric(10, 2)[]``, ``interval day to second``."""

from __future__ import annotations

from typing import Final

from remuda.datatypes.sql import SqlType
from remuda.datatypes.times.intervaltext import FIELDS
from remuda.errors import InvalidDefinition, Position
from remuda.sql.parsing.grammar.cursor import Cursor
from remuda.sql.text.keywords import RESERVED
from remuda.sql.text.lexemes import Token, TokenKind
from remuda.sql.text.types import array_of, type_from_name
from remuda.sql.trees import ast

_LONG: Final = {
    ("double", "precision"): "double precision",
    ("character", "varying"): "varchar",
    ("char", "varying"): "varchar",
    ("bit", "varying"): "bit varying",
}
_ZONED: Final = ("timestamp", "time")
_SCHEMAS: Final = ("pg_catalog", "public")


def declared_type(node: ast.TypeName, position: Position | None) -> SqlType:
    """The type of a column. Raises UndefinedType, InvalidDefinition, NotSupported."""
    arguments: list[int] = []
    for part in node.expressions:
        if not part.this.isdecimal():
            raise InvalidDefinition("type arguments must be whole numbers", position=position)
        arguments.append(int(part.this))
    fields = str(node.args.get("fields") or "")
    span = tuple(fields.split(" to ")) if fields else ()
    found = type_from_name(str(node.this), tuple(arguments), position, span)
    for _ in range(node.args.get("array") or 0):
        found = array_of(found, position)
    return found


class TypeGrammar(Cursor):
    def type_name(self) -> ast.TypeName:
        first = self.token
        name, quoted = self._type_word()
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
        )

    def _type_word(self) -> tuple[str, bool]:
        token = self.token
        if token.kind is TokenKind.WORD and token.word not in RESERVED:
            self.advance()
            if token.word in _SCHEMAS and self.accept("."):
                return self._type_word()
            return token.word, False
        if token.kind is TokenKind.NAME:
            self.advance()
            if self.token.word == "." and token.text in _SCHEMAS:
                self.advance()
                return self._type_word()
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
