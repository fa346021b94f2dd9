"""``remuda status``: members, partitions, memory and maps of a cluster."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from remuda.cli.connecting import add_connect, client_of
from remuda.cli.results.table import Alignment, harmless_name, text_table
from remuda.client.blocking.client import Client
from remuda.datatypes.timestamp import to_micros
from remuda.errors import InputError, RemudaError
from remuda.plan.explain.explain import size_text

MEMBERS_QUERY: Final = (
    "SELECT member, state, cause, storage_held, storage_limit, writes_refused, memory_held,"
    " memory_limit, spilled, queued FROM sys.members"
)
MEMORY_COLUMNS: Final = 7
"""Of the table of members: its stored bytes, and the memory that its queries hold."""
MAPS_QUERY: Final = (
    "SELECT name, key, columns, rows, bytes, bytes_limit, backup_bytes, kind FROM sys.maps"
)
LOGS_QUERY: Final = (
    "SELECT member, sync, records, durable, waiting, bytes, checkpoint FROM sys.logs"
)


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "status", help="members and maps of a cluster", description="Members and maps."
    )
    parser.add_words("words", metavar="ADDRESS", help="where to connect (as --connect)")
    add_connect(parser, None)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if len(options.words) > 1:
        raise InputError(
            f"one address is enough, and {len(options.words)} are given",
            hint="Name several members as one list: host:port,host2:port.",
        )
    with client_of(options, "remuda status", *options.words) as client:
        sys.stdout.write(describe(client))
    return 0


def describe(client: Client) -> str:
    """The status as text: lines about the view and what is wrong in it, a table of members, a
    table of maps."""
    info = client.cluster_info()
    view = info.view
    clock = datetime.fromtimestamp(to_micros(info.clock) / 1e6, UTC)
    owned = Counter(view.owners)
    memory, suspected, silent = _seen(client)
    members = [
        (
            str(member.number),
            f"{member.host}:{member.user_port}",
            f"{member.host}:{member.control_port}",
            f"{member.host}:{member.data_port}",
            str(owned[member.number]),
            str(len(view.backed_up_by(member.number))),
            *(memory.get(member.number) or ("?",) * MEMORY_COLUMNS),
        )
        for member in view.members
    ]
    right, left = Alignment.RIGHT, Alignment.LEFT
    head = (
        f"view {view.number}, {len(view.members)} members, {len(view.owners)} partitions, "
        f"{view.backups} backups, catalog version {info.catalog_version}, "
        f"clock {clock:%Y-%m-%d %H:%M:%S} UTC\n"
    )
    if view.lost:
        head += (
            f"{len(view.lost)} partitions are LOST, with every copy of them "
            "(remuda cluster accept-loss lets them begin again without entries)\n"
        )
    if view.unreachable:
        names = ", ".join(str(member) for member in view.former)
        head += (
            f"{len(view.unreachable)} partitions are UNREACHABLE: no member has a copy; these may"
            f" come back with theirs: {names} (if their processes have ended, remuda cluster"
            " accept-loss gives the rows up)\n"
        )
    short = sum(0 < len(row) < min(view.backups + 1, len(view.members)) for row in view.replicas)
    if short:
        head += f"{short} partitions are short of backups\n"
    for number, cause in suspected.items():
        head += f"member {number} is SUSPECTED: {cause}\n"
    for number in silent:
        head += f"member {number} did not answer: rows and bytes below lack its share\n"
    if away := sum(owned[number] for number in suspected):
        head += f"{away} partitions have a suspected primary: rows and bytes below lack them\n"
    parts = [
        head,
        text_table(
            (
                "member",
                "clients",
                "members",
                "data",
                "partitions",
                "backups",
                "stored",
                "of",
                "refused",
                "memory of queries",
                "of",
                "on disk",
                "waiting",
            ),
            members,
            (right, left, left, left, *[right] * (2 + MEMORY_COLUMNS)),
        ),
        *_logs(client),
        text_table(
            ("map", "key", "columns", "rows", "bytes", "of", "in backups", "layout"),
            _maps(client, sorted(schema.name for schema in info.maps)),
            (left, left, right, right, right, right, right, left),
        )
        if info.maps
        else "no maps\n",
    ]
    return "\n".join(parts)


def _seen(client: Client) -> tuple[dict[int, tuple[str, ...]], dict[int, str], list[int]]:
    """Of the members that answer: the bytes that they store and may store, and how many writes they
    refused; the memory that queries hold and may hold, their bytes on disk, and how many wait for
    memory. Of those that are suspected: why. And the others, which do not answer."""
    try:
        found = client.sql(MEMBERS_QUERY).fetchall()
    except RemudaError:
        return {}, {}, []
    memory: dict[int, tuple[str, ...]] = {}
    suspected: dict[int, str] = {}
    silent: list[int] = []
    for member, state, cause, stored, room, refused, held, limit, disk, queued in found:
        if state == "suspected":
            suspected[member] = cause or "it does not answer"
        elif stored is None:
            silent.append(member)
        else:
            kept = (size_text(stored or 0), size_text(room or 0), str(refused or 0))
            sizes = (size_text(held or 0), size_text(limit or 0), size_text(disk or 0))
            memory[member] = (*kept, *sizes, str(queued or 0))
    return memory, suspected, silent


def _logs(client: Client) -> list[str]:
    """A table of the logs of members that keep one and answer."""
    try:
        found = client.sql(LOGS_QUERY).fetchall()
    except RemudaError:
        return []
    rows = [
        (str(member), sync, str(records), str(records - durable), str(waiting), size_text(size),
         str(checkpoint) if checkpoint else "none")
        for member, sync, records, durable, waiting, size, checkpoint in sorted(found)
        if sync is not None
    ]  # fmt: skip
    right, left = Alignment.RIGHT, Alignment.LEFT
    names = ("log of", "sync", "records", "not synced", "waiting", "written", "checkpoint")
    return [text_table(names, rows, (right, left, *[right] * 5))] if rows else []


def _maps(client: Client, names: list[str]) -> list[Sequence[str]]:
    """Sums over the members that answer; "?" where there are none."""
    try:
        known = {row[0]: row[1:] for row in client.sql(MAPS_QUERY).fetchall()}
    except RemudaError:
        known = {}
    rows: list[Sequence[str]] = []
    for name in names:
        found = known.get(name)
        if found is None:
            rows.append((harmless_name(name), *("?",) * 7))
            continue
        key, columns, entries, size, limit, backups, kind = found
        rows.append(
            (
                harmless_name(name),
                harmless_name(key or ""),
                str(columns),
                f"{entries:,}",
                f"{size:,}",
                "" if limit is None else f"{limit:,}",
                f"{backups:,}",
                kind,
            )
        )
    return rows
