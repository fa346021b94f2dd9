r"""How each statement is written: its purpose, its syntax, and an example, for ``\h``.

Parts in brackets may be left out, ``|`` separates alternatives, and ``...`` repeats the part before
it. Tests parse the examples.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class StatementText:
    """One statement. ``name``: its first words, in capitals."""

    name: str
    about: str
    syntax: str
    example: str


_BLOCK: Final = re.compile(r"^### ([A-Z ]+): (.+)\n((?:(?!###).*\n)*?)>>> (.*)$", re.MULTILINE)
_TEXTS: Final = """
### ALTER INDEX: rename an index, or its schema
ALTER INDEX [IF EXISTS] name RENAME TO new_name
>>> ALTER INDEX by_delay RENAME TO by_lateness

### ALTER SCHEMA: rename a schema
ALTER SCHEMA name RENAME TO new_name
>>> ALTER SCHEMA sales RENAME TO trade

### ALTER SEQUENCE: change a sequence
ALTER SEQUENCE [IF EXISTS] name [AS type] [INCREMENT [BY] n]
    [MINVALUE n | NO MINVALUE] [MAXVALUE n | NO MAXVALUE] [START [WITH] n]
    [RESTART [[WITH] n]] [CACHE n] [[NO] CYCLE] [OWNED BY table.column | NONE]
ALTER SEQUENCE [IF EXISTS] name RENAME TO new_name
>>> ALTER SEQUENCE numbers RESTART WITH 100

### ALTER TABLE: change a map: columns, constraints, options, names
ALTER TABLE [IF EXISTS] name action [, ...]
ALTER TABLE [IF EXISTS] name RENAME TO new_name
ALTER TABLE [IF EXISTS] name RENAME [COLUMN] column TO new_name
ALTER TABLE [IF EXISTS] name SET SCHEMA schema

where action is one of:

    ADD [COLUMN] [IF NOT EXISTS] column type [constraint ...]
    DROP [COLUMN] [IF EXISTS] column [RESTRICT | CASCADE]
    ALTER [COLUMN] column TYPE type
    ALTER [COLUMN] column SET DEFAULT expression | DROP DEFAULT
    ALTER [COLUMN] column SET NOT NULL | DROP NOT NULL
    ALTER [COLUMN] column ADD GENERATED {ALWAYS | BY DEFAULT} AS IDENTITY [(...)]
    ALTER [COLUMN] column DROP IDENTITY [IF EXISTS]
    ADD [CONSTRAINT name] table_constraint
    DROP CONSTRAINT [IF EXISTS] name [RESTRICT | CASCADE]
    SET (option = value [, ...])
    RESET (option [, ...])
>>> ALTER TABLE flights ADD COLUMN gate TEXT DEFAULT '?', DROP COLUMN IF EXISTS seat

### ALTER TYPE: add a value to an enum, or rename it
ALTER TYPE name ADD VALUE [IF NOT EXISTS] 'value' [{BEFORE | AFTER} 'other']
ALTER TYPE name RENAME TO new_name
ALTER TYPE name SET SCHEMA schema
>>> ALTER TYPE mood ADD VALUE 'meh' BEFORE 'ok'

### ANALYZE: take statistics of maps at once
ANALYZE [VERBOSE] [name [, ...]]
>>> ANALYZE flights

### BEGIN: begin a transaction
BEGIN [WORK | TRANSACTION] [mode [, ...]]

where mode is one of:

    ISOLATION LEVEL {SERIALIZABLE | REPEATABLE READ | READ COMMITTED}
    READ WRITE | READ ONLY
    [NOT] DEFERRABLE
>>> BEGIN ISOLATION LEVEL READ COMMITTED

### CANCEL: end a statement or a transaction of any client
CANCEL QUERY 'id'
CANCEL TRANSACTION 'id'
>>> CANCEL QUERY '3ff99f1b-03e7-dab5-0001-9e94b984d7ba'

### CLOSE: close a cursor
CLOSE {name | ALL}
>>> CLOSE c

### COMMENT: describe an object, or take its description away
COMMENT ON {TABLE | VIEW | INDEX | SCHEMA | SEQUENCE | TYPE} name IS {'text' | NULL}
COMMENT ON COLUMN table.column IS {'text' | NULL}
>>> COMMENT ON COLUMN flights.delay IS 'minutes'

### COMMIT: commit the transaction
COMMIT [WORK | TRANSACTION]
>>> COMMIT

### COPY: copy rows between a map and the client's data
COPY table [(column [, ...])] FROM STDIN [[WITH] (option [, ...])] [WHERE condition]
COPY {table [(column [, ...])] | (query)} TO STDOUT [[WITH] (option [, ...])]

