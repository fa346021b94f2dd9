"""The catalog of functions: names, argument types, result types, NULL rules.

The binder resolves every call here and makes all conversions explicit; the evaluator implements
the functions under these names and may rely on the argument types that ``resolve`` chose. Types
follow PostgreSQL unless a function says otherwise.

What the evaluator may rely on, beyond the types of each ``Signature``:

- comparisons, ``coalesce``, ``nullif``, ``greatest``, ``least``: all arguments have one type
  (only the length of text, and CHAR against VARCHAR, may differ);
- ``+ - %`` on DECIMAL: both are DECIMAL, scales may differ, the result has the larger scale;
- ``* /`` on DECIMAL: both are DECIMAL; ``*`` has the sum of the scales, ``/`` is rounded half
  away from zero to the scale of the result;
- ``+ - * / %`` on integers: both have the type of the result; ``/`` truncates towards zero, ``%``
  has the sign of the dividend; leaving the type's range is NumericOverflow;
- ``extract`` and ``date_trunc``: the first argument is a VARCHAR literal out of
  ``EXTRACT_FIELDS`` or ``TRUNC_FIELDS``;
- a Cast to VARCHAR(n) or CHAR(n) of longer text raises StringTooLong unless only blanks are cut
  (PostgreSQL truncates silently in an explicit CAST); numbers round half away from zero;
- ``round`` and ``trunc`` of a DECIMAL with digits: the result type carries the scale.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from remuda.datatypes.coercion import (
    as_decimal,
    common_type,
    is_comparable,
    is_implicit,
)
from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DECIMAL_PRECISION_MAX,
    DOUBLE,
    INTEGER,
    REAL,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Kind,
    SqlType,
    decimal,
)
from remuda.plan.datetime_fields import EXTRACT_FIELDS, TIME_FIELDS

Types: TypeAlias = tuple[SqlType, ...]
"""Argument types as found; an untyped literal or parameter has Kind.NULL and fits anything."""


class NullRule(Enum):
    """STRICT: NULL if any argument is NULL. NEVER: the result is never NULL. OWN: see the function
    (``and``, ``or`` are three-valued; ``coalesce``, ``greatest``, ``least`` skip NULLs)."""

    STRICT = "strict"
    NEVER = "never"
    OWN = "own"


@dataclass(frozen=True, slots=True)
class Signature:
    """The types that the arguments are to be cast to, and the type of the result."""

    arguments: Types
    result: SqlType


Resolver: TypeAlias = Callable[[Types], Signature | None]
"""None: the function does not take arguments of these types."""


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """``folds`` is False for what must not be computed at planning time (current_date, ...): the
    session replaces it by a literal when a statement starts. ``raises``: may fail on some values
    (overflow, division by zero), so it must not be moved to where it sees more rows."""

    name: str
    resolve: Resolver
    nulls: NullRule = NullRule.STRICT
    summary: str = ""
    folds: bool = True
    raises: bool = False


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """``resolve`` gives the argument's type (after casts) and the result's. All skip NULLs; over no
    rows ``count`` is 0 and the others are NULL. The argument keeps its own type (no cast before
    sum: the result is wider than the argument)."""

    name: str
    resolve: Callable[[SqlType], Signature | None]
    summary: str = ""


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """A function that is only called with OVER; aggregates can be called so as well. ``framed``:
    it looks at the rows of the frame, others at the whole partition."""

    name: str
    resolve: Resolver
    summary: str = ""
    framed: bool = False


# --- resolvers -------------------------------------------------------------------------------


def _unknown(t: SqlType) -> bool:
    return t.kind is Kind.NULL


def _bounded_decimal(precision: int, scale: int) -> SqlType:
    scale = min(scale, DECIMAL_PRECISION_MAX)
    return decimal(max(1, min(max(precision, scale), DECIMAL_PRECISION_MAX)), scale)


def _fixed(result: SqlType, *arguments: SqlType, optional: int = 0) -> Resolver:
    """Arguments of fixed types, the last ``optional`` of which may be left out."""

    def resolve(types: Types) -> Signature | None:
        if not len(arguments) - optional <= len(types) <= len(arguments):
            return None
        wanted = arguments[: len(types)]
        if not all(_unknown(t) or is_implicit(t, w) for t, w in zip(types, wanted, strict=True)):
            return None
        # Text keeps its length and kind: they do not matter to any function.
        kept = tuple(
            t if t.is_text and w.is_text else w for t, w in zip(types, wanted, strict=True)
        )
        return Signature(kept, result)

    return resolve


def _overloads(*resolvers: Resolver) -> Resolver:
    """The first that fits; untyped arguments thus prefer the first."""

    def resolve(types: Types) -> Signature | None:
        for resolver in resolvers:
            found = resolver(types)
            if found is not None:
                return found
        return None

    return resolve


def _comparison(types: Types) -> Signature | None:
    if len(types) != 2:
        return None
    common = common_type(types)
    if common is None or not is_comparable(common):
        return None
    return Signature((common, common), BOOLEAN)


def _logical(types: Types) -> Signature | None:
    if not all(_unknown(t) or t == BOOLEAN for t in types):
        return None
    return Signature((BOOLEAN,) * len(types), BOOLEAN)


def _unary_logical(types: Types) -> Signature | None:
    return _logical(types) if len(types) == 1 else None


def _null_test(types: Types) -> Signature | None:
    return Signature(types, BOOLEAN) if len(types) == 1 else None


def _numeric_pair(types: Types) -> Types | None:
    """Both sides in one family: integers, floats or decimals; None if they have none."""
    if len(types) != 2:
        return None
    left, right = types
    if _unknown(left) and _unknown(right):
        return None
    left, right = (right if _unknown(left) else left), (left if _unknown(right) else right)
    if not (left.is_numeric and right.is_numeric):
        return None
    if left.is_float or right.is_float:
        both = REAL if left == REAL and right == REAL else DOUBLE
        return both, both
    if left.kind is Kind.DECIMAL or right.kind is Kind.DECIMAL:
        return as_decimal(left), as_decimal(right)
    common = common_type((left, right))
    return None if common is None else (common, common)


def _scaled(t: SqlType) -> tuple[int, int]:
    return t.precision or DECIMAL_PRECISION_MAX, t.scale or 0


def _additive_result(left: SqlType, right: SqlType) -> SqlType:
    (p1, s1), (p2, s2) = _scaled(left), _scaled(right)
    scale = max(s1, s2)
    return _bounded_decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)


def _product_result(left: SqlType, right: SqlType) -> SqlType:
    (p1, s1), (p2, s2) = _scaled(left), _scaled(right)
    return _bounded_decimal(p1 + p2, s1 + s2)


def _quotient_result(left: SqlType, right: SqlType) -> SqlType:
    return _bounded_decimal(DECIMAL_PRECISION_MAX, max(16, left.scale or 0, right.scale or 0))


def _remainder_result(left: SqlType, right: SqlType) -> SqlType:
    (p1, s1), (p2, s2) = _scaled(left), _scaled(right)
    scale = max(s1, s2)
    return _bounded_decimal(min(p1 - s1, p2 - s2) + scale, scale)


def _arithmetic(decimal_result: Callable[[SqlType, SqlType], SqlType]) -> Resolver:
    def resolve(types: Types) -> Signature | None:
        pair = _numeric_pair(types)
        if pair is None:
            return None
        if pair[0].kind is Kind.DECIMAL:
            return Signature(pair, decimal_result(*pair))
        return Signature(pair, pair[0])

    return resolve


def _exact_remainder(types: Types) -> Signature | None:
    """``%`` is not defined on floats, as in PostgreSQL."""
    signature = _arithmetic(_remainder_result)(types)
    return None if signature is None or signature.result.is_float else signature


def _plus(types: Types) -> Signature | None:
    """Numbers; DATE + integer = DATE (days)."""
    if len(types) == 2:
        left, right = types
        if left == DATE and (right.is_integer or _unknown(right)) and right.kind is not Kind.BIGINT:
            return Signature((DATE, INTEGER), DATE)
        if right == DATE and left.is_integer and left.kind is not Kind.BIGINT:
            return Signature((INTEGER, DATE), DATE)
    return _arithmetic(_additive_result)(types)


def _minus(types: Types) -> Signature | None:
    """Numbers; DATE - integer = DATE; DATE - DATE = INTEGER (days)."""
    if len(types) == 2:
        left, right = types
        if left == DATE and right == DATE:
            return Signature(types, INTEGER)
        if DATE in types and any(_unknown(t) for t in types):
            return Signature((DATE, DATE), INTEGER)
        if left == DATE and right.is_integer and right.kind is not Kind.BIGINT:
            return Signature((DATE, INTEGER), DATE)
    return _arithmetic(_additive_result)(types)


def _same_numeric(types: Types) -> Signature | None:
    """One number, the result of the same type (``neg``, ``abs``)."""
    if len(types) != 1:
        return None
    t = DOUBLE if _unknown(types[0]) else types[0]
    return Signature((t,), t) if t.is_numeric else None


def _whole(types: Types) -> Signature | None:
    """``ceil``, ``floor``: DECIMAL(p,s) -> DECIMAL without fraction; all others -> DOUBLE."""
    if len(types) != 1:
        return None
    t = types[0]
    if t.kind is Kind.DECIMAL:
        precision, scale = _scaled(t)
        return Signature((t,), _bounded_decimal(precision - scale + 1, 0))
    return Signature((DOUBLE,), DOUBLE) if t.is_numeric or _unknown(t) else None


def _rounding(types: Types) -> Signature | None:
    """``round``, ``trunc``: like ``ceil`` with one argument; with digits DECIMAL keeps its scale
    (``with_digits`` sharpens it for literal digits), and DOUBLE is allowed as well."""
    if len(types) == 1:
        return _whole(types)
    if len(types) != 2 or not (_unknown(types[1]) or is_implicit(types[1], INTEGER)):
        return None
    t = types[0]
    if t.is_float or _unknown(t):
        return Signature((DOUBLE, INTEGER), DOUBLE)
    if not t.is_numeric:
        return None
    t = as_decimal(t)
    precision, scale = _scaled(t)
    return Signature((t, INTEGER), _bounded_decimal(precision + 1, scale))


def with_digits(signature: Signature, digits: int) -> Signature:
    """The signature of ``round(DECIMAL, digits)`` for known digits: the result has that scale, if
    it is shorter than the argument's."""
    argument = signature.arguments[0]
    if argument.kind is not Kind.DECIMAL:
        return signature
    precision, scale = _scaled(argument)
    new_scale = min(scale, max(0, digits))
    result = _bounded_decimal(precision - scale + 1 + new_scale, new_scale)
    return dataclasses.replace(signature, result=result)


