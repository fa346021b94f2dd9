"""The shell of ``cluster.succession``: a majority of the view decides which catalog follows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeAlias

from remuda.cluster.decree import Ballot
from remuda.cluster.succession import Candidate, Voter, agreed
from remuda.errors import MemberNotReady, MemberUnavailable, ProtocolError, ViewChanged
from remuda.errors import TransientError as Transient
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request

State: TypeAlias = control_pb2.CatalogState

ASK_AGAIN = 0.1
"""Seconds before a member in another view is asked again."""
VIEW_PATIENCE = 60.0
"""Seconds for which such a member is asked: it comes to this view, or is lost, long before."""
PAUSE = 0.2
"""Seconds before a member whose ballot was too low tries a higher one; the pause grows with each
attempt and is random, so that two members do not overtake each other for ever."""
ROUND_MAX: Final = 2**31 - 2


class CatalogVotes:
    """``current`` is the catalog of this member as a message, ``install`` takes a newer one over,
    ``check`` raises if this member could not store it."""

    def __init__(
        self,
        core: Core,
        peers: Peers,
        current: Callable[[], State],
        install: Callable[[State], None],
        check: Callable[[State], None],
    ) -> None:
        self._core = core
        self._peers = peers
        self._current = current
        self._install = install
        self._check = check
        self._voter: Voter[State] = Voter()
        self._leads: tuple[int, Ballot] | None = None
        """The number of the view of which a majority has promised, and the ballot."""

    # --- what this member knows ---------------------------------------------------------------

    def add_undecided(self, state: State) -> None:
        """For a process that joins, and members that ask."""
        candidate = self._voter.candidate
        if candidate is not None:
            state.undecided.CopyFrom(candidate.value)
            _fill(state.undecided.ballot, candidate.ballot)

    def learn(self, state: State) -> None:
        """Take over what another member has, if it is newer."""
        value = State()
        value.CopyFrom(state.undecided)
        ballot = _ballot(value.ballot)
        value.ClearField("ballot")
        self._install(state)
        if value.version > self._core.catalog.version:
            self._voter.learn(Candidate(value.version, ballot, value))

    def installed(self, version: int) -> None:
        self._voter.decided(version)

    # --- views --------------------------------------------------------------------------------

    def leave(self, view: int) -> None:
        """This member has voted for the view that follows ``view``."""
        self._voter.leave(view)

    def tell(self, message: control_pb2.Agreement) -> None:
        """Say in a vote for a view, or with a decided view, what this member has."""
        number, ballot = self._voter.order
        message.catalog_version = self._core.catalog.version
        message.catalog_number = number
        _fill(message.catalog_ballot, ballot)

    def lacks(self, message: control_pb2.Agreement) -> bool:
        """Whether the sender has what this member does not have."""
        version = self._core.catalog.version
        told = message.catalog_number, _ballot(message.catalog_ballot)
        return message.catalog_version > version or (told[0] > version and told > self._voter.order)

    async def read_from(self, member: int) -> None:
        """Raises TransientError."""
        asked = control_pb2.CatalogVote(kind=control_pb2.CatalogVote.READ)
        self.learn((await self._ask(member, asked)).catalog)

    # --- the voter ----------------------------------------------------------------------------

    def on_vote(self, request: Request) -> None:
        message = control_pb2.CatalogVote.FromString(request.pbody)
        if message.kind == control_pb2.CatalogVote.READ:
            self._core.observe_peer(message.context)
        else:
            self._core.observe_member(message.context)
        request.reply(RpcType.CATALOG_VOTE, self._answer(message))

    def _answer(self, message: control_pb2.CatalogVote) -> control_pb2.CatalogVoted:
        """Raises ViewChanged after this member has voted for the next view, ProtocolError."""
        core, voter, ballot = self._core, self._voter, _ballot(message.ballot)
        answer = control_pb2.CatalogVoted(context=core.context())
        if message.kind != control_pb2.CatalogVote.READ and not voter.votes_in(core.view.number):
            raise ViewChanged(f"member {core.number} has voted for the next view")
        match message.kind:
            case control_pb2.CatalogVote.READ:
                self._add_catalog(answer)
            case control_pb2.CatalogVote.PROMISE:
                answer.agreed = voter.promise(ballot)
                self._add_catalog(answer)
            case control_pb2.CatalogVote.ACCEPT if message.value.version > core.catalog.version:
                self._check(message.value)
                value = message.value
                answer.agreed = voter.accept(Candidate(value.version, ballot, value))
            case _:  # it is behind
                self._add_catalog(answer)
        _fill(answer.promised, voter.promised)
        return answer

    def _add_catalog(self, answer: control_pb2.CatalogVoted) -> None:
        answer.catalog.CopyFrom(self._current())
        self.add_undecided(answer.catalog)

    # --- the proposer -------------------------------------------------------------------------

    async def lead(self) -> bool:
        """Return when this member leads in its view, and has every catalog that was decided; True:
        it has completed one that another member, or an attempt before, had put to the vote. Nothing
        was done if it raises MemberUnavailable."""
        core = self._core
        clock, deadline = core.world.clock, core.world.clock.monotonic() + VIEW_PATIENCE
        pause, completed = PAUSE, False
        while self._leads is None or self._leads[0] != core.view.number:
            try:
                if await self._read():
                    completed = True
            except ViewChanged as error:
                if clock.monotonic() > deadline:
                    raise MemberNotReady(error.message, member=str(core.number)) from error
                await asyncio.sleep(ASK_AGAIN)
            else:
                if self._leads is None:
                    if clock.monotonic() > deadline:
                        raise MemberNotReady(
                            "other members change the catalog all the time",
                            member=str(core.number),
                        )
                    await asyncio.sleep(pause * (0.5 + core.world.chance.fraction()))
                    pause *= 2
        return completed

    async def _read(self) -> bool:
        """One attempt to lead: learn what a majority has, and complete it."""
        core, self._leads = self._core, None
        view, ballot = core.view, self._voter.next_ballot(core.number)
        if ballot.round >= ROUND_MAX:
            raise ProtocolError(f"ballot {ballot} about the catalog is too high")
        asked = control_pb2.CatalogVote(kind=control_pb2.CatalogVote.PROMISE)
        answers = await self._ask_all(asked, ballot)
        if not agreed(view.by_number, [n for n, answer in answers.items() if answer.agreed]):
            self._require_majority(answers)
            return False
        for answer in answers.values():
            self.learn(answer.catalog)
        candidate = self._voter.candidate
        if candidate is None:
            self._leads = view.number, ballot
            return False
        if not await self._decide(candidate.value, ballot):
            return False
        self._install(candidate.value)
        self._leads = view.number, ballot
        return True

    async def decide(self, value: State) -> bool:
        """Whether a majority has accepted ``value``, after ``lead``. False or an error: it may be
        decided yet; ``lead`` completes it, or makes sure that it never is, if a majority answers.
        Raises MemberUnavailable."""
        leads, self._leads = self._leads, None
        if leads is None or leads[0] != self._core.view.number:
            return False
        try:
            decided = await self._decide(value, leads[1])
        except ViewChanged:
            return False
        if decided:
            self._leads = leads
        return decided

    async def _decide(self, value: State, ballot: Ballot) -> bool:
        view = self._core.view
        asked = control_pb2.CatalogVote(kind=control_pb2.CatalogVote.ACCEPT, value=value)
        answers = await self._ask_all(asked, ballot)
        if agreed(view.by_number, [n for n, answer in answers.items() if answer.agreed]):
            return True
        for answer in answers.values():
            if answer.HasField("catalog"):
                self.learn(answer.catalog)
        self._require_majority(answers)
        return False

    def _require_majority(self, answers: dict[int, control_pb2.CatalogVoted]) -> None:
        """Raises MemberUnavailable if those that answer are none."""
        voters = self._core.view.by_number
        if not agreed(voters, answers):
            raise MemberUnavailable(
                f"{len(answers)} of {len(voters)} members answer, which is no majority: the change"
                " of the catalog may be made later, or never",
                hint="Look at it again when the cluster is whole.",
            )

    async def _ask_all(
        self, asked: control_pb2.CatalogVote, ballot: Ballot
    ) -> dict[int, control_pb2.CatalogVoted]:
        """The answers of this member and of all that it hears, and that answer. Raises ViewChanged
        if this one comes to another view meanwhile, and errors that no member should have."""
        core = self._core
        view, deadline = core.view.number, core.world.clock.monotonic() + VIEW_PATIENCE
        _fill(asked.ballot, ballot)
        answers = {core.number: self._answer(asked)}
        failed: set[int] = set()
        while others := {*core.live_members()} - answers.keys() - failed:
            asks = (self._ask(number, asked) for number in sorted(others))
            replies = await asyncio.gather(*asks, return_exceptions=True)
            if core.view.number != view:
                raise ViewChanged(f"member {core.number} is in view {core.view.number} now")
            for number, reply in zip(sorted(others), replies, strict=True):
                waits = core.world.clock.monotonic() < deadline
                if isinstance(reply, control_pb2.CatalogVoted):
                    answers[number] = reply
                    self._voter.saw(_ballot(reply.promised))
                elif not isinstance(reply, Transient):
                    raise reply
                elif not (isinstance(reply, ViewChanged) and waits):
                    failed.add(number)
            if others - answers.keys() - failed:
                await asyncio.sleep(ASK_AGAIN)
        return answers

    async def _ask(self, number: int, asked: control_pb2.CatalogVote) -> control_pb2.CatalogVoted:
        message = control_pb2.CatalogVote()
        message.CopyFrom(asked)
        message.context.CopyFrom(self._core.context())
        reply = await self._peers.request(number, RpcType.CATALOG_VOTE, message, repeated=True)
        answer = control_pb2.CatalogVoted.FromString(reply.pbody)
        self._core.observe(answer.context)
        return answer


def _fill(made: control_pb2.Ballot, ballot: Ballot) -> None:
    made.round, made.proposer = ballot.round, ballot.proposer


def _ballot(message: control_pb2.Ballot) -> Ballot:
    return Ballot(message.round, message.proposer)
