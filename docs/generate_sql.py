"""Makes docs/sql.md and docs/sql-explain.md from the code.

    ./run test tests/docs/test_sql_page.py --rewrite

Each statement of docs/sql.md is parsed and bound here, each value is computed here, and each
function of the catalog needs an example below: what the page says is what the code does. The plan
of docs/sql-explain.md is a golden file of the planner (rewrite those first).
"""

from __future__ import annotations

import datetime as dt
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from remuda.catalog.edits import PutView
from remuda.catalog.oids import FIRST_OID
from remuda.cli.results.values import show
from remuda.datatypes.arrow import external_type
from remuda.datatypes.schema import MapSchema, Namespace, ViewDefinition
from remuda.datatypes.sql import (
    BIGINT,
    DOUBLE,
    INTEGER,
    REAL,
    EnumType,
    Kind,
    SqlType,
    char,
    decimal,
    varchar,
)
from remuda.datatypes.values import from_physical
from remuda.errors import NotSupported, UnsupportedValue
from remuda.execution.evaluate.compile import evaluate_constant
from remuda.plan.functions.catalog import (
    AGGREGATE_FUNCTIONS,
    ALIASES,
    INTERNAL,
    OPERATORS,
    SCALAR_FUNCTIONS,
    WINDOW_FUNCTIONS,
)
from remuda.plan.functions.datetime_fields import EXTRACT_FIELDS, TRUNC_FIELDS
from remuda.plan.logical import Project
from remuda.sql.binder import bind
from remuda.sql.parsing.parser import parse
from remuda.sql.scope.statements import (
    BoundQuery,
    BoundStatement,
    CatalogStatement,
    CreateMapStatement,
)
from remuda.sql.text.types import TYPE_NAMES, type_from_name

sys.path.insert(0, str(Path(__file__).resolve().parent))
from sql_absent import FURTHER
from sql_definitions import DEFINITIONS, NOTES, VIEW, system_section
from sql_enums import ENUMS
from sql_enums import NOTES as ENUM_NOTES
from sql_examples import DATE_EXAMPLES, NUMBER_EXAMPLES, TEXT_EXAMPLES
from sql_examples import OPERATOR_EXAMPLES as MORE_OPERATORS
from sql_indexes import INDEXES
from sql_indexes import NOTES as INDEX_NOTES
from sql_nested import (
    NESTED_FUNCTIONS,
    NESTED_MORE,
    NESTED_OPERATORS,
    NESTED_TYPES,
    nested_section,
)
from sql_sequences import NOTES as SEQUENCE_NOTES
from sql_sequences import SEQUENCES
from sql_statements import (
    CHANGES,
    CLUSTER,
    RECURSION_NOTE,
    SESSION,
    SNAPSHOTS,
    row_functions_section,
    session_section,
)
from sql_statements import QUERIES as MORE_QUERIES

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
    ("the map and all its entries go", "DROP TABLE [IF EXISTS] airlines"),
    ("rows appear together; a key that exists is refused",
     "INSERT INTO flights (id, carrier) VALUES (1, 'UA'), (2, 'AA')"),
    ("the rows of a query",
     "INSERT INTO flights SELECT id + 100, carrier, origin, delay FROM flights"),
    ("as INSERT, but a key that exists is overwritten",
     "SINK INTO flights VALUES (1, 'UA', 'EWR', 2)"),
    ("INSERT with ON CONFLICT",
     "INSERT INTO flights VALUES (1, 'UA', 'EWR', 2) ON CONFLICT DO NOTHING"),
    ("as in SQLite: INSERT OR REPLACE, INSERT OR IGNORE; as in MySQL: REPLACE",
     "REPLACE INTO flights VALUES (1, 'UA', 'EWR', 2)"),
    ("RETURNING", "INSERT INTO flights VALUES (1, 'UA', 'EWR', 2) RETURNING id"),
    ("UPDATE", "UPDATE flights SET delay = delay + 1 WHERE carrier = 'UA'"),
    ("DELETE", "DELETE FROM flights WHERE delay IS NULL"),
    ("TRUNCATE", "TRUNCATE flights"),
    ("all maps; SHOW MAPS is the same", "SHOW TABLES"),
    ("the columns of a map; SHOW COLUMNS FROM is the same", "DESCRIBE flights"),
    ("the plan of a statement", "EXPLAIN [VERBOSE] SELECT count(*) FROM flights"),
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
    ("subqueries anywhere in an expression: one value, EXISTS, IN, ANY, SOME, ALL",
     """SELECT id, (SELECT name FROM airlines a WHERE a.carrier = f.carrier),
       delay >= ALL (SELECT delay FROM flights x WHERE x.carrier = f.carrier)
FROM flights f
WHERE delay > (SELECT avg(delay) FROM flights) OR carrier IN (SELECT carrier FROM airlines)"""),
    ("rows of values",
     """SELECT id FROM flights
WHERE (carrier, origin) IN (('UA', 'EWR'), ('AA', 'JFK')) AND (delay, id) < (60, 1000)"""),
    ("LATERAL: the worst two delays of each airline",
     """SELECT a.name, w.id, w.delay FROM airlines a
LEFT JOIN LATERAL (
    SELECT id, delay FROM flights f WHERE f.carrier = a.carrier ORDER BY delay DESC, id LIMIT 2
) w ON TRUE"""),
    ("window functions",
     "SELECT id, rank() OVER (PARTITION BY carrier ORDER BY delay) FROM flights"),
    ("DISTINCT; the first row of each group", """SELECT DISTINCT ON (carrier) carrier, id
FROM flights ORDER BY carrier, delay DESC"""),
    ("UNION, INTERSECT, EXCEPT, each with ALL; NULLs are equal there",
     "SELECT carrier FROM flights EXCEPT SELECT carrier FROM airlines ORDER BY carrier"),
    ("ROLLUP, CUBE, GROUPING SETS; GROUPING(a, b) has a bit for each column that is left out",
     """SELECT carrier, origin, GROUPING(carrier, origin), sum(delay)
FROM flights GROUP BY ROLLUP (carrier, origin)"""),
    ("the first rows and all that tie with the last of them",
     "SELECT id FROM flights ORDER BY delay DESC FETCH FIRST 3 ROWS WITH TIES"),
    ("a sample; a seed gives the same rows on any number of members",
     "SELECT * FROM flights TABLESAMPLE BERNOULLI (10) REPEATABLE (42)"),
    ("rows without a map", "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t (n, letter)"),
    ("parameters: ? in order, or $1, $2, ... by number", "SELECT id FROM flights WHERE delay > ?"),
)  # fmt: skip

