"""Wrong statements of the later dialect, and misspelt words of all of it: what users see."""

# ruff: noqa: E501 (a statement is one line)
from __future__ import annotations

import pytest

from remuda.errors import RemudaError
from remuda.sql.binder import bind
from remuda.sql.parsing.parser import parse

RECURSION = """
with recursive t(n) as (select n from t union all select 1) select * from t
with recursive t(n) as (select n from t) select * from t
with recursive t(n) as (select 1 intersect select n from t) select * from t
with recursive t(n) as (select 1 except select n from t) select * from t
with recursive t(n) as (select 1 union all select max(n) + 1 from t) select * from t
with recursive t(n) as (select 1 union all select a.n + b.n from t a, t b) select * from t
with recursive t(n) as (select 1 union all select 2 where exists (select * from t)) select * from t
with recursive t(n) as (select 1 union all select id from flights where id in (select n from t)) select * from t
with recursive t(n) as (select 1 union all select (select n from t)) select * from t
with recursive t(n) as (select 1 union all select n + 1 from flights left join t on id = n) select * from t
with recursive t(n) as (select 1 union all select n + 1 from t right join flights on id = n) select * from t
with recursive t(n) as (select 1 union all select n + 1 from t full join flights on id = n) select * from t
with recursive t(n) as (select 1 union all (select id from flights except select n from t)) select * from t
with recursive t(n) as (select 1 union all (select id from flights intersect select n from t)) select * from t
with recursive t(n) as (select 1 union all select n + 1 from t order by 1) select * from t
with recursive t(n) as (select 1 union all select n + 1 from t limit 10) select * from t
with recursive t(n) as (select 1 union all select n + 1 from t offset 1) select * from t
with recursive t(n) as (select 1 union all select n + 1 from t fetch first row only) select * from t
with recursive a as (select * from b), b as (select * from a) select * from a
with recursive t(n) as (select 1 union all select n * 1.5 from t) select * from t
with recursive t(n) as (select 1 union all select 'a' from t) select * from t
with recursive t(n) as (select 1 union all select n, n from t) select * from t
with recursive t(n, m) as (select 1 union all select n from t) select * from t
with recursive t(n) as (select 1 union all select m + 1 from t) select * from t
with recursive t(n) as (select 1), t(m) as (select 2) select * from t
with t(n) as (select 1 union all select n + 1 from t) select * from t
with recursive t(n) as (select 1 union all select n + 1 from t) select * from tt
select (with recursive t(n) as (select f.id + random() union all select n + 1 from t where n < 9) select max(n) from t) from flights f
"""

MERGE = """
merge into flight using stock on id = item when matched then delete
merge into flights using stok on id = item when matched then delete
merge into flights using stock on id = itm when matched then delete
merge into flights using stock on id = item
merge into flights using stock when matched then delete
merge into flights using flights on true when matched then delete
merge into flights using (select 1 as n) on id = n when matched then delete
merge into flights using stock on id when matched then delete
merge into flights using stock on id = item when matched then insert values (1)
merge into flights using stock on id = item when not matched then delete
merge into flights using stock on id = item when not matched by source then insert (id) values (1)
merge into flights using stock on id = item when matched then delete when matched and true then delete
merge into flights using stock on id = item when matched then update set delay = 1
merge into flights using stock on id = item when matched then update set dep_delay = 'x'
merge into flights using stock on id = item when matched then update set dep_delay = 1, dep_delay = 2
merge into flights using stock on id = item when matched and amount then delete
merge into flights using stock on id = item when matched and count(*) > 1 then delete
merge into flights using stock on id = item when not matched then insert (id, carrier, origin) values (item, 'a')
merge into flights using stock on id = item when not matched then insert (id, carrier, origin) values (item, 'a', 'b', 'c')
merge into flights using stock on id = item when not matched then insert (id, id) values (item, 1)
merge into flights using stock on id = item when not matched then insert (id, carrier, origin) values (flights.id, 'a', 'b')
merge into flights using stock on id = item when not matched by source and amount = 1 then delete
merge into flights using stock on id = item when matched then do
merge into flights using stock on id = item when matched then delete returning nope
update flights set dep_delay = s.amount from stok s where s.item = id
update flights f set dep_delay = 1 from flights f where true
delete from flights using stock where item = idd
delete from flights using flights where true
"""

