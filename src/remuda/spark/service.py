"""``remuda spark-service``: a warm Spark session that runs statements for the members of a cluster.

A thread per member asks it for work, all the time; each statement runs in a thread of its own, and
its rows go back to the member that has sent it. The maps are read by the data source, all at the
timestamp of the statement, as the user of this service, who must be an administrator.
"""

from __future__ import annotations

import logging
import math
import re
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from remuda.client.blocking.client import Client
from remuda.client.blocking.spark_work import Function, Scan, Service, SparkWork, Work
from remuda.client.blocking.tool_access import spark_work
from remuda.client.network.login import NO_SECURITY, OPTIONS, Security
from remuda.datatypes.arrow import external_type, to_external
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import SqlType
from remuda.errors import (
    DivisionByZero,
    InsufficientPrivilege,
    LimitExceeded,
    NumericOverflow,
    QueryCanceled,
    RemudaError,
    SparkFailed,
)
from remuda.query.ids import QueryId
from remuda.spark.datasource import prepare
from remuda.spark.failures import explain
from remuda.spark.grid_functions import engine_column, grid_function
from remuda.spark.transfer.grid import connect
from remuda.spark.transfer.types import spark_schema

log = logging.getLogger(__name__)

SLOTS: Final = 4
"""Statements that run at the same time."""
FUNCTIONS_KEPT: Final = 500
POLL_WAIT: Final = 5.0
CANCELED_WAIT: Final = 0.5
"""The same while jobs of a cancelled statement may begin: each poll ends them."""
PAUSE: Final = 0.5
"""Seconds until a member that does not answer is asked again."""
VIEW_INTERVAL: Final = 2.0
LATE_JOBS: Final = 60.0
"""Seconds for which jobs of a statement that was cancelled are ended, behind its own end."""
PARTITIONS_PER_MEMBER: Final = 2

SERVICE_SETTINGS: Final = {
    "spark.sql.ansi.enabled": "true",
    # Decimals keep the scale that the grid gives them, or raise.
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.variable.substitute": "false",
    "spark.sql.legacy.statisticalAggregate": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
}
_BY_CONDITION: Final[dict[str, tuple[type[RemudaError], str]]] = {
    "DIVIDE_BY_ZERO": (DivisionByZero, "division by zero"),
    "REMAINDER_BY_ZERO": (DivisionByZero, "division by zero"),
    "ARITHMETIC_OVERFLOW": (NumericOverflow, "a number is out of range"),
    "BINARY_ARITHMETIC_OVERFLOW": (NumericOverflow, "a number is out of range"),
    "CAST_OVERFLOW": (NumericOverflow, "a number is out of range"),
    "NUMERIC_VALUE_OUT_OF_RANGE": (NumericOverflow, "a number is out of range"),
}
_CONDITION: Final = re.compile(r"\[([A-Z_]+)(?:\.[A-Z_]+)?\]")
_TOO_LARGE: Final = re.compile(r"bigger than spark\.driver\.maxResultSize")


