"""The parts of docs/sql.md about definitions and about the relations that describe the grid."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Final

from remuda.catalog.system_relations import INFORMATION_SCHEMA, PG_CATALOG, SYS, SYSTEM
from remuda.sql.expressions.functions.system import FUNCTIONS

VIEW: Final = "CREATE VIEW late AS SELECT id, carrier FROM flights WHERE delay > 30"

_FARES: Final = """\
CREATE TABLE fares (id BIGINT PRIMARY KEY, price DECIMAL(9,2) DEFAULT 9.99 CHECK (price > 0),
    at TIMESTAMP WITH TIME ZONE DEFAULT now(), CONSTRAINT known CHECK (id <> 13))"""
_SEATS: Final = """\
CREATE TABLE seats (id BIGINT PRIMARY KEY, line INT, place TEXT,
    code TEXT GENERATED ALWAYS AS (line || place) STORED)"""
_WORST: Final = """\
CREATE [OR REPLACE] VIEW worst (carrier, n) AS
SELECT carrier, count(*) FROM flights GROUP BY carrier"""

DEFINITIONS: Final = (
    ("defaults and conditions: they hold for INSERT, UPDATE, put, and loads alike",
     _FARES),
    ("no two rows with the same values; NULLs differ, unless NULLS NOT DISTINCT says otherwise",
     "CREATE TABLE users (id BIGINT PRIMARY KEY, mail TEXT UNIQUE, a INT, b INT, UNIQUE (a, b))"),
    ("rows of another map that must be there; FOREIGN KEY (...) for several columns",
     "CREATE TABLE meals (id INT, flight BIGINT REFERENCES flights ON DELETE CASCADE)"),
    ("a map without a key: each row gets a number of its own, which * does not show",
     "CREATE TABLE log (at TIMESTAMP, what TEXT)"),
    ("a column that is computed from others of its row, whoever writes it",
     _SEATS),
    ("the columns of another map", "CREATE TABLE more (LIKE flights INCLUDING ALL)"),
    ("a map for the rows of a query; [WITH NO DATA]: without its rows",
     "CREATE TABLE united (PRIMARY KEY (id)) AS SELECT id, delay FROM flights"),
    ("columns come and go; rows that are there get the default",
     "ALTER TABLE flights ADD COLUMN gate TEXT DEFAULT '?', DROP COLUMN IF EXISTS seat"),
    ("RENAME", "ALTER TABLE flights RENAME COLUMN origin TO departure"),
    ("defaults, NOT NULL",
     "ALTER TABLE flights ALTER origin SET DEFAULT 'EWR', ALTER origin SET NOT NULL"),
    ("wider types", "ALTER TABLE flights ALTER delay TYPE BIGINT"),
    ("constraints: the rows that are there are checked",
     "ALTER TABLE flights ADD CONSTRAINT sane CHECK (delay < 5000)"),
    ("UNIQUE, too; DROP CONSTRAINT", "ALTER TABLE flights ADD CONSTRAINT seat UNIQUE (id, delay)"),
    ("lifetimes and limits of entries ([maps](maps.md#options-lifetimes-and-limits))",
     "CREATE TABLE seen (id BIGINT PRIMARY KEY) WITH (ttl = '10 min', max_entries = 100000)"),
    ("the same, changed: for what is written from then on",
     "ALTER TABLE flights SET (max_idle = '1 h', eviction = 'LFU', max_bytes = '1 GB')"),
    ("and set back", "ALTER TABLE flights RESET (max_idle, eviction, max_bytes)"),
    ("views; their text is bound anew in each query",
     _WORST),
    ("CASCADE drops the views that need it", "DROP TABLE flights, airlines CASCADE"),
    ("DROP VIEW", "DROP VIEW [IF EXISTS] late"),
    ("schemas", "CREATE SCHEMA [IF NOT EXISTS] trade"),
    ("its elements: TABLE, VIEW, INDEX, SEQUENCE, GRANT",
     "CREATE SCHEMA trade CREATE TABLE t (a INT) CREATE VIEW v AS SELECT a FROM t"),
    ("RENAME TO and OWNER TO; its maps follow", "ALTER SCHEMA sales RENAME TO trade"),
    ("another schema; views and defaults follow", "ALTER TABLE flights SET SCHEMA sales"),
    ("CASCADE drops what is in it", "DROP SCHEMA [IF EXISTS] sales CASCADE"),
    ("where names without a schema are looked up", "SET search_path = sales, public"),
    ("comments", "COMMENT ON COLUMN flights.delay IS 'minutes'"),
    ("SHOW VIEWS", "SHOW VIEWS"),
    ("the statement that makes it again", "SHOW CREATE TABLE flights"),
)  # fmt: skip

NOTES: Final = """\
`CREATE TEMPORARY TABLE name (...) [ON COMMIT PRESERVE ROWS | DELETE ROWS | DROP]`, also with AS, is
for clients of the PostgreSQL port, whose sessions stay on one member. Such a table hides an
ordinary one of its name (`pg_temp.name` and `public.name` tell them apart), obeys BEGIN, ROLLBACK
and savepoints, and ends with DROP TABLE, DISCARD or the connection. It may have all that an
ordinary table has: ALTER TABLE, CREATE INDEX and COMMENT take it, also within a transaction. There
are CREATE TEMPORARY SEQUENCE and CREATE [OR REPLACE] TEMPORARY VIEW, and a view that reads a
temporary relation is temporary itself. `SELECT ... INTO [TEMPORARY] name FROM ...` is CREATE TABLE
AS in other words. PostgreSQL's catalog lists temporary relations to their own session, in a schema
such as `pg_temp_3`. The tables of a session have at most `temporary_memory` bytes (53200,
[decision 0090](decisions/0090-temporary-tables.md)).
UNLOGGED is read and means nothing: all tables are as durable as the cluster is.
Members compute generated columns, also for put, loads and jobs, whatever these give for them; SQL
statements may give DEFAULT only (428C9). Their expressions are over other columns of the row, and
immutable (42P17). They cannot be part of the key (0A000), because clients find a row by its key.
ADD COLUMN and `ALTER COLUMN c SET EXPRESSION AS (...)` compute the rows that are there in one
atomic UPDATE. `DROP EXPRESSION` keeps the values.
The full name of a map in a schema, `sales.orders`, is the name by which clients, roles, snapshots
and `sys` know it; maps in `public` have their own names there. A name without a schema means the
first map, view or system relation along `search_path`, with `pg_catalog` first unless the path
names it. Views and defaults keep the meaning that their names had when they were made. Names of
indexes are unique in a schema. Nobody owns anything: AUTHORIZATION and OWNER TO are read and change
nothing, as are PostgreSQL's storage parameters (`fillfactor`, `autovacuum_...`), USING heap and
TABLESPACE pg_default.

