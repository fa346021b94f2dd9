"""``remuda start``: a cluster on this machine, in the foreground."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from remuda.client.embedded.cluster import START_TIMEOUT, Cluster, start
from remuda.config import member_config
from remuda.errors import ConnectionRefused, NotSupported
from remuda.limits import CONTROL_PORT, DATA_PORT, HTTP_PORT, METRICS_PORT, POSTGRES_PORT, USER_PORT

_WATCH_INTERVAL = 0.5
_DEFAULTS: dict[str, Any] = {
    "members": 3,
    "host": "127.0.0.1",
    "user_port": USER_PORT,
    "control_port": CONTROL_PORT,
    "data_port": DATA_PORT,
    "metrics_port": METRICS_PORT,
    "postgres_port": POSTGRES_PORT,
}


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "start",
        help="start a cluster on this machine",
        description="Start a cluster on this machine and run it until Ctrl-C.",
        epilog="Member 2 listens on each port plus 10, member 3 plus 20, and so on; "
        "a port of 0 is any free one. Options win over the configuration file.",
    )
    parser.add_argument("--members", type=int, metavar="N", help="number of members (3)")
    parser.add_argument("--host", help="address to listen on (127.0.0.1)")
    parser.add_argument("--user-port", type=int, metavar="PORT", help=f"clients ({USER_PORT})")
    parser.add_argument(
        "--control-port", type=int, metavar="PORT", help=f"members ({CONTROL_PORT})"
    )
    parser.add_argument("--data-port", type=int, metavar="PORT", help=f"data ({DATA_PORT})")
    parser.add_argument(
        "--metrics-port",
        type=int,
        metavar="PORT",
        help=f"/metrics, /health and /ready of each member ({METRICS_PORT}); -1 = none",
    )
    parser.add_argument(
        "--postgres-port",
        type=int,
        metavar="PORT",
        help=f"PostgreSQL's clients ({POSTGRES_PORT}); -1 = none",
    )
    parser.add_argument(
        "--http-port",
        type=int,
        metavar="PORT",
        help=f"the console and Drill's REST interface, on 127.0.0.1 ({HTTP_PORT})",
    )
    parser.add_argument(
        "--no-console",
        action="store_true",
        help="no web page; Drill's REST interface only if --http-port is given",
    )
    parser.add_argument("--log-dir", metavar="DIR", help="keep the members' logs here")
    parser.add_argument("--log-format", choices=("text", "json"), help="(text)")
    parser.add_argument(
        "--timeout",
        type=float,
        default=START_TIMEOUT,
        metavar="SECONDS",
        help=f"to start ({START_TIMEOUT:g})",
    )
    parser.add_argument(
        "--backups", type=int, metavar="N", help="copies of each partition besides the primary"
    )
    parser.add_argument(
        "--minimum-members", type=int, metavar="N", help="with fewer, nobody reads or writes (1)"
    )
    parser.add_argument(
        "--data",
        dest="data_dir",
        metavar="DIR",
        help="keep the members' logs of what is written here, and start again from them",
    )
    parser.add_argument(
        "--log-archive",
        metavar="PLACE",
        help="keep complete pieces of the logs here, a folder or a URL, for restores to any moment",
    )
    parser.add_argument("--log-sync", choices=("fsync", "os", "none"), help="(fsync)")
    parser.add_argument(
        "--start-without",
        metavar="MEMBERS",
        help="start again without these members, such as 2,3: what only they have is lost",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings of the members, TOML")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    places = _DEFAULTS | (read_config(options.config) if options.config else {})
    given = {name: getattr(options, name) for name in _DEFAULTS}
    places |= {name: value for name, value in given.items() if value is not None}
    settings: dict[str, Any] = {}
    for name in (
        "log_format",
        "backups",
        "minimum_members",
        "data_dir",
        "log_sync",
        "log_archive",
        "start_without",
    ):
        if getattr(options, name) is not None:
            settings[name] = getattr(options, name)
    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    _handle_signals(_interrupt)  # a start that takes long, or hangs, can be given up
    with (
        start(
            **places,
            log_dir=options.log_dir,
            config=options.config,
            settings=settings,
            timeout=options.timeout,
        ) as cluster,
        _gateway(options.http_port, cluster, console=not options.no_console) as http,
    ):
        _handle_signals(on_signal)
        _announce(cluster, http, console=not options.no_console)
        _watch(cluster, stop)
        print("stopping", flush=True)
    return 0


def _watch(cluster: Cluster, stop: threading.Event) -> None:
    """Until ``stop``. A member that dies is told; the others go on as long as one is left."""
    known: set[int] = set()
    while not stop.wait(_WATCH_INTERVAL):
        dead = cluster.dead()
        if len(dead) == len(cluster.members):
            raise dead[max(dead)]
        for number in sorted(dead.keys() - known):
            print(f"{dead[number]}\nThe other members go on.", file=sys.stderr, flush=True)
        known = set(dead)


@contextmanager
def _gateway(port: int | None, cluster: Cluster, *, console: bool) -> Iterator[str]:
    """The address of console and REST interface; "" for none. Without a port in the options, they
    are left out where they cannot be had, and a line says why."""
    if port is None and not console:
        yield ""
        return
    with ExitStack() as stack:
        try:
            serving = _serving(port, cluster, console=console)
            address = stack.enter_context(serving)
        except (ConnectionRefused, NotSupported) as error:
            if port is not None:
                raise
            other = (
                "" if isinstance(error, NotSupported) else " (--http-port PORT takes another one)"
            )
            print(f"no console: {error}{other}", file=sys.stderr, flush=True)
            address = ""
        yield address


def _serving(port: int | None, cluster: Cluster, *, console: bool) -> AbstractContextManager[str]:
    try:
        from remuda.cli.gateway_command import beside  # noqa: PLC0415 (its packages are an extra)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("remuda"):
            raise
        raise NotSupported(
            f"it needs the package {error.name}, which is not installed",
            hint='Install "remuda[gateway]".',
        ) from error
    addresses = ",".join(member.user for member in cluster.members)
    return beside(
        addresses,
        HTTP_PORT if port is None else port,
        None,
        console=console,
        **cluster.connect_options,
    )


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _handle_signals(handler: Callable[[int, FrameType | None], None]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handler)


def read_config(path: Path) -> dict[str, Any]:
    """Number and places of the members, from a member's configuration file.

    The members read the rest of it themselves. Raises InputError for a wrong file.
    """
    member_config(file=path)
    with path.open("rb") as file:
        section = tomllib.load(file).get("member", {})
    if "cluster_size" in section:
        section["members"] = section["cluster_size"]
    return {name: section[name] for name in _DEFAULTS if name in section}


def _announce(cluster: Cluster, http: str, *, console: bool) -> None:
    for member in cluster.members:
        print(
            f"member {member.number}: clients {member.user}, members {member.control}, "
            f"data {member.data}"
            + (f", metrics {member.metrics}" if member.metrics else "")
            + (f", PostgreSQL {member.postgres}" if member.postgres else "")
        )
    if http and console:
        print(f"console: http://{http}/")
    if http:
        print(f"REST: http://{http}/query.json")
    print(f"ready: remuda sql --connect {cluster.address}   (Ctrl-C stops)")
    sys.stdout.flush()
