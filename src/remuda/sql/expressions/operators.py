"""Handlers of leaves and operators (see ``expressions``)."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from remuda.datatypes.coercion import as_decimal, integer_range
from remuda.datatypes.sql import (
    BOOLEAN,
    BYTEA,
    DATE,
    DECIMAL_PRECISION_MAX,
    INTERVAL,
    NULL,
    TRIMMED_STEP,
    VARCHAR,
    Kind,
    SqlType,
    computed_decimal,
    decimal,
)
from remuda.errors import (
    DataError,
    InvalidEscape,
    InvalidText,
    Position,
    SqlSyntaxError,
    UndefinedMap,
)
from remuda.plan.expression import Call, Case, Expression, InList, Literal
from remuda.sql.expressions.bits import register_operators
from remuda.sql.expressions.constants import negated, number_literal
from remuda.sql.expressions.conversion import is_untyped
from remuda.sql.expressions.expressions import ExpressionBinder, Handler, register
from remuda.sql.expressions.intervals import interval_sum
from remuda.sql.expressions.negation import negation
from remuda.sql.expressions.nested import (
    array_quantifier,
    compared_with_array,
    concatenation,
    empty_array,
    fields_null,
)
from remuda.sql.expressions.patterns import similar
from remuda.sql.expressions.row_values import row_parts, row_values, rows_of_literals
from remuda.sql.expressions.subqueries import compared, quantified, quantifier
from remuda.sql.scope.context import Context, identifier
from remuda.sql.scope.scope import all_levels, columns_of_alias, resolve_column, whole_row
from remuda.sql.text.places import position_at, position_of, span_of
from remuda.sql.text.types import BARE_SCALE, is_bare_decimal, type_from_tree

# --- leaves ----------------------------------------------------------------------------------


def _column(binder: ExpressionBinder, node: exp.Column) -> Expression:
    if isinstance(node.this, exp.Star):
        alias = identifier(node.args["table"]) if node.args.get("table") else ""
        row = whole_row(binder.scope, alias)
        if row is not None:
            return row
        if alias and columns_of_alias(binder.scope, alias) is None:
            raise binder.context.error(
                UndefinedMap, f'missing FROM-clause entry for table "{alias}"', node
            )
        raise binder.context.error(SqlSyntaxError, "* is not allowed here", node)
    if _is_user(binder, node):
        return binder.bind(exp.CurrentUser())
    return resolve_column(binder.context, binder.scope, node)


def _is_user(binder: ExpressionBinder, node: exp.Column) -> bool:
    """Whether ``user`` or ``current_role`` stands for a value, and not for a column."""
    word = node.this
    if node.args.get("table") is not None or word.args.get("quoted"):
        return False
    name = str(word.this).lower()
    return name in ("user", "current_role") and not any(
        level.candidates(name) or name in level.relations for level in all_levels(binder.scope)
    )


def _bytes(binder: ExpressionBinder, node: exp.HexString) -> Expression:
    """X'0aff': the standard's literal of binary strings (PostgreSQL's is one of bits)."""
    digits = str(node.this)
    span = span_of(node)
    if span is not None and span[1] - span[0] + 1 == len(digits) + len("0x"):
        raise binder.context.unsupported(
            f"0x{digits}, which is a number to some and bytes to others,",
            node,
            f"Write {int(digits, 16)}, or x'{digits}'.",
        )
    if len(digits) % 2 or not set(digits.lower()) <= set("0123456789abcdef"):
        raise binder.context.error(
            InvalidText,
            f'invalid hexadecimal digits: "{digits[:60]}"',
            node,
            hint="A byte has two digits, 0 to 9 and a to f.",
        )
    return Literal(BYTEA, bytes.fromhex(digits))


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


def _is(binder: ExpressionBinder, node: exp.Is) -> Expression:
    test = node.expression
    row = row_values(binder, node.this)
    if isinstance(test, exp.Null) and row:
        # IS NOT NULL of a row: no value is NULL; so it is not the opposite of IS NULL.
        name = "is_not_null" if node.args.get("negate") else "is_null"
        tests = tuple(Call(BOOLEAN, name, (binder.settled(part),)) for part in row)
        return tests[0] if len(tests) == 1 else Call(BOOLEAN, "and", tests)
    if isinstance(test, exp.Null):
        operand = binder.settled(node.this)
        if operand.type.kind is Kind.ROW:
            return fields_null(operand, bool(node.args.get("negate")))
        result: Expression = Call(BOOLEAN, "is_null", (operand,))
    elif isinstance(test, exp.Boolean):
        name = "is_true" if test.this else "is_false"
        result = Call(BOOLEAN, name, (binder.condition(node.this, f"IS {str(test.this).upper()}"),))
    else:
        raise binder.context.unsupported("this form of IS", node)
    return negation(result) if node.args.get("negate") else result


def _comparison(name: str) -> Handler:
    def bind(binder: ExpressionBinder, node: exp.Expr) -> Expression:
        left, right = node.args["this"], node.args["expression"]
        found = quantifier(right)
        if found is not None:
            return quantified(binder, name, node, *found)
        items = array_quantifier(right)
        if items is not None and name.startswith("is_"):
            raise binder.context.error(
                SqlSyntaxError, "IS DISTINCT FROM takes no ANY or ALL of an array", right
            )
        if items is not None:
            return compared_with_array(binder, name, left, items)
        return _compared(binder, name, left, right, node)

    return bind


def _between(binder: ExpressionBinder, node: exp.Between) -> Expression:
    low, high = node.args["low"], node.args["high"]

    def inside(first: exp.Expr, last: exp.Expr) -> Expression:
        sides = ((">=", node.this, first), ("<=", node.this, last))
        return Call(BOOLEAN, "and", tuple(_compared(binder, *side, node) for side in sides))

    if node.args.get("symmetric"):
        return Call(BOOLEAN, "or", (inside(low, high), inside(high, low)))
    return inside(low, high)


def _compared(
    binder: ExpressionBinder, name: str, left: exp.Expr, right: exp.Expr, node: exp.Expr
) -> Expression:
    rows = compared(binder, name, left, right, node)
    return binder.call(name, left, right) if rows is None else rows


def _in(binder: ExpressionBinder, node: exp.In) -> Expression:
    values = node.expressions
    query = node.args.get("query")
    if query is None and len(values) == 1 and isinstance(values[0], exp.Values):
        query = values[0]
    if query is not None:
        return quantified(binder, "=", node, query)
    if not values:
        raise binder.context.error(SqlSyntaxError, "the list of IN is empty", node)
    if row_parts(node.this) is not None:
        rows = rows_of_literals(binder, node)
        if rows is not None:
            return quantified(binder, "=", node, rows)
        parts = tuple(_compared(binder, "=", node.this, value, node) for value in values)
        return parts[0] if len(parts) == 1 else Call(BOOLEAN, "or", parts)
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
            found.append(Literal(VARCHAR, text.rstrip(" ") if target.kind is Kind.CHAR else text))
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
    if isinstance(inner, exp.SimilarTo):
        return similar(binder, inner, (node.args["expression"],))
    if not isinstance(inner, exp.Like | exp.ILike):
        raise binder.context.error(SqlSyntaxError, "ESCAPE belongs to LIKE", node)
    binder.context.only(inner, "this", "expression", "negate")
    escape = node.args["expression"]
    if isinstance(escape, exp.Literal) and len(str(escape.this)) > 1:
        raise binder.context.error(
            InvalidEscape,
            "invalid escape string",
            escape,
            hint="Escape string must be empty or one character.",
        )
    return _like_call(binder, "like" if type(inner) is exp.Like else "ilike", inner, (escape,))


def _like_call(
    binder: ExpressionBinder, name: str, node: exp.Expr, more: tuple[exp.Expr, ...]
) -> Expression:
    pattern = node.args["expression"]
    found = quantifier(pattern)
    if found is not None and not more:
        result = quantified(binder, name, node, *found)
        return negation(result) if node.args.get("negate") else result
    items = array_quantifier(pattern)
    if items is not None and not more:
        negate = bool(node.args.get("negate"))
        return compared_with_array(binder, name, node.args["this"], items, negate)
    result = binder.call(name, node.args["this"], pattern, *more, shown=name.upper())
    return negation(result) if node.args.get("negate") else result


# --- arithmetic and text -----------------------------------------------------------------------


def _arithmetic(name: str) -> Handler:
    def bind(binder: ExpressionBinder, node: exp.Expr) -> Expression:
        places = node.args["this"], node.args["expression"]
        operands = binder.bind(places[0]), binder.bind(places[1])
        if name in ("+", "-") and INTERVAL in (operands[0].type, operands[1].type):
            return interval_sum(binder, name, operands, places)
        bound = binder.convert.call(name, operands, places, None)
        return concatenation(bound) if name == "||" else bound

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


def _date(binder: ExpressionBinder, node: exp.Date) -> Expression:
    """``date(x)``, a cast that is written as a call."""
    return binder.convert.explicit(binder.bind(node.this), DATE, node.this)


def _cast(binder: ExpressionBinder, node: exp.Cast) -> Expression:
    place = _type_position(binder.context, node)
    to = node.args["to"]
    name = _own_type(to)
    if name == "jsonpath":
        text = binder.convert.explicit(binder.bind(node.this), VARCHAR, node.this)
        return binder.convert.call("jsonpath", [text], [node.this], node)
    if empty_array(node.this) and (target := type_from_tree(to, place)).element is not None:
        return Literal(target, ())
    operand = binder.bind(node.this)
    if is_bare_decimal(to) and operand.type.is_numeric and not operand.type.is_float:
        return binder.convert.explicit(operand, as_decimal(operand.type), node)
    target = _any_decimal(operand) if is_bare_decimal(to) else type_from_tree(to, place)
    return binder.convert.explicit(operand, target, node)


def _any_decimal(operand: Expression) -> SqlType:
    """The type of ``CAST(x AS DECIMAL)``: of a literal its digits, else 16 after the point, of
    which the needed ones are shown."""
    if isinstance(operand, Literal) and isinstance(operand.value, str):
        match = re.fullmatch(r"\s*[+-]?(\d*)\.?(\d*)\s*", operand.value)
        if match is not None and len(match[1]) + len(match[2]) <= DECIMAL_PRECISION_MAX:
            digits = len(match[1].lstrip("0")) + len(match[2])
            return decimal(max(1, digits), len(match[2]))
    return computed_decimal(BARE_SCALE, TRIMMED_STEP, 0)


def _own_type(to: exp.Expr) -> str:
    """The name of a type that sqlglot does not know, "" for any other."""
    kind = to.args.get("kind")
    return kind.name.lower() if isinstance(kind, exp.Expr) else ""


def _type_position(context: Context, node: exp.Cast) -> Position | None:
    """Types carry no place: look for the word behind the operand."""
    to = node.args["to"]
    if to.this in _PLAIN_TYPES and not to.expressions:
        return None  # nothing can be wrong with it, and a search costs as much as the text is long
    kind = to.args.get("kind")
    word = kind.name if isinstance(kind, exp.Expr) else str(getattr(to.this, "value", ""))
    span = span_of(node.this)
    if span is None or not word:
        return position_of(context.text, node)
    at = context.text.lower().find(word.lower(), span[1])
    return position_of(context.text, node) if at < 0 else position_at(context.text, at, len(word))


_PLAIN_TYPES: Final = frozenset({
    exp.DType.BOOLEAN, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT, exp.DType.FLOAT,
    exp.DType.DOUBLE, exp.DType.TEXT, exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ,
    exp.DType.UUID, exp.DType.JSON, exp.DType.JSONB,
})  # fmt: skip


def _register_all() -> None:
    register_operators()
    binary = ("this", "expression")
    register(exp.Column, _column, "this", "table", "db", "catalog")
    register(exp.Literal, _literal, "this", "is_string")
    register(exp.HexString, _bytes, "this", "is_integer")
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
    register(exp.Date, _date, "this")


_register_all()
