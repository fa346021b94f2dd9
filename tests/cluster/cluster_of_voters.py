"""Members that agree on views over a hostile network, in one thread from one seed.

Every process runs ``Membership`` on a clock of its own speed; its disk keeps what ``Persist`` said.
Messages are delayed, reordered, repeated and lost, the network splits, processes crash and come
back, others join, some leave, and requests to join come from processes that are not there. ``run``
raises ``Violation`` as soon as a promise of design rules 13 and 14 is broken.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from random import Random

from remuda.cluster import agreement as ag
from remuda.cluster import membership as ms
from remuda.cluster.decree import majority
from remuda.cluster.membership import Membership, Times
from remuda.cluster.next_view import next_view
from remuda.datatypes.view import MemberInfo, View

RETRY = 0.5
LEASE = 1.0
DRIFT = 0.05
TIMES = Times(interval=0.3, timeout=1.5, lease=LEASE, retry=RETRY, drift=DRIFT)
TICK = 0.25
TROUBLE = 12.0
"""Seconds of faults; then the network is whole, and after as many again all must agree."""
PROCESSES_MAX = 9


def may_end(membership: Membership) -> bool:
    """Whether a process that is no member any more may end: not before a majority of the view
    without it knows of that view, for it may be the only one that could tell them."""
    members = membership.view.by_number
    aware = membership._aware & members.keys()
    return not membership.member and len(aware) >= majority(len(members))


class Violation(AssertionError):
    pass


def info(number: int, uuid: str = "", port: int = 2) -> MemberInfo:
    return MemberInfo(number, uuid or f"uuid-{number}", "h", 1, port, 3)


def view_of(number: int, members: set[int]) -> View:
    infos = tuple(info(member) for member in sorted(members))
    return View(number, infos, (), last_number=max(members, default=0))


@dataclass(frozen=True)
class Look:
    """``asker`` wants to know whether a process is there."""

    asker: str
    info: MemberInfo


class Process:
    """A member, or one that wants to become one; the disk outlives a crash."""

    def __init__(self, world: World, uuid: str, speed: float, port: int) -> None:
        self.world, self.uuid, self.speed, self.port = world, uuid, speed, port
        self.alive = True
        self.leaving = False
        self.membership: Membership | None = None
        self.disk_view: View | None = None
        self.disk: ag.Persist | None = None
        self.out = False

    @property
    def clock(self) -> float:
        return self.world.now * self.speed

    def boot(self, view: View | None) -> None:
        """``view`` None: it is no member, and begins to ask."""
        self.disk_view, self.membership = view, None
        numbers = [m.number for m in view.members if m.uuid == self.uuid] if view else []
        self.out = view is not None and not numbers
        for number in numbers:
            assert view is not None
            self.membership = Membership(
                number,
                view,
                now=self.clock,
                times=TIMES,
                next_view=next_view,
                restored=self.world.restored(self.disk),
            )

    def step(self, event: ms.Event) -> None:
        assert self.membership is not None
        for effect in self.membership.step(self.clock, event):
            self.world.log.append(f"{self.world.now:.3f} {self.membership.me} {effect}")
            match effect:
                case ag.Persist():
                    self.disk = effect
                case ag.Install(view):
                    self.disk_view, self.disk = view, None
                    self.world.installed(view)
                    # An old wish of its own to join has made it another member meanwhile: it must
                    # become that one, or the view has a member that nobody is.
                    if any(m.uuid == self.uuid for m in view.members) and self.stranger:
                        self.boot(view)
                case ag.Send(to, message):
                    self.world.send(self, to, ag.Received(self.membership.me, message))
                case ms.SendBeat(to, sent):
                    me, view_number = self.membership.me, self.membership.view.number
                    self.world.send(self, to, ms.Beat(me, view_number, sent))
                case ms.AnswerBeat(to, sent):
                    me, view_number = self.membership.me, self.membership.view.number
                    self.world.send(self, to, ms.BeatAnswer(me, view_number, sent))
                case ms.PassOn(to, passed):
                    self.world.send(self, to, passed)
                case ms.Meet(to, there) if to == self.membership.me:
                    self.world.carry(self, self.uuid, Look(self.uuid, there))
                case ms.Meet(to, there):
                    self.world.send(self, to, Look(self.uuid, there))

    def look(self, look: Look) -> None:
        """Try to meet a process, and tell who has asked for it."""
        assert self.membership is not None
        me, found = self.membership.me, self.world.at_address(self, look.info)
        event: ms.Event = ms.NotMet(me, look.info, "it is not there")
        if self.world.is_met(look.info, found):
            event = ms.Met(me, look.info)
        self.world.carry(self, look.asker, event)

    def receive(self, event: object) -> None:
        if isinstance(event, Look):
            if self.membership is not None:
                self.look(event)
        elif self.membership is not None:
            self.step(event)  # type: ignore[arg-type]
        elif isinstance(event, ag.Received) and isinstance(event.message, ag.Decided):
            view = event.message.value
            if any(member.uuid == self.uuid for member in view.members):
                self.boot(view)

    def tick(self) -> None:
        if self.out or (self.membership is not None and may_end(self.membership)):
            self.alive = False
            if not self.leaving:  # it was given up, and comes back as another member
                self.world.add_new()
        elif self.membership is None:
            self.world.ask_to_join(self)
        else:
            self.step(ms.Tick())
            if self.leaving:
                self.step(ms.LeaveAsked(self.membership.me))

    @property
    def stranger(self) -> bool:
        return self.membership is not None and not self.membership.member

    @property
    def serves(self) -> bool:
        return self.alive and self.membership is not None and self.membership.serves(self.clock)

    @property
    def took_over(self) -> bool:
        return self.serves and self.clock >= self.world.takeover_at(self)


class World:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.log: list[str] = []
        self.views: dict[int, View] = {}
        self._queue: list[tuple[float, int, object]] = []
        self._count = 0
        self.processes: dict[str, Process] = {}
        self.uuids: dict[int, str] = {}
        self.meetings: dict[str, set[int]] = {}
        """The members that have met each process."""
        self.phantoms = 0
        self.ended: set[str] = set()
        """Processes that wanted to join, and were started again as others before they had."""
        self.sides: dict[str, int] = {}
        first = view_of(1, set(range(1, self.random.randint(1, 6) + 1)))
        self.installed(first)
        for member in first.members:
            self.add(member.uuid).boot(first)

    def add(self, uuid: str) -> Process:
        speed = 1 + self.random.uniform(-DRIFT, DRIFT)
        process = self.processes[uuid] = Process(self, uuid, speed, 100 + len(self.processes))
        self.at(self.random.uniform(0, TICK), process)
        return process

    def add_new(self) -> None:
        if len(self.processes) < PROCESSES_MAX:
            self.add(f"new-{len(self.processes)}")

    # what mutations replace
    def restored(self, disk: ag.Persist | None) -> ag.Persist | None:
        return disk

    def takeover_at(self, process: Process) -> float:
        assert process.membership is not None
        return process.membership.dropped_until

    def is_met(self, wanted: MemberInfo, found: Process | None) -> bool:
        """Whether the process at an address is the one that is looked for, and no member."""
        return found is not None and found.uuid == wanted.uuid and found.membership is None

    # --- the network ---

    def at(self, delay: float, what: object) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now + delay, self._count, what))

    def send(self, sender: Process, to: int, event: object) -> None:
        uuid = self.uuids.get(to, "")
        if uuid in self.processes:
            self.carry(sender, uuid, event)

    def carry(self, sender: Process, uuid: str, event: object) -> None:
        trouble = self.now < TROUBLE
        if trouble and self.random.random() < 0.1:
            return
        for _ in range(2 if trouble and self.random.random() < 0.05 else 1):
            slow = trouble and self.random.random() < 0.05
            delay = self.random.uniform(0.5, 5.0) if slow else self.random.uniform(0.001, 0.05)
            self.at(delay, (sender, self.processes[uuid], event))

    def ask_to_join(self, process: Process) -> None:
        members = [p for p in self.processes.values() if p.alive and p.membership is not None]
        if members:
            whom = self.random.choice(members)
            self.carry(process, whom.uuid, ms.JoinAsked(info(0, process.uuid, process.port)))

    def at_address(self, looking: Process, there: MemberInfo) -> Process | None:
        """Who accepts a connection of a member, and finishes a handshake."""
        assert looking.membership is not None
        for process in self.processes.values():
            listens = process.port == there.control_port and process.alive
            if listens and self.reachable(looking, process):
                self.meetings.setdefault(process.uuid, set()).add(looking.membership.me)
                return process
        return None

    def reachable(self, a: Process, b: Process) -> bool:
        return self.sides.get(a.uuid, 0) == self.sides.get(b.uuid, 0)

    def installed(self, view: View) -> None:
        known = self.views.setdefault(view.number, view)
        if known != view:
            raise Violation(f"two views {view.number}: {known} and {view}")
        for member in view.members:
            if self.uuids.setdefault(member.number, member.uuid) != member.uuid:
                raise Violation(f"number {member.number} was given twice")
        before = self.views.get(view.number - 1)
        if before is not None:
            for member in view.by_number.keys() - before.by_number.keys():
                self._check_joined(before, view.by_number[member])

    def _check_joined(self, before: View, joined: MemberInfo) -> None:
        if joined.uuid not in self.processes.keys() | self.ended:
            raise Violation(f"a view has {joined.uuid}, which never was")
        met = self.meetings.get(joined.uuid, set()) & before.by_number.keys()
        if len(met) < majority(len(before.members)):
            raise Violation(f"{joined.uuid} was met by {met} alone, of {before}")

    # --- faults ---

    def fault(self) -> None:
        choice = self.random.random()
        process = self.random.choice(list(self.processes.values()))
        if choice < 0.3:
            process.alive = not process.alive
            if process.alive:
                process.boot(process.disk_view)
        elif choice < 0.55:
            self.sides = {uuid: self.random.randint(0, 1) for uuid in self.processes}
        elif choice < 0.65:
            self.reset(process)
        elif choice < 0.75:
            self.sides = {}
        elif choice < 0.86:
            self.add_new()
        elif choice < 0.91:
            self.ask_for_phantoms()
        elif choice < 0.94:
            self.start_again()
        else:
            process.leaving = True

    def start_again(self) -> None:
        """A process ends while it waits to join, and another one is started at its address."""
        for process in list(self.processes.values()):
            if process.alive and process.membership is None and not process.out:
                self.ended.add(process.uuid)
                del self.processes[process.uuid]
                process.uuid = f"{process.uuid}+"
                self.processes[process.uuid] = process

    def ask_for_phantoms(self) -> None:
        """Requests to join of processes that do not exist: at addresses that nobody hears, at those
        of members, at those of processes that join (as if they had been started again since), with
        numbers that others have."""
        members = [p for p in self.processes.values() if p.membership is not None]
        ports = [999, *(p.port for p in self.processes.values())]
        for _ in range(4):
            self.phantoms += 1
            number = self.random.choice((0, 1, 2))
            phantom = info(number, f"phantom-{self.phantoms}", self.random.choice(ports))
            for member in members:
                for again in range(3):
                    self.at(0.3 * again, (member, member, ms.JoinAsked(phantom)))

    def reset(self, process: Process) -> None:
        """Some find its port closed, whether it lives or not."""
        if process.membership is None:
            return
        event = ms.Unreachable(process.membership.me, "refused", refused=True)
        others = [p for p in self.processes.values() if p.alive and p.membership is not None]
        for other in others:
            if other is not process and self.random.random() < 0.7:
                other.step(event)

    def run(self) -> None:
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
                self.fault()
            case "heal":
                self.sides = {}
                for process in self.processes.values():
                    if not process.alive and self.random.random() < 0.7:
                        process.alive = True
                        process.boot(process.disk_view)
            case Process():
                if what.alive:
                    what.tick()
                self.at(TICK, what)
            case (Process() as sender, Process() as to, event):
                if to.alive and self.reachable(sender, to):
                    to.receive(event)

    # --- what must hold ---

    def _check_leases(self) -> None:
        """Who was dropped by a view serves no more when that view's members take over."""
        serving = [p.membership for p in self.processes.values() if p.serves]
        taking = [p.membership for p in self.processes.values() if p.took_over]
        for old in serving:
            for new in taking:
                assert old is not None
                assert new is not None
                if new.view.number > old.view.number and old.me not in new.view.by_number:
                    raise Violation(
                        f"{old.me} serves in view {old.view.number}, and {new.me} has taken over"
                        f" in view {new.view.number}"
                    )

    def _check_agreement(self) -> None:
        """The last view's live members are in it, if they are a majority, and serve."""
        last = self.views[max(self.views)]
        live = [
            process
            for member in last.members
            if (process := self.processes.get(member.uuid)) is not None
            and process.alive
            and not process.leaving
        ]
        knows = any(p.alive and p.disk_view == last for p in self.processes.values())
        if len(live) <= len(last.members) // 2 or not knows:
            return  # too many were lost at once, or all who knew of the decision
        for process in live:
            if process.membership is None or process.membership.view != last:
                raise Violation(f"{process.uuid} is still in {process.membership}")
            if not process.serves:
                raise Violation(f"{process.uuid} does not serve in {process.membership}")
        if len(live) != len(last.members):
            raise Violation(f"{last} still has members that are lost or want to leave")
        waiting = [p.uuid for p in self.processes.values() if p.alive and p.membership is None]
        if waiting:
            raise Violation(f"{waiting} have not been let in")


def run(seed: int, world: type[World] = World) -> World:
    found = world(seed)
    try:
        found.run()
    except AssertionError as problem:
        tail = "\n".join(found.log[-40:])
        raise Violation(f"seed {seed}: {problem}\n{tail}") from problem
    return found
