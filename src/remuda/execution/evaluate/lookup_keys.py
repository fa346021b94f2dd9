"""The keys that a lookup or a pruned scan names, once the parameters are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import TypeAlias

from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.execution.evaluate.compile import evaluate_constant
from remuda.plan.expression import EachOf, Expression

Key: TypeAlias = tuple[PhysicalValue, ...]

_INTEGER_LIMITS = {
    Kind.TINYINT: 2**7,
    Kind.SMALLINT: 2**15,
    Kind.INTEGER: 2**31,
    Kind.BIGINT: 2**63,
}


def lookup_keys(
    keys: Iterable[tuple[Expression, ...]], parameters: Sequence[PhysicalValue]
) -> Iterator[Key]:
    """One key for each of ``keys``, several where an array is a part of it; those with a NULL are
    left out, since they find nothing. Raises the DataErrors of the expressions."""
    for parts in keys:
        if not any(isinstance(part, EachOf) for part in parts):
            key = tuple(evaluate_constant(part, parameters) for part in parts)
            if None not in key:
                yield key
            continue
        yield from product(*(_choices(part, parameters) for part in parts))


def _choices(part: Expression, parameters: Sequence[PhysicalValue]) -> list[PhysicalValue]:
    if not isinstance(part, EachOf):
        value = evaluate_constant(part, parameters)
        return [] if value is None else [value]
    items = evaluate_constant(part.array, parameters)
    if items is None:
        return []
    assert isinstance(items, list | tuple)
    return list(dict.fromkeys(item for item in items if _may_equal(item, part.type)))


def _may_equal(item: PhysicalValue, type_: SqlType) -> bool:
    """Whether a column of ``type_`` can hold ``item``."""
    limit = _INTEGER_LIMITS.get(type_.kind)
    if limit is None:
        return item is not None
    return isinstance(item, int) and -limit <= item < limit
