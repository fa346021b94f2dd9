"""Reading tokens one after the other: the base of the recursive-descent parsers for definitions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, NoReturn

from remuda.errors import NotSupported, Position, SqlSyntaxError
from remuda.sql.text.lexemes import Token, TokenKind, end_of, near, position_of_token
from remuda.sql.text.places import position_at
from remuda.sql.trees.syntax import Name, Snippet

_OPENING: Final = frozenset({"(", "[", "case"})
_CLOSING: Final = frozenset({")", "]", "end"})
_QUERIES: Final = frozenset({"select", "with", "values", "table"})


class TokenReader:
    """Every error has a position."""

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
        if token is None:
            return ""
        return token.word or (token.text if token.kind is TokenKind.NUMBER else "")

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
        """Skip ``words`` if they come next."""
        following = self.tokens[self.index : self.index + len(words)]
        if tuple(token.word for token in following) != words:
            return False
        self.index += len(words)
        return True

    def expect(self, *words: str, hint: str = "") -> None:
        if not self.accept(*words):
            self.fail(hint)

    def end(self) -> None:
        if self.peek() is not None:
            self.fail()

    def unsupported(self, what: str, instead: str) -> NoReturn:
        word = self.word()
        full = f"{what} {word.upper()}" if word and word.isalpha() and what == "CREATE" else what
        raise NotSupported(
            f"{full} is not supported", position=self.position(), hint=f"Supported: {instead}."
        )

    # --- names ---

    def name(self, hint: str = "") -> Name:
        token = self.peek()
        if token is None or token.kind not in (TokenKind.WORD, TokenKind.NAME):
            self.fail(hint)
        position = self.position()
        text = token.word or token.text
        if not text:
            raise SqlSyntaxError("zero-length delimited identifier", position=position)
        self.index += 1
        return Name(text, position)

    def map_name(self) -> Name:
        """``[[database.]schema.]name``"""
        return self.qualified([self.name(), *self.more_names()])

    def more_names(self) -> list[Name]:
        """``.name ...``"""
        found: list[Name] = []
        while self.accept("."):
            found.append(self.name())
        return found

    def qualified(self, parts: list[Name]) -> Name:
        """The name of a relation in its parts. The binder knows what the database is called."""
        first, last = parts[0], parts[-1]
        if len(parts) == 1:
            return last
        if len(parts) > 3:
            written = ".".join(part.text for part in parts)
            raise SqlSyntaxError(
                f"improper qualified name (too many dotted names): {written}",
                position=first.position,
            )
        database = first.text if len(parts) == 3 else ""
        return Name(last.text, first.position, parts[-2].text, database)

    def names(self) -> tuple[Name, ...]:
        """``( name, ... )``"""
        self.expect("(")
        found = self.listed(self.name)
        self.expect(")")
        return found

    def listed(self, one: Callable[[], Name]) -> tuple[Name, ...]:
        """One or more, separated by commas."""
        found = [one()]
        while self.accept(","):
            found.append(one())
        return tuple(found)

    def string(self, hint: str = "") -> Token:
        token = self.peek()
        if token is None or token.kind is not TokenKind.STRING:
            self.fail(hint)
        self.index += 1
        return token

    # --- parts that other parsers read ---

    def rest(self) -> Snippet:
        """All that is left."""
        return self._snippet(len(self.tokens))

    def enclosed(self) -> Snippet:
        """``( ... )`` around an expression, without the parentheses and without further ones that
        enclose all of it: they mean nothing, and PostgreSQL's catalog does not show them."""
        self.expect("(")
        found = self.enclosed() if self._encloses_all() else self.until(frozenset())
        self.expect(")")
        return found

    def _encloses_all(self) -> bool:
        """Whether parentheses come next that end in front of a closing one, and hold neither a
        query nor a list."""
        if self.word() != "(" or self._word_ahead(1) in _QUERIES:
            return False
        depth = 0
        for place in range(self.index, len(self.tokens)):
            word = self.tokens[place].word
            depth += (word in _OPENING) - (word in _CLOSING)
            if depth == 1 and word == ",":
                return False
            if depth == 0:
                return self._word_ahead(place + 1 - self.index) == ")"
        return False

    def _word_ahead(self, distance: int) -> str:
        """The word of a token that comes later; "" behind the end."""
        place = self.index + distance
        return self.tokens[place].word if place < len(self.tokens) else ""

    def until(self, stops: Collection[str]) -> Snippet:
        """Up to a comma, a closing parenthesis or one of the words ``stops`` outside of all
        parentheses (the first token does not count as such)."""
        depth, end = 0, self.index
        while end < len(self.tokens):
            token = self.tokens[end]
            word = token.word
            if depth == 0 and (word in (",", ")") or (end > self.index and word in stops)):
                break
            depth += (word in _OPENING) - (word in _CLOSING)
            end += 1
        return self._snippet(end)

    def _snippet(self, end: int) -> Snippet:
        if end <= self.index:
            self.fail()
        tokens = tuple(self.tokens[self.index : end])
        self.index = end
        start, stop = tokens[0].start, tokens[-1].end + 1
        place = position_at(self.text, start, stop - start)
        return Snippet(self.text[start:stop], tokens, place)
