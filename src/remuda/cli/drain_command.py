"""``remuda drain MEMBER``: a member gives everything away and leaves; progress, and the end."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any, Final

from remuda.cli.connecting import add_connect, client_of
from remuda.cli.results.table import counted
from remuda.client.blocking.client import Client
from remuda.errors import TransientError

EXIT_NOT_DONE: Final = 1
LOOK_EVERY: Final = 0.5
TIMEOUT: Final = 600.0
_STATE: Final = "SELECT state, partitions, backups FROM sys.members WHERE member = ?"
_LEFT: Final = (
    "SELECT min(view), count(*), count(*) FILTER (WHERE state <> 'alive') FROM sys.members"
)


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "drain",
        help="have a member leave in order",
        description="A member begins nothing new, lets open work end, gives its copies of "
        "partitions to the others and leaves; its process ends. Users need the role admin on "
        "everything.",
    )
    parser.add_argument("member", type=int, help="its number, as remuda status shows it")
    parser.add_argument(
        "--timeout",
        type=float,
        default=TIMEOUT,
        metavar="SECONDS",
        help="how long to watch (%(default)s); the member goes on leaving afterwards",
    )
    add_connect(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with client_of(options, "remuda drain") as client:
        client.activity.drain(options.member)
        print(f"member {options.member} is leaving", flush=True)
        return _watch(client, options.member, options.timeout)


def _watch(client: Client, member: int, timeout: float) -> int:
    deadline, told = time.monotonic() + timeout, ""
    while time.monotonic() < deadline:
        try:
            rows = client.sql(_STATE, (member,)).fetchall()
            if not rows:
                return _end(client, member)
            _, partitions, backups = rows[0]
            line = (
                f"member {member} has {counted(partitions, 'partition')} and "
                f"{counted(backups, 'backup')} left to give away"
            )
        except TransientError:  # the members are about to install the next view
            line = told
        if line != told:
            print(line, flush=True)
            told = line
        time.sleep(LOOK_EVERY)
    print(
        f"member {member} has not left within {timeout:g} s; it goes on. remuda status shows it.",
        file=sys.stderr,
    )
    return EXIT_NOT_DONE


def _end(client: Client, member: int) -> int:
    view, members, others = client.sql(_LEFT).fetchall()[0]
    more = f", {others} of them not alive" if others else ""
    print(f"member {member} has left: view {view} has {counted(members, 'member')}{more}")
    return 0
