"""The questions that the demo asks.

``TPCDS_3`` is query 3 of the TPC-DS specification (Transaction Processing Performance Council) with
its qualification values (manufacturer 128, November).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Question:
    title: str
    sql: str
    parameters: tuple[object, ...] = ()


QUESTIONS: Final = (
    Question(
        "How many flights left each airport, and how late?",
        """\
SELECT origin, count(*) AS flights, round(avg(dep_delay), 2) AS avg_delay, max(dep_delay) AS worst
FROM flights
GROUP BY origin
ORDER BY origin""",
    ),
    Question(
        "Which airlines arrive latest? (airlines is replicated: the join stays on each member)",
        """\
SELECT a.name, count(*) AS flights, round(avg(f.arr_delay), 2) AS avg_delay
FROM flights f JOIN airlines a ON f.carrier = a.carrier
WHERE f.arr_delay IS NOT NULL
GROUP BY a.name
ORDER BY avg_delay DESC
LIMIT 5""",
    ),
    Question(
        "Where do people fly?",
        """\
SELECT p.name AS destination, count(*) AS flights, sum(f.distance) AS miles
FROM flights f JOIN airports p ON f.dest = p.faa
GROUP BY p.name
ORDER BY flights DESC, destination
LIMIT 5""",
    ),
    Question(
        "Does it pay to leave early?",
        """\
SELECT hour, count(*) AS flights, round(avg(dep_delay), 1) AS avg_delay
FROM flights
WHERE dep_delay IS NOT NULL
GROUP BY hour
HAVING count(*) > 10000
ORDER BY hour""",
    ),
    Question(
        "Who built the planes? (planes is partitioned: rows travel to meet)",
        """\
SELECT p.manufacturer, count(*) AS flights, count(DISTINCT f.tailnum) AS planes
FROM flights f JOIN planes p ON f.tailnum = p.tailnum
GROUP BY p.manufacturer
ORDER BY flights DESC, p.manufacturer
LIMIT 5""",
    ),
    Question(
        "How many flights were made by planes nobody has on record?",
        """\
SELECT f.carrier, count(*) AS flights
FROM flights f LEFT JOIN planes p ON f.tailnum = p.tailnum
WHERE p.tailnum IS NULL
GROUP BY f.carrier
ORDER BY flights DESC, f.carrier
LIMIT 5""",
    ),
    Question(
        "What does rain do?",
        """\
SELECT CASE WHEN w.precip > 0 THEN 'rain' ELSE 'dry' END AS weather,
       count(*) AS flights, round(avg(f.dep_delay), 2) AS avg_delay
FROM flights f JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
GROUP BY CASE WHEN w.precip > 0 THEN 'rain' ELSE 'dry' END
ORDER BY weather""",
    ),
    Question(
        "How was Christmas? (parameters)",
        """\
SELECT month, day, count(*) AS flights,
       sum(CASE WHEN dep_time IS NULL THEN 1 ELSE 0 END) AS cancelled
FROM flights
WHERE month = ? AND day BETWEEN ? AND ?
GROUP BY month, day
ORDER BY day""",
        (12, 23, 26),
    ),
    Question(
        "Which months cancel most?",
        """\
SELECT month, count(*) AS flights,
       sum(CASE WHEN dep_time IS NULL THEN 1 ELSE 0 END) AS cancelled,
       round(100.0 * sum(CASE WHEN dep_time IS NULL THEN 1 ELSE 0 END) / count(*), 2) AS percent
FROM flights
GROUP BY month
ORDER BY percent DESC
LIMIT 4""",
    ),
    Question(
        "What were the fastest flights?",
        """\
SELECT id, carrier, flight, dest, distance, air_time,
       round(distance * 60.0 / air_time, 1) AS mph
FROM flights
WHERE air_time > 0
ORDER BY distance * 60.0 / air_time DESC, id
LIMIT 5""",
    ),
    Question(
        "Flights into airports called International, by time zone",
        """\
SELECT p.tzone, count(*) AS flights
FROM flights f JOIN airports p ON f.dest = p.faa
WHERE p.name LIKE '%International%' OR p.name LIKE '% Intl'
GROUP BY p.tzone
ORDER BY flights DESC, p.tzone
LIMIT 5""",
    ),
    Question(
        "One flight by its key (one partition of one member is asked)",
        """\
SELECT id, time_hour, carrier, flight, origin, dest, dep_delay FROM flights WHERE id = ?""",
        (7073,),
    ),
)

TPCDS_3: Final = Question(
    "TPC-DS query 3 (date_dim and item are replicated, store_sales is partitioned)",
    """\
SELECT dt.d_year, item.i_brand_id AS brand_id, item.i_brand AS brand,
       sum(ss_ext_sales_price) AS sum_agg
FROM date_dim dt, store_sales, item
WHERE dt.d_date_sk = store_sales.ss_sold_date_sk
  AND store_sales.ss_item_sk = item.i_item_sk
  AND item.i_manufact_id = 128
  AND dt.d_moy = 11
GROUP BY dt.d_year, item.i_brand, item.i_brand_id
ORDER BY dt.d_year, sum_agg DESC, brand_id
LIMIT 100""",
)

WRONG: Final = Question(
    "A statement with a mistake", "SELECT origin, avg(dep_dleay)\nFROM flights\nGROUP BY origin"
)
