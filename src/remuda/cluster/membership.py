"""The members of the cluster as one of them knows them: heartbeats, suspicion, joining, leaving,
and the lease under which it serves (design rules 13 and 14). Pure.

``step(now, event) -> effects``; ``now`` is monotonic seconds. Once per ``interval`` a member sends
a heartbeat to every other one; the answers renew its lease, the heartbeats of others show that they
live. A member that has been silent for ``timeout``, or could not be reached when its connection
broke, is suspected; a suspicion ends when the member is heard again. It is given up after
``timeout`` of silence, or when nobody has listened at its address for ``grace``: a connection that
is reset, and refused for a moment, does not show that a process has ended. A member that gives
another one up, or knows of one that wants to join or to leave, wishes for the view without, or
with, them (``cluster.agreement``), the oldest first; a process that wants to join is met by a
majority before (``cluster.joiners``). A cluster that cannot agree changes nothing: a
member without a majority neither serves (its lease runs out) nor gets another view.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from remuda.cluster import agreement as ag
from remuda.cluster.agreement import Agreement
from remuda.cluster.joiners import Joiners
from remuda.cluster.lease import Lease, takeover_delay
from remuda.cluster.next_view import Placement
from remuda.datatypes.view import MemberInfo, View

LEFT = "it has left the cluster"
FIRST_BEATS = 8
"""Heartbeats per interval until a new view has given its first lease."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds. ``lease`` < ``timeout``: a member that is given up has mostly stopped serving."""

    interval: float
    timeout: float
    lease: float
    retry: float
    drift: float = 0.01

    def __post_init__(self) -> None:
        assert self.interval < self.lease < self.timeout, "a lease outlives some lost heartbeats"

    @property
    def grace(self) -> float:
        """For how long a member at whose address nobody listens may be heard again. Its lease runs
        out meanwhile, so a crash keeps its partitions from being served no longer than before."""
        return self.lease


# --- events -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Beat:
    """A heartbeat from ``sender``, sent at ``sent`` on its clock, in its view."""

    sender: int
    view: int
    sent: float


@dataclass(frozen=True, slots=True)
class BeatAnswer:
    """``sender`` has had the heartbeat that this member sent at ``sent`` in view ``view``."""

    sender: int
    view: int
    sent: float


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The connection to ``member`` broke, and no other one could be made. ``refused``: its host is
    there and nobody listens at its port. Tell it again as long as that is so."""

    member: int
    cause: str
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Reached:
    """Somebody listens at the address of ``member``; it has not been heard."""

    member: int


@dataclass(frozen=True, slots=True)
class JoinAsked:
    """A process that is no member yet; its number is 0. Ask again until a view has it."""

    info: MemberInfo


@dataclass(frozen=True, slots=True)
class Met:
    """``member`` has opened a connection to the address in ``info``, and the process there has said
    in its handshake that it is the one, and no member."""

    member: int
    info: MemberInfo


@dataclass(frozen=True, slots=True)
class NotMet:
    """``member`` has not found the process, or could not be asked."""

    member: int
    info: MemberInfo
    why: str


@dataclass(frozen=True, slots=True)
class LeaveAsked:
    """``member`` keeps nothing that others need any more, and wants to leave. ``until``: the
    timestamp until which it is expected back; 0: it is not."""

    member: int
    until: int = 0


@dataclass(frozen=True, slots=True)
class VersionAsked:
    """The cluster is to work in ``version``, once every member does. Ask again until a view says
    so."""

    version: int


@dataclass(frozen=True, slots=True)
class PlaceAsked:
    """Copies of partitions are complete, or are to go: ask again until a view says so."""

    places: tuple[Placement, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: call several times per interval."""


Asked = JoinAsked | LeaveAsked | PlaceAsked | VersionAsked
Joiner = JoinAsked | Met | NotMet
Heard = Beat | BeatAnswer | Unreachable | Reached | ag.HeardOf | ag.Received
Event = Heard | Asked | Joiner | Tick


# --- effects ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SendBeat:
    to: int
    sent: float


@dataclass(frozen=True, slots=True)
class AnswerBeat:
    to: int
    sent: float


@dataclass(frozen=True, slots=True)
class PassOn:
    """Send the wish to the member that proposes views."""

    to: int
    event: Asked


@dataclass(frozen=True, slots=True)
class Meet:
    """Have member ``to`` (this one itself, or another one) look for the process at the address in
    ``info``; the answer is ``Met`` or ``NotMet``."""

    to: int
    info: MemberInfo


@dataclass(frozen=True, slots=True)
class Suspect:
    """For the log."""

    member: int
    cause: str


Effect = SendBeat | AnswerBeat | PassOn | Meet | Suspect | ag.Effect

