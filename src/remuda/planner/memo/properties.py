"""Physical properties that a parent may require of its input, and whether an input satisfies them.

A requirement names a placement. ANY is satisfied by everything. PARTITIONED without keys wants
each row on exactly one data member, however spread. PARTITIONED with keys wants each row on the
owner of the partition of these columns, in this order. REPLICATED satisfies SINGLETON: the
initiator has all rows. With one member there is nothing to require.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from remuda.plan.expression import ColumnId, Expression, SortKey
from remuda.plan.physical import Distribution, Placement


@dataclass(frozen=True, slots=True)
class Required:
    """``fetch``: only the first ``fetch`` rows (in the order of ``collation``, or any) matter."""

    placement: Placement = Placement.ANY
    keys: tuple[ColumnId, ...] = ()
    collation: tuple[SortKey, ...] = ()
    fetch: Expression | None = None
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Requirements are looked up thousands of times per statement.
        parts = (self.placement.value, self.keys, self.collation, self.fetch)
        object.__setattr__(self, "_hash", hash(parts))

    def __hash__(self) -> int:
        return self._hash

    @property
    def is_plain(self) -> bool:
        """Whether it is about placement only."""
        return not self.collation and self.fetch is None


ANYWHERE = Required()
AT_INITIATOR = Required(Placement.SINGLETON)
EVERYWHERE = Required(Placement.REPLICATED)
SPREAD = Required(Placement.PARTITIONED)


def partitioned(keys: tuple[ColumnId, ...]) -> Required:
    return Required(Placement.PARTITIONED, keys)


def satisfies(delivered: Distribution, required: Required) -> bool:
    match required.placement:
        case Placement.ANY:
            return True
        case Placement.SINGLETON:
            return delivered.placement in (Placement.SINGLETON, Placement.REPLICATED)
        case Placement.REPLICATED:
            return delivered.placement is Placement.REPLICATED
        case Placement.PARTITIONED:
            return delivered.placement is Placement.PARTITIONED and (
                not required.keys or required.keys in delivered.keys
            )


def mapped_keys(
    keys: tuple[ColumnId, ...], names: dict[ColumnId, ColumnId]
) -> tuple[ColumnId, ...] | None:
    """``keys`` with every column replaced by its name elsewhere; None if one has none."""
    result = tuple(names[key] for key in keys if key in names)
    return result if len(result) == len(keys) else None
