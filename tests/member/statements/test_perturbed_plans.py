"""Any plan that the optimizer could have chosen gives the same answer: TPC-H under random costs."""

from __future__ import annotations

import asyncio
import functools
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import remuda
from remuda.plan.explain.explain import explain
from remuda.planner.context import PlanningContext
from remuda.session import planning

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))
import tpc_data

pytestmark = pytest.mark.cluster

SCALE = 0.01
PERTURBATIONS = 4
SOAK_PERTURBATIONS = 40
SPREAD = 1.5
"""Standard deviation of the logarithm of a cost: five times as dear or as cheap is common."""


def perturbed(seed: int) -> Callable[[float], float]:
    chance = random.Random(seed)
    return lambda cost: cost * chance.lognormvariate(0.0, SPREAD)


def answers(client: remuda.Client, suffix: str) -> dict[int, Counter[tuple[Any, ...]]]:
    """The suffix keeps the texts apart in the plan cache."""
    found = {}
    for number in range(1, 23):
        with client.sql(f"{tpc_data.query('tpch', number)} -- {suffix}") as cursor:
            found[number] = Counter(tuple(row) for row in cursor.fetchall())
    return found


def run(in_cluster: Any, monkeypatch: pytest.MonkeyPatch, seeds: range) -> None:
    plans: set[str] = set()
    plan_query = planning.plan_query

    def noted(*arguments: Any) -> Any:
        plan = plan_query(*arguments)
        plans.add(explain(plan))
        return plan

    monkeypatch.setattr(planning, "plan_query", noted)

    def ask(address: str) -> None:
        with remuda.connect(address) as client:
            tpc_data.load(client, "tpch", tpc_data.generate("tpch", SCALE))
            expected = answers(client, "as planned")
            assert sum(map(len, expected.values())) > 100
            for seed in seeds:
                context = functools.partial(PlanningContext, perturb=perturbed(seed))
                monkeypatch.setattr(planning, "PlanningContext", context)
                found = answers(client, f"perturbed {seed}")
                wrong = [n for n, rows in found.items() if rows != expected[n]]
                assert not wrong, f"perturbation {seed}: other answers to queries {wrong}"

    async def scenario(cluster: Any) -> None:
        await asyncio.to_thread(ask, cluster.members[0].addresses()["user"])

    in_cluster(scenario)
    assert len(plans) > 22 * len(seeds) / 3, "the plans differ"


def test_tpch_under_perturbed_costs(in_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run(in_cluster, monkeypatch, range(PERTURBATIONS))


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_tpch_under_many_perturbed_costs(in_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run(in_cluster, monkeypatch, range(PERTURBATIONS, SOAK_PERTURBATIONS))