NextView = Callable[
    [
        View,
        frozenset[int],
        tuple[MemberInfo, ...],
        tuple[Placement, ...],
        Mapping[int, int],
        Mapping[int, str],
    ],
    View,
]
"""``next_view(view, without, joining, places, leaving, causes)``: the view that follows; it numbers
the joining ones and says who keeps which partition. ``leaving``: those of ``without`` that asked
for it, and until when they are expected back; ``causes``: why members are gone."""


@dataclass(slots=True)
class _Known:
    """The judgement of this member about another one of its view."""

    heard: float
    answered: float
    """When a heartbeat of it was answered last, in this view; at first when the view came."""
    suspected: str = ""
    refused_since: float | None = None
    """Since when nobody has listened at its address."""
    refused_last: float = 0.0
    """When that was found last."""

    def given_up(self, now: float, times: Times) -> bool:
        if not self.suspected:
            return False
        return now - self.heard >= times.timeout or self._port_closed(now, times)

    def _port_closed(self, now: float, times: Times) -> bool:
        """For one grace, and still: a probe that gets no answer now shows nothing. Its packet may
        have been lost when the network came back, and TCP repeats it after a second."""
        if self.refused_since is None or now - self.refused_since < times.grace:
            return False
        return now - self.refused_last <= times.interval / 2


@dataclass(slots=True)
class _Wishes:
    leaving: dict[int, int] = field(default_factory=dict)
    places: dict[int, Placement] = field(default_factory=dict)
    version: int = 0


