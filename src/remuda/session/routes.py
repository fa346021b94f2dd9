"""The parameters that make up the partition key of a statement about one entry, in ``partition_by``
order, so that a client can go straight to the owner of the key; None where there is no such rule.
"""

from __future__ import annotations

from collections.abc import Sequence

from remuda.datatypes.schema import MapSchema
from remuda.plan.expression import Expression, Parameter
from remuda.planner.point import PointRead
from remuda.session.keyed_writes import KeyedPlan


def route_of(point: PointRead, schema: MapSchema) -> tuple[int, ...] | None:
    return _route_of_key(point.keys[0], schema, None) if len(point.keys) == 1 else None


def route_of_write(keyed: KeyedPlan | None, schema: MapSchema) -> tuple[int, ...] | None:
    return None if keyed is None else _route_of_key(keyed.write.key, schema, keyed.given)


def _route_of_key(
    key: Sequence[Expression], schema: MapSchema, given: int | None
) -> tuple[int, ...] | None:
    """``given``: so many parameters are known to the client (None: all)."""
    if schema.replicated:
        return None
    by_name = dict(zip(schema.key, key, strict=True))
    found: list[int] = []
    for name in schema.partition_by:
        expression = by_name[name]
        if not isinstance(expression, Parameter) or expression.type != schema.column(name).type:
            return None
        if given is not None and expression.index >= given:
            return None
        found.append(expression.index)
    return tuple(found)
