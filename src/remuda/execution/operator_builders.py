"""How nodes of a physical plan become operators.

Each module of ``execution.operators`` registers, beside its operator, the function that builds it
from a node. ``execution.build`` calls these functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeAlias, TypeVar

from remuda.errors import InternalError
from remuda.execution.context import FragmentContext
from remuda.execution.contract import Operator
from remuda.execution.evaluate.compile import Compiler
from remuda.execution.memory import Reservation
from remuda.execution.operators.shared_scan import SharedScan
from remuda.execution.spill import Usage
from remuda.plan.expression import ColumnId
from remuda.plan.logical import OutputColumn
from remuda.plan.physical import Physical

OPERATORS = "remuda.execution.operators"


class BuildContext:
    """The fragment instance for which operators are built. ``partitions`` limits its scans (None:
    all partitions of the member). ``shared`` are the scans that it shares with other instances of
    its fragment, in the order of the plan; the first instance makes them."""

    def __init__(
        self,
        context: FragmentContext,
        partitions: frozenset[int] | None,
        instances: int,
        shared: list[SharedScan] | None,
    ) -> None:
        self.context = context
        self.partitions = partitions
        self._instances = instances
        self._shared = shared
        self._scans = 0
        self._usages: dict[int, Usage] = {}
        self._compilers: dict[tuple[ColumnId, ...], Compiler] = {}

    def compiler(self, *outputs: Sequence[OutputColumn]) -> Compiler:
        """Compiles expressions over rows with the columns of ``outputs``, one after the other."""
        columns = tuple(column.id for output in outputs for column in output)
        known = self._compilers.get(columns)
        if known is None:
            positions = {identity: place for place, identity in enumerate(columns)}
            known = self._compilers[columns] = Compiler(positions, self.context.parameters)
        return known

    def reserve(self, node: Physical) -> Reservation:
        """A reservation of memory (0 bytes yet), which counts for the operator of ``node``."""
        return Reservation(
            self.context.memory, type(node).__name__, self.usage(node), self._instances
        )

    def usage(self, node: Physical) -> Usage:
        """The sum of all reservations of the node's operator."""
        known = self._usages.get(id(node))
        if known is None:
            known = self._usages[id(node)] = Usage()
        return known

    def next_shared_scan(self) -> SharedScan | None:
        """The scan that the next operator shares with other instances; None if it reads alone."""
        if self._shared is None:
            return None
        if self._scans == len(self._shared):
            self._shared.append(SharedScan())
        self._scans += 1
        return self._shared[self._scans - 1]


OperatorBuilder: TypeAlias = Callable[[Any, Sequence[Operator], BuildContext], Operator]
"""(node, operators of its inputs, instance) -> the operator of the node."""
_Builder = TypeVar("_Builder", bound=OperatorBuilder)

_BUILDERS: dict[type[Physical], OperatorBuilder] = {}


def builds(*nodes: type[Physical]) -> Callable[[_Builder], _Builder]:
    """Register the decorated function as the one that builds the operators of these nodes. Raises
    InternalError if a node has one already."""

    def register(builder: _Builder) -> _Builder:
        for node in nodes:
            if node in _BUILDERS:
                raise InternalError(f"{node.__name__} has two operators")
            _BUILDERS[node] = builder
        return builder

    return register


def operator_builders() -> dict[type[Physical], OperatorBuilder]:
    """The function for each class of nodes. A module of ``execution.operators`` is imported here,
    so it needs no entry in a list."""
    for module in iter_modules(import_module(OPERATORS).__path__):
        import_module(f"{OPERATORS}.{module.name}")
    return dict(_BUILDERS)
