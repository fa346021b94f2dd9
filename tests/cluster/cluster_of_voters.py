"""Members that agree on views over a hostile network, in one thread from one seed.

Every member runs ``Agreement`` and ``Lease`` on a clock of its own speed; its disk keeps what
``Persist`` said. Messages are delayed, reordered, repeated and lost, the network splits, members
crash and come back. ``run`` raises ``Violation`` as soon as a promise of design rules 13 and 14 is
broken.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from random import Random

from remuda.cluster import agreement as ag
from remuda.cluster.agreement import Agreement
from remuda.cluster.lease import Lease, takeover_delay
from remuda.datatypes.view import MemberInfo, View

RETRY = 0.5
BEAT = 0.25
LEASE = 1.0
DRIFT = 0.05
TROUBLE = 12.0
"""Seconds of faults; then the network is whole, and after as many again all must agree."""


class Violation(AssertionError):
    pass


def info(number: int) -> MemberInfo:
    return MemberInfo(number, f"uuid-{number}", "h", 1, 2, 3)


def view_of(number: int, members: set[int]) -> View:
    return View(number, tuple(info(member) for member in sorted(members)), ())


@dataclass(frozen=True, slots=True)
class Beat:
    view: int
    sent: float


@dataclass(frozen=True, slots=True)
class BeatAnswer:
    view: int
    sent: float


class Voter:
    """One member process; ``disk`` outlives it."""

    def __init__(self, world: World, number: int, view: View, speed: float) -> None:
        self.world, self.number, self.speed = world, number, speed
        self.disk_view = view
        self.disk: ag.Persist | None = None
        self.alive = True
        self.life = 0
        self.boot()

    def boot(self) -> None:
        self.machine = Agreement(
            self.number, self.disk_view, retry=RETRY, restored=self.world.restored(self.disk)
        )
        self.started()

    def started(self) -> None:
        view = self.machine.view
        self.lease = Lease(self.number, view.by_number, LEASE)
        wait = 0.0 if view.number == 1 else self.world.takeover_delay()
        self.serves_from = self.clock + wait
        """When it may serve what members owned that views before this one have dropped."""

    @property
    def clock(self) -> float:
        return self.world.now * self.speed

    def step(self, event: ag.Event) -> None:
        for effect in self.machine.step(self.clock, event):
            self.world.log.append(f"{self.world.now:.3f} {self.number} {effect}")
            match effect:
                case ag.Persist():
                    self.disk = effect
                case ag.Send(to, message):
                    self.world.send(self.number, to, message)
                case ag.Install(view):
                    self.disk_view, self.disk = view, None
                    self.world.installed(view)
                    self.started()

    def receive(self, sender: int, message: object) -> None:
        view = self.machine.view
        match message:
            case Beat(number, sent):
                if number == view.number and self.machine.may_answer(sender):
                    self.world.send(self.number, sender, BeatAnswer(number, sent))
                elif number != view.number:
                    self.step(ag.HeardOf(sender, number))
            case BeatAnswer(number, sent):
                if number == view.number:
                    self.lease.on_answer(sender, sent)
            case _:
                self.step(ag.Received(sender, message))  # type: ignore[arg-type]

    def tick(self) -> None:
        view = self.machine.view
        for other in view.by_number:
            if other != self.number:
                self.world.send(self.number, other, Beat(view.number, self.clock))
        if self.number in view.by_number:
            self.step(ag.Wish(*self.world.wish(self)))
        self.step(ag.Tick())

    @property
    def serves(self) -> bool:
        """As a primary of the view it believes in."""
        return (
            self.alive
            and self.number in self.machine.view.by_number
            and self.lease.valid(self.clock)
        )

    @property
    def took_over(self) -> bool:
        return self.serves and self.clock >= self.serves_from


class World:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.log: list[str] = []
        self.views: dict[int, View] = {}
        self._queue: list[tuple[float, int, object]] = []
        self._count = 0
        size = self.random.randint(1, 6)
        first = view_of(1, set(range(1, size + 1)))
        self.voters: dict[int, Voter] = {}
        for number in first.by_number:
            self.voters[number] = Voter(self, number, first, self._speed())
        self.joining: set[int] = set()
        self.sides: dict[int, int] = {}
        self.installed(first)

    # what mutations replace
    def restored(self, disk: ag.Persist | None) -> ag.Persist | None:
        return disk

    def takeover_delay(self) -> float:
        return takeover_delay(LEASE, DRIFT)

    def _speed(self) -> float:
        return 1 + self.random.uniform(-DRIFT, DRIFT)

    # --- the network ---

    def at(self, delay: float, what: object) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now + delay, self._count, what))

    def send(self, sender: int, to: int, message: object) -> None:
        trouble = self.now < TROUBLE
        if trouble and self.random.random() < 0.1:
            return
        for _ in range(2 if trouble and self.random.random() < 0.05 else 1):
            slow = trouble and self.random.random() < 0.05
            delay = self.random.uniform(0.5, 5.0) if slow else self.random.uniform(0.001, 0.05)
            self.at(delay, (sender, to, message))

    def reachable(self, a: int, b: int) -> bool:
        return self.sides.get(a, 0) == self.sides.get(b, 0)

    def installed(self, view: View) -> None:
        known = self.views.setdefault(view.number, view)
        if known != view:
            raise Violation(f"two views {view.number}: {known} and {view}")

    # --- membership: who is thought lost, who wants in ---

    def wish(self, voter: Voter) -> tuple[View | None, int]:
        view = voter.machine.view
        now = set(view.by_number)
        lost = {
            number
            for number in now
            if not self.voters[number].alive or not self.reachable(voter.number, number)
        }
        if self.now < TROUBLE and self.random.random() < 0.02:
            lost.add(self.random.choice(sorted(now)))  # a false suspicion
        lost.discard(voter.number)
        joining = {
            number
            for number in self.joining - now
            if self.voters[number].alive and self.reachable(voter.number, number)
        }
        wanted = (now - lost) | joining
        rank = sum(number < voter.number for number in now - lost)
        return (None if wanted == now else view_of(view.number + 1, wanted)), rank

    # --- faults ---

    def fault(self) -> None:
        choice = self.random.random()
        number = self.random.choice(sorted(self.voters))
        voter = self.voters[number]
        if choice < 0.3:
            voter.alive = not voter.alive
            if voter.alive:
                voter.life += 1
                voter.boot()
        elif choice < 0.6:
            self.sides = {n: self.random.randint(0, 1) for n in self.voters}
        elif choice < 0.8:
            self.sides = {}
        elif len(self.voters) < 8:
            new = max(self.voters) + 1
            self.joining.add(new)
            self.voters[new] = Voter(self, new, view_of(0, set()), self._speed())

    def run(self) -> None:
        for number in self.voters:
            self.at(self.random.uniform(0, BEAT), number)
        for _ in range(self.random.randint(0, 12)):
            self.at(self.random.uniform(0, TROUBLE), "fault")
        self.at(TROUBLE, "heal")
        while self._queue:
            when, _, what = heapq.heappop(self._queue)
            self.now = when
            if when > 2 * TROUBLE:
                break
            self._happen(what)
            self._check_leases()
        self._check_agreement()

    def _happen(self, what: object) -> None:
        match what:
            case "fault":
                known = set(self.voters)
                self.fault()
                for number in set(self.voters) - known:
                    self.at(0.0, number)
            case "heal":
                self.sides = {}
                for voter in self.voters.values():
                    if not voter.alive and self.random.random() < 0.7:
                        voter.alive = True
                        voter.boot()
            case int():
                if self.voters[what].alive:
                    self.voters[what].tick()
                self.at(BEAT, what)
            case (sender, to, message):
                voter = self.voters[to]
                if voter.alive and self.reachable(sender, to):
                    voter.receive(sender, message)

    # --- what must hold ---

    def _check_leases(self) -> None:
        """Who was dropped by a view serves no more when that view's members take over."""
        serving = [voter for voter in self.voters.values() if voter.serves]
        for old in serving:
            for new in serving:
                older, newer = old.machine.view, new.machine.view
                dropped = newer.number > older.number and old.number not in newer.by_number
                if dropped and new.took_over:
                    raise Violation(
                        f"{old.number} serves in view {older.number}, and {new.number} has taken"
                        f" over in view {newer.number}"
                    )

    def _check_agreement(self) -> None:
        """The last view's live members are in it, if they are a majority, and serve."""
        last = self.views[max(self.views)]
        live = {n for n in last.by_number if self.voters[n].alive}
        if len(live) <= len(last.by_number) // 2:
            return
        for number in live:
            voter = self.voters[number]
            if voter.machine.view != last:
                raise Violation(f"{number} is still in {voter.machine}")
            if not voter.serves:
                raise Violation(f"{number} does not serve in {voter.machine}")
        if set(last.by_number) != live:
            raise Violation(f"{last} still has members that are lost")
        waiting = {n for n in self.joining if self.voters[n].alive} - set(last.by_number)
        if waiting:
            raise Violation(f"{waiting} have not been let in")


def run(seed: int, world: type[World] = World) -> World:
    found = world(seed)
    try:
        found.run()
    except Violation as problem:
        tail = "\n".join(found.log[-40:])
        raise Violation(f"seed {seed}: {problem}\n{tail}") from None
    return found
