"""A port that is found closed again and again drops a member after the grace (decision 0043); one
whose last probe has no answer yet does not."""

from __future__ import annotations

from cluster_of_voters import TIMES

from remuda.cluster import agreement as ag
from remuda.cluster import membership as ms
from remuda.cluster.next_view import next_view
from remuda.datatypes.view import MemberInfo, View

PROBE = TIMES.interval / 4


def proposed(probes: list[float], at: float) -> bool:
    """Whether a member proposes a view without member 3, whose port was closed at ``probes``."""
    members = tuple(MemberInfo(n, f"u{n}", "h", n, n, n) for n in (1, 2, 3))
    view = View(1, members, ((1, 2), (2, 3)), last_number=3, backups=1)
    machine = ms.Membership(1, view, now=0.0, times=TIMES, next_view=next_view)
    out: list[ms.Effect] = []
    for now in probes:
        out += machine.step(now, ms.Beat(2, 1, 0.0))
        out += machine.step(now, ms.Unreachable(3, "refused", refused=True))
    out += machine.step(at, ms.Beat(2, 1, 0.0))
    out += machine.step(at, ms.Tick())
    return any(isinstance(each, ag.Send) for each in out)


def test_a_port_that_stays_closed_for_the_grace() -> None:
    probes = [number * PROBE for number in range(1, 60)]
    until = [now for now in probes if now <= PROBE + TIMES.grace]
    assert proposed(until, PROBE + TIMES.grace + PROBE / 2)


def test_a_probe_without_an_answer_shows_nothing() -> None:
    """The network has come back, and the first packet was lost: TCP sends it again a second later,
    after the grace of short heartbeats."""
    assert not proposed([PROBE, 2 * PROBE], PROBE + TIMES.grace + PROBE / 2)
