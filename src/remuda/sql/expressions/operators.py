"""Handlers of leaves and operators (see ``expressions``)."""

from __future__ import annotations

import re

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
from remuda.sql.expressions.type_names import is_bare_decimal, type_from_tree
from remuda.sql.scope.context import Context, identifier
from remuda.sql.scope.scope import all_levels, columns_of_alias, resolve_column, whole_row
from remuda.sql.text.places import position_at
from remuda.sql.text.types import BARE_SCALE
from remuda.sql.trees import ast
from remuda.sql.trees.places import position_of

# --- leaves ----------------------------------------------------------------------------------


def _column(binder: ExpressionBinder, node: ast.Column) -> Expression:
    if isinstance(node.this, ast.Star):
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
        return binder.bind(ast.CurrentUser())
    return resolve_column(binder.context, binder.scope, node)


def _is_user(binder: ExpressionBinder, node: ast.Column) -> bool:
    """Whether ``user`` or ``current_role`` stands for a value, and not for a column."""
    word = node.this
    if node.args.get("table") is not None or word.args.get("quoted"):
        return False
    name = str(word.this).lower()
    return name in ("user", "current_role") and not any(
        level.candidates(name) or name in level.relations for level in all_levels(binder.scope)
    )


def _bytes(binder: ExpressionBinder, node: ast.HexString) -> Expression:
    """X'0aff': the standard's literal of binary strings (PostgreSQL's is one of bits)."""
    digits = str(node.this)
    if len(digits) % 2 or not set(digits.lower()) <= set("0123456789abcdef"):
        raise binder.context.error(
            InvalidText,
            f'invalid hexadecimal digits: "{digits[:60]}"',
            node,
            hint="A byte has two digits, 0 to 9 and a to f.",
        )
    return Literal(BYTEA, bytes.fromhex(digits))


def _bits(binder: ExpressionBinder, node: ast.BitString) -> Expression:
    raise binder.context.unsupported(
        "a bit string", node, hint="Use BYTEA, or an integer with the operators &, | and #."
    )


def _literal(binder: ExpressionBinder, node: ast.Literal) -> Expression:
    if node.args["is_string"]:
        return Literal(NULL, str(node.this))
    try:
        return number_literal(str(node.this))
    except DataError as error:
        raise binder.context.located(error, node) from None


def _null(binder: ExpressionBinder, node: ast.Node) -> Expression:  # noqa: ARG001
    return Literal(NULL, None)


def _boolean(binder: ExpressionBinder, node: ast.Boolean) -> Expression:  # noqa: ARG001
    return Literal(BOOLEAN, bool(node.this))


def _parameter(binder: ExpressionBinder, node: ast.Parameter) -> Expression:
    return binder.context.parameter(int(node.this.this) - 1)


def _paren(binder: ExpressionBinder, node: ast.Paren) -> Expression:
    return binder.bind(node.this)


def _star(binder: ExpressionBinder, node: ast.Node) -> Expression:
    raise binder.context.error(SqlSyntaxError, "* is not allowed here", node)


# --- logic -----------------------------------------------------------------------------------


def flattened(node: ast.Node, kind: type[ast.Node]) -> list[ast.Node]:
    """The operands of a chain of one binary operator, in order, without recursion."""
    parts: list[ast.Node] = []
    pending = [node]
    while pending:
        current = pending.pop()
        if type(current) is kind:
            pending += [current.args["expression"], current.args["this"]]
        else:
            parts.append(current)
    return parts


def _connector(name: str, clause: str) -> Handler:
    def bind(binder: ExpressionBinder, node: ast.Node) -> Expression:
        parts = tuple(binder.condition(part, clause) for part in flattened(node, type(node)))
        return Call(BOOLEAN, name, parts)

    return bind


def _not(binder: ExpressionBinder, node: ast.Not) -> Expression:
    return negation(binder.condition(node.this, "NOT"))


def _is(binder: ExpressionBinder, node: ast.Is) -> Expression:
    test = node.expression
    row = row_values(binder, node.this)
    if isinstance(test, ast.Null) and row:
        # IS NOT NULL of a row: no value is NULL; so it is not the opposite of IS NULL.
        name = "is_not_null" if node.args.get("negate") else "is_null"
        tests = tuple(Call(BOOLEAN, name, (binder.settled(part),)) for part in row)
        return tests[0] if len(tests) == 1 else Call(BOOLEAN, "and", tests)
    if isinstance(test, ast.Null):
        operand = binder.settled(node.this)
        if operand.type.kind is Kind.ROW:
            return fields_null(operand, bool(node.args.get("negate")))
        result: Expression = Call(BOOLEAN, "is_null", (operand,))
    elif isinstance(test, ast.Boolean):
        name = "is_true" if test.this else "is_false"
        result = Call(BOOLEAN, name, (binder.condition(node.this, f"IS {str(test.this).upper()}"),))
    else:
        raise binder.context.unsupported(
            "this form of IS",
            node,
            hint="Use IS [NOT] NULL, TRUE, FALSE, UNKNOWN, DISTINCT FROM or JSON.",
        )
    return negation(result) if node.args.get("negate") else result


