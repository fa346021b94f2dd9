"""Wrong statements and the errors that users see: class, SQLSTATE, text, caret, hint."""

from __future__ import annotations

import pytest

from remuda.errors import RemudaError
from remuda.sql.binder import bind
from remuda.sql.parsing.parser import parse

SYNTAX = """
selec id from flights
select id form flights where
select id, from flights
select id,, carrier from flights
select , id from flights
select id from flights where
select id from orders where
select id from flights where (ok
select id from flights where ok)
select id from flights where id = = 3
select id from flights where id == 3
select id from flights limit
select 'abc
select "abc
select /* abc
select 1abc
select id from flights order id
select id from flights group carrier
select case when ok then 1
select cast(id int) from flights
select count(* from flights
select id from flights where id in ()
select id from flights where id between 1
select id from flights join airlines
select id from flights left join airlines
select id from flights cross join airlines on true
select 1 order by 1 union select 2
select * from
select
(select 1
select 1; select 2
select a b c from flights
insert into airlines valus (1)
create table t (a int primary key
create table t
create table t (a int,, b int)
drop table
describe
explain
select id from flights where origin like 'a' escape 'xy'
select ? , $1
select :name
select @x
select $0
"""

NAMES = """
select carier from flights
select f.carier from flights f
select x.carrier from flights f
select flights.id from flights f
select * from fligths
select * from nowhere
select id from flights, stock where nothing = 1
select carrier from flights f join airlines a on f.carrier = a.carrier
select * from flights, flights
select "ID" from flights
select origin from flights where dest = "JFK"
select cuont(*) from flights
select foo(id) from flights
select mediann(price) from flights
select id from flights order by 3
select id from flights group by 3
select id as a, big as a from flights order by a
select a.x.id from flights
select other.* from flights
select * from flights join airlines using (carier)
select * from flights join airlines using (name)
select a from (values (1)) v (a, b)
with q as (select 1) select * from qq
with q as (select 1), q as (select 2) select * from q
with q (a, b) as (select 1) select * from q
insert into airlins values (1, 2)
insert into airlines (carrier, nam) values ('a', 'b')
insert into airlines (carrier, carrier) values ('a', 'b')
drop table airlnes
describe flight
create table stock (a int primary key)
create table t (a intger primary key)
create table t (a int, a int, primary key (a))
create table t (a int, primary key (b))
create table t (a int, primary key (a, a))
create table t (a int primary key) with (partition_by = 'c')
create table t (a int primary key, b int) with (partition_by = 'b')
create table t (a int primary key) with (colour = 'b')
select id::intger from flights
select extract(yeer from day) from flights
select date_trunc('mont', day) from flights
"""

TYPES = """
select id from flights where origin = 3
select id from flights where id = origin
select id from flights where id = 'abc'
select id from flights where day = 'someday'
select id from flights where day > '2013-02-30'
select id from flights where id
select id from flights where not id
select id from flights where ok and 1
select upper(id) from flights
select origin + 1 from flights
select day + day from flights
select day + 1.5 from flights
select -origin from flights
select sum(origin) from flights
select avg(day) from flights
select max(ok) from flights
select origin ~ 1 from flights
select id similar to 'x' from flights
select price & 3 from flights
select ~price from flights
select 1 << 'x' from flights
select origin like 'x' escape 'ab' from flights
select cast(id as date) from flights
select cast(ok as bigint) from flights
select gcd(1.5::double precision, 2)
select to_char(ok, '9') from flights
select format(1, 2)
select (1, 2) overlaps (3, 4)
select (date '2024-01-01', 1) overlaps (date '2024-01-01')
select substring(origin, true) from flights
select case when ok then 1 else 'x' end from flights
select case when ok then 1 else origin end from flights
select coalesce(id, origin) from flights
select id from flights where id in (1, 'x')
select id from flights where origin in (1, 2)
select id from flights union select origin from flights
select id from flights union select id, origin from flights
select cast(day as integer) from flights
select cast(ok as date) from flights
select '99999999999'::int
select 300::tinyint
select 123456789::decimal(5,2)
select 'x'::decimal(5,2)
select 99999999999999999999999999999999999999999
select 1e999
select distance % 2 from flights
select id from flights limit 'x'
select id from flights limit -1
select id from flights limit id
select extract(hour from day) from flights
select extract(year from tod) from flights
select ?
select ? = ?
select ? || ?, ? is null
select coalesce(?, ?)
select id from flights where origin = $1 and id = $1
select $2::int
insert into stock values (true, 2, 3)
insert into stock values (1, 2, 'x')
insert into airlines values ('a', 'b', 'c')
insert into airlines (carrier, name) values ('a')
insert into airlines values ('a', 'b'), ('c')
insert into flights (id, carrier, origin) values (1, 'AAA', 'JFK')
select date '2013-13-01'
select timestamp '2013-01-01 10:00+x'
select timestamptz '2013-01-01 10:00+25'
select timestamp '294246-12-31' + interval '1' year
select interval 'many days' + day from flights
"""