def _sign(types: Types) -> Signature | None:
    if len(types) == 1 and types[0].kind is Kind.DECIMAL:
        return Signature(types, decimal(1, 0))
    return _fixed(DOUBLE, DOUBLE)(types)


def _same_type(types: Types) -> Signature | None:
    """``coalesce``, ``greatest``, ``least``: the common type of all."""
    common = common_type(types) if types else None
    if common is None:
        return None
    return Signature((common,) * len(types), common)


def _nullif(types: Types) -> Signature | None:
    if _comparison(types) is None:
        return None
    both = _same_type(types)
    assert both is not None
    return both


def _concatenation(types: Types) -> Signature | None:
    """text || anything -> text; bytea || bytea -> bytea."""
    if len(types) != 2:
        return None
    left, right = types
    if BYTEA in types:
        fits = all(t == BYTEA or _unknown(t) for t in types)
        return Signature((BYTEA, BYTEA), BYTEA) if fits else None
    if not any(t.is_text or _unknown(t) for t in types):
        return None
    return Signature(tuple(t if t.is_text else VARCHAR for t in (left, right)), VARCHAR)


def _concat(types: Types) -> Signature | None:
    if not types or any(t.kind is Kind.BYTEA for t in types):
        return None
    return Signature(tuple(t if t.is_text else VARCHAR for t in types), VARCHAR)