TYPES: Final = {
    "boolean": ("true, false", "TRUE"),
    "tinyint": ("8 bits", "CAST(1 AS TINYINT)"),
    "smallint": ("16 bits", "CAST(1 AS SMALLINT)"),
    "integer": ("32 bits", "1"),
    "bigint": ("64 bits", "CAST(1 AS BIGINT)"),
    "decimal": ("exact, up to 38 digits", "1.50"),
    "real": ("32 bits, floating", "CAST(1 AS REAL)"),
    "double": ("64 bits, floating", "1e0::float8"),
    "char": (
        "text of at most n characters; blanks at its end mean nothing",
        "CAST('a' AS CHAR(2))",
    ),
    "varchar": ("text; VARCHAR(n): at most n characters", "'a'"),
    "bytea": ("bytes", "x'00ff'"),
    "date": ("a day; also 'today', 'tomorrow', 'yesterday'", "DATE '2024-02-29'"),
    "time": ("microseconds of a day", "TIME '10:30:00'"),
    "timestamp": ("microseconds, without a zone", "TIMESTAMP '2024-02-29 10:30:00'"),
    "timestamptz": ("a moment, in microseconds", "TIMESTAMPTZ '2024-02-29 10:30:00+00'"),
    **NESTED_TYPES,
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
    **MORE_OPERATORS,
    **NESTED_OPERATORS,
}

MORE_EXAMPLES: Final = (
    "2 BETWEEN 1 AND 3",
    "2 IN (1, 2, 3)",
    "CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END",
    "CAST('12' AS INTEGER)",
    "'2024-02-29'::DATE",
    "DATE '2024-01-31' + INTERVAL '1' MONTH",
    *NESTED_MORE,
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
    **TEXT_EXAMPLES,
    **NUMBER_EXAMPLES,
    **DATE_EXAMPLES,
    **NESTED_FUNCTIONS,
    "current_date": ("current_date",),
    "current_timestamp": ("current_timestamp", "now()"),
    "statement_timestamp": ("statement_timestamp()",),
}

AGGREGATE_ARGUMENTS: Final = (INTEGER, BIGINT, decimal(9, 2), REAL, DOUBLE, varchar())


