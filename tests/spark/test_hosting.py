"""Members inside Spark: one in the session that all tests share, three in clusters of their own
(long), and what is told when it cannot work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from standalone_cluster import standalone_cluster

pytest.importorskip("pyspark")

from remuda.config import INSECURE_WORDS
from remuda.errors import (
    InputError,
    MemberUnavailable,
    NotSupported,
    RemudaError,
    ResourceError,
)
from remuda.spark.hosting import start as hosting
from remuda.spark.hosting.checks import size_in_bytes
from remuda.spark.hosting.start import start_cluster

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

RUN = Path(__file__).parent / "hosting_run.py"
PATIENCE = 120.0


def test_a_member_in_a_task_lives_as_long_as_its_cluster(spark: Any) -> None:
    with start_cluster(
        spark, members=1, backups=0, memory="256m", replacements=2, timeout=250
    ) as cluster:
        with cluster.connect() as client:
            client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
            client.sql("INSERT INTO t VALUES (7)")
            assert [row.id for row in client.sql("SELECT id FROM t").fetchall()] == [7]
            limit = client.sql("SELECT setting FROM sys.settings WHERE name = 'member_memory'")
            assert [row.setting for row in limit.fetchall()] == [str(256 * 1024 * 1024)]
        assert spark.range(10).count() == 10, "other jobs run beside it"
        assert "serving" in cluster.logs()[0]
        (member,) = cluster.members
        assert cluster.addresses == (member.user,) == (cluster.address,)
        os.kill(member.pid, signal.SIGKILL)
        with pytest.raises(MemberUnavailable, match=r"the last member is lost .*SIGKILL") as lost:
            while True:  # until the driver has heard of it
                cluster.check()
                time.sleep(0.01)
        assert "serving" in lost.value.detail
        assert cluster.members == ()
    with pytest.raises(MemberUnavailable, match="was stopped"):
        cluster.connect()
    cluster.stop()


@pytest.mark.soak
def test_a_member_that_cannot_start_says_why(spark: Any) -> None:
    with pytest.raises(MemberUnavailable, match="does not start") as refused:
        start_cluster(
            spark,
            members=1,
            replacements=2,
            timeout=250,
            settings={"secret_file": "/nonexistent/secret"},
        )
    assert "/nonexistent/secret" in str(refused.value)


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"members": 0}, InputError, "1 to "),
        ({"members": "3"}, InputError, "not '3'"),
        ({"members": 2}, ResourceError, "2 task slots, .* of them busy: 2 members need 2, and 1"),
        ({"members": 3, "spare_slots": 0}, ResourceError, "3 members need 3"),
        ({"members": 1, "replacements": 3}, InputError, r"local\[2,3\]"),
        ({"members": 1, "spare_slots": -1}, InputError, "spare_slots"),
        ({"members": 1, "timeout": 0}, InputError, "timeout"),
        ({"members": 1, "memory": "much"}, InputError, "memory must be a number of bytes"),
        ({"members": 1, "settings": {"join": "h:1"}}, InputError, "join has no place here"),
        ({"members": 1, "settings": {"nonsense": 1}}, InputError, "nonsense"),
        ({"members": 1, "backups": 9}, InputError, "backups must be"),
        ({"members": 1, "host": "0.0.0.0"}, InputError, "needs protection"),
        ({"members": 1, "rendezvous_host": "192.0.2.1"}, InputError, "needs protection"),
        (
            {
                "members": 1,
                "rendezvous_host": "192.0.2.1",
                "settings": {"insecure": INSECURE_WORDS},
            },
            InputError,
            "the driver cannot listen",
        ),
        (
            {"members": 1, "settings": {"tls_certificate": "no.pem", "tls_ca": "no.pem"}},
            InputError,
            "no.pem cannot be read",
        ),
    ],
)
def test_what_cannot_work_is_told_before_a_task_runs(
    spark: Any, options: dict[str, Any], kind: type[RemudaError], text: str
) -> None:
    with pytest.raises(kind, match=text):
        start_cluster(spark, **{"replacements": 2, **options})


def test_connect_sessions_are_refused() -> None:
    pretender = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(NotSupported, match="classic"):
        start_cluster(pretender)
    with pytest.raises(InputError, match="needs a SparkSession, not str"):
        start_cluster("local[2]")


def test_a_stopped_context_is_refused(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark.sparkContext, "_jsc", None)
    with pytest.raises(InputError, match="SparkContext is stopped"):
        start_cluster(spark, members=1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "Traceback (most recent):\nModuleNotFoundError: No module named 'remuda'\n\n\tat org",
            "the executors lack the Python package remuda",
        ),
        (
            "PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version",
            "the executors run another version of Python than the driver",
        ),
        ("java.io.IOException: No space left", "the tasks that host members fail on the executors"),
    ],
)
def test_why_tasks_fail_on_executors(text: str, told: str) -> None:
    assert hosting._unfit(text).message == told


@pytest.mark.parametrize(
    ("given", "size"), [(5, 5), ("4g", 4 << 30), ("512 MiB", 512 << 20), ("1.5k", 1536)]
)
def test_sizes(given: int | str, size: int) -> None:
    assert size_in_bytes(given, "memory") == size


# --- whole clusters -----------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("victim", ["member", "executor"])
def test_on_a_local_cluster(tmp_path: Path, victim: str) -> None:
    check(run(tmp_path, "local-cluster[3,1,1024]", victim))


@pytest.mark.soak
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("when", ["arriving", "joining"])
def test_an_executor_is_lost_while_members_find_each_other(tmp_path: Path, when: str) -> None:
    seen = run(tmp_path, "local-cluster[3,1,1024]", f"executor-{when}")
    assert seen == {"rows": 5_000, "killed": 1, "left": 0}


@pytest.mark.soak
@pytest.mark.timeout(1000)
def test_on_a_standalone_cluster(tmp_path: Path, standalone: str) -> None:
    check(run(tmp_path, standalone, "executor"))


def check(seen: dict[str, Any]) -> None:
    rows = 5_000
    assert seen["rows"] == [rows, sum(i * i for i in range(rows))], "nothing is lost"
    assert seen["lost"] == [1]
    assert seen["kept"] == [0, 2], "the others have stayed"
    assert seen["logs"] == [0, 1, 2]
    assert seen["left"] == 0, "no member outlives the cluster"


def run(place: Path, master: str, victim: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(RUN), master, victim],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env=os.environ | {"SPARK_WORKER_DIR": str(place)},
    )
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[str]:
    """The address of a master with three workers of one core each."""
    with standalone_cluster(tmp_path, ("127.0.0.1",) * 3) as address:
        yield address
