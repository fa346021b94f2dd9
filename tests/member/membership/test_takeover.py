"""When a member may serve what others were the primary of, whatever views follow each other."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from remuda.cluster.assignment import first_view
from remuda.datatypes.timestamp import HybridClock
from remuda.datatypes.view import MemberInfo, View
from remuda.member.base.core import Core
from remuda.member.membership.takeover import KEY, Takeover
from remuda.member.state.readiness import Readiness

ME = 1
FOREVER = 1e9


def taking_over() -> tuple[Takeover, Readiness]:
    def now() -> float:
        return 0.0

    readiness = Readiness(now, lambda: ME)
    core = SimpleNamespace(
        number=ME,
        readiness=readiness,
        clock=HybridClock(),
        config=SimpleNamespace(lease_seconds=1.0),
        world=SimpleNamespace(clock=SimpleNamespace(monotonic=now)),
    )
    return Takeover(cast("Core", core)), readiness


def views() -> list[View]:
    """Of members 1 to 4, in which member 1 is given a partition of each of the others in turn."""
    members = tuple(MemberInfo(n, f"m{n}", "h", 1, 2, 3) for n in (1, 2, 3, 4))
    view = first_view(members, 1)
    found = [view]
    for other in (2, 3, 4):
        partition = view.partitions_of(other)[0]
        rows = list(view.replicas)
        rows[partition] = (ME, other)
        view = replace(view, number=view.number + 1, replicas=tuple(rows))
        found.append(view)
    return found


def run(scenario: Any) -> None:
    async def alone() -> None:
        scenario()

    asyncio.run(alone())


def test_all_former_primaries_must_be_heard_though_another_view_comes() -> None:
    def scenario() -> None:
        takeover, readiness = taking_over()
        first, second, third, _ = views()
        takeover.view_installed(first, second, FOREVER, FOREVER)
        takeover.view_installed(second, third, FOREVER, FOREVER)
        takeover.heard(3, third.number)
        assert KEY in readiness.holds, "member 2 may not know the second view yet"
        takeover.heard(2, second.number)
        assert KEY in readiness.holds, "it may be that it said so before"
        takeover.heard(2, third.number)
        assert KEY not in readiness.holds
        takeover.close()

    run(scenario)


def test_who_is_dropped_before_it_was_heard_is_waited_for_by_time() -> None:
    def scenario() -> None:
        takeover, readiness = taking_over()
        first, second, third, _ = views()
        takeover.view_installed(first, second, FOREVER, FOREVER)
        left = tuple(member for member in third.members if member.number != 2)
        without = replace(third, members=left)
        takeover.view_installed(second, without, FOREVER, FOREVER)
        takeover.heard(3, without.number)
        assert KEY in readiness.holds, "the lease of member 2 may not be over"
        takeover.close()

    run(scenario)


@pytest.mark.parametrize("heard", [{2, 3, 4}, {2, 4}])
def test_after_views_that_were_missed_everyone_must_be_heard(heard: set[int]) -> None:
    def scenario() -> None:
        takeover, readiness = taking_over()
        first, _, _, last = views()
        takeover.view_installed(first, last, FOREVER, FOREVER)
        for number in heard:
            takeover.heard(number, last.number)
        assert (KEY in readiness.holds) == (heard != {2, 3, 4})
        takeover.close()

    run(scenario)


def test_a_view_that_gives_nothing_does_not_begin_to_wait() -> None:
    def scenario() -> None:
        takeover, readiness = taking_over()
        first = views()[0]
        takeover.view_installed(first, replace(first, number=2), FOREVER, FOREVER)
        assert not readiness.holds
        takeover.close()

    run(scenario)
