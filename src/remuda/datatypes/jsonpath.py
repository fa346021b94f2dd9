"""SQL/JSON paths in lax mode: ``$.orders[*] ? (@.total > 100 && exists (@.items)).id``.

A path becomes a function from a document to the values that it leads to. As in PostgreSQL's lax
mode, what is not there leads nowhere, members are looked for inside arrays, and a value that is no
array is taken for an array of one.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, NoReturn, TypeAlias

from remuda.datatypes.jsons import Json, json_type, parse_json
from remuda.errors import InvalidJsonPath, InvalidRegularExpression, UnsupportedValue

Values: TypeAlias = list[Json]
Path: TypeAlias = Callable[[Json, Json], Values]
"""(the document, the current value of a filter) -> values"""
Test: TypeAlias = Callable[[Json, Json], bool | None]
"""A condition; None is unknown."""

_TOKEN = re.compile(
    r'\s*(?P<token>"(?:[^"\\]|\\.)*"|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|==|!=|<>|<=|>=|&&|\|\|'
    r"|[$@.\[\]()?*,<>!+\-/%]|[A-Za-z_][A-Za-z0-9_]*)"
)
_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq, "!=": operator.ne, "<>": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_WORDS: Final = {"true": True, "false": False, "null": None}
_DEPTH_MAX: Final = 100


@lru_cache(maxsize=256)
def compiled(text: str) -> Callable[[Json], Values]:
    """The path as a function; raises InvalidJsonPath or UnsupportedValue."""
    path = _Parser(text).path()
    return lambda document: path(document, document)


class _Parser:
    """Recursive descent; every method reads one construct and gives its function."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._split(text)
        self.at = 0
        self.depth = 0

    def _split(self, text: str) -> list[str]:
        tokens: list[str] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                self._bad(text[at:].strip()[:1])
            tokens.append(match["token"])
            at = match.end()
        return tokens

    def path(self) -> Path:
        if self._peek() == "strict":
            raise UnsupportedValue("jsonpath in strict mode is not supported")
        self._accept("lax")
        found = self._accessors(self._start())
        if self._peek():
            if self._peek() in _COMPARISONS or self._peek() in (
                "&&",
                "||",
                "+",
                "-",
                "*",
                "/",
                "%",
            ):
                raise UnsupportedValue(
                    "jsonpath with operators outside of a filter is not supported",
                    hint="Write the condition as a filter: '$ ? (@.a > 1)'.",
                )
            self._bad(self._peek())
        return found

    # --- tokens ---

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        if not token:
            self._bad("")
        self.at += 1
        return token

    def _accept(self, token: str) -> bool:
        found = self._peek() == token
        self.at += found
        return found

    def _expect(self, token: str) -> None:
        if not self._accept(token):
            self._bad(self._peek())

    def _bad(self, token: str) -> NoReturn:
        where = f'at or near "{token}"' if token else "at end"
        raise InvalidJsonPath(
            f"syntax error {where} of jsonpath input", detail=f"The path is {self.text[:80]!r}."
        )

    # --- accessors ---

    def _start(self) -> Path:
        token = self._next()
        if token == "$":  # noqa: S105 (a token of the language)
            return lambda document, _: [document]
        if token == "@":  # noqa: S105
            return lambda _, current: [current]
        return self._bad(token)

    def _accessors(self, path: Path) -> Path:
        while True:
            if self._accept("."):
                path = self._member(path)
            elif self._accept("["):
                path = self._elements(path)
            elif self._accept("?"):
                self._expect("(")
                test = self._condition()
                self._expect(")")
                path = _filtered(path, test)
            else:
                return path

    def _member(self, path: Path) -> Path:
        token = self._next()
        if token == "*":  # noqa: S105
            return _each(
                path, lambda value: list(value.values()) if isinstance(value, dict) else []
            )
        if token.startswith('"'):
            name = str(parse_json(token))
        elif token[0].isalpha() or token[0] == "_":
            name = token
        else:
            self._bad(token)
        if self._peek() == "(" and not token.startswith('"'):
            self._expect("(")
            self._expect(")")
            return self._method(path, name)
        return _each(
            path, lambda value: [value[name]] if isinstance(value, dict) and name in value else []
        )

    def _method(self, path: Path, name: str) -> Path:
        if name == "size":
            return lambda d, c: [len(v) if isinstance(v, list) else 1 for v in path(d, c)]
        if name == "type":
            return lambda d, c: [json_type(v) for v in path(d, c)]
        raise UnsupportedValue(f"the jsonpath method .{name}() is not supported")

    def _elements(self, path: Path) -> Path:
        if self._accept("*"):
            self._expect("]")
            return lambda d, c: [item for v in path(d, c) for item in _as_list(v)]
        ranges = [self._range()]
        while self._accept(","):
            ranges.append(self._range())
        self._expect("]")

        def picked(value: Json) -> Iterable[Json]:
            items = _as_list(value)
            for low, high in ranges:
                first, last = low(len(items)), high(len(items))
                yield from items[max(first, 0) : last + 1]

        return lambda d, c: [item for v in path(d, c) for item in picked(v)]

    def _range(self) -> tuple[Callable[[int], int], Callable[[int], int]]:
        low = self._place()
        return (low, self._place()) if self._accept("to") else (low, low)

    def _place(self) -> Callable[[int], int]:
        if self._accept("last"):
            back = self._whole() if self._accept("-") else 0
            return lambda length: length - 1 - back
        number = self._whole()
        return lambda _: number

    def _whole(self) -> int:
        token = self._next()
        if not token.isdecimal():
            self._bad(token)
        return int(token[:9])

    # --- conditions ---

    def _condition(self) -> Test:
        self.depth += 1
        if self.depth > _DEPTH_MAX:
            raise InvalidJsonPath("the jsonpath is nested too deeply")
        tests = [self._conjunction()]
        while self._accept("||"):
            tests.append(self._conjunction())
        self.depth -= 1
        return tests[0] if len(tests) == 1 else _either(tests)

    def _conjunction(self) -> Test:
        tests = [self._single()]
        while self._accept("&&"):
            tests.append(self._single())
        if len(tests) == 1:
            return tests[0]
        return _negated(_either([_negated(test) for test in tests]))

    def _single(self) -> Test:
        negate = self._accept("!")
        if self._accept("exists"):
            self._expect("(")
            path = self._accessors(self._start())
            self._expect(")")
            test: Test = lambda d, c: bool(path(d, c))  # noqa: E731
        elif self._accept("("):
            test = self._condition()
            self._expect(")")
        elif negate:
            self._bad(self._peek())
        else:
            return self._comparison(self._operand())
        return _negated(test) if negate else test

    def _comparison(self, left: Path) -> Test:
        token = self._next()
        if token in _COMPARISONS:
            return _compared(left, _COMPARISONS[token], self._operand())
        if token == "starts" and self._accept("with"):  # noqa: S105
            prefix = str(self._string())
            return lambda d, c: any(isinstance(v, str) and v.startswith(prefix) for v in left(d, c))
        if token == "like_regex":  # noqa: S105
            pattern = self._regex()
            return lambda d, c: any(
                isinstance(v, str) and bool(pattern.search(v)) for v in left(d, c)
            )
        return self._bad(token)

    def _regex(self) -> re.Pattern[str]:
        text = self._string()
        flags = self._string() if self._accept("flag") else ""
        known = {"i": re.IGNORECASE, "s": re.DOTALL, "m": re.MULTILINE}
        try:
            return re.compile(text, sum(known[flag] for flag in set(flags)))
        except (re.error, KeyError) as error:
            raise InvalidRegularExpression(
                f"invalid regular expression in jsonpath: {error}"
            ) from None

    def _string(self) -> str:
        token = self._next()
        if not token.startswith('"'):
            self._bad(token)
        return str(parse_json(token))

    def _operand(self) -> Path:
        token = self._peek()
        if token in ("$", "@"):
            return self._accessors(self._start())
        constant = self._constant()
        return lambda _d, _c: [constant]

    def _constant(self) -> Json:
        token = self._next()
        if token in _WORDS:
            return _WORDS[token]
        if token.startswith('"'):
            return parse_json(token)
        sign = -1 if token == "-" else 1  # noqa: S105
        if sign < 0:
            token = self._next()
        if not token[0].isdecimal():
            self._bad(token)
        return sign * Decimal(token)


