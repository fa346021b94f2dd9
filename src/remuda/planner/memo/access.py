"""Access by key: which conditions fix the key of a map, or the columns that place its rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import Kind, SqlType
from remuda.plan.expression import (
    Call,
    Cast,
    ColumnId,
    ColumnRef,
    EachOf,
    Expression,
    InList,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
)
from remuda.plan.logical import Scan
from remuda.planner.algebra import disjuncts
from remuda.planner.estimates.selectivity import ELEMENTS

KEYS_MAX = 1_000
"""More combinations of IN lists than this are scanned."""

_INTEGER_RANGE = {
    Kind.TINYINT: 2**7,
    Kind.SMALLINT: 2**15,
    Kind.INTEGER: 2**31,
    Kind.BIGINT: 2**63,
}
_ORDER = (Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)


@dataclass(frozen=True, slots=True)
class FixedKey:
    """Every row that can pass has one of ``keys``; ``residual`` must hold as well."""

    keys: tuple[tuple[Expression, ...], ...]
    residual: Expression | None


def likely_keys(key: tuple[Expression, ...]) -> float:
    """How many keys ``key`` stands for."""
    return ELEMENTS ** sum(isinstance(part, EachOf) for part in key)


def whole_key(scan: Scan, condition: Expression | None) -> FixedKey | None:
    """``condition`` as a set of whole keys and the rest."""
    return _fixed(scan, condition, scan.schema.key_positions)


def pruning_keys(
    scan: Scan, condition: Expression | None
) -> tuple[tuple[Expression, ...], ...] | None:
    """Values of the partition columns that every row that can pass has one of."""
    if scan.schema.replicated:
        return None
    fixed = _fixed(scan, condition, scan.schema.partition_positions)
    return None if fixed is None else fixed.keys


def _fixed(scan: Scan, condition: Expression | None, positions: tuple[int, ...]) -> FixedKey | None:
    parts = conjuncts(condition)
    if not parts or not positions:
        return None
    by_column = {c.id: p for c, p in zip(scan.output, scan.positions, strict=True)}
    choices: dict[int, tuple[Expression, ...]] = {}
    used: set[Expression] = set()
    for part in parts:
        found = _choice(part, by_column, scan.schema)
        if found is None or found[0] not in positions:
            continue
        position, values = found
        # Of two conditions on one column the shorter list wins; the other one is a filter.
        if position in choices and len(choices[position]) <= len(values):
            continue
        used = {u for u in used if _position(u, by_column, scan.schema) != position} | {part}
        choices[position] = values
    if len(choices) != len(set(positions)):
        return _fixed_by_arms(scan, parts, positions)
    count = 1
    for values in choices.values():
        count *= len(values)
    if count > KEYS_MAX:
        return None
    keys = tuple(product(*(choices[position] for position in positions)))
    return FixedKey(keys, conjunction(tuple(part for part in parts if part not in used)))


def _fixed_by_arms(
    scan: Scan, parts: tuple[Expression, ...], positions: tuple[int, ...]
) -> FixedKey | None:
    """``(a = 1 AND b = 2) OR (a = 3 AND b = 4)``: every arm fixes the key, maybe together with the
    other conjuncts. The OR stays a filter."""
    for place, part in enumerate(parts):
        arms = disjuncts(part)
        if len(arms) < 2:
            continue
        others = parts[:place] + parts[place + 1 :]
        plain = tuple(other for other in others if len(disjuncts(other)) < 2)
        found: dict[tuple[Expression, ...], None] = {}
        for arm in arms:
            fixed = _fixed(scan, conjunction((*conjuncts(arm), *plain)), positions)
            if fixed is None or len(found) > KEYS_MAX:
                break
            found.update(dict.fromkeys(fixed.keys))
        else:
            if len(found) <= KEYS_MAX:
                return FixedKey(tuple(found), conjunction(parts))
    return None


def _position(part: Expression, by_column: dict[ColumnId, int], schema: MapSchema) -> int | None:
    found = _choice(part, by_column, schema)
    return None if found is None else found[0]


def _choice(
    part: Expression, by_column: dict[ColumnId, int], schema: MapSchema
) -> tuple[int, tuple[Expression, ...]] | None:
    """``column = value`` or ``column IN (values)`` with values that need no row: (position, values
    of exactly the column's type)."""
    match part:
        case Call(function="=", arguments=(left, right)):
            operand, values = (left, (right,)) if columns_of(left) else (right, (left,))
        case InList(operand=operand, values=values):
            pass
        case Call(function="any_of", arguments=(Literal(value="="), operand, array)):
            return _elements(operand, array, by_column, schema)
        case _:
            return None
    operand = without_widening(operand)
    if not isinstance(operand, ColumnRef) or operand.column not in by_column:
        return None
    if any(columns_of(value) for value in values):
        return None
    position = by_column[operand.column]
    type_ = schema.columns[position].type
    exact = [e for value in values if (e := exactly(value, type_)) is not None]
    if len(exact) != len(values):
        return None
    return position, tuple(exact)


def _elements(
    operand: Expression, array: Expression, by_column: dict[ColumnId, int], schema: MapSchema
) -> tuple[int, tuple[Expression, ...]] | None:
    """``column = ANY (array)`` with an array that needs no row."""
    operand = without_widening(operand)
    if not isinstance(operand, ColumnRef) or operand.column not in by_column or columns_of(array):
        return None
    position = by_column[operand.column]
    type_, element = schema.columns[position].type, array.type.element
    if element is None:
        return None
    same = element == type_ or (element.is_text and type_.is_text)
    if not (same or (element.is_integer and type_.is_integer)):
        return None
    return position, (EachOf(type_, array),)


def without_widening(operand: Expression) -> Expression:
    """``operand`` without casts that change no value."""
    while isinstance(operand, Cast) and _is_lossless(operand):
        operand = operand.operand
    return operand


def _is_lossless(cast: Cast) -> bool:
    """Widening of integers, or text to longer text: equality before and after is the same."""
    source, target = cast.operand.type, cast.type
    if source.kind in _ORDER and target.kind in _ORDER:
        return _ORDER.index(source.kind) <= _ORDER.index(target.kind)
    if source.is_text and target.is_text:
        return target.length is None or (
            source.length is not None and source.length <= target.length
        )
    return False


def exactly(value: Expression, type_: SqlType) -> Expression | None:
    """``value`` as an expression of ``type_``, which decides its hash; None when it cannot be."""
    while isinstance(value, Cast) and _is_lossless(value) and value.type.kind is not type_.kind:
        value = value.operand
    if value.type.kind is type_.kind:
        return value if type_.kind is not Kind.DECIMAL or value.type == type_ else None
    if value.type.is_text and type_.is_text:
        return value
    if not (value.type.is_integer and type_.is_integer):
        return None
    if isinstance(value, Literal) and isinstance(value.value, int):
        limit = _INTEGER_RANGE[type_.kind]
        return Literal(type_, value.value) if -limit <= value.value < limit else None
    widens = _ORDER.index(value.type.kind) < _ORDER.index(type_.kind)
    return Cast(type_, value) if widens else None