GROUPS = """
select string_agg(id, ',') from flights
select string_agg(origin) from flights
select string_agg(distinct origin, ',' order by id) from flights
select string_agg(origin, ',' order by id) over () from flights
select percentile_cont(0.5) from flights
select percentile_cont(0.5) within group (order by id, price) from flights
select percentile_cont(0.5) within group (order by origin) from flights
select sum(id) within group (order by id) from flights
select upper(origin) within group (order by id) from flights
select mode() within group (order by id) over () from flights
select corr(id) from flights
select bool_and(id) from flights
select stddev(origin) from flights
select min_by(id) from flights
select stddev(*) from flights
select origin, count(*) from flights
select origin, count(*) from flights group by carrier
select count(*) from flights where count(*) > 1
select sum(count(*)) from flights
select carrier from flights group by count(*)
select carrier, count(*) from flights group by 2
select carrier from flights having dep_delay > 1
select carrier from flights group by carrier order by dep_delay
select distinct origin from flights order by dest
select count(distinct origin, dest) from flights
select count() from flights
select sum(*) from flights
select max(id, big) from flights
select upper(origin) filter (where ok) from flights
select * from flights group by carrier
select f.id from flights f join airlines a on count(*) > 1
values (count(*))
"""

UNSUPPORTED = """
select carrier from flights group by carrier for update
select id from flights for update of airlines
select id from flights for update skip locked
select * from (select id from flights for update) x
select * from (select id into x from flights) y
select id from flights qualify id > 1
select * from pubic.flights
select * except (id) from flights
select origin collate "de_DE" from flights
select id from flights fetch first 3 rows with ties
select id from flights limit 10 percent
select id from flights left semi join stock on id = item
select f(a => 1)
insert into airlines values ('a', 'b') as new
select * from flights natural semi join stock
select id from flights union by name select 1
alter table flights add column id int
create view flights as select 1
create unique index i on flights (idd)
create table t as select 1, 2
create table t (a int default b)
create table t (a int, check (b > 1))
create table s.t (a int primary key)
create table t (a date(3) primary key)
create table t (a decimal(50,2) primary key)
drop view v
begin foo
explain drop table stock
select cast(id as uuid) from flights
select cast(id as interval) from flights
select 'a' 'b'
"""

CHANGES = """
update fligths set id = 1
update flights set carier = 'AA'
update flights f set f.carrier = 'AA'
update flights set flights.carrier = 'AA'
update flights set id = 1, carrier = 'AA', id = 2
update flights set (id, big) = (1, 2), big = 3
update flights set (id, big) = (1, 2, 3)
update flights set (id, big) = 1
update flights set id = 'abc'
update flights set day = 3
update flights set ok = distance
update flights set carrier = 'ABC'
update flights set big = big + 'x'
update flights set origin = foo
update flights set origin = name from airlins
update flights set origin = name from airlines a, airports
update flights set big = 1 from flights
update flights set dep_delay = max(dep_delay)
update flights set dep_delay = rank() over (order by id)
update flights set ok = true where carrier
update flights set ok = true where count(*) > 1
update flights set ok = true where nothing = 1
update flights set ok = true returning nothing
update flights set ok = true returning a.id
update flights set ok = true returning sum(id)
update flights set ok = true returning row_number() over ()
update flights set
update flights set ok
update flights set ok =
update flights set ok = true,
update flights set ok = true, where id = 1
update flights set 1 = 2
update flights set id + 1 = 2
update flights ok = true
update flights set ok = true order by id
update flights set ok = true limit 1
update sys.flights set ok = true
update set ok = true
with flights as (select 1 as id) update flights set id = 2
delete from fligths
delete flights where id = 1
delete from flights where carier = 'AA'
delete from flights using airlins
delete from flights using flights
delete from flights using airlines a where name = a.nam
delete from flights where max(id) = 1
delete from flights limit 1
delete from flights returning count(*)
delete from
truncate
truncate fligths
truncate flights, nothing
truncate only fligths
explain truncate flights
insert into airlines values ('a', 'b') on conflict (name) do nothing
insert into airlines values ('a', 'b') on conflict (carier) do nothing
insert into airlines values ('a', 'b') on conflict (lower(carrier)) do nothing
insert into airlines values ('a', 'b') on conflict on constraint airlines_key do nothing
insert into airlines values ('a', 'b') on conflict do update set name = 'c'
insert into airlines values ('a', 'b') on conflict (carrier) do update set name = name
insert into airlines values ('a', 'b') on conflict (carrier) do update set carrier = 'x'
insert into airlines values ('a', 'b') on conflict (carrier) do update set nam = 'x'
insert into stock values (1, 2, 3) on conflict (item, shop) do update set amount = 1 = 2
insert into airlines values ('a', 'b') on conflict (carrier) do update set name = max('x')
insert into airlines values ('a', 'b') on conflict (carrier) do update set name = excluded.nam
insert into airlines values ('a', 'b') on conflict (carrier) do update set name = 'x' where 7
insert into stock values (1, 2, 3) on conflict (item) do nothing
insert into airlines values ('a', 'b') on conflict
sink into airlines values ('a', 'b') on conflict do nothing
insert into airlines values ('a', 'b') returning
insert into airlines values ('a', 'b') returning carier
insert into airlines values ('a', 'b') returning count(*)
update flights set big = $1 where $1 = 'x' and id = $3
"""

