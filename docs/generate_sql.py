"""Makes docs/sql.md and docs/sql-explain.md from the code.

    ./run test tests/docs/test_sql_page.py --rewrite

Each statement of docs/sql.md is parsed and bound here, each value is computed here, and each
function of the catalog needs an example below: what the page says is what the code does. The plan
of docs/sql-explain.md is a golden file of the planner (rewrite those first).
"""

from __future__ import annotations

import datetime as dt
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from remuda.datatypes.arrow import external_type
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import BIGINT, DOUBLE, INTEGER, REAL, SqlType, char, decimal, varchar
from remuda.datatypes.values import from_physical
from remuda.errors import NotSupported
from remuda.execution.evaluate.compile import evaluate_constant
from remuda.plan.datetime_fields import EXTRACT_FIELDS, TRUNC_FIELDS
from remuda.plan.functions import (
    AGGREGATE_FUNCTIONS,
    ALIASES,
    INTERNAL,
    OPERATORS,
    SCALAR_FUNCTIONS,
    WINDOW_FUNCTIONS,
)
from remuda.plan.logical import Project
from remuda.sql.binder import bind
from remuda.sql.parser import parse
from remuda.sql.statements import BoundQuery, BoundStatement, CreateMapStatement
from remuda.sql.types import TYPE_NAMES, type_from_name

MAPS: Final = (
    "CREATE TABLE flights (id BIGINT PRIMARY KEY, carrier VARCHAR(2), origin TEXT, delay INTEGER)",
    "CREATE TABLE airlines (carrier VARCHAR(2) PRIMARY KEY, name VARCHAR) WITH (replicated = true)",
)

STATEMENTS: Final = (
    ("a map; the primary key is the key",
     "CREATE TABLE [IF NOT EXISTS] orders (id BIGINT PRIMARY KEY, price DECIMAL(9,2) NOT NULL)"),
    ("a map that is partitioned by a part of its key",
     "CREATE TABLE items (o BIGINT, n INTEGER, PRIMARY KEY (o, n)) WITH (partition_by = 'o')"),
    ("a full copy on each member",
     "CREATE TABLE codes (code VARCHAR PRIMARY KEY, name VARCHAR) WITH (replicated = true)"),
    ("the map and all its entries go", "DROP TABLE [IF EXISTS] flights"),
    ("rows appear together; a key that exists is refused",
     "INSERT INTO flights (id, carrier) VALUES (1, 'UA'), (2, 'AA')"),
    ("the rows of a query",
     "INSERT INTO flights SELECT id + 100, carrier, origin, delay FROM flights"),
    ("as INSERT, but a key that exists is overwritten",
     "SINK INTO flights VALUES (1, 'UA', 'EWR', 2)"),
    ("INSERT with ON CONFLICT",
     "INSERT INTO flights VALUES (1, 'UA', 'EWR', 2) ON CONFLICT DO NOTHING"),
    ("RETURNING", "INSERT INTO flights VALUES (1, 'UA', 'EWR', 2) RETURNING id"),
    ("UPDATE", "UPDATE flights SET delay = delay + 1 WHERE carrier = 'UA'"),
    ("DELETE", "DELETE FROM flights WHERE delay IS NULL"),
    ("TRUNCATE", "TRUNCATE flights"),
    ("all maps; SHOW MAPS is the same", "SHOW TABLES"),
    ("the columns of a map; SHOW COLUMNS FROM is the same", "DESCRIBE flights"),
    ("the plan of a query or an INSERT", "EXPLAIN [VERBOSE] SELECT count(*) FROM flights"),
    ("runs it, and tells what each operator did on each member",
     "EXPLAIN ANALYZE SELECT count(*) FROM flights"),
)  # fmt: skip

