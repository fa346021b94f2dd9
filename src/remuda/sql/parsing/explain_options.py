"""``EXPLAIN [ANALYZE] [VERBOSE] statement``, ``EXPLAIN (option [value], ...) statement``."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from remuda.errors import InputError, NotSupported, SqlSyntaxError
from remuda.sql.text.lexemes import Token, end_of, near, position_of_token
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees.syntax import ExplainOptions

_BARE: Final = ("analyze", "verbose")
_SHOWN: Final = ("analyze", "verbose", "costs")
_WITHOUT_EFFECT: Final = ("timing", "summary", "buffers", "wal", "settings", "generic_plan")
_BOOLEANS: Final = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
_QUERY_WORDS: Final = ("select", "with", "values", "table")


def read_explain_options(text: str, tokens: list[Token]) -> tuple[ExplainOptions, int]:
    """The options, and the index of the statement's first token."""
    if _is_list(tokens):
        return _Listed(text, tokens).read()
    options, index = ExplainOptions(), 0
    for word in _BARE:
        if index < len(tokens) and tokens[index].text.lower() == word:
            options = replace(options, **{word: True})
            index += 1
    return options, index


def _is_list(tokens: list[Token]) -> bool:
    """Whether parentheses hold options, and not a query."""
    return (
        len(tokens) > 1
        and tokens[0].word == "("
        and tokens[1].word != "("
        and tokens[1].text.lower() not in _QUERY_WORDS
    )


class _Listed:
    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.index = 1

    def read(self) -> tuple[ExplainOptions, int]:
        options = ExplainOptions()
        while True:
            options = self._option(options)
            token = self._next()
            if token.word == ")":
                return options, self.index
            if token.word != ",":
                raise near(self.text, token)

    def _next(self) -> Token:
        if self.index >= len(self.tokens):
            raise SqlSyntaxError("syntax error at end of input", position=end_of(self.text))
        self.index += 1
        return self.tokens[self.index - 1]

    def _option(self, options: ExplainOptions) -> ExplainOptions:
        token = self._next()
        name = token.text.lower()
        place = position_of_token(self.text, token)
        value = None
        if self.index < len(self.tokens) and self.tokens[self.index].word not in (",", ")"):
            value = self._next().text.lower()
        if name == "format":
            if value in ("xml", "yaml"):
                raise NotSupported(
                    f"EXPLAIN in {value.upper()} is not supported",
                    position=place,
                    hint="Use FORMAT TEXT or JSON.",
                )
            if value not in ("json", "text"):
                raise InputError(
                    f'unrecognized value for EXPLAIN option "format": "{value or ""}"',
                    position=place,
                )
            return replace(options, json=value == "json")
        if name not in (*_SHOWN, *_WITHOUT_EFFECT):
            known = (*_SHOWN, *_WITHOUT_EFFECT, "format")
            raise SqlSyntaxError(
                f'unrecognized EXPLAIN option "{name}"',
                position=place,
                hint=did_you_mean(name, known) or "Options: ANALYZE, VERBOSE, COSTS, FORMAT.",
            )
        if value is not None and value not in _BOOLEANS:
            raise SqlSyntaxError(f"{name} requires a Boolean value", position=place)
        wanted = value is None or _BOOLEANS[value]
        return replace(options, **{name: wanted}) if name in _SHOWN else options
