"""The inputs of a planning run: ports and facts, all injected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from remuda.catalog.statistics import FixedStatistics, StatisticsReader
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.plan.expression import Expression

Fold: TypeAlias = Callable[[Expression], PhysicalValue]
"""Evaluates an expression without columns and parameters; raises a DataError when it cannot."""


@dataclass(frozen=True, slots=True)
class PlanningContext:
    """``members`` counts the members that own partitions. Without ``fold`` only boolean
    simplification happens, no constant folding. ``perturb`` (tests only) replaces the cost by
    which an alternative is chosen, so that plans are picked that the cost model would not."""

    statistics: StatisticsReader = FixedStatistics()  # noqa: RUF009 (immutable)
    members: int = 1
    parameter_types: tuple[SqlType, ...] = ()
    fold: Fold | None = None
    perturb: Callable[[float], float] | None = None
