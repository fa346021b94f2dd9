"""The operators of a recursive term that are restarted between rounds, and those that stay as they
are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Final

from remuda.execution.context import FragmentContext
from remuda.execution.contract import Operator
from remuda.execution.exchange.encoding import BatchForm
from remuda.execution.memory import Reservation
from remuda.execution.operators.rounds import RenewedOperator, RoundsOperator
from remuda.execution.rounds import Rounds
from remuda.plan.expression import Expression
from remuda.plan.functions.catalog import is_volatile
from remuda.plan.physical import (
    FilterRows,
    Physical,
    ProjectRows,
    Root,
    SuppliedScan,
    UnfoldRows,
    ValuesScan,
    inputs_of,
)

_RESTARTED: Final = (FilterRows, ProjectRows, SuppliedScan, UnfoldRows, ValuesScan)
"""Operators that can always be restarted, if their inputs can."""


def repeatable(
    node: Physical, inputs: Sequence[Operator], make: Callable[[Sequence[Operator]], Operator]
) -> Operator:
    """The operator that ``make`` gives for ``node``, such that ``restart`` never refuses."""
    return make(inputs) if isinstance(node, _RESTARTED) else RenewedOperator(inputs, make)


def rounds_operator(
    node: Root, source: Operator, context: FragmentContext, memory: Reservation
) -> Operator:
    """The operators between the root and the recursive term; ``source`` where there is none."""
    if context.rounds is None:
        return source
    types = [column.type for column in node.output]
    return RoundsOperator(source, context.rounds, types, BatchForm(node.output), memory)


def is_fixed(node: Physical, rounds: Rounds | None) -> bool:
    """Whether ``node`` gives the same rows in each round. Maps do: all is read at one timestamp."""
    if rounds is None:
        return False
    if isinstance(node, SuppliedScan) and node.relation == rounds.working.relation:
        return False
    if any(is_volatile(expression) for expression in _expressions(node)):
        return False
    return all(is_fixed(source, rounds) for source in inputs_of(node))


def _expressions(part: object) -> Iterator[Expression]:
    """Those of one operator, wherever its fields hold them; not those of its inputs."""
    if isinstance(part, Expression):
        yield part
    elif isinstance(part, tuple):
        for inner in part:
            yield from _expressions(inner)
    elif is_dataclass(part):
        for entry in fields(part):
            value = getattr(part, entry.name)
            if not isinstance(value, Physical):
                yield from _expressions(value)
