"""Random statements over a table with unique columns, in bulk and as transactions: PostgreSQL
leaves the same rows, or refuses them with the same SQLSTATE. Needs PostgreSQL's server."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import psycopg
import pytest
from beside_postgresql import postgresql

from remuda.errors import RemudaError
from remuda.member.statements import transaction_changes

pytestmark = pytest.mark.soak
__all__ = ["postgresql"]
InCluster = Callable[..., None]
STATEMENTS = int(os.environ.get("REMUDA_UNIQUE_STATEMENTS", "400"))
UNIQUE = "UNIQUE (u)", "UNIQUE NULLS NOT DISTINCT (v, s)"
COLUMNS = "k BIGINT PRIMARY KEY, u BIGINT, v INTEGER, s TEXT"
CONSTRAINTS = {"t_u": UNIQUE[0], "t_v": UNIQUE[1]}


class Statements:
    def __init__(self, chance: Random) -> None:
        self.chance = chance

    def value(self, most: int = 30) -> str:
        return "NULL" if self.chance.random() < 0.15 else str(self.chance.randrange(most))

    def row(self, key: int) -> str:
        text = self.chance.choice(("NULL", "'a'", "'b'", "'c'"))
        return f"({key}, {self.value()}, {self.value(8)}, {text})"

    def rows(self) -> str:
        keys = self.chance.sample(range(40), self.chance.choice((1, 2, 5, 9)))
        return ", ".join(self.row(key) for key in keys)

    def apart(self) -> str:
        """Rows without a common value: of others, those that come first may differ."""
        number = self.chance.choice((1, 2, 5, 7))
        lists = [self.chance.sample(range(most), number) for most in (40, 30, 8)]
        return ", ".join(f"({k}, {u}, {v}, 'a')" for k, u, v in zip(*lists, strict=True))

    def condition(self) -> str:
        low = self.chance.randrange(40)
        choices = (f"k >= {low}", f"k < {low}", f"k % 3 = {low % 3}", f"u > {low}", "true")
        return self.chance.choice(choices)

    def one(self) -> tuple[str, bool]:
        """A statement, and whether it has ON CONFLICT."""
        kind = self.chance.choice(
            ("insert", "select", "update", "swap", "delete", "delete", "merge", "ignore", "meet")
        )
        return getattr(self, kind)(), kind in ("ignore", "meet")

    def insert(self) -> str:
        return f"INSERT INTO t VALUES {self.rows()}"

    def select(self) -> str:
        shift = self.chance.choice((100, 50, 0))
        return (
            f"INSERT INTO t SELECT k + 100, u + {shift}, v + {shift}, s FROM t "
            f"WHERE {self.condition()} AND k < 100"
        )

    def update(self) -> str:
        change = self.chance.choice(
            (
                "u = u + 1",
                "u = u / 2",
                "u = 29 - u",
                "v = v + 1, s = 'd'",
                "u = k, v = k",
                "u = NULL",
                "s = upper(s)",
                "u = -u",
                "v = NULL, s = NULL",
            )
        )
        return f"UPDATE t SET {change} WHERE {self.condition()}"

    def swap(self) -> str:
        one, other = self.chance.sample(range(40), 2)
        return (
            f"UPDATE t SET u = (SELECT o.u FROM t o WHERE o.k = {one} + {other} - t.k), "
            f"v = (SELECT o.v FROM t o WHERE o.k = {one} + {other} - t.k) "
            f"WHERE k IN ({one}, {other})"
        )

    def delete(self) -> str:
        return f"DELETE FROM t WHERE {self.condition()} AND k % 2 = {self.chance.randrange(2)}"

    def merge(self) -> str:
        matched = self.chance.choice(
            ("UPDATE SET u = s.u", "UPDATE SET u = t.u, v = s.v", "DELETE", "DO NOTHING")
        )
        return (
            f"MERGE INTO t USING (SELECT CAST(c1 AS BIGINT), CAST(c2 AS BIGINT), "
            f"CAST(c3 AS INTEGER), CAST(c4 AS TEXT) FROM (VALUES {self.rows()}) "
            f"AS x(c1, c2, c3, c4)) AS s(k, u, v, s) ON t.k = s.k "
            f"WHEN MATCHED AND t.k % 5 <> 0 THEN {matched} "
            f"WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.u, s.v, s.s)"
        )

    def ignore(self) -> str:
        target = self.chance.choice(("", " (k)", " (u)", " (v, s)"))
        return f"INSERT INTO t VALUES {self.apart()} ON CONFLICT{target} DO NOTHING"

    def meet(self) -> str:
        """Of one row: PostgreSQL looks at several one after the other."""
        target, change = self.chance.choice(
            (("k", "u = excluded.u"), ("k", "v = excluded.v, s = 'e'"), ("u", "v = excluded.v"))
        )
        row = self.row(self.chance.randrange(40))
        return f"INSERT INTO t VALUES {row} ON CONFLICT ({target}) DO UPDATE SET {change}"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("bulk_from", [0, 3, 512])
def test_the_same_rows_and_refusals(
    in_cluster: InCluster,
    postgresql: psycopg.Connection[Any],
    monkeypatch: pytest.MonkeyPatch,
    bulk_from: int,
) -> None:
    monkeypatch.setattr(transaction_changes, "SEARCHED_MAX", bulk_from)
    seed = int(os.environ.get("REMUDA_ORACLE_SEED", "1"))
    statements = Statements(Random(f"{seed}/{bulk_from}"))
    ends: Counter[str] = Counter()

    def theirs(text: str, *, conflicts: bool) -> str:
        # Remuda looks at the rows of a whole statement, as PostgreSQL does if it may wait so long,
        # which constraints of ON CONFLICT may not.
        for name, unique in CONSTRAINTS.items():
            wait = "" if conflicts else " DEFERRABLE"
            postgresql.execute(f"ALTER TABLE t DROP CONSTRAINT IF EXISTS {name}")
            postgresql.execute(f"ALTER TABLE t ADD CONSTRAINT {name} {unique}{wait}")
        try:
            postgresql.execute(text)
        except psycopg.Error as error:
            return error.sqlstate or ""
        return ""

    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await client.sql(f"CREATE TABLE t ({COLUMNS}, {', '.join(UNIQUE)})")
        postgresql.execute(f"CREATE TABLE t ({COLUMNS})")
        for _ in range(STATEMENTS):
            text, conflicts = statements.one()
            state = ""
            try:
                await client.sql(text)
            except RemudaError as error:
                state = error.sqlstate
            assert (state, text) == (theirs(text, conflicts=conflicts), text)
            ends[f"{text.split()[0]} {state}"] += 1
            wanted = postgresql.execute("SELECT * FROM t ORDER BY k").fetchall()
            assert (await client.sql("SELECT * FROM t ORDER BY k"), text) == (wanted, text)
        await cluster.idle()

    in_cluster(scenario, backups=1)
    assert ends["INSERT 23505"] > STATEMENTS // 40
    assert ends["UPDATE "] > STATEMENTS // 40
