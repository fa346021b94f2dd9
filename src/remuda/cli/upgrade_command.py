"""``remuda upgrade``: the releases of the members, and the end of an upgrade."""

from __future__ import annotations

import argparse
from typing import Any, Final

from remuda.cli.connecting import add_connect, client_of
from remuda.cli.results.table import Alignment, harmless_name, text_table
from remuda.client.blocking.client import Client

_MEMBERS: Final = (
    "SELECT member, host || ':' || user_port::text, release, oldest_version, newest_version,"
    " cluster_version FROM sys.members ORDER BY member"
)


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "upgrade",
        help="show, or finish, the upgrade to a newer release",
        description="Show which release each member has, and in which version the cluster works. "
        "With --finish the cluster works in the version of its members from then on, and members "
        "of the release before cannot join any more: there is no way back. Users need the role "
        "admin on everything for that.",
    )
    parser.add_argument(
        "--finish", action="store_true", help="when all members have the newer release"
    )
    add_connect(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with client_of(options, "remuda upgrade") as client:
        if options.finish:
            client.activity.finish_upgrade()
        print(describe(client))
    return 0


def describe(client: Client) -> str:
    """The releases of the members as a table, and the next step of an upgrade."""
    rows = client.sql(_MEMBERS).fetchall()
    right, left = Alignment.RIGHT, Alignment.LEFT
    shown = [
        (str(number), harmless_name(address), release, _range(oldest, newest))
        for number, address, release, oldest, newest, _ in rows
    ]
    table = text_table(
        ("member", "address", "release", "versions"), shown, (right, left, left, left)
    )
    active, wanted = rows[0][5], max(row[4] for row in rows)
    lagging = sum(row[4] < wanted for row in rows)
    return f"{table}\nThe cluster works in version {active}. {_next(active, wanted, lagging)}"


def _range(oldest: int, newest: int) -> str:
    return str(newest) if oldest == newest else f"{oldest} to {newest}"


def _next(active: int, wanted: int, lagging: int) -> str:
    if wanted == active:
        return "All members can work in it, and nothing is to be finished."
    if lagging:
        verb = "has" if lagging == 1 else "have"
        return f"{lagging} of its members {verb} to be restarted with the newer release."
    return f"remuda upgrade --finish raises it to {wanted}: until then, members may go back."
