"""IndexScan: visible rows that secondary indexes name and that pass the filter."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.datatypes.values import PhysicalValue
from remuda.errors import InternalError
from remuda.execution.context import Cursor, FragmentContext
from remuda.execution.contract import Operator
from remuda.execution.evaluate.compile import evaluate_constant
from remuda.execution.operator_builders import BuildContext, builds
from remuda.execution.operators.scan import TableScanOperator
from remuda.plan.expression import Expression
from remuda.plan.index_access import (
    IndexAccess,
    IndexEqual,
    IndexIntersection,
    IndexPrefix,
    IndexProbe,
    IndexRange,
    IndexTest,
    IndexUnion,
)
from remuda.plan.physical import IndexOrder, IndexScan
from remuda.storage.indexes.access import (
    Access,
    AllOf,
    AnyOf,
    Equal,
    Probe,
    Range,
    StartsWith,
    Test,
    Tests,
)


class IndexScanOperator(TableScanOperator):
    """A scan of the candidates. With batches of limited size they come as ``TableScan``'s do."""

    def __init__(
        self, node: IndexScan, context: FragmentContext, partitions: frozenset[int] | None = None
    ) -> None:
        super().__init__(node, context, partitions)
        self._scan = node

    def _open(self) -> Cursor:
        node, context = self._scan, self._context
        access = bound_access(node.access, context.parameters)
        if node.order is IndexOrder.NONE:
            return context.sources.index_scan(self._what(), access)
        if not isinstance(access, Probe):
            raise InternalError("an ordered index scan has one probe")
        descending = node.order is IndexOrder.BACKWARD
        return context.sources.ordered_scan(self._what(), access, descending)


def bound_access(access: IndexAccess, parameters: Sequence[PhysicalValue]) -> Access:
    """The values of an access. A comparison with NULL finds nothing."""
    match access:
        case IndexUnion(parts=parts):
            return AnyOf(tuple(bound_access(part, parameters) for part in parts))
        case IndexIntersection(parts=parts):
            return AllOf(tuple(bound_access(part, parameters) for part in parts))
        case IndexProbe(index_id=index, choices=choices, negated=negated):
            bound = [_tests(tests, parameters) for tests in choices]
            known = tuple(tests for tests in bound if tests is not None)
            if negated and len(known) < len(bound):
                return Probe(index, ())  # neither equal nor different
            return Probe(index, tuple(dict.fromkeys(known)), negated)


def _tests(tests: Sequence[IndexTest], parameters: Sequence[PhysicalValue]) -> Tests | None:
    bound = [_test(test, parameters) for test in tests]
    known = tuple(test for test in bound if test is not None)
    return known if len(known) == len(bound) else None


def _test(test: IndexTest, parameters: Sequence[PhysicalValue]) -> Test | None:
    def value(expression: Expression | None) -> PhysicalValue:
        return None if expression is None else evaluate_constant(expression, parameters)

    match test:
        case IndexEqual(value=None):
            return Equal(None)
        case IndexEqual(value=expression):
            found = value(expression)
            return None if found is None else Equal(found)
        case IndexPrefix(prefix=expression):
            prefix = value(expression)
            return StartsWith(prefix) if isinstance(prefix, str) else None
        case IndexRange(low=low, high=high):
            first, last = value(low), value(high)
            if (low is not None and first is None) or (high is not None and last is None):
                return None
            return Range(first, test.low_inclusive, last, test.high_inclusive)


@builds(IndexScan)
def _index_scan(node: IndexScan, _inputs: Sequence[Operator], build: BuildContext) -> Operator:
    return IndexScanOperator(node, build.context, build.partitions)