# --- evaluation --------------------------------------------------------------------------------


def _as_list(value: Json) -> Values:
    return value if isinstance(value, list) else [value]


def _each(path: Path, members: Callable[[Json], Values]) -> Path:
    """``members`` of each value; of an array those of its elements."""
    return lambda d, c: [m for v in path(d, c) for item in _as_list(v) for m in members(item)]


def _filtered(path: Path, test: Test) -> Path:
    return lambda d, c: [item for v in path(d, c) for item in _as_list(v) if test(d, item) is True]


def _negated(test: Test) -> Test:
    def negated(document: Json, current: Json) -> bool | None:
        found = test(document, current)
        return None if found is None else not found

    return negated


def _either(tests: list[Test]) -> Test:
    def either(document: Json, current: Json) -> bool | None:
        found = [test(document, current) for test in tests]
        return True if True in found else None if None in found else False

    return either


def _compared(left: Path, compare: Callable[[Any, Any], bool], right: Path) -> Test:
    """True if any pair compares so; unknown if none does and a pair cannot be compared."""

    def compared(document: Json, current: Json) -> bool | None:
        unknown = False
        rights = [item for value in right(document, current) for item in _as_list(value)]
        for value in left(document, current):
            for item in _as_list(value):
                for other in rights:
                    found = _pair(item, compare, other)
                    if found:
                        return True
                    unknown |= found is None
        return None if unknown else False

    return compared


def _pair(left: Json, compare: Callable[[Any, Any], bool], right: Json) -> bool | None:
    kinds = json_type(left), json_type(right)
    if "null" in kinds and kinds[0] != kinds[1]:
        return compare is operator.ne
    if kinds[0] != kinds[1] or kinds[0] in ("object", "array"):
        return None
    if kinds[0] == "null":
        return compare in (operator.eq, operator.le, operator.ge)
    return compare(left, right)
