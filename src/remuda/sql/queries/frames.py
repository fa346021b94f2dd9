"""The frame clause of a window: ROWS, RANGE or GROUPS BETWEEN ... AND ..."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from remuda.datatypes.coercion import as_decimal
from remuda.datatypes.sql import BIGINT, DATE, DOUBLE, INTERVAL, TIME, TIMESTAMP, TIMESTAMPTZ, Kind
from remuda.datatypes.texts.text import type_name
from remuda.errors import InvalidDefinition, InvalidFrameOffset, WindowingError
from remuda.plan.expression import Cast, Expression, Literal
from remuda.plan.windows import BoundKind, Exclusion, Frame, FrameBound, FrameUnit
from remuda.sql.expressions.expressions import ExpressionBinder, Forbidding
from remuda.sql.expressions.functions.sequences import refuse_calls
from remuda.sql.expressions.intervals import IntervalValue, interval_value, is_interval, is_text
from remuda.sql.scope.context import Context
from remuda.sql.scope.scope import Scope
from remuda.sql.trees import ast

_KINDS: Final = list(BoundKind)
_OFFSETS: Final = (BoundKind.PRECEDING, BoundKind.FOLLOWING)


class FrameBinder:
    """``place`` is where errors point that concern no part of the clause."""

    def __init__(self, context: Context, spec: ast.WindowSpec, place: ast.Node) -> None:
        self.context = context
        self.spec = spec
        self.place = place
        self.unit = FrameUnit(spec.kind)
        nowhere = Forbidding(context, f"window {self.unit.value}")
        self.binder = ExpressionBinder(context, Scope(), nowhere)

    def bind(self, order: Sequence[tuple[Expression, bool]]) -> Frame:
        """``order``: the ORDER BY expressions, and whether each is descending."""
        return replace(self._bounded(order), exclude=self._exclusion())

    def _bounded(self, order: Sequence[tuple[Expression, bool]]) -> Frame:
        spec = self.spec
        start = _kind(spec.lower, spec.lower_side)
        end = BoundKind.CURRENT_ROW
        if spec.upper is not None:
            end = _kind(spec.upper, spec.upper_side)
        self._check_kinds(start, end)
        if self.unit is FrameUnit.GROUPS and not order:
            raise self._wrong("GROUPS mode requires an ORDER BY clause")
        offsets = start in _OFFSETS or end in _OFFSETS
        if self.unit is FrameUnit.RANGE and offsets:
            if len(order) != 1:
                raise self._wrong(
                    "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column"
                )
            return self._range(start, end, *order[0])
        return Frame(
            self.unit,
            FrameBound(start, self._count(start, "start")),
            FrameBound(end, self._count(end, "end")),
        )

    # --- which ends go together ---

    def _exclusion(self) -> Exclusion:
        return Exclusion(self.spec.exclude) if self.spec.exclude else Exclusion.NO_OTHERS

    def _check_kinds(self, start: BoundKind, end: BoundKind) -> None:
        if start is BoundKind.UNBOUNDED_FOLLOWING:
            raise self._wrong("frame start cannot be UNBOUNDED FOLLOWING")
        if end is BoundKind.UNBOUNDED_PRECEDING:
            raise self._wrong("frame end cannot be UNBOUNDED PRECEDING")
        if _KINDS.index(start) > _KINDS.index(end):
            if start is BoundKind.CURRENT_ROW:
                raise self._wrong("frame starting from current row cannot have preceding rows")
            if self.spec.upper is None:
                raise self._wrong("frame starting from following row cannot end with current row")
            raise self._wrong("frame starting from following row cannot have preceding rows")

    def _wrong(self, message: str) -> WindowingError:
        return self.context.error(WindowingError, message, self.place)

    # --- ROWS and GROUPS ---

    def _offset(self, node: ast.Node) -> Expression:
        bound = self.binder.bind(node)
        return refuse_calls(self.context, bound, f"window {self.unit.value}", node)

    def _count(self, kind: BoundKind, side: str) -> Expression | None:
        if kind not in _OFFSETS:
            return None
        node = self._offset_node(side)
        bound = self._offset(node)
        value = self.binder.convert.implicit(bound, BIGINT, node, f"argument of {self.unit.value}")
        self._check_literal(value, node, side)
        return value

    def _offset_node(self, side: str) -> ast.Node:
        node = self.spec.lower if side == "start" else self.spec.upper
        assert isinstance(node, ast.Node)
        column = node.find(ast.Column)
        if column is not None:
            raise self.context.error(
                InvalidDefinition,
                f"argument of {self.unit.value} must not contain variables",
                column,
            )
        return node

    def _check_literal(self, value: Expression, node: ast.Node, side: str) -> None:
        if not isinstance(value, Literal):
            return
        if value.value is None:
            raise self._bad_offset(side, "null", node)
        if isinstance(value.value, int | float) and value.value < 0:
            raise self._bad_offset(side, "negative", node)

    def _bad_offset(self, side: str, what: str, node: ast.Node) -> InvalidFrameOffset:
        return self.context.error(
            InvalidFrameOffset, f"frame {side}ing offset must not be {what}", node
        )

    # --- RANGE ---

    def _range(self, start: BoundKind, end: BoundKind, key: Expression, descending: bool) -> Frame:
        first = self._limit(start, "start", key, descending)
        last = self._limit(end, "end", key, descending)
        limits = [bound.limit for bound in (first, last) if bound.limit is not None]
        common = self.binder.convert.unified(limits, [self.place] * len(limits), "RANGE")
        if first.limit is not None:
            first = FrameBound(first.kind, first.offset, common[0], first.text)
        if last.limit is not None:
            last = FrameBound(last.kind, last.offset, common[-1], last.text)
        type_ = common[0].type
        return Frame(self.unit, first, last, key if key.type == type_ else Cast(type_, key))

    def _limit(self, kind: BoundKind, side: str, key: Expression, descending: bool) -> FrameBound:
        if kind not in _OFFSETS:
            return FrameBound(kind)
        node = self._offset_node(side)
        subtract = (kind is BoundKind.PRECEDING) is not descending
        if key.type.is_numeric and not is_interval(node):
            return self._numeric_limit(kind, side, key, node, subtract)
        if key.type in (DATE, TIMESTAMP, TIMESTAMPTZ) and (is_interval(node) or is_text(node)):
            value = interval_value(self.binder, node)
            if value.months < 0 or value.days < 0 or value.micros < 0:
                raise self._bad_offset(side, "negative", node)
            moved = -value if subtract else value
            parts = [key, *(Literal(BIGINT, n) for n in (moved.months, moved.days, moved.micros))]
            limit = self.binder.convert.call("add_interval", parts, [node] * 4, node)
            return FrameBound(kind, None, limit, _interval_text(value))
        if key.type in (TIME, INTERVAL) and (is_interval(node) or is_text(node)):
            return self._interval_limit(kind, side, key, node, subtract)
        raise self.context.unsupported(
            f"RANGE with offset PRECEDING/FOLLOWING for column type {type_name(key.type)}",
            node,
            hint="Offsets are numbers for numeric columns and intervals for dates and times.",
        )

    def _interval_limit(
        self, kind: BoundKind, side: str, key: Expression, node: ast.Node, subtract: bool
    ) -> FrameBound:
        """Times of day count as intervals: a limit may lie beyond midnight."""
        value = interval_value(self.binder, node)
        if value.months < 0 or value.days < 0 or value.micros < 0:
            raise self._bad_offset(side, "negative", node)
        offset = self.binder.convert.implicit(self._offset(node), INTERVAL, node)
        base = key if key.type == INTERVAL else Cast(INTERVAL, key)
        name = "-" if subtract else "+"
        limit = self.binder.convert.call(name, [base, offset], [node, node], node)
        return FrameBound(kind, None, limit, _interval_text(value))

    def _numeric_limit(
        self, kind: BoundKind, side: str, key: Expression, node: ast.Node, subtract: bool
    ) -> FrameBound:
        """Integers count in DECIMAL and REAL in DOUBLE: a limit may lie beyond the key's range."""
        wide = DOUBLE if key.type.is_float else as_decimal(key.type)
        base = key if key.type == wide else Cast(wide, key)
        offset = self._offset(node)
        if offset.type.kind is Kind.NULL or (key.type.is_float and not offset.type.is_float):
            offset = self.binder.convert.implicit(offset, wide, node)
        self._check_literal(offset, node, side)
        name = "-" if subtract else "+"
        limit = self.binder.convert.call(name, [base, offset], [node, node], node)
        return FrameBound(kind, offset, limit)


def _interval_text(value: IntervalValue) -> str:
    parts = ((value.months, "months"), (value.days, "days"), (value.micros, "microseconds"))
    return "INTERVAL '" + (" ".join(f"{n} {unit}" for n, unit in parts if n) or "0") + "'"


def _kind(value: object, side: object) -> BoundKind:
    if isinstance(value, ast.Node):
        return BoundKind(str(side).upper())
    text = str(value).upper()
    return BoundKind(text if text == "CURRENT ROW" else f"{text} {str(side).upper()}")
