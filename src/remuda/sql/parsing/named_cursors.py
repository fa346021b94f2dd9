"""DECLARE, FETCH, MOVE, CLOSE."""

from __future__ import annotations

from typing import Final

from remuda.errors import InvalidCursorDefinition
from remuda.sql.parsing.token_reader import TokenReader
from remuda.sql.text.lexemes import TokenKind
from remuda.sql.trees.cursors import CloseTree, Declaration, Direction, FetchTree

WORDS: Final = ("fetch", "move", "close")
DECLARE: Final = "declare"
_COUNT_MAX: Final = 2**31 - 1
_STEPS: Final = {
    "next": (Direction.FORWARD, 1),
    "prior": (Direction.BACKWARD, 1),
    "first": (Direction.ABSOLUTE, 1),
    "last": (Direction.ABSOLUTE, -1),
}
_COUNTED: Final = {"absolute": Direction.ABSOLUTE, "relative": Direction.RELATIVE}
_WAYS: Final = {"forward": Direction.FORWARD, "backward": Direction.BACKWARD}


class CursorParser(TokenReader):
    """Reads from the first word on."""

    def declaration(self) -> Declaration:
        """Up to FOR, which is read: the query comes next. Raises InvalidCursorDefinition."""
        self.expect(DECLARE)
        position = self.position()
        name = self.name().text
        said = dict.fromkeys(("binary", "insensitive", "asensitive", "scroll", "no"), False)
        while not self.accept("cursor"):
            if self.accept("no", "scroll"):
                said["no"] = True
            elif (word := self.word()) in said and word != "no":
                self.index += 1
                said[word] = True
            else:
                self.fail()
        hold = self.accept("with", "hold")
        if not hold:
            self.accept("without", "hold")
        self.expect("for")
        for one, other, words in (
            ("scroll", "no", "SCROLL and NO SCROLL"),
            ("insensitive", "asensitive", "ASENSITIVE and INSENSITIVE"),
        ):
            if said[one] and said[other]:
                raise InvalidCursorDefinition(f"cannot specify both {words}", position=position)
        scroll = True if said["scroll"] else False if said["no"] else None
        return Declaration(name, position, said["binary"], said["insensitive"], scroll, hold)

    def statement(self) -> FetchTree | CloseTree:
        moves = self.word() == "move"
        if self.accept("close"):
            return self._close()
        self.index += 1
        direction, count = self._direction()
        self.accept("from") or self.accept("in")
        position = self.position()
        name = self.name().text
        self.end()
        return FetchTree(name, position, direction, count, moves)

    def _close(self) -> CloseTree:
        position = self.position()
        name = None if self.accept("all") else self.name().text
        self.end()
        return CloseTree(name, position)

    def _direction(self) -> tuple[Direction, int | None]:
        """FORWARD 1 if there is none. A word of directions may be the name of a cursor, too."""
        following = self.tokens[self.index + 1 :]
        word = self.word()
        if word in _STEPS and following:
            self.index += 1
            return _STEPS[word]
        if word in _COUNTED and following:
            self.index += 1
            return _COUNTED[word], self._count()
        if word in _WAYS and following:
            self.index += 1
            if self.accept("all"):
                return _WAYS[word], None
            counted = self.word() in ("+", "-") or self._number() is not None
            return _WAYS[word], self._count() if counted else 1
        if self.accept("all"):
            return Direction.FORWARD, None
        if word in ("+", "-") or self._number() is not None:
            return Direction.FORWARD, self._count()
        return Direction.FORWARD, 1

    def _number(self) -> int | None:
        """The current token as a whole number that PostgreSQL takes as one."""
        token = self.peek()
        if token is None or token.kind is not TokenKind.NUMBER or not token.text.isdecimal():
            return None
        value = int(token.text) if len(token.text) < 12 else _COUNT_MAX + 1
        return value if value <= _COUNT_MAX else None

    def _count(self) -> int:
        sign = -1 if self.accept("-") else 1
        if sign == 1:
            self.accept("+")
        value = self._number()
        if value is None:
            self.fail()
        self.index += 1
        return sign * value