def _extract(types: Types) -> Signature | None:
    """The result type depends on the field: the binder asks ``extract_signature``."""
    return extract_signature("year", types[1]) if len(types) == 2 else None


def extract_signature(field: str, source: SqlType) -> Signature | None:
    """``extract(field from source)``, or None when the type has no such field."""
    result = EXTRACT_FIELDS.get(field)
    if _unknown(source):
        source = TIMESTAMP
    if result is None or source not in (DATE, TIME, TIMESTAMP, TIMESTAMPTZ):
        return None
    if source == TIME and field not in (*TIME_FIELDS, "epoch"):
        return None
    if source == DATE and field in TIME_FIELDS:
        return None
    return Signature((VARCHAR, source), result)


def _date_trunc(types: Types) -> Signature | None:
    """DATE and TIMESTAMP -> TIMESTAMP (PostgreSQL: DATE to TIMESTAMPTZ); TZ stays."""
    if len(types) != 2 or not (types[0].is_text or _unknown(types[0])):
        return None
    source = TIMESTAMP if _unknown(types[1]) else types[1]
    if source not in (DATE, TIMESTAMP, TIMESTAMPTZ):
        return None
    return Signature((VARCHAR, source), TIMESTAMPTZ if source == TIMESTAMPTZ else TIMESTAMP)


