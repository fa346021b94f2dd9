"""A catalog of a few maps, and functions that bind and print statements over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from remuda.datatypes.schema import MapSchema, Namespace, ViewDefinition
from remuda.datatypes.sql import EnumType
from remuda.errors import RemudaError
from remuda.plan.explain.logical import logical_text
from remuda.sql.binder import bind
from remuda.sql.parsing.parser import parse, split_script
from remuda.sql.scope.statements import (
    BoundQuery,
    BoundStatement,
    ChangeStatement,
    CreateMapStatement,
    ExplainStatement,
    InsertStatement,
    TruncateStatement,
)

DATA = Path(__file__).parent.parent / "data"

MAPS = """
create table flights (
    id integer primary key, carrier varchar(2) not null, origin varchar not null, dest varchar,
    dep_delay integer, distance double precision, price decimal(15,2), day date, at timestamp,
    ok boolean, small smallint, big bigint, ratio real, zoned timestamp with time zone,
    tod time, raw bytea, long_price decimal(30,4));
create table airlines (carrier varchar primary key, name text) replicated;
create table airports (faa varchar primary key, name text, lat double precision, city text);
create table stock (item bigint, shop integer, amount integer not null, primary key (item, shop))
    with (partition_by = 'item');
create mapping people (__key bigint, this varchar);
create table "Mixed" ("Key" integer primary key, "Value" text);
"""


class Catalog:
    """A catalog in memory."""

    def __init__(self) -> None:
        self.maps: dict[str, MapSchema] = {}
        self.views: dict[str, ViewDefinition] = {}
        self.version = 1
        self.namespaces: tuple[Namespace, ...] = ()
        self.types: tuple[EnumType, ...] = ()

    def find(self, name: str) -> MapSchema | None:
        return self.maps.get(name)

    def find_view(self, name: str) -> ViewDefinition | None:
        return self.views.get(name)

    def names(self) -> Sequence[str]:
        return list(self.maps)

    def view_names(self) -> Sequence[str]:
        return list(self.views)

    def create(self, script: str) -> None:
        for _, text in split_script(script):
            bound = bind(parse(text), self)
            assert isinstance(bound, CreateMapStatement)
            self.maps[bound.schema.name] = bound.schema


def loaded(script: str) -> Catalog:
    catalog = Catalog()
    catalog.create(script)
    return catalog


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return loaded(MAPS)


@pytest.fixture(scope="session")
def tpch() -> Catalog:
    return loaded((DATA / "tpch" / "schema.sql").read_text())


@pytest.fixture(scope="session")
def tpcds() -> Catalog:
    return loaded((DATA / "tpcds" / "schema.sql").read_text())


def bound_text(bound: BoundStatement) -> str:
    match bound:
        case BoundQuery(plan=plan, parameter_types=types):
            text = logical_text(plan)
        case InsertStatement(schema=schema, source=source, mode=mode, parameter_types=types):
            text = f"{mode} into {schema.name}\n" + logical_text(source)
        case ChangeStatement(source=source, parameter_types=types):
            text = f"{_change_text(bound)}\n{logical_text(source)}"
        case TruncateStatement(schema=schema):
            return f"truncate {schema.name}"
        case ExplainStatement(analyze=analyze, verbose=verbose, statement=inner):
            return f"explain analyze={analyze} verbose={verbose}\n{bound_text(inner)}"
        case _:
            return repr(bound)
    if types:
        text += "\nparameters: " + ", ".join(map(str, types))
    return text


def _change_text(change: ChangeStatement) -> str:
    flags = [name for name in ("writes", "removes", "insert_only", "reads_target")
             if getattr(change, name)]  # fmt: skip
    text = f"{change.verb} {change.schema.name}: {', '.join(flags)}, repeats {change.repeats.value}"
    return text + (f", returning {', '.join(change.returning)}" if change.returning else "")


@pytest.fixture(scope="session")
def show(catalog: Catalog) -> Callable[[str], str]:
    """The plan of a statement, or its error as a user sees it."""

    def text_of(statement: str) -> str:
        try:
            return bound_text(bind(parse(statement), catalog))
        except RemudaError as error:
            return f"{type(error).__name__} {error.sqlstate}: {error}"

    return text_of
