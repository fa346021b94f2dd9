"""Definitions of schemas beside definitions in them: no relation is ever in a schema that is not
there, and every member says the same."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_cluster import simulation

from remuda.catalog.catalog import Catalog
from remuda.errors import (
    DependentObjects,
    DuplicateMap,
    DuplicateSchema,
    RemudaError,
    TransientError,
    UndefinedMap,
    UndefinedSchema,
)

EXPECTED = (DependentObjects, DuplicateMap, DuplicateSchema, UndefinedMap, UndefinedSchema)
ROUNDS = 8


def orphans(catalog: Catalog) -> list[str]:
    relations = (*catalog.maps, *catalog.views)
    known = {"public", *catalog.namespace_names}
    return [each.name for each in relations if each.namespace not in known]


async def attempted(client: Any, text: str, done: list[str]) -> None:
    try:
        await client.run(text)
    except (TransientError, *EXPECTED) as error:
        assert isinstance(error, RemudaError)
    else:
        done.append(text.split(" s", maxsplit=1)[0])


def played(seed: int) -> tuple[list[str], list[list[str]]]:
    """What has succeeded, and the orphans on each member after each step."""
    with simulation(seed, 3, backups=1) as sim:
        sim.form()
        done: list[str] = []
        found: list[list[str]] = []

        async def schemas(client: Any) -> None:
            for number in range(ROUNDS):
                await attempted(client, "CREATE SCHEMA s", done)
                await attempted(client, "DROP SCHEMA s" + " CASCADE" * (number % 2), done)

        async def tables(client: Any) -> None:
            for number in range(2 * ROUNDS):
                await attempted(client, f"CREATE TABLE s.t{number} (id INT PRIMARY KEY)", done)
                await attempted(client, f"CREATE VIEW s.v{number} AS SELECT 1 AS one", done)
                found.append(
                    [name for m in sim.members.values() for name in orphans(m.core.catalog)]
                )

        async def play() -> None:
            first, third = await sim.client(1), await sim.client(3)
            try:
                await asyncio.gather(schemas(first), tables(third))
            finally:
                first.channel.close()
                third.channel.close()

        sim.complete(play())
        sim.settle()
        catalogs = [member.core.catalog for member in sim.members.values()]
        assert len({catalog.version for catalog in catalogs}) == 1
        found += [orphans(catalog) for catalog in catalogs]
        return done, found


@pytest.mark.parametrize("seed", range(2))
def test_no_relation_is_left_without_its_schema(seed: int) -> None:
    done, found = played(seed)
    assert not any(found)
    assert {"CREATE SCHEMA", "DROP SCHEMA", "CREATE TABLE"} <= set(done)


def test_the_rule_is_what_keeps_them_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalog that does not look at schemas leaves relations behind."""
    monkeypatch.setattr(Catalog, "check_namespace", lambda _self, _name: None)
    assert any(any(played(seed)[1]) for seed in range(8))
