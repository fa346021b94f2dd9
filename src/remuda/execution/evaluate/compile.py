"""Expressions to evaluators: every node becomes one closure over the closures of its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.errors import InternalError, WrongParameters
from remuda.execution.batch import Batch
from remuda.execution.evaluate import conditional
from remuda.execution.evaluate.arithmetic import arithmetic
from remuda.execution.evaluate.casts import cast
from remuda.execution.evaluate.comparison import COMPARISONS, comparison, distinctness, in_list
from remuda.execution.evaluate.datetimes import DATETIME_FUNCTIONS, OVERLAPS
from remuda.execution.evaluate.encodings import ENCODING_FUNCTIONS
from remuda.execution.evaluate.integers import INTEGER_FUNCTIONS
from remuda.execution.evaluate.intervals import INTERVAL_FUNCTIONS
from remuda.execution.evaluate.kernel import (
    Evaluator,
    Kernel,
    column,
    physical_of,
    scalar_of,
    strict,
)
from remuda.execution.evaluate.mathematics import MATHEMATICS
from remuda.execution.evaluate.nested import OWN_NESTED, STRICT_NESTED
from remuda.execution.evaluate.numbers import Value
from remuda.execution.evaluate.pieces import in_pieces
from remuda.execution.evaluate.privileges import PRIVILEGES
from remuda.execution.evaluate.quoting import OWN_NULLS, QUOTING_STRICT
from remuda.execution.evaluate.regex import REGEX_FUNCTIONS
from remuda.execution.evaluate.sampling import sampled
from remuda.execution.evaluate.second_fractions import interval_fields, round_fraction
from remuda.execution.evaluate.session_zones import SESSION_ZONE_FUNCTIONS
from remuda.execution.evaluate.temporal import add_interval, date_trunc, extract
from remuda.execution.evaluate.text import TEXT_FUNCTIONS
from remuda.execution.evaluate.trigonometry import TRIGONOMETRY
from remuda.execution.evaluate.volatile import VOLATILE, set_seed
from remuda.execution.evaluate.zones import ZONE_FUNCTIONS
from remuda.plan.expression import (
    Call,
    Case,
    Cast,
    ColumnId,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Parameter,
    children,
    walk,
)

import pyarrow.compute as pc  # isort: skip


def _negation(_call: Call) -> Kernel:
    return lambda values, _: pc.invert(values[0])


STRICT: dict[str, Callable[[Call], Kernel]] = {
    **dict.fromkeys(("+", "-", "*", "/", "%", "neg"), arithmetic),
    **dict.fromkeys(COMPARISONS, comparison),
    **MATHEMATICS,
    **TEXT_FUNCTIONS,
    **TRIGONOMETRY,
    **INTEGER_FUNCTIONS,
    **DATETIME_FUNCTIONS,
    **REGEX_FUNCTIONS,
    **ENCODING_FUNCTIONS,
    **QUOTING_STRICT,
    **INTERVAL_FUNCTIONS,
    **ZONE_FUNCTIONS,
    **SESSION_ZONE_FUNCTIONS,
    **PRIVILEGES,
    **STRICT_NESTED,
    "mod": arithmetic,
    "not": _negation,
    "setseed": set_seed,
    "extract": extract,
    "date_trunc": date_trunc,
    "add_interval": add_interval,
    "sampled": sampled,
    "round_fraction": round_fraction,
    "interval_fields": interval_fields,
}
_NULL_TESTS = (
    "is_null", "is_not_null", "is_true", "is_false", "is_not_true", "is_not_false",
)  # fmt: skip
_OWN_NULLS = {**OWN_NULLS, **OVERLAPS}
_LAZY = ("and", "or", "single_row", "coalesce", "nullif", "greatest", "least")
FUNCTIONS = (
    frozenset(STRICT)
    | frozenset(_NULL_TESTS)
    | frozenset(_LAZY)
    | frozenset(_OWN_NULLS)
    | frozenset(OWN_NESTED)
    | frozenset(VOLATILE)
    | {
        "is_distinct_from",
        "is_not_distinct_from",
    }
)
"""Every function of the catalog that can be evaluated."""

_AT_ONCE = frozenset(
    {"+", "-", "*", "/", "%", "mod", "neg", "not", "extract", "date_trunc", "setseed", "sampled"}
    | COMPARISONS
)
"""Arrow or NumPy compute them for a whole batch within milliseconds, or they depend on the rows
before."""
_EACH_ROW = frozenset({*VOLATILE, "setseed"})
_SAFE = frozenset(
    {"and", "or", "not", "like", "ilike", "is_distinct_from", "is_not_distinct_from"}
    | {"coalesce", "nullif", "upper", "lower", "length", "starts_with", "extract", "date_trunc"}
    | COMPARISONS
    | set(_NULL_TESTS)
)


def can_fail(expression: Expression) -> bool:
    """False only if no value of the columns makes the expression raise."""
    return any(
        isinstance(part, Cast) or (isinstance(part, Call) and part.function not in _SAFE)
        for part in walk(expression)
        if not _is_constant(part)
    )


def _is_constant(expression: Expression) -> bool:
    return not any(
        isinstance(part, ColumnRef) or (isinstance(part, Call) and part.function in _EACH_ROW)
        for part in walk(expression)
    )


class Compiler:
    """Resolves columns by ``positions`` (column id -> position in the batch) and parameters."""

    def __init__(
        self, positions: Mapping[ColumnId, int], parameters: Sequence[PhysicalValue] = ()
    ) -> None:
        self._positions = positions
        self._parameters = parameters
        self._known: dict[int, tuple[Expression, Evaluator]] = {}
        """By the identity of the expression, which is kept with it: hashing one takes long."""

    def compile(self, expression: Expression) -> Evaluator:
        """The evaluator of ``expression``. Constant parts are computed once, when first needed
        (so that an arm of CASE that is never taken never raises)."""
        known = self._known.get(id(expression))
        if known is not None:
            return known[1]
        evaluator = self._node(expression)
        if children(expression) and _is_constant(expression):
            evaluator = _remembered(evaluator)
        self._known[id(expression)] = (expression, evaluator)
        return evaluator

    def column(self, expression: Expression) -> Callable[[Batch], pa.Array]:
        """Like ``compile``, always giving a column of the batch's rows."""
        evaluator = self.compile(expression)
        arrow = engine_type(expression.type)

        def evaluate(batch: Batch) -> pa.Array:
            if batch.rows == 0:
                return pa.array([], arrow)
            return column(evaluator(batch), batch.rows)

        return evaluate

    def _node(self, expression: Expression) -> Evaluator:
        match expression:
            case ColumnRef(column=identity):
                return self._column(identity, expression)
            case Literal(value=value):
                literal = scalar_of(value, expression.type)
                return lambda _: literal
            case Parameter(index=index):
                if index >= len(self._parameters):
                    raise WrongParameters(f"no value for parameter {index + 1}")
                parameter = scalar_of(self._parameters[index], expression.type)
                return lambda _: parameter
            case Cast(operand=operand):
                return self._cast(operand, expression.type)
            case Case(branches=branches, otherwise=otherwise):
                pairs = [(self.compile(when), self.compile(then)) for when, then in branches]
                return conditional.case(pairs, self.compile(otherwise), expression.type)
            case InList(operand=operand, values=values):
                return self._in_list(operand, values)
            case Call():
                return self._call(expression)
            case _:
                raise InternalError(f"cannot evaluate {type(expression).__name__}")

    def _column(self, identity: ColumnId, expression: Expression) -> Evaluator:
        position = self._positions.get(identity)
        if position is None:
            raise InternalError(f"column {expression} is not in the input {self._positions}")
        return lambda batch: batch.column(position)

    def _cast(self, operand: Expression, target: SqlType) -> Evaluator:
        if operand.type == target:
            return self.compile(operand)
        kernel = cast(operand.type, target)
        if not (operand.type.is_numeric and target.is_numeric):
            kernel = in_pieces(kernel, target, "CAST")
        return strict(kernel, [self.compile(operand)], engine_type(target))

    def _in_list(self, operand: Expression, values: tuple[Expression, ...]) -> Evaluator:
        search = in_list(operand.type, tuple(value.type for value in values))
        evaluators = [self.compile(part) for part in (operand, *values)]
        return _own_nulls(search, evaluators, null_first=True)

    def _call(self, call: Call) -> Evaluator:
        name = call.function
        arguments = [self.compile(argument) for argument in call.arguments]
        types = tuple(argument.type for argument in call.arguments)
        if name in ("and", "or"):
            guards = [can_fail(argument) for argument in call.arguments]
            return conditional.logic(name, arguments, guards)
        if name in _NULL_TESTS:
            return conditional.null_test(name, arguments[0])
        if name in ("is_distinct_from", "is_not_distinct_from"):
            return _own_nulls(distinctness(call), arguments, null_first=False)
        if name == "single_row":
            return conditional.single_row(arguments[0], arguments[1])
        if name == "coalesce":
            return conditional.coalesce(arguments, call.type)
        if name == "nullif":
            return conditional.nullif(arguments, (types[0], types[1]), call.type)
        if name in ("greatest", "least"):
            return conditional.extreme(name, arguments, call.type)
        if name in OWN_NESTED:
            nested = in_pieces(OWN_NESTED[name](call), call.type, name)
            return _own_nulls(nested, arguments, null_first=False)
        if name in VOLATILE:
            make_column = VOLATILE[name]
            return lambda batch: make_column(batch.rows)
        if name in _OWN_NULLS:
            own = in_pieces(_OWN_NULLS[name](call), call.type, name)
            return _own_nulls(own, arguments, null_first=False)
        make = STRICT.get(name)
        if make is None:
            raise InternalError(f"function {name} has no evaluator")
        kernel = make(call)
        if name not in _AT_ONCE:
            kernel = in_pieces(kernel, call.type, name)
        return strict(kernel, arguments, engine_type(call.type))