An added PRIMARY KEY is a unique index over NOT NULL columns, with the catalog entries of a primary
key. Entries stay where the hidden numbers of their rows put them: `get` and `put` take these
numbers.

ALTER TABLE touches no row: older rows are read in the new form. It is atomic on all members; a
query that has begun goes on with the schema that it began with or fails with SchemaChanged, and
clients take the new schema over by themselves. A type can be changed to one that holds every value
of the old one. While a view exists, the maps and columns that it uses cannot be dropped, renamed or
changed (2BP01). CREATE TABLE AS makes the map first and fills it then, all rows at once; if that
fails, it drops the map again.

UNIQUE holds for every writer, on every member: INSERT, UPDATE, MERGE, ON CONFLICT (which may
name the columns or the constraint), put and put_all, computed changes, transactions of every kind
(at the statement; for put at the commit), and loads in bulk (`begin_job`, Spark), which look at
their commit. 23505 names the constraint and the values
([decision 0041](decisions/0041-unique-values-by-guards.md),
[0085](decisions/0085-bulk-writes-compare-unique-values.md)).

Foreign keys hold for every writer and at every isolation level, also while members fail: a row of
the child names a row of the parent, by its primary key or by columns that are UNIQUE there. Both
columns have one type; integers of any width compare, and so do texts. Each statement checks its
rows, put and remove do at the commit, with PostgreSQL's 23503; a delete of a parent beside a new
child may be 40001. A DEFERRABLE one is checked by the commit if it is INITIALLY DEFERRED or SET
CONSTRAINTS says so. MATCH FULL, NOT VALID and VALIDATE CONSTRAINT are as in PostgreSQL. ON DELETE
and ON UPDATE take NO ACTION, RESTRICT, CASCADE, SET NULL and SET DEFAULT; rows that follow count as
written by the transaction, and a default of SET DEFAULT takes no numbers of sequences. An index on
the columns of the child makes deletes of parents fast. Maps with ttl, max_idle or eviction cannot
be parents, and neither side can be REPLICATED, temporary or with async_backups (0A000). Bulk writes
into a child (jobs, Spark, COPY, statements and put_all of more than 512 rows) look for all parents
before they commit. Bulk writes remove no rows of a parent, and write neither to one with UNIQUE
columns nor to a map that references itself (0A000): there COPY and INSERT are transactions of at
most `transaction_memory`. A restore takes a child with its parents only
([decision 0108](decisions/0108-foreign-keys.md)).
"""


def system_section() -> Iterable[str]:
    yield "## Relations about the grid"
    yield ""
    text = (
        f"`{SYS}` tells what the grid has and does: live data is asked from every member when the "
        f"statement starts. `{INFORMATION_SCHEMA}` and `{PG_CATALOG}` are what tools of PostgreSQL "
        f"ask; `{PG_CATALOG}` is on the search path. Maps and views are in the schema `public`."
    )
    yield from textwrap.wrap(text, 99)
    yield ""
    text = (
        f"`{PG_CATALOG}` has the relations of PostgreSQL 15 with its columns; relations of objects "
        "that the grid does not have (triggers, roles of PostgreSQL) are empty, and "
        f"`{SYS}` is not listed there. `regclass`, `regtype`, `regproc`, `regnamespace`, `regrole` "
        "and `oid` are types of CAST: a value is a number, and its text is the name of the object. "
        "`set_config(name, value, local)`, `pg_sleep(seconds)`, `pg_notify(channel, payload)`, and "
        "`pg_advisory_lock(key)` with its family are items of the outermost SELECT list: they act "
        "once for each row, when all rows of the query are there."
    )
    yield from textwrap.wrap(text, 99)
    yield ""
    yield "| relation | columns |"
    yield "|---|---|"
    for name, relation in SYSTEM[SYS].items():
        yield f"| {SYS}.{name} | {', '.join(column.name for column in relation.columns)} |"
    yield ""
    for schema in (INFORMATION_SCHEMA, PG_CATALOG):
        yield from textwrap.wrap(f"`{schema}`: {', '.join(SYSTEM[schema])}.", 99)
        yield ""
    names = ", ".join(sorted(FUNCTIONS))
    yield from textwrap.wrap(f"Functions: {names}, and casts to regclass and regtype.", 99)
    yield ""
