"""How long members keep the ends of parts: until the near member says that nobody asks for them.

Each frame between shells says below which time all transactions of its sender are finished. The
last word of a busy time is repeated, because it may get lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from remuda.member.base.core import Core
from remuda.rpc.messages import control_pb2
from remuda.transaction import states as tx
from remuda.transaction.near import Near

REPEAT = 5.0

Done = Callable[[tx.Report], None]


class Leading(NamedTuple):
    """A transaction whose near member is this one."""

    near: Near
    done: Done


Heard = dict[int, tuple[int, frozenset[int]]]
"""By near member: the time below which all began that are finished, but for these."""


class Finished:
    """``nears``: the transactions of this member, in the order in which they began. ``heard``: the
    last word of the others, which the shell notes."""

    def __init__(self, core: Core, nears: Mapping[tx.TransactionId, Leading], heard: Heard) -> None:
        self._core = core
        self._nears = nears
        self._heard = heard
        self._told_below, self._told_at = 0, 0.0

    def frame(self) -> control_pb2.PartMessages:
        """A new frame, without messages."""
        core = self._core
        if core.view.unreachable:
            return control_pb2.PartMessages(
                context=core.context(),
                finished_below=self._below(),
                in_doubt=sorted(self._in_doubt()),
            )
        first = next(iter(self._nears), None)  # ``_below`` where nothing is in doubt
        below = core.clock.last + 1 if first is None else first.began
        return control_pb2.PartMessages(context=core.context(), finished_below=below)

    def by_member(self) -> Mapping[int, tuple[int, frozenset[int]]]:
        """The last word of each member, this one too: see ``Parts.forget``."""
        self._heard[self._core.number] = self._below(), self._in_doubt()
        return self._heard

    def keep(self, members: Mapping[int, object]) -> None:
        """Others are not in the view any more."""
        for near in self._heard.keys() - members.keys():
            del self._heard[near]

    def all_told(self, latest: int) -> bool:
        """Whether others have been told of everything up to the transaction that began then."""
        return not latest or self._told_below > latest

    def due(self, latest: int, now: float) -> bool:
        """Whether others are to be told now; they have been then."""
        if not latest or (self._told_below > latest and now - self._told_at < REPEAT):
            return False
        self._told_below, self._told_at = self._below(), now
        return True

    def _below(self) -> int:
        """All transactions of this member that began before it are finished everywhere, but for
        those that are in doubt."""
        nears = self._nears.items()
        if self._core.view.unreachable:
            first = next((name for name, leading in nears if not leading.near.in_doubt), None)
        else:
            first = next(iter(self._nears), None)
        return self._core.clock.last + 1 if first is None else first.began

    def _in_doubt(self) -> frozenset[int]:
        """When those that are in doubt began."""
        if not self._core.view.unreachable:
            return frozenset()
        return frozenset(t.began for t, each in self._nears.items() if each.near.in_doubt)
