"""How a member leaves in order, as a pure state machine."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from remuda.cluster.leaving import (
    ANSWERED_WITHIN,
    DISMISSED_WITHIN,
    DROPPED_AT_LAST,
    ENDED_WITHIN,
    PARTING,
    TOLD_WITHIN,
    AskToLeave,
    Dismiss,
    EndOpen,
    Found,
    Leaving,
    Part,
    Phase,
    Refuse,
    ServeNoClient,
    ServeNothing,
)

BUSY = Found(open=3, requests=1, copies=10)
IDLE = Found(open=0, requests=0, copies=0)


def test_the_order_of_a_leave() -> None:
    leaving = Leaving(0.0, 30.0)
    assert leaving.step(0.0, BUSY) == [Dismiss(), Refuse()]
    assert leaving.step(1.0, BUSY) == []
    assert leaving.step(2.0, replace(BUSY, open=0)) == []  # copies yet
    assert leaving.drained
    assert leaving.step(3.0, replace(IDLE, requests=1)) == [ServeNoClient()]
    assert leaving.step(3.1, replace(IDLE, requests=1)) == []
    assert leaving.step(3.2, IDLE) == [AskToLeave()]
    assert leaving.step(3.3, IDLE) == [AskToLeave()]
    assert leaving.step(3.4, replace(IDLE, dropped=True)) == [ServeNothing()]
    assert leaving.step(3.5, replace(IDLE, dropped=True)) == []
    assert leaving.step(3.6, replace(IDLE, dropped=True, known=True)) == [Part()]
    assert not leaving.over
    assert leaving.step(3.6 + PARTING, IDLE) == []
    assert leaving.over


def test_it_parts_when_the_clients_have_acknowledged_their_results() -> None:
    leaving = Leaving(0.0, 30.0)
    leaving.step(0.0, IDLE)
    leaving.step(0.1, IDLE)
    leaving.step(0.2, replace(IDLE, dropped=True))
    known = replace(IDLE, dropped=True, known=True)
    assert leaving.step(0.3, replace(known, unheard=1)) == []
    assert leaving.step(0.4, known) == [Part()]


def test_it_is_dropped_when_the_others_know_that_it_keeps_nothing() -> None:
    """Not before: they would wait until its lease is over. But it does not wait without end."""
    leaving = Leaving(0.0, 30.0)
    leaving.step(0.0, IDLE)
    unheard = replace(IDLE, heard=False)
    assert leaving.step(0.1, unheard) == []
    assert leaving.step(0.2, IDLE) == [AskToLeave()]
    leaving = Leaving(0.0, 30.0)
    leaving.step(0.0, IDLE)
    assert leaving.step(ANSWERED_WITHIN - 0.1, unheard) == []
    assert leaving.step(ANSWERED_WITHIN, unheard) == [AskToLeave()]


def test_the_view_without_it_is_waited_for_while_a_majority_is_heard() -> None:
    """Of two members the one that stays has no majority without this one's vote, and would serve
    nothing any more."""
    leaving = Leaving(0.0, 30.0)
    leaving.step(0.0, IDLE)
    leaving.step(0.1, IDLE)
    slow = 0.1 + DROPPED_AT_LAST - 0.1
    assert leaving.step(slow, IDLE) == [AskToLeave()]
    assert leaving.step(slow, replace(IDLE, dropped=True)) == [ServeNothing()]
    leaving = Leaving(0.0, 30.0)
    leaving.step(0.0, IDLE)
    leaving.step(0.1, IDLE)
    assert leaving.step(5.0, replace(IDLE, stranded=True)) == [AskToLeave()]
    assert leaving.step(5.1, replace(IDLE, stranded=True)) == [ServeNothing(), Part()]
    leaving = Leaving(0.0, 30.0)
    leaving.step(0.0, IDLE)
    leaving.step(0.1, IDLE)
    assert leaving.step(0.1 + DROPPED_AT_LAST, IDLE) == [ServeNothing(), Part()]


def test_what_is_open_ends_at_the_deadline_once() -> None:
    leaving = Leaving(0.0, 30.0)
    leaving.step(0.0, BUSY)
    assert leaving.step(29.9, BUSY) == []
    assert leaving.step(30.0, BUSY) == [EndOpen()]
    assert leaving.step(30.1, BUSY) == []
    assert leaving.step(30.2, replace(BUSY, open=0)) == [ServeNoClient()]


def test_work_that_does_not_end_is_not_waited_for_without_end() -> None:
    leaving = Leaving(0.0, 30.0)
    leaving.step(0.0, BUSY)
    now, phases = 0.05, [leaving.phase]
    while not leaving.over:
        leaving.step(now, BUSY)
        if leaving.phase is not phases[-1]:
            phases.append(leaving.phase)
        now += 0.05
    assert now < 30.0 + ENDED_WITHIN + ANSWERED_WITHIN + DROPPED_AT_LAST + TOLD_WITHIN + PARTING + 1
    assert phases == [
        Phase.DRAINING,
        Phase.CLOSING,
        Phase.DROPPING,
        Phase.PARTING,
        Phase.GONE,
    ]


def test_nothing_is_refused_while_sessions_that_do_not_retry_go_elsewhere() -> None:
    with_sessions = replace(IDLE, sessions=4)
    leaving = Leaving(0.0, 30.0)
    assert leaving.step(0.0, with_sessions) == [Dismiss()]
    assert leaving.step(0.5, with_sessions) == []
    assert not leaving.drained
    assert leaving.step(0.6, IDLE) == [Refuse(), ServeNoClient()]


@pytest.mark.parametrize(("timeout", "until"), [(30.0, DISMISSED_WITHIN), (4.0, 2.0)])
def test_sessions_are_waited_for_only_so_long(timeout: float, until: float) -> None:
    leaving = Leaving(0.0, timeout)
    leaving.step(0.0, replace(BUSY, sessions=1))
    assert leaving.step(until - 0.01, replace(BUSY, sessions=1)) == []
    assert leaving.step(until, replace(BUSY, sessions=1)) == [Refuse()]
    alone = Leaving(0.0, timeout)  # no other member would serve them
    assert alone.step(0.0, replace(BUSY, sessions=1, stranded=True))[:2] == [Dismiss(), Refuse()]


def test_nobody_waits_for_a_handover_that_is_impossible() -> None:
    leaving = Leaving(0.0, 30.0)
    alone = replace(BUSY, open=0, requests=0, stranded=True)
    assert leaving.step(0.0, alone) == [Dismiss(), Refuse(), ServeNoClient()]
    assert leaving.step(0.1, alone) == [ServeNothing(), Part()]


@pytest.mark.parametrize("stranded", [True, False])
def test_other_leaving_members_are_waited_for_only_if_nobody_stays(stranded: bool) -> None:
    leaving = Leaving(0.0, 30.0)
    found = replace(IDLE, stranded=stranded, others_open=True)
    leaving.step(0.0, found)
    assert (leaving.phase is Phase.DRAINING) is stranded
    leaving.step(30.0 + ENDED_WITHIN, found)
    assert leaving.phase is not Phase.DRAINING


def test_any_course_of_events_keeps_the_order() -> None:
    """Dismiss first, then Refuse, then EndOpen at most once and not before the deadline, and
    nothing asks for a view before clients are not served any more."""
    order = [Dismiss, Refuse, EndOpen, ServeNoClient, AskToLeave, ServeNothing, Part]
    for seed in range(300):
        chance = random.Random(seed)
        leaving, now, seen = Leaving(0.0, 10.0), 0.0, []
        while not leaving.over:
            found = Found(
                open=chance.choice((0, 0, 2)),
                requests=chance.choice((0, 1)),
                copies=chance.choice((0, 0, 5)),
                stranded=chance.random() < 0.1,
                others_open=chance.random() < 0.5,
                dropped=chance.random() < 0.3,
                known=chance.random() < 0.3,
                sessions=chance.choice((0, 3)),
            )
            for effect in leaving.step(now, found):
                if isinstance(effect, EndOpen):
                    assert now >= 10.0
                if not seen or type(effect) is not seen[-1]:
                    seen.append(type(effect))
            now += chance.random()
        assert seen[:2] == [Dismiss, Refuse]
        assert seen[-1] is Part
        assert seen == sorted(seen, key=order.index)
        assert len(seen) == len(set(seen))
