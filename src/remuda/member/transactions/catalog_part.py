"""The last part of a transaction with definitions, which the catalog decides (decision 0109)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from remuda.catalog.catalog import Catalog
from remuda.errors import OutcomeUnknown, RemudaError
from remuda.member.base.core import Core, bug
from remuda.member.state.transaction_sets import PartWork
from remuda.member.transactions.finished import Done
from remuda.transaction import states as tx
from remuda.transaction.near import Near

log = logging.getLogger(__name__)

NOTHING: Final = PartWork(0, (), (), (), None, ())
"""The work of the part: the edit of the catalog is made by other means."""
PAUSE: Final = 1.0


class Decision(Protocol):
    """One transaction's edit of the catalog."""

    async def decide(
        self, transaction: tx.TransactionId, timestamp: int, doubt: Callable[[RemudaError], None]
    ) -> None:
        """Have the catalog commit the transaction at ``timestamp``. Returns when a majority has it;
        done again, it is the same. ``doubt`` is called when nobody can tell for long. Raises
        OutcomeUnknown if this member will never know, other RemudaErrors if it is certain that the
        edit is not made and never will be."""

    @property
    def refused(self) -> bool:
        """Whether it has raised such an error."""

    @property
    def catalog(self) -> Catalog:
        """The one that it makes, by which rows are checked. Raises SerializationFailure."""


class Notes(Protocol):
    """``member.membership.catalog_service``."""

    async def end_of(self, transaction: tx.TransactionId) -> int | None:
        """The timestamp at which the catalog has committed a transaction; None: it has not, and
        never will. A majority has what this says. Raises TransientError."""

    def forget(self, transaction: tx.TransactionId) -> None:
        """Nobody asks how it has ended any more."""


class Shell(Protocol):
    def hears_catalog(self, near: Near, effects: list[tx.Effect]) -> None: ...

    def tells(self, to: int, message: tx.Message) -> None: ...


class CatalogPart:
    def __init__(self, core: Core, shell: Shell) -> None:
        self._core = core
        self._shell = shell
        self._decisions: dict[tx.TransactionId, Decision] = {}
        """Of the transactions of this member, until the catalog is asked."""
        self._asking: dict[tx.TransactionId, dict[tuple[int, int], None]] = {}
        """Members and the parts for which they ask how a transaction has ended."""
        self._notes: Notes | None = None
        """None: this member is starting."""

    def keep_in(self, notes: Notes) -> None:
        """``notes`` are those of the catalog."""
        self._notes = notes

    # --- the near member ------------------------------------------------------------------------

    def begin(self, transaction: tx.TransactionId, decision: Decision, done: Done) -> Done:
        """``done``, which also forgets a decision that was not asked for."""
        self._decisions[transaction] = decision

        def ended(report: tx.Report) -> None:
            self._decisions.pop(transaction, None)
            done(report)

        return ended

    def decide(self, near: Near, timestamp: int) -> None:
        decision = self._decisions.pop(near.transaction)
        self._core.spawn(self._decide(near, timestamp, decision), "definitions that commit")

    async def _decide(self, near: Near, timestamp: int, decision: Decision) -> None:
        def doubt(error: RemudaError) -> None:
            self._shell.hears_catalog(near, near.on_doubt(error))

        cause: RemudaError | None = None
        while True:
            try:
                await decision.decide(near.transaction, timestamp, doubt)
            except OutcomeUnknown as error:  # this member ends, or the others go on without it
                doubt(error)
                return
            except RemudaError as error:
                cause = error
            except Exception as error:  # noqa: BLE001 (the boundary, see bug)
                bug(error, "definitions that commit")
                await asyncio.sleep(PAUSE)
                continue
            break
        now = self._core.world.clock.monotonic()
        self._shell.hears_catalog(near, near.on_catalog(now, cause))

    # --- the coordinator ------------------------------------------------------------------------

    def inquired(self, sender: int, message: tx.Inquire) -> None:
        """The near member is lost, and a part of ``sender`` does not know the end."""
        transaction = message.transaction
        asking = self._asking.setdefault(transaction, {})
        if not asking:
            self._core.spawn(self._look(transaction), "the end of a transaction with definitions")
        asking[sender, message.asking] = None

    async def _look(self, transaction: tx.TransactionId) -> None:
        try:
            if self._notes is None:
                return
            at = await self._notes.end_of(transaction)
        except RemudaError as error:
            log.debug("the end of %s is not known yet: %s", transaction, error.message)
        else:
            state = tx.State.ROLLED_BACK if at is None else tx.State.COMMITTED
            for member, asking in self._asking[transaction]:
                told = tx.Told(transaction, tx.CATALOG, asking, state, at or 0)
                self._shell.tells(member, told)
        finally:
            del self._asking[transaction]

    def ended(self, transaction: tx.TransactionId) -> None:
        """All its parts have ended everywhere, and its near member is lost."""
        if self._notes is not None:
            self._notes.forget(transaction)