class SparkService:
    """``serve`` until ``stop``. One session serves all members; ``slots`` statements at a time."""

    def __init__(
        self,
        spark: SparkSession,
        address: str,
        security: Security = NO_SECURITY,
        *,
        slots: int = SLOTS,
        client: Client | None = None,
    ) -> None:
        self._spark = spark.newSession()  # with settings, views and functions of its own
        for name, value in SERVICE_SETTINGS.items():
            self._spark.conf.set(name, value)
        self.name = uuid.uuid4().hex
        self._identity = Service(self.name, _cores(spark))
        self._address = address
        self._security = security
        self._client = client or connect(address, security)
        self._work: SparkWork = spark_work(self._client)
        self._slots = slots
        self._pool = ThreadPoolExecutor(
            slots, "statement on Spark", initializer=prepare, initargs=(self._spark,)
        )
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._functions_lock = threading.Lock()
        self._running: dict[QueryId, Work] = {}
        self._canceled: dict[QueryId, float] = {}
        """Statements that nobody wants, and until when their jobs are ended."""
        self._functions: Counter[str] = Counter()
        """Registered functions, and how many statements use each now."""
        self._asking: dict[int, threading.Thread] = {}
        self._refused: RemudaError | None = None

    def serve(
        self, stop: threading.Event | None = None, ready: Callable[[int], None] = lambda _: None
    ) -> None:
        """Returns when ``stop`` is set, or was called. ``ready`` is told the number of members.
        Raises InsufficientPrivilege, and SparkFailed when Spark is gone."""
        told = False
        while not self._stopping.is_set() and not (stop is not None and stop.is_set()):
            for member in self._work.members():
                thread = self._asking.get(member)
                if thread is None or not thread.is_alive():
                    self._ask(member)
            if not told:
                told = True
                ready(len(self._asking))
            (stop or self._stopping).wait(VIEW_INTERVAL)
            if self._refused is not None:
                raise self._refused
            if not self.alive:
                raise SparkFailed(
                    "the Java process of Spark has ended",
                    hint="Start the service again; with more memory if the system had none left.",
                )
            try:
                self._work.refresh()
            except RemudaError as error:
                log.warning("no member answers: %s", error.message)

    @property
    def alive(self) -> bool:
        """False when the Java process that this process has started is gone."""
        context = getattr(self._spark, "sparkContext", None)
        process = getattr(getattr(context, "_gateway", None), "proc", None)
        return process is None or process.poll() is None

    def stop(self) -> None:
        """End what runs; the members tell their clients."""
        self._stopping.set()
        for query in list(self._running):
            self._cancel(query)
        self._client.close()
        self._pool.shutdown(wait=True, cancel_futures=True)

    # --- work ---------------------------------------------------------------------------------

    def _ask(self, member: int) -> None:
        thread = threading.Thread(
            target=self._poll, args=(member,), name=f"asking member {member}", daemon=True
        )
        self._asking[member] = thread
        thread.start()

    def _poll(self, member: int) -> None:
        while not self._stopping.is_set():
            with self._lock:
                wanted = self._running.keys() - self._canceled.keys()
                mine = [query for query in wanted if self._running[query].member == member]
                canceled = self._still_canceled()
                free = self._slots - len(self._running)
            for query in canceled:
                self._interrupt(query)
            try:
                # At least one: what is too much waits here rather than at a member.
                wait = CANCELED_WAIT if canceled else POLL_WAIT
                news = self._work.poll(member, self._identity, wait, max(free, 1), mine)
            except InsufficientPrivilege as error:
                self._refused = error
                self._stopping.set()
                return
            except RemudaError as error:
                if member not in self._work.members():
                    return
                log.info("member %d does not answer: %s", member, error.message)
                self._stopping.wait(PAUSE)
                continue
            for query in news.unwanted:
                self._cancel(query)
            for work in news.work:
                with self._lock:
                    self._running[work.query] = work
                self._pool.submit(self._run, work)

    def _cancel(self, query: QueryId) -> None:
        with self._lock:
            if query not in self._running:
                return
            self._canceled[query] = math.inf
        self._interrupt(query)

    def _still_canceled(self) -> list[QueryId]:
        """Spark may begin a job of a statement after it was interrupted, and even after it has
        failed for that reason: stages are prepared by other threads."""
        now = time.monotonic()
        self._canceled = {query: end for query, end in self._canceled.items() if now < end}
        return list(self._canceled)

    def _interrupt(self, query: QueryId) -> None:
        try:
            self._spark.interruptTag(_tag(query))
        except (Py4JError, OSError) as error:  # Spark is gone: ``serve`` says so
            log.info("statement %s cannot be interrupted: %s", query, error)

    def _run(self, work: Work) -> None:
        try:
            self._statement(work)
        except RemudaError as error:
            self._tell(work, error)
        except Exception as error:  # noqa: BLE001 (the boundary: whatever Spark raises is told)
            self._tell(work, meant(error))
        finally:
            with self._lock:
                self._running.pop(work.query, None)
                if work.query in self._canceled:
                    self._canceled[work.query] = time.monotonic() + LATE_JOBS

    def _tell(self, work: Work, error: RemudaError) -> None:
        if work.query in self._canceled:
            return
        try:
            self._work.fail(self.name, work, error)
        except RemudaError as lost:
            log.info("member %d does not hear of an error: %s", work.member, lost.message)

    def _check(self, work: Work) -> None:
        if work.query in self._canceled:
            raise QueryCanceled("nobody wants the rows of the statement")

    # --- one statement ------------------------------------------------------------------------

    def _statement(self, work: Work) -> None:
        spark, tag = self._spark, _tag(work.query)
        self._check(work)
        spark.addTag(tag)
        try:
            self._register(work.functions)
            for scan in work.scans:
                self._view(scan, work.at)
            self._check(work)
            table = spark.sql(work.text).toArrow()
            self._check(work)
            self._send(work, table)
        finally:
            spark.removeTag(tag)
            self._release(work.functions)
            for scan in work.scans:
                spark.catalog.dropTempView(scan.view)

    def _register(self, functions: Iterable[Function]) -> None:
        """Equal expressions are one function, so a second statement may find it there."""
        for function in functions:
            with self._functions_lock:
                if function.name not in self._functions:
                    made = grid_function(function.expression, function.arguments, function.result)
                    self._spark.udf.register(function.name, made)
                self._functions[function.name] += 1

    def _release(self, functions: Iterable[Function]) -> None:
        with self._functions_lock:
            for function in functions:
                if function.name in self._functions:
                    self._functions[function.name] -= 1
            if len(self._functions) > FUNCTIONS_KEPT:
                for name in [name for name, users in self._functions.items() if users <= 0]:
                    self._spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")
                    del self._functions[name]

    def _view(self, scan: Scan, at: int) -> None:
        options: dict[str, Any] = {
            "address": self._address,
            "map": scan.map,
            "partitions_per_member": PARTITIONS_PER_MEMBER,
            "at": at,
            **security_options(self._security),
        }
        columns = zip(scan.columns, scan.types, strict=True)
        schema = spark_schema(tuple(Column(name, sql_type) for name, sql_type in columns))
        reader = self._spark.read.format("remuda").schema(schema)
        for name, value in options.items():
            if value not in (None, ""):
                reader = reader.option(name, value)
        reader.load().createOrReplaceTempView(scan.view)

    def _send(self, work: Work, table: pa.Table) -> None:
        columns = [
            exact(column, sql_type)
            for column, sql_type in zip(table.columns, work.types, strict=False)
        ]
        names = [str(place) for place in range(len(columns))]
        if not columns:
            self._work.send(self.name, work, None, last=True)
            return
        batch = pa.RecordBatch.from_arrays(columns, names=names)
        for first in range(0, batch.num_rows, work.page_rows):
            page = batch.slice(first, work.page_rows)
            if not self._work.send(self.name, work, [page], last=False):
                return
        self._work.send(self.name, work, None, last=True)