where option is one of:

    FORMAT {text | csv | binary}
    DELIMITER 'character' | NULL 'text' | HEADER [on | off | match]
    QUOTE 'character' | ESCAPE 'character' | ENCODING 'UTF8'
    FORCE_QUOTE {(column [, ...]) | *} | FORCE_NULL (column [, ...])
>>> COPY flights (id, carrier) FROM STDIN (FORMAT csv, HEADER)

### CREATE INDEX: create an index
CREATE [UNIQUE] INDEX [IF NOT EXISTS] name ON table [USING {sorted | hash | bitmap}]
    (column [ASC | DESC] [, ...]) [NULLS [NOT] DISTINCT]
>>> CREATE INDEX by_carrier ON flights USING sorted (carrier, delay DESC)

### CREATE SCHEMA: create a schema
CREATE SCHEMA [IF NOT EXISTS] name
>>> CREATE SCHEMA IF NOT EXISTS trade

### CREATE SEQUENCE: create a sequence
CREATE SEQUENCE [IF NOT EXISTS] name [AS {smallint | integer | bigint}]
    [INCREMENT [BY] n] [MINVALUE n | NO MINVALUE] [MAXVALUE n | NO MAXVALUE]
    [START [WITH] n] [CACHE n] [[NO] CYCLE] [OWNED BY table.column | NONE]
>>> CREATE SEQUENCE numbers START WITH 5 CACHE 10

### CREATE SNAPSHOT: store the whole grid, or the changes since the last time
CREATE SNAPSHOT name [INCREMENT]
>>> CREATE SNAPSHOT nightly INCREMENT

### CREATE TABLE: create a map
CREATE [TEMPORARY] TABLE [IF NOT EXISTS] name (
    {column type [column_constraint ...] | table_constraint | LIKE table} [, ...]
) [WITH (option = value [, ...])]

where column_constraint is one of:

    NOT NULL | NULL | DEFAULT expression | CHECK (condition)
    PRIMARY KEY | UNIQUE [NULLS [NOT] DISTINCT] | REFERENCES table [(column)]
    GENERATED ALWAYS AS (expression) STORED
    GENERATED {ALWAYS | BY DEFAULT} AS IDENTITY [(sequence_options)]

table_constraint is one of:

    [CONSTRAINT name] CHECK (condition)
    [CONSTRAINT name] {PRIMARY KEY | UNIQUE} (column [, ...])
    [CONSTRAINT name] FOREIGN KEY (column [, ...]) REFERENCES table [(column [, ...])]
        [ON DELETE {NO ACTION | RESTRICT}] [ON UPDATE {NO ACTION | RESTRICT}]

and option is one of:

    partition_by = 'column, ...' | replicated = true
    ttl | max_idle | max_entries | max_bytes | eviction | change_retention
>>> CREATE TABLE items (o BIGINT, n INTEGER, PRIMARY KEY (o, n)) WITH (partition_by = 'o')

### CREATE TABLE AS: create a map for the rows of a query
CREATE [TEMPORARY] TABLE [IF NOT EXISTS] name [(column [, ...] | PRIMARY KEY (...))]
    AS query [WITH [NO] DATA]
>>> CREATE TABLE united (PRIMARY KEY (id)) AS SELECT id, delay FROM flights

### CREATE TYPE: create an enum
CREATE TYPE name AS ENUM ('value' [, ...])
>>> CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')

### CREATE VIEW: create a view
CREATE [OR REPLACE] [TEMPORARY] VIEW name [(column [, ...])] AS query
>>> CREATE VIEW late AS SELECT * FROM flights WHERE delay > 30

### DEALLOCATE: forget a prepared statement
DEALLOCATE [PREPARE] {name | ALL}
>>> DEALLOCATE late

### DECLARE: open a cursor
DECLARE name [[NO] SCROLL] CURSOR [{WITH | WITHOUT} HOLD] FOR query
>>> DECLARE c SCROLL CURSOR FOR TABLE flights

### DELETE: remove rows
[WITH name AS (query) [, ...]]
DELETE FROM table [[AS] alias] [USING from_item [, ...]] [WHERE condition]
    [RETURNING {* | expression [[AS] name]} [, ...]]
>>> DELETE FROM flights WHERE delay IS NULL RETURNING id

### DESCRIBE: list the columns of a map
DESCRIBE name
>>> DESCRIBE flights

### DISCARD: forget what the session has
DISCARD {ALL | PLANS | TEMP}
>>> DISCARD ALL

### DROP INDEX: remove an index
DROP INDEX [IF EXISTS] name [, ...] [RESTRICT | CASCADE]
>>> DROP INDEX IF EXISTS by_delay