WINDOWS = """
select id from flights where row_number() over () = 1
select count(*) from flights group by rank() over (order by id)
select rank() over (order by id) from flights group by 1
select rank() over (order by id) as r from flights group by r
select count(*) from flights having rank() over () > 1
select f.id from flights f join stock s on rank() over () = 1
select sum(rank() over ()) from flights
select sum(sum(id) over ()) over () from flights
select sum(id) over (order by rank() over ()) from flights
select row_number() from flights
select upper(carrier) over () from flights
select lower(carrier) filter (where ok) over () from flights
select count(distinct carrier) over () from flights
select rank() filter (where ok) over () from flights
select lag(id ignore nulls) over (order by id) from flights
select last_value(id) ignore nulls over (order by id) from flights
select rank(id) over (order by id) from flights
select lag() over (order by id) from flights
select lag(carrier, 1, 5) over (order by id) from flights
select ntile('x') over (order by id) from flights
select sum(carrier) over () from flights
select sum(id) over w from flights
select sum(id) over (w partition by carrier) from flights window w as (order by id)
select sum(id) over (w order by id) from flights window w as (order by id)
select sum(id) over (w order by id) from flights window w as (rows unbounded preceding)
select id from flights window w as (order by id), w as (order by id)
select id from flights window v as (w order by id), w as (partition by id)
select id from flights window w as (order by nope)
select sum(id) over (order by id rows between unbounded following and current row) from flights
select sum(id) over (order by id rows between current row and unbounded preceding) from flights
select sum(id) over (order by id rows between current row and 1 preceding) from flights
select sum(id) over (order by id rows between 1 following and 1 preceding) from flights
select sum(id) over (order by id rows 1 following) from flights
select sum(id) over (order by id rows between -1 preceding and current row) from flights
select sum(id) over (order by id rows null preceding) from flights
select sum(id) over (order by id rows 'x' preceding) from flights
select sum(id) over (order by id rows id preceding) from flights
select sum(id) over (order by id rows count(*) preceding) from flights
select sum(id) over (order by id rows 1 preceding exclude nothing) from flights
select sum(id) over (partition by carrier groups 1 preceding) from flights
select sum(id) over (order by id, day range 1 preceding) from flights
select sum(id) over (order by carrier range 1 preceding) from flights
select sum(id) over (order by day range 1 preceding) from flights
select sum(id) over (order by day range interval '-1' day preceding) from flights
select carrier, sum(count(*)) over (partition by origin) from flights group by carrier
select carrier, rank() over (order by day) from flights group by carrier
select id from flights union select 1 order by rank() over ()
insert into airlines values ('a', rank() over ())
"""

