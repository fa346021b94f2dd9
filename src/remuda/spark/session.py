"""A Spark session that is ready for Remuda: Java found, workers on this Python, filters pushed."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from remuda.errors import ResourceError
from remuda.spark.java import use_java

__all__ = ["SOURCE_SETTINGS", "SparkNotStarted", "SparkSession", "default_master", "session"]

_STANDALONE: Final = "spark://"
MASTER_TIMEOUT: Final = 10.0
"""Seconds for a master of a standalone cluster to take a connection."""
_NO_GATEWAY: Final = "JAVA_GATEWAY_EXITED"
ERROR_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""They print each error that is raised as JSON, with the stacks of Python and of Java."""
_EXCEPTION: Final = re.compile(r"^.*?((?:\w+\.)+\w*(?:Exception|Error): .+)$", re.MULTILINE)


class SparkNotStarted(ResourceError):
    """Spark itself does not start: a wrong or unreachable master, wrong settings."""

    sqlstate = "58000"


DEFAULT_MASTER: Final = "local[*,3]"
"""All cores of this machine; a task may fail twice before its job fails."""

SOURCE_SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.timeType.enabled": "true",
}
"""Settings of the data source: filters may be pushed to it, and maps may have TIME columns."""

SAFE_PATH: Final = "PYTHONSAFEPATH"
"""Without it, Spark's workers import from the folder in which the driver was started: a file csv.py
there would run in each of them in place of Python's own module."""

SETTINGS: Final[Mapping[str, str]] = {
    **SOURCE_SETTINGS,
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # Where the machine is busy, Python needs more than 15 s to take a result. (10 s for a worker
    # that has to call back are a constant of Spark's.)
    "spark.python.authenticate.socketTimeout": "120s",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    f"spark.executorEnv.{SAFE_PATH}": "1",
}

QUICK_START: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Only the quick compiler: a session of some seconds ends before the other one pays off."""


def session(
    name: str = "remuda",
    master: str | None = None,
    *,
    quick: bool = False,
    settings: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> SparkSession:
    """The Spark session of this process, made when there is none.

    ``master`` defaults to all local cores. ``quick`` starts faster and computes slower (about half
    the processor time to the first answer): for demos, tests and short loads. ``settings`` are
    Spark's own and win over ours. ``log`` is a file for the standard error of the Java process and
    the workers, and of errors PySpark prints nothing then: the caller that gave the file tells
    them. Raises ``JavaMissing``, ``SparkNotStarted``.
    """
    if log is not None:
        for logger in ERROR_LOGGERS:
            PySparkLogger.getLogger(logger).disabled = True
    active = SparkSession.getActiveSession()
    if active is None:
        use_java()
    builder = SparkSession.builder.appName(name).master(master or default_master())
    values = dict(SETTINGS)
    if quick:
        values["spark.driver.extraJavaOptions"] = QUICK_START
    for key, value in {**values, **(settings or {})}.items():
        builder = builder.config(key, value)
    if active is not None:
        for key, value in SOURCE_SETTINGS.items():
            active.conf.set(key, value)
        return active
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    _check_standalone(master or default_master())
    try:
        with _errors_to(log), _safe_paths():
            return builder.getOrCreate()
    except Exception as error:  # the gateway's, Java's and PySpark's own, without a common class
        raise _not_started(error, master or default_master(), log) from error


def default_master() -> str:
    return os.environ.get("REMUDA_SPARK_MASTER", DEFAULT_MASTER)


def _check_standalone(master: str) -> None:
    """Raises SparkNotStarted when no master of a standalone cluster listens: Spark would try for
    minutes, and then not say why it has stopped."""
    if not master.startswith(_STANDALONE):
        return
    reasons = []
    for place in master.removeprefix(_STANDALONE).split(","):
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), MASTER_TIMEOUT).close()
        except (OSError, ValueError, OverflowError) as problem:
            reasons.append(f"{place}: {problem}")
        else:
            return
    raise SparkNotStarted(
        f"no Spark master can be reached at {master}",
        detail="; ".join(reasons),
        hint="Is the master right, and does it run? Without one, Spark runs in this process.",
    )


def _not_started(error: Exception, master: str, log: Path | None) -> SparkNotStarted:
    """With the first exception that Java told, in its log or to us; without one, with the last
    that was told before Java was there."""
    told = log.read_text(encoding="utf-8", errors="replace") if log is not None else ""
    found = _EXCEPTION.search(f"{told}\n{error}")
    first_line = (str(error).splitlines() or [type(error).__name__])[0]
    last_line = told.strip().rpartition("\n")[2]
    hint = "Is the master right, and does it run? Without one, Spark runs in this process."
    if found is None and _NO_GATEWAY in first_line:
        hint = f"Does {os.environ.get('JAVA_HOME') or 'the java on PATH'} run by itself?"
    return SparkNotStarted(
        f"Spark does not start with the master {master}",
        detail=found[1] if found is not None else f"{first_line} {last_line}".strip(),
        hint=hint,
    )


@contextmanager
def _safe_paths() -> Iterator[None]:
    """Of what the Java process starts by itself: it looks for data sources in a worker without the
    environment of executors. Only for that moment: other children of this process are its caller's.
    """
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before


@contextmanager
def _errors_to(log: Path | None) -> Iterator[None]:
    """Children that start inside have ``log`` as their standard error; this process has it too,
    for that moment: there is no other way to hand a descriptor through pyspark's launcher."""
    if log is None:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.dup2(target, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(target)
