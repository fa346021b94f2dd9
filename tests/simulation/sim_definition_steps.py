"""A transaction with definitions and rows of tables that were there before, and between two of its
steps (see ``sim_steps``)

* all machines lose power, or the one whose turn it is;
* a process joins;
* a cut is made, which is restored afterwards.

Afterwards all of the transaction is there or nothing, for users as in the cut, and no map without a
name is left.
"""

from __future__ import annotations

import asyncio
from typing import Any, Literal, TypeAlias

from sim_cluster import explained
from sim_power import PATIENCE
from sim_steps import NAME, State, StepRun, differences
from sim_transaction_works import rows
from sim_users import connected, running

from remuda.catalog.own.definitions import is_made
from remuda.errors import TransientError

Event: TypeAlias = Literal["all", "one", "join", "cut"]

TRANSACTIONAL = "SET LOCAL definitions_in_transactions = transactional"
TRANSACTIONS = {
    "make": (
        "CREATE TABLE n (id SERIAL PRIMARY KEY, v TEXT UNIQUE)",
        "INSERT INTO n (v) VALUES ('a'), ('b'), ('c')",
        "INSERT INTO t VALUES (100, 1)",
        "UPDATE t SET v = v + 100 WHERE id < 3",
        "CREATE VIEW many AS SELECT v FROM n",
    ),
    "replace": (
        "INSERT INTO r VALUES (3, 3)",
        "CREATE TABLE n AS SELECT id, v + 1 AS v FROM t WHERE id < 9",
        "SAVEPOINT s",
        "DROP TABLE n",
        "ROLLBACK TO s",
        "ALTER TABLE n ADD COLUMN w INT DEFAULT 7",
        "DROP TABLE t CASCADE",
        "ALTER TABLE n RENAME TO t",
    ),
}
NOTES_MAX = 2
"""Of the transaction, and of one that was run again."""


class TransactionRun(StepRun):
    """``stop``: the step before which ``event`` comes; 0: none does."""

    def __init__(self, what: str, stop: int = 0, event: Event = "all") -> None:
        super().__init__(what, stop, "all" if event == "all" else "one")
        self.event = event
        self.came = False
        self.aside: asyncio.Task[Any] | None = None
        """A join or a cut."""
        self.cut = 0

    # ---- steps ----

    def _step(self, kind: str, machine: str, *, soon: bool = False) -> None:
        if not self.came:
            super()._step(kind, machine, soon=soon)

    def _crash(self, machine: str) -> None:
        self.came = True
        if self.event in {"all", "one"}:
            return super()._crash(machine)
        work = self._join() if self.event == "join" else self._make_cut()
        self.aside = self.sim.loop.create_task(work, context=self.sim.director.context)
        return None

    async def _join(self) -> None:
        live = self.sim.live()
        member = await self.sim.join(min(live))
        self.sim.note(f"member {member.core.number} has joined")

    async def _make_cut(self) -> None:
        client = await connected(self.sim, "cutter")
        try:
            found = await running(self.sim, client, rows(client, f"CREATE SNAPSHOT {NAME}"))
            self.cut = found[0][1]
        finally:
            await running(self.sim, client, client.close())

    # ---- the transaction ----

    async def _carry_out(self, client: Any) -> None:
        transaction = client.transaction(**self.told.options)
        await transaction.begin()
        for text in (TRANSACTIONAL, *TRANSACTIONS[self.what]):
            await transaction.sql(text)
        await transaction.commit()

    async def _wait_for_aside(self) -> None:
        if self.aside is not None:
            async with asyncio.timeout(PATIENCE):
                await self.aside

    def _may_fail(self, error: BaseException) -> bool:
        return super()._may_fail(error) or isinstance(error, TransientError)

    # ---- judging ----

    async def _state(self, client: Any) -> State:
        """Without the list of cuts, and without the tables that sequences are."""
        found = await super()._state(client)
        del found["cuts"]
        return {name: of for name, of in found.items() if not name.endswith("_seq")}

    async def _judge(self) -> None:
        await self._wait_for_aside()
        await super()._judge()

    def _same_everywhere(self) -> None:
        super()._same_everywhere()
        for number, member in self.sim.live().items():
            catalog = member.core.catalog
            made = [schema.name for schema in catalog.maps if is_made(schema)]
            if made or len(catalog.decided) > NOTES_MAX:
                self.sim.violations.append(
                    f"member {number} still has {made}, and the notes {catalog.decided}"
                )

    def _reference(self) -> State:
        return reference(self.what).after

    async def _store_is_whole(self, client: Any) -> None:
        """The cut has the transaction as a whole, or not at all."""
        if not self.cut:
            return
        text = f"RESTORE SNAPSHOT {NAME} CUT {self.cut} PREFIX 'z_'"
        await self._patiently(client, text)
        state = await self._state(client)
        found = of_prefix(state, "z_")
        possible = [tables(self.before), tables(self.after)]
        if found not in possible:
            told = differences(found, possible[-1])
            self.sim.violations.append(f"cut {self.cut} of {self.what}: {told}")
        for name in found:
            await self._patiently(client, f"DROP TABLE IF EXISTS z_{name} CASCADE")


def tables(state: State) -> State:
    """Columns and rows. (A restore gives indexes other names.)"""
    return {name: (of[0], of[2]) for name, of in state.items() if isinstance(of, tuple)}


def of_prefix(state: State, prefix: str) -> State:
    found = tables(state)
    return {n.removeprefix(prefix): of for n, of in found.items() if n.startswith(prefix)}


_REFERENCES: dict[str, TransactionRun] = {}


def reference(what: str) -> TransactionRun:
    """A run in which nothing comes."""
    if what not in _REFERENCES:
        made = TransactionRun(what)
        made.run()
        _REFERENCES[what] = made
    return _REFERENCES[what]


def happening(what: str, stop: int, event: Event) -> TransactionRun:
    """Raises Violation with the transaction, the step and what is useful of the log."""
    reference(what)
    made = TransactionRun(what, stop, event)
    with explained(f"{what!r}, step {stop}, {event}", made):
        made.run()
    return made
