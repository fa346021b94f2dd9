"""The parts of docs/sql.md about changes with other maps, the session, EXPLAIN, recursion, and
functions that give rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from remuda.plan.functions.set_functions import SET_FUNCTIONS
from remuda.session.settings import SETTINGS

CHANGES: Final = (
    ("UPDATE with other maps; RETURNING may name them, too",
     """UPDATE flights SET delay = 0 FROM airlines a
WHERE a.carrier = flights.carrier AND a.name = 'United' RETURNING id, a.name"""),
    ("DELETE with other maps",
     "DELETE FROM flights f USING airlines a WHERE a.carrier = f.carrier AND a.name IS NULL"),
    ("each row of the source does what the first WHEN that fits says; it must not hit a row twice",
     """MERGE INTO flights f USING (VALUES (1, 'UA', 5), (9, 'AA', NULL)) AS n (id, carrier, delay)
ON f.id = n.id
WHEN MATCHED AND n.delay IS NULL THEN DELETE
WHEN MATCHED THEN UPDATE SET delay = n.delay
WHEN NOT MATCHED THEN INSERT (id, carrier, delay) VALUES (n.id, n.carrier, n.delay)
WHEN NOT MATCHED BY SOURCE AND f.delay > 600 THEN DO NOTHING
RETURNING merge_action(), f.*"""),
    ("the plan: options are ANALYZE, VERBOSE, COSTS, FORMAT TEXT or JSON, each with ON or OFF",
     "EXPLAIN (ANALYZE, COSTS OFF, FORMAT JSON) SELECT count(*) FROM flights"),
    ("rows that a client of PostgreSQL sends; formats are text, csv and binary",
     "COPY flights (id, carrier) FROM STDIN (FORMAT csv, HEADER) WHERE id > 0"),
    ("rows for such a client", "COPY (SELECT * FROM flights) TO STDOUT WITH CSV HEADER"),
    ("statistics of all maps, or of some, are taken at once instead of when they are found stale",
     "ANALYZE flights"),
    ("old versions and indexes are looked after anyway: this is ANALYZE; REINDEX does nothing",
     "VACUUM ANALYZE flights"),
)  # fmt: skip

SESSION: Final = (
    ("a statement under a name; types of parameters may be left out",
     "PREPARE late (integer) AS SELECT id FROM flights WHERE delay > $1"),
    ("arguments are constant expressions", "EXECUTE late(30 + 15)"),
    ("EXECUTE", "EXPLAIN EXECUTE late(30)"),
    ("ALL forgets all of them", "DEALLOCATE late"),
    ("a cursor of the transaction; SCROLL keeps rows that it has passed, WITH HOLD outlives COMMIT",
     "DECLARE c SCROLL CURSOR FOR TABLE flights"),
    ("NEXT, PRIOR, FIRST, LAST, ABSOLUTE n, RELATIVE n, n, ALL, FORWARD or BACKWARD n or ALL",
     "FETCH FORWARD 10 FROM c"),
    ("the same without the rows", "MOVE LAST IN c"),
    ("ALL closes all of them", "CLOSE c"),
    ("for this client, from now on; DEFAULT is the default", "SET statement_timeout = '5 s'"),
    ("SHOW ALL shows every setting", "SHOW statement_timeout"),
    ("RESET ALL resets every setting", "RESET statement_timeout"),
    ("forget settings and prepared statements", "DISCARD ALL"),
)  # fmt: skip

SNAPSHOTS: Final = (
    ("all maps at one moment, while others write", "CREATE SNAPSHOT nightly"),
    ("what the members' logs have since the cut before, if they keep logs",
     "CREATE SNAPSHOT nightly INCREMENT"),
    ("every cut of every snapshot; SHOW SNAPSHOT nightly: the maps in one's cuts",
     "SHOW SNAPSHOTS"),
    ("what is damaged or missing; LEVEL 1 looks at objects, 2 at rows as well, 3 at everything",
     "VERIFY SNAPSHOT nightly LEVEL 2"),
    ("all maps and views together; or PREFIX 'old_' in front of their names",
     "RESTORE SNAPSHOT nightly"),
    ("some maps of an earlier cut under other names; DRY RUN checks, and changes nothing",
     "RESTORE SNAPSHOT nightly CUT 2 MAPS flights AS old_flights, airlines DRY RUN"),
    ("as it was at a moment between cuts",
     "RESTORE SNAPSHOT nightly TO '2024-01-31 12:00:00+00' PREFIX 'old_'"),
    ("give up cuts that nothing from then on needs",
     "EXPIRE SNAPSHOT nightly BEFORE '2024-01-31 12:00:00+00'"),
    ("give up named cuts, or all; CASCADE: and what rests on them",
     "DROP SNAPSHOT IF EXISTS nightly CUT 1, 2 CASCADE"),
)  # fmt: skip

CLUSTER: Final = (
    ("partitions whose every copy is lost begin again without entries: docs/cluster.md",
     "ALTER CLUSTER ACCEPT LOST PARTITIONS"),
    ("a member gives everything away and leaves; back when it has begun to: docs/operate.md",
     "ALTER CLUSTER DRAIN MEMBER 2"),
    ("the cluster works in the version of its members' release from now on: docs/upgrade.md",
     "ALTER CLUSTER FINISH UPGRADE"),
    ("all members forget the sums of sys.statement_statistics: docs/operate.md",
     "ALTER CLUSTER RESET STATEMENT STATISTICS"),
    ("the same as a call; pg_stat_statements_reset() is another name",
     "SELECT statement_statistics_reset()"),
    ("change what a part of the log tells, of all members or of one; DEFAULT takes it back",
     "ALTER CLUSTER SET LOG LEVEL debug FOR 'member.membership' ON MEMBER 2"),
    ("end a statement of anybody, as sys.queries shows it; it fails with 57014",
     "CANCEL QUERY '3ff99f1b-03e7-dab5-0001-9e94b984d7ba'"),
    ("roll an open transaction of anybody back, as sys.transactions shows it, and free its locks",
     "CANCEL TRANSACTION '1:118291735265280000'"),
    ("the same by the numbers of connections; a call is an item of the outermost SELECT",
     """SELECT pid, pg_cancel_backend(pid) FROM pg_stat_activity
