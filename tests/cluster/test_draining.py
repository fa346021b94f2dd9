"""Members are drained as long as another one stays."""

from __future__ import annotations

from itertools import product

import pytest

from remuda.cluster.draining import Drain, decided

MEMBERS = (1, 2, 3)


@pytest.mark.parametrize(
    ("member", "live", "leaving", "ordering", "expected"),
    [
        (2, {1, 2, 3}, (), False, Drain.ORDER),
        (2, {1, 2, 3}, {2}, False, Drain.LEAVES),
        (2, {1, 2, 3}, {2}, True, Drain.LEAVES),
        (2, {1, 2, 3}, {1, 3}, False, Drain.LAST),
        (2, {2}, (), True, Drain.LAST),
        (2, {2, 3}, {1}, False, Drain.ORDER),
        (2, {1, 2, 3}, {1}, True, Drain.ORDERS),
        (3, {1, 2}, {1}, False, Drain.ORDER),
    ],
)
def test_an_order_is_decided(member, live, leaving, ordering, expected) -> None:
    assert decided(member, live, leaving, ordering=ordering) is expected


def test_orders_that_cross_leave_somebody_behind() -> None:
    """Any members order any others to leave at the same time: each decides with an order under way,
    and its receiver decides again."""
    for receivers in product(MEMBERS, repeat=len(MEMBERS)):
        orders = [(asker, to) for asker, to in zip(MEMBERS, receivers, strict=True) if asker != to]
        asked = {
            asker for asker, to in orders if decided(to, MEMBERS, (), ordering=False) is Drain.ORDER
        }
        leaves = {
            to
            for asker, to in orders
            if decided(to, MEMBERS, (), ordering=to in asked) is Drain.ORDER
        }
        assert leaves < set(MEMBERS)
        assert not leaves & asked
