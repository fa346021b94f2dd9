"""Changes of the catalog that are made together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from remuda.catalog.catalog import Catalog
from remuda.catalog.edits import DropMap, DropView, PutMap, PutView
from remuda.datatypes.schema import Column, MapSchema, ViewDefinition
from remuda.datatypes.sql import BIGINT, VARCHAR
from remuda.errors import DependentObjects, DuplicateMap, InvalidDefinition, UndefinedMap

SCHEMA = MapSchema("m", (Column("k", BIGINT), Column("v", VARCHAR)), ("k",), ())
VIEW = ViewDefinition("w", "select k from m", (Column("k", BIGINT),), ("k",), ("m",))


@pytest.fixture
def catalog() -> Catalog:
    return Catalog().with_map(SCHEMA, if_not_exists=False)[0].edited([PutView(VIEW)])


def test_a_schema_is_replaced_under_its_id(catalog: Catalog) -> None:
    made = catalog.get("m")
    wider = replace(made, name="n", columns=(*made.columns, Column("x", BIGINT)))
    after = catalog.edited([PutMap(wider)])
    assert after.find("m") is None
    found = after.get("n")
    assert (found.map_id, found.version, after.version) == (made.map_id, 2, catalog.version + 1)
    assert [column.id for column in found.columns] == [1, 2, 3]


def test_ids_of_columns_are_never_given_again(catalog: Catalog) -> None:
    made = catalog.get("m")
    wider = catalog.edited([PutMap(replace(made, columns=(*made.columns, Column("x", BIGINT))))])
    back = wider.edited([PutMap(made)])
    again = replace(back.get("m"), columns=(*made.columns, Column("x", BIGINT)))
    assert back.edited([PutMap(again)]).get("m").column("x").id == 4


def test_views_come_change_and_go(catalog: Catalog) -> None:
    view = catalog.find_view("w")
    assert view is not None
    assert view.view_id
    other = catalog.edited([PutView(replace(view, name="z"))])
    assert list(other.view_names()) == ["z"]
    assert other.find_view("z") == replace(view, name="z")
    assert list(other.edited([DropView("z"), DropMap("m")]).names()) == []


def test_all_edits_or_none(catalog: Catalog) -> None:
    with pytest.raises(UndefinedMap):
        catalog.edited([DropMap("m"), DropMap("nothing")])
    with pytest.raises(UndefinedMap):
        catalog.edited([DropView("m")])
    with pytest.raises(InvalidDefinition):
        catalog.edited([PutMap(replace(catalog.get("m"), columns=()))])
    assert list(catalog.names()) == ["m"]


def test_a_name_is_that_of_one_map_or_one_view(catalog: Catalog) -> None:
    with pytest.raises(DuplicateMap):
        catalog.edited([PutView(replace(VIEW, name="m"))])
    with pytest.raises(DuplicateMap):
        catalog.with_map(replace(SCHEMA, name="w"), if_not_exists=False)
    with pytest.raises(DuplicateMap):
        catalog.edited([PutMap(replace(catalog.get("m"), name="w"))])


def test_a_map_that_a_view_reads_is_not_dropped_alone(catalog: Catalog) -> None:
    with pytest.raises(DependentObjects):
        catalog.without_map("m", if_exists=False)
    after, dropped = catalog.edited([DropView("w")]).without_map("m", if_exists=False)
    assert dropped is not None
    assert list(after.names()) == []