def _comparison(name: str) -> Handler:
    def bind(binder: ExpressionBinder, node: ast.Node) -> Expression:
        left, right = node.args["this"], node.args["expression"]
        found = quantifier(right)
        if found is not None:
            return quantified(binder, name, (node.this, found[0]), node, found[1])
        items = array_quantifier(right)
        if items is not None and name.startswith("is_"):
            raise binder.context.error(
                SqlSyntaxError, "IS DISTINCT FROM takes no ANY or ALL of an array", right
            )
        if items is not None:
            return compared_with_array(binder, name, left, items)
        return _compared(binder, name, left, right, node)

    return bind


def _between(binder: ExpressionBinder, node: ast.Between) -> Expression:
    low, high = node.low, node.high

    def inside(first: ast.Node, last: ast.Node) -> Expression:
        sides = ((">=", node.operand, first), ("<=", node.operand, last))
        return Call(BOOLEAN, "and", tuple(_compared(binder, *side, node) for side in sides))

    if node.symmetric:
        return Call(BOOLEAN, "or", (inside(low, high), inside(high, low)))
    return inside(low, high)


def _compared(
    binder: ExpressionBinder, name: str, left: ast.Node, right: ast.Node, node: ast.Node
) -> Expression:
    rows = compared(binder, name, left, right, node)
    return binder.call(name, left, right) if rows is None else rows


def _in(binder: ExpressionBinder, node: ast.In) -> Expression:
    values = node.values
    if node.query is not None:
        return quantified(binder, "=", (node.operand, node.query), node)
    if not values:
        raise binder.context.error(SqlSyntaxError, "the list of IN is empty", node)
    if row_parts(node.operand) is not None:
        rows = rows_of_literals(binder, node.operand, values)
        if rows is not None:
            return quantified(binder, "=", (node.operand, rows), node)
        parts = tuple(_compared(binder, "=", node.operand, value, node) for value in values)
        return parts[0] if len(parts) == 1 else Call(BOOLEAN, "or", parts)
    operand = binder.bind(node.operand)
    if not isinstance(operand, Literal) and not is_untyped(operand):
        fast = _literal_list(operand.type, values)
        if fast is not None:
            return InList(BOOLEAN, operand, fast)
    bound = [operand, *(binder.bind(value) for value in values)]
    unified = binder.convert.unified(bound, [node.operand, *values], "IN")
    return InList(BOOLEAN, unified[0], unified[1:])


def _literal_list(target: SqlType, values: list[ast.Node]) -> tuple[Expression, ...] | None:
    """Long lists of plain literals without the general machinery; None if any is not plain."""
    found: list[Expression] = []
    if target.is_integer:
        low, high = integer_range(target.kind)
    elif not target.is_text:
        return None
    for value in values:
        if type(value) is not ast.Literal or value.args["is_string"] is not target.is_text:
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
    def bind(binder: ExpressionBinder, node: ast.Node) -> Expression:
        return _like_call(binder, name, node, ())

    return bind


def _escape(binder: ExpressionBinder, node: ast.Escape) -> Expression:
    inner = node.this
    if isinstance(inner, ast.SimilarTo):
        return similar(binder, inner, (node.args["expression"],))
    if not isinstance(inner, ast.Like | ast.ILike):
        raise binder.context.error(SqlSyntaxError, "ESCAPE belongs to LIKE", node)
    binder.context.only(inner, "this", "expression", "negate")
    escape = node.args["expression"]
    if isinstance(escape, ast.Literal) and len(str(escape.this)) > 1:
        raise binder.context.error(
            InvalidEscape,
            "invalid escape string",
            escape,
            hint="Escape string must be empty or one character.",
        )
    return _like_call(binder, "like" if type(inner) is ast.Like else "ilike", inner, (escape,))


def _like_call(
    binder: ExpressionBinder, name: str, node: ast.Node, more: tuple[ast.Node, ...]
) -> Expression:
    pattern = node.args["expression"]
    found = quantifier(pattern)
    if found is not None and not more:
        result = quantified(binder, name, (node.this, found[0]), node, found[1])
        return negation(result) if node.args.get("negate") else result
    items = array_quantifier(pattern)
    if items is not None and not more:
        negate = bool(node.args.get("negate"))
        return compared_with_array(binder, name, node.args["this"], items, negate)
    result = binder.call(name, node.args["this"], pattern, *more, shown=name.upper())
    return negation(result) if node.args.get("negate") else result


# --- arithmetic and text -----------------------------------------------------------------------


