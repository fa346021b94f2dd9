"""The modes of transactions: those of a session, and SET TRANSACTION in an open one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from remuda.errors import ActiveTransaction, NotSupported
from remuda.member.sessions.open_transaction import OpenTransaction
from remuda.session.client_session import ClientSession
from remuda.session.settings import SETTINGS
from remuda.transaction.isolation import Isolation, Modes

_LEVELS: Final = {level.value: level for level in Isolation}
MODES: Final[Mapping[str, Callable[[str], Modes]]] = {
    "transaction_isolation": lambda value: Modes(_LEVELS[value]),
    "transaction_read_only": lambda value: Modes(read_only=value == "on"),
    "transaction_deferrable": lambda value: Modes(deferrable=value == "on"),
}
"""The modes that a SET of one of these asks for."""


def default_modes(session: ClientSession) -> Modes:
    """Those of a transaction that names none."""
    level = session.value(SETTINGS["default_transaction_isolation"])
    read_only = session.value(SETTINGS["default_transaction_read_only"]) == "on"
    deferrable = session.value(SETTINGS["default_transaction_deferrable"]) == "on"
    return Modes(_LEVELS[level], read_only, deferrable=deferrable)


def change_modes(transaction: OpenTransaction, modes: Modes) -> None:
    """SET TRANSACTION in an open one. Raises FailedTransaction, ActiveTransaction for a change that
    comes too late, NotSupported."""
    transaction.check()
    level, read_only = modes.isolation, modes.read_only
    if level not in (None, transaction.isolation):
        if transaction.asked:
            raise ActiveTransaction(
                "SET TRANSACTION ISOLATION LEVEL must be called before any query"
            )
        if transaction.read_only_at:
            raise ActiveTransaction(
                "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction"
            )
    if read_only is False and transaction.read_only:
        if transaction.read_only_at:
            raise ActiveTransaction(
                "cannot set transaction read-write mode inside a read-only transaction"
            )
        if transaction.asked:
            raise ActiveTransaction("transaction read-write mode must be set before any query")
    pessimistic = modes.pessimistic
    if pessimistic is not None and pessimistic is not transaction.pessimistic:
        if transaction.asked:
            raise ActiveTransaction(
                "whether a transaction is PESSIMISTIC must be set before any query"
            )
        transaction.pessimistic = pessimistic
    modes = modes.over(transaction.modes)
    if transaction.pessimistic:
        modes = modes.locking(transaction.defaults)
    transaction.modes = modes


def with_defaults(session: ClientSession, modes: Modes) -> ClientSession:
    """With the modes of SET SESSION CHARACTERISTICS as its defaults. Raises NotSupported."""
    if modes.pessimistic is not None:
        raise NotSupported(
            "PESSIMISTIC and OPTIMISTIC are said of one transaction",
            hint="BEGIN TRANSACTION PESSIMISTIC.",
        )
    if modes.isolation is not None:
        setting = SETTINGS["default_transaction_isolation"]
        session = session.with_value(setting, modes.isolation.value)
    for name in ("read_only", "deferrable"):
        value = getattr(modes, name)
        if value is not None:
            setting = SETTINGS[f"default_transaction_{name}"]
            session = session.with_value(setting, "on" if value else "off")
    return session
