"""Items of a SELECT that act when its rows are there: ``set_config``, ``pg_sleep``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

from remuda.errors import NullNotAllowed, QueryTimeout
from remuda.member.sessions.statement import Statement
from remuda.session.client_session import ClientSession
from remuda.session.planning import PlannedQuery
from remuda.session.settings import checked, setting_of
from remuda.session.shape import ResultShape
from remuda.sql.scope.statements import NamedSettingChange, SettingChange, Sleep
from remuda.sql.text.places import position_at
from remuda.sql.trees.session import SetTree

SetOfTransaction: TypeAlias = Callable[[Statement, SetTree], bool]


async def acted(
    statement: Statement,
    found: PlannedQuery,
    shape: ResultShape,
    rows: list[list[pa.Array]],
    of_transaction: SetOfTransaction,
) -> tuple[ResultShape, ClientSession | None]:
    """Sleep and set what the items say; ``shape``, whose ``rows`` get what became of it, and the
    session from now on (None: it is as it was). ``of_transaction`` sets what belongs to the open
    transaction, and says whether it was such. Raises QueryTimeout, and the errors of
    ``checked``."""
    await _slept(statement, found, rows)
    return shape, _assigned(statement, found, rows, of_transaction)


def _assigned(
    statement: Statement,
    found: PlannedQuery,
    rows: list[list[pa.Array]],
    of_transaction: SetOfTransaction,
) -> ClientSession | None:
    """Set what ``set_config`` says with each row; None: the session is as it was. The places
    of the calls get the values in their normal form. ``of_transaction`` sets what belongs to
    the open transaction, and says whether it was such."""
    session: ClientSession | None = None
    for change in found.effects:
        if not isinstance(change, SettingChange | NamedSettingChange):
            continue
        for batch in rows:
            given = batch[change.column].to_pylist()
            pairs = given if isinstance(change, NamedSettingChange) else _named(change, given)
            shown: list[str] = []
            for name, written in pairs:
                setting = setting_of(_required(name))
                now = statement.session.value(setting)
                value = checked(setting, "" if written is None else written, now)
                shown.append(value)
                tree = SetTree(setting.name, position_at(statement.text, 0), value, change.local)
                current = statement.sent if session is None else session
                outside = change.local and statement.transaction is None
                if not outside and not of_transaction(statement, tree):
                    session = current.with_value(setting, value)
            batch[change.column] = pa.array(shown, pa.string())
    return session


def _named(change: SettingChange, values: list[str | None]) -> list[tuple[str, str | None]]:
    return [(change.name, value) for value in values]


def _required(name: str | None) -> str:
    if name is None:
        raise NullNotAllowed("SET requires parameter name", hint="pg_settings lists the names.")
    return name


async def _slept(statement: Statement, found: PlannedQuery, rows: list[list[pa.Array]]) -> None:
    """Wait as ``pg_sleep`` says with each row; its places become empty texts. Raises QueryTimeout,
    and the error of a statement that is cancelled meanwhile."""
    seconds = 0.0
    for sleep in found.effects:
        if isinstance(sleep, Sleep):
            for batch in rows:
                wanted = batch[sleep.column].to_pylist()
                seconds += sum(max(0.0, each) for each in wanted if each is not None)
                empty = [None if each is None else "" for each in wanted]
                batch[sleep.column] = pa.array(empty, pa.string())
    if seconds:
        try:
            async with asyncio.timeout(statement.timeout):
                await statement.interruptible(asyncio.sleep(seconds))
        except TimeoutError:
            raise QueryTimeout("canceling statement due to statement timeout") from None