QUERIES: Final = (
    ("joins: INNER, LEFT, RIGHT, FULL, CROSS, with ON, USING or NATURAL",
     "SELECT f.id, a.name FROM flights f LEFT JOIN airlines a USING (carrier)"),
    ("grouping, HAVING, FILTER, DISTINCT in aggregates",
     """SELECT origin, count(DISTINCT carrier), avg(delay) FILTER (WHERE delay > 0)
FROM flights GROUP BY origin HAVING count(*) > 10"""),
    ("order and page",
     "SELECT id FROM flights ORDER BY delay DESC NULLS LAST, id LIMIT 10 OFFSET 20"),
    ("derived tables and WITH",
     "WITH late AS (SELECT * FROM flights WHERE delay > 30) SELECT count(*) FROM late"),
    ("IN and EXISTS, also correlated",
     """SELECT id FROM flights f
WHERE EXISTS (SELECT * FROM airlines a WHERE a.carrier = f.carrier)"""),
    ("scalar subqueries that give one row",
     "SELECT id FROM flights WHERE delay > (SELECT avg(delay) FROM flights)"),
    ("window functions",
     "SELECT id, rank() OVER (PARTITION BY carrier ORDER BY delay) FROM flights"),
    ("DISTINCT, UNION, UNION ALL",
     "SELECT carrier FROM flights UNION SELECT carrier FROM airlines"),
    ("rows without a map", "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t (n, letter)"),
    ("parameters: ? in order, or $1, $2, ... by number", "SELECT id FROM flights WHERE delay > ?"),
)  # fmt: skip

FURTHER: Final = (
    ("MERGE", "MERGE INTO flights USING airlines ON TRUE WHEN MATCHED THEN DELETE"),
    ("ALTER TABLE", "ALTER TABLE flights ADD x INTEGER"),
    ("CREATE INDEX", "CREATE INDEX i ON flights (delay)"),
    ("CREATE VIEW", "CREATE VIEW v AS SELECT 1"),
    ("CREATE TABLE AS", "CREATE TABLE t AS SELECT 1"),
    ("BEGIN, COMMIT, ROLLBACK", "BEGIN"),
    ("SET", "SET x = 1"),
    ("INTERSECT", "SELECT 1 INTERSECT SELECT 1"),
    ("EXCEPT", "SELECT 1 EXCEPT SELECT 1"),
    ("WITH RECURSIVE", "WITH RECURSIVE t AS (SELECT 1) SELECT * FROM t"),
    ("LATERAL", "SELECT * FROM flights f, LATERAL (SELECT 1) x"),
    ("ROLLUP", "SELECT carrier FROM flights GROUP BY ROLLUP (carrier)"),
    ("CUBE", "SELECT carrier FROM flights GROUP BY CUBE (carrier)"),
    ("GROUPING SETS", "SELECT carrier FROM flights GROUP BY GROUPING SETS ((carrier), ())"),
    ("DISTINCT ON", "SELECT DISTINCT ON (carrier) id FROM flights"),
    ("IN or EXISTS with a subquery below OR or inside an expression",
     "SELECT id FROM flights WHERE delay = 1 OR id IN (SELECT id FROM flights)"),
    ("comparison with ANY or ALL",
     "SELECT id FROM flights WHERE delay > ALL (SELECT delay FROM flights)"),
    ("regular expressions", "SELECT id FROM flights WHERE carrier ~ 'U.'"),
    ("SIMILAR TO", "SELECT id FROM flights WHERE carrier SIMILAR TO 'U_'"),
    ("INTERVAL as a value of its own (it works in date arithmetic)", "SELECT INTERVAL '1' DAY"),
    ("AT TIME ZONE", "SELECT current_timestamp AT TIME ZONE 'UTC'"),
    ("arrays", "SELECT ARRAY[1, 2]"),
    ("column defaults", "CREATE TABLE t (id BIGINT PRIMARY KEY, n INTEGER DEFAULT 0)"),
)  # fmt: skip
"""(what, a statement that needs it): those that are refused are listed as not supported."""

