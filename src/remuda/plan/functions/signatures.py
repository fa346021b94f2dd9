"""The parts of the catalog of functions: entries, signatures, resolvers of argument types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, TypeAlias

from remuda.datatypes.coercion import common_type, is_implicit
from remuda.datatypes.sql import (
    DECIMAL_PRECISION_MAX,
    DOUBLE,
    QUOTIENT_STEP,
    Kind,
    SqlType,
    computed_decimal,
    decimal,
)

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


class StateForm(Enum):
    """How the state of a group travels between members. RESULT: as a value of the result's type
    (``count`` and ``sum`` add up, the others combine as they compute). PACKED: as bytes of its own.
    ROWS: not at all, all rows of a group must be on one member."""

    RESULT = "result"
    PACKED = "packed"
    ROWS = "rows"


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """``resolve`` gives the types of the arguments (after casts) and of the result. All skip rows
    with NULL in an argument that they compute with. ``counts``: over no rows the result is 0, of
    the others it is NULL. The argument keeps its own type (no cast before sum: the result is wider
    than the argument). ``ordered``: ORDER BY inside the call may change the result.
    ``within_group``: called WITHIN GROUP (ORDER BY x), ``resolve`` takes the type of x first.
    ``keeps_nulls``: rows whose first argument is NULL take part.

    ``combine`` names the aggregate that makes one result of the results of parts; without it the
    planner never groups rows that it has grouped before. ``idempotent``: a value that comes twice
    changes nothing, and results of parts combine as the values do. ``on_spark``: Spark's aggregate
    of this name gives the same result for every input (``sql.spark_sql.aggregates`` has those that
    must be written in another way). ``oid`` is the lowest number of PostgreSQL's functions of this
    name."""

    name: str
    resolve: Resolver
    summary: str = ""
    state: StateForm = StateForm.RESULT
    oid: int = 0
    combine: str = ""
    counts: bool = False
    idempotent: bool = False
    on_spark: bool = False
    keeps_nulls: bool = False
    ordered: bool = False
    within_group: bool = False


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """A function that is only called with OVER; aggregates can be called so as well. ``framed``:
    it looks at the rows of the frame, others at the whole partition."""

    name: str
    resolve: Resolver
    summary: str = ""
    framed: bool = False


# --- resolvers -------------------------------------------------------------------------------


def unknown(t: SqlType) -> bool:
    return t.kind is Kind.NULL


def bounded_decimal(precision: int, scale: int) -> SqlType:
    scale = min(scale, DECIMAL_PRECISION_MAX)
    return decimal(max(1, min(max(precision, scale), DECIMAL_PRECISION_MAX)), scale)


def least_digits(t: SqlType) -> int:
    """Digits after the point that every value of an exact type shows."""
    return t.digits[1] if t.digits is not None else t.scale or 0


def shown_like(result: SqlType, *operands: SqlType) -> SqlType:
    """``result`` of a sum or product, shown as its inexact operands are, if there are any."""
    steps = [t.digits[0] for t in operands if t.digits is not None]
    if not steps:
        return result
    least = max(least_digits(t) for t in operands)
    return replace(result, digits=(min(steps), min(least, result.scale or 0)))


SCALE_OF_INEXACT: Final = 20
"""Digits after the point of inexact results: PostgreSQL's, from 0.0001 up."""
_SCALE_OF_LARGE: Final = 16
_WHOLE_DIGITS_OF_WIDEST: Final = 18


def quotient_decimal(whole_digits: int | None, least: int) -> SqlType:
    """The type of a quotient with up to ``whole_digits`` digits before the point, shown with at
    least ``least`` digits behind it. None: the operands are as wide as any, which says nothing."""
    return inexact_decimal(whole_digits, least, QUOTIENT_STEP)


def inexact_decimal(whole_digits: int | None, least: int, step: int) -> SqlType:
    room = DECIMAL_PRECISION_MAX - (whole_digits or _WHOLE_DIGITS_OF_WIDEST)
    scale = max(_SCALE_OF_LARGE, least, min(SCALE_OF_INEXACT, room))
    return computed_decimal(min(scale, DECIMAL_PRECISION_MAX), step, least)


def fixed(result: SqlType, *arguments: SqlType, optional: int = 0) -> Resolver:
    """Arguments of fixed types, the last ``optional`` of which may be left out."""

    def resolve(types: Types) -> Signature | None:
        if not len(arguments) - optional <= len(types) <= len(arguments):
            return None
        wanted = arguments[: len(types)]
        if not all(unknown(t) or is_implicit(t, w) for t, w in zip(types, wanted, strict=True)):
            return None
        # Text keeps its length and kind: they do not matter to any function.
        kept = tuple(
            t if t.is_text and w.is_text else w for t, w in zip(types, wanted, strict=True)
        )
        return Signature(kept, result)

    return resolve


def overloads(*resolvers: Resolver) -> Resolver:
    """The first that fits; untyped arguments thus prefer the first."""

    def resolve(types: Types) -> Signature | None:
        for resolver in resolvers:
            found = resolver(types)
            if found is not None:
                return found
        return None

    return resolve


def scaled(t: SqlType) -> tuple[int, int]:
    return t.precision or DECIMAL_PRECISION_MAX, t.scale or 0


def same_numeric(types: Types) -> Signature | None:
    """One number, the result of the same type (``neg``, ``abs``)."""
    if len(types) != 1:
        return None
    t = DOUBLE if unknown(types[0]) else types[0]
    return Signature((t,), t) if t.is_numeric else None


def same_type(types: Types) -> Signature | None:
    """``coalesce``, ``greatest``, ``least``: the common type of all."""
    common = common_type(types) if types else None
    if common is None:
        return None
    return Signature((common,) * len(types), common)