def exact(column: pa.ChunkedArray, sql_type: SqlType) -> pa.Array:
    """A column of a result as the grid gives it to clients."""
    array = to_external(engine_column(column, sql_type), sql_type)
    target = external_type(sql_type)
    return array if array.type == target else array.cast(target)


def security_options(security: Security) -> dict[str, str | None]:
    """As the data source calls them: "key" means key columns there."""
    given = security.options()
    given["tls"] = "true" if given.get("tls") else None
    return {("tls_key" if name == "key" else name): given.get(name) for name in OPTIONS}


def _cores(spark: SparkSession) -> int:
    """1 where Spark does not say (by Connect)."""
    context = getattr(spark, "sparkContext", None)
    return 1 if context is None else max(int(context.defaultParallelism), 1)


def _tag(query: QueryId) -> str:
    return f"remuda-{query}"


def meant(error: Exception) -> RemudaError:
    """The error of the grid that the same statement would have met, or Spark's own text."""
    text = str(error)
    found = explain(error)
    if type(found).__name__ not in ("JobAborted", "InternalError"):
        return found
    if _TOO_LARGE.search(text):
        return LimitExceeded(
            "the result of the statement is too large for the Spark service",
            hint="Start it with --conf spark.driver.maxResultSize=..., or add a LIMIT.",
        )
    for condition in _CONDITION.findall(text):
        if condition in _BY_CONDITION:
            kind, message = _BY_CONDITION[condition]
            return kind(message, detail=text.strip().splitlines()[0][:300])
    return SparkFailed(f"Spark could not run the statement: {found.message}")
