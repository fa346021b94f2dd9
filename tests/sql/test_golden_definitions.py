# ruff: noqa: E501
"""Definitions: what they do to the catalog, and what is wrong with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from remuda.catalog.catalog import Catalog
from remuda.catalog.definition_text import definition_of
from remuda.catalog.edits import DropMap, DropView, Edit, PutMap, PutView
from remuda.errors import RemudaError
from remuda.sql.binder import bind
from remuda.sql.parsing.parser import parse
from remuda.sql.scope.statements import (
    BoundStatement,
    CatalogStatement,
    CreateAsStatement,
    CreateMapStatement,
    ShowStatement,
)

SETUP = """
create table flights (id integer primary key, carrier varchar(2) not null, delay integer default 0,
    price decimal(9,2), day date, check (delay > -100), constraint fair check (price > delay))
create table airlines (carrier varchar primary key, name text default 'none') replicated
create table log (at timestamp, what text)
create view late as select * from flights where delay > 10
create view worst (carrier, n) as select carrier, count(*) from late group by carrier
"""

DEFINITIONS = """
create table t (id int primary key, a int default 1 + 1, b text default 'it''s' not null)
create table t (id int, primary key (id), constraint c check (id > 0), check (id < 9), check (id <> 5))
create table t (a int, b int, check (a < b), check (a < b), constraint k primary key (b, a))
create table "T t" ("Id" int constraint pk primary key, "select" text default null)
create table t (x int, y text)
create table t (x int, "__key" bigint)
create table t (like flights including all, more text)
create table t (a int primary key, like airlines)
create table public.t (id int primary key)
create local temporary table t (id int primary key) on commit delete rows
create unlogged table if not exists t (id int)
create table t (a int, b int not null generated always as ((a + c) * 2) stored unique, c int)
alter table flights add column late boolean generated always as (delay > 10) stored
create table t as select 1 as a, 'x' as b
create table t (primary key (b)) as select id as b, carrier from flights
create table t (x, y, primary key (y, x)) with (partition_by = 'x') as select id, delay from flights
create table if not exists flights as select 1 as x with no data
create view v as select 1 as one
create view v (a, b) as select id, carrier, delay from flights
create or replace view late as select id, carrier, delay, price, day, 1 as more from flights
drop table log
drop table if exists log, nothing
drop table flights cascade
drop view worst
drop view late, worst
drop view late cascade
alter table flights add column x int default 3, add y text
alter table flights add if not exists day date
alter table flights drop column day cascade
alter table log drop column what, add column what int
alter table log alter what set default 'x', alter column at set not null
alter table flights drop constraint fair, add constraint fair check (price >= delay)
alter table log add check (what <> '')
alter table log rename at to moment
alter table log rename to journal
alter table flights rename constraint fair to unfair
alter table flights rename constraint flights_pkey to pk
alter table flights alter delay type bigint, alter carrier type text
alter table if exists nothing drop column x
alter table flights rename to voyages
alter table flights rename column carrier to airline
alter table flights rename column delay to late
alter table flights rename column price to "Fair price"
alter view worst rename to bad
alter view late rename to tardy
comment on table flights is 'all of them'
comment on column public.late.id is 'number'
comment on view late is null
show tables
show views
show create table flights
show create view late
describe late
"""

ERRORS = """
create table t ()
create table t (a)
create table t
create table t (a int default)
create table t (a int default 1 default 2)
create table t (a int null not null)
create table t (a int default a)
create table t (a int default (select 1))
create table t (a int default count(*))
create table t (a int default 'x')
create table t (a int default $1)
create table t (a int default 1, 2)
create table t (a int check a > 0)
create table t (a int check ())
create table t (a int check (b > 0))
create table t (a int check (a))
create table t (a int check (a > 0, a < 5))
create table t (a int check (a > (select 1)))
create table t (a int, constraint x check (a > 0), constraint x check (a < 5))
create table t (a int, constraint t_pkey check (a > 0), primary key (a))
create table t (a int primary key, primary key (a))
create table t (a int, unique (b))
create table t (a int[] unique)
create table t (a int, unique nulls distinct (a, a))
create table t (a int references nothing)
create table t (a int references late)
create table t (a int references flights (a))
create table t (a int references flights (delay))
create table t (a int references flights (id, delay))
create table t (a text references flights)
create table t (a int references log)
create table t (a int references flights match partial)
create table t (a int, foreign key (b) references flights (id))
create table t (a int, foreign key (a, a) references flights (id))
create table t (a int, constraint t_pkey foreign key (a) references flights (id), primary key (a))
create table t (a int references flights on delete no action on delete restrict)
create table t (a int references flights on insert restrict)
create table t (a int references flights on delete nothing)
create table t (a int references t)
create temporary table t (a int references flights)
alter table log add foreign key (what) references flights
create table t (a int generated always as (a) stored)
create table t (a int, b int generated always as (1) virtual)
create table t (a int, b int generated by default as (1) stored)
create table t (a int, b int generated always as ((select 1)) stored)
create table t (a int, b int default 1 generated always as (a) stored)
create table t (a int, b int primary key generated always as (a) stored)
alter table flights alter delay set expression as (id)
alter table flights alter delay drop expression
create table t (__row_id int)
create table late (a int)
create table t (like nothing)
create table t (like late)
create table t (a int, like log, like log)
create table other.t (a int)
create temporary table public.t (a int)
create temp view public.v as select 1
create temp table t (a int) with (replicated = true)
create local table t (a int)
create temp table t (a int) on commit keep
create table t (a int) on commit drop
create or replace table t (a int)
create table t (a int) as select 1
create table t (a, b) as select 1
create table t as select 1, 2
create table t as insert into log values (now(), 'x')
create table t as select $1
create view v
create view v as
create view v as delete from log
create view v as select nothing from flights
create view v as select 1 as a, 2 as a
create view v (a, b) as select 1
create view v (a, a) as select 1, 2
create view v as select $1 + 1
create view late as select 1
create view flights as select 1
create or replace view flights as select 1
create or replace view late as select id from flights
create or replace view late as select carrier as id, id as carrier, 1, 2, 3 from flights
create or replace view late as select * from late
create or replace view late as select * from worst
create view if not exists v as select 1
create materialized view v as select 1
drop table nothing
drop table flight
drop table flights
drop table flights, airlines
drop table late
drop view flights
drop view late
drop view v
drop schema public
drop table flights restrict
alter table nothing add column x int
alter table late add column x int
alter view nothing rename to x
alter view late add column x int
alter table flights add column delay int
alter table flights add column x
alter table flights add column x int primary key
alter table flights add column x int default y
alter table flights add primary key (id)
alter table flights add constraint x unique (delayy)
alter table flights add constraint flights_pkey unique (delay)
alter table flights add constraint fair check (delay < 5)
alter table flights add check (delay)
alter table flights drop column id
alter table flights drop column dela
alter table flights drop column delay
alter table flights drop constraint unfair
alter table flights drop constraint flights_pkey
alter table flights alter delay type smallint
alter table flights alter delay type boolean
alter table flights alter id type bigint
alter table flights alter price type integer using 1
alter table flights alter id drop not null
alter table flights alter delay set default 'x'
alter table flights alter nothing set not null
alter table flights alter delay set
alter table flights rename column delay to price
alter table flights rename to airlines
alter table flights rename to late
alter table flights rename column carrier to id
alter table flights
alter table flights set schema other
alter index x rename to y
comment on table nothing is 'x'
comment on table late is 'x'
comment on view flights is 'x'
comment on column flights.dela is 'x'
comment on column delay is 'x'
comment on column a.b.c.d is 'x'
comment on database remuda is 'x'
comment on table flights is 5
show create table late
show create view flights
show create table nothing
show columns
insert into late values (1)
update late set id = 1
insert into pg_class values (1)
select * from information_schema.table
select * from nowhere.flights
select nowhere.flights.id from flights
select 'nothing'::regclass
select pg_get_expr('x')
"""


def statements(script: str) -> Iterator[str]:
    text = ""
    for line in script.strip().splitlines():
        if text and not line.startswith(" "):
            yield text
            text = ""
        text = f"{text}\n{line}" if text else line
    yield text


def after(catalog: Catalog, statement: str) -> Catalog:
    bound = bind(parse(statement), catalog)
    if isinstance(bound, CreateMapStatement):
        return catalog.with_map(bound.schema, if_not_exists=bound.if_not_exists)[0]
    assert isinstance(bound, CatalogStatement)
    return catalog.edited(bound.edits)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    found = Catalog()
    for statement in statements(SETUP):
        found = after(found, statement)
    return found


def shown(bound: BoundStatement) -> str:
    match bound:
        case CreateMapStatement(schema=schema, if_not_exists=if_not_exists):
            return definition_of(schema) + ("\n(if not exists)" if if_not_exists else "")
        case CreateAsStatement(schema=schema, source=source):
            filled = "empty" if source is None else f"rows of {len(source.output)} columns"
            return f"{definition_of(schema)}\n({filled})"
        case CatalogStatement():
            lines = [f"{bound.tag}:", *map(edit_text, bound.edits)]
            for found in bound.verify:
                error = found.refusal([None for _ in found.shown])
                lines.append(f"verify: {found.query}\n  {type(error).__name__}: {error.message}")
            lines += [f"finally: {edit_text(edit)}" for edit in bound.finally_]
            lines += [f"or else: {edit_text(edit)}" for edit in bound.undo]
            return "\n".join(lines)
        case ShowStatement(kind=kind, relation=relation):
            return f"show {kind.value}" + (f" of {relation.name}" if relation is not None else "")
    return repr(bound)


def edit_text(edit: Edit) -> str:
    match edit:
        case PutMap(schema=schema):
            return definition_of(schema)
        case PutView(view=view):
            return f"{definition_of(view)} uses {', '.join(view.uses)}"
        case DropMap(name=name):
            return f"drop map {name}"
        case DropView(name=name):
            return f"drop view {name}"


def outcome(statement: str, catalog: Catalog) -> str:
    try:
        return shown(bind(parse(statement), catalog))
    except RemudaError as error:
        return f"{type(error).__name__} {error.sqlstate}: {error}"


@pytest.mark.parametrize(
    ("name", "script"), [("definitions", DEFINITIONS), ("errors_definitions", ERRORS)]
)
def test_definitions(name: str, script: str, catalog: Catalog, golden) -> None:  # type: ignore[no-untyped-def]
    blocks = [f"-- {text}\n{outcome(text, catalog)}\n" for text in statements(script)]
    golden.check(f"sql/{name}.golden", "\n".join(blocks))


@pytest.mark.parametrize("statement", list(statements(ERRORS)))
def test_every_wrong_definition_is_an_error_with_a_place(statement: str, catalog: Catalog) -> None:
    with pytest.raises(RemudaError) as caught:
        bind(parse(statement), catalog)
    assert caught.value.sqlstate != "XX000"
    assert caught.value.position is not None
    assert caught.value.statement == statement


@pytest.mark.parametrize("name", ["flights", "airlines"])
def test_a_definition_makes_the_same_map_again(name: str, catalog: Catalog) -> None:
    schema = catalog.get(name)
    text = definition_of(dataclasses.replace(schema, name="again"))
    bound = bind(parse(text), catalog)
    assert isinstance(bound, CreateMapStatement)
    assert bound.schema.columns == schema.columns
    assert (bound.schema.key, bound.schema.checks) == (schema.key, schema.checks)
    assert bound.schema.replicated == schema.replicated


def test_columns_keep_their_ids_and_new_ones_get_others(catalog: Catalog) -> None:
    ids = {column.name: column.id for column in catalog.get("log").columns}
    once = after(catalog, "alter table log drop column what, add column what int")
    again = after(once, "alter table log drop column what")
    last = after(again, "alter table log add column what text")
    seen = {ids["what"], once.get("log").column("what").id, last.get("log").column("what").id}
    assert len(seen) == 3
    assert last.get("log").column("at").id == ids["at"]
    assert last.get("log").version == 4
