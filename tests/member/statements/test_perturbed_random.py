"""Random queries under random costs: plans that the optimizer would not choose give DuckDB's
answers, too, with and without secondary indexes of every kind."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

import remuda
from remuda.errors import RemudaError
from remuda.plan.explain.explain import explain
from remuda.session import planning

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "oracle"))
from oracle_answers import difference
from oracle_engines import SEED, answer, copy_tables, expected, filled_duckdb, second_opinion
from oracle_generator import Generator, Query
from oracle_sets import SetGenerator
from oracle_subqueries import SubqueryGenerator

pytestmark = pytest.mark.cluster

QUERIES = int(os.environ.get("REMUDA_ORACLE_QUERIES", "200")) // 4
SOAK_QUERIES = int(os.environ.get("REMUDA_ORACLE_SOAK_QUERIES", "4000"))
MORE_QUERIES = 3 * QUERIES
"""At most, while an operator that must be seen has not been: merge joins are in one plan of 100."""
SPREADS = (0.5, 1.5, 3.0)
"""Standard deviations of the logarithm of a cost."""
INDEXES = (
    "f USING sorted (k)",
    "f USING sorted (g, q DESC)",
    "f USING hash (q)",
    "f USING bitmap (b)",
    "f USING sorted (d DESC)",
    "m USING sorted (g)",
    "m USING hash (name)",
    "m USING sorted (d)",
    "r USING sorted (n)",
    "h USING sorted (c)",
    "h USING hash (v)",
    "z USING sorted (k, g)",
    "z USING bitmap (g)",
    "e USING sorted (k)",
)


def query_of(number: int) -> Query:
    chance = random.Random(SEED * 1_000_003 + number)
    match number % 3:
        case 0:
            return Generator(chance, parameters=number % 4 == 0).query()
        case 1:
            return SubqueryGenerator(chance).query()
        case _:
            return SetGenerator(chance).set_query()


class Planner:
    """Stands in for ``plan_query``: every statement is planned under costs of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._plan_query = planning.plan_query
        self.seed = 0
        self.last = ""
        self.operators: set[str] = set()
        monkeypatch.setattr(planning, "plan_query", self._planned)

    def _planned(self, logical: Any, context: Any) -> Any:
        chance = random.Random(self.seed)
        spread = chance.choice(SPREADS)
        perturb = lambda cost: cost * chance.lognormvariate(0.0, spread)  # noqa: E731
        plan = self._plan_query(logical, replace(context, perturb=perturb))
        self.last = explain(plan)
        self.operators.update(" ".join(line.split()[:2]) for line in self.last.splitlines())
        return plan


def compare(
    client: remuda.Client,
    duck: duckdb.DuckDBPyConnection,
    planner: Planner,
    numbers: Iterable[int],
) -> list[str]:
    wrong: list[str] = []
    for number in numbers:
        query = query_of(number)
        rows = expected(duck, query)
        if rows is None:
            continue
        planner.seed = number
        try:
            found = answer(client, query)
            problem = difference(found, rows)
            if problem and found == second_opinion(duck, query):
                problem = ""
        except RemudaError as error:
            problem = f"{type(error).__name__}: {error}"
        if problem:
            wrong.append(
                f"{number}: {query.remuda()} {query.parameters}\n{problem}\n{planner.last}"
            )
    return wrong


def run(
    in_cluster: Callable[..., None],
    planner: Planner,
    numbers: range,
    *,
    indexed: bool,
    seen: frozenset[str] = frozenset(),
) -> None:
    """All ``numbers``, and some more until every operator of ``seen`` was in a plan."""
    wrong: list[str] = []

    def ask(address: str) -> None:
        with remuda.connect(address) as client, filled_duckdb() as duck:
            copy_tables(duck, client)
            for number, index in enumerate(INDEXES if indexed else ()):
                client.sql(f"CREATE INDEX i{number} ON {index}").close()
            wrong.extend(compare(client, duck, planner, numbers))
            for further in range(numbers.stop, numbers.stop + MORE_QUERIES):
                if seen <= planner.operators:
                    break
                wrong.extend(compare(client, duck, planner, [further]))

    async def scenario(cluster: Any) -> None:
        await asyncio.to_thread(ask, cluster.members[0].addresses()["user"])

    in_cluster(scenario, heartbeat_timeout=60.0)
    assert not wrong, f"{len(wrong)} are wrong:\n" + "\n".join(wrong[:5])


@pytest.mark.parametrize("indexed", [False, True], ids=["plain", "indexed"])
def test_random_queries_under_perturbed_costs(
    in_cluster: Callable[..., None], monkeypatch: pytest.MonkeyPatch, indexed: bool
) -> None:
    planner = Planner(monkeypatch)
    seen = {"Hash join", "Nested loop", "Send broadcast",
            "Send unicast", "Send gather", "Send merge"}  # fmt: skip
    seen |= {"Index scan", "Lookup join"} if indexed else {"Merge join"}
    run(in_cluster, planner, range(QUERIES), indexed=indexed, seen=frozenset(seen))
    assert seen <= planner.operators, seen - planner.operators


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("indexed", [False, True], ids=["plain", "indexed"])
def test_many_random_queries_under_perturbed_costs(
    in_cluster: Callable[..., None], monkeypatch: pytest.MonkeyPatch, indexed: bool
) -> None:
    numbers = range(QUERIES, QUERIES + SOAK_QUERIES)
    run(in_cluster, Planner(monkeypatch), numbers, indexed=indexed)