TYPES: Final = {
    "boolean": ("true, false", "TRUE"),
    "tinyint": ("8 bits", "CAST(1 AS TINYINT)"),
    "smallint": ("16 bits", "CAST(1 AS SMALLINT)"),
    "integer": ("32 bits", "1"),
    "bigint": ("64 bits", "CAST(1 AS BIGINT)"),
    "decimal": ("exact, up to 38 digits", "1.50"),
    "real": ("32 bits, floating", "CAST(1 AS REAL)"),
    "double": ("64 bits, floating", "1e0"),
    "char": ("text of at most n characters; not padded", "CAST('a' AS CHAR(2))"),
    "varchar": ("text; VARCHAR(n): at most n characters", "'a'"),
    "bytea": ("bytes", "CAST('\\x00ff' AS BYTEA)"),
    "date": ("a day", "DATE '2024-02-29'"),
    "time": ("microseconds of a day", "TIME '10:30:00'"),
    "timestamp": ("microseconds, without a zone", "TIMESTAMP '2024-02-29 10:30:00'"),
    "timestamptz": ("a moment, in microseconds", "TIMESTAMPTZ '2024-02-29 10:30:00+00'"),
}

OPERATOR_EXAMPLES: Final = {
    "+": ("1 + 2.5", "DATE '2024-02-28' + 2"),
    "-": ("1 - 2.5", "DATE '2024-03-01' - DATE '2024-02-01'"),
    "*": ("1.5 * 2.25",),
    "/": ("7 / 2", "7.0 / 2"),
    "%": ("-7 % 3",),
    "neg": ("- 2.5",),
    "=": ("1 = 1.0",),
    "<>": ("'a' <> 'b'",),
    "<": ("1 < NULL",),
    "<=": ("1 <= 1",),
    ">": ("DATE '2024-01-02' > DATE '2024-01-01'",),
    ">=": ("2 >= 3",),
    "is_distinct_from": ("NULL IS DISTINCT FROM 1",),
    "is_not_distinct_from": ("NULL IS NOT DISTINCT FROM NULL",),
    "and": ("TRUE AND NULL", "FALSE AND NULL"),
    "or": ("TRUE OR NULL",),
    "not": ("NOT FALSE",),
    "is_null": ("NULL IS NULL",),
    "is_not_null": ("1 IS NOT NULL",),
    "is_true": ("NULL IS TRUE",),
    "is_false": ("FALSE IS FALSE",),
    "is_not_true": ("NULL IS NOT TRUE",),
    "is_not_false": ("FALSE IS NOT FALSE",),
    "||": ("'a' || 1",),
    "like": ("'flight' LIKE 'f_i%'",),
    "ilike": ("'Flight' ILIKE 'f%'",),
}

MORE_EXAMPLES: Final = (
    "2 BETWEEN 1 AND 3",
    "2 IN (1, 2, 3)",
    "CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END",
    "CAST('12' AS INTEGER)",
    "'2024-02-29'::DATE",
    "DATE '2024-01-31' + INTERVAL '1' MONTH",
)