### DROP SCHEMA: remove a schema
DROP SCHEMA [IF EXISTS] name [, ...] [RESTRICT | CASCADE]
>>> DROP SCHEMA trade CASCADE

### DROP SEQUENCE: remove a sequence
DROP SEQUENCE [IF EXISTS] name [, ...] [RESTRICT | CASCADE]
>>> DROP SEQUENCE numbers

### DROP SNAPSHOT: remove a snapshot from its store
DROP SNAPSHOT name
>>> DROP SNAPSHOT nightly

### DROP TABLE: remove a map with all its entries
DROP TABLE [IF EXISTS] name [, ...] [RESTRICT | CASCADE]
>>> DROP TABLE IF EXISTS flights CASCADE

### DROP TYPE: remove an enum
DROP TYPE [IF EXISTS] name [RESTRICT | CASCADE]
>>> DROP TYPE mood

### DROP VIEW: remove a view
DROP VIEW [IF EXISTS] name [, ...] [RESTRICT | CASCADE]
>>> DROP VIEW late

### END: commit the transaction
END [WORK | TRANSACTION]
>>> END

### EXECUTE: run a prepared statement
EXECUTE name [(value [, ...])]
>>> EXECUTE late(30)

### EXPLAIN: show the plan of a statement
EXPLAIN [ANALYZE] [VERBOSE] statement
EXPLAIN (option [, ...]) statement

where option is one of:

    ANALYZE [on | off] | VERBOSE [on | off] | COSTS [on | off]
    FORMAT {TEXT | JSON}
>>> EXPLAIN (ANALYZE, COSTS OFF) SELECT count(*) FROM flights

### FETCH: read rows of a cursor
FETCH [direction] [FROM | IN] name

where direction is one of:

    NEXT | PRIOR | FIRST | LAST | ABSOLUTE n | RELATIVE n | n | ALL
    FORWARD [n | ALL] | BACKWARD [n | ALL]
>>> FETCH FORWARD 10 FROM c

### INSERT: write new rows
[WITH name AS (query) [, ...]]
INSERT INTO table [AS alias] [(column [, ...])]
    [OVERRIDING {SYSTEM | USER} VALUE]
    {DEFAULT VALUES | VALUES (value [, ...]) [, ...] | query}
    [ON CONFLICT [(column [, ...]) | ON CONSTRAINT name]
        {DO NOTHING | DO UPDATE SET column = value [, ...] [WHERE condition]}]
    [RETURNING {* | expression [[AS] name]} [, ...]]
>>> INSERT INTO flights (id, carrier) VALUES (1, 'UA') ON CONFLICT DO NOTHING

### LISTEN: receive notifications of a channel
LISTEN channel
>>> LISTEN news

### LOCK: lock a map until the end of the transaction
LOCK [TABLE] name [, ...] [IN mode MODE] [NOWAIT]
>>> LOCK TABLE flights IN EXCLUSIVE MODE

### MERGE: insert, update and delete rows by those of another relation
[WITH name AS (query) [, ...]]
MERGE INTO table [[AS] alias] USING source ON condition
    {WHEN MATCHED [AND condition]
        THEN {UPDATE SET column = value [, ...] | DELETE | DO NOTHING}
    | WHEN NOT MATCHED [BY SOURCE] [AND condition]
        THEN {INSERT [(column [, ...])] VALUES (value [, ...]) | DO NOTHING}} ...
    [RETURNING ...]
>>> MERGE INTO flights f USING news n ON f.id = n.id WHEN MATCHED THEN DELETE

### MOVE: move a cursor
MOVE [direction] [FROM | IN] name
>>> MOVE LAST IN c

### NOTIFY: send a notification
NOTIFY channel [, 'text']
>>> NOTIFY news, 'it rains'

### PREPARE: plan a statement once, to run it many times
PREPARE name [(type [, ...])] AS statement
>>> PREPARE late (integer) AS SELECT id FROM flights WHERE delay > $1

### REINDEX: does nothing: indexes need no care
REINDEX {INDEX | TABLE | SCHEMA} name
>>> REINDEX TABLE flights

### RELEASE SAVEPOINT: forget a savepoint
RELEASE [SAVEPOINT] name
>>> RELEASE s

### RESET: set a setting to its default
RESET {name | ALL}
>>> RESET statement_timeout

### RESTORE SNAPSHOT: read maps from a snapshot
RESTORE SNAPSHOT name [CUT n | TO 'moment'] [MAPS map [AS new_name] [, ...]]
    [PREFIX 'text'] [DRY RUN]
