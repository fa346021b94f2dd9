"""Simple expressions over one row of Python values: no column is made for these.

An Arrow column of one row costs a hundred times the sum that is computed from it. The functions
here give the same values and raise the same errors as those of ``compile``, which computes
everything else (``tests/execution/test_one_row.py`` compares them).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isinf
from operator import itemgetter
from typing import Any, Final, TypeAlias

from remuda.datatypes.sql import DOUBLE, Kind, SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.errors import NumericOverflow
from remuda.execution.evaluate.comparison import COMPARISONS
from remuda.execution.evaluate.compile import can_fail
from remuda.execution.evaluate.given import AS_GIVEN, is_given
from remuda.execution.evaluate.numbers import INTEGER_LIMITS
from remuda.plan.expression import (
    Call,
    Cast,
    ColumnId,
    ColumnRef,
    Expression,
    Literal,
    conjuncts,
    walk,
)

Scope: TypeAlias = tuple[PhysicalValue, ...]
"""The parameters of a statement, its literals, and an entry: see ``Formulas.scope``."""
Formula: TypeAlias = Callable[[Scope], Any]

_ARITHMETIC: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_COMPARED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_COMPARED_AS_GIVEN: Final = AS_GIVEN - {Kind.DOUBLE, Kind.DECIMAL}
"""Kinds whose values Python orders as SQL does, if both are of the kind."""


class Formulas:
    """The expressions of one statement that are computed over one entry.

    ``parameters`` is the number of its parameters; ``places`` maps column ids to positions in the
    entry.
    """

    def __init__(
        self,
        expressions: Iterable[Expression],
        parameters: int,
        places: Mapping[ColumnId, int],
    ) -> None:
        expressions = list(expressions)
        literals = [p for each in expressions for p in walk(each) if isinstance(p, Literal)]
        self._literals = tuple([literal.value for literal in literals])
        self._place_of = {id(literal): parameters + n for n, literal in enumerate(literals)}
        self._parameters = parameters
        self._columns = {
            column: parameters + len(literals) + place for column, place in places.items()
        }
        made = [(each, self._formula(each)) for each in expressions]
        self._known = {id(each): (each, formula) for each, formula in made if formula is not None}
        """By the identity of the expression, which is kept with it: hashing one takes long."""

    def of(self, expression: Expression) -> Formula | None:
        """The formula of one of the expressions; None: it is not simple. A formula raises the
        DataErrors of the expression."""
        known = self._known.get(id(expression))
        return None if known is None else known[1]

    def condition(self, expression: Expression) -> Formula | None:
        """Whether an entry passes a filter that is one of the expressions: the parts of an AND are
        tested one after the other, as ``Predicate`` does. None: it is not simple."""
        found = [self._formula(each) for each in conjuncts(expression)]
        parts = [each for each in found if each is not None]
        if len(parts) < len(found):
            return None
        if len(parts) == 1:
            return parts[0]

        def passes(scope: Scope) -> Any:
            for part in parts:  # noqa: SIM110 (a generator would be resumed for each)
                if not part(scope):
                    return False
            return True

        return passes

    def scope(self, values: Sequence[PhysicalValue], entry: Sequence[PhysicalValue]) -> Scope:
        """The argument of the formulas, for the values of the parameters and all columns of the
        entry (NULLs where there is none)."""
        return (*values, *self._literals, *entry)

    def _formula(self, expression: Expression) -> Formula | None:
        place = self._place(expression)
        if place is not None:
            return itemgetter(place)
        if isinstance(expression, Cast):
            operand = self._formula(expression.operand)
            return operand and _cast(operand, expression.operand.type, expression.type)
        if not isinstance(expression, Call):
            return None
        arguments = [self._formula(each) for each in expression.arguments]
        known = [each for each in arguments if each is not None]
        if len(known) < len(arguments):
            return None
        return _call(expression, known)

    def _place(self, expression: Expression) -> int | None:
        """Of a value that is there already."""
        if isinstance(expression, ColumnRef):
            return self._columns.get(expression.column)
        if not is_given(expression):
            return None
        if isinstance(expression, Literal):
            return self._place_of.get(id(expression))
        return expression.index if expression.index < self._parameters else None


def _cast(operand: Formula, source: SqlType, target: SqlType) -> Formula | None:
    if source == target:
        return operand
    if not source.is_integer:
        return None
    if target == DOUBLE:

        def as_float(scope: Scope) -> Any:
            value = operand(scope)
            return None if value is None else float(value)

        return as_float
    if not target.is_integer:
        return None
    return _bounded(operand, target)


def _bounded(number: Formula, type_: SqlType) -> Formula:
    name, limit = INTEGER_LIMITS[type_.kind]

    def bounded(scope: Scope) -> Any:
        value = number(scope)
        if value is not None and not -limit <= value < limit:
            raise NumericOverflow(f"{name} out of range")
        return value

    return bounded


def _call(call: Call, arguments: list[Formula]) -> Formula | None:
    name = call.function
    types = [argument.type for argument in call.arguments]
    if name in _ARITHMETIC and len(arguments) == 2:
        if call.type.is_integer and all(each.is_integer for each in types):
            return _integers(_ARITHMETIC[name], arguments[0], arguments[1], call.type)
        if all(each == DOUBLE for each in (call.type, *types)):
            return _floats(name, arguments[0], arguments[1])
        return None
    if name in COMPARISONS:
        return _comparison(_COMPARED[name], arguments[0], arguments[1], types[0], types[1])
    if name in ("and", "or"):
        return _logic(call, arguments)
    if name == "not":
        return _negation(arguments[0])
    if name in ("is_null", "is_not_null"):
        return _null_test(arguments[0], wanted=name == "is_null")
    if name == "coalesce" and call.type.kind in AS_GIVEN and all(t == call.type for t in types):
        return _coalesce(arguments)
    return None


def _integers(
    apply: Callable[[Any, Any], Any], left: Formula, right: Formula, type_: SqlType
) -> Formula:
    name, limit = INTEGER_LIMITS[type_.kind]

    def compute(scope: Scope) -> Any:
        first, second = left(scope), right(scope)
        if first is None or second is None:
            return None
        value = apply(first, second)
        if not -limit <= value < limit:
            raise NumericOverflow(f"{name} out of range")
        return value

    return compute


def _floats(function: str, left: Formula, right: Formula) -> Formula:
    apply = _ARITHMETIC[function]

    def compute(scope: Scope) -> Any:
        first, second = left(scope), right(scope)
        if first is None or second is None:
            return None
        value = apply(first, second)
        if isinf(value) and not isinf(first) and not isinf(second):
            raise NumericOverflow("value out of range: overflow")
        if function == "*" and value == 0 and first != 0 and second != 0:
            raise NumericOverflow("value out of range: underflow")
        return value

    return compute


def _comparison(
    apply: Callable[[Any, Any], Any],
    left: Formula,
    right: Formula,
    first_type: SqlType,
    second_type: SqlType,
) -> Formula | None:
    if first_type == second_type == DOUBLE:
        return _comparison_of_floats(apply, left, right)
    same = first_type.kind is second_type.kind and first_type.kind in _COMPARED_AS_GIVEN
    if not (same or (first_type.is_integer and second_type.is_integer)):
        return None

    def compare(scope: Scope) -> Any:
        first, second = left(scope), right(scope)
        return None if first is None or second is None else apply(first, second)

    return compare


def _comparison_of_floats(
    apply: Callable[[Any, Any], Any], left: Formula, right: Formula
) -> Formula:
    """NaN equals itself and is above every number."""

    def compare(scope: Scope) -> Any:
        first, second = left(scope), right(scope)
        if first is None or second is None:
            return None
        no_number, neither = first != first, second != second  # noqa: PLR0124 (NaN)
        if no_number or neither:
            return apply(no_number, neither)
        return apply(first, second)

    return compare


def _logic(call: Call, arguments: list[Formula]) -> Formula | None:
    """None where a constant part can raise: columns compute it even if the parts before it have
    decided."""
    if any(_constant_can_fail(each) for each in call.arguments[1:]):
        return None
    decides = call.function == "or"

    def decide(scope: Scope) -> Any:
        result: bool | None = not decides
        for argument in arguments:
            value = argument(scope)
            if value is decides:
                return decides
            if value is None:
                result = None
        return result

    return decide


def _constant_can_fail(expression: Expression) -> bool:
    if can_fail(expression):
        return False  # it is computed only where the parts before it leave that open
    return any(
        isinstance(each, Cast) or (isinstance(each, Call) and each.function in _ARITHMETIC)
        for each in walk(expression)
    )


def _negation(operand: Formula) -> Formula:
    def negate(scope: Scope) -> Any:
        value = operand(scope)
        return None if value is None else not value

    return negate


def _null_test(operand: Formula, *, wanted: bool) -> Formula:
    def test(scope: Scope) -> Any:
        return (operand(scope) is None) is wanted

    return test


def _coalesce(arguments: list[Formula]) -> Formula:
    def first(scope: Scope) -> Any:
        for argument in arguments:
            value = argument(scope)
            if value is not None:
                return value
        return None

    return first