FUNCTION_EXAMPLES: Final = {
    "coalesce": ("coalesce(NULL, 2)",),
    "nullif": ("nullif(2, 2)",),
    "greatest": ("greatest(1, NULL, 3)",),
    "least": ("least(1, NULL, 3)",),
    "abs": ("abs(-2.5)",),
    "ceil": ("ceil(2.1)",),
    "floor": ("floor(-2.1)",),
    "round": ("round(2.5)", "round(2.345, 2)"),
    "trunc": ("trunc(-2.9)", "trunc(2.349, 2)"),
    "sqrt": ("sqrt(2)",),
    "power": ("power(2, 10)",),
    "exp": ("exp(1)",),
    "ln": ("ln(10)",),
    "log10": ("log10(1000)",),
    "sign": ("sign(-3)",),
    "upper": ("upper('abc')",),
    "lower": ("lower('ABC')",),
    "length": ("length('abc')",),
    "octet_length": ("octet_length('äbc')",),
    "substring": ("substring('flights', 2, 3)", "substring('flights' FROM 2 FOR 3)"),
    "trim": ("trim('  a ')", "trim(BOTH 'x' FROM 'xax')"),
    "ltrim": ("ltrim('xxa', 'x')",),
    "rtrim": ("rtrim('axx', 'x')",),
    "replace": ("replace('a-b', '-', '+')",),
    "concat": ("concat('a', 1, NULL)",),
    "left": ("left('abc', 2)",),
    "right": ("right('abc', 2)",),
    "position": ("position('b' IN 'abc')", "strpos('abc', 'b')"),
    "starts_with": ("starts_with('abc', 'ab')",),
    "lpad": ("lpad('7', 3, '0')",),
    "rpad": ("rpad('7', 3, '0')",),
    "reverse": ("reverse('abc')",),
    "repeat": ("repeat('ab', 2)",),
    "initcap": ("initcap('new york')",),
    "split_part": ("split_part('a-b-c', '-', 2)",),
    "md5": ("md5('abc')",),
    "extract": ("extract(year FROM DATE '2024-02-29')", "date_part('dow', DATE '2024-02-29')"),
    "date_trunc": ("date_trunc('month', TIMESTAMP '2024-02-29 10:30:00')",),
    "current_date": ("current_date",),
    "current_timestamp": ("current_timestamp", "now()"),
}

AGGREGATE_ARGUMENTS: Final = (INTEGER, BIGINT, decimal(9, 2), REAL, DOUBLE, varchar())


class Catalog:
    """The maps that the statements of the page name."""

    def __init__(self) -> None:
        self.version = 1
        self._maps: dict[str, MapSchema] = {}
        for text in MAPS:
            made = self.bound(text)
            assert isinstance(made, CreateMapStatement)
            self._maps[made.schema.name] = made.schema

    def find(self, name: str) -> MapSchema | None:
        return self._maps.get(name)

    def names(self) -> Sequence[str]:
        return list(self._maps)

    def bound(self, text: str) -> BoundStatement:
        return bind(parse(text), self)


CATALOG: Final = Catalog()
TESTS: Final = Path(__file__).resolve().parents[1] / "tests"
MADE: Final = (
    "<!-- Made by docs/generate_sql.py: ./run test tests/docs/test_sql_page.py --rewrite -->"
)


def page() -> str:
    """The text of docs/sql.md. An AssertionError or a RemudaError names what is not true."""
    return (
        "\n".join([*_head(), *_statements(), *_types(), *_functions(), *_windows(), *_absent()])
        + "\n"
    )


def _head() -> Iterable[str]:
    yield "# SQL"
    yield ""
    yield MADE
    yield ""
    yield "PostgreSQL's syntax and meaning, for the statements below. Names in quotes keep their"
    yield "case, others are lower case. Integer division truncates, NULLs sort last in ascending"
    yield "order, and text is never turned into a number silently. A statement reads one timestamp"
    yield "of the whole grid. What is not supported is refused with SQLSTATE 0A000 and its place."
    yield ""


def _statements() -> Iterable[str]:
    yield "## Statements"
    yield ""
    yield "Parts in brackets may be left out. `CREATE MAPPING` and `DROP MAPPING` mean the same as"
    yield "`CREATE TABLE` and `DROP TABLE`."
    yield ""
    yield from _listed(STATEMENTS)
    yield "## Queries"
    yield ""
    yield from _listed(QUERIES)


def _listed(statements: Sequence[tuple[str, str]]) -> Iterable[str]:
    yield "```sql"
    for about, text in statements:
        if _is_supported(text):
            yield f"-- {about}"
            yield f"{text};"
    yield "```"
    yield ""


def _is_supported(text: str) -> bool:
    optional = re.sub(r"\[((?:[A-Z]+ ?)+)\]", r"\1", text)
    try:
        CATALOG.bound(optional)
    except NotSupported:
        return False
    return True