>>> RESTORE SNAPSHOT nightly CUT 2 MAPS flights AS old_flights DRY RUN

### ROLLBACK: undo the transaction, or what was done since a savepoint
ROLLBACK [WORK | TRANSACTION] [TO [SAVEPOINT] name]
>>> ROLLBACK TO SAVEPOINT s

### SAVEPOINT: a point to return to within a transaction
SAVEPOINT name
>>> SAVEPOINT s

### SELECT: read rows
[WITH [RECURSIVE] name [(column [, ...])] AS (query) [, ...]]
SELECT [ALL | DISTINCT [ON (expression [, ...])]]
    {* | expression [[AS] name]} [, ...]
    [FROM from_item [, ...]]
    [WHERE condition]
    [GROUP BY {expression | ROLLUP (...) | CUBE (...) | GROUPING SETS (...)} [, ...]]
    [HAVING condition]
    [WINDOW name AS (window) [, ...]]
    [{UNION | INTERSECT | EXCEPT} [ALL | DISTINCT] query]
    [ORDER BY expression [ASC | DESC] [NULLS {FIRST | LAST}] [, ...]]
    [LIMIT {n | ALL}] [OFFSET n] [FETCH {FIRST | NEXT} n ROWS {ONLY | WITH TIES}]
    [FOR {UPDATE | SHARE} [OF table [, ...]] [NOWAIT | SKIP LOCKED]]

where from_item is one of:

    table [[AS] alias] [TABLESAMPLE method (percent) [REPEATABLE (seed)]]
    [LATERAL] (query) [AS] alias [(column [, ...])]
    [LATERAL] function(...) [WITH ORDINALITY] [[AS] alias]
    from_item [NATURAL] [INNER | {LEFT | RIGHT | FULL} [OUTER] | CROSS] JOIN from_item
        [ON condition | USING (column [, ...])]
>>> SELECT carrier, count(*) FROM flights GROUP BY carrier ORDER BY 2 DESC LIMIT 10

### SET: change a setting of the session or the transaction
SET [SESSION | LOCAL] name {= | TO} {value | DEFAULT}
SET [SESSION | LOCAL] TIME ZONE value
>>> SET statement_timeout = '5 s'

### SET TRANSACTION: choose the mode of the transaction
SET TRANSACTION mode [, ...]
>>> SET TRANSACTION ISOLATION LEVEL REPEATABLE READ

### SHOW: show settings, maps, views, indexes or snapshots
SHOW {setting | ALL}
SHOW {TABLES | MAPS | VIEWS | SNAPSHOTS | SNAPSHOT name}
SHOW COLUMNS FROM map
SHOW INDEXES [FROM map]
SHOW CREATE {TABLE | VIEW} name
>>> SHOW CREATE TABLE flights

### SINK: write rows; an entry with the same key is overwritten
SINK INTO table [(column [, ...])] {VALUES (value [, ...]) [, ...] | query}
>>> SINK INTO flights VALUES (1, 'UA', 'EWR', 2)

### START TRANSACTION: begin a transaction
START TRANSACTION [mode [, ...]]
>>> START TRANSACTION READ ONLY

### TABLE: read all rows of a map
TABLE name
>>> TABLE flights

### TRUNCATE: remove all rows
TRUNCATE [TABLE] name [, ...] [RESTART IDENTITY | CONTINUE IDENTITY]
    [RESTRICT | CASCADE]
>>> TRUNCATE flights

### UNLISTEN: receive no more notifications
UNLISTEN {channel | *}
>>> UNLISTEN *

### UPDATE: change rows
[WITH name AS (query) [, ...]]
UPDATE table [[AS] alias] SET {column = value | (column, ...) = (value, ...)} [, ...]
    [FROM from_item [, ...]] [WHERE condition]
    [RETURNING {* | expression [[AS] name]} [, ...]]
>>> UPDATE flights SET delay = delay + 1 WHERE carrier = 'UA'

### VACUUM: take statistics, as ANALYZE
VACUUM [ANALYZE] [name [, ...]]
>>> VACUUM flights

### VALUES: rows of values
VALUES (expression [, ...]) [, ...] [ORDER BY ...] [LIMIT ...] [OFFSET ...]
>>> VALUES (1, 'one'), (2, 'two')

### VERIFY SNAPSHOT: compare a snapshot with its checksums
VERIFY SNAPSHOT name [LEVEL n]
>>> VERIFY SNAPSHOT nightly LEVEL 2
"""

STATEMENTS: Final = tuple(
    StatementText(name, about, syntax.rstrip("\n"), example)
    for name, about, syntax, example in _BLOCK.findall(_TEXTS)
)
