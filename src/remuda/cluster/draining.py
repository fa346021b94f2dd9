"""Whether a member may be drained: an order to leave that an operator gives. Pure.

The member that is asked decides first, then the member that is to leave, since it may have heard of
others that leave. A member stays as long as an order of its own is under way: otherwise two members
that are told to drain each other would both leave, with everything that they keep.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum


class Drain(Enum):
    ORDER = "the member is to leave"
    LEAVES = "the member leaves already"
    ORDERS = "the member has ordered another one to leave, which has not begun to"
    LAST = "no other member stays to take its copies"


def decided(
    member: int, live: Collection[int], leaving: Collection[int], *, ordering: bool
) -> Drain:
    """``live`` members are heard; of these, ``leaving`` want to leave. ``ordering``: ``member``
    has an order to another one under way."""
    if member in leaving:
        return Drain.LEAVES
    if not set(live) - set(leaving) - {member}:
        return Drain.LAST
    return Drain.ORDERS if ordering else Drain.ORDER
