"""Agreement on the next view, as one member sees it (design rules 13 and 14). Pure.

``step(now, event) -> effects``; ``now`` is monotonic seconds. Membership says with ``Wish`` which
view should follow (because a member was lost, leaves, or joins). The machine has a majority of the
current view decide that view or another member's proposal, and installs the decided one::

    proposer                       member of view n
    Prepare(n, ballot)  ------->   promises, unless a higher ballot came before
                        <-------   Promise(n, ballot, what it has accepted)
    Accept(n, ballot, view) --->   accepts
                        <-------   Accepted(n, ballot)
    Decided(view)       ------->   installs; a member that learns of it later does so, too

Each view number is decided once, by its own decree. Members that a majority does not reach decide
nothing: of two members that lose each other, neither goes on. A member that is behind learns the
newest view as the answer to any message, also that it is no member any more.

An acceptor that has accepted a view answers no more heartbeats of the old one (``answers``) from
any member. So leases that count from heartbeats of view n end, on every clock, at the latest one
lease after view n+1 was decided, and a member that takes over waits that long (``cluster.lease``).
To deny them only to the members that view n+1 drops would not do: two members that have not heard
of view n+1 could renew each other's leases of view n while others decide view n+2 without them. An
acceptor that has accepted a view completes the decree even when no member wishes for another view
any more: a decree that stays half-way would keep members from their leases for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from remuda.cluster.decree import LOWEST, Acceptor, Ballot, Proposal, Vote
from remuda.datatypes.view import View

Quiet: TypeAlias = tuple[tuple[int, float], ...]
"""For how many seconds, at least, members have had no heartbeat of the current view answered:
(member, seconds). Their leases began no later."""

# --- messages between members -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prepare:
    view: int
    ballot: Ballot

    def __str__(self) -> str:
        return f"prepare {self.ballot} for view {self.view + 1}"


@dataclass(frozen=True, slots=True)
class Promise:
    view: int
    ballot: Ballot
    vote: Vote[View] | None

    def __str__(self) -> str:
        had = "" if self.vote is None else f", had accepted {_text(self.vote.value)}"
        return f"promise {self.ballot}{had}"


@dataclass(frozen=True, slots=True)
class Accept:
    view: int
    ballot: Ballot
    value: View

    def __str__(self) -> str:
        return f"accept {self.ballot}: {_text(self.value)}"


@dataclass(frozen=True, slots=True)
class Accepted:
    """``quiet``: of members that the accepted view drops."""

    view: int
    ballot: Ballot
    quiet: Quiet = ()

    def __str__(self) -> str:
        return f"accepted {self.ballot}"


@dataclass(frozen=True, slots=True)
class Refused:
    """``promised`` is the ballot that stood in the way."""

    view: int
    ballot: Ballot
    promised: Ballot

    def __str__(self) -> str:
        return f"refused {self.ballot}: {self.promised} is promised"


@dataclass(frozen=True, slots=True)
class Ask:
    """The sender has heard of a view above its own, ``view``."""

    view: int

    def __str__(self) -> str:
        return f"ask for the view after {self.view}"


@dataclass(frozen=True, slots=True)
class Decided:
    """``quiet``: the statements about members that ``value`` drops which every acceptor of a
    majority has made at least; empty where the sender does not know them."""

    value: View
    quiet: Quiet = ()

    def __str__(self) -> str:
        return f"decided {_text(self.value)}"


@dataclass(frozen=True, slots=True)
class Installed:
    """The answer to ``Decided``: the sender is in view number ``view``."""

    view: int

    def __str__(self) -> str:
        return f"in view {self.view}"


Message = Prepare | Promise | Accept | Accepted | Refused | Ask | Decided | Installed

# --- events and effects -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wish:
    """The view that should follow, or None; ``rank`` is the number of older members that this one
    believes to be alive, who have the first word."""

    view: View | None
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Received:
    sender: int
    message: Message


@dataclass(frozen=True, slots=True)
class HeardOf:
    """Something from ``sender``, which is in view number ``view``."""

    sender: int
    view: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: call a few times per ``retry``."""


Event = Wish | Received | HeardOf | Tick


@dataclass(frozen=True, slots=True)
class Persist:
    """Make this durable before any effect that follows it is carried out."""

    view: int
    promised: Ballot
    vote: Vote[View] | None

    def __str__(self) -> str:
        vote = "" if self.vote is None else f", {_text(self.vote.value)}"
        return f"persist {self.promised}{vote}"


