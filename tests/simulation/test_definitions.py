"""Agreement on the catalog while its coordinators are lost (``sim_definitions``), and ways to break
it, each of which a seed notices (decision 0110).

``python tests/simulation/test_definitions.py 0 100 [MUTATION]`` runs these seeds.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_cluster import Simulation, Violation, simulation
from sim_definitions import REPAIR, Definitions, StormOfDefinitions
from sim_network import LOST, Fate, Sent

from remuda.cluster.succession import Voter
from remuda.member.membership import catalog_votes
from remuda.member.membership.catalog_votes import CatalogVotes

Patch = pytest.MonkeyPatch


@pytest.mark.parametrize("seed", [10, 27])
def test_definitions_in_a_storm(seed: int) -> None:
    assert StormOfDefinitions(seed).run().told


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_definitions_in_many_storms() -> None:
    for seed in range(400):
        assert StormOfDefinitions(seed).run().told


def nobody_reads_before_it_leads(patch: Patch) -> None:
    async def read(self: CatalogVotes) -> bool:
        self._leads = self._core.view.number, self._voter.next_ballot(self._core.number)
        return False

    patch.setattr(CatalogVotes, "_read", read)


def what_may_be_decided_is_not_completed(patch: Patch) -> None:
    patch.setattr(Voter, "learn", lambda *_: None)


def one_member_decides(patch: Patch) -> None:
    patch.setattr(catalog_votes, "agreed", lambda _voters, saying_so: bool(saying_so))


def accepted_catalogs_are_installed(patch: Patch) -> None:
    """As it was before decision 0110."""
    answer = CatalogVotes._answer

    def installed(self: CatalogVotes, message: Any) -> Any:
        answered = answer(self, message)
        if answered.agreed and message.HasField("value"):
            self._install(message.value)
        return answered

    patch.setattr(CatalogVotes, "_answer", installed)


MUTATIONS: dict[Callable[[Patch], None], int] = {
    nobody_reads_before_it_leads: 12,
    what_may_be_decided_is_not_completed: 21,
    one_member_decides: 1,
    accepted_catalogs_are_installed: 3,
}
"""With a seed that notices it."""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_broken_rule_is_noticed(mutation: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutation(monkeypatch)
    with pytest.raises(Violation):
        StormOfDefinitions(MUTATIONS[mutation]).run()


# --- the members of the next view ----------------------------------------------------------------


async def two_of_five_go_on(sim: Simulation, done: Definitions) -> None:
    """Members 1 to 3 have a new catalog, and a client was told of it. The first two are lost, and
    the third one as soon as 4 and 5, which do not have it yet, are in a view of these three."""
    first, fourth = await sim.client(1), await sim.client(4)
    await first.run("CREATE TABLE base (id INT PRIMARY KEY)")
    behind = {str(sim.nodes[4]), str(sim.nodes[5])}

    def rule(sent: Sent) -> Fate | None:
        missed = sent.name == "CATALOG_INSTALL" and {sent.sender, sent.receiver} & behind
        return LOST if missed else None

    sim.network.rules.append(rule)
    sim.network.reset(sim.nodes[1], [sim.nodes[4], sim.nodes[5]], 0.6)
    await asyncio.sleep(0.05)
    assert {4, 5} <= sim.members[1].core.lost.keys()
    assert await done.define(first, "schema")
    assert sim.members[4].core.catalog.version < sim.members[1].core.catalog.version
    sim.crash(1)
    sim.crash(2)
    while any(len(sim.members[n].core.view.members) > 3 for n in (4, 5)):
        await asyncio.sleep(0.001)
    sim.crash(3)
    sim.network.rules.clear()
    while len(sim.members[4].core.view.members) > 2:
        await asyncio.sleep(0.1)
    await asyncio.sleep(REPAIR)
    assert await done.define(fourth, "view")


def views_carry_no_catalogs(patch: Patch) -> None:
    patch.setattr(CatalogVotes, "lacks", lambda *_: False)


@pytest.mark.parametrize("broken", [False, True])
def test_a_view_has_the_catalogs_of_the_one_before(broken: bool, monkeypatch: Patch) -> None:
    if broken:
        views_carry_no_catalogs(monkeypatch)
    with simulation(1, 5, backups=1) as sim:
        sim.form()
        done = Definitions(sim)
        done.watch()
        sim.complete(two_of_five_go_on(sim, done))
        done.judge()
    lost = [text for text in sim.violations if "lacks" in text or "without" in text]
    assert bool(lost) is broken, sim.useful_log()


def main(first: int, end: int, broken: str = "") -> None:
    with Patch.context() as patch:
        if broken:
            globals()[broken](patch)
        for seed in range(first, end):
            try:
                done = StormOfDefinitions(seed).run()
            except Violation as problem:
                print(seed, str(problem)[:3000], flush=True)
                if broken:
                    return
            else:
                print(seed, len(done.told), dict(done.ends), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
