"""The tokens of one statement, read from left to right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from remuda.errors import LimitExceeded, NotSupported, SqlSyntaxError
from remuda.limits import EXPRESSION_DEPTH_MAX
from remuda.sql.text.keyword_hints import keyword_hint
from remuda.sql.text.keywords import NOT_COLUMNS
from remuda.sql.text.lexemes import (
    NAMES,
    Token,
    TokenKind,
    near,
    position_of_token,
    too_deep,
)
from remuda.sql.text.places import position_at
from remuda.sql.text.unicode_escapes import decoded_unicode
from remuda.sql.trees import ast

_WORD, _NAME = TokenKind.WORD, TokenKind.NAME
PARAMETER_MAX = 65_535


class Cursor:
    """``token`` is the next one that nothing has read; behind the last one stands an END.

    ``parameters`` counts those that were read: the marks ``?``, or the highest ``$n``.
    """

    def __init__(self, text: str, tokens: Sequence[Token], index: int = 0) -> None:
        self.text = text
        self.tokens = [*tokens, Token(TokenKind.END, "", "", len(text), len(text))]
        self.index = index
        self.token = self.tokens[index]
        self.depth = 0
        self.marks = 0
        self.dollars = 0

    @property
    def parameters(self) -> int:
        return max(self.marks, self.dollars)

    # --- tokens ---

    def advance(self) -> Token:
        """The token that was next."""
        token = self.token
        self.index += 1
        self.token = self.tokens[self.index]
        return token

    def ahead(self, count: int = 1) -> Token:
        """The token so many places behind the next one."""
        return self.tokens[min(self.index + count, len(self.tokens) - 1)]

    def accept(self, *words: str) -> bool:
        """Skips ``words`` if they come next."""
        index = self.index
        for word in words:
            if self.tokens[index].word != word:
                return False
            index += 1
        self.index = index
        self.token = self.tokens[index]
        return True

    def accept_any(self, words: frozenset[str]) -> str:
        """The next word if it is one of these, "" otherwise."""
        word = self.token.word
        if word not in words:
            return ""
        self.advance()
        return word

    def expect(self, *words: str) -> None:
        for word in words:
            if self.token.word != word:
                self.fail()
            self.advance()

    def fail(self, hint: str = "") -> NoReturn:
        """Raises SqlSyntaxError: the next token fits nowhere."""
        token = self.token
        if not hint and token.word == "==":
            hint = "Equality is written with one =."
        raise near(self.text, token, hint or keyword_hint(self.tokens, self.index))

    def end(self) -> None:
        if self.token.kind is not TokenKind.END:
            self.fail()

    def deeper(self) -> None:
        """Raises LimitExceeded. The caller takes one off ``depth`` behind the inner part."""
        self.depth += 1
        if self.depth > EXPRESSION_DEPTH_MAX:
            raise self._too_deep()

    def _too_deep(self) -> LimitExceeded:
        return too_deep(position_of_token(self.text, self.token))

    # --- names ---

    def name(self, refused: frozenset[str] = NOT_COLUMNS) -> ast.Identifier:
        """An identifier, but none of the words ``refused``."""
        token = self.token
        if token.kind is _WORD:
            if token.word in refused:
                self.fail()
            self.advance()
            return ast.Identifier(token.start, token.end, this=token.text)
        if token.kind not in NAMES:
            self.fail()
        return self.quoted_name()

    def label(self) -> ast.Identifier:
        """A name behind AS or a point: any word."""
        return self.name(frozenset())

    def quoted_name(self) -> ast.Identifier:
        token = self.advance()
        text = token.text
        if token.kind is TokenKind.UNICODE_NAME:
            text = decoded_unicode(text, self._escape(), position_of_token(self.text, token))
        if not text:
            raise SqlSyntaxError(
                "zero-length delimited identifier", position=position_of_token(self.text, token)
            )
        return ast.Identifier(token.start, token.end, this=text, quoted=True)

    def _escape(self) -> str:
        """The text behind UESCAPE, a backslash without that clause."""
        if not self.accept("uescape"):
            return "\\"
        if self.token.kind is not TokenKind.STRING:
            self.fail()
        return self.advance().text

    def unicode_string(self) -> ast.Literal:
        token = self.advance()
        place = position_of_token(self.text, token)
        text = decoded_unicode(token.text, self._escape(), place)
        return ast.Literal(token.start, token.end, this=text, is_string=True)

    def names(self) -> list[ast.Node]:
        """``(name, ...)``"""
        self.expect("(")
        found: list[ast.Node] = [self.name()]
        while self.accept(","):
            found.append(self.name())
        self.expect(")")
        return found

    # --- parameters ---

    def parameter(self) -> ast.Parameter:
        """``$n`` or ``?``"""
        token = self.advance()
        if token.kind is TokenKind.PARAMETER:
            number = int(token.text) if len(token.text) < 6 else 0
            if not 1 <= number <= PARAMETER_MAX:
                raise SqlSyntaxError(
                    f"there is no parameter ${token.text}",
                    position=position_at(self.text, token.start + 1, len(token.text)),
                )
            self.dollars = max(self.dollars, number)
            start = token.start + 1
        else:
            self.marks += 1
            number, start = self.marks, token.start
        if self.marks and self.dollars:
            mark = next(t for t in self.tokens if t.word == "?")
            raise SqlSyntaxError(
                "parameters ? and $n cannot be mixed in one statement",
                position=position_of_token(self.text, mark),
            )
        literal = ast.Literal(start, token.end, this=str(number), is_string=False)
        return ast.Parameter(this=literal)

    def refuse_named_parameter(self) -> NoReturn:
        raise NotSupported(
            "only positional parameters are supported",
            hint="Write ? or $1, $2, ...",
            position=position_of_token(self.text, self.token),
        )
