"""Every way by which a value enters a column TIMESTAMP(0) rounds it, and the type is kept over
snapshots, logs and restarts."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import remuda
from remuda import Interval

COLUMNS = """k TIMESTAMP(0) PRIMARY KEY, a TIMESTAMP(3), b TIME(1), c INTERVAL YEAR TO MONTH,
    d TIMESTAMP(0)[], e TIMESTAMP(2) WITH TIME ZONE"""
NAMES = (
    "TIMESTAMP(0)", "TIMESTAMP(3)", "TIME(1)", "INTERVAL YEAR TO MONTH", "TIMESTAMP(0)[]",
    "TIMESTAMP(2) WITH TIME ZONE",
)  # fmt: skip


def at(second: int, micros: int = 0) -> datetime:
    return datetime(2024, 1, 1, 0, 0, second, micros)  # noqa: DTZ001 (TIMESTAMP has no zone)


VALUE = {"a": at(0, 123_600), "b": time(1, 2, 3, 460_000), "d": [at(1, 600_000), None]}
KEPT = (at(0, 124_000), time(1, 2, 3, 500_000), [at(2), None])
TEXT = f"'{VALUE['a']}', '{VALUE['b']}', NULL, '{{2024-01-01 00:00:01.6,NULL}}'"


def key(second: int) -> datetime:
    """Rounded, it is the next second."""
    return at(second, 700_000)


@pytest.mark.cluster
def test_all_ways_into_a_map_round_and_keep_the_type(tmp_path: Path) -> None:
    settings = {"data_dir": str(tmp_path / "data"), "snapshot_store": str(tmp_path / "store")}
    with remuda.start(members=2, settings=settings) as cluster, cluster.connect() as client:
        client.sql(f"CREATE TABLE m ({COLUMNS})")
        client.sql(
            "CREATE TABLE other (k TIMESTAMP PRIMARY KEY, a TIMESTAMP, b TIME, d TIMESTAMP[])"
        )
        m = client.map("m")
        m.put(key(0), VALUE)
        m.put_all({key(1): VALUE})
        m.put_if_absent(key(2), VALUE)
        client.sql(f"INSERT INTO m (k, a, b, c, d) VALUES ('{key(3)}', {TEXT})")
        client.sql("INSERT INTO m (k, a, b, d) VALUES (?, ?, ?, ?)", key(4), *VALUE.values())
        client.sql("INSERT INTO other VALUES (?, ?, ?, ?)", key(5), *VALUE.values())
        client.sql("INSERT INTO m (k, a, b, d) SELECT * FROM other")
        client.sql(f"SINK INTO m (k, a, b, c, d) VALUES ('{key(6)}', {TEXT})")
        m.put(key(7), {"a": None, "b": None})
        client.sql("UPDATE m SET a = ?, b = ?, d = ? WHERE k = ?", *VALUE.values(), at(8))
        with client.transaction() as transaction:
            transaction.map("m").put(key(8), VALUE)
        client.sql(
            "MERGE INTO m USING (SELECT k + INTERVAL '4 s' AS k, a, b, d FROM other) AS o "
            "ON m.k = o.k WHEN NOT MATCHED THEN INSERT (k, a, b, d) VALUES (o.k, o.a, o.b, o.d)"
        )
        table = pa.table({"k": [key(10)], **{name: [value] for name, value in VALUE.items()}})
        m.put_all(table)
        m.put(at(12), {"a": None})
        m.compute(at(12), "a = ?, b = ?, d = ?", *VALUE.values())
        rows = client.sql("SELECT k, a, b, d FROM m ORDER BY k").fetchall()
        assert [tuple(row) for row in rows] == [(at(n + 1), *KEPT) for n in range(12)]
        assert m.get(at(3)).a == KEPT[0]
        assert m.get(key(2)).a == KEPT[0]  # keys are rounded in front of a lookup, too
        client.sql("UPDATE m SET c = ?, e = '2024-01-01 00:00:00.125+00'", Interval(14, 3, 5))
        assert client.sql("SELECT DISTINCT c, EXTRACT(microseconds FROM e) FROM m").fetchall() == [
            (Interval(14, 0, 0), 130_000)
        ]
        text = '{"a": "2024-01-01 00:00:00.1236", "c": "1-2"}'
        found = client.sql("SELECT a, c, b FROM jsonb_populate_record(NULL::m, ?::jsonb)", text)
        assert [tuple(row) for row in found] == [(KEPT[0], Interval(14, 0, 0), None)]
        client.sql("ALTER TABLE m ADD COLUMN late TIME(0) DEFAULT '10:00:00.6'")
        client.sql("ALTER TABLE m ALTER COLUMN a TYPE TIMESTAMP(4)")
        with pytest.raises(remuda.RemudaError, match="some value might not fit"):
            client.sql("ALTER TABLE m ALTER COLUMN a TYPE TIMESTAMP(3)")
        client.sql("CREATE TABLE copied AS SELECT k, a, b, c, d, e, late FROM m")
        client.sql("CREATE VIEW seen AS SELECT k, a, b, c, d, e, late FROM m")
        client.snapshots.create("kept")
        client.snapshots.restore("kept", maps={"m": "restored"})
    with remuda.start(members=2, settings=settings) as cluster, cluster.connect() as client:
        wanted = (NAMES[0], "TIMESTAMP(4)", *NAMES[2:], "TIME(0)")
        for name in ("m", "copied", "restored"):
            found = client.sql(
                "SELECT type FROM sys.columns WHERE map = ? ORDER BY position", name
            ).fetchall()
            assert tuple(t for (t,) in found if t != "BIGINT") == wanted, name
        formats = [
            client.sql(
                "SELECT format_type(atttypid, atttypmod) FROM pg_attribute "
                "WHERE attrelid = ?::regclass AND attnum > 0 ORDER BY attnum", name
            ).fetchall()
            for name in ("m", "seen")
        ]  # fmt: skip
        assert formats[0] == formats[1]
        assert client.sql("SELECT DISTINCT late FROM restored").scalar() == time(10, 0, 1)
        client.map("restored").put(at(30), {"a": at(0, 100_049)})
        assert client.map("restored")[at(30)].a == at(0, 100_000)
        assert timedelta(0) == client.map("m")[at(1)].a - at(0, 124_000)