def _add_interval(types: Types) -> Signature | None:
    """(x, months, days, microseconds): DATE and TIMESTAMP -> TIMESTAMP, TIMESTAMPTZ and TIME stay.
    Months first (day clipped to the month's last), then days, then µs; TIME wraps at 24 h."""
    if len(types) != 4 or types[0] not in (DATE, TIME, TIMESTAMP, TIMESTAMPTZ):
        return None
    result = TIMESTAMP if types[0] == DATE else types[0]
    return Signature((types[0], BIGINT, BIGINT, BIGINT), result)


def _octets(types: Types) -> Signature | None:
    return _overloads(_fixed(INTEGER, VARCHAR), _fixed(INTEGER, BYTEA))(types)


# --- the catalog -----------------------------------------------------------------------------

_OWN, _NEVER = NullRule.OWN, NullRule.NEVER
_TEXT_1 = _fixed(VARCHAR, VARCHAR)
_MATH_1 = _fixed(DOUBLE, DOUBLE)

_SCALARS: Final = (
    ScalarFunction("+", _plus, summary="sum; DATE + days", raises=True),
    ScalarFunction("-", _minus, summary="difference; DATE - days; days between DATEs", raises=True),
    ScalarFunction("*", _arithmetic(_product_result), summary="product", raises=True),
    ScalarFunction(
        "/", _arithmetic(_quotient_result), summary="quotient; integers truncate", raises=True
    ),
    ScalarFunction("%", _exact_remainder, summary="remainder", raises=True),
    ScalarFunction("neg", _same_numeric, summary="negation", raises=True),
    *(ScalarFunction(name, _comparison) for name in ("=", "<>", "<", "<=", ">", ">=")),
    ScalarFunction("is_distinct_from", _comparison, _NEVER, "<> with NULL as a value"),
    ScalarFunction("is_not_distinct_from", _comparison, _NEVER, "= with NULL as a value"),
    ScalarFunction("and", _logical, _OWN, "n-ary, three-valued"),
    ScalarFunction("or", _logical, _OWN, "n-ary, three-valued"),
    ScalarFunction("not", _unary_logical),
    ScalarFunction("is_null", _null_test, _NEVER),
    ScalarFunction("is_not_null", _null_test, _NEVER),
    *(
        ScalarFunction(name, _unary_logical, _NEVER)
        for name in ("is_true", "is_false", "is_not_true", "is_not_false")
    ),
    ScalarFunction("||", _concatenation, summary="concatenation"),
    ScalarFunction(
        "like", _fixed(BOOLEAN, VARCHAR, VARCHAR, VARCHAR, optional=1), summary="pattern, escape"
    ),
    ScalarFunction(
        "ilike", _fixed(BOOLEAN, VARCHAR, VARCHAR, VARCHAR, optional=1), summary="like, any case"
    ),
    ScalarFunction("coalesce", _same_type, _OWN, "the first that is not NULL"),
    ScalarFunction("nullif", _nullif, _OWN, "NULL if both are equal, else the first"),
    ScalarFunction("greatest", _same_type, _OWN, "the largest; NULLs are skipped"),
    ScalarFunction("least", _same_type, _OWN, "the smallest; NULLs are skipped"),
    ScalarFunction("abs", _same_numeric, raises=True),
    ScalarFunction("ceil", _whole),
    ScalarFunction("floor", _whole),
    ScalarFunction("round", _rounding, summary="half away from zero (DOUBLE: half to even)"),
    ScalarFunction("trunc", _rounding, summary="towards zero"),
    ScalarFunction("sqrt", _MATH_1, raises=True),
    ScalarFunction("power", _fixed(DOUBLE, DOUBLE, DOUBLE), raises=True),
    ScalarFunction("exp", _MATH_1, raises=True),
    ScalarFunction("ln", _MATH_1, raises=True),
    ScalarFunction("log10", _MATH_1, raises=True),
    ScalarFunction("sign", _sign),
    ScalarFunction("upper", _TEXT_1),
    ScalarFunction("lower", _TEXT_1),
    ScalarFunction("length", _overloads(_fixed(INTEGER, VARCHAR), _fixed(INTEGER, BYTEA)),
                   summary="characters (of BYTEA: bytes)"),
    ScalarFunction("octet_length", _octets, summary="bytes"),
    ScalarFunction("substring", _fixed(VARCHAR, VARCHAR, INTEGER, INTEGER, optional=1),
                   summary="text, start (from 1), length", raises=True),
    ScalarFunction("trim", _fixed(VARCHAR, VARCHAR, VARCHAR, optional=1), summary="characters"),
    ScalarFunction("ltrim", _fixed(VARCHAR, VARCHAR, VARCHAR, optional=1)),
    ScalarFunction("rtrim", _fixed(VARCHAR, VARCHAR, VARCHAR, optional=1)),
    ScalarFunction("replace", _fixed(VARCHAR, VARCHAR, VARCHAR, VARCHAR)),
    ScalarFunction("concat", _concat, _NEVER, "all as text; NULLs are skipped"),
    ScalarFunction("left", _fixed(VARCHAR, VARCHAR, INTEGER)),
    ScalarFunction("right", _fixed(VARCHAR, VARCHAR, INTEGER)),
    ScalarFunction("position", _fixed(INTEGER, VARCHAR, VARCHAR),
                   summary="(part, text): where part begins in text, from 1; 0 if nowhere"),
    ScalarFunction("starts_with", _fixed(BOOLEAN, VARCHAR, VARCHAR), summary="text, prefix"),
    ScalarFunction("lpad", _fixed(VARCHAR, VARCHAR, INTEGER, VARCHAR, optional=1)),
    ScalarFunction("rpad", _fixed(VARCHAR, VARCHAR, INTEGER, VARCHAR, optional=1)),
    ScalarFunction("reverse", _TEXT_1),
    ScalarFunction("repeat", _fixed(VARCHAR, VARCHAR, INTEGER), raises=True),
    ScalarFunction("initcap", _TEXT_1),
    ScalarFunction("split_part", _fixed(VARCHAR, VARCHAR, VARCHAR, INTEGER), raises=True),
    ScalarFunction("md5", _TEXT_1, summary="32 hexadecimal digits"),
    ScalarFunction("check_length", _fixed(VARCHAR, VARCHAR, INTEGER), summary="text, at most",
                   raises=True),
    ScalarFunction("extract", _extract, summary="(field literal, date or time)"),
    ScalarFunction("date_trunc", _date_trunc, summary="(field literal, date or timestamp)"),
    ScalarFunction("add_interval", _add_interval, summary="x, months, days, µs", raises=True),
    ScalarFunction("current_date", _fixed(DATE), _NEVER, folds=False),
    ScalarFunction("current_timestamp", _fixed(TIMESTAMPTZ), _NEVER, folds=False),
)  # fmt: skip

