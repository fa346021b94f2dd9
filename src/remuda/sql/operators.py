"""Handlers of leaves and operators (see ``expressions``)."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from remuda.datatypes.coercion import as_decimal, integer_range
from remuda.datatypes.sql import BOOLEAN, INTERVAL, NULL, VARCHAR, SqlType
from remuda.errors import DataError, Position, SqlSyntaxError, TypeMismatch
from remuda.plan.expression import Call, Case, Expression, InList, Literal
from remuda.sql.calls import interval_arithmetic, is_interval
from remuda.sql.constants import negated, number_literal
from remuda.sql.context import Context
from remuda.sql.conversion import is_untyped
from remuda.sql.expressions import ExpressionBinder, Handler, register
from remuda.sql.places import position_at, position_of, span_of
from remuda.sql.scope import resolve_column
from remuda.sql.types import is_bare_decimal, type_from_tree

# --- leaves ----------------------------------------------------------------------------------


def _column(binder: ExpressionBinder, node: exp.Column) -> Expression:
    if isinstance(node.this, exp.Star):
        raise binder.context.error(SqlSyntaxError, "* is not allowed here", node)
    return resolve_column(binder.context, binder.scope, node)


def _literal(binder: ExpressionBinder, node: exp.Literal) -> Expression:
    if node.args["is_string"]:
        return Literal(NULL, str(node.this))
    try:
        return number_literal(str(node.this))
    except DataError as error:
        raise binder.context.located(error, node) from None


def _null(binder: ExpressionBinder, node: exp.Expr) -> Expression:  # noqa: ARG001
    return Literal(NULL, None)


def _boolean(binder: ExpressionBinder, node: exp.Boolean) -> Expression:  # noqa: ARG001
    return Literal(BOOLEAN, bool(node.this))


def _parameter(binder: ExpressionBinder, node: exp.Parameter) -> Expression:
    return binder.context.parameter(int(node.this.this) - 1)


def _paren(binder: ExpressionBinder, node: exp.Paren) -> Expression:
    return binder.bind(node.this)


def _star(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    raise binder.context.error(SqlSyntaxError, "* is not allowed here", node)


# --- logic -----------------------------------------------------------------------------------


def flattened(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """The operands of a chain of one binary operator, in order, without recursion."""
    parts: list[exp.Expr] = []
    pending = [node]
    while pending:
        current = pending.pop()
        if type(current) is kind:
            pending += [current.args["expression"], current.args["this"]]
        else:
            parts.append(current)
    return parts


def _connector(name: str, clause: str) -> Handler:
    def bind(binder: ExpressionBinder, node: exp.Expr) -> Expression:
        parts = tuple(binder.condition(part, clause) for part in flattened(node, type(node)))
        return Call(BOOLEAN, name, parts)

    return bind


def _not(binder: ExpressionBinder, node: exp.Not) -> Expression:
    return negation(binder.condition(node.this, "NOT"))


_OPPOSITE: Final = {
    "is_null": "is_not_null",
    "is_true": "is_not_true",
    "is_false": "is_not_false",
    "is_distinct_from": "is_not_distinct_from",
}
_OPPOSITES: Final = {**_OPPOSITE, **{b: a for a, b in _OPPOSITE.items()}}


def negation(expression: Expression) -> Expression:
    if isinstance(expression, Call):
        if expression.function in _OPPOSITES:
            return Call(BOOLEAN, _OPPOSITES[expression.function], expression.arguments)
        if expression.function == "not":
            return expression.arguments[0]
    return Call(BOOLEAN, "not", (expression,))


def _is(binder: ExpressionBinder, node: exp.Is) -> Expression:
    test = node.expression
    if isinstance(test, exp.Null):
        result: Expression = Call(BOOLEAN, "is_null", (binder.settled(node.this),))
    elif isinstance(test, exp.Boolean):
        name = "is_true" if test.this else "is_false"
        result = Call(BOOLEAN, name, (binder.condition(node.this, f"IS {str(test.this).upper()}"),))
    else:
        raise binder.context.unsupported("this form of IS", node)
    return negation(result) if node.args.get("negate") else result


def _comparison(name: str) -> Handler:
    def bind(binder: ExpressionBinder, node: exp.Expr) -> Expression:
        left, right = node.args["this"], node.args["expression"]
        if isinstance(right, exp.Any | exp.All):
            raise binder.context.unsupported("a comparison with ANY or ALL", right)
        return binder.call(name, left, right)

    return bind


def _between(binder: ExpressionBinder, node: exp.Between) -> Expression:
    low, high = node.args["low"], node.args["high"]

    def inside(first: exp.Expr, last: exp.Expr) -> Expression:
        parts = (binder.call(">=", node.this, first), binder.call("<=", node.this, last))
        return Call(BOOLEAN, "and", parts)

    if node.args.get("symmetric"):
        return Call(BOOLEAN, "or", (inside(low, high), inside(high, low)))
    return inside(low, high)


def _in(binder: ExpressionBinder, node: exp.In) -> Expression:
    if node.args.get("query") is not None:
        raise binder.context.unsupported(
            "IN (subquery) below OR or inside an expression",
            node,
            hint="It is supported as a condition of WHERE that stands alone or under AND.",
        )
    values = node.expressions
    if not values:
        raise binder.context.error(SqlSyntaxError, "the list of IN is empty", node)
    operand = binder.bind(node.this)
    if not isinstance(operand, Literal) and not is_untyped(operand):
        fast = _literal_list(operand.type, values)
        if fast is not None:
            return InList(BOOLEAN, operand, fast)
    bound = [operand, *(binder.bind(value) for value in values)]
    unified = binder.convert.unified(bound, [node.this, *values], "IN")
    return InList(BOOLEAN, unified[0], unified[1:])


def _literal_list(target: SqlType, values: list[exp.Expr]) -> tuple[Expression, ...] | None:
    """Long lists of plain literals without the general machinery; None if any is not plain."""
    found: list[Expression] = []
    if target.is_integer:
        low, high = integer_range(target.kind)
    elif not target.is_text:
        return None
    for value in values:
        if type(value) is not exp.Literal or value.args["is_string"] is not target.is_text:
            return None
        text = str(value.this)
        if target.is_text:
            found.append(Literal(VARCHAR, text))
            continue
        if not text.isdecimal() or len(text) > 19 or not low <= (number := int(text)) <= high:
            return None
        found.append(Literal(target, number))
    return tuple(found)


def _like(name: str) -> Handler:
    def bind(binder: ExpressionBinder, node: exp.Expr) -> Expression:
        return _like_call(binder, name, node, ())

    return bind


def _escape(binder: ExpressionBinder, node: exp.Escape) -> Expression:
    inner = node.this
    if not isinstance(inner, exp.Like | exp.ILike):
        raise binder.context.error(SqlSyntaxError, "ESCAPE belongs to LIKE", node)
    binder.context.only(inner, "this", "expression", "negate")
    escape = node.args["expression"]
    if isinstance(escape, exp.Literal) and len(str(escape.this)) > 1:
        raise binder.context.error(
            TypeMismatch, "invalid escape string: it must be empty or one character", escape
        )
    return _like_call(binder, "like" if type(inner) is exp.Like else "ilike", inner, (escape,))


def _like_call(
    binder: ExpressionBinder, name: str, node: exp.Expr, more: tuple[exp.Expr, ...]
) -> Expression:
    pattern = node.args["expression"]
    if isinstance(pattern, exp.Any | exp.All):
        raise binder.context.unsupported(f"{name.upper()} ANY", pattern)
    result = binder.call(name, node.args["this"], pattern, *more, shown=name.upper())
    return negation(result) if node.args.get("negate") else result


# --- arithmetic and text -----------------------------------------------------------------------


def _arithmetic(name: str) -> Handler:
    def bind(binder: ExpressionBinder, node: exp.Expr) -> Expression:
        left, right = node.args["this"], node.args["expression"]
        if is_interval(left) or is_interval(right):
            return interval_arithmetic(binder, name, left, right, node)
        return binder.call(name, left, right)

    return bind


def _negative(binder: ExpressionBinder, node: exp.Neg) -> Expression:
    operand = binder.bind(node.this)
    if isinstance(operand, Literal) and not is_untyped(operand):
        folded = negated(operand)
        if folded is not None:
            return folded
    return binder.convert.call("neg", [operand], [node.this], node)


def _case(binder: ExpressionBinder, node: exp.Case) -> Expression:
    operand = node.args.get("this")
    branches, otherwise = node.args["ifs"], node.args.get("default")
    conditions: list[Expression] = []
    values: list[Expression] = []
    places: list[exp.Expr | None] = []
    for branch in branches:
        binder.context.only(branch, "this", "true")
        if operand is None:
            conditions.append(binder.condition(branch.this, "CASE/WHEN"))
        else:
            conditions.append(binder.call("=", operand, branch.this))
        values.append(binder.bind(branch.args["true"]))
        places.append(branch.args["true"])
    values.append(Literal(NULL, None) if otherwise is None else binder.bind(otherwise))
    places.append(otherwise)
    unified = binder.convert.unified(values, places, "CASE")
    return Case(unified[0].type, tuple(zip(conditions, unified[:-1], strict=True)), unified[-1])


def _cast(binder: ExpressionBinder, node: exp.Cast) -> Expression:
    place = _type_position(binder.context, node)
    to = node.args["to"]
    operand = binder.bind(node.this)
    if is_bare_decimal(to) and operand.type.is_numeric and not operand.type.is_float:
        return binder.convert.explicit(operand, as_decimal(operand.type), node)
    target = type_from_tree(to, place)
    if target == INTERVAL:
        raise binder.context.unsupported("INTERVAL outside date arithmetic", node)
    return binder.convert.explicit(operand, target, node)


def _type_position(context: Context, node: exp.Cast) -> Position | None:
    """Types carry no place: look for the word behind the operand."""
    to = node.args["to"]
    kind = to.args.get("kind")
    word = kind.name if isinstance(kind, exp.Expr) else str(getattr(to.this, "value", ""))
    span = span_of(node.this)
    if span is None or not word:
        return position_of(context.text, node)
    at = context.text.lower().find(word.lower(), span[1])
    return position_of(context.text, node) if at < 0 else position_at(context.text, at, len(word))


def _scalar_subquery(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    return binder.surroundings.scalar_subquery(node)


def _exists(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    raise binder.context.unsupported(
        "EXISTS below OR or inside an expression",
        node,
        hint="It is supported as a condition of WHERE that stands alone or under AND.",
    )


def _register_all() -> None:
    binary = ("this", "expression")
    register(exp.Column, _column, "this", "table", "db", "catalog")
    register(exp.Literal, _literal, "this", "is_string")
    register(exp.Null, _null)
    register(exp.Boolean, _boolean, "this")
    register(exp.Parameter, _parameter, "this")
    register(exp.Paren, _paren, "this")
    register(exp.Star, _star)
    register(exp.And, _connector("and", "AND"), *binary)
    register(exp.Or, _connector("or", "OR"), *binary)
    register(exp.Not, _not, "this")
    register(exp.Is, _is, *binary, "negate")
    comparisons: tuple[tuple[type[exp.Expr], str], ...] = (
        (exp.EQ, "="),
        (exp.NEQ, "<>"),
        (exp.LT, "<"),
        (exp.LTE, "<="),
        (exp.GT, ">"),
        (exp.GTE, ">="),
        (exp.NullSafeEQ, "is_not_distinct_from"),
        (exp.NullSafeNEQ, "is_distinct_from"),
    )
    for kind, name in comparisons:
        register(kind, _comparison(name), *binary)
    register(exp.Between, _between, "this", "low", "high", "symmetric")
    register(exp.In, _in, "this", "expressions", "query")
    register(exp.Like, _like("like"), *binary, "negate")
    register(exp.ILike, _like("ilike"), *binary, "negate")
    register(exp.Escape, _escape, *binary)
    arithmetic: tuple[tuple[type[exp.Expr], str], ...] = (
        (exp.Add, "+"),
        (exp.Sub, "-"),
        (exp.Mul, "*"),
        (exp.Div, "/"),
        (exp.Mod, "%"),
        (exp.DPipe, "||"),
        (exp.Pow, "power"),
    )
    for kind, name in arithmetic:
        register(kind, _arithmetic(name), *binary, "safe", "typed")
    register(exp.Neg, _negative, "this")
    register(exp.Case, _case, "this", "ifs", "default")
    register(exp.Cast, _cast, "this", "to")
    register(exp.Subquery, _scalar_subquery, "this")
    register(exp.Exists, _exists, "this")


_register_all()
