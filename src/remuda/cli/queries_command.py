"""``remuda queries`` lists the statements that run on a cluster; ``remuda queries cancel ID`` ends
a statement or a transaction of anybody."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Final

from remuda.cli.connecting import add_connect, client_of
from remuda.cli.results.table import Alignment, counted, harmless_name, text_table
from remuda.client.blocking.client import Client
from remuda.client.values.row import Row
from remuda.plan.explain.explain import size_text

TEXT_SHOWN: Final = 60
"""Characters of a statement."""
_LEFT, _RIGHT = Alignment.LEFT, Alignment.RIGHT


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "queries",
        help="show what runs, and cancel it",
        description="Statements that run, open transactions and waits for locks, of the whole "
        "cluster. Users see the texts of their own statements; the role admin shows all.",
    )
    add_connect(parser)
    parser.set_defaults(run=run, act=_show)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    about = "end a statement, or roll a transaction back, by its id"
    cancel = actions.add_parser(
        "cancel",
        help=about,
        description=about.capitalize() + ".",
        argument_default=argparse.SUPPRESS,
    )
    cancel.add_argument("id", help="as remuda queries shows it")
    add_connect(cancel)
    cancel.set_defaults(act=_cancel)


def run(options: argparse.Namespace) -> int:
    with client_of(options, "remuda queries") as client:
        status: int = options.act(client, options)
        return status


def _cancel(client: Client, options: argparse.Namespace) -> int:
    """A transaction's id has a colon, that of a statement has none."""
    if ":" in options.id:
        client.activity.cancel_transaction(options.id)
        print(f"transaction {options.id} is rolled back")
    else:
        client.activity.cancel_query(options.id)
        print(f"statement {options.id} is cancelled")
    return 0


def _show(client: Client, _options: argparse.Namespace) -> int:
    activity = client.activity
    queries, transactions, waits = (
        activity.queries(), activity.transactions(), activity.lock_waits()
    )  # fmt: skip
    queries = [row for row in queries if row.query is None or not _own(row)]
    silent = sorted({row.member for row in (*queries, *transactions) if row.state == "no answer"})
    queries = [row for row in queries if row.query is not None]
    transactions = [row for row in transactions if row.transaction is not None]
    sys.stdout.write(
        "\n".join([*_queries(queries), *_transactions(transactions), *_waits(waits)])
        or "nothing runs\n"
    )
    for member in silent:
        print(f"member {member} did not answer: what it runs is not shown", file=sys.stderr)
    return 0


def _own(row: Row) -> bool:
    """This command's own statement."""
    return bool(row.text == "SELECT * FROM sys.queries ORDER BY started")


def _queries(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    lines = [
        (
            row.query, str(row.member), str(row.pid or ""), harmless_name(row.user_name), row.state,
            f"{row.seconds:,.1f}", f"{row.rows:,}", size_text(row.memory), _short(row.text),
        )
        for row in rows
    ]  # fmt: skip
    names = ("statement", "member", "pid", "user", "state", "seconds", "rows", "memory", "text")
    sides = (_LEFT, _RIGHT, _RIGHT, _LEFT, _LEFT, _RIGHT, _RIGHT, _RIGHT, _LEFT)
    return [text_table(names, lines, sides)]


def _transactions(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    lines = [
        (
            row.transaction, str(row.member), str(row.pid or ""), harmless_name(row.user_name),
            row.state.lower(), f"{row.seconds:,.1f}", f"{row.idle:,.1f}",
            counted(row.writes, "key"), harmless_name(row.label),
        )
        for row in rows
    ]  # fmt: skip
    names = ("transaction", "member", "pid", "user", "state", "seconds", "idle", "writes", "label")
    sides = (_LEFT, _RIGHT, _RIGHT, _LEFT, _LEFT, _RIGHT, _RIGHT, _RIGHT, _LEFT)
    return [text_table(names, lines, sides)]


def _waits(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    lines = [
        (
            str(row.pid or ""), row.transaction or "", harmless_name(row.map),
            harmless_name(row.key or "(the map)"), f"{row.seconds or 0:,.1f}",
            row.blocking_transaction or "", str(row.blocking_pid or ""),
            row.blocking_state or "",
        )
        for row in rows
    ]  # fmt: skip
    names = ("pid", "waits", "map", "key", "seconds", "for", "pid", "which is")
    sides = (_RIGHT, _LEFT, _LEFT, _LEFT, _RIGHT, _LEFT, _RIGHT, _LEFT)
    return [text_table(names, lines, sides)]


def _short(text: str) -> str:
    line = harmless_name(" ".join(text.split()))
    return line if len(line) <= TEXT_SHOWN else line[: TEXT_SHOWN - 1] + "…"