SCALAR_FUNCTIONS: Final[dict[str, ScalarFunction]] = {f.name: f for f in _SCALARS}

OPERATORS: Final = frozenset(
    {"+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "||", "and", "or", "not", "neg"}
    | {"like", "ilike"}
    | {name for name in SCALAR_FUNCTIONS if name.startswith("is_")}
)
"""Names that are operators in SQL: not callable as f(x)."""

INTERNAL: Final = frozenset({"add_interval", "check_length"})
"""Names that only the binder writes."""

ALIASES: Final[dict[str, str]] = {
    "ceiling": "ceil",
    "pow": "power",
    "mod": "%",
    "substr": "substring",
    "btrim": "trim",
    "char_length": "length",
    "character_length": "length",
    "now": "current_timestamp",
    "transaction_timestamp": "current_timestamp",
    "dlog10": "log10",
    "log": "log10",
    "date_part": "extract",
    "len": "length",
    "ucase": "upper",
    "lcase": "lower",
}
"""Other SQL names -> catalog names, same arguments."""


def _sum(t: SqlType) -> Signature | None:
    if t.kind is Kind.BIGINT:
        return Signature((t,), decimal(DECIMAL_PRECISION_MAX, 0))
    if t.is_integer:
        return Signature((t,), BIGINT)
    if t.kind is Kind.DECIMAL:
        return Signature((t,), decimal(DECIMAL_PRECISION_MAX, t.scale or 0))
    return Signature((t,), t) if t.is_float else None


def _avg(t: SqlType) -> Signature | None:
    if t.is_integer or t.kind is Kind.DECIMAL:
        return Signature((t,), decimal(DECIMAL_PRECISION_MAX, max(16, t.scale or 0)))
    return Signature((t,), DOUBLE) if t.is_float else None


def _extreme(t: SqlType) -> Signature | None:
    t = VARCHAR if _unknown(t) else t
    return Signature((t,), t) if is_comparable(t) and t != BOOLEAN else None


def _count(t: SqlType) -> Signature | None:
    return Signature((VARCHAR if _unknown(t) else t,), BIGINT)


_AGGREGATES: Final = (
    AggregateFunction("count", _count, "rows, or rows where the argument is not NULL"),
    AggregateFunction("sum", _sum),
    AggregateFunction("avg", _avg),
    AggregateFunction("min", _extreme),
    AggregateFunction("max", _extreme),
)

AGGREGATE_FUNCTIONS: Final[dict[str, AggregateFunction]] = {f.name: f for f in _AGGREGATES}


def _any_value(types: Types) -> Signature | None:
    t = VARCHAR if len(types) == 1 and _unknown(types[0]) else types[0] if types else None
    return None if t is None or len(types) != 1 else Signature((t,), t)


def _offset_value(types: Types) -> Signature | None:
    """``lag``, ``lead``: (value, rows, default of the value's type)."""
    if not 1 <= len(types) <= 3:
        return None
    if len(types) > 1 and not (_unknown(types[1]) or is_implicit(types[1], INTEGER)):
        return None
    values = _same_type((types[0], *types[2:]))
    if values is None:
        return None
    t = VARCHAR if _unknown(values.result) else values.result
    return Signature((t, INTEGER, t)[: len(types)], t)


def _nth_value(types: Types) -> Signature | None:
    if len(types) != 2 or not (_unknown(types[1]) or is_implicit(types[1], INTEGER)):
        return None
    t = VARCHAR if _unknown(types[0]) else types[0]
    return Signature((t, INTEGER), t)


_WINDOW_FUNCTIONS: Final = (
    WindowFunction("row_number", _fixed(BIGINT), "the row's number in its partition, from 1"),
    WindowFunction("rank", _fixed(BIGINT), "the number of the row's first peer"),
    WindowFunction("dense_rank", _fixed(BIGINT), "the number of the row's group of peers"),
    WindowFunction("percent_rank", _fixed(DOUBLE), "(rank - 1) / (rows - 1); 0 for a single row"),
    WindowFunction("cume_dist", _fixed(DOUBLE), "the share of rows up to the row's last peer"),
    WindowFunction("ntile", _fixed(INTEGER, INTEGER), "n buckets of equal size, from 1"),
    WindowFunction("lag", _offset_value, "value, rows before (1), default (NULL)"),
    WindowFunction("lead", _offset_value, "value, rows after (1), default (NULL)"),
    WindowFunction("first_value", _any_value, "of the frame", framed=True),
    WindowFunction("last_value", _any_value, "of the frame", framed=True),
    WindowFunction("nth_value", _nth_value, "value, n: of the frame's n-th row", framed=True),
)

WINDOW_FUNCTIONS: Final[dict[str, WindowFunction]] = {f.name: f for f in _WINDOW_FUNCTIONS}


def callable_names() -> list[str]:
    """Every name that may be written as ``name(...)``: for suggestions and completion."""
    names = set(SCALAR_FUNCTIONS) - OPERATORS - INTERNAL
    return sorted(names | set(ALIASES) | set(AGGREGATE_FUNCTIONS) | set(WINDOW_FUNCTIONS))
