"""``txid_current()`` and its kin, and ``pg_column_size(x)``."""

from __future__ import annotations

from typing import Final

from remuda.datatypes.sql import BIGINT, BOOLEAN, INTEGER, VARCHAR, Kind
from remuda.plan.expression import Call, Case, Cast, Expression, Literal
from remuda.sql.expressions.expressions import ExpressionBinder
from remuda.sql.trees import ast

_FIXED: Final = {
    Kind.BOOLEAN: 1, Kind.TINYINT: 2, Kind.SMALLINT: 2, Kind.INTEGER: 4, Kind.BIGINT: 8,
    Kind.REAL: 4, Kind.DOUBLE: 8, Kind.DATE: 4, Kind.TIME: 8, Kind.TIMESTAMP: 8,
    Kind.TIMESTAMPTZ: 8, Kind.INTERVAL: 16, Kind.UUID: 16,
}  # fmt: skip
_SHORT: Final = 126
"""A value of up to so many bytes has a header of one byte in a row of PostgreSQL, others of 4."""


def transaction_number(
    _binder: ExpressionBinder, _nodes: list[ast.Node], _node: ast.Node
) -> Expression:
    """The number of the transaction that runs the statement."""
    return Call(BIGINT, "transaction_number", ())


def transaction_status(
    binder: ExpressionBinder, nodes: list[ast.Node], _node: ast.Node
) -> Expression:
    """``txid_status(number)``: of other transactions than this one NULL, as PostgreSQL says of
    those that it has forgotten."""
    number = binder.convert.implicit(binder.bind(nodes[0]), BIGINT, nodes[0])
    own = Call(BOOLEAN, "=", (number, Call(BIGINT, "transaction_number", ())))
    return Case(VARCHAR, ((own, Literal(VARCHAR, "in progress")),), Literal(VARCHAR, None))


def column_size(binder: ExpressionBinder, nodes: list[ast.Node], _node: ast.Node) -> Expression:
    """``pg_column_size(x)``: the bytes of the value in a row of PostgreSQL, uncompressed; of
    numbers, arrays and documents of any length those of their text."""
    value = binder.convert.settled(binder.bind(nodes[0]), nodes[0])
    known = Call(BOOLEAN, "is_not_null", (value,))
    size: Expression
    if value.type.kind in _FIXED:
        size = Literal(INTEGER, _FIXED[value.type.kind])
    else:
        plain = value if value.type.is_text or value.type.kind is Kind.BYTEA else None
        data = Call(INTEGER, "octet_length", (plain or Cast(VARCHAR, value),))
        short = Call(BOOLEAN, "<=", (data, Literal(INTEGER, _SHORT)))
        header = Case(INTEGER, ((short, Literal(INTEGER, 1)),), Literal(INTEGER, 4))
        size = Call(INTEGER, "+", (data, header))
    return Case(INTEGER, ((known, size),), Literal(INTEGER, None))
