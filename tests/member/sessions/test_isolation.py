"""The classic anomalies, session by session, at every level: golden files say what is seen.

``A: statement`` runs in session A; each session has a connection of its own, to a member of its
own. Names after H. Berenson et al., "A Critique of ANSI SQL Isolation Levels" (1995), and A. Adya.
"""

from __future__ import annotations

from typing import Any

import pytest
from transacting import Session

pytestmark = pytest.mark.cluster

LEVELS = ("read committed", "repeatable read", "serializable")
SETUP = """
CREATE TABLE t (id INT PRIMARY KEY, v INT)
CREATE INDEX t_v ON t (v)
INSERT INTO t VALUES (1, 10), (2, 20)
"""
SCRIPTS = {
    "dirty_read": """
A: UPDATE t SET v = 11 WHERE id = 1
B: SELECT v FROM t WHERE id = 1
A: ROLLBACK
B: SELECT v FROM t WHERE id = 1
B: COMMIT
""",
    "dirty_write": """
A: UPDATE t SET v = 11 WHERE id = 1
B: UPDATE t SET v = 12 WHERE id = 1
A: UPDATE t SET v = 21 WHERE id = 2
A: COMMIT
B: UPDATE t SET v = 22 WHERE id = 2
B: COMMIT
C: SELECT * FROM t
""",
    "non_repeatable_read": """
A: SELECT v FROM t WHERE id = 1
B: UPDATE t SET v = 11 WHERE id = 1
B: COMMIT
A: SELECT v FROM t WHERE id = 1
A: COMMIT
""",
    "lost_update": """
A: SELECT v FROM t WHERE id = 1
B: SELECT v FROM t WHERE id = 1
A: UPDATE t SET v = 11 WHERE id = 1
B: UPDATE t SET v = 12 WHERE id = 1
A: COMMIT
B: COMMIT
C: SELECT * FROM t
""",
    "lost_increment": """
A: UPDATE t SET v = v + 1 WHERE id = 1
B: UPDATE t SET v = v + 100 WHERE id = 1
A: COMMIT
B: COMMIT
C: SELECT * FROM t
""",
    "read_skew": """
A: SELECT v FROM t WHERE id = 1
B: UPDATE t SET v = v + 5
B: COMMIT
A: SELECT v FROM t WHERE id = 2
A: COMMIT
""",
    "write_skew": """
A: SELECT sum(v) FROM t
B: SELECT sum(v) FROM t
A: UPDATE t SET v = -5 WHERE id = 1
B: UPDATE t SET v = -5 WHERE id = 2
A: COMMIT
B: COMMIT
C: SELECT * FROM t
""",
    "write_skew_for_update": """
A: SELECT * FROM t WHERE id IN (1, 2) FOR UPDATE
B: SELECT * FROM t WHERE id IN (1, 2) FOR UPDATE
A: UPDATE t SET v = -5 WHERE id = 1
B: UPDATE t SET v = -5 WHERE id = 2
A: COMMIT
B: COMMIT
C: SELECT * FROM t
""",
    "phantom": """
A: SELECT count(*) FROM t WHERE v > 15
B: INSERT INTO t VALUES (3, 30)
B: COMMIT
A: SELECT count(*) FROM t WHERE v > 15
A: COMMIT
""",
    "phantom_write": """
A: SELECT count(*) FROM t WHERE v > 15
B: SELECT count(*) FROM t WHERE v > 15
A: INSERT INTO t VALUES (3, 30)
B: INSERT INTO t VALUES (4, 40)
A: COMMIT
B: COMMIT
C: SELECT * FROM t
""",
    "phantom_elsewhere": """
A: SELECT count(*) FROM t WHERE v > 15
B: INSERT INTO t VALUES (3, 5)
B: COMMIT
A: INSERT INTO t VALUES (4, 40)
A: COMMIT
C: SELECT * FROM t
""",
    "read_only": """
A: SELECT count(*) FROM t
B: UPDATE t SET v = 0
B: COMMIT
A: SELECT sum(v) FROM t
A: COMMIT
""",
    "insert_twice": """
A: INSERT INTO t VALUES (3, 1)
B: INSERT INTO t VALUES (3, 2)
A: COMMIT
B: COMMIT
C: SELECT * FROM t
""",
    "reads_of_others_between_own": """
A: UPDATE t SET v = 11 WHERE id = 1
B: UPDATE t SET v = 21 WHERE id = 2
B: COMMIT
A: UPDATE t SET v = v + 1 WHERE id = 2
A: COMMIT
C: SELECT * FROM t
""",
    "deleted_by_another": """
A: SELECT v FROM t WHERE id = 1
B: DELETE FROM t WHERE id = 1
B: COMMIT
A: UPDATE t SET v = 99 WHERE id = 1
A: COMMIT
C: SELECT * FROM t
""",
    "autocommit_beside": """
A: SELECT v FROM t WHERE id = 1
C: UPDATE t SET v = v + 1 WHERE id = 1
A: UPDATE t SET v = 0 WHERE id = 2
A: COMMIT
C: SELECT * FROM t
""",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_anomalies(in_cluster: Any, golden: Any, name: str) -> None:
    report: list[str] = []

    async def scenario(cluster: Any) -> None:
        admin = Session(await cluster.client())
        for level in LEVELS:
            report.append(f"--- {level}")
            for text in SETUP.strip().splitlines():
                await admin.sql(text)
            names = {line[0] for line in SCRIPTS[name].strip().splitlines()} - {"C"}
            sessions = {n: Session(await cluster.client(1 + (n == "B"))) for n in sorted(names)}
            for session in sessions.values():
                await session.sql(f"BEGIN ISOLATION LEVEL {level}")
            sessions["C"] = admin
            for line in SCRIPTS[name].strip().splitlines():
                who, _, text = line.partition(": ")
                report.append(f"{line}\n    {await sessions[who].told(text)}")
                await cluster.settled()  # or locks of what is committed are met instead
            assert not any(session.transaction for session in sessions.values())
            await admin.sql("DROP TABLE t")
        await cluster.idle()

    in_cluster(scenario, 2)
    golden.check(f"transactions/{name}.golden", "\n".join(report) + "\n")
