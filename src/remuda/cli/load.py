"""``remuda load``: files into a map, as a Spark job."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from remuda.cli.connecting import add_connect, connection_options
from remuda.cli.results.table import counted
from remuda.client.network.login import of_options
from remuda.datatypes.sql import SqlType
from remuda.errors import InputError
from remuda.spark.loading.loader import LoadReport, Progress, load
from remuda.spark.loading.splits import find_files
from remuda.spark.session import session
from remuda.spark.transfer.grid import connect
from remuda.spark.type_text import type_of_text

REASONS_SHOWN: Final = 5
LINE_INTERVAL: Final = 2.0
"""Seconds between progress lines when the output is no terminal."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", help="a file, a directory, or a glob in quotes")
    parser.add_argument("--map", required=True, metavar="M", help="the map to load into")
    parser.add_argument("--key", default="", metavar="K[,K2]", help="key of a map made by the load")
    parser.add_argument(
        "--partition-by", default="", metavar="K", help="key columns that decide the partition"
    )
    add_connect(parser)
    parser.add_argument(
        "--replicated", action="store_true", help="make the map with a full copy on each member"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the whole content of the map"
    )
    parser.add_argument("--format", choices=("parquet", "csv", "json", "arrow"))
    parser.add_argument("--columns", default="", metavar="C,C2", help="load only these columns")
    parser.add_argument(
        "--types", default="", metavar="COL:TYPE,...", help="SQL types instead of the found ones"
    )
    parser.add_argument(
        "--rejects", metavar="DIR", help="where rejected rows go (MAP.rejects, when there are any)"
    )
    parser.add_argument(
        "--null", action="append", default=[], metavar="TEXT", help="CSV text that means NULL"
    )
    parser.add_argument("--delimiter", metavar="CHAR", help="between the columns of CSV")
    parser.add_argument("--no-header", action="store_true", help="CSV without a line of names")
    parser.add_argument("--parallelism", type=int, metavar="N", help="tasks at a time (all cores)")
    parser.add_argument("--master", help="the Spark master (local, all cores)")


def run(arguments: argparse.Namespace) -> int:
    """Load; 0 when rows were loaded. Raises ``RemudaError`` for the caller to print."""
    types = parse_types(arguments.types)
    if arguments.parallelism is not None and arguments.parallelism < 1:
        raise InputError("--parallelism must be at least 1")
    if arguments.delimiter is not None and len(arguments.delimiter) != 1:
        raise InputError("--delimiter must be one character")
    rejects = Path(arguments.rejects or f"{arguments.map}.rejects")
    # Wrong files and addresses are told before Java takes its seconds to start.
    find_files(arguments.source)
    security = of_options(connection_options(arguments))
    connect(arguments.connect, security).close()
    master = arguments.master
    if master is None and arguments.parallelism is not None:
        master = f"local[{arguments.parallelism},3]"
    with tempfile.TemporaryDirectory(prefix="remuda-load-") as scratch:
        print("Starting Spark ...", file=sys.stderr, flush=True)
        spark = session("remuda load", master, quick=True, log=Path(scratch) / "spark.log")
        try:
            with _progress() as show:
                report = load(
                    spark,
                    arguments.source,
                    address=arguments.connect,
                    map=arguments.map,
                    key=_names(arguments.key),
                    partition_by=_names(arguments.partition_by),
                    replicated=True if arguments.replicated else None,
                    overwrite=arguments.overwrite,
                    format=arguments.format,
                    columns=_names(arguments.columns),
                    types=types,
                    rejects=rejects,
                    nulls=("", *arguments.null),
                    header=not arguments.no_header,
                    delimiter=arguments.delimiter,
                    parallelism=arguments.parallelism,
                    progress=show,
                    security=security,
                )
        finally:
            spark.stop()
    _tell(report)
    return 0


def parse_types(text: str) -> dict[str, SqlType]:
    """``a:BIGINT,b:DECIMAL(7,2)`` -> types by column. Raises ``InputError``."""
    found: dict[str, SqlType] = {}
    # A comma inside parentheses belongs to the type.
    for item in filter(None, re.split(r",(?![^()]*\))", text)):
        name, colon, kind = item.partition(":")
        if not colon or not kind.strip():
            raise InputError(f"--types: {item.strip()!r} is not COLUMN:TYPE")
        found[name.strip()] = type_of_text(kind)
    return found


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


@contextmanager
def _progress() -> Iterator[Callable[[Progress], None]]:
    """A bar in a terminal, a line now and then otherwise; both on standard error."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich import progress as bars  # noqa: PLC0415 (an optional package)
    from rich.console import Console  # noqa: PLC0415

    with bars.Progress(
        bars.TextColumn("loading"),
        bars.BarColumn(),
        bars.TaskProgressColumn(),
        bars.TextColumn("{task.fields[text]}"),
        bars.TimeRemainingColumn(),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task("load", total=None, text="")

        def show(state: Progress) -> None:
            bar.update(task, total=state.size, completed=state.size_done, text=_text(state))

        yield show


def _lines() -> Callable[[Progress], None]:
    last = time.monotonic()

    told = 0

    def show(state: Progress) -> None:
        nonlocal last, told
        now = time.monotonic()
        ended = state.splits_done == state.splits
        if state.splits_done > told and (ended or now - last >= LINE_INTERVAL):
            last, told = now, state.splits_done
            done = 100 * state.size_done // max(state.size, 1)
            print(f"loading {done:3d} %  {_text(state)}", file=sys.stderr, flush=True)

    return show


def _text(state: Progress) -> str:
    text = f"{state.rows:,} rows, {int(state.rows / max(state.seconds, 1e-3)):,} rows/s"
    return f"{text}, {state.rejected:,} rejected" if state.rejected else text


def _tell(report: LoadReport) -> None:
    made = " (made)" if report.created else ""
    print(
        f"{counted(report.rows, 'row')} loaded into {report.map}{made} "
        f"from {counted(report.files, 'file')} in {report.seconds:.1f} s: "
        f"{int(report.rows_per_second):,} rows/s"
    )
    if not report.rejected:
        return
    print(f"{counted(report.rejected, 'row')} rejected:")
    for reason, count in list(report.reasons.items())[:REASONS_SHOWN]:
        print(f"  {count:,} x {reason}")
    if len(report.reasons) > REASONS_SHOWN:
        print("  ...")
    if report.rejects:
        print(f"  written to {Path(report.rejects[0]).parent}")
