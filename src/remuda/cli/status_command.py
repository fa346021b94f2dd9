"""``remuda status``: members, partitions and maps of a cluster."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from remuda.cli.table import Alignment, harmless_name, text_table
from remuda.client.client import Client, connect
from remuda.datatypes.timestamp import to_micros
from remuda.errors import UndefinedMap
from remuda.limits import USER_PORT


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "status", help="members and maps of a cluster", description="Members and maps."
    )
    add_connect(parser)
    parser.set_defaults(run=run)


def add_connect(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--connect",
        default=f"127.0.0.1:{USER_PORT}",
        metavar="HOST:PORT",
        help=f"any member, or several with commas (127.0.0.1:{USER_PORT})",
    )


def run(options: argparse.Namespace) -> int:
    with connect(options.connect, application="remuda status") as client:
        sys.stdout.write(describe(client))
    return 0


def describe(client: Client) -> str:
    """The status as text: a line about the view, a table of members, a table of maps."""
    info = client.cluster_info()
    view = info.view
    clock = datetime.fromtimestamp(to_micros(info.clock) / 1e6, UTC)
    owned = Counter(view.owners)
    members = [
        (
            str(member.number),
            f"{member.host}:{member.user_port}",
            f"{member.host}:{member.control_port}",
            f"{member.host}:{member.data_port}",
            str(owned[member.number]),
        )
        for member in view.members
    ]
    right, left = Alignment.RIGHT, Alignment.LEFT
    head = (
        f"view {view.number}, {len(view.members)} members, {len(view.owners)} partitions, "
        f"catalog version {info.catalog_version}, clock {clock:%Y-%m-%d %H:%M:%S} UTC\n"
    )
    parts = [
        head,
        text_table(
            ("member", "clients", "members", "data", "partitions"),
            members,
            (right, left, left, left, right),
        ),
        text_table(
            ("map", "key", "columns", "rows", "bytes", "layout"),
            _maps(client, sorted(schema.name for schema in info.maps)),
            (left, left, right, right, right, left),
        )
        if info.maps
        else "no maps\n",
    ]
    return "\n".join(parts)


def _maps(client: Client, names: list[str]) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = []
    for name in names:
        try:
            found = client.describe_map(name)
        except UndefinedMap:  # dropped a moment ago
            continue
        schema = found.schema
        rows.append(
            (
                harmless_name(name),
                ", ".join(map(harmless_name, schema.key)),
                str(len(schema.columns)),
                f"{found.rows:,}",
                f"{found.bytes:,}",
                "replicated" if schema.replicated else "partitioned",
            )
        )
    return rows
