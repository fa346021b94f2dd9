"""Our error is found in what Spark says, whoever wrapped it."""

from __future__ import annotations

import pyspark
import pytest

from remuda.errors import InputError, JobAborted, StringTooLong, UndefinedMap
from remuda.spark.failures import explain, slow_worker
from remuda.spark.versions import SparkMissing, check_pyspark

WORKER = """
An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/x/rows.py", line 15, in write
    raise StringTooLong("...")
remuda.errors.StringTooLong: column v of map m: a value of 4 characters
DETAIL: some more
HINT: do so
"""
PLANNING = """\
[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source instance: Traceback (most recent):
  File "/x/datasource.py", line 41, in schema
    found = client.describe(options.map)
remuda.errors.UndefinedMap: map "m" does not exist
 SQLSTATE: 38000
"""
JAVA = """\
An error occurred while calling o1.collect.
: org.apache.spark.SparkException: Job aborted due to stage failure: Traceback:
remuda.errors.InputError: first of all
\tat org.apache.spark.Something(Some.scala:1)
Caused by: java.io.EOFException
"""


def test_errors_of_tasks() -> None:
    found = explain(RuntimeError(WORKER))
    assert type(found) is StringTooLong
    assert (found.message, found.detail, found.hint) == (
        "column v of map m: a value of 4 characters",
        "some more",
        "do so",
    )


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (PLANNING, UndefinedMap, 'map "m" does not exist'),
        (JAVA, InputError, "first of all"),
        ("Traceback\nValueError: simple problem", JobAborted, "ValueError: simple problem"),
        ("x: Python worker exited unexpectedly (crashed).", JobAborted, "worker was killed"),
        ("disk on fire\nat x", JobAborted, "disk on fire"),
        ("", JobAborted, "RuntimeError"),
    ],
)
def test_others(text: str, kind: type[Exception], message: str) -> None:
    found = explain(RuntimeError(text))
    assert type(found) is kind
    assert message in found.message
    assert "SQLSTATE" not in found.message


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "x\nModuleNotFoundError: No module named 'remuda.spark'\n at y",
            "no module remuda.spark",
            "every machine",
        ),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.11 and 3.12.\n",
            "another Python",
            "PYSPARK_PYTHON",
        ),
        ("java.lang.UnsupportedClassVersionError: org/x (class file version 61.0)", "Java", "17"),
    ],
)
def test_workers_that_are_not_as_the_driver_is(text: str, message: str, hint: str) -> None:
    found = explain(RuntimeError(text))
    assert type(found) is SparkMissing
    assert message in found.message
    assert hint in found.hint


def test_a_pyspark_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    check_pyspark()
    monkeypatch.setattr(pyspark, "__version__", "3.5.1")
    with pytest.raises(SparkMissing, match=r"4\.2 or newer, and this is 3\.5\.1"):
        check_pyspark()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[SPARK_JOB_CANCELLED] Job 0 cancelled part of cancelled job group g SQLSTATE: XXKDA",
            "the Spark job was cancelled: Job 0 cancelled part of cancelled job group g",
        ),
        ("Nothing left", "the Spark job failed: SparkException: Nothing left"),
    ],
)
def test_what_py4j_says_behind_the_name_of_a_method(text: str, message: str) -> None:
    error = RuntimeError(
        "An error occurred while calling o101.save.\n"
        f": org.apache.spark.SparkException: {text}\n\tat org.apache.spark.X.y(X.scala:1)\n"
    )
    found = explain(error)
    assert type(found) is JobAborted
    assert found.message == message


def test_a_worker_that_is_too_slow_for_spark() -> None:
    error = RuntimeError("[STREAM_FAILED] x: Python worker failed to connect back. SQLSTATE: XXKST")
    assert slow_worker(error)
    found = explain(error)
    assert type(found) is JobAborted
    assert "did not start within 10 s" in found.message
    assert not slow_worker(RuntimeError("Python worker exited unexpectedly"))


def test_ours_stays_itself() -> None:
    error = InputError("x")
    assert explain(error) is error
