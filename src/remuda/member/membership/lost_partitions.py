"""Partitions of which no member has a copy, whether the members that kept them may live or not: an
administrator may accept the loss, and they begin again without a row, on members that are there.

The members agree on it as on any other placement: a view says who keeps the partition from now on,
and that it was emptied. All rows that a member still has of an earlier time (rows of a move that
was not finished, or of a time before views that it has missed) are discarded when it installs such
a view.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from remuda.cluster.movement import table_to_reach
from remuda.cluster.next_view import Placement
from remuda.datatypes.view import View
from remuda.errors import MemberUnavailable, TransientError
from remuda.member.base.core import Core
from remuda.member.membership.membership import Membership
from remuda.member.state.log import fields
from remuda.member.transactions.transactions import Transactions

log = logging.getLogger(__name__)

ACCEPT_TIMEOUT: Final = 30.0
"""Seconds for the members to agree."""
WISH_EVERY: Final = 0.1


class LostPartitions:
    def __init__(self, core: Core, membership: Membership, transactions: Transactions) -> None:
        self._core = core
        self._membership = membership
        self._transactions = transactions

    async def accept(self) -> int:
        """How many had no copy and are there again, empty; copies that come back later are void.
        Raises MemberUnavailable while a member is suspected, TransientError when the members do not
        agree."""
        core = self._core
        core.require_serving()
        suspected = sorted(core.lost.keys() & core.view.by_number.keys())
        if suspected:
            raise MemberUnavailable(
                f"it is not known what is lost: member {suspected[0]} is suspected, and may come "
                "back with what it has",
                hint="Try again when the others have gone on without it.",
                member=str(suspected[0]),
            )
        wanted = {p: core.view.generation(p) for p in core.view.absent}
        ends = core.world.clock.monotonic() + ACCEPT_TIMEOUT
        while left := self._left(wanted):
            view = core.view
            table = table_to_reach(view, tuple(view.by_number), view.backups + 1)
            self._membership.wish_places(
                [Placement(p, (), table[p], generation=wanted[p]) for p in left]
            )
            if core.world.clock.monotonic() > ends:
                raise TransientError(
                    f"the members have not agreed on a view with the {len(left)} lost partitions",
                    hint="Look at sys.members: a majority must be there. Then try again.",
                )
            await asyncio.sleep(WISH_EVERY)
        if wanted:
            log.warning("lost partitions were accepted", extra=fields(partitions=len(wanted)))
        return len(wanted)

    def _left(self, wanted: Mapping[int, int]) -> list[int]:
        """Which of these partitions, with their generations, still have no copy."""
        view = self._core.view
        return [p for p in view.absent if wanted.get(p) == view.generation(p)]

    def on_view(self, before: View, view: View) -> None:
        """To be told before everybody who looks at rows."""
        emptied = view.emptied_since(before.number)
        if not emptied:
            return
        core = self._core
        log.warning(
            "partitions begin again without a row",
            extra=fields(view=view.number, partitions=len(emptied)),
        )
        core.wal.partitions_taken(emptied)
        self._transactions.let_go(emptied)
        now = core.timestamp()
        for map_id, store in core.stores.items():
            if store.schema.replicated:
                continue
            store.discard_partitions(emptied)
            # Who reads at an earlier timestamp would find some rows and miss others.
            store.raise_floor(now)
            behind = core.backup_stores.get(map_id)
            if behind is not None:
                behind.discard_partitions(emptied)
