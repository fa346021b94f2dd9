"""Numbers of sequences while members die: nobody gets one that somebody has got before."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from registers import Outcome
from workload import KINDS, Work

CACHES = {"plain": 1, "kept": 10}
"""Sequences, and their CACHE."""
BLOCK = 7
"""Numbers that one request of ``client.ids`` takes."""


@dataclass(frozen=True)
class Drawn:
    """Numbers of one request, and when it began and ended."""

    numbers: tuple[int, ...]
    began: float
    ended: float


class Numbers(Work):
    """``nextval`` of one and of many rows, BIGSERIAL keys, and blocks of ``client.ids``.

    A request that nobody knows the end of may have taken numbers; nobody has got them.
    """

    name = "number"

    def prepare(self) -> None:
        for name, cache in CACHES.items():
            self.client.sql(f"CREATE SEQUENCE IF NOT EXISTS {name} CACHE {cache}")
        table = "CREATE TABLE IF NOT EXISTS numbered (id BIGSERIAL PRIMARY KEY, v BIGINT)"
        self.client.sql(table)
        self.drawn: dict[str, list[Drawn]] = {name: [] for name in (*CACHES, "numbered")}
        self.stored: set[int] | None = None

    def step(self) -> None:
        draw = self.random.random()
        if draw < 0.4:
            count = self.random.choice((1, 2, 5))
            values = ", ".join(["(1)"] * count)
            text = f"INSERT INTO numbered (v) VALUES {values} RETURNING id"
            self.draw("numbered", "insert", text)
        elif draw < 0.9:
            count = self.random.choice((1, 1, 4, 40))
            name = self.random.choice(list(CACHES))
            text = f"SELECT nextval('{name}') FROM generate_series(1, {count})"
            self.draw(name, "nextval", text)
        else:
            self.take_block()

    def draw(self, name: str, what: str, text: str) -> None:
        found = self.ask(what, lambda: self.client.sql(text).fetchall())
        outcome, rows, began, ended = found
        if outcome is Outcome.DONE:
            self.drawn[name].append(Drawn(tuple(row[0] for row in rows), began, ended))

    def take_block(self) -> None:
        """Not a whole one: the rest of it is lost with the client."""

        def some() -> tuple[int, ...]:
            ids = self.client.ids("kept", block=BLOCK)
            return tuple(ids.next() for _ in range(BLOCK - 2))

        outcome, numbers, began, ended = self.ask("ids", some)
        if outcome is Outcome.DONE:
            self.drawn["kept"].append(Drawn(numbers, began, ended))

    def finish(self) -> None:
        for name in CACHES:
            self.draw(name, "nextval", f"SELECT nextval('{name}')")
        text = "SELECT id FROM numbered"
        outcome, rows, *_ = self.ask("select", lambda: self.client.sql(text).fetchall())
        if outcome is Outcome.DONE:
            self.stored = {row[0] for row in rows}

    @classmethod
    def judge(cls, works: list[Any]) -> list[str]:
        """All threads draw from the same sequences."""
        found = []
        for name in (*CACHES, "numbered"):
            drawn = [each for work in works for each in work.drawn[name]]
            given = Counter(number for each in drawn for number in each.numbers)
            if twice := sorted(number for number, times in given.items() if times > 1):
                found.append(f"numbers: {name} gave out {len(twice)} twice: {twice[:10]}")
            if name != "kept":
                found += [f"numbers: {name} {text}" for text in backwards(drawn)[:5]]
        for work in works:
            told = {number for each in work.drawn["numbered"] for number in each.numbers}
            if work.stored is None:
                found.append("numbers: the rows could not be read in the end")
            elif gone := sorted(told - work.stored):
                found.append(f"numbers: rows {gone[:10]} were told and are not there")
        return found


def backwards(drawn: list[Drawn]) -> list[str]:
    """With CACHE 1 a request that begins when another one has ended gets higher numbers."""
    found, highest = [], 0
    ends = sorted(drawn, key=lambda each: each.ended)
    place = 0
    for each in sorted(drawn, key=lambda each: each.began):
        while place < len(ends) and ends[place].ended < each.began:
            highest = max(highest, *ends[place].numbers)
            place += 1
        if min(each.numbers) <= highest:
            numbers = f"{min(each.numbers)} at {each.began:.3f}"
            found.append(f"gave {numbers}, when {highest} had been told")
    return found


KINDS[Numbers.name] = Numbers
