"""OIDs: below 2^31, one for each object, and the same for as long as the object is there."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from remuda.catalog.catalog import Catalog
from remuda.catalog.edits import DropMap, DropView, Edit, PutMap, PutView
from remuda.catalog.indexes import with_index
from remuda.catalog.oids import FIRST_OID, OID_LIMIT
from remuda.catalog.staged_maps import staged_name
from remuda.datatypes.index import IndexDefinition, IndexedColumn, IndexKind
from remuda.datatypes.schema import Check, Column, Default, MapSchema, ViewDefinition
from remuda.datatypes.sql import BIGINT, VARCHAR

SCHEMA = MapSchema(
    "m",
    (Column("k", BIGINT), Column("v", VARCHAR, default=Default("'x'", True, "x"))),
    ("k",),
    (),
    checks=(Check("positive", "k > 0"),),
    indexes=(
        IndexDefinition("u", IndexKind.SORTED, (IndexedColumn("v"),), unique=True, constraint=True),
    ),
)
VIEW = ViewDefinition("w", "select 1", (Column("k", BIGINT),), ("k",), ())


def of_map(schema: MapSchema) -> Iterator[tuple[tuple[object, ...], int]]:
    owner = schema.map_id
    yield (owner, "map"), schema.oid
    yield (owner, "key"), schema.key_oid
    yield (owner, "key index"), schema.key_index_oid
    for column in schema.columns:
        if column.default is not None:
            yield (owner, "default", column.id), column.default_oid
    for check in schema.checks:
        yield (owner, "check", check.name), check.oid
    for index in schema.indexes:
        yield (owner, "index", index.name), index.oid
        if index.constraint:
            yield (owner, "unique", index.name), index.constraint_oid


def of(catalog: Catalog) -> dict[tuple[object, ...], int]:
    found = [pair for schema in catalog.shown.maps for pair in of_map(schema)]
    found += [(("view", view.view_id), view.oid) for view in catalog.views]
    return dict(found)


def edit(catalog: Catalog, chance: random.Random, number: int) -> list[Edit]:
    """A change of a random kind; what it makes copies OIDs of others, as LIKE does."""
    maps, views = catalog.maps, catalog.views
    match chance.randrange(7):
        case 0 if maps:
            return [DropMap(chance.choice(maps).name)]
        case 1 if views:
            return [DropView(chance.choice(views).name)]
        case 2:
            return [PutView(replace(VIEW, name=f"w{number}"))]
        case 3 if maps:
            schema = chance.choice(maps)
            index = IndexDefinition(f"i{number}", IndexKind.HASH, (IndexedColumn("k"),))
            return [PutMap(with_index(schema, index))]
        case 4 if maps:
            schema = chance.choice(maps)
            return [PutMap(replace(schema, checks=(*schema.checks, Check(f"c{number}", "k < 9"))))]
        case 5 if maps:
            like = replace(chance.choice(maps), map_id=0, version=1, name=f"m{number}")
            indexes = [replace(i, name=f"{i.name}_{number}", index_id=0) for i in like.indexes]
            return [PutMap(replace(like, indexes=tuple(indexes)))]
        case _:
            return [PutMap(replace(SCHEMA, name=f"m{number}"))]


def test_objects_keep_their_numbers_and_share_none() -> None:
    for seed in range(20):
        chance = random.Random(seed)
        catalog = Catalog()
        ever: dict[int, tuple[object, ...]] = {}
        for number in range(60):
            before, catalog = of(catalog), catalog.edited(edit(catalog, chance, number))
            after = of(catalog)
            assert all(FIRST_OID <= oid < OID_LIMIT for oid in after.values())
            assert len(set(after.values())) == len(after)
            assert all(after[key] == oid for key, oid in before.items() if key in after)
            for key, oid in after.items():
                assert ever.setdefault(oid, key) == key, "given to another object"


def test_a_restored_map_brings_its_numbers_back() -> None:
    catalog, made = Catalog().with_map(SCHEMA, if_not_exists=False)
    snapshot = replace(made, map_id=0, version=1)
    staged = catalog.edited([PutMap(replace(snapshot, name=staged_name(1, "r", 0)))])
    found = next(schema for schema in staged.maps if schema.map_id != made.map_id)
    beside = staged.edited([PutMap(replace(found, name="copy"))])
    assert not {oid for _, oid in of_map(beside.get("copy"))} & {o for _, o in of_map(made)}
    instead = staged.edited([DropMap("m"), PutMap(replace(found, name="m"))])
    assert [oid for _, oid in of_map(instead.get("m"))] == [oid for _, oid in of_map(made)]


def test_after_the_last_number_free_ones_are_taken() -> None:
    catalog = replace(Catalog(), following_oid=OID_LIMIT - 2)
    catalog = catalog.edited([PutMap(SCHEMA)])
    numbers = sorted(of(catalog).values())
    assert numbers[:2] == [FIRST_OID, FIRST_OID + 1]
    assert numbers[-1] == OID_LIMIT - 1


def test_an_edit_makes_its_own_definitions_anew_and_keeps_the_other_objects() -> None:
    catalog = Catalog(0, ())
    for name in ("a", "b", "c"):
        catalog = catalog.edited([PutMap(replace(SCHEMA, name=name))])
    catalog = catalog.edited([PutView(VIEW)])
    before = {schema.name: schema for schema in catalog.maps}
    changed = catalog.edited([PutMap(replace(before["b"], comment="more", key_oid=0))])
    after = {schema.name: schema for schema in changed.maps}
    assert after["a"] is before["a"]
    assert after["c"] is before["c"]
    assert after["b"].comment == "more"
    assert after["b"].key_oid >= FIRST_OID
    assert changed.views[0] is catalog.views[0]
