"""The calls of the window operator, whose expressions are compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from remuda.datatypes.sql import SqlType
from remuda.execution.batch import Batch
from remuda.execution.operators.ordering import BoundKey
from remuda.plan.windows import BoundKind, Exclusion, FrameUnit

Column: TypeAlias = Callable[[Batch], pa.Array]


@dataclass(frozen=True, slots=True)
class BoundLimit:
    """``offset`` counts rows or groups of peers; ``limit`` (RANGE) computes the last value of the
    order column that is inside."""

    kind: BoundKind
    offset: int = 0
    limit: Column | None = None


@dataclass(frozen=True, slots=True)
class BoundFrame:
    """``values`` computes the order column in the type of the limits, ``key`` says how it is
    sorted; None without RANGE offsets."""

    unit: FrameUnit
    start: BoundLimit
    end: BoundLimit
    key: BoundKey | None = None
    values: Column | None = None
    exclude: Exclusion = Exclusion.NO_OTHERS


@dataclass(frozen=True, slots=True)
class BoundWindowCall:
    function: str
    arguments: Sequence[Column]
    types: Sequence[SqlType]
    result: SqlType
    condition: Column | None
    frame: BoundFrame
    shift: int | None = None
    """How many rows lag and lead go, where that is the same for all rows."""