def _types() -> Iterable[str]:
    yield "## Types"
    yield ""
    yield "| type | also written | what | Arrow | Python |"
    yield "|---|---|---|---|---|"
    others: dict[SqlType, list[str]] = {}
    for name in TYPE_NAMES:
        others.setdefault(_type(name), []).append(name)
    assert {_type(name) for name in TYPES} == set(others), "TYPES and sql/types.py disagree"
    for name, (about, literal) in TYPES.items():
        kind = _type(name)
        shown = str(kind).replace("(9,2)", "(p,s)").replace("CHAR(2)", "CHAR(n)")
        _, value = _value(literal)
        also = ", ".join(o.upper() for o in others[kind] if o.upper() != shown.partition("(")[0])
        arrow = str(external_type(kind)).replace("(9, 2)", "(p, s)")
        yield f"| {shown} | {also} | {about} | {arrow} | {type(value).__name__} |"
    yield ""


def _type(name: str) -> SqlType:
    arguments = {"decimal": (9, 2), "numeric": (9, 2), "dec": (9, 2)}.get(name, ())
    if name in ("char", "character", "bpchar"):
        return char(2)
    return type_from_name(name, arguments, None)


def _functions() -> Iterable[str]:
    names = set(SCALAR_FUNCTIONS) - OPERATORS - INTERNAL
    assert set(FUNCTION_EXAMPLES) == names, set(FUNCTION_EXAMPLES) ^ names
    assert set(OPERATOR_EXAMPLES) == OPERATORS, set(OPERATOR_EXAMPLES) ^ OPERATORS
    yield "## Operators"
    yield ""
    yield from _examples(OPERATOR_EXAMPLES)
    yield from (_row(text, "") for text in MORE_EXAMPLES)
    yield ""
    yield "## Functions"
    yield ""
    yield from _examples(FUNCTION_EXAMPLES)
    yield ""
    called = sorted((alias, name) for alias, name in ALIASES.items() if name in names | {"%"})
    yield "Other names: " + ", ".join(f"`{alias}` = `{name}`" for alias, name in called) + "."
    yield ""
    yield "`current_date` and `current_timestamp` (in UTC) are the moment when the statement began."
    yield ""
    yield f"Fields of `extract`: {', '.join(EXTRACT_FIELDS)}. Fields of `date_trunc`:"
    yield f"{', '.join(TRUNC_FIELDS)}."
    yield ""
    yield from _aggregates()


def _examples(examples: dict[str, tuple[str, ...]]) -> Iterable[str]:
    yield "| example | value | type | |"
    yield "|---|---|---|---|"
    for name, texts in examples.items():
        for text in texts:
            yield _row(text, SCALAR_FUNCTIONS[name].summary if text is texts[0] else "")


def _row(text: str, about: str) -> str:
    bound, value = _value(text)
    shown = "" if isinstance(value, _Moment) else f"`{_shown(value)}`"
    code = f"`{text}`".replace("|", "\\|")
    return f"| {code} | {shown} | {bound} | {about} |"


class _Moment:
    """Stands for a value that is another one each time."""


def _value(text: str) -> tuple[SqlType, object]:
    """Type and value of an expression, from the binder and the evaluator."""
    statement = CATALOG.bound(f"SELECT {text}")
    assert isinstance(statement, BoundQuery)
    project = statement.plan
    assert isinstance(project, Project), text
    (expression,) = project.expressions
    if text.startswith(("current_", "now")):
        return expression.type, _Moment()
    return expression.type, from_physical(evaluate_constant(expression), expression.type)


