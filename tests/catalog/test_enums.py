"""Enum types in the catalog: their columns follow them, and relations bring them along."""

from __future__ import annotations

import pytest

from remuda.catalog.catalog import Catalog
from remuda.catalog.edits import DropNamespace, DropType, PutMap, PutNamespace, PutType
from remuda.datatypes.schema import Column, MapSchema, Namespace
from remuda.datatypes.sql import INTEGER, EnumType, array, enum_of
from remuda.errors import DependentObjects, DuplicateMap, DuplicateObject, UndefinedSchema
from remuda.snapshot.catalog import catalog_text, read_catalog

MOOD = EnumType("mood", ("sad", "ok"))


def with_table(catalog: Catalog, enum: EnumType, name: str = "people") -> Catalog:
    columns = (
        Column("id", INTEGER),
        Column("m", enum_of(enum)),
        Column("many", array(enum_of(enum))),
    )
    return catalog.edited([PutMap(MapSchema(name, columns, ("id",), ()))])


@pytest.fixture
def catalog() -> Catalog:
    made = Catalog().edited([PutType(MOOD)])
    return with_table(made, made.types[0])


def test_a_type_gets_oids_of_its_own(catalog):
    (enum,) = catalog.types
    numbers = {enum.oid, enum.array_oid, *enum.label_oids, catalog.get("people").oid}
    assert len(numbers) == 5
    assert min(numbers) >= 16384


def test_columns_follow_their_type_in_the_same_version(catalog):
    (enum,) = catalog.types
    more = EnumType("feeling", ("low", *enum.labels), "public", enum.oid, enum.array_oid)
    after = catalog.edited([PutType(more)])
    schema = after.get("people")
    assert schema.column("m").type == enum_of(after.types[0])
    assert schema.column("many").type == array(enum_of(after.types[0]))
    assert after.types[0].labels == ("low", "sad", "ok")
    assert after.types[0].oid == enum.oid
    assert schema.version == catalog.get("people").version + 1
    assert schema.map_id == catalog.get("people").map_id


def test_a_map_of_another_edit_keeps_its_version(catalog):
    other = catalog.edited([PutType(EnumType("state", ("new",)))])
    assert other.get("people") is not None
    assert other.get("people").version == catalog.get("people").version


def test_a_type_with_columns_stays(catalog):
    with pytest.raises(DependentObjects, match="cannot drop type mood"):
        catalog.edited([DropType(catalog.types[0].oid)])


def test_a_schema_with_a_type_stays():
    made = Catalog().edited([PutNamespace(Namespace("s")), PutType(EnumType("e", ("a",), "s"))])
    with pytest.raises(UndefinedSchema):
        made.edited([DropNamespace("s")])


def test_a_type_and_a_map_share_no_name(catalog):
    with pytest.raises(DuplicateMap):
        catalog.edited([PutType(EnumType("people", ("a",)))])


def test_a_map_of_a_snapshot_brings_its_type():
    foreign = EnumType("mood", ("sad", "ok"), "public", 16500, 16501, (16502, 16503))
    taken = Catalog().edited([PutType(EnumType("color", ("red",)))])
    restored = with_table(taken, foreign)
    color, mood = restored.types
    assert (color.local, mood.local) == ("color", "mood")
    assert restored.get("people").column("m").type == enum_of(mood)


def test_a_map_of_a_snapshot_uses_the_type_that_is_there():
    here = Catalog().edited([PutType(EnumType("mood", ("sad", "meh", "ok")))])
    foreign = EnumType("mood", ("sad", "ok"), "public", here.types[0].oid + 7)
    restored = with_table(here, foreign)
    assert restored.types == here.types
    assert restored.get("people").column("m").type == enum_of(here.types[0])


def test_a_map_of_a_snapshot_with_other_labels_is_refused():
    here = Catalog().edited([PutType(EnumType("mood", ("sad",)))])
    foreign = EnumType("mood", ("sad", "ok"), "public", 17000)
    with pytest.raises(DuplicateObject, match="with other values"):
        with_table(here, foreign)


def test_a_catalog_with_types_comes_back_from_its_text(catalog):
    again = read_catalog(catalog_text(catalog))
    assert again.types == catalog.types
    assert again.get("people").columns == catalog.get("people").columns
    assert again == catalog
