"""Pauses of moves over a network that loses, repeats and reorders messages."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from remuda.transaction.move_pause import HELD_MAX, HeldPauses, OpenPauses, Pause

COORDINATOR = 1
MEMBERS = (2, 3, 4)
JOBS = ("1-a", "1-b", "1-c")


@dataclass(frozen=True)
class Message:
    to: int
    pause: Pause
    over: bool
    oldest: int


@dataclass
class Cluster:
    """One coordinator, whose jobs pause and resume again and again, and members that move."""

    seed: int
    repeats: bool = True
    open: OpenPauses = field(default_factory=OpenPauses)
    held: dict[int, HeldPauses] = field(default_factory=lambda: {n: HeldPauses() for n in MEMBERS})
    network: list[Message] = field(default_factory=list)
    paused: dict[str, Pause] = field(default_factory=dict)
    granted: dict[Pause, set[int]] = field(default_factory=dict)
    ending: list[Pause] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.number = 0

    def send(self, to: int, pause: Pause, *, over: bool) -> None:
        message = Message(to, pause, over, self.open.oldest(pause))
        self.network += [message] * self.random.choice((0, 1, 1, 1, 2))

    def pause(self, job: str) -> None:
        self.number += 1
        pause = self.open.begin(Pause(job, self.number))
        self.paused[job] = pause
        for member in MEMBERS:
            self.open.ask(pause, member)
            self.send(member, pause, over=False)

    def resume(self, job: str) -> None:
        pause = self.open.end(job)
        assert pause == self.paused.pop(job)
        self.ending.append(pause)
        self.say_over(pause)

    def say_over(self, pause: Pause) -> None:
        unheard = self.open.unheard(pause)
        for member in unheard:
            self.send(member, pause, over=True)
        if not unheard or not self.repeats:
            self.ending.remove(pause)

    def begin_or_end(self) -> None:
        job = self.random.choice(JOBS)
        if job in self.paused:
            self.resume(job)
        else:
            self.pause(job)

    def repeat(self) -> None:
        self.say_over(self.random.choice(self.ending))

    def deliver(self) -> None:
        message = self.network.pop(self.random.randrange(len(self.network)))
        held = self.held[message.to]
        held.forget(COORDINATOR, message.oldest)
        if message.over:
            held.release(COORDINATOR, message.pause)
            if self.random.random() < 0.7:  # the answer arrives
                self.open.heard(message.pause, message.to)
        elif held.hold(0.0, COORDINATOR, message.pause):
            self.granted.setdefault(message.pause, set()).add(message.to)

    def check(self) -> None:
        """A member that has granted an open pause moves nothing."""
        for pause in self.paused.values():
            for member in self.granted.get(pause, ()):
                assert pause.job in self.held[member].jobs(0.0, (COORDINATOR, *MEMBERS)), pause

    def run(self) -> None:
        for _ in range(150):
            steps = [self.begin_or_end]
            if self.network:
                steps.append(self.deliver)
            if self.ending:
                steps.append(self.repeat)
            self.random.choice(steps)()
            self.check()
        for job in list(self.paused):
            self.resume(job)
        for _ in range(200):
            while self.network:
                self.deliver()
            for pause in list(self.ending):
                self.say_over(pause)
        for member in MEMBERS:
            assert not self.held[member].jobs(0.0, (COORDINATOR, *MEMBERS)), "a move waits for ever"


def runs(**options: Any) -> None:
    for seed in range(60):
        Cluster(seed, **options).run()


def test_pauses_end_everywhere_and_hold_as_long_as_they_are_open() -> None:
    runs()


def test_an_end_that_is_said_once_is_caught() -> None:
    with pytest.raises(AssertionError, match="waits for ever"):
        runs(repeats=False)


def test_an_end_without_its_number_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def release(self: HeldPauses, _coordinator: int, pause: Pause) -> None:
        self._held.pop(pause.job, None)

    monkeypatch.setattr(HeldPauses, "release", release)
    with pytest.raises(AssertionError, match="Pause"):
        runs()


def test_a_late_pause_that_holds_after_its_end_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HeldPauses, "forget", lambda *_arguments: None)
    release = HeldPauses.release

    def forgetful(self: HeldPauses, coordinator: int, pause: Pause) -> None:
        release(self, coordinator, pause)
        self._over.clear()

    monkeypatch.setattr(HeldPauses, "release", forgetful)
    with pytest.raises(AssertionError):
        runs()


def test_members_remember_only_what_may_still_come() -> None:
    held = HeldPauses()
    for number in range(1, 1000):
        held.forget(COORDINATOR, number)
        held.release(COORDINATOR, Pause(f"1-{number}", number))
    assert len(held._over[COORDINATOR]) == 1
    assert not held.hold(0.0, COORDINATOR, Pause("1-5", 5))


def test_pauses_of_coordinators_that_left_or_failed_hold_nothing() -> None:
    held = HeldPauses()
    assert held.hold(0.0, 1, Pause("1-a", 1))
    assert held.hold(0.0, 2, Pause("2-b", 1))
    assert set(held.jobs(1.0, (1, 2))) == {"1-a", "2-b"}
    assert set(held.jobs(1.0, (2,))) == {"2-b"}
    assert not held.jobs(HELD_MAX, (1, 2))


def test_a_pause_is_forgotten_when_all_have_heard_of_its_end() -> None:
    pauses = OpenPauses()
    pause = pauses.begin(Pause("1-a", 1))
    for member in MEMBERS:
        pauses.ask(pause, member)
    assert pauses.end("1-a") == pause
    assert pauses.unheard(pause) == MEMBERS
    for member in MEMBERS:
        assert pauses.oldest(Pause("1-b", 7)) == 1
        pauses.heard(pause, member)
    assert pauses.unheard(pause) == ()
    assert pauses.oldest(Pause("1-b", 7)) == 7
    assert pauses.end("1-a") is None