class Catalog:
    """The maps that the statements of the page name."""

    def __init__(self) -> None:
        self.version = 1
        self.namespaces = (Namespace("sales"),)
        self.types = (EnumType("mood", ("sad", "ok", "happy"), oid=FIRST_OID),)
        self._maps: dict[str, MapSchema] = {}
        self._views: dict[str, ViewDefinition] = {}
        for text in MAPS:
            made = self.bound(text)
            assert isinstance(made, CreateMapStatement)
            self._maps[made.schema.name] = made.schema
        view = self.bound(VIEW)
        assert isinstance(view, CatalogStatement)
        self._views = {e.view.name: e.view for e in view.edits if isinstance(e, PutView)}

    def find(self, name: str) -> MapSchema | None:
        return self._maps.get(name)

    def find_view(self, name: str) -> ViewDefinition | None:
        return self._views.get(name)

    def names(self) -> Sequence[str]:
        return list(self._maps)

    def view_names(self) -> Sequence[str]:
        return list(self._views)

    def bound(self, text: str) -> BoundStatement:
        return bind(parse(text), self)


CATALOG: Final = Catalog()
TESTS: Final = Path(__file__).resolve().parents[1] / "tests"
MADE: Final = (
    "<!-- Made by docs/generate_sql.py: ./run test tests/docs/test_sql_page.py --rewrite -->"
)


def page() -> str:
    """The text of docs/sql.md. An AssertionError or a RemudaError names what is not true."""
    parts = (
        _head(), _statements(), _types(), _functions(), _windows(), row_functions_section(),
        system_section(), _absent(),
    )  # fmt: skip
    return "\n".join(line for part in parts for line in part) + "\n"


def _head() -> Iterable[str]:
    yield "# SQL"
    yield ""
    yield MADE
    yield ""
    yield "PostgreSQL's syntax and meaning, for the statements below. Names in quotes keep their"
    yield "case, others are lower case. Integer division truncates, NULLs sort last in ascending"
    yield "order, and text is never turned into a number silently. A statement reads one timestamp"
    yield "of the whole grid. An unsupported form is refused with SQLSTATE 0A000 and its place."
    yield ""


def _statements() -> Iterable[str]:
    yield "## Statements"
    yield ""
    yield "Parts in brackets may be left out. `CREATE MAPPING` and `DROP MAPPING` mean the same as"
    yield "`CREATE TABLE` and `DROP TABLE`."
    yield ""
    yield from _listed((*STATEMENTS, *CHANGES))
    yield "## Definitions"
    yield ""
    yield from _listed(DEFINITIONS)
    yield NOTES
    yield "## Indexes"
    yield ""
    yield from _listed(INDEXES)
    yield INDEX_NOTES
    yield "## Sequences"
    yield ""
    yield from _listed(SEQUENCES)
    yield SEQUENCE_NOTES
    yield "## Enums"
    yield ""
    yield from _listed(ENUMS)
    yield ENUM_NOTES
    yield "## Queries"
    yield ""
    yield from _listed((*QUERIES, *MORE_QUERIES))
    yield RECURSION_NOTE
    yield "## Session"
    yield ""
    yield from _listed(SESSION)
    yield from session_section()
    yield "## The cluster"
    yield ""
    yield from _listed(CLUSTER)
    yield "## Snapshots"
    yield ""
    yield "[Durability](durability.md) says what they do."
    yield ""
    yield from _listed(SNAPSHOTS)


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
    except (NotSupported, UnsupportedValue):
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
    assert {_type(name) for name in TYPES} == set(others), "TYPES and sql/text/types.py disagree"
    for name, (about, literal) in TYPES.items():
        kind = _type(name)
        shown = str(kind).replace("(9,2)", "(p,s)").replace("CHAR(2)", "CHAR(n)")
        _, value = _value(literal)
        also = ", ".join(o.upper() for o in others[kind] if o.upper() != shown.partition("(")[0])
        arrow = str(external_type(kind)).replace("(9, 2)", "(p, s)")
        yield f"| {shown} | {also} | {about} | {arrow} | {type(value).__name__} |"
    yield ""
    yield from nested_section()


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
    yield "`current_date` and `current_timestamp` are those of the beginning of the transaction."
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
    shown = "" if isinstance(value, _Moment) else f"`{_shown(value, bound)}`".replace("|", "\\|")
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
    moments = ("current_", "now", "random", "clock_", "statement_", "setseed", "gen_random")
    if text.startswith(moments):
        return expression.type, _Moment()
    return expression.type, from_physical(evaluate_constant(expression), expression.type)


