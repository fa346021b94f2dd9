"""Each node of a plan has an operator, and each operator is found without a list."""

from __future__ import annotations

import pytest

from remuda.errors import InternalError
from remuda.execution.operator_builders import BuildContext, builds, operator_builders
from remuda.plan.physical import (
    NODES,
    Exchange,
    FilterRows,
    Receive,
    Root,
    Send,
    SpoolScan,
    Store,
)

ENDS = {Receive, Root, Send, SpoolScan, Store}
"""``execution.build`` builds the operators that use the streams and spools of their fragment."""


def test_every_node_has_an_operator() -> None:
    """But Exchange, which becomes a Send and a Receive before a plan runs."""
    assert set(operator_builders()) | ENDS == set(NODES) - {Exchange}
    assert set(operator_builders()).isdisjoint(ENDS)


def test_a_second_operator_of_a_node_is_refused() -> None:
    with pytest.raises(InternalError, match="FilterRows has two operators"):

        @builds(FilterRows)
        def _second(node: FilterRows, inputs: list[object], build: BuildContext) -> None: ...