def _arithmetic(name: str) -> Handler:
    def bind(binder: ExpressionBinder, node: ast.Node) -> Expression:
        places = node.args["this"], node.args["expression"]
        operands = binder.bind(places[0]), binder.bind(places[1])
        if name in ("+", "-") and INTERVAL in (operands[0].type, operands[1].type):
            return interval_sum(binder, name, operands, places)
        bound = binder.convert.call(name, operands, places, None)
        return concatenation(bound) if name == "||" else bound

    return bind


def _negative(binder: ExpressionBinder, node: ast.Neg) -> Expression:
    operand = binder.bind(node.this)
    if isinstance(operand, Literal) and not is_untyped(operand):
        folded = negated(operand)
        if folded is not None:
            return folded
    return binder.convert.call("neg", [operand], [node.this], node)


def _case(binder: ExpressionBinder, node: ast.Case) -> Expression:
    operand, otherwise = node.operand, node.otherwise
    conditions: list[Expression] = []
    values: list[Expression] = []
    places: list[ast.Node | None] = []
    for branch in node.branches:
        if operand is None:
            conditions.append(binder.condition(branch.condition, "CASE/WHEN"))
        else:
            conditions.append(binder.call("=", operand, branch.condition))
        values.append(binder.bind(branch.result))
        places.append(branch.result)
    values.append(Literal(NULL, None) if otherwise is None else binder.bind(otherwise))
    places.append(otherwise)
    unified = binder.convert.unified(values, places, "CASE")
    return Case(unified[0].type, tuple(zip(conditions, unified[:-1], strict=True)), unified[-1])


def _date(binder: ExpressionBinder, node: ast.Date) -> Expression:
    """``date(x)``, a cast that is written as a call."""
    return binder.convert.explicit(binder.bind(node.this), DATE, node.this)


def _cast(binder: ExpressionBinder, node: ast.Cast) -> Expression:
    place = _type_position(binder.context, node)
    to = node.to
    if to.this == "jsonpath" and not to.args.get("array"):
        text = binder.convert.explicit(binder.bind(node.operand), VARCHAR, node.operand)
        return binder.convert.call("jsonpath", [text], [node.operand], node)
    if (
        empty_array(node.operand)
        and (target := type_from_tree(binder.context, to, place)).element is not None
    ):
        return Literal(target, ())
    operand = binder.bind(node.operand)
    if is_bare_decimal(to) and operand.type.is_numeric and not operand.type.is_float:
        return binder.convert.explicit(operand, as_decimal(operand.type), node)
    target = (
        _any_decimal(operand) if is_bare_decimal(to) else type_from_tree(binder.context, to, place)
    )
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


def _type_position(context: Context, node: ast.Cast) -> Position | None:
    place = node.to.args.get("place")
    if place is None:
        return position_of(context.text, node)
    return position_at(context.text, place[0], place[1] - place[0] + 1)


def _register_all() -> None:
    register_operators()
    binary = ("this", "expression")
    register(ast.BitString, _bits, "this")
    register(ast.Column, _column, "this", "table", "db", "catalog")
    register(ast.Literal, _literal, "this", "is_string")
    register(ast.HexString, _bytes, "this")
    register(ast.Null, _null)
    register(ast.Boolean, _boolean, "this")
    register(ast.Parameter, _parameter, "this")
    register(ast.Paren, _paren, "this")
    register(ast.Star, _star)
    register(ast.And, _connector("and", "AND"), *binary)
    register(ast.Or, _connector("or", "OR"), *binary)
    register(ast.Not, _not, "this")
    register(ast.Is, _is, *binary, "negate")
    comparisons: tuple[tuple[type[ast.Node], str], ...] = (
        (ast.EQ, "="),
        (ast.NEQ, "<>"),
        (ast.LT, "<"),
        (ast.LTE, "<="),
        (ast.GT, ">"),
        (ast.GTE, ">="),
        (ast.NullSafeEQ, "is_not_distinct_from"),
        (ast.NullSafeNEQ, "is_distinct_from"),
    )
    for kind, name in comparisons:
        register(kind, _comparison(name), *binary)
    register(ast.Between, _between)
    register(ast.In, _in)
    register(ast.Like, _like("like"), *binary, "negate")
    register(ast.ILike, _like("ilike"), *binary, "negate")
    register(ast.Escape, _escape, *binary)
    arithmetic: tuple[tuple[type[ast.Node], str], ...] = (
        (ast.Add, "+"),
        (ast.Sub, "-"),
        (ast.Mul, "*"),
        (ast.Div, "/"),
        (ast.Mod, "%"),
        (ast.DPipe, "||"),
        (ast.Pow, "power"),
    )
    for kind, name in arithmetic:
        register(kind, _arithmetic(name), *binary)
    register(ast.Neg, _negative, "this")
    register(ast.Case, _case)
    register(ast.Cast, _cast)
    register(ast.Date, _date, "this")


_register_all()