SUBQUERIES = """
select (select item, shop from stock)
select id from flights where id in (select item, shop from stock)
select id from flights where (id, small) in (select item from stock)
select id from flights where (id, small) = (select item from stock)
select id from flights where id = any (select item, shop from stock)
select (id, small) = (1, 2, 3) from flights
select (id, small) = 1 from flights
select id from flights where (id, small) in ((1, 2), (3, 4, 5))
select id from flights where origin = any (select item from stock)
select id from flights where id in (select name from airlines)
select id from flights where (id, origin) in (select item, shop from stock)
select id from flights where (select item from stock)
select id from flights where exists (select nosuch from stock)
select id from flights f where exists (select 1 from stock s where s.nosuch = f.id)
select id from flights f where exists (select 1 from stock s where x.item = f.id)
select id from flights where exists (select 1 from nosuch)
select id from flights f where exists (select 1 from stock a, stock b where item = f.id)
select carrier, (select max(amount) from stock where item = f.id) from flights f group by carrier
select carrier from flights f group by carrier having f.id in (select item from stock)
select id from flights f where (select sum(f.id)) > 1
select id from flights f group by (select count(f.id))
select (select max(count(*)) from stock) from flights
select (select sum(sum(amount)) from stock) from flights
select id from flights limit (select id)
select id from flights limit (select item, shop from stock)
select s.amount from flights f right join lateral (select * from stock where item = f.big) s on true
select s.amount from flights f full join lateral (select * from stock where item = f.big) s on true
select * from flights f, (select * from stock where item = f.big) s
select * from flights f, lateral (select * from stock where item = g.big) s
select * from lateral (select * from stock where item = f.big) s, flights f
select * from flights f, lateral (select sum(f.id)) s
create table c (a int primary key, check (a > (select 1)))
select id from flights where id in ()
select id from flights where id > all (1, 2)
"""

FORMS = """
select from flights
select (f.id).* from flights f
select (1).*
select (nosuch).* from flights
select j.origin from flights join airlines using (carrier) as j
select * from flights join airlines using (carrier) as flights
select * from flights join airlines using (carrier) as
select array(select id, origin from flights)
select array(select)
select id from flights where id in (select from stock)
select (select from stock)
select array[[1,2],[3]]
select rank(1) within group (order by id, day) from flights
select rank('x') within group (order by id) from flights
select rank(sum(id)) within group (order by id) from flights
select pg_typeof() from flights
select date_trunc('day', at, 'UTC', 1) from flights
select date_trunc('day', tod, 'UTC') from flights
select extract(julian from tod) from flights
select * from jsonb_to_record('{}')
select * from jsonb_to_record('{}') as x (a, b)
select * from jsonb_to_record('{}') as x (a nosuch)
select * from generate_series(1, 2) as x (a int)
select jsonb_path_query('{}')
with x as (delete from flights returning id) select y from x
with x as (delete from flights) select * from x
with x (a, b) as (delete from flights returning id) select * from x
with x as (delete from flights returning id), x as (select 1) select 1
with x as (delete from flights returning id), y as (delete from airlines) select 1
with x as (delete from flights returning id) insert into airlines select id from x
select * from (with x as (delete from flights returning id) select * from x) y
create view v as with x as (delete from flights returning id) select * from x
with x as (insert into flights (id) values (1) returning nosuch) select 1
with r as (select 1 as n) search depth first by n set o select * from r
with recursive r (n) as (select 1 union all select n from r) search depth first by m set o select 1
with recursive r (n) as (select 1 union all select n from r) search depth first by n set n select 1
with recursive r (n) as (select 1 union all select n from r) cycle n set m using m select 1
with recursive r (n) as (select 1 union all table r) cycle n set m using n select 1
with recursive r (n) as (select 1 union all select n from (table r) q) cycle n set m using p table r
with recursive r (n) as ((select 1 union select 2) union all table r) cycle n set m using p table r
update flights set id[1] = 2
update flights set origin['a'] = 'b'
merge into flights f using stock s on f.id = 1 when matched and (table nosuch) > 1 then delete
merge into flights f using stock s on f.id = 1 when matched and sum(f.id) > 1 then delete
merge into stock s using flights f on f.id = 1 when not matched then insert values ((select s.item))
select count(*) over (order by tod range 1 preceding) from flights
select count(*) over (order by tod range '-1 hour' preceding) from flights
select date 'infinity'
select timestamp '-infinity'
select b'101'
"""

SECTIONS = {
    "errors_forms": FORMS,
    "errors_changes": CHANGES,
    "errors_syntax": SYNTAX,
    "errors_names": NAMES,
    "errors_types": TYPES,
    "errors_groups": GROUPS,
    "errors_subqueries": SUBQUERIES,
    "errors_unsupported": UNSUPPORTED,
    "errors_windows": WINDOWS,
}
STATEMENTS = [line for text in SECTIONS.values() for line in text.strip().splitlines()]


@pytest.mark.parametrize("section", list(SECTIONS))
def test_errors(section, show, golden):
    blocks = [f"{line}\n{show(line)}\n" for line in SECTIONS[section].strip().splitlines()]
    golden.check(f"sql/{section}.golden", "\n".join(blocks))


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_error_is_typed_and_placed(statement, catalog):
    with pytest.raises(RemudaError) as caught:
        bind(parse(statement), catalog)
    error = caught.value
    assert error.sqlstate != "XX000"
    assert error.statement == statement
    if "parameter $" not in error.message:
        assert error.position is not None
        assert 0 <= error.position.offset <= len(statement)
