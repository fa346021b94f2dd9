"""What the storms ask, and how answers are judged: in Python, row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from remuda.errors import DivisionByZero, RemudaError

Rows = list[tuple[Any, ...]]
Judge = Callable[[Rows], bool]
PIECE = 100
"""Rows that are written at a time."""


@dataclass
class Writes:
    """What writers have begun and what was acknowledged: bounds for readers."""

    begun: int = 0
    done: int = 0


@dataclass(frozen=True)
class Question:
    """One statement. ``right(rows)`` judges the answer; ``error`` is the answer, if there is to be
    one."""

    text: str
    right: Judge
    error: type[RemudaError] | None = None


@dataclass
class Tables:
    """The rows that a run works on. ``t`` and ``u`` are partitioned by their keys and never change,
    ``r`` is on every member; all rows of ``c`` change together, ``p`` only grows."""

    random: Random
    t: Rows = field(default_factory=list)
    u: Rows = field(default_factory=list)
    r: Rows = field(default_factory=list)
    c: int = 7
    commits: Writes = field(default_factory=Writes)
    puts: Writes = field(default_factory=Writes)

    def __post_init__(self) -> None:
        chance = self.random
        self.t = [
            (n, chance.randint(0, 5), chance.randint(-9, 9), "x" * chance.randint(0, 40))
            for n in range(chance.choice((0, 5, 40, 90)))
        ]
        self.u = [(n, chance.randint(0, 5)) for n in range(chance.choice((1, 12, 30)))]
        self.r = [(n, f"group {n}") for n in range(6)]

    def definitions(self) -> list[str]:
        def values(rows: Rows) -> str:
            return ", ".join("(" + ", ".join(map(literal, row)) + ")" for row in rows)

        made = [
            "CREATE TABLE t (id BIGINT PRIMARY KEY, g INT, v INT, s TEXT)",
            "CREATE TABLE u (id BIGINT PRIMARY KEY, g INT)",
            "CREATE TABLE r (g INT PRIMARY KEY, name TEXT) REPLICATED",
            "CREATE TABLE c (id BIGINT PRIMARY KEY, v BIGINT)",
            "CREATE TABLE p (id BIGINT PRIMARY KEY, v BIGINT)",
            f"INSERT INTO u VALUES {values(self.u)}",
            f"INSERT INTO r VALUES {values(self.r)}",
            f"INSERT INTO c VALUES {values([(n, 0) for n in range(self.c)])}",
        ]
        pieces = (self.t[at : at + PIECE] for at in range(0, len(self.t), PIECE))
        return made + [f"INSERT INTO t VALUES {values(piece)}" for piece in pieces]

    # ---- questions ----

    def question(self) -> Question:
        made: Callable[[], Question] = self.random.choice((
            self.scan, self.ordered, self.limit, self.first, self.groups, self.join,
            self.join, self.join_groups, self.names, self.division, self.analyze, self.commit_state,
            self.put_count, self.one,
        ))  # fmt: skip
        return made()

    def scan(self) -> Question:
        return Question("SELECT id, v, s FROM t", same([(n, v, s) for n, _, v, s in self.t]))

    def ordered(self) -> Question:
        rows = sorted(((v, n) for n, _, v, _ in self.t))
        return Question("SELECT v, id FROM t ORDER BY v, id", lambda got: got == rows)

    def limit(self) -> Question:
        all_of = {(n,) for n, *_ in self.t}
        count = min(3, len(all_of))
        return Question(
            "SELECT id FROM t LIMIT 3",
            lambda got: len(got) == len(set(got)) == count and set(got) <= all_of,
        )

    def first(self) -> Question:
        rows = sorted(((v, n) for n, _, v, _ in self.t), key=lambda row: (-row[0], row[1]))[:5]
        text = "SELECT v, id FROM t ORDER BY v DESC, id LIMIT 5"
        return Question(text, lambda got: got == rows)

    def groups(self) -> Question:
        groups = sorted({g for _, g, _, _ in self.t})
        rows = [
            (g, sum(row[1] == g for row in self.t), sum(row[2] for row in self.t if row[1] == g))
            for g in groups
        ]
        text = "SELECT g, count(*), sum(v) FROM t GROUP BY g ORDER BY g"
        return Question(text, lambda got: got == rows)

    def pairs(self) -> Rows:
        return [(n, m) for n, g, _, _ in self.t for m, h in self.u if g == h]

    def join(self) -> Question:
        text = "SELECT t.id, u.id FROM t JOIN u ON t.g = u.g"
        return Question(text, same(self.pairs()))

    def join_groups(self) -> Question:
        counts = Counter(m for _, m in self.pairs())
        rows = sorted(counts.items())
        text = "SELECT u.id, count(*) FROM t JOIN u ON t.g = u.g GROUP BY u.id ORDER BY u.id"
        return Question(text, lambda got: got == rows)

    def names(self) -> Question:
        counts = Counter(g for _, g, _, _ in self.t)
        rows = sorted((name, counts[g]) for g, name in self.r if counts[g])
        text = "SELECT r.name, count(*) FROM t JOIN r ON t.g = r.g GROUP BY r.name ORDER BY 1"
        return Question(text, lambda got: got == rows)

    def division(self) -> Question:
        at = self.random.randint(-9, 9)
        fails = any(v == at for _, _, v, _ in self.t)
        rows = [(n,) for n, *_ in self.t]
        return Question(
            f"SELECT id FROM t WHERE 100 / (v - ({at})) < 1000",
            same(rows),
            DivisionByZero if fails else None,
        )

    def analyze(self) -> Question:
        count = f"rows={len(self.pairs())}"
        text = "EXPLAIN ANALYZE SELECT t.id, u.id FROM t JOIN u ON t.g = u.g"
        return Question(text, lambda got: any(count in row[0].replace(" ", "") for row in got)
                        or len(got) > 3)  # fmt: skip

    def commit_state(self) -> Question:
        """Every atomic write is seen as a whole; those that were acknowledged are seen."""
        done = self.commits.done

        def right(got: Rows) -> bool:
            low, high, count = got[0]
            return low == high and count == self.c and done <= low <= self.commits.begun

        return Question("SELECT min(v), max(v), count(*) FROM c", right)

    def put_count(self) -> Question:
        done = self.puts.done
        return Question("SELECT count(*) FROM p", lambda got: done <= got[0][0] <= self.puts.begun)

    def one(self) -> Question:
        wanted = self.random.randint(0, 50)
        rows = [(v,) for n, _, v, _ in self.t if n == wanted]
        return Question(f"SELECT v FROM t WHERE id = {wanted}", lambda got: got == rows)


def literal(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def same(rows: Rows) -> Judge:
    expected = Counter(rows)
    return lambda got: Counter(got) == expected
