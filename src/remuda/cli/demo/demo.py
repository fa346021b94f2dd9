"""``remuda demo``: the whole of Remuda in a minute, on real data, from nothing."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from remuda.cli.demo.data import Load, check_packages, prepare_flights, prepare_tpcds
from remuda.cli.demo.durability import survive
from remuda.cli.demo.loss import lose_a_member, transfer
from remuda.cli.demo.questions import QUESTIONS, TPCDS_3, WRONG, Question
from remuda.cli.demo.screen import Screen, Stopwatch, duration
from remuda.client.blocking.client import Client
from remuda.client.embedded.cluster import Cluster, start
from remuda.errors import InputError, InternalError, RemudaError
from remuda.spark.datasource import prepare
from remuda.spark.failures import explained
from remuda.spark.frames import read
from remuda.spark.loading.loader import load
from remuda.spark.session import SparkSession, session

POINT_OPERATIONS: Final = 2000
MEMBERS_HERE_MAX: Final = 16
"""Members that make sense on one machine."""
WEATHER_SCHEMA: Final = (
    "origin string, year int, month int, day int, hour int, temp double, dewp double, "
    "humid double, wind_dir double, wind_speed double, wind_gust double, precip double, "
    "pressure double, visib double, time_hour timestamp"
)


@dataclass(frozen=True)
class Note:
    """A row that the demo puts into a map of its own: the schema comes from this class."""

    text: str
    stars: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scale", type=float, default=0.1, help="scale factor of the TPC-DS tables (0.1)"
    )
    parser.add_argument("--members", type=int, default=3, help="members of the cluster (3)")


def run(arguments: argparse.Namespace) -> int:
    """Run the demo; 0 when all of it worked. Raises ``RemudaError`` for the caller to print."""
    check_packages(arguments.scale)
    if not 1 <= arguments.members <= MEMBERS_HERE_MAX:
        raise InputError(
            f"the demo starts 1 to {MEMBERS_HERE_MAX} members, not {arguments.members}"
        )
    screen, clock = Screen(), Stopwatch()
    with tempfile.TemporaryDirectory(prefix="remuda-demo-") as scratch:
        directory = Path(scratch)
        # Java, the members and the data take their time side by side.
        with ThreadPoolExecutor(max_workers=3) as pool:
            spark = pool.submit(_start_spark, directory / "spark.log")
            flights = pool.submit(prepare_flights, directory)
            sales = pool.submit(prepare_tpcds, directory, arguments.scale)
            try:
                screen.chapter(f"Starting {arguments.members} members, Spark, and the data")
                with start(members=arguments.members) as cluster, cluster.connect() as client:
                    screen.took(f"{arguments.members} members ready", clock.seconds)
                    loads, weather = flights.result()
                    loads = [*loads, *sales.result()]
                    screen.took("Files ready", clock.seconds)
                    ready = spark.result()
                    screen.took("Spark ready", clock.seconds)
                    _tour(screen, _Place(cluster, client, ready), loads, weather)
            finally:
                _stop(spark)
        survive(screen, directory)
    screen.chapter(f"Everything is shut down. The demo took {clock.seconds:.1f} s.")
    return 0


@dataclass(frozen=True)
class _Place:
    """Values that all parts of the tour use."""

    cluster: Cluster
    client: Client
    spark: SparkSession

    @property
    def address(self) -> str:
        return ",".join(self.cluster.addresses)


def _tour(screen: Screen, place: _Place, loads: Sequence[Load], weather: Path) -> None:
    client = place.client
    _load(screen, place, loads, weather)
    screen.chapter("Questions")
    for question in (*QUESTIONS, TPCDS_3):
        _ask(screen, client, question)
    _read_back(screen, place.spark, place.address, weather.with_name("airports.csv"))
    _points(screen, client)
    transfer(screen, client)
    _mistake(screen, client)
    lose_a_member(screen, place.cluster, client)


def _start_spark(log: Path) -> SparkSession:
    made = session("remuda demo", quick=True, log=log)
    # The first job loads classes and starts workers: let that happen while the members start.
    made.range(2).mapInArrow(_same, "id long").count()
    return made


def _same(batches: Any) -> Any:
    """Runs in a worker, which loads what the loader needs once and keeps it."""
    import_module("remuda.spark.loading.loader")
    yield from batches


def _stop(spark: Future[SparkSession]) -> None:
    if not spark.cancel() and spark.exception() is None:
        spark.result().stop()


# --- loading --------------------------------------------------------------------------------------


def _load(screen: Screen, place: _Place, loads: Sequence[Load], weather: Path) -> None:
    spark, address = place.spark, place.address
    screen.chapter("Loading through Spark")
    reports = []
    with screen.loading() as bars:
        for item in loads:
            report = load(
                spark,
                item.path,
                address=address,
                map=item.map,
                key=item.key,
                replicated=item.replicated,
                nulls=item.nulls,
                progress=_bar(bars, item.map),
            )
            reports.append(
                (item.map, item.path.suffix[1:], report.rows, report.seconds, item.replicated)
            )
        watch = Stopwatch()
        with explained():
            _load_frame(spark, address, weather)
        rows = place.client.map("weather").size()
        reports.append(("weather", "DataFrame", rows, watch.seconds, False))
    lines = [
        (name, source, rows, "full copy each" if full else "partitioned", duration(seconds),
         int(rows / seconds))
        for name, source, rows, seconds, full in reports
    ]  # fmt: skip
    screen.table(("map", "from", "rows", "members hold", "time", "rows/s"), lines, len(lines))


def _bar(bars: Any, name: str) -> Callable[[Any], None] | None:
    if bars is None:
        return None
    task = bars.add_task(name, total=None, rows="")

    def show(progress: Any) -> None:
        bars.update(
            task,
            total=progress.size,
            completed=progress.size_done,
            rows=f"{progress.rows:,} rows",
        )

    return show


def _load_frame(spark: SparkSession, address: str, weather: Path) -> None:
    """Weather as a Spark pipeline would bring it: read, changed by Spark, written by one save."""
    frame = (
        prepare(spark)
        .read.csv(str(weather), header=True, schema=WEATHER_SCHEMA, nullValue="NA")
        .selectExpr(
            "origin",
            "time_hour",
            "(temp - 32) * 5 / 9 AS celsius",
            "humid",
            "wind_speed * 1.609344 AS wind_kmh",
            "precip",
            "visib",
        )
    )
    (
        frame.write.format("remuda")
        .options(address=address, map="weather", key="origin,time_hour")
        .mode("append")
        .save()
    )


# --- asking ---------------------------------------------------------------------------------------


def _ask(screen: Screen, client: Client, question: Question) -> None:
    screen.sql(question.title, question.sql, question.parameters)
    plan = client.sql("EXPLAIN " + question.sql, *question.parameters)
    screen.plan([str(row[0]) for row in plan])
    watch = Stopwatch()
    cursor = client.sql(question.sql, *question.parameters)
    rows = cursor.fetchall()
    seconds = watch.seconds
    screen.table([column.name for column in cursor.columns], rows, len(rows))
    screen.took(f"{len(rows)} rows", seconds)


def _read_back(screen: Screen, spark: SparkSession, address: str, airports: Path) -> None:
    screen.chapter("Back into Spark: a map joined with a file there")
    watch = Stopwatch()
    with explained():
        rows = _late_by_destination(spark, address, airports)
    screen.say("Flights more than two hours late, by destination, counted by Spark:")
    screen.table(("destination", "flights"), rows, len(rows))
    screen.took(f"{len(rows)} rows", watch.seconds)


def _late_by_destination(
    spark: SparkSession, address: str, airports: Path
) -> list[tuple[object, ...]]:
    late = read(
        spark, address, map="flights", columns=["dest", "dep_delay"], where="dep_delay > 120"
    )
    places = spark.read.csv(str(airports), header=True)
    found = (
        late.join(places, late["dest"] == places["faa"])
        .groupBy("name")
        .count()
        .orderBy("count", "name", ascending=[False, True])
        .limit(5)
        .collect()
    )
    return [tuple(row) for row in found]


def _points(screen: Screen, client: Client) -> None:
    screen.chapter(f"Point reads and writes, {POINT_OPERATIONS} of each, one after the other")
    notes, flights = client.map("notes"), client.map("flights")
    statement = client.prepare("SELECT carrier, dep_delay FROM flights WHERE id = ?")
    step = 336_776 // POINT_OPERATIONS
    operations: list[tuple[str, Callable[[int], object]]] = [
        ("put", lambda i: notes.put(i, Note(f"note {i}", i % 5))),
        ("get", lambda i: flights.get(1 + i * step)),
        ("get own put", notes.get),
        ("prepared SELECT by key", lambda i: statement(1 + i * step).fetchall()),
    ]
    lines = []
    for name, operation in operations:
        times = []
        for index in range(POINT_OPERATIONS):
            watch = Stopwatch()
            operation(index)
            times.append(watch.seconds)
        times.sort()
        lines.append(
            (name, duration(times[len(times) // 2]), duration(times[len(times) * 99 // 100]),
             int(len(times) / sum(times)))
        )  # fmt: skip
    screen.table(("operation", "p50", "p99", "per second"), lines, len(lines))
    size = notes.size()
    if size != POINT_OPERATIONS:
        raise InternalError(f"{POINT_OPERATIONS} notes were put, the map has {size}")


def _mistake(screen: Screen, client: Client) -> None:
    screen.chapter("A mistake, and its error")
    screen.sql(WRONG.title, WRONG.sql)
    try:
        client.sql(WRONG.sql).fetchall()
    except RemudaError as error:
        screen.error(f"{error}\nSQLSTATE {error.sqlstate}")
    else:
        raise InternalError("a wrong statement was answered")
