"""The driver's decisions: which member founds the hosted cluster, which ones join it, and where.
Pure.

Each of N tasks has a *seat*. Before the cluster is formed nobody is answered until all N have
said where their members will listen; then the lowest seat that has a log of an earlier run (else
the lowest) founds, and the others join it. From then on whoever takes an empty seat joins a member
that serves. A task that is lost before anybody was answered comes again; one that is lost between
the answers and the last member ends this try, since the others were told to wait for it.
A second attempt of a task whose first one is still there (speculation, or an executor that the
driver has not yet given up) waits until the seat is empty.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from remuda.client.embedded.ready import Ready

LOSSES_KEPT: Final = 1000


@dataclass(frozen=True, slots=True)
class Arrival:
    """A task that asks for a place: ``attempt`` grows with each try, ``control`` is where its
    member will hear other members, ``has_log`` whether its folder knows an earlier cluster."""

    seat: int
    attempt: int
    control: str
    host: str
    version: str
    pid: int = 0
    has_log: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """``join`` is the control address of a member; "": found the cluster."""

    join: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """No member is wanted there; ``reason`` for people."""

    reason: str


@dataclass(frozen=True, slots=True)
class Loss:
    """A member that is no more."""

    seat: int
    attempt: int
    reason: str
    log: str = ""

    def __str__(self) -> str:
        return f"seat {self.seat}, attempt {self.attempt}: {self.reason}"


@dataclass(frozen=True, slots=True)
class HostedMember:
    """A member that serves in a Spark task; ``pid`` of its process on ``host``."""

    seat: int
    attempt: int
    number: int
    host: str
    pid: int
    user: str
    control: str
    data: str


@dataclass(slots=True)
class _Seat:
    arrival: Arrival
    member: HostedMember | None = None


@dataclass(slots=True)
class Rendezvous:
    """Raises nothing: the error is in ``failure``, and every task then gets a refusal."""

    count: int
    version: str
    formed: bool = False
    failure: str = ""
    failure_log: str = ""
    broke_off: bool = False
    """The failure is that a task was gone in the middle: all may begin anew, on other executors."""
    losses: list[Loss] = field(default_factory=list)
    _seats: dict[int, _Seat] = field(default_factory=dict)
    _founder: int | None = None

    # --- what tasks say -------------------------------------------------------------------------

    def arrive(self, arrival: Arrival) -> None:
        """``place`` answers, now or later."""
        if arrival.version != self.version:
            self.fail(
                f"{arrival.host} has remuda {arrival.version}, the driver {self.version}: install"
                " the same version on all executors"
            )
        elif not 0 <= arrival.seat < self.count:
            self.fail(f"a task came for seat {arrival.seat} of {self.count}")
        elif arrival.seat not in self._seats and not self.failure:
            self._seats[arrival.seat] = _Seat(arrival)

    def place(self, arrival: Arrival) -> Place | Refusal | None:
        """None: not yet."""
        if self.failure:
            return Refusal(self.failure)
        seat = self._seats.get(arrival.seat)
        if seat is None:
            self._seats[arrival.seat] = seat = _Seat(arrival)
        if seat.arrival != arrival:
            if seat.arrival.attempt > arrival.attempt:
                return Refusal("a later attempt of this task has its seat")
            return None
        if self.formed:
            return self._joining(arrival.seat)
        if len(self._seats) < self.count:
            return None
        if self._founder is None:
            self._founder = min(
                self._seats, key=lambda each: (not self._seats[each].arrival.has_log, each)
            )
        founder = self._seats[self._founder].arrival
        return Place("" if arrival.seat == self._founder else founder.control)

    def ready(self, arrival: Arrival, said: Ready, pid: int) -> None:
        """The member of this seat serves."""
        seat = self._seats.get(arrival.seat)
        if seat is None or seat.arrival != arrival:
            return
        seat.member = HostedMember(
            arrival.seat, arrival.attempt, said.number, arrival.host, pid,
            said.user, said.control, said.data,
        )  # fmt: skip
        self.formed = self.formed or len(self.members) == self.count

    def back(self, arrival: Arrival, said: Ready, pid: int) -> bool:
        """A task whose line was broken, and whose member still serves; False: its seat is taken."""
        seat = self._seats.setdefault(arrival.seat, _Seat(arrival))
        if seat.arrival != arrival or self.failure:
            return False
        self.ready(arrival, said, pid)
        return True

    def leave(self, arrival: Arrival, reason: str, log: str = "", *, told: bool = False) -> None:
        """The seat is empty. While the cluster is formed, that is the failure of its start."""
        seat = self._seats.get(arrival.seat)
        if seat is None or seat.arrival != arrival:
            return
        del self._seats[arrival.seat]
        self.losses.append(Loss(arrival.seat, arrival.attempt, reason, log))
        del self.losses[:-LOSSES_KEPT]
        if self.failure:
            return
        if not self.formed and self._founder is None and not told:
            return  # nobody knows of it yet: Spark runs the task again
        if not self.formed:
            self.broke_off = not told
            self.fail(f"the member in seat {arrival.seat} on {arrival.host}: {reason}", log)
        elif not self.members:
            self.fail(f"the last member is lost (seat {arrival.seat}: {reason})", log)

    def fail(self, reason: str, log: str = "") -> None:
        if not self.failure:
            self.failure, self.failure_log = reason, log

    # --- what the driver sees -------------------------------------------------------------------

    @property
    def members(self) -> tuple[HostedMember, ...]:
        """Those that serve, by seat."""
        found = [seat.member for _, seat in sorted(self._seats.items())]
        return tuple(member for member in found if member is not None)

    @property
    def arrived(self) -> int:
        return len(self._seats)

    def _joining(self, seat: int) -> Place | Refusal | None:
        """At a member that has been there for long: the lowest number."""
        others = [member for member in self.members if member.seat != seat]
        if not others:
            return None  # its own member is not counted; the last one's loss is a failure
        return Place(min(others, key=lambda member: member.number).control)
