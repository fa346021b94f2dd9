"""Credits, ordinals and ends of one stream."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remuda.errors import ProtocolError
from remuda.limits import QUERY_SUSPECT_AFTER, STREAM_GAP_TIMEOUT
from remuda.query.stream import FlowChange, Grant, ReceiverStream, SenderStream

WINDOW = 1000


def receiver(ordered: bool = True) -> ReceiverStream[str]:
    return ReceiverStream(WINDOW, ordered, now=0.0)


def test_the_sender_is_charged_in_bytes_and_counts_ordinals():
    sender = SenderStream(WINDOW)
    assert sender.batch_size_max == 500
    assert [sender.send(400), sender.send(400)] == [0, 1]
    assert sender.credit == 200
    assert sender.may_send(200)
    assert not sender.may_send(201)
    assert sender.on_flow_control(1400) is FlowChange.GRANTED
    assert sender.may_send(600)
    assert sender.send(0, last=True) == 2
    assert not sender.may_send(0)


def test_old_and_repeated_grants_are_harmless():
    sender = SenderStream(WINDOW)
    sender.send(900)
    assert sender.on_flow_control(1900) is FlowChange.GRANTED
    assert sender.on_flow_control(1900) is FlowChange.NOTHING
    assert sender.on_flow_control(1500) is FlowChange.NOTHING
    assert sender.credit == 1000


def test_an_oversized_row_passes_when_half_the_window_is_free_and_blocks_until_it_is_consumed():
    sender, receiving = SenderStream(WINDOW), receiver()
    sender.send(499)
    assert sender.may_send(5000)
    sender.send(5000)
    assert sender.credit < 0
    assert not sender.may_send(1)
    assert sender.may_send(0), "an empty last batch always passes"
    receiving.receive(0, 499, False, "a", 0)
    receiving.consumed(499)
    sender.on_flow_control(receiving.grant(0).granted_bytes)
    assert not sender.may_send(1)
    receiving.receive(1, 5000, False, "b", 0)
    receiving.consumed(5000)
    sender.on_flow_control(receiving.grant(0).granted_bytes)
    assert sender.credit == WINDOW


def test_early_finish_and_failure_reach_the_sender_once():
    sender = SenderStream(WINDOW)
    assert sender.on_flow_control(0, receiver_finished=True) is FlowChange.FINISHED
    assert sender.on_flow_control(0, receiver_finished=True) is FlowChange.NOTHING
    assert sender.may_send(0)
    sender.send(0, last=True)
    assert sender.on_flow_control(9999) is FlowChange.NOTHING
    sender = SenderStream(WINDOW)
    assert sender.on_flow_control(0, ok=False) is FlowChange.FAILED
    assert not sender.may_send(1)
    assert sender.on_flow_control(9999) is FlowChange.NOTHING


def test_ordered_batches_wait_for_their_turn():
    stream = receiver()
    assert stream.receive(2, 10, True, "c", 0) == []
    assert stream.receive(1, 10, False, "b", 0) == []
    assert stream.buffered_bytes == 20
    assert not stream.ended
    assert stream.receive(0, 10, False, "a", 0) == ["a", "b", "c"]
    assert stream.ended
    assert stream.buffered_bytes == 0


def test_unordered_batches_pass_at_once_and_the_end_is_by_count():
    stream = receiver(ordered=False)
    assert stream.receive(2, 10, True, "c", 0) == ["c"]
    assert not stream.ended, "an early last batch does not close the stream"
    assert stream.receive(0, 10, False, "a", 0) == ["a"]
    assert stream.receive(1, 10, False, "b", 0) == ["b"]
    assert stream.ended


@pytest.mark.parametrize("ordered", [True, False])
def test_repeated_ordinals_are_dropped_and_not_counted(ordered):
    stream = receiver(ordered)
    stream.receive(0, 10, False, "a", 0)
    assert stream.receive(0, 10, False, "a", 0) == []
    stream.receive(2, 10, False, "c", 0)
    assert stream.receive(2, 10, False, "c", 0) == []
    assert stream.received_bytes == 20
    stream.receive(3, 10, True, "d", 0)
    assert not stream.ended
    stream.receive(1, 10, False, "b", 0)
    assert stream.ended
    assert stream.receive(3, 10, True, "d", 0) == []


@pytest.mark.parametrize("script", [[(1, True), (2, False)], [(2, False), (1, True)],
                                    [(1, True), (2, True)]])  # fmt: skip
def test_contradictions_about_the_end_are_errors(script):
    stream = receiver(ordered=False)
    with pytest.raises(ProtocolError, match="contradicts the end"):
        for ordinal, last in script:
            stream.receive(ordinal, 1, last, "x", 0)


def test_a_grant_is_due_after_three_batches_or_a_quarter_of_a_window():
    stream = receiver()
    for ordinal in range(3):
        stream.receive(ordinal, 10, False, "x", 0)
        assert stream.grant(0) is None
        stream.consumed(10)
    assert stream.grant(0) == Grant(WINDOW + 30, 0)
    assert stream.grant(0) is None
    stream.receive(3, 249, False, "x", 0)
    stream.consumed(249)
    assert stream.grant(0) is None
    stream.receive(4, 1, False, "x", 0)
    stream.consumed(1)
    assert stream.grant(0) == Grant(WINDOW + 280, 1)


def test_grants_are_repeated_while_nothing_comes_because_one_may_be_lost():
    stream = receiver()
    stream.receive(0, 600, False, "x", 0)
    stream.consumed(600)
    first = stream.grant(0)
    assert stream.grant(QUERY_SUSPECT_AFTER - 1) is None
    assert stream.grant(QUERY_SUSPECT_AFTER).granted_bytes == first.granted_bytes
    stream.receive(1, 1, True, "y", 6)
    assert stream.grant(100) is None, "a sender that has sent all needs no credit"


def test_finish_swallows_the_rest_and_is_told_once():
    stream = receiver()
    stream.receive(1, 10, False, "b", 0)
    grant = stream.finish(0)
    assert grant.receiver_finished
    assert grant.ok
    assert stream.buffered_bytes == 0
    assert stream.finish(0) is None
    assert stream.receive(0, 10, False, "a", 0) == []
    assert stream.receive(2, 0, True, "last", 0) == []
    assert stream.ended, "the sender's empty last batch ends it"


def test_a_refusal_is_sent_at_once():
    stream = receiver()
    assert stream.fail(0) == Grant(WINDOW, 0, ok=False)
    assert stream.fail(0) is None
    assert stream.receive(0, 10, False, "a", 0) == []


def test_a_missing_ordinal_counts_as_lost_after_a_while():
    stream = receiver(ordered=False)
    stream.receive(1, 10, False, "b", 5)
    assert stream.missing == 0
    assert stream.gap_deadline == 5 + STREAM_GAP_TIMEOUT
    assert not stream.lost(stream.gap_deadline - 1)
    assert stream.lost(stream.gap_deadline)
    stream.receive(3, 10, True, "d", 6)
    assert stream.gap_deadline == 5 + STREAM_GAP_TIMEOUT, "the same ordinal is still missing"
    stream.receive(0, 10, False, "a", 7)
    assert stream.missing == 2
    assert stream.gap_deadline == 7 + STREAM_GAP_TIMEOUT, "another one has its own time"
    stream.receive(2, 10, False, "c", 8)
    assert stream.gap_deadline is None


def test_a_lost_last_batch_is_noticed_once_its_sender_has_reported():
    stream = receiver()
    stream.receive(0, 10, False, "a", 0)
    assert stream.gap_deadline is None
    stream.expect_end(3)
    assert stream.lost(3 + STREAM_GAP_TIMEOUT)
    stream.receive(1, 10, False, "b", 4)
    assert not stream.lost(3 + STREAM_GAP_TIMEOUT), "there was progress"
    assert stream.lost(4 + STREAM_GAP_TIMEOUT), "the end is still missing"
    stream.receive(2, 10, True, "c", 5)
    assert stream.ended
    assert stream.gap_deadline is None


@settings(max_examples=200, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 2500), max_size=30),
    ordered=st.booleans(),
    seed=st.randoms(use_true_random=False),
)
def test_any_delivery_gives_every_batch_once_and_nothing_blocks(sizes, ordered, seed):
    """Batches and grants are reordered, repeated and (grants) lost; consuming is arbitrary."""
    sender, stream = SenderStream(WINDOW), receiver(ordered)
    wire, grants, got, inbox = [], [], [], []
    todo = list(enumerate([*sizes, 0]))
    now = 0.0
    for _ in range(3000):
        now += 0.1
        if todo and sender.may_send(todo[0][1]) and seed.random() < 0.6:
            number, size = todo.pop(0)
            ordinal = sender.send(size, last=not todo)
            assert ordinal == number
            wire += [(ordinal, size, sender.ended)] * (1 + (seed.random() < 0.2))
            assert sender.sent_bytes - stream.consumed_bytes <= WINDOW + 2500
        if wire and seed.random() < 0.7:
            ordinal, size, last = wire.pop(seed.randrange(len(wire)))
            inbox += stream.receive(ordinal, size, last, (ordinal, size), now)
        if inbox and seed.random() < 0.7:
            ordinal, size = inbox.pop(0)
            got.append(ordinal)
            stream.consumed(size)
        if (grant := stream.grant(now)) is not None and seed.random() < 0.7:
            grants.append(grant)
        if grants and seed.random() < 0.7:
            grant = grants.pop(seed.randrange(len(grants)))
            sender.on_flow_control(grant.granted_bytes, grant.ok, grant.receiver_finished)
        if stream.ended and not inbox:
            break
    assert stream.ended
    assert sorted(got) == list(range(len(sizes) + 1))
    if ordered:
        assert got == sorted(got)
    assert stream.consumed_bytes == stream.received_bytes == sum(sizes)


@pytest.mark.parametrize("ordered", [True, False])
def test_a_sender_beyond_its_credit_is_refused_so_what_waits_is_bounded(ordered):
    stream = receiver(ordered)
    for ordinal in range(1, 4):  # ordinal 0 is still on its way
        stream.receive(ordinal, 400, False, "x", 0)
    with pytest.raises(ProtocolError, match="exceeds its credit of 1000 bytes"):
        stream.receive(4, 400, False, "x", 0)
    assert stream.received_bytes == 1200


def test_one_row_above_the_window_is_within_the_credit():
    stream = receiver()
    stream.receive(0, 300, False, "x", 0)
    stream.receive(1, 5000, False, "x", 0)
    with pytest.raises(ProtocolError, match="exceeds its credit"):
        stream.receive(2, 5000, False, "x", 0)


@settings(max_examples=100, deadline=None)
@given(sizes=st.lists(st.integers(1, 600), min_size=1, max_size=60), ordered=st.booleans(),
       seed=st.randoms(use_true_random=False))  # fmt: skip
def test_whatever_comes_no_more_than_a_window_and_a_batch_is_held(sizes, ordered, seed):
    """From a sender that knows no credit, in any order, while nothing is consumed."""
    stream = receiver(ordered)
    batches = list(enumerate(sizes))
    seed.shuffle(batches)
    try:
        for ordinal, size in batches:
            stream.receive(ordinal, size, False, "x", 0)
    except ProtocolError:
        assert sum(sizes) > WINDOW
    assert stream.buffered_bytes <= stream.received_bytes <= WINDOW + max(sizes)