def _own_nulls(
    function: Callable[[list[Value], int], Value], arguments: list[Evaluator], null_first: bool
) -> Evaluator:
    """For functions that look at NULLs themselves; ``null_first``: NULL if the first one is."""
    null = pa.scalar(None, pa.bool_())

    def evaluate(batch: Batch) -> Value:
        values = [argument(batch) for argument in arguments]
        first = values[0] if values else None
        if null_first and isinstance(first, pa.Scalar) and not first.is_valid:
            return null
        constant = all(isinstance(value, pa.Scalar) for value in values)
        result = function(values, 1 if constant else batch.rows)
        return result[0] if constant and isinstance(result, pa.Array) else result

    return evaluate


_ONE_ROW = Batch([], 1)


def _remembered(evaluator: Evaluator) -> Evaluator:
    known: list[Value] = []

    def evaluate(_: Batch) -> Value:
        if not known:
            value = evaluator(_ONE_ROW)
            known.append(value[0] if isinstance(value, pa.Array) else value)
        return known[0]

    return evaluate


def evaluate_constant(
    expression: Expression, parameters: Sequence[PhysicalValue] = ()
) -> PhysicalValue:
    """The value of an expression without columns.

    Raises the DataErrors of its functions, and WrongParameters for a parameter without a value."""
    if isinstance(expression, Literal):
        return expression.value
    if isinstance(expression, Parameter) and expression.index < len(parameters):
        return parameters[expression.index]
    value = Compiler({}, parameters).compile(expression)(_ONE_ROW)
    return physical_of(value[0] if isinstance(value, pa.Array) else value, expression.type)