def _shown(value: object, sql_type: SqlType) -> str:
    if sql_type.kind is Kind.JSON or sql_type.is_nested:
        return "NULL" if value is None else f"'{show(value, sql_type)}'"
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
    yield "Type of the result by the type of the argument. NULLs are skipped; over no rows counts"
    yield "are 0 and the others NULL. All take FILTER (WHERE ...), DISTINCT, and ORDER BY inside,"
    yield "as in `string_agg(DISTINCT x, ',' ORDER BY x)`. Without an ORDER BY of their own,"
    yield "array_agg, string_agg, json_agg and json_object_agg take rows in the order of a sorted"
    yield "subquery, on any number of members. Variances and deviations are DOUBLE PRECISION for"
    yield "all types, computed from exact differences."
    yield ""
    yield "| | " + " | ".join(map(str, AGGREGATE_ARGUMENTS)) + " |"
    yield "|---|" + "---|" * len(AGGREGATE_ARGUMENTS)
    others: list[str] = []
    for name, function in AGGREGATE_FUNCTIONS.items():
        found = [function.resolve((argument,)) for argument in AGGREGATE_ARGUMENTS]
        if function.within_group or not any(found):
            others.append(name)
            continue
        results = ["" if signature is None else str(signature.result) for signature in found]
        yield f"| {name} | " + " | ".join(results) + " |"
    yield ""
    yield "With other arguments:"
    yield ""
    for name in others:
        function = AGGREGATE_FUNCTIONS[name]
        order = " WITHIN GROUP (ORDER BY x)" if function.within_group else ""
        about = f": {function.summary}" if function.summary else ""
        yield f"- `{name}`{order}{about}"
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
- A `Merge join` takes two inputs that come in the order of its keys, and begins at once; a `Lookup
  join` finds the matches of each row by key or by index.
- A `Scan ... where` filters while it reads; a `Hash join` reads its second input into memory and
  streams the first one against it. `Aggregate partial` sums up on each member, before rows travel;
  `Aggregate final` sums up the sums. A `Streaming aggregate` gets its rows in the order of the
  groups (from an index, a window, a sort, a merge): it needs no table of groups, keeps the order,
  and under a `Limit` reads no more than the first groups. `Top n` sorts and keeps n rows.

Here the two joins move nothing, because the small maps are everywhere. Each member sends only
partial sums, and in the end at most 100 rows.

`EXPLAIN VERBOSE` adds the numbers of the columns, orders, and the rules that fired.
`EXPLAIN ANALYZE` runs the query and adds to each operator the actual rows, batches and time, per
member:

```
  Scan item where i_manufact_id = 28  [REPLICATED rows=20 cost=8.6k]
      actual: rows=60 batches=3 time=0.086 ms (1: 20 in 0.070 ms, 2: 20 in 0.071 ms, 3: ...)
```

Many more actual rows than expected ones point at the estimate to distrust; one member with most of
the rows or the time points at skew. Waiting, memory and spilling are shown where they matter; the
[profiles](profiles.md) of the last statements have all of it.

`EXPLAIN (options) statement` takes `ANALYZE`, `VERBOSE`, `COSTS` (on by itself) and `FORMAT`, each
of the first three with `ON` or `OFF`. `FORMAT JSON` gives the same for machines, in one row: a list
of one object with `Fragments`, each with its `Plan`: `Node Type`, `Description`, `Distribution`,
`Output`, `Plan Rows`, `Total Cost`, with ANALYZE also `Actual Rows`, `Actual Batches`,
`Actual Time` (milliseconds) and the same for each of `Members`, and the operators below it in
`Plans`. Its `Plan` is one tree over all fragments for tools that read PostgreSQL's plans, with
`Relation Name`, `Startup Cost` (0: it is not estimated), `Actual Total Time` and `Actual Loops`.

INSERT, UPDATE, DELETE and MERGE show the plan of the query for their rows below a line that names
their way into the map; with ANALYZE they are carried out. A statement that changes one entry whose
key it names says "by the owner of the key, in one step": the owner evaluates it, without the query
(ANALYZE runs the query, for its figures). `EXPLAIN EXECUTE` shows the plan of a
prepared statement. A recursive CTE is read as `Supplied recursive t`; the plans of its two parts
follow below the plan. `Unfold` calls a function that gives rows.
"""


def explain_page() -> str:
    """The text of docs/sql-explain.md."""
    lines = (TESTS / "data/tpcds/q03.sql").read_text(encoding="utf-8").splitlines()
    query = [line for line in lines if not line.startswith("--")]
    plan = (TESTS / "golden/planner/tpcds/q03.golden").read_text(encoding="utf-8")
    parts = ["# EXPLAIN", "", MADE, "", EXPLAIN_HEAD, "```sql", "EXPLAIN", *query, "```", ""]
    return "\n".join([*parts, "```", plan.rstrip(), "```", "", EXPLAIN_TAIL]) + "\n"
