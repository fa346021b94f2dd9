"""What a transaction sends, and how a member follows the queue."""

from __future__ import annotations

import pytest

from remuda.errors import InvalidParameterValue, LimitExceeded
from remuda.member.notifications.inbox import INBOX_SIZE_MAX, Inbox
from remuda.transaction.notifications import (
    SENT_SIZE_MAX,
    Follower,
    Heard,
    Listen,
    Notification,
    OwnNotifications,
    Sent,
    Unlisten,
    checked,
)


def of(*payloads: str) -> list[Notification]:
    return [Notification("c", payload) for payload in payloads]


def test_the_same_notification_is_sent_once() -> None:
    own = OwnNotifications()
    for each in of("a", "b", "a"):
        own.notify(each)
    assert own.sent == of("a", "b")


def test_a_rollback_to_a_savepoint_takes_back_what_came_since() -> None:
    own = OwnNotifications()
    own.notify(*of("before"))
    own.choose(Listen("c"))
    own.notify(*of("within"), 1)
    own.notify(*of("deeper"), 2)
    own.choose(Unlisten(None), 2)
    own.rolled_back_to(2)
    assert own.sent == of("before", "within")
    assert own.choices == [Listen("c")]
    own.rolled_back_to(1)
    own.notify(*of("within"), 1)
    own.released(0)
    own.notify(*of("later"), 1)
    own.rolled_back_to(1)
    assert own.sent == of("before", "within")


def test_room_is_given_back_by_a_rollback() -> None:
    own = OwnNotifications()
    big = SENT_SIZE_MAX // 2
    own.notify(Notification("c", "x" * big))
    with pytest.raises(LimitExceeded, match="too many notifications"):
        own.notify(Notification("c", "y" * big))
    own.rolled_back_to(0)
    own.notify(Notification("c", "y" * big))


@pytest.mark.parametrize(
    ("channel", "payload"), [("", ""), ("ä" * 32, ""), ("c", "x" * 8000), ("c", "ä" * 4000)]
)
def test_names_and_payloads_have_limits(channel: str, payload: str) -> None:
    with pytest.raises(InvalidParameterValue):
        checked(channel, payload)


def part(timestamp: int, tag: int = 0, place: int = 0) -> Sent:
    return Sent(timestamp, tag, place, 1, tuple(of(f"{timestamp}.{tag}.{place}")))


def test_commits_are_told_by_timestamp_and_tag() -> None:
    follower = Follower(10)
    sent = (part(12, 7), part(11, 9, 1), part(11, 9), part(12, 3))
    told = follower.step(Heard(10, 15, sent))
    assert told == [part(11, 9), part(11, 9, 1), part(12, 3), part(12, 7)]
    assert follower.position == 15


def test_answers_that_come_twice_or_late_tell_nothing() -> None:
    follower = Follower(10)
    first = Heard(10, 12, (part(11),))
    assert follower.step(first) == [part(11)]
    assert follower.step(first) == []
    assert follower.step(Heard(10, 14, (part(11), part(13)))) == [part(13)]
    assert follower.step(Heard(20, 30, (part(25),))) == []  # what is between is not known
    assert follower.position == 14


def test_an_inbox_hears_what_was_committed_since() -> None:
    inbox, told = Inbox(), []
    inbox.serve(lambda: told.append(len(inbox)), lambda _: None)
    inbox.choose([Listen("c")], 10)
    for timestamp in (10, 11):
        inbox.hear(part(timestamp))
    assert told == [1]
    inbox.choose([Unlisten("c"), Listen("c")], 20)
    inbox.hear(part(12))
    assert [payload for _, _, payload in inbox.take()] == ["11.0.0", "12.0.0"]
    inbox.hear(part(13))
    inbox.choose([Unlisten(None)], 0)
    assert not inbox.take()


def test_a_session_whose_inbox_is_full_ends() -> None:
    inbox, ends = Inbox(), []
    inbox.serve(lambda: None, ends.append)
    inbox.choose([Listen("c")], 0)
    sent = Sent(1, 0, 0, 1, tuple(of("x" * 1_000_000)))
    while not ends:
        inbox.hear(sent)
        assert inbox.usage <= 1.1
    assert (ends[0].sqlstate, len(inbox), inbox.listening) == ("53400", 0, False)
    assert str(INBOX_SIZE_MAX) in ends[0].message
