"""Storms of transactions that notify (decision 0089), while members fail and sessions listen.

A table tells which transactions have committed. Every session that listens hears exactly these, in
one order that all sessions share, and none before its commit has begun.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import Any

from sim_network import LOST, Fate, Sent
from sim_transaction_works import Told, Work, rows
from sim_transactions import TransactionStorm

from remuda.errors import RemudaError, TransientError
from remuda.member.notifications.inbox import Inbox
from remuda.transaction.notifications import Listen, OwnNotifications, Unlisten

CHANNEL = "letters"
MESSAGES = frozenset({"NOTIFICATIONS"})
DRAINED = 120.0
"""Seconds after which everybody must have heard everything."""


@dataclass(eq=False)
class Listener:
    """A session of one member. ``since``: when it has begun to listen."""

    member: Any
    since: float
    inbox: Inbox = field(default_factory=Inbox)
    heard: list[tuple[float, str]] = field(default_factory=list)
    ended: str = ""


@dataclass
class Letter:
    """One transaction: its payloads, when its commit began, and when it was answered."""

    number: int
    payloads: list[str]
    begun: float = float("inf")
    answered: float = float("inf")


class Letters(Work):
    name = "letters"

    def __init__(self, told: Told) -> None:
        super().__init__(told)
        self.listeners: list[Listener] = []
        self.letters: dict[int, Letter] = {}
        self.kept: set[int] = set()

    async def prepare(self, client: Any) -> None:
        await client.sql("CREATE TABLE letters (id BIGINT PRIMARY KEY)")
        await self._listen_everywhere()

    # --- sessions -----------------------------------------------------------------------------

    async def _listen_everywhere(self) -> None:
        """On every member that has no session yet."""
        sim = self.told.sim
        for number, member in sorted(sim.live().items()):
            if all(each.member is not member for each in self.listeners) and member.core.ready:
                listener = Listener(member, float("inf"))
                self.listeners.append(listener)
                context = sim.nodes[number].context
                context.run(sim.loop.create_task, self._listen(listener))

    async def _listen(self, listener: Listener) -> None:
        def tell() -> None:
            now = self.told.now()
            listener.heard += [(now, payload) for _, _, payload in listener.inbox.take()]

        def end(error: RemudaError) -> None:
            listener.ended = error.message

        listener.inbox.serve(tell, end)
        own, service = OwnNotifications(), listener.member.notifications
        own.choose(Listen(CHANNEL))
        try:
            since = await service.since(own)
        except TransientError:
            self.listeners.remove(listener)
            return
        service.choose(listener.inbox, own.choices, since)
        listener.since = self.told.now()

    # --- transactions -------------------------------------------------------------------------

    async def step(self, client: Any, chance: Random) -> None:
        await self._listen_everywhere()
        number = self.told.number()
        count = chance.choice((1, 1, 2, 3))
        letter = Letter(number, [f"{number}.{place}" for place in range(count)])
        self.letters[number] = letter
        async with client.transaction() as transaction:
            await rows(transaction, f"INSERT INTO letters VALUES ({number})")
            for place, payload in enumerate(letter.payloads):
                if place == 1:
                    await transaction.sql("SAVEPOINT s")
                    await transaction.sql(f"NOTIFY {CHANNEL}, 'undone {number}'")
                    await transaction.sql("ROLLBACK TO s")
                await transaction.sql(f"NOTIFY {CHANNEL}, '{payload}'")
            if chance.random() < 0.2:
                await transaction.rollback()
                return
            letter.begun = self.told.now()
        letter.answered = self.told.now()
        self.well()

    async def finish(self, client: Any) -> None:
        found = await client.sql("SELECT id FROM letters")
        self.kept = {number for (number,) in await found.fetchall()}
        deadline = self.told.now() + DRAINED
        while self._missing() and self.told.now() < deadline:
            await asyncio.sleep(0.5)
        for listener in self._staying():
            service = listener.member.notifications
            service.choose(listener.inbox, [Unlisten(None)], 0)

    # --- what must be true --------------------------------------------------------------------

    def _staying(self) -> list[Listener]:
        live = self.told.sim.live().values()
        return [each for each in self.listeners if each.member in live]

    def _missing(self) -> list[str]:
        """What sessions that live should have heard, and have not."""
        return [
            f"a session of member {listener.member.core.number} has not heard {payload}"
            for listener in self._staying()
            if not listener.ended
            for known in [{payload for _, payload in listener.heard}]
            for number in sorted(self.kept)
            if (letter := self.letters[number]).begun > listener.since
            for payload in letter.payloads
            if payload not in known
        ]

    def judge(self) -> list[str]:
        self.wrong += self._missing()
        self.wrong += [each.ended for each in self._staying() if each.ended]
        for listener in self.listeners:
            payloads = [payload for _, payload in listener.heard]
            self._check_one(listener, payloads)
        best = max(self.listeners, key=lambda each: len(each.heard), default=None)
        if best is not None:
            place = {payload: at for at, (_, payload) in enumerate(best.heard)}
            for listener in self.listeners:
                common = [place[p] for _, p in listener.heard if p in place]
                if common != sorted(common):
                    self.wrong.append("two sessions have heard commits in different orders")
        return [f"letters: {each}" for each in self.wrong[:5]]

    def _check_one(self, listener: Listener, payloads: list[str]) -> None:
        if len(set(payloads)) < len(payloads):
            self.wrong.append("a notification was heard twice")
        last, latest_begin = 0, 0.0
        seen: set[int] = set()
        for at, payload in listener.heard:
            if payload.startswith("undone"):
                self.wrong.append(f"'{payload}' was rolled back, and heard")
                continue
            number, place = map(int, payload.split("."))
            letter = self.letters[number]
            if number not in self.kept:
                self.wrong.append(f"{payload} was not committed, and was heard")
            if at < letter.begun:
                self.wrong.append(f"{payload} was heard before its commit began")
            if number != last:
                if number in seen or place:
                    self.wrong.append(f"{payload} was heard out of its transaction")
                if letter.answered < latest_begin:
                    self.wrong.append(f"{payload} was heard behind a later commit")
                latest_begin = max(latest_begin, letter.begun)
                seen.add(number)
            elif f"{number}.{place - 1}" not in payloads:
                self.wrong.append(f"{payload} was heard alone")
            last = number


FAULTS = ("crash", "crash", "crash", "split", "join", "leave", "break", "silence")


class LettersStorm(TransactionStorm):
    def __init__(self, seed: int, level: str | None = None) -> None:
        super().__init__(seed, level or "serializable")
        self.works = [Letters(self.told)]
        chance = Random(f"{seed}/letters")
        self.users, self.pause = 4, 0.1
        self.events = [chance.choice(FAULTS) for _ in range(2)]

    def _fate(self, sent: Sent) -> Fate | None:
        if sent.name not in MESSAGES:
            return super()._fate(sent)
        draw = self.random.random()
        if draw < 0.03:
            return LOST
        return Fate((self.random.uniform(0, 1.0),)) if draw < 0.3 else None
