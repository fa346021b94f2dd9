"""``client.activity``: connections, statements, transactions and locks, and how to end them.

All of it is SQL underneath (``docs/operate.md``): the methods write the statement and give its
rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from remuda.client.values.row import Row
from remuda.errors import InputError

Rows: TypeAlias = list[Row]

QUERIES: Final = "SELECT * FROM sys.queries ORDER BY started"
TRANSACTIONS: Final = "SELECT * FROM sys.transactions ORDER BY started"
CLIENTS: Final = "SELECT * FROM sys.clients ORDER BY member, since"
LOCKS: Final = "SELECT * FROM sys.locks ORDER BY map, key, granted DESC, since"
LOG_LEVELS: Final = "SELECT * FROM sys.log_levels ORDER BY member, part"
LEVELS: Final = ("debug", "info", "warning", "error", "default")
FINISH_UPGRADE: Final = "ALTER CLUSTER FINISH UPGRADE"
RESET_STATEMENTS: Final = "ALTER CLUSTER RESET STATEMENT STATISTICS"
LOCK_WAITS: Final = "SELECT * FROM sys.lock_waits ORDER BY since"


class Activity:
    """Made by ``Client.activity``. A member that does not answer within two seconds has one row
    whose state is "no answer". Users see and end their own work; that of others needs the role
    admin."""

    def __init__(self, rows: Callable[[str], Rows]) -> None:
        self._rows = rows

    def queries(self) -> Rows:
        """The statements that run on the whole cluster, the oldest first: ``sys.queries``."""
        return self._rows(QUERIES)

    def transactions(self) -> Rows:
        """The open transactions, the oldest first: ``sys.transactions``."""
        return self._rows(TRANSACTIONS)

    def clients(self) -> Rows:
        """The connections of all clients: ``sys.clients``."""
        return self._rows(CLIENTS)

    def locks(self) -> Rows:
        """The locks that are held and awaited: ``sys.locks``."""
        return self._rows(LOCKS)

    def lock_waits(self) -> Rows:
        """One row for each pair of a waiter and a holder: ``sys.lock_waits``."""
        return self._rows(LOCK_WAITS)

    def cancel_query(self, query: str) -> None:
        """End a statement of anybody, by its id; it fails with QueryCanceled. UndefinedObject when
        it does not run, WrongState when it is being committed, InsufficientPrivilege."""
        self._rows(cancel_query_text(query))

    def cancel_transaction(self, transaction: str) -> None:
        """Roll an open transaction of anybody back, by its id, and free its locks. Raises as
        ``cancel_query``."""
        self._rows(cancel_transaction_text(transaction))

    def terminate(self, pid: int) -> bool:
        """End a connection, by the ``pid`` of ``clients``, with what is open on it. False: there is
        no such connection. InsufficientPrivilege."""
        return bool(self._rows(terminate_text(pid))[0][0])

    def reset_statement_statistics(self) -> None:
        """Have all members forget the sums of ``sys.statement_statistics``.
        InsufficientPrivilege; MemberUnavailable when all others have done so."""
        self._rows(RESET_STATEMENTS)

    def log_levels(self) -> Rows:
        """The parts of the members' logs that have a level of their own: ``sys.log_levels``."""
        return self._rows(LOG_LEVELS)

    def set_log_level(self, level: str, part: str = "", member: int | None = None) -> None:
        """Change the least level that a part of the log tells, until the process ends: "debug",
        "info", "warning", "error", or "default" for what it was. ``part`` is named as in the log
        ("member.membership"); "": all parts that have no level of their own. ``member`` None: all
        members. UndefinedObject for a part or a member that is not there, InsufficientPrivilege,
        MemberUnavailable when all others have done so."""
        self._rows(log_level_text(level, part, member))

    def drain(self, member: int) -> None:
        """Have a member give everything away and leave, by its number; returns when it has begun
        to. It has left when ``sys.members`` does not show it any more. UndefinedObject, WrongState
        for the last member that stays."""
        self._rows(drain_text(member))

    def finish_upgrade(self) -> None:
        """Have the cluster work in the version of its members' release (docs/upgrade.md); returns
        when it does. Members of the release before cannot join any more. WrongState while a member
        has that release, InsufficientPrivilege."""
        self._rows(FINISH_UPGRADE)


def cancel_query_text(query: str) -> str:
    return f"CANCEL QUERY {_quoted(query, 'query')}"


def cancel_transaction_text(transaction: str) -> str:
    return f"CANCEL TRANSACTION {_quoted(transaction, 'transaction')}"


def terminate_text(pid: int) -> str:
    return f"SELECT pg_terminate_backend({_number(pid, 'pid')})"


def log_level_text(level: str, part: str, member: int | None) -> str:
    """Raises InputError."""
    if level not in LEVELS:
        raise InputError(f"there is no level {level!r}", hint=f"Levels are {', '.join(LEVELS)}.")
    of = f" FOR {_quoted(part, 'part of the log')}" if part else ""
    on = "" if member is None else f" ON MEMBER {_number(member, 'member')}"
    return f"ALTER CLUSTER SET LOG LEVEL {level}{of}{on}"


def drain_text(member: int) -> str:
    return f"ALTER CLUSTER DRAIN MEMBER {_number(member, 'member')}"


def _quoted(text: str, what: str) -> str:
    if not isinstance(text, str):
        raise InputError(f"the name of a {what} must be text, not {text!r}")
    return "'" + text.replace("'", "''") + "'"


def _number(value: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{what} must be a whole number, not {value!r}")
    return value
