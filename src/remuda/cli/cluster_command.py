"""``remuda cluster``: decisions of an administrator about a running cluster."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from remuda.cli.connecting import add_connect, client_of
from remuda.client.blocking.client import Client

ACCEPT = "ALTER CLUSTER ACCEPT LOST PARTITIONS"
EXIT_NOT_DONE = 1


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "cluster",
        help="accept the loss of partitions",
        description="Decisions about a running cluster. Users need the role admin on everything.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    about = "let partitions whose every copy is lost begin again without entries"
    accept = actions.add_parser("accept-loss", help=about, description=about.capitalize() + ".")
    accept.add_argument("--yes", action="store_true", help="do it; without, only say what is lost")
    add_connect(accept)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with client_of(options, "remuda cluster") as client:
        return _accept_loss(client, yes=options.yes)


def _accept_loss(client: Client, *, yes: bool) -> int:
    lost, away, awaited, total = client.sql(
        "SELECT count(*) FILTER (WHERE state = 'lost'), count(awaited), min(awaited), count(*)"
        " FROM sys.partitions"
    ).fetchall()[0]
    if not lost + away:
        print("no partition is lost")
        return 0
    if not yes:
        if away:
            print(
                f"{away} of {total} partitions are unreachable: {awaited}, and perhaps others, may"
                " live and bring their copies back.",
                file=sys.stderr,
            )
        if lost:
            print(
                f"{lost} of {total} partitions are lost, with every entry that they held.",
                file=sys.stderr,
            )
        print(
            "With --yes they begin again without entries, and the cluster serves everything. Copies"
            " that come back afterwards are void, for ever.",
            file=sys.stderr,
        )
        return EXIT_NOT_DONE
    done = client.sql(ACCEPT).rowcount
    print(f"{done} of {total} partitions have begun again without entries")
    return 0
