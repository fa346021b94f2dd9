"""The cause of a failed Spark job: the error of Remuda inside the text that Spark hands over."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from remuda.errors import InternalError, JobAborted, JobInterrupted, RemudaError
from remuda.spark.java import JAVA_MIN
from remuda.spark.versions import SparkMissing

_OURS: Final = re.compile(
    r"^\s*remuda\.(?:[a-z_]+\.)+([A-Z]\w+): "
    r"(.*?)(?=\n\s*\n|\n\s*at |\n\s*File |\n\s*SQLSTATE: |\n[A-Z]\w+Exception|\Z)",
    re.MULTILINE | re.DOTALL,
)
_PYTHON: Final = re.compile(r"^\s*((?:\w+\.)*\w*(?:Error|Exception)): (.+)$", re.MULTILINE)
_WORKER_DIED: Final = re.compile(r"Python worker exited unexpectedly|ExecutorLostFailure")
_NO_PACKAGE: Final = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_OTHER_PYTHON: Final = re.compile(r"\[PYTHON_VERSION_MISMATCH\][^\n]*")
_CANCELED: Final = re.compile(
    r"\[SPARK_JOB_CANCELLED\] ([^\n]*?)\s*(?:SQLSTATE: \w+)?$", re.MULTILINE
)
_JAVA: Final = re.compile(r"^: (?:\w+\.)+(\w+(?:Error|Exception)): (.+)$", re.MULTILINE)
"""Py4J's own words on its second line; the first one names a method."""
_SLOW_WORKER: Final = "Python worker failed to connect back"
_OLD_JAVA: Final = re.compile(r"UnsupportedClassVersionError[^\n]*")
_MESSAGE_MAX: Final = 400
_ATTEMPTS: Final = 4
"""How often a write is run at most, when members leave or are lost each time."""

T = TypeVar("T")


def written(write: Callable[[], T]) -> T:
    """The result of ``write``, which runs one Spark job that writes to the grid. It runs again when
    the grid has rolled the job back because members left or were lost. Raises what the last run
    raises."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return write()
        except Exception as error:
            if not isinstance(explain(error), JobInterrupted):
                raise
    return write()


@contextmanager
def explained() -> Iterator[None]:
    """An error that Spark raises inside becomes the error of ours that caused it, as ``explain``
    says."""
    try:
        yield
    except Exception as error:
        raise explain(error) from error


def explain(error: BaseException) -> RemudaError:
    """``error`` itself when it is ours, the one that ended the tasks, or a summary of Spark's."""
    if isinstance(error, RemudaError):
        return error
    text = str(error)
    ours = list(_OURS.finditer(text))
    if ours:
        kind, message = ours[-1].groups()
        return _rebuilt(RemudaError.kinds.get(kind, InternalError), message)
    surroundings = _surroundings(text)
    if surroundings is not None:
        return surroundings
    if slow_worker(error):
        return JobAborted(
            "Spark has given up a Python worker that did not start within 10 s: the machine is "
            "too busy",
            hint="Run it again. The 10 s are a constant of Spark's.",
        )
    if canceled := _CANCELED.search(text):
        return JobAborted(f"the Spark job was cancelled: {canceled[1][:_MESSAGE_MAX]}")
    if _WORKER_DIED.search(text):
        return JobAborted(
            "the Spark job failed: a Python worker was killed, more often than tasks are retried"
        )
    python = list(_PYTHON.finditer(text)) or list(_JAVA.finditer(text))
    if python:
        name, message = python[-1].groups()
        return JobAborted(f"the Spark job failed: {name}: {message[:_MESSAGE_MAX]}")
    first = (text.strip().splitlines() or [type(error).__name__])[0]
    return JobAborted(f"the Spark job failed: {first[:_MESSAGE_MAX]}")


def slow_worker(error: BaseException) -> bool:
    """Whether Spark has only waited too briefly for a Python worker: the same may work now."""
    return _SLOW_WORKER in str(error)


def _surroundings(text: str) -> RemudaError | None:
    """The workers of Spark are not as the driver is."""
    if package := _NO_PACKAGE.search(text):
        return SparkMissing(
            f"the Python of Spark's workers has no module {package[1]}",
            hint='Install "remuda[spark]" and what your functions use for the Python that workers '
            "run (spark.pyspark.python), on every machine, or send it along (spark.archives).",
        )
    if other := _OTHER_PYTHON.search(text):
        return SparkMissing(
            "Spark's workers run another Python than the driver",
            detail=other[0][:_MESSAGE_MAX],
            hint="Set spark.pyspark.python, or PYSPARK_PYTHON, to the same version everywhere.",
        )
    if old := _OLD_JAVA.search(text):
        return SparkMissing(
            "a machine of Spark has too old a Java",
            detail=old[0][:_MESSAGE_MAX],
            hint=f"Spark needs Java {JAVA_MIN} or newer on every machine.",
        )
    return None


def _rebuilt(kind: type[RemudaError], text: str) -> RemudaError:
    parts: dict[str, list[str]] = {"message": [], "detail": [], "hint": []}
    at = "message"
    for line in text.strip().splitlines():
        stripped = line.strip()
        for label in ("detail", "hint"):
            if stripped.startswith(label.upper() + ": "):
                at, stripped = label, stripped[len(label) + 2 :]
        parts[at].append(stripped)
    message, detail, hint = ("\n".join(parts[name]) for name in ("message", "detail", "hint"))
    return kind(message, detail=detail, hint=hint)