WHERE state = 'active' AND query_start < now() - INTERVAL '10 minutes'"""),
    ("end connections, with what is open on them",
     """SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'
AND state_change < now() - INTERVAL '1 hour'"""),
)  # fmt: skip

QUERIES: Final = (
    ("recursion: the second SELECT runs over the rows that came last, until it gives none",
     """WITH RECURSIVE dates (day) AS (
    SELECT DATE '2024-01-01'
    UNION ALL
    SELECT day + 1 FROM dates WHERE day < '2024-01-31'
)
SELECT day FROM dates"""),
    ("functions that give rows, see below", "SELECT n, n * n FROM generate_series(1, 10) AS g (n)"),
    ("they may use what stands to their left",
     """SELECT id, word, place FROM flights, string_to_table(origin, '-') WITH ORDINALITY
AS w (word, place)"""),
    ("and stand in the select list", "SELECT id, unnest(ARRAY[delay, 2 * delay]) FROM flights"),
    ("objects of a JSON array as rows",
     """SELECT * FROM jsonb_to_recordset('[{"a": 1, "b": "x"}, {"a": 2}]')
AS t (a INTEGER, b TEXT)"""),
    ("a query as an array, in its order",
     """SELECT a.name, ARRAY(SELECT delay FROM flights f WHERE f.carrier = a.carrier ORDER BY delay)
FROM airlines a"""),
    ("the joined columns under a name of their own; all fields of a row",
     "SELECT k.carrier, (f).* FROM flights f JOIN airlines a USING (carrier) AS k"),
    ("frames without the current row, its peers (TIES), or both (GROUP)",
     """SELECT id, avg(delay) OVER (
    ORDER BY id ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING EXCLUDE CURRENT ROW)
FROM flights"""),
    ("the rank that a value would have; also dense_rank, percent_rank, cume_dist",
     "SELECT rank(30) WITHIN GROUP (ORDER BY delay DESC) FROM flights"),
    ("the order in which a recursion finds rows: DEPTH or BREADTH FIRST",
     """WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT 2 * n + x FROM r, (VALUES (0), (1)) v (x)
    WHERE n < 4)
SEARCH DEPTH FIRST BY n SET place SELECT n FROM r ORDER BY place"""),
    ("no way goes through a row twice",
     """WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n % 3 + 1 FROM r)
CYCLE n SET again USING path SELECT n, path FROM r WHERE NOT again"""),
    ("a change, and a query over what it gives; both read the state before it",
     """WITH gone AS (DELETE FROM flights WHERE delay > 600 RETURNING carrier)
SELECT carrier, count(*) FROM gone GROUP BY carrier"""),
)  # fmt: skip

RECURSION_NOTE: Final = """\
A recursive CTE has PostgreSQL's form and restrictions. It may use columns of the query around it:
one recursion computes the rows for all values that these columns have, so a LIMIT does not end a
recursion that has no end. All of its rounds read the timestamp of the statement. It may take
100,000 rounds, and its rows count against the memory of the statement. DECIMALs
whose digits would grow with every round become DECIMAL(38,16), quotients have 20 digits after the
point. SEARCH or CYCLE may stand behind the last query of WITH.

A CTE with a volatile function (random(), gen_random_uuid(), clock_timestamp()) is computed once,
however often it is read. WITH may hold one INSERT, UPDATE, DELETE or MERGE, in a SELECT that is the
whole statement: nothing is changed unless the SELECT succeeds, too.

"""

SETTINGS_NOTE: Final = """\
Settings and prepared statements belong to the client, whichever member serves it. A value
that a driver sets when it connects is accepted if Remuda behaves so anyway, and refused with 0A000
if it would change answers. SET LOCAL lasts until the end of the transaction. A rollback also undoes
the changes of SET. `current_setting` and `pg_settings` tell what the client has set.

BEGIN, START TRANSACTION, COMMIT, END, ROLLBACK, ABORT, SAVEPOINT, ROLLBACK TO, RELEASE and SET
TRANSACTION are PostgreSQL's; for levels, conflicts and differences see
[docs/transactions.md](transactions.md).

"""


def session_section() -> Iterable[str]:
    yield SETTINGS_NOTE
    yield "| setting | default | |"
    yield "|---|---|---|"
    for setting in SETTINGS.values():
        fixed = "; cannot be changed" if setting.check is None else ""
        default = f"`{setting.default}`" if setting.default else ""
        yield f"| {setting.name} | {default} | {setting.summary}{fixed} |"
    yield ""


def row_functions_section() -> Iterable[str]:
    yield "## Functions that give rows"
    yield ""
    yield "In FROM, with column aliases and WITH ORDINALITY, alone or several in ROWS FROM (...),"
    yield "or in the select list. They give rows as these are asked for, so a long series takes no"
    yield "memory. Any other function can stand in FROM, too, and gives one row."
    yield ""
    for name in sorted(SET_FUNCTIONS):
        function = SET_FUNCTIONS[name]
        same = "" if function.name == name else f": the same as `{function.name}`"
        yield f"- `{name}`{same or ': ' + function.summary}"
    yield ""
