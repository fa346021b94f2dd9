"""SQL/JSON paths as trees: PostgreSQL's grammar, read by recursive descent.

A path is a chain of items: its beginning, then one item for each step. Arguments of operators
and methods, conditions of filters and subscripts are paths again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from remuda.errors import (
    InvalidJsonPath,
    InvalidText,
    LimitExceeded,
    NumericOverflow,
    UnsupportedValue,
)
from remuda.execution.evaluate.json_path_tokens import (
    END,
    INTEGER,
    NAME,
    NUMBER,
    SIGN,
    STRING,
    VARIABLE,
    Token,
    bad_path,
    tokens_of,
)
from remuda.execution.evaluate.regex_syntax import Pattern, compiled

DEPTH_MAX: Final = 120
"""Items inside and behind each other. Each takes up to four frames of Python's stack."""
NESTING_MAX: Final = 50
"""Parentheses, filters and subscripts inside each other: each takes a dozen frames to read."""
LEVEL_LAST: Final = 2**32 - 1
"""``last`` as a level of ``.**{...}``."""
_EXPONENT_MAX: Final = 1000

COMPARISONS: Final = {
    "==": "==",
    "!=": "!=",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
NUMERIC_METHODS: Final = frozenset({"abs", "ceiling", "floor"})
METHODS: Final = frozenset({*NUMERIC_METHODS, "datetime", "double", "keyvalue", "size", "type"})


@dataclass(frozen=True, slots=True)
class Item:
    """``kind`` is ``$``, ``@``, ``last``, ``literal``, ``variable``, ``key``, ``.*``, ``[*]``,
    ``[]``, ``**``, ``?``, the name of a method, an operator (``sign``: one with a single operand),
    or one of ``CONDITIONS``."""

    kind: str
    value: Any = None
    """A literal's value, a name, the levels of ``**``, the sign of ``sign``, a ``Regex``."""
    parts: tuple[Path, ...] = ()
    """Operands, the condition of a filter, first and last subscripts (an empty path: no last)."""
    depth: int = 1


Path: TypeAlias = tuple[Item, ...]


class Regex(NamedTuple):
    text: str
    flags: str
    pattern: Pattern


class JsonPath(NamedTuple):
    lax: bool
    path: Path


CONDITIONS: Final = frozenset({
    *COMPARISONS.values(), "&&", "||", "!", "is unknown", "exists", "starts with", "like_regex",
})  # fmt: skip


@lru_cache(maxsize=256)
def parsed_path(text: str) -> JsonPath:
    """Raises InvalidJsonPath for wrong syntax, InvalidText for an empty text or a broken escape,
    InvalidRegularExpression, LimitExceeded for paths that are too deep."""
    return _Parser(text).result()


class _Parsed(NamedTuple):
    path: Path
    condition: bool = False
    in_parentheses: bool = False


def _depth(path: Path) -> int:
    return sum(item.depth for item in path)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.at = 0
        self.depth = 0
        self.filters = 0
        self.subscripts = 0

    def result(self) -> JsonPath:
        if len(self.tokens) == 1:
            raise InvalidText(f'invalid input syntax for type jsonpath: "{self.text}"')
        strict = self._accept_word("strict")
        if not strict:
            self._accept_word("lax")
        found = self._any()
        if self._here.kind != END:
            self._bad()
        return JsonPath(not strict, found.path)

    # --- tokens ---

    @property
    def _here(self) -> Token:
        return self.tokens[self.at]

    def _next(self) -> Token:
        token = self._here
        if token.kind == END:
            self._bad()
        self.at += 1
        return token

    def _is_sign(self, *signs: str) -> bool:
        return self._here.kind == SIGN and self._here.text in signs

    def _accept(self, sign: str) -> bool:
        found = self._is_sign(sign)
        self.at += found
        return found

    def _expect(self, sign: str) -> None:
        if not self._accept(sign):
            self._bad()

    def _accept_word(self, word: str) -> bool:
        found = self._here.kind == NAME and self._here.word == word
        self.at += found
        return found

    def _syntax_error(self) -> InvalidJsonPath:
        return bad_path("syntax error", self._here.source, self.text)

    def _bad(self) -> NoReturn:
        raise self._syntax_error()

    def _item(self, kind: str, value: Any = None, *parts: Path) -> Item:
        item = Item(kind, value, parts, 1 + max(map(_depth, parts), default=0))
        if item.depth > DEPTH_MAX:
            raise self._too_deep()
        return item

    def _enter(self) -> None:
        self.depth += 1
        if self.depth > NESTING_MAX:
            raise self._too_deep()

    def _too_deep(self) -> LimitExceeded:
        return LimitExceeded(
            f"the jsonpath is nested too deeply: more than {NESTING_MAX} parentheses, filters and "
            f"subscripts inside each other, or {DEPTH_MAX} items inside or behind each other",
            hint="Cut it into several calls, each with a part of the path.",
        )

    # --- conditions ---

    def _any(self) -> _Parsed:
        """A condition or an expression."""
        found = self._conjunction()
        while self._is_sign("||"):
            found = self._connected(found, "||", self._conjunction)
        return found

    def _conjunction(self) -> _Parsed:
        found = self._single()
        while self._is_sign("&&"):
            found = self._connected(found, "&&", self._single)
        return found

    def _connected(self, left: _Parsed, sign: str, operand: Callable[[], _Parsed]) -> _Parsed:
        if not left.condition:
            self._bad()
        self._next()
        right = operand()
        if not right.condition:
            self._bad()
        return _Parsed((self._item(sign, None, left.path, right.path),), condition=True)

    def _condition(self) -> Path:
        found = self._any()
        if not found.condition:
            self._bad()
        return found.path

    def _expression(self) -> Path:
        found = self._sum()
        if found.condition:
            self._bad()
        return found.path

    def _single(self) -> _Parsed:
        if self._accept("!"):
            if self._here.kind == NAME and self._here.word == "exists":
                inner = self._exists().path
            else:
                self._expect("(")
                inner = self._condition()
                self._expect(")")
            return _Parsed((self._item("!", None, inner),), condition=True)
        if self._here.kind == NAME and self._here.word == "exists":
            return self._exists()
        left = self._sum()
        if left.condition:
            if left.in_parentheses and self._accept_word("is"):
                if not self._accept_word("unknown"):
                    self._bad()
                return _Parsed((self._item("is unknown", None, left.path),), condition=True)
            return left
        return self._comparison(left)

    def _exists(self) -> _Parsed:
        self._next()
        self._expect("(")
        path = self._expression()
        self._expect(")")
        return _Parsed((self._item("exists", None, path),), condition=True)

    def _comparison(self, left: _Parsed) -> _Parsed:
        if self._here.kind == SIGN and self._here.text in COMPARISONS:
            kind = COMPARISONS[self._next().text]
            item = self._item(kind, None, left.path, self._expression())
        elif self._accept_word("starts"):
            if not self._accept_word("with") or self._here.kind not in (STRING, VARIABLE):
                self._bad()
            item = self._item("starts with", None, left.path, self._primary().path)
        elif self._accept_word("like_regex"):
            item = self._item("like_regex", self._regex(), left.path)
        else:
            return left
        return _Parsed((item,), condition=True)

    def _regex(self) -> Regex:
        text = self._string()
        flags = self._string() if self._accept_word("flag") else ""
        for flag in flags:
            if flag not in "ismxq":
                raise InvalidJsonPath(
                    "invalid input syntax for type jsonpath",
                    detail=f'Unrecognized flag character "{flag}" in LIKE_REGEX predicate.',
                )
        if "x" in flags and "q" not in flags:
            raise UnsupportedValue(
                'XQuery "x" flag (expanded regular expressions) is not implemented'
            )
        case = "i" if "i" in flags else ""
        if "q" in flags:
            ours = case + "q"
        else:
            # In XQuery a dot matches no newline, unless "s" says so.
            lines = {"": "p", "s": "", "m": "n", "sm": "w"}
            ours = case + lines[("s" if "s" in flags else "") + ("m" if "m" in flags else "")]
        ordered = "".join(flag for flag in "ismxq" if flag in flags)
        return Regex(text, ordered, compiled(text, ours))

    def _string(self) -> str:
        if self._here.kind != STRING:
            self._bad()
        return self._next().text

    # --- expressions ---

    def _sum(self) -> _Parsed:
        return self._operators(("+", "-"), self._product)

    def _product(self) -> _Parsed:
        return self._operators(("*", "/", "%"), self._signed)

    def _operators(self, signs: tuple[str, ...], operand: Callable[[], _Parsed]) -> _Parsed:
        found = operand()
        while self._is_sign(*signs):
            if found.condition:
                self._bad()
            sign = self._next().text
            right = operand()
            if right.condition:
                self._bad()
            found = _Parsed((self._item(sign, None, found.path, right.path),))
        return found

    def _signed(self) -> _Parsed:
        if not self._is_sign("+", "-"):
            return self._accessed()
        sign = self._next().text
        self._enter()
        operand = self._signed()
        self.depth -= 1
        if operand.condition:
            self._bad()
        first = operand.path[0]
        if len(operand.path) == 1 and first.kind == "literal" and isinstance(first.value, Decimal):
            value: Decimal = first.value if sign == "+" else -first.value
            return _Parsed((self._item("literal", value or abs(value)),))
        return _Parsed((self._item("sign", sign, operand.path),))

    def _accessed(self) -> _Parsed:
        """An operand and the steps behind it."""
        self._enter()
        found = self._primary()
        steps = list(found.path)
        depth = _depth(found.path)
        while self._is_sign(".", "[", "?"):
            step = self._step()
            depth += step.depth
            if depth > DEPTH_MAX:
                raise self._too_deep()
            steps.append(step)
        self.depth -= 1
        return found if len(steps) == len(found.path) else _Parsed(tuple(steps))

    def _primary(self) -> _Parsed:
        token = self._next()
        if token.kind in (STRING, VARIABLE):
            kind = "literal" if token.kind == STRING else "variable"
            return _Parsed((self._item(kind, token.text),))
        if token.kind in (NUMBER, INTEGER):
            return _Parsed((self._item("literal", _number(token.text)),))
        if token.kind == SIGN and token.text in "$@":
            if token.text == "@" and not self.filters:
                raise InvalidJsonPath("@ is not allowed in root expressions")
            return _Parsed((self._item(token.text),))
        if token.kind == SIGN and token.text == "(":
            found = self._any()
            self._expect(")")
            return found._replace(in_parentheses=True)
        if token.kind == NAME and token.word in ("true", "false", "null"):
            value = None if token.word == "null" else token.word == "true"
            return _Parsed((self._item("literal", value),))
        if token.kind == NAME and token.word == "last":
            if not self.subscripts:
                raise InvalidJsonPath("LAST is allowed only in array subscripts")
            return _Parsed((self._item("last"),))
        self.at -= 1
        raise self._syntax_error()

    # --- steps ---

    def _step(self) -> Item:
        sign = self._next().text
        if sign == "[":
            return self._elements()
        if sign == "?":
            self._expect("(")
            self.filters += 1
            condition = self._condition()
            self.filters -= 1
            self._expect(")")
            return self._item("?", None, condition)
        if self._accept("*"):
            return self._item(".*")
        if self._accept("**"):
            return self._item("**", self._levels())
        if self._here.kind not in (NAME, STRING):
            self._bad()
        token = self._next()
        if token.kind == NAME and token.word in METHODS and self._accept("("):
            return self._method(token.word)
        return self._item("key", token.text)

    def _method(self, name: str) -> Item:
        template: Path = ()
        if name == "datetime" and self._here.kind == STRING:
            template = (self._item("literal", self._next().text),)
        self._expect(")")
        return self._item(name, template[0].value if template else None)

    def _levels(self) -> tuple[int, int]:
        if not self._accept("{"):
            return 0, LEVEL_LAST
        first = self._level()
        last = self._level() if self._accept_word("to") else first
        self._expect("}")
        return first, last

    def _level(self) -> int:
        if self._accept_word("last"):
            return LEVEL_LAST
        if self._here.kind != INTEGER:
            self._bad()
        level = int(self._next().text)
        if level > 2**31 - 1:
            raise NumericOverflow(f'value "{level}" is out of range for type integer')
        return level

    def _elements(self) -> Item:
        if self._accept("*"):
            self._expect("]")
            return self._item("[*]")
        self.subscripts += 1
        bounds: list[Path] = []
        while True:
            bounds.append(self._expression())
            bounds.append(self._expression() if self._accept_word("to") else ())
            if not self._accept(","):
                break
        self.subscripts -= 1
        self._expect("]")
        return self._item("[]", None, *bounds)


def _number(text: str) -> Decimal:
    value = Decimal(text)
    if value and abs(value.adjusted()) > _EXPONENT_MAX:
        raise NumericOverflow("value overflows numeric format")
    return value
