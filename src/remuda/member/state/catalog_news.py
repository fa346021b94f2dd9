"""Versions of catalogs that other members have named: whether this one has the newest.

A change of the catalog is acknowledged when a majority has it and no member that lacks it has a
lease (``membership.catalog_service``). The answers that renew a lease say which catalog each member
has, and one of any majority has the newest. So a member that holds a lease, and has heard of no
newer catalog, has every one that was acknowledged. Any other must not answer from its own: that a
map does not exist, say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container

from remuda.errors import MemberNotReady
from remuda.member.state.readiness import Readiness

CATALOG_TIMEOUT = 15.0
"""Seconds for which a statement waits for a newer catalog."""


class CatalogNews:
    """``number`` is that of the member, for errors."""

    def __init__(self, readiness: Readiness, number: Callable[[], int]) -> None:
        self._readiness = readiness
        self._number = number
        self._versions: dict[int, int] = {}
        """Of members that have a newer catalog."""
        self._current = asyncio.Event()
        self._current.set()
        self.behind = False
        """Whether a member of the view has a newer catalog."""

    def told(self, member: int, version: int) -> None:
        """``member`` has the catalog of ``version``, which this one does not have."""
        self._versions[member] = version
        self._look()

    def installed(self, version: int) -> None:
        """This member has the catalog of ``version`` now."""
        self._versions = {m: told for m, told in self._versions.items() if told > version}
        self._look()

    def view_changed(self, members: Container[int]) -> None:
        """A member that was dropped gives its catalog to nobody any more. If another has it, the
        next answer says so, and there is no lease before that."""
        self._versions = {m: told for m, told in self._versions.items() if m in members}
        self._look()

    def _look(self) -> None:
        self.behind = bool(self._versions)
        if self.behind:
            self._current.clear()
        else:
            self._current.set()

    @property
    def complete(self) -> bool:
        """Whether this member has every catalog that a client was told of."""
        return self._readiness.leased and not self.behind

    def require(self) -> None:
        """Where this member answers from its catalog alone. Raises NoLease, MemberNotReady."""
        self._readiness.require_lease()
        if self.behind:
            raise self._not_ready()

    async def wait(self) -> None:
        """Return when this member has every catalog that a client was told of. Raises NoLease,
        MemberNotReady."""
        while not self.complete:
            if not self._readiness.leased:
                await self._readiness.wait()
            try:
                await asyncio.wait_for(self._current.wait(), CATALOG_TIMEOUT)
            except TimeoutError as problem:
                raise self._not_ready() from problem

    def _not_ready(self) -> MemberNotReady:
        number = self._number()
        return MemberNotReady(
            f"member {number} has an older catalog than other members", member=str(number)
        )
