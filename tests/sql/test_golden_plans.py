# ruff: noqa: E501
"""Statements and their logical plans, as golden files."""

from __future__ import annotations

import pytest

PLANS = {
    "select": """
select * from flights where id = 7
select f.* from flights f
select id, id, carrier as c, dep_delay + 1, upper(origin) from flights
select 1, 'x', null, true, 1.50, 1e3, 12345678901, 99999999999999999999
select from_.id from flights as from_
select distinct origin, dest from flights
select distinct origin from flights order by origin desc limit 3
select id from flights order by dep_delay, at desc
select id as x from flights order by x nulls first
select id, price from flights order by 2 desc nulls last, id limit 5 offset 10
select id from flights fetch first 3 rows only
select id from flights offset 2 rows fetch next row only
select id from flights limit all
select __key, this from people where __key = 1
select "Key", "Value" from "Mixed" where "Value" = 'a'
select ID, Carrier FROM FLIGHTS
values (1, 'a'), (2, null)
select x.column2 from (values (1, 'a'), (2.5, 'b')) x
select a from (values (1, 2)) as v (a, b)
select q.n from (select count(*) n from flights) q where q.n > 1
with late as (select * from flights where dep_delay > 60) select count(*) from late
with a (x) as (select id from flights), b as (select x + 1 y from a) select a.x, b.y from a, b
with a as (select 1 as x) select * from a as p, a as q
select id from flights union all select item from stock
select id from flights union select big from flights order by 1 limit 2
select 1 union all select null union all select 2.5
(select id from flights order by id limit 1) union all (select 2)
select carrier from flights -- comment
select /* c */ 'it''s', 'a;b'
""",
    "joins": """
select f.id, a.name from flights f join airlines a on f.carrier = a.carrier
select f.id, a.name from flights f left join airlines a on f.carrier = a.carrier and a.name > 'x'
select f.id, a.name from flights f right join airlines a on f.carrier = a.carrier
select f.id, a.name from flights f full join airlines a on f.carrier = a.carrier
select f.id, a.name from flights f cross join airlines a
select f.id, a.name from flights f, airlines a where f.carrier = a.carrier
select carrier, id, name from flights join airlines using (carrier)
select carrier, flights.carrier, airlines.carrier from flights left join airlines using (carrier)
select carrier from flights right join airlines using (carrier)
select carrier from flights full join airlines using (carrier)
select carrier, name from flights natural join airlines
select * from airlines natural full join (values ('AA', 1)) as v (carrier, n)
select f.id, o.city, d.city from flights f join airports o on f.origin = o.faa join airports d on f.dest = d.faa
select a.name from airlines a join (flights f join airports p on f.origin = p.faa) on a.carrier = f.carrier
select f.id from flights f join stock s on f.id = s.item
select f.id from flights f join airlines a on f.dep_delay < 10 or a.name is null
select f.id from flights f inner join airlines a on true
""",
    "grouping": """
select count(*) from flights
select carrier, count(*), avg(dep_delay), sum(price) from flights group by carrier
select carrier, count(*) n from flights group by 1 having count(*) > 10 order by n desc
select extract(month from day) as m, max(price) from flights group by m order by m
select upper(carrier) || origin, count(*) from flights group by upper(carrier), origin
select dep_delay / 10 * 10 bucket, count(*) from flights group by dep_delay / 10 * 10
select count(distinct origin), sum(distinct dep_delay), count(dest) from flights
select sum(price) filter (where ok), count(*) filter (where dep_delay > 0) from flights
select sum(price * (1 - 0.1)) / sum(price) from flights
select carrier from flights group by carrier
select carrier, 2 * max(dep_delay) from flights group by carrier order by max(dep_delay) - min(dep_delay)
select max(day), min(origin), min(at), max(ok::int) from flights
select 1 from flights having count(*) > 3
select sum(small), sum(dep_delay), sum(big), sum(price), sum(ratio), sum(distance) from flights
select avg(small), avg(big), avg(price), avg(long_price), avg(ratio), avg(distance) from flights
select carrier, count(*) from flights group by (carrier, origin)
select case when dep_delay > 15 then 'late' else 'ok' end k, count(*) from flights group by k
""",
    "subqueries": """
select id from flights f where exists (select 1 from airlines a where a.carrier = f.carrier)
select id from flights f where not exists (select * from airlines a where a.carrier = f.carrier and a.name <> f.dest)
select id from flights where carrier in (select carrier from airlines)
select id from flights where carrier not in (select carrier from airlines)
select id from flights where dest not in (select name from airlines)
select id from flights where id in (select item from stock group by item having sum(amount) > 3) and ok
select id from flights f where dest in (select name from airlines a where a.carrier = f.carrier)
select id from flights where price > (select avg(price) from flights)
select id from flights f where price = (select max(price) from flights x where x.carrier = f.carrier)
select id, (select count(*) from stock s where s.item = f.big) from flights f
select carrier, count(*) from flights group by carrier having count(*) > (select avg(amount) from stock)
select (select name from airlines limit 1), (select 5)
select id from flights where exists (select 1 from stock)
select id from flights f where (exists (select 1 from stock s where s.item = f.id)) and (ok and small = 1)
select id from flights f where 1 < (select sum(amount) + count(*) from stock s where s.item = f.big and s.shop > 2)
select id, exists (select 1 from stock s where s.item = f.id), ok or id in (select item from stock) from flights f
select id, id = any (select item from stock), id > all (select shop from stock s where s.item = f.big) from flights f
select id from flights where origin like any (select name from airlines)
select id from flights f where exists (select 1 from stock s where exists (select 1 from airlines a where a.carrier = f.carrier and s.item = f.big))
select id, (select name from airlines a where a.carrier = f.carrier) from flights f
select (select sum(f.price)), carrier from flights f group by carrier
select carrier, (select max(s.amount) from stock s where s.item = count(*)) from flights group by carrier
select (select name from airlines where carrier = f.carrier) n, count(*) from flights f group by (select name from airlines where carrier = f.carrier)
select id from flights f order by (select name from airlines a where a.carrier = f.carrier) limit (select 2) offset (select 1)
select f.id from flights f join airlines a on f.carrier = a.carrier and exists (select 1 from stock s where s.item = f.id)
values ((select max(id) from flights), 1), (2, (select 3))
""",
    "rows": """
select (id, small) = (1, 2), (id, small) <> (1, 2) from flights
select (id, small) < (1, 2), (id, small, big) >= (1, 2, 3) from flights
select id from flights where (id, small) in ((1, 2), (3, 4)) and (id, small) not in (select item, shop from stock)
select id from flights where (id, small) = (select item, shop from stock limit 1)
select row(id, small) is null, (id, small) is not null, (id, small) is distinct from (1, 2) from flights
select id from flights where (id, small) between (1, 2) and (3, 4)
select id from flights where (id, small) > all (select item, shop from stock)
""",
    "lateral": """
select f.id, s.* from flights f, lateral (select * from stock where item = f.big) s
select f.id, s.n from flights f cross join lateral (select count(*) n from stock where item = f.big) s
select f.id, s.amount from flights f left join lateral (select amount from stock where item = f.big order by amount limit 2) s on true
select f.id, a.x, b.y from flights f, lateral (select f.id + 1 as x) a, lateral (select a.x + f.small as y) b
select f.id, v.n from flights f, lateral (values (f.id), (f.big)) v (n)
""",
    "expressions": """
select dep_delay + 1, dep_delay + small, dep_delay + big, dep_delay + price, dep_delay + ratio, price + distance from flights
select price + 1, price * 2, price / 3, price % 7, 1 - price, -price, price * price, price * 1.5 from flights
select dep_delay / 2, dep_delay % 2, mod(dep_delay, 2), -dep_delay, - - dep_delay from flights
select id from flights where price < 24 and price > 1.5 and price = 1.555 and price <> small
select id from flights where dep_delay > 1.0 and dep_delay > 1.5 and small = 3 and small = 100000 and big = 1
select id from flights where distance > 1.5 and ratio > 0.5 and ratio = distance and distance = price
select id from flights where day = '2013-01-01' and at < date '2013-01-02' and day < timestamp '2013-01-02 00:00:00' and zoned > at
select id from flights where day between date '2013-01-01' and date '2013-01-31' + interval '1' month
select day + 1, 1 + day, day - 1, day - day, day - date '2013-01-01' from flights
select day + interval '1 month 2 days', at - interval '90' minute, interval '1' year + day, tod + interval '1:30', zoned - interval '-1' day from flights
select date '2012-01-31' + interval '1 month', timestamp '2013-01-01 10:00' - interval '36 hours', date '2013-05-01' - interval '1' quarter
select extract(year from day), extract(second from at), extract(epoch from at), date_part('dow', day), extract(hour from tod) from flights
select date_trunc('month', day), date_trunc('hour', at), date_trunc('day', zoned) from flights
select carrier || '-' || origin, carrier || dep_delay, concat(carrier, id, null), upper(carrier), length(raw) from flights
select id from flights where origin like 'J%' and dest not like '%K' and origin ilike 'j_k' and dest like 'a!%' escape '!'
select id from flights where origin in ('JFK', 'LGA') and dep_delay not in (1, 2, 3) and price in (1, 2.5) and id in (id, 3)
select id from flights where dep_delay between symmetric 5 and 1 and dep_delay not between 2 and 3
select dest is null, dest is not null, ok is true, ok is not true, ok is false, not ok, not (dest is null), ok is unknown from flights
select dest is distinct from origin, dep_delay is not distinct from 3, not dest is distinct from origin from flights
select case when ok then 1 when dep_delay > 5 then 2.5 end, case origin when 'JFK' then 'a' when 'LGA' then null else dest end from flights
select coalesce(price, 0), coalesce(dest, origin, '?'), nullif(dep_delay, 0), greatest(dep_delay, 2.5), least(day, at) from flights
select cast(id as varchar), id::decimal(10,2), '12'::int, 1.7::int, cast('2013-01-01' as date), price::int, '1'::boolean, dest::date, id::decimal from flights
select abs(price), ceil(price), floor(distance), round(price), round(price, 1), round(price, dep_delay), round(distance, 2), trunc(1.567, 2), sign(price), sqrt(id), power(2, id), 2 ^ 3, ln(distance), log(10), exp(1), round(id) from flights
select substring(origin, 2, 1), substring(origin from 2), trim(both 'x' from origin), trim(origin), ltrim(origin, 'x'), position('F' in origin), strpos(origin, 'F'), left(origin, 1), right(origin, 1), replace(origin, 'J', 'K'), lpad(origin, 5), rpad(origin, 5, '*'), reverse(origin), repeat(origin, 2), initcap(origin), split_part(origin, 'F', 1), starts_with(origin, 'J'), octet_length(origin), char_length(origin), md5(origin) from flights
select current_date, current_timestamp, now(), localtimestamp, current_date - interval '90 days' from flights
select -2147483648, -9223372036854775808, 2147483648, .5, 5., 007
select true and false or not null, ok and null from flights
select date '2013-01-01', time '10:00', timestamp '2013-01-01 10:00:00.5', timestamptz '2013-01-01 10:00+02', bytea '\\x6162'
""",
    "windows": """
select id, row_number() over (order by day) from flights
select id, rank() over (partition by carrier order by price desc nulls last, id), count(*) over (partition by carrier order by price desc nulls last, id) from flights
select id, sum(price) over (partition by carrier, lower(origin) order by id rows between 2 preceding and 1 following), avg(id) over () from flights
select sum(dep_delay) filter (where ok) over w, lag(price, 1, 0) over w, nth_value(dest, 2) over (w groups 1 preceding) from flights window w as (partition by origin order by day)
select min(id) over (order by day range between interval '1 month' preceding and interval '2' day following), max(id) over (order by dep_delay desc range 5 preceding), sum(id) over (order by distance range ? preceding) from flights
select carrier, sum(count(*)) over (order by carrier), rank() over (order by max(price) - min(price)) as r from flights group by carrier having count(*) > 1 order by r
select id from flights order by ntile(4) over (order by price), id
select distinct carrier, count(*) over (partition by carrier) from flights
select * from (select id, carrier, sum(price) over (partition by carrier) s from flights) w where carrier = 'AA' and s > 10
select id, sum(id) over w, sum(id) over v from flights window w as (partition by carrier), v as (w order by id)
select id, lead(id, ?, ?) over (order by id rows ? preceding) from flights
select row_number() over (partition by 1 order by 'x') from flights
select (select max(n) from (select row_number() over () as n from stock) as t) from flights
select id from flights where id in (select first_value(item) over (order by amount) from stock)
""",
    "parameters": """
select * from flights where id = ?
select id from flights where price > $1 and carrier = $2 and price < $1
select id from flights where day between ? and ? limit ? offset ?
select ?::int + 1, cast(? as date), upper(?), coalesce(?, 0), ? + 1, dep_delay * ? from flights
select id from flights where origin in (?, ?) and ? < dep_delay and dest like ?
select case when ok then ? else 1.5 end, nullif(carrier, ?) from flights
insert into airlines values (?, ?)
insert into stock (item, shop, amount) select ?, id, ? from flights
sink into stock values ($1, 1, $2), ($1, 2, $2)
select 1 union all select ?
select id from flights where $1 = 'x' and big = $2 and id = $2
""",
    "modify": """
update flights set dep_delay = dep_delay + 1 where carrier = 'AA'
update flights f set (origin, dest) = (dest, f.origin), price = default returning id, origin, f.*
update flights set ok = dep_delay = 1 or big is distinct from 7 and not ok, big = (select max(item) from stock)
update flights set origin = a.name from airlines a join airports p on p.city = a.name where flights.carrier = a.carrier returning p.*, id
update flights set id = id + 1 returning id as new
update airlines set name = $1 where carrier = $2
with a as (select * from airlines) update flights set dest = a.name from a where a.carrier = flights.carrier
delete from flights
delete from stock where item = ? and shop = ? returning *
delete from flights f using airlines a, airports where a.carrier = f.carrier and city = a.name
delete from flights where id in (select item from stock) returning day
insert into airlines values ('AA', default) on conflict do nothing
insert into stock values (1, 2, 3) on conflict (shop, item) do update set amount = stock.amount + excluded.amount where excluded.shop > 1 returning *, amount * 2 as twice
insert into airlines as a (carrier) select origin from flights on conflict (carrier) do update set name = default
insert into airlines values ('AA', 'b') returning upper(name), carrier
with x as (select 'AA' a, 'b' b) insert into airlines select * from x
sink into airlines values ('AA', 'b') returning *
truncate table airlines
explain delete from flights where id = 1
""",
    "changes": """
insert into airlines values ('AA', 'American'), ('DL', null)
insert into airlines (name, carrier) values ('American', 'AA')
insert into airlines (carrier) select origin from flights
sink into stock select id, small, dep_delay from flights
insert into stock values (1.4, 2, 3), ('7', 8, 9)
insert into airlines with x as (select 'AA' a, 'b' b) select * from x
insert into airlines (select 'a', 'b')
insert into flights (id, carrier, origin, day, price) values (1, 'AA', 'JFK', '2013-01-01', 5)
explain select 1
explain analyze verbose insert into airlines values ('a', 'b')
explain (analyze) values (1)
show tables
show maps
describe stock
show columns from airlines
drop table stock
drop table if exists nothing
create table t (a integer, b varchar(3) not null, c decimal(10,2), primary key (a, b)) with (partition_by = 'b')
create table if not exists stock (a int primary key)
create table t (a double precision primary key, b timestamp with time zone, c time, d real, e bool, f char(3), g float(20)) replicated
create mapping m (__key int, this text)
create table t (a int primary key) with (replicated = true)
""",
}


@pytest.mark.parametrize("section", list(PLANS))
def test_plans(section, show, golden):
    blocks = [f"{line};\n{show(line)}\n" for line in PLANS[section].strip().splitlines()]
    text = "\n".join(blocks)
    assert "InternalError" not in text
    golden.check(f"sql/{section}.golden", text)
