# ruff: noqa: E501
"""Set operations, grouping sets and first rows: logical plans and errors, as golden files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

PLANS = {
    "set_operations": """
select id from flights intersect select item from stock
select id, dest from flights except all select shop, 'x' from stock
select carrier from flights intersect select carrier from airlines intersect select faa from airports
select carrier from flights except select carrier from airlines except all select faa from airports
select id from flights union select item from stock intersect select shop from stock
(select id from flights union select item from stock) intersect select shop from stock order by 1 limit 2
(select id from flights order by price limit 3) except (select item from stock limit 1)
select null intersect select 1 intersect select 2.5
insert into airlines select carrier, dest from flights except select faa, name from airports
with a as (select id from flights intersect select big from flights) select count(*) from a where id > 3
values (1, 'a') except values (2, 'b')
(select id from flights) order by price
""",
    "grouping_sets": """
select carrier, origin, count(*) from flights group by rollup (carrier, origin)
select carrier, origin, sum(price), grouping(carrier, origin) from flights group by cube (carrier, origin)
select carrier, origin, count(*) from flights group by carrier, rollup (origin, (dest, day))
select carrier, count(*) from flights group by grouping sets ((carrier), (), grouping sets (origin, ()))
select carrier, upper(dest), count(*) from flights group by rollup (1, upper(dest)), cube (ok)
select carrier, count(*) from flights group by distinct rollup (carrier), rollup (carrier)
select carrier c, sum(price) from flights group by rollup (c) having grouping(carrier) = 0 order by grouping(carrier), c
select carrier, rank() over (partition by grouping(carrier) order by sum(price)) from flights group by rollup (carrier)
select grouping(carrier), carrier from flights group by carrier
select count(*) from flights group by ()
select count(distinct dest), carrier from flights group by rollup (carrier)
""",
    "first_rows": """
select distinct on (carrier) carrier, id from flights order by carrier, price desc
select distinct on (1, upper(dest)) carrier, id from flights order by upper(dest), carrier, id limit 3
select distinct on (carrier) * from airlines
select id from flights order by price fetch first 3 rows with ties
select id from flights order by price, id offset 2 rows fetch next row with ties
select id from flights order by id limit 1 + 1
select id from flights tablesample bernoulli (10) repeatable (-1)
select s.shop from stock s tablesample system (2.5 * 2) where s.amount > 3
table airlines
table airlines union all (table airlines limit 1) order by name
select * from (values (2), (1) order by 1 limit 1) v
values (1), (2) order by column1 desc
""",
}

ERRORS = """
select id, price from flights intersect select id from flights
select id from flights except select origin from flights
select id from flights intersect select 'x'
select null except select null except select 1 order by 2
select id from flights intersect select item from stock order by id + 1
select id from flights intersect select item from stock order by item
select id as x, price as x from flights except select 1, 2 order by x
select id from flights order by 1 intersect select item from stock
select id from flights intersect corresponding select item from stock
(select id from flights order by 1) order by 1
(select id from flights limit 1) limit 1
select id from flights intersect
select origin from flights group by rollup (carrier)
select carrier from flights group by rollup ()
select carrier from flights group by rollup (carrier, count(*))
select carrier from flights group by grouping sets ((carrier, 5))
select carrier from flights group by cube (1,1,1,1,1,1,1,1,1,1,1,1,1)
select 1 from flights group by cube (1,1,1,1,1,1,1), cube (1,1,1,1,1,1,1)
select carrier from flights group by carrier with rollup
select carrier from flights group by all
select grouping(carrier) from flights
select grouping(origin) from flights group by rollup (carrier)
select grouping() from flights group by carrier
select sum(grouping(carrier)) from flights group by carrier
select carrier from flights where grouping(carrier) = 0 group by carrier
select carrier from flights group by grouping(carrier)
select id from flights join airlines on grouping(id) = 1
select carrier as x, origin as x from flights group by x
select carrier from flights group by 'x'
select distinct on (carrier) id from flights order by id
select distinct on (carrier, origin) id from flights order by origin, id
select distinct on (3) id, origin from flights
select distinct on () id from flights
select distinct on (nope) id from flights
select distinct on (carrier) count(*) from flights
select id from flights fetch first 2 rows with ties
select id from flights order by id fetch first null rows with ties
select id from flights order by id limit 2 with ties
select id from flights order by id limit -1
select id from flights limit id
select id from flights order by 'x'
select id from flights order by 1.5
select id from flights tablesample bernoulli (101)
select id from flights tablesample bernoulli (-1)
select id from flights tablesample bernoulli (null)
select id from flights tablesample bernoulli ('x')
select id from flights tablesample bernoulli (id)
select id from flights tablesample reservoir (10)
select id from flights tablesample bernoulli
with f as (select 1) select * from f tablesample bernoulli (10)
select * from (select 1) f tablesample bernoulli (10)
select sum(id) over w from flights window w as (order by id), w as (order by id)
select sum(id) over b from flights window b as (a), a as (order by id)
select sum(id) over (a order by price) from flights window a as (order by id)
select sum(id) over (a partition by price) from flights window a as (order by id)
table nope
table
values (1, 2), (3)
values ()
values (1) order by nope
values (1) order by column1 + 1
"""


@pytest.mark.parametrize("section", list(PLANS))
def test_plans(section: str, show: Callable[[str], str], golden: Any) -> None:
    blocks = [f"{line};\n{show(line)}\n" for line in PLANS[section].strip().splitlines()]
    golden.check(f"sql/{section}.golden", "\n".join(blocks))


def test_errors(show: Callable[[str], str], golden: Any) -> None:
    blocks = [f"{line}\n{show(line)}\n" for line in ERRORS.strip().splitlines()]
    golden.check("sql/errors_sets.golden", "\n".join(blocks))