SESSION = """
set
set statement_timeout
set statement_timeout to
set statement_timeout = ,
reset
reset nothing else
show
show all of it
prepare
prepare p
prepare p as
prepare p as drop table flights
prepare p (integr) as select $1
prepare p as select nope from flights where
execute
execute p (
execute p (1
execute p (1,)
execute p (select 1)
deallocate
deallocate a b
discard
discard something
analyze flihgts
analyze flights (caries)
analyze flights,
set role
set session authorization admin x
begin foo
begin isolation level chaos
start
start transaction isolation serializable
commit prepared 'x'
commit and
rollback to
rollback to savepoint
abort to a
savepoint
release
set transaction
set transaction snapshot 'x'
set session characteristics read only
"""

FUNCTIONS = """
select * from generate_serie(1, 2)
select * from generate_series()
select * from generate_series(1)
select * from generate_series(1, 2, 3, 4)
select * from generate_series('a', 2)
select * from generate_series(true, false)
select * from generate_series(1, 2) as g(a, b)
select * from generate_series(1, count(*))
select * from generate_series(1, row_number() over ())
select * from generate_series(1, nope)
select * from generate_series(1, flights.id)
select * from unnest(1)
select * from unnest(array[1], 2)
select * from unnest()
select * from string_to_table('a')
select * from json_each(1)
select * from flights, generate_series(1, dep_dela)
select * from generate_series(1, 2) a right join generate_series(1, a) b on true
select 1 where generate_series(1, 3) = 1
select sum(generate_series(1, 3))
select id from flights group by generate_series(1, 3)
select generate_series(1, generate_series(1, 2))
select count(*) over (order by generate_series(1, 2))
"""

EXPLAIN = """
explain drop table flights
explain begin
explain analyze
explain (analyze
explain (analyze)
explain (analyse) select 1
explain (format) select 1
explain (format xml) select 1
explain (format csv) select 1
explain (analyze perhaps) select 1
explain (verbose, costs, , format json) select 1
explain (foo) select 1
explain analyze create table x as select 1 as a
explain create table x (a integer primary key)
explain explain select 1
explain select nope
"""

MISSPELT = """
selct 1
slect id from flights
insrt into airlines values ('a', 'b')
udpate flights set id = 1
delte from flights
mrege into flights using stock on true when matched then delete
craete table t (a integer primary key)
drp table flights
trunctae flights
explian select 1
exeucte p
prepar p as select 1
deallocat p
rset all
select id fro flights
select id from flights wehre id = 1
select id from flights grop by id
select id from flights oder by id
select id from flights order bby id
select id from flights limt 1
select id from flights jion airlines on true
select id from flights left jon airlines on true
select cnt(id) from flights
select cont(*) from flights
select upprr(origin) from flights
select substrng(origin, 1) from flights
select date_trnc('day', at) from flights
select cast(id as integr) from flights
select id::bigin from flights
select extract(yaer from day) from flights
select date_trunc('moth', at) from flights
select raw_number() over () from flights
select idd from flights
select f.idd from flights f
select g.id from flights f
select * from flihgts
select * from "Flights"
select "id from flights
select 'abc' from flights where origin = "EWR"
select interval '1 dya'
select date '2024-13-01'
select timestamp '2024-01-01 25:00'
select id from flights where id = 1 nad ok
"""

TEXTS = r"""
select 'abc
select "abc
select "" from flights
select /* a /* b */ 1
select $a$ text $b$
select e'abc
select 'a' 'b'
select 1a
select 1.2.3
select 0x
select 1e
select id -- comment
select # 1
select \ 1
select [1
select {1}
select 1 1
select ((1)
select (1))
select 1 +
select * + 1 from flights
select . from flights
select a..b from flights
select id from flights;; select 1
select $1 $2
select ?::nope
select u&'\zzzz'
"""

SECTIONS = {
    "errors_recursion": RECURSION,
    "errors_merge": MERGE,
    "errors_session": SESSION,
    "errors_table_functions": FUNCTIONS,
    "errors_explain": EXPLAIN,
    "errors_misspelt": MISSPELT,
    "errors_texts": TEXTS,
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
