"""SET, RESET, SHOW of settings, PREPARE, EXECUTE, DEALLOCATE, DISCARD: a client's session.

The session travels with the client's statements, and back with the result of one that changes it:
members keep none, so any member serves the next statement.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from remuda.catalog.catalog import Catalog
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import NULL, VARCHAR, SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.errors import (
    DuplicateStatement,
    RemudaError,
    SqlSyntaxError,
    UndefinedSetting,
    UndefinedStatement,
)
from remuda.execution.evaluate.compile import evaluate_constant
from remuda.member.base.core import Core
from remuda.member.sessions.open_transaction import OpenTransaction
from remuda.member.sessions.statement import Statement, parameter_types
from remuda.member.statements.plans import Plans
from remuda.rpc.client_channel import ClientChannel
from remuda.session.answers import Answer, answer_rows
from remuda.session.client_session import ClientSession, PreparedText
from remuda.session.in_zone import parts_in_zone
from remuda.session.parameters import Moment, clock_values, with_clock_parameters
from remuda.session.planning import Planned
from remuda.session.settings import SETTINGS, Meaning, checked, setting_of
from remuda.sql.binder import bind_arguments
from remuda.sql.scope.notices import WARNING, Notice
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees.session import (
    DeallocateTree,
    DiscardTree,
    ExecuteTree,
    ListenTree,
    NotifyTree,
    PrepareTree,
    SessionTree,
    SetConstraintsTree,
    SetTree,
    ShowSettingTree,
    UnlistenTree,
)

_CONSTRAINTS_ALONE: Final = Notice(
    "SET CONSTRAINTS can only be used in transaction blocks", "25P01", WARNING
)
_LOCAL_ALONE: Final = Notice("SET LOCAL can only be used in transaction blocks", "25P01", WARNING)
Changed: TypeAlias = tuple[ClientSession, str]
"""The session from now on, and the tag of the statement."""


class Sessions:
    def __init__(
        self,
        core: Core,
        plans: Plans,
        discard: Sequence[Callable[[ClientChannel], None]],
        defer: Callable[[OpenTransaction, SetConstraintsTree], Awaitable[None]],
    ) -> None:
        """``discard`` frees what a session holds besides its values, for DISCARD ALL; ``defer``
        carries out SET CONSTRAINTS in a transaction."""
        self._defer = defer
        self._core = core
        self._plans = plans
        self._discard = discard

    async def changed(self, statement: Statement, tree: SessionTree) -> Changed:
        """What a statement that gives no rows makes of the session."""
        session = statement.session
        try:
            match tree:
                case SetTree():
                    session, tag = self._set(statement, tree)
                    if statement.transaction is not None:
                        statement.transaction.goes_on_with(session)
                    return session, tag
                case PrepareTree():
                    local, user = statement.local, statement.user
                    return await self._prepare(session, tree, local=local, user=user)
                case DeallocateTree(name=None):
                    return session.without_prepared(), "DEALLOCATE ALL"
                case DeallocateTree(name=str(name)):
                    self._named(session, name)
                    return session.with_prepared(name, None), "DEALLOCATE"
                case DiscardTree(what):
                    if what == "ALL":
                        for each in self._discard:
                            each(statement.channel)
                    return _discarded(session, what), f"DISCARD {what}"
                case SetConstraintsTree():
                    if statement.transaction is None:
                        statement.progress.notice(_CONSTRAINTS_ALONE)
                    else:
                        await self._defer(statement.transaction, tree)
                    return session, "SET CONSTRAINTS"
                case _:
                    raise AssertionError(f"{type(tree).__name__} gives rows")
        except RemudaError as error:
            raise _located(error, statement, tree) from None

    def _set(self, statement: Statement, tree: SetTree) -> Changed:
        session = statement.session
        tag = tree.tag
        if tree.name is None:
            return session.reset(), tag
        setting = setting_of(tree.name)
        now = session.value(setting)
        value = None if tree.value is None else checked(setting, tree.value, now)
        if tree.local:
            statement.progress.notice(_LOCAL_ALONE)
            return session, tag
        return session.with_value(setting, value), tag

    async def _prepare(
        self, session: ClientSession, tree: PrepareTree, *, local: bool, user: str
    ) -> Changed:
        if tree.name in session.prepared:
            raise DuplicateStatement(f'prepared statement "{tree.name}" already exists')
        types = tree.types
        if types is not None:
            types = (*types, *[NULL] * tree.parameters)[: tree.parameters]
        # for its errors
        await self._plans.plan(
            tree.statement, types, local=local, user=user, meaning=session.meaning
        )
        made = session.with_prepared(tree.name, PreparedText(tree.statement.strip(), types))
        return made, "PREPARE"

    async def prepared(
        self, statement: Statement, tree: ExecuteTree
    ) -> tuple[Statement, Planned, tuple[PhysicalValue, ...]]:
        """The statement that EXECUTE stands for, its plan, and its parameters."""
        try:
            named = self._named(statement.session, tree.name)
            text = tree.prefix + named.text
            found = await self._planned(text, named, statement)
            types = parameter_types(found)
            self._check_count(tree, types)
            own = statement.session.definitions
            catalog = self._core.access.catalog(statement.user, own)
            values = _argument_values(
                statement.text,
                tree,
                types,
                catalog,
                statement.moment,
                meaning=statement.session.meaning,
            )
        except RemudaError as error:
            raise _located(error, statement, tree) from None
        return replace(statement, text=text, values=values, types=types), found, values

    async def _planned(self, text: str, named: PreparedText, statement: Statement) -> Planned:
        """Places in the prepared text mean nothing to who sent EXECUTE."""
        try:
            return await self._plans.plan(
                text,
                named.types,
                local=statement.local,
                user=statement.user,
                meaning=statement.session.meaning,
            )
        except RemudaError as error:
            raise error.at(None, None) from error.__cause__

    @staticmethod
    def _named(session: ClientSession, name: str) -> PreparedText:
        found = session.prepared.get(name)
        if found is None:
            raise UndefinedStatement(
                f'prepared statement "{name}" does not exist',
                hint=did_you_mean(name, session.prepared),
            )
        return found

    @staticmethod
    def _check_count(tree: ExecuteTree, types: tuple[SqlType, ...]) -> None:
        if len(tree.arguments) != len(types):
            raise SqlSyntaxError(
                f'wrong number of parameters for prepared statement "{tree.name}"',
                detail=f"Expected {len(types)} parameters but got {len(tree.arguments)}.",
            )


def shown_settings(statement: Statement, tree: ShowSettingTree) -> Answer:
    session = statement.session
    if tree.name is None:
        columns = tuple(Column(name, VARCHAR) for name in ("name", "setting", "description"))
        rows = [(s.name, session.value(s), s.summary) for s in SETTINGS.values()]
        own = sorted(set(session.values) - set(SETTINGS))
        rows += [(name, session.values[name], "set by the client") for name in own]
        return answer_rows(columns, sorted(rows, key=lambda row: str(row[0]).lower()))
    try:
        setting = setting_of(tree.name)
        if setting.name not in session.values and "." in setting.name:
            raise UndefinedSetting(f'unrecognized configuration parameter "{setting.name}"')
    except RemudaError as error:
        raise _located(error, statement, tree) from None
    return answer_rows((Column(setting.name, VARCHAR),), [(session.value(setting),)])


def _located(error: RemudaError, statement: Statement, tree: SessionTree) -> RemudaError:
    """With the place of the name, if the error has none yet."""
    silent = DiscardTree | ListenTree | NotifyTree | UnlistenTree | SetConstraintsTree
    if isinstance(tree, silent):
        return error
    if error.position is None and error.statement is None:
        return error.at(tree.position, statement.text)
    return error


def _argument_values(
    text: str,
    tree: ExecuteTree,
    types: Sequence[SqlType],
    catalog: Catalog,
    moment: Moment,
    *,
    meaning: Meaning,
) -> tuple[PhysicalValue, ...]:
    """The values of EXECUTE's arguments. Raises InputErrors and DataErrors."""
    try:
        zone, path, database = meaning.zone, meaning.path, meaning.database
        found = bind_arguments(text, tree, types, catalog, zone=zone, path=path, database=database)
        bound_arguments = parts_in_zone(found, zone)
    except RemudaError as error:
        raise error.within(text) from error.__cause__
    bound_arguments, clock = with_clock_parameters(bound_arguments, 0)
    moments = clock_values(clock, moment)
    return tuple(evaluate_constant(argument, moments) for argument in bound_arguments)


def _discarded(session: ClientSession, what: str) -> ClientSession:
    if what == "ALL":
        return replace(session.without_prepared().reset(), numbers={}, temporary=None)
    if what == "TEMP":
        return session.with_temporary(None)
    return replace(session, numbers={}) if what == "SEQUENCES" else session