def _shown(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case str():
            return f"'{value}'"
        case dt.datetime():
            return value.isoformat(" ")
        case _:
            return str(value)


def _aggregates() -> Iterable[str]:
    yield "## Aggregates"
    yield ""
    yield "Type of the result by the type of the argument. NULLs are skipped; over no rows `count`"
    yield "is 0 and the others are NULL. All take DISTINCT and FILTER (WHERE ...)."
    yield ""
    yield "| | " + " | ".join(map(str, AGGREGATE_ARGUMENTS)) + " |"
    yield "|---|" + "---|" * len(AGGREGATE_ARGUMENTS)
    for name, function in AGGREGATE_FUNCTIONS.items():
        found = [function.resolve(argument) for argument in AGGREGATE_ARGUMENTS]
        results = ["" if signature is None else str(signature.result) for signature in found]
        yield f"| {name} | " + " | ".join(results) + " |"
    yield ""


def _windows() -> Iterable[str]:
    yield "## Window functions"
    yield ""
    yield "Called with OVER, as aggregates can be, too."
    yield ""
    for name, function in WINDOW_FUNCTIONS.items():
        yield f"- `{name}`: {function.summary}"
    yield ""


def _absent() -> Iterable[str]:
    yield "## Not supported yet"
    yield ""
    tried = (*STATEMENTS, *QUERIES, *FURTHER)
    missing = [about for about, text in tried if not _is_supported(text)]
    yield from textwrap.wrap("; ".join(missing) + ".", 99)


EXPLAIN_HEAD: Final = """\
`EXPLAIN` prints the plan of a query and does not run it. This is query 3 of TPC-DS on three
members, planned with the statistics of scale 1 (2.9 million sales); `date_dim` and `item` are
replicated.
"""

EXPLAIN_TAIL: Final = """\
Read it from the bottom up, and each line as *what (with what) [where, how many, how dear]*.

- A **fragment** is what runs in one piece on each of its members. Rows leave it through `Send` and
  come in through `Receive`; nothing else crosses the network. Fragment 0 feeds your cursor.
- **Where the rows are**: `PARTITIONED (columns)`: each row on the member that owns the hash of
  these columns (without columns: anywhere, each row once); `REPLICATED`: all rows on every member;
  `SINGLETON`: at the initiator.
- **How they move**: `unicast` by the hash of some columns, `broadcast` to all, `gather` to the
  initiator, `merge` to the initiator in order.
- `rows` is the expected number of rows over all members, `cost` is what this operator and all below
  it cost (cpu plus ten times network, in an abstract unit). The planner took the cheapest plan.
- A `Scan ... where` filters while it reads; a `Hash join` reads its second input into memory and
  streams the first one against it. `Aggregate partial` sums up on each member, before rows travel;
  `Aggregate final` sums up the sums. `Top n` sorts and keeps n rows.

Here the two joins move nothing, because the small maps are everywhere. What travels are the partial
sums of each member, and in the end at most 100 rows from each.

`EXPLAIN VERBOSE` adds the numbers of the columns, orders, and the rules that fired.
`EXPLAIN ANALYZE` runs the query and adds to each operator the actual rows, batches and time, per
member:

```
  Scan item where i_manufact_id = 28  [REPLICATED rows=20 cost=8.6k]
      actual: rows=60 batches=3 time=0.086 ms (1: 20 in 0.070 ms, 2: 20 in 0.071 ms, 3: ...)
```

Many more actual rows than expected ones point at the estimate to distrust; one member with most of
the rows or the time points at skew."""


def explain_page() -> str:
    """The text of docs/sql-explain.md."""
    lines = (TESTS / "data/tpcds/q03.sql").read_text(encoding="utf-8").splitlines()
    query = [line for line in lines if not line.startswith("--")]
    plan = (TESTS / "golden/planner/tpcds/q03.golden").read_text(encoding="utf-8")
    parts = ["# EXPLAIN", "", MADE, "", EXPLAIN_HEAD, "```sql", "EXPLAIN", *query, "```", ""]
    return "\n".join([*parts, "```", plan.rstrip(), "```", "", EXPLAIN_TAIL]) + "\n"