class Membership:
    """Of member number ``me``, in ``view``; a view of one member has founded the cluster.

    A process whose uuid has another number in an installed view (its wish to join came late)
    makes a new ``Membership`` with that number, and keeps nothing of the old one: a view must not
    have a member that nobody is.
    """

    def __init__(
        self,
        me: int,
        view: View,
        *,
        now: float,
        times: Times,
        next_view: NextView,
        restored: ag.Persist | None = None,
    ) -> None:
        self.me = me
        self.times = times
        self._next_view = next_view
        self._agreement = Agreement(
            me, view, retry=times.retry, restored=restored, quiet_for=self._quiet_for
        )
        self._wishes = _Wishes()
        self._joiners = Joiners(
            me, patience=times.lease, lasting=times.timeout, retry=times.interval
        )
        self.view = view
        self.lease = Lease(me, view.by_number, times.lease)
        self.takeover_at = now
        """When what members of former views owned may be served, wherever these are now."""
        if view.number > 1:  # who joins or comes back does not know how long ago that was
            self.takeover_at += takeover_delay(times.lease, times.drift)
        self.dropped_until = self.takeover_at
        """The same for what members owned that this view has dropped: never later."""
        self._beat_due = now
        self._aware: set[int] = set()
        """Members that are known to have installed this view."""
        self._known = self._strangers(now, view)
        self._newcomers: frozenset[int] = frozenset()
        """Members that this or the last views have let in, and that have not been heard yet."""

    def _strangers(self, now: float, view: View) -> dict[int, _Known]:
        return {number: _Known(now, now) for number in view.by_number if number != self.me}

    def _quiet_for(self, now: float, member: int) -> float:
        known = self._known.get(member)
        return 0.0 if known is None else now - known.answered

    def _installed(self, now: float, view: View, quiet: ag.Quiet) -> None:
        before = self.lease.until(now) if self.member else float("-inf")
        former, self.view = self.view, view
        self.lease = Lease(self.me, view.by_number, self.times.lease, before)
        delay = takeover_delay(self.times.lease, self.times.drift)
        dropped = former.by_number.keys() - view.by_number.keys()
        known = dict(quiet) if view.number == former.number + 1 else {}
        silence = min((known.get(number, 0.0) for number in dropped), default=0.0)
        self.takeover_at = now + delay
        self.dropped_until = now + max(0.0, delay - silence)
        self._beat_due = now  # the new lease soon
        self._aware = set()
        self._known = self._strangers(now, view)
        fresh = view.by_number.keys() - former.by_number.keys() - {self.me}
        self._newcomers = (self._newcomers | fresh) & view.by_number.keys()
        self._joiners.forget({member.uuid for member in view.members})
        self._wishes.leaving = {
            number: until
            for number, until in self._wishes.leaving.items()
            if number in view.by_number
        }
        self._wishes.places = {
            partition: place for partition, place in self._wishes.places.items() if place.fits(view)
        }

    # --- what the member asks -------------------------------------------------------------------

    def beat_soon(self) -> None:
        """The next tick sends heartbeats."""
        self._beat_due = float("-inf")

    @property
    def member(self) -> bool:
        """Whether this process still is one of the cluster's."""
        return self.me in self.view.by_number

    @property
    def unaware(self) -> frozenset[int]:
        """Other members of the view that are not known to have installed it; not suspected ones."""
        others = self.view.by_number.keys() - self.suspected.keys() - {self.me}
        return frozenset(others - self._aware)

    @property
    def unheard_by(self) -> frozenset[int]:
        """Other members that may not know that this one has installed the present view; not
        suspected ones."""
        return self.lease.unanswered - self.suspected.keys()

    def serves(self, now: float) -> bool:
        """Whether it may act as a primary, for reads and for prepares."""
        return self.member and self.lease.valid(now)

    @property
    def suspected(self) -> Mapping[int, str]:
        return {n: known.suspected for n, known in self._known.items() if known.suspected}

    def why_not_joined(self, info: MemberInfo) -> str:
        """Why a majority cannot meet a process that asks this member to join; empty: it may, or
        another member knows."""
        return self._joiners.why_not(replace(info, number=0), self._reached, len(self.view.members))

    def __str__(self) -> str:
        doubts = ", ".join(f"suspects {n}: {why}" for n, why in self.suspected.items())
        return f"{self._agreement}" + (f", {doubts}" if doubts else "")

    # --- events ---------------------------------------------------------------------------------

    def step(self, now: float, event: Event) -> list[Effect]:
        """Take an event in; returns the effects that the shell must perform, in order."""
        match event:
            case Beat():
                return self._on_beat(now, event)
            case BeatAnswer(sender, view, sent):
                if view == self.view.number:
                    self.lease.on_answer(sender, sent)
                return []
            case Unreachable():
                return self._on_unreachable(now, event)
            case Reached(member):
                if member in self._known:
                    self._known[member].refused_since = None
                return []
            case JoinAsked() | Met() | NotMet():
                return self._on_joiner(now, event)
            case LeaveAsked() | PlaceAsked() | VersionAsked():
                return self._on_asked(now, event)
            case ag.HeardOf():
                return self._agree(now, event)
            case ag.Received(sender, message):
                if isinstance(message, ag.Installed) and message.view >= self.view.number:
                    self._aware.add(sender)
                heard = self._on_heard(now, sender)
                return [*heard, *self._agree(now, event)]
            case Tick():
                return self._on_tick(now)

    def _on_beat(self, now: float, beat: Beat) -> list[Effect]:
        if beat.view != self.view.number:
            if beat.view < self.view.number:
                self._aware = set()
            return self._agree(now, ag.HeardOf(beat.sender, beat.view))
        if beat.sender not in self._known:
            return []
        heard = self._on_heard(now, beat.sender)
        if self._agreement.answers and beat.view == self.view.number:
            self._known[beat.sender].answered = now
            heard.append(AnswerBeat(beat.sender, beat.sent))
        return heard

    def _on_heard(self, now: float, sender: int) -> list[Effect]:
        """Its sender lives: after a split has healed, nobody is to be dropped with its own vote."""
        known = self._known.get(sender)
        if known is None:
            return []
        known.heard = now
        self._newcomers -= {sender}
        if not known.suspected:
            return []
        known.suspected, known.refused_since = "", None
        return self._wish(now)

    def _on_unreachable(self, now: float, event: Unreachable) -> list[Effect]:
        known = self._known.get(event.member)
        if known is None:
            return []
        if not event.refused:
            known.refused_since = None
        else:
            known.refused_last = now
            if known.refused_since is None:
                known.refused_since = now
        return [*self._suspect(event.member, event.cause), *self._wish(now)]

    def silence(self, now: float, member: int) -> float | None:
        """Seconds since a member of the view was heard; 0 for this one itself."""
        if member == self.me:
            return 0.0
        known = self._known.get(member)
        return None if known is None else max(0.0, now - known.heard)

    def _on_tick(self, now: float) -> list[Effect]:
        out: list[Effect] = []
        due = now >= self._beat_due
        if due:
            quick = 1 if self.lease.granted else FIRST_BEATS
            self._beat_due = now + self.times.interval / quick
        if not self.member:
            unaware = self.view.by_number.keys() - self._aware if due else ()
            return [ag.Send(to, ag.Decided(self.view)) for to in unaware]
        if due:
            out += [SendBeat(number, now) for number in self._known]
        for number, known in self._known.items():
            silence = now - known.heard
            if silence >= self.times.timeout:
                out += self._suspect(number, f"no heartbeat for {silence:.1f} s")
        return [*out, *self._wish(now), *self._agree(now, ag.Tick())]

    def _suspect(self, member: int, cause: str) -> list[Effect]:
        known = self._known.get(member)
        if known is None or known.suspected:
            return []
        known.suspected = cause
        return [Suspect(member, cause)]

    def _on_joiner(self, now: float, event: Joiner) -> list[Effect]:
        match event:
            case JoinAsked(info):
                return self._on_join(now, info)
            case Met(member, info):
                self._joiners.met(now, member, info)
                return [*self._meet(now, info), *self._wish(now)]
            case NotMet(member, info, why):
                self._joiners.not_met(member, info, why)
                return []

    def _on_join(self, now: float, info: MemberInfo) -> list[Effect]:
        known = next((m for m in self.view.members if m.uuid == info.uuid), None)
        if known is not None:  # it has not heard that it is in
            return [ag.Send(known.number, ag.Decided(self.view))]
        oldest, info = self._oldest(), replace(info, number=0)
        if oldest != self.me:
            return [PassOn(oldest, JoinAsked(info))]
        if not self.member or not self._joiners.asked(now, info):
            return []
        return [*self._meet(now, info), *self._wish(now)]

    def _meet(self, now: float, info: MemberInfo) -> list[Effect]:
        due = self._joiners.to_meet(now, info, self._reached)
        return [Meet(number, info) for number in due]

    @property
    def _reached(self) -> list[int]:
        return [number for number in self.view.by_number if number not in self.suspected]

    def _on_asked(self, now: float, event: LeaveAsked | PlaceAsked | VersionAsked) -> list[Effect]:
        match event:
            case LeaveAsked():
                return self._on_leave(now, event)
            case PlaceAsked(places):
                return self._on_place(now, places)
            case VersionAsked():
                return self._on_version(now, event)

    def _on_leave(self, now: float, event: LeaveAsked) -> list[Effect]:
        member = event.member
        if member not in self.view.by_number:
            return []
        oldest = self._oldest(but=member)
        if oldest != self.me:
            return [PassOn(oldest, event)] if oldest else []
        self._wishes.leaving[member] = event.until
        return self._wish(now)

    def _on_place(self, now: float, places: tuple[Placement, ...]) -> list[Effect]:
        fitting = tuple(place for place in places if place.fits(self.view))
        oldest = self._oldest()
        if not fitting or not self.member:
            return []
        if oldest != self.me:
            return [PassOn(oldest, PlaceAsked(fitting))]
        self._wishes.places.update((place.partition, place) for place in fitting)
        return self._wish(now)

    def _on_version(self, now: float, event: VersionAsked) -> list[Effect]:
        if not self.member or event.version <= self.view.version:
            return []
        oldest = self._oldest()
        if oldest != self.me:
            return [PassOn(oldest, event)]
        self._wishes.version = event.version
        return self._wish(now)

    # --- the next view --------------------------------------------------------------------------

    def _oldest(self, but: int = 0) -> int:
        """The proposer, as far as this member knows: the lowest number that it does not suspect."""
        alive = [n for n in self.view.by_number if n not in self.suspected and n != but]
        return min(alive, default=0)

    def _wish(self, now: float) -> list[Effect]:
        if not self.member:
            return []
        lost = {
            number: known.suspected
            for number, known in self._known.items()
            if known.given_up(now, self.times)
        }
        causes = {**dict.fromkeys(self._wishes.leaving, LEFT), **lost}
        without = frozenset(causes)
        if without >= self.view.by_number.keys():
            without -= {self.me}  # somebody must be left: the last one need not ask
        members = self.view.by_number
        staying = [info for number, info in members.items() if number not in without]
        version = self._version(staying)
        admitted = self._joiners.admitted(now, members, self._room(without))
        joining = tuple(info for info in admitted if version in info.versions)
        places = tuple(self._wishes.places.values())
        if not without and not joining and not places and version == self.view.version:
            return self._agree(now, ag.Wish(None))
        silent = without | self.suspected.keys()
        rank = sum(n < self.me for n in self.view.by_number if n not in silent)
        leaving = dict(self._wishes.leaving)
        view = self._next_view(self.view, without, joining, places, leaving, causes)
        view = replace(view, version=version)
        return self._agree(now, ag.Wish(view, rank))

    def _version(self, staying: Sequence[MemberInfo]) -> int:
        """Of the next view. It never falls: members may have kept what came with it. A wish that
        a member does not fit is dropped, or the version would rise when that member leaves, at a
        moment that nobody has chosen."""
        wanted = self._wishes.version
        if wanted <= self.view.version or any(wanted not in info.versions for info in staying):
            self._wishes.version = 0
            return self.view.version
        return wanted

    def _room(self, without: frozenset[int]) -> int:
        """How many processes the next view may name. If all of them end before they vote, the
        members that are reached should be its majority yet; one is let in in any case, but nobody
        before those that were let in have been heard."""
        if self._newcomers - without:
            return 0
        staying = self.view.by_number.keys() - without
        reached = staying - self.suspected.keys()
        return max(1, 2 * len(reached) - 1 - len(staying))

    def _agree(self, now: float, event: ag.Event) -> list[Effect]:
        effects = self._agreement.step(now, event)
        for effect in effects:
            if isinstance(effect, ag.Install):
                self._installed(now, effect.view, effect.quiet)
        return list(effects)
