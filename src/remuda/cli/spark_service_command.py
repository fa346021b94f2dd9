"""``remuda spark-service``: a warm Spark session that runs statements of a cluster's clients."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import threading
from pathlib import Path

from remuda.cli.connecting import add_connect, connection_options
from remuda.client.network.login import of_options
from remuda.errors import InputError
from remuda.spark.service import SLOTS, SparkService
from remuda.spark.session import session
from remuda.spark.transfer.grid import connect


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connect(parser)
    parser.add_argument(
        "--master", metavar="URL", help="of Spark; all cores of this machine by default"
    )
    parser.add_argument(
        "--slots",
        type=int,
        default=SLOTS,
        metavar="N",
        help=f"statements that run at the same time ({SLOTS})",
    )
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark; may be repeated",
    )


def run(options: argparse.Namespace) -> int:
    """Serve until it is told to stop. Raises ``RemudaError`` for the caller to print."""
    if options.slots < 1:
        raise InputError("--slots must be at least 1")
    settings = dict(_setting(text) for text in options.conf)
    security = of_options(connection_options(options))
    # A wrong address or password is told before Java takes its seconds to start.
    connect(options.connect, security).close()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    with tempfile.TemporaryDirectory(prefix="remuda-spark-") as scratch:
        print("Starting Spark ...", file=sys.stderr, flush=True)
        spark = session(
            "remuda service", options.master, settings=settings, log=Path(scratch) / "spark.log"
        )
        service = SparkService(spark, options.connect, security, slots=options.slots)
        try:
            service.serve(stop, ready=_ready)
        finally:
            print("stopping", flush=True)
            service.stop()
            if service.alive:
                spark.stop()
    return 0


def _ready(members: int) -> None:
    print(f"ready: runs statements of {members} members   (Ctrl-C stops)", flush=True)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InputError(f"--conf: {text!r} is not NAME=VALUE")
    return name.strip(), value