@dataclass(frozen=True, slots=True)
class Send:
    to: int
    message: Message

    def __str__(self) -> str:
        return f"to {self.to}: {self.message}"


@dataclass(frozen=True, slots=True)
class Install:
    """The member is in ``view`` from now on, or out of the cluster if it is not one of its
    members."""

    view: View
    quiet: Quiet = ()

    def __str__(self) -> str:
        return f"install {_text(self.view)}"


Effect = Persist | Send | Install


class Agreement:
    """Of member number ``me``, which is in ``view``. ``retry`` is the time in seconds after which a
    proposal without a majority is tried again with a higher ballot; it grows with each attempt, so
    that proposers that get into each other's way soon take turns. ``restored`` is what ``Persist``
    last said, for a member that comes back under its old number. ``quiet_for(now, member)``: for
    how many seconds this member has answered no heartbeat of another one, in this view."""

    def __init__(
        self,
        me: int,
        view: View,
        *,
        retry: float,
        restored: Persist | None = None,
        quiet_for: Callable[[float, int], float] = lambda _now, _member: 0.0,
    ) -> None:
        self._quiet_for = quiet_for
        self._quiet: dict[int, dict[int, float]] = {}
        """The statements of the proposal's acceptors about members that it drops."""
        self.me = me
        self.view = view
        self._retry = retry
        self._acceptor: Acceptor[View] = Acceptor()
        if restored is not None and restored.view == view.number:
            self._acceptor = Acceptor(restored.promised, restored.vote)
        self._highest = self._acceptor.promised
        self._wish: Wish | None = None
        self._proposal: Proposal[View] | None = None
        self._attempts = 0
        self._due = 0.0
        self._rank = 0

    def step(self, now: float, event: Event) -> list[Effect]:
        """Take an event in; returns the effects that the shell must perform, in order."""
        match event:
            case Wish():
                return self._on_wish(now, event)
            case Received(sender, message):
                return self._on_message(now, sender, message)
            case HeardOf(sender, view):
                return self._on_view_of(sender, view)
            case Tick():
                return self._try(now)

    @property
    def answers(self) -> bool:
        """Whether heartbeats of this view may be answered: not after this member has accepted
        another one."""
        return self._acceptor.vote is None

    def __str__(self) -> str:
        parts = [_text(self.view), f"promised {self._acceptor.promised}"]
        if self._acceptor.vote is not None:
            parts.append(f"accepted {_text(self._acceptor.vote.value)}")
        if self._proposal is not None:
            parts.append(f"proposes {self._proposal.ballot} {_text(self._proposal.value)}")
        return ", ".join(parts)

    # --- the proposer ---------------------------------------------------------------------------

    @property
    def _wanted(self) -> View | None:
        """The view that this member would propose."""
        if self.me not in self.view.by_number:
            return None
        if self._wish is not None:
            return self._wish.view
        return None if self._acceptor.vote is None else self._acceptor.vote.value

    def _on_wish(self, now: float, wish: Wish) -> list[Effect]:
        assert wish.view is None or wish.view.number == self.view.number + 1, "the next view"
        if self._wanted is None:
            self._due = now + wish.rank * self._retry
        self._rank = wish.rank
        self._wish = None if wish.view is None else wish
        return self._try(now)

    def _try(self, now: float) -> list[Effect]:
        wanted = self._wanted
        if wanted is None or now < self._due:
            return []
        self._attempts += 1
        self._due = now + self._retry * (self._attempts + self._rank)
        ballot = self._highest = Ballot(self._highest.round + 1, self.me)
        self._proposal = Proposal(ballot, wanted, self.view.by_number)
        self._quiet = {}
        return self._to_all(now, Prepare(self.view.number, ballot))

    def _to_all(self, now: float, message: Message) -> list[Effect]:
        """To every member of the view; this one answers itself at once."""
        others: list[Effect] = [Send(to, message) for to in self.view.by_number if to != self.me]
        return others + self._on_message(now, self.me, message)

    def _on_promise(self, now: float, sender: int, message: Promise) -> list[Effect]:
        proposal = self._proposal
        if proposal is None or proposal.ballot != message.ballot:
            return []
        if not proposal.on_promise(sender, message.vote):
            return []
        if proposal.free:  # what it wishes now, which may be nothing any more
            wanted = self._wanted
            if wanted is None:
                self._proposal = None
                return []
            proposal.value = wanted
        return self._to_all(now, Accept(self.view.number, proposal.ballot, proposal.value))

    def _on_accepted(self, sender: int, message: Accepted) -> list[Effect]:
        proposal = self._proposal
        if proposal is None or proposal.ballot != message.ballot:
            return []
        if sender in proposal.voters:
            self._quiet.setdefault(sender, dict(message.quiet))
        return self._decided(proposal.value) if proposal.on_accepted(sender) else []

    def _decided(self, view: View) -> list[Effect]:
        told = self.view.by_number.keys() | view.by_number.keys()
        dropped = sorted(self.view.by_number.keys() - view.by_number.keys())
        # A lease needs a majority, so one of those that have accepted: the latest that any of them
        # has answered bounds it.
        quiet = tuple(
            (number, min(said.get(number, 0.0) for said in self._quiet.values()))
            for number in dropped
        )
        decided = Decided(view, quiet)
        out: list[Effect] = [Send(to, decided) for to in sorted(told) if to != self.me]
        return self._install(view, quiet) + out

    # --- the acceptor ---------------------------------------------------------------------------

    def _on_message(self, now: float, sender: int, message: Message) -> list[Effect]:
        if isinstance(message, Installed):
            return []  # whoever waits for it has seen it
        if isinstance(message, Decided):
            newer = message.value.number > self.view.number
            out = self._install(message.value, message.quiet) if newer else []
            return [*out, Send(sender, Installed(self.view.number))]
        if message.view != self.view.number or isinstance(message, Ask):
            return self._on_view_of(sender, message.view)
        match message:
            case Prepare():
                return self._on_prepare(now, sender, message)
            case Accept():
                return self._on_accept(now, sender, message)
            case Promise():
                return self._on_promise(now, sender, message)
            case Accepted():
                return self._on_accepted(sender, message)
            case Refused():
                self._highest = max(self._highest, message.promised)
                return []

    def _on_prepare(self, now: float, sender: int, message: Prepare) -> list[Effect]:
        ballot, acceptor = message.ballot, self._acceptor
        self._highest = max(self._highest, ballot)
        if not acceptor.promise(ballot):
            return self._answer(now, sender, self._refusal(ballot))
        answer = Promise(self.view.number, ballot, acceptor.vote)
        return [self._state(), *self._answer(now, sender, answer)]

    def _on_accept(self, now: float, sender: int, message: Accept) -> list[Effect]:
        ballot, acceptor = message.ballot, self._acceptor
        self._highest = max(self._highest, ballot)
        if self._wanted is None:
            self._due = now + self._retry * (1 + self._rank)
        if not acceptor.accept(ballot, message.value):
            return self._answer(now, sender, self._refusal(ballot))
        answer = Accepted(self.view.number, ballot, self._quiet_of(now, message.value))
        return [self._state(), *self._answer(now, sender, answer)]

    def _quiet_of(self, now: float, value: View) -> Quiet:
        dropped = sorted(self.view.by_number.keys() - value.by_number.keys())
        return tuple((number, self._quiet_for(now, number)) for number in dropped)

    def _refusal(self, ballot: Ballot) -> Refused:
        return Refused(self.view.number, ballot, self._acceptor.promised)

    def _state(self) -> Persist:
        return Persist(self.view.number, self._acceptor.promised, self._acceptor.vote)

    def _answer(self, now: float, to: int, message: Message) -> list[Effect]:
        return self._on_message(now, to, message) if to == self.me else [Send(to, message)]

    # --- views ----------------------------------------------------------------------------------

    def _on_view_of(self, sender: int, view: int) -> list[Effect]:
        if sender == self.me or view == self.view.number:
            return []
        if view < self.view.number:
            return [Send(sender, Decided(self.view))]
        return [Send(sender, Ask(self.view.number))]

    def _install(self, view: View, quiet: Quiet) -> list[Effect]:
        self.view = view
        self._quiet = {}
        self._acceptor = Acceptor()
        self._highest = LOWEST
        self._wish = self._proposal = None
        self._attempts = self._rank = 0
        return [Install(view, quiet)]


def _text(view: View) -> str:
    members = " ".join(str(number) for number in sorted(view.by_number))
    return f"view {view.number} [{members}]"
