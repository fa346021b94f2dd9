"""``remuda snapshot compact`` and ``export``, and ``verify`` and ``restore`` with ``--spark``: work
on the store itself, by this process or by Spark, without (or, to restore, beside) the members."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from remuda.cli.connecting import client_of
from remuda.cli.results.table import Alignment, harmless, text_table
from remuda.errors import InputError, NotSupported
from remuda.plan.explain.explain import size_text

EXIT_FOUND = 1
_LEFT, _RIGHT = Alignment.LEFT, Alignment.RIGHT


def add_to(actions: Any, moment: Callable[[str, str], datetime]) -> None:
    """``moment`` reads the value of an option."""
    compact = _action(actions, "compact", "make a base of a cut and its increments, by Spark")
    compact.add_argument("--into", metavar="NAME", help="a new snapshot (the same one)")
    compact.add_argument("--cut", type=int, metavar="N", help="which one (the last)")
    compact.add_argument("--to", metavar="MOMENT", help="ISO 8601; in UTC if it names no zone")
    compact.set_defaults(run=lambda options: _compact(options, moment))
    export = _action(actions, "export", "write the maps of a cut as Parquet")
    export.add_argument("target", help="a new folder, or a URL such as s3://bucket/path")
    export.add_argument("--cut", type=int, metavar="N", help="which one (the last)")
    export.add_argument("--to", metavar="MOMENT", help="ISO 8601; in UTC if it names no zone")
    export.add_argument("--map", action="append", metavar="M", help="only this (may be repeated)")
    export.add_argument("--spark", action="store_true", help="by Spark, in parallel")
    export.set_defaults(run=lambda options: _export(options, moment))


def add_spark(parser: argparse.ArgumentParser) -> None:
    """For actions that members do unless told otherwise."""
    parser.add_argument("--spark", action="store_true", help="by Spark, from the store (--store)")
    _add_store(parser)


def _action(actions: Any, name: str, about: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=about, description=about)
    parser.add_argument("name", help="of the snapshot")
    _add_store(parser)
    return parser


def _add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--store",
        default=os.environ.get("REMUDA_SNAPSHOT_STORE", ""),
        metavar="PLACE",
        help="what the members have as snapshot_store (REMUDA_SNAPSHOT_STORE)",
    )
    parser.add_argument(
        "--key-file",
        default=os.environ.get("REMUDA_SNAPSHOT_KEY_FILE", ""),
        metavar="FILE",
        help="the key of encrypted snapshots (REMUDA_SNAPSHOT_KEY_FILE)",
    )
    parser.add_argument("--master", help="the Spark master (local, all cores)")


def verify(options: argparse.Namespace) -> int:
    """By Spark; the exit status tells."""
    with _spark(options) as (spark, bulk):
        report = bulk.verify_snapshot(
            spark, options.store, options.name, options.level, key_file=options.key_file
        )
    print(f"snapshot {options.name}: {report}")
    for finding in report.findings:
        print(finding)
    return 0 if report.ok else EXIT_FOUND


def restore(
    options: argparse.Namespace, maps: dict[str, str] | None, moment: datetime | None
) -> list[Any]:
    """By Spark and the members; the maps that are there now."""
    with client_of(options, "remuda snapshot") as client, _spark(options) as (spark, bulk):
        found: list[Any] = bulk.restore_snapshot(
            spark,
            client,
            options.store,
            options.name,
            cut=options.cut,
            moment=moment,
            maps=maps,
            prefix=options.prefix,
            key_file=options.key_file,
        )
        return found


def _compact(options: argparse.Namespace, moment: Callable[[str, str], datetime]) -> int:
    with _spark(options) as (spark, bulk):
        made = bulk.compact_snapshot(
            spark,
            options.store,
            options.name,
            into=options.into,
            cut=options.cut,
            moment=None if options.to is None else moment(options.to, "--to"),
            key_file=options.key_file,
        )
    rows = sum(each.rows for each in made.maps)
    size = size_text(sum(each.size for each in made.data))
    print(
        f"snapshot {made.name}, cut {made.version}: a base of {len(made.maps)} maps, {rows:,} rows,"
        f" {len(made.data)} objects, {size}"
    )
    return 0


def _export(options: argparse.Namespace, moment: Callable[[str, str], datetime]) -> int:
    to = None if options.to is None else moment(options.to, "--to")
    if options.spark:
        with _spark(options) as (spark, bulk):
            done = bulk.export_snapshot(
                spark,
                options.store,
                options.name,
                options.target,
                cut=options.cut,
                moment=to,
                maps=options.map,
                key_file=options.key_file,
            )
    else:
        offline = import_module("remuda.snapshot.offline")
        done = offline.export_snapshot(
            options.store,
            options.name,
            options.target,
            cut=options.cut,
            moment=to,
            maps=options.map,
            key_file=options.key_file,
            identity=secrets.token_hex(4),
        )
    rows = [(harmless(each.map), f"{each.rows:,}", str(len(each.files))) for each in done]
    head = ("map", "rows", "files")
    sys.stdout.write(text_table(head, rows, (_LEFT, _RIGHT, _RIGHT)) if rows else "nothing\n")
    return 0


@contextmanager
def _spark(options: argparse.Namespace) -> Iterator[tuple[Any, Any]]:
    """A session, and ``remuda.spark.snapshots``. Errors of the store are told before Java takes its
    seconds to start."""
    if not options.store:
        raise InputError(
            "no store is named",
            hint="Give --store: the folder or URL that the members have as snapshot_store.",
        )
    try:
        bulk = import_module("remuda.spark.snapshots")
        session = import_module("remuda.spark.session")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "remuda":
            raise
        raise NotSupported(
            f"this needs the package {error.name}, which is not installed",
            hint='Install "remuda[spark]".',
        ) from error
    bulk.Store(options.store, options.key_file).open()
    with tempfile.TemporaryDirectory(prefix="remuda-spark-") as scratch:
        print("Starting Spark ...", file=sys.stderr, flush=True)
        log = Path(scratch) / "spark.log"
        spark = session.session("remuda snapshot", options.master, quick=True, log=log)
        try:
            yield spark, bulk
        finally:
            spark.stop()
