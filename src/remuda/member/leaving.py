"""The shell of ``cluster.leaving``: how this member leaves in order, by SIGTERM or by a call."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from typing import Protocol

from remuda.cluster import leaving as lv
from remuda.cluster import movement
from remuda.errors import MemberLeaving
from remuda.member.base.core import Core
from remuda.member.membership.membership import Membership
from remuda.member.open_work import OpenWork
from remuda.member.state.log import fields
from remuda.rpc.client_channel import ClientChannel
from remuda.rpc.connection import ChannelKind
from remuda.rpc.messages import user_pb2
from remuda.rpc.server import Server

log = logging.getLogger(__name__)

LOOK_EVERY = 0.02


class Sessions(Protocol):
    """Those of clients that do not ask another member by themselves."""

    def __len__(self) -> int: ...

    def close_idle(self, busy: Collection[ClientChannel]) -> None:
        """Close those that are not among the ``busy`` ones and rest."""


class Leaving:
    """``servers`` have the connections that others have made to this member."""

    def __init__(
        self,
        core: Core,
        membership: Membership,
        work: OpenWork,
        servers: Mapping[ChannelKind, Server],
        sessions: Sessions,
    ) -> None:
        self._core = core
        self._membership = membership
        self._work = work
        self._servers = servers
        self._sessions = sessions
        self._machine: lv.Leaving | None = None

    async def leave(self) -> None:
        """Return when the process may end: after ``leave_timeout`` seconds and a few more at the
        latest. A second call waits for the first one."""
        core = self._core
        clock = core.world.clock.monotonic
        if self._machine is None:
            log.info("leaving the cluster", extra=fields(view=core.view.number))
            self._machine = lv.Leaving(clock(), core.config.leave_timeout)
        machine = self._machine
        while not machine.over and not core.stopping:
            phase = machine.phase
            for effect in machine.step(clock(), self._found()):
                self._perform(effect)
            self._membership.tell_drained(machine.drained)
            if machine.phase in {lv.Phase.CLOSING, lv.Phase.TELLING}:
                self._membership.tell_view()
            for channel in self._work.idle(list(self._servers[ChannelKind.USER].channels)):
                channel.close()
            if core.departure.dismissing:
                self._sessions.close_idle(self._work.busy())
            if machine.phase is lv.Phase.PARTING:
                self._part()
            if machine.phase is not phase:
                log.info("leaving: the member %s", machine.phase.value, extra=fields())
            await asyncio.sleep(LOOK_EVERY)

    def _found(self) -> lv.Found:
        membership = self._membership
        return lv.Found(
            open=sum(self._work.counts().values()),
            requests=sum(
                channel.unanswered
                for server in self._servers.values()
                for channel in server.channels
            ),
            copies=len(self._still_needed()),
            stranded=membership.leavers.nobody_stays,
            heard=membership.heard_by_all,
            others_open=membership.leavers.at_work,
            dropped=membership.left,
            known=membership.all_know,
            sessions=len(self._sessions),
            unheard=sum(channel.awaits for channel in self._servers[ChannelKind.USER].channels),
        )

    def _still_needed(self) -> tuple[int, ...]:
        core, leavers = self._core, self._membership.leavers
        return movement.still_needed(core.view, core.number, leavers.members, leavers.returning)

    def _perform(self, effect: lv.Effect) -> None:
        core = self._core
        match effect:
            case lv.Dismiss():
                core.departure.dismiss()
            case lv.Refuse():
                core.departure.refuse()
                self._membership.announce_leave()
            case lv.EndOpen():
                log.warning(
                    "leave_timeout is over: open work is ended", extra=fields(**self._work.counts())
                )
                self._work.end(
                    MemberLeaving(
                        f"member {core.number} is leaving the cluster and has ended what was open",
                        detail="It was rolled back: nothing of it took effect.",
                        hint="Run it again: other members serve it.",
                        member=str(core.number),
                    )
                )
            case lv.AskToLeave():
                if self._still_needed():
                    log.warning("left before everything was given away", extra=fields())
                self._membership.ask_to_leave()
            case lv.ServeNoClient():
                core.departure.close()
            case lv.ServeNothing():
                core.departure.leave()
            case lv.Part():
                self._part()

    def _part(self) -> None:
        """Say goodbye to the clients that are to send again all that this member has not answered:
        not to those whose statement runs yet, or that have not acknowledged its end. They would
        send it again as well. Their connections end with the process."""
        busy = self._work.busy()
        for channel in list(self._servers[ChannelKind.USER].channels):
            if not (channel.unanswered or channel.awaits or channel in busy):
                channel.part(user_pb2.GOODBYE, user_pb2.Empty())
