"""SQL/JSON paths in lax mode: ``$.orders[*] ? (@.total > 100 && exists (@.items)).id``.

A path becomes a function from a document to the values that it leads to. As in PostgreSQL's lax
mode, what is not there leads nowhere, members are looked for inside arrays, and a value that is no
array is taken for an array of one.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from remuda.datatypes.jsons import Json, json_type, parse_json
from remuda.errors import (
    DivisionByZero,
    InvalidJsonPath,
    InvalidRegularExpression,
    SqlJsonItemError,
    UndefinedSetting,
    UnsupportedValue,
)

Values: TypeAlias = list[Json]


class Root(NamedTuple):
    """What ``$`` and ``$name`` mean."""

    document: Json
    variables: dict[str, Json]


Path: TypeAlias = Callable[[Root, Json], Values]
"""(the document, the current value of a filter) -> values"""
Test: TypeAlias = Callable[[Root, Json], bool | None]
"""A condition; None is unknown."""

_TOKEN = re.compile(
    r'\s*(?P<token>"(?:[^"\\]|\\.)*"|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|==|!=|<>|<=|>=|&&|\|\|'
    r"|\$[A-Za-z_][A-Za-z0-9_]*|[$@.\[\](){}?*,<>!+\-/%]|[A-Za-z_][A-Za-z0-9_]*)"
)
_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq, "!=": operator.ne, "<>": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_WORDS: Final = {"true": True, "false": False, "null": None}
_DEPTH_MAX: Final = 100
_STEPS_MAX: Final = 100
_PRECISE: Final = Context(prec=40)


@lru_cache(maxsize=256)
def compiled(text: str) -> Callable[..., Values]:
    """The path as a function of a document and, if there are any, of variables by name; raises
    InvalidJsonPath or UnsupportedValue. The function raises SqlJsonItemError for arithmetic with
    what is no number, and UndefinedSetting for an unknown variable."""
    path = _Parser(text).path()

    def found(document: Json, variables: dict[str, Json] | None = None) -> Values:
        return path(Root(document, variables or {}), document)

    return found


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
        test = self._whole_test()
        if test is not None:
            return lambda d, c: [test(d, c)]
        found = self._sum()
        if self._peek():
            self._bad(self._peek())
        return found

    def _whole_test(self) -> Test | None:
        """All that is left as a condition; None if it is a path."""
        start = self.at
        try:
            test = self._condition()
        except InvalidJsonPath:
            if self.depth > _DEPTH_MAX:
                raise
            test = None
        if test is None or self._peek():
            self.at, self.depth = start, 0
            return None
        return test

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
            return lambda root, _: [root.document]
        if token == "@":  # noqa: S105
            return lambda _, current: [current]
        if token.startswith("$"):
            name = token[1:]
            return lambda root, _: [_variable(root, name)]
        return self._bad(token)

    def _accessors(self, path: Path) -> Path:
        # Each step calls the one before it.
        for _ in range(_STEPS_MAX):
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
        raise InvalidJsonPath(f"the jsonpath has more than {_STEPS_MAX} steps")

    def _member(self, path: Path) -> Path:
        token = self._next()
        if token == "*" and self._accept("*"):  # noqa: S105
            if self._peek() == "{":
                raise UnsupportedValue("jsonpath with levels of .** is not supported")
            return lambda d, c: [inner for v in path(d, c) for inner in _all_levels(v)]
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
        if name in _NUMERIC_METHODS:
            compute = _NUMERIC_METHODS[name]
            return lambda d, c: [
                compute(_number(item, f"jsonpath item method .{name}()"))
                for v in path(d, c)
                for item in _as_list(v)
            ]
        if name == "double":
            return lambda d, c: [_double(item) for v in path(d, c) for item in _as_list(v)]
        if name == "keyvalue":
            return lambda d, c: [e for v in path(d, c) for o in _as_list(v) for e in _pairs(o)]
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
        elif self._peek() == "(" and (negate or not self._is_sum()):
            self._expect("(")
            test = self._condition()
            self._expect(")")
            if self._accept("is"):
                self._expect("unknown")
                known = test
                test = lambda d, c: known(d, c) is None  # noqa: E731
        elif negate:
            self._bad(self._peek())
        else:
            return self._comparison(self._sum())
        return _negated(test) if negate else test

    def _comparison(self, left: Path) -> Test:
        token = self._next()
        if token in _COMPARISONS:
            return _compared(left, _COMPARISONS[token], self._sum())
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

    def _is_sum(self) -> bool:
        """Whether the parentheses that begin here hold a number and not a condition."""
        start, depth = self.at, self.depth
        try:
            self._sum()
            found = self._peek() in _COMPARISONS
        except InvalidJsonPath:
            found = False
        self.at, self.depth = start, depth
        return found

    def _sum(self) -> Path:
        found = self._product()
        for _ in range(_STEPS_MAX):
            if self._peek() not in ("+", "-"):
                return found
            sign = self._next()
            found = _computed(found, sign, self._product())
        raise InvalidJsonPath(f"the jsonpath has more than {_STEPS_MAX} steps")

    def _product(self) -> Path:
        found = self._operand()
        for _ in range(_STEPS_MAX):
            if self._peek() not in ("*", "/", "%"):
                return found
            sign = self._next()
            found = _computed(found, sign, self._operand())
        raise InvalidJsonPath(f"the jsonpath has more than {_STEPS_MAX} steps")

    def _operand(self) -> Path:
        token = self._peek()
        if token.startswith("$") or token == "@":  # noqa: S105
            return self._accessors(self._start())
        if token == "(":  # noqa: S105
            self.depth += 1
            if self.depth > _DEPTH_MAX:
                raise InvalidJsonPath("the jsonpath is nested too deeply")
            self._next()
            inner = self._sum()
            self._expect(")")
            self.depth -= 1
            return self._accessors(inner)
        following = self.tokens[self.at + 1 : self.at + 2]
        if token in ("-", "+") and following and not following[0][0].isdecimal():
            self._next()
            self.depth += 1
            if self.depth > _DEPTH_MAX:
                raise InvalidJsonPath("the jsonpath is nested too deeply")
            found = _signed(self._operand(), token)
            self.depth -= 1
            return found
        constant = self._constant()
        return lambda _d, _c: [constant]

    def _constant(self) -> Json:
        token = self._next()
        if token in _WORDS:
            return _WORDS[token]
        if token.startswith('"'):
            return parse_json(token)
        sign = -1 if token == "-" else 1  # noqa: S105
        if token in ("-", "+"):
            token = self._next()
        if not token[0].isdecimal():
            self._bad(token)
        return sign * Decimal(token)


# --- evaluation --------------------------------------------------------------------------------


def _variable(root: Root, name: str) -> Json:
    if name not in root.variables:
        raise UndefinedSetting(f'could not find jsonpath variable "{name}"')
    return root.variables[name]


def _all_levels(value: Json) -> Iterable[Json]:
    """The value, and everything inside of it."""
    pending = [value]
    while pending:
        found = pending.pop()
        yield found
        inner = list(found.values()) if isinstance(found, dict) else found
        if isinstance(inner, list):
            pending += reversed(inner)


def _number(value: Json, what: str) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise SqlJsonItemError(f"{what} is applied to what is not a single numeric value")
    return Decimal(value)


def _double(value: Json) -> Json:
    if not isinstance(value, str):
        return _number(value, "jsonpath item method .double()")
    try:
        return Decimal(value)
    except ArithmeticError:
        raise SqlJsonItemError(
            f'string argument of jsonpath item method .double() is not a number: "{value}"'
        ) from None


def _pairs(value: Json) -> Values:
    if not isinstance(value, dict):
        raise SqlJsonItemError("jsonpath item method .keyvalue() can only be applied to an object")
    return [{"id": 0, "key": key, "value": item} for key, item in value.items()]


_NUMERIC_METHODS: Final[dict[str, Callable[[Decimal], Decimal]]] = {
    "abs": abs,
    "floor": lambda number: number.to_integral_value(ROUND_FLOOR),
    "ceiling": lambda number: number.to_integral_value(ROUND_CEILING),
}


def _computed(left: Path, sign: str, right: Path) -> Path:
    """Arithmetic of two single numbers."""

    def computed(root: Root, current: Json) -> Values:
        sides = []
        for side, path in (("left", left), ("right", right)):
            found = [item for value in path(root, current) for item in _as_list(value)]
            what = f"{side} operand of jsonpath operator {sign}"
            sides.append(_number(found[0] if len(found) == 1 else None, what))
        if sign in "/%" and not sides[1]:
            raise DivisionByZero("division by zero")
        return [_ARITHMETIC[sign](*sides)]

    return computed


_ARITHMETIC: Final[dict[str, Callable[[Decimal, Decimal], Decimal]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "/": lambda a, b: _PRECISE.divide(a, b).normalize(),
    "%": _PRECISE.remainder,
}  # fmt: skip


def _signed(path: Path, sign: str) -> Path:
    what = f"operand of unary jsonpath operator {sign}"
    factor = -1 if sign == "-" else 1
    return lambda d, c: [
        factor * _number(item, what) for value in path(d, c) for item in _as_list(value)
    ]


def _as_list(value: Json) -> Values:
    return value if isinstance(value, list) else [value]


def _each(path: Path, members: Callable[[Json], Values]) -> Path:
    """``members`` of each value; of an array those of its elements."""
    return lambda d, c: [m for v in path(d, c) for item in _as_list(v) for m in members(item)]


def _filtered(path: Path, test: Test) -> Path:
    return lambda d, c: [item for v in path(d, c) for item in _as_list(v) if test(d, item) is True]


def _negated(test: Test) -> Test:
    def negated(document: Root, current: Json) -> bool | None:
        found = test(document, current)
        return None if found is None else not found

    return negated


def _either(tests: list[Test]) -> Test:
    def either(document: Root, current: Json) -> bool | None:
        found = [test(document, current) for test in tests]
        return True if True in found else None if None in found else False

    return either


def _compared(left: Path, compare: Callable[[Any, Any], bool], right: Path) -> Test:
    """True if any pair compares so; unknown if none does and a pair cannot be compared."""

    def compared(document: Root, current: Json) -> bool | None:
        unknown = False
        try:
            rights = [item for value in right(document, current) for item in _as_list(value)]
            lefts = [item for value in left(document, current) for item in _as_list(value)]
        except (SqlJsonItemError, DivisionByZero):
            return None
        for item in lefts:
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
