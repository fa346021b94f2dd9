"""Rules on scalar expressions, wherever they stand in the tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import is_not
from typing import Final

from remuda.datatypes.sql import BOOLEAN
from remuda.errors import InputError, ResourceError
from remuda.plan.expression import (
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Parameter,
    children,
    conjunction,
    conjuncts,
    transform,
    walk,
)
from remuda.plan.functions.catalog import SCALAR_FUNCTIONS, NullRule
from remuda.plan.logical import (
    Aggregate,
    DependentJoin,
    Filter,
    Join,
    Logical,
    MarkJoin,
    Project,
    Sort,
    Supplied,
    Unfold,
    Window,
)
from remuda.plan.windows import rewritten
from remuda.planner.algebra import FALSE, TRUE, disjunction, disjuncts, is_true
from remuda.planner.rules.rule import Rewriting, Rule

_NODES = (Filter, Join, MarkJoin, DependentJoin, Project, Aggregate, Sort, Unfold, Window)


def map_expressions(node: Logical, rewrite: Callable[[Expression], Expression]) -> Logical | None:
    """``node`` with each of its expressions rewritten; None when nothing changed."""

    def optional(expression: Expression | None) -> Expression | None:
        return None if expression is None else rewrite(expression)

    new: Logical = node
    match node:
        case Project(expressions=expressions):
            results = tuple([rewrite(expression) for expression in expressions])
            if any(map(is_not, results, expressions)):
                new = replace(node, expressions=results)
        case (
            Filter(condition=Expression() as condition)
            | Join(condition=Expression() as condition)
            | DependentJoin(condition=Expression() as condition)
        ):
            result = rewrite(condition)
            if result is not condition:
                new = replace(node, condition=result)
        case MarkJoin(guard=guard, condition=condition):
            new = replace(node, guard=optional(guard), condition=optional(condition))
        case Aggregate(calls=calls) if calls:
            new = replace(node, calls=tuple(old.rewritten(rewrite) for old in calls))
        case Window(calls=window_calls):
            new = replace(node, calls=tuple(rewritten(old, rewrite) for old in window_calls))
        case Unfold(calls=set_calls):
            new = replace(node, calls=tuple(old.rewritten(rewrite) for old in set_calls))
        case Sort(limit=limit, offset=offset) if limit is not None or offset is not None:
            new = replace(node, limit=optional(limit), offset=optional(offset))
        case Supplied(arguments=arguments) if arguments:
            new = replace(node, arguments=tuple(rewrite(e) for e in arguments))
    return None if new is node or new == node else new


_LEAVES: Final = (ColumnRef, Literal, Parameter)


def _deeply(rewrite: Callable[[Expression], Expression]) -> Callable[[Expression], Expression]:
    """``rewrite`` of each part that has parts; columns and constants stay as they are."""

    def deeply(expression: Expression) -> Expression:
        return expression if type(expression) in _LEAVES else transform(expression, rewrite)

    return deeply


# --- constant folding ----------------------------------------------------------------------


def _fold_constants(node: Logical, rewriting: Rewriting) -> Logical | None:
    fold = rewriting.context.fold
    if fold is None:
        return None

    def rewrite(expression: Expression) -> Expression:
        if type(expression) in _LEAVES:
            return expression
        if _is_null_by_strictness(expression):
            return Literal(expression.type, None)
        if not _foldable(expression):
            return expression
        try:
            return Literal(expression.type, fold(expression))
        except (InputError, ResourceError):
            # 1/0 may stand in an arm that is never taken: it fails when it is evaluated.
            return expression

    return map_expressions(node, _deeply(rewrite))


def _foldable(expression: Expression) -> bool:
    if isinstance(expression, Call):
        function = SCALAR_FUNCTIONS.get(expression.function)
        if function is None or not function.folds:
            return False
    parts = children(expression)
    return bool(parts) and all(isinstance(part, Literal) for part in parts)


def _is_null_by_strictness(expression: Expression) -> bool:
    """Whether it is a strict call with NULL among its arguments: the others are not computed, so
    ``a / 0 = NULL`` raises nothing. Constants are, as in PostgreSQL: ``1 / 0 = NULL`` raises."""
    if not isinstance(expression, Call):
        return False
    function = SCALAR_FUNCTIONS.get(expression.function)
    if function is None or function.nulls is not NullRule.STRICT:
        return False
    arguments = expression.arguments
    return any(isinstance(part, Literal) and part.value is None for part in arguments) and not any(
        has_failed_constant(part) for part in arguments
    )


def has_failed_constant(expression: Expression) -> bool:
    """Whether a part of it is constant and was not folded, because computing it raises."""
    return any(_foldable(part) for part in walk(expression))


FOLD_CONSTANTS = Rule("fold constants", _NODES, _fold_constants)


# --- boolean simplification ----------------------------------------------------------------

_NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_NEGATED_TESTS = {
    "is_null": "is_not_null",
    "is_not_null": "is_null",
    "is_true": "is_not_true",
    "is_not_true": "is_true",
    "is_false": "is_not_false",
    "is_not_false": "is_false",
    "is_distinct_from": "is_not_distinct_from",
    "is_not_distinct_from": "is_distinct_from",
}


def _simplify_booleans(node: Logical, _: Rewriting) -> Logical | None:
    return map_expressions(node, _deeply(_simplify))


def _simplify(expression: Expression) -> Expression:
    match expression:
        case Call(function="and" | "or"):
            return _simplify_connective(expression)
        case Call(function="not", arguments=(operand,)):
            return _simplify_not(expression, operand)
        case InList(operand=operand, values=values):
            unique = tuple(dict.fromkeys(values))
            if len(unique) == 1:
                return Call(BOOLEAN, "=", (operand, unique[0]))
            return expression if len(unique) == len(values) else replace(expression, values=unique)
        case Call(function="any_of", arguments=(Literal(value="="), operand, array)):
            return _elements_to_list(expression, operand, array)
        case Cast(type=type_, operand=operand) if operand.type == type_:
            return operand
        case Case(branches=branches, otherwise=otherwise):
            return _simplify_case(expression, branches, otherwise)
        case _:
            return expression


def _simplify_connective(call: Call) -> Expression:
    """Flatten, drop repeated and neutral parts, absorb: TRUE OR x is TRUE even if x is NULL."""
    is_and = call.function == "and"
    neutral, absorbing = (TRUE, FALSE) if is_and else (FALSE, TRUE)
    flat = conjuncts(call) if is_and else disjuncts(call)
    parts = tuple(part for part in dict.fromkeys(flat) if part != neutral)
    if absorbing in parts:
        before = parts[: parts.index(absorbing)]
        if not any(map(has_failed_constant, before)):
            return absorbing
        parts = (*before, absorbing)  # it raises before the other part could absorb it
    if not parts:
        return neutral
    if len(parts) == 1:
        return parts[0]
    if parts == call.arguments:
        return _equalities_to_list(call) if not is_and else call
    return Call(BOOLEAN, call.function, parts)


def _equalities_to_list(call: Call) -> Expression:
    """``a = 1 OR a = 2`` is ``a IN (1, 2)``."""
    values: list[Expression] = []
    operand: Expression | None = None
    for part in call.arguments:
        match part:
            case Call(
                function="=", arguments=(ColumnRef() as column, Literal() | Parameter() as v)
            ):
                found: tuple[Expression, ...] = (v,)
            case InList(operand=ColumnRef() as column, values=found):
                pass
            case _:
                return call
        if operand is not None and column != operand:
            return call
        operand = column
        values.extend(found)
    assert operand is not None
    return InList(BOOLEAN, operand, tuple(dict.fromkeys(values)))


def _elements_to_list(call: Call, operand: Expression, array: Expression) -> Expression:
    """``a = ANY (ARRAY[1, b])`` is ``a IN (1, b)``, NULLs included."""
    match array:
        case Call(function="array", arguments=elements) if elements:
            values = elements
        case Literal(value=tuple() | list() as items) if items and array.type.element:
            values = tuple(Literal(array.type.element, item) for item in items)
        case _:
            return call
    if any(value.type != operand.type for value in values):
        return call
    return _simplify(InList(BOOLEAN, operand, values))


def _simplify_not(expression: Expression, operand: Expression) -> Expression:
    match operand:
        case Literal(value=None):
            return operand
        case Literal(value=value):
            return FALSE if value else TRUE
        case Call(function="not", arguments=(inner,)):
            return inner
        case Call(function=function, arguments=arguments) if function in _NEGATED:
            return Call(BOOLEAN, _NEGATED[function], arguments)
        case Call(function=function, arguments=arguments) if function in _NEGATED_TESTS:
            return Call(BOOLEAN, _NEGATED_TESTS[function], arguments)
        case Call(function="and" | "or" as function, arguments=arguments):
            # De Morgan holds in three-valued logic too.
            parts = tuple(_simplify(Call(BOOLEAN, "not", (part,))) for part in arguments)
            return _simplify(Call(BOOLEAN, "or" if function == "and" else "and", parts))
        case _:
            return expression


def _simplify_case(
    expression: Case, branches: tuple[tuple[Expression, Expression], ...], otherwise: Expression
) -> Expression:
    kept: list[tuple[Expression, Expression]] = []
    for condition, value in branches:
        if isinstance(condition, Literal) and condition.value is not True:
            continue
        if is_true(condition):
            otherwise = value
            break
        kept.append((condition, value))
    if not kept:
        return otherwise
    if len(kept) == len(branches):
        return expression
    return Case(expression.type, tuple(kept), otherwise)


SIMPLIFY_BOOLEANS = Rule("simplify booleans", _NODES, _simplify_booleans)


# --- common conjuncts of OR ----------------------------------------------------------------


def _factor_or(node: Logical, _: Rewriting) -> Logical | None:
    """``(a AND b) OR (a AND c)`` is ``a AND (b OR c)``: finds the join condition of TPC-H 19."""
    return map_expressions(node, _deeply(_factor))


def _factor(expression: Expression) -> Expression:
    arms = [conjuncts(arm) for arm in disjuncts(expression)]
    if len(arms) < 2:
        return expression
    common = [part for part in dict.fromkeys(arms[0]) if all(part in arm for arm in arms[1:])]
    if not common:
        return expression
    rests = [tuple(part for part in arm if part not in common) for arm in arms]
    if all(rests):
        rest = disjunction(tuple(conjunction(arm) or TRUE for arm in rests))
        common.append(rest)
    result = conjunction(tuple(common))
    assert result is not None
    return result


FACTOR_OR = Rule("factor or", (Filter, Join), _factor_or)
