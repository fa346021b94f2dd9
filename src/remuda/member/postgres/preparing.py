"""Statements as PostgreSQL's clients prepare them: planned, with the types of their parameters and
the columns of their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from remuda.catalog.pg_types import type_oid
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import INTEGER_KINDS, NULL, VARCHAR, Kind, SqlType, array, enum_of
from remuda.datatypes.values import PhysicalValue
from remuda.errors import (
    AmbiguousFunction,
    IndeterminateType,
    RemudaError,
    TypeMismatch,
    UndefinedFunction,
    WrongParameters,
)
from remuda.member.base.core import Core
from remuda.member.postgres.portals import QUERY_PLAN, fields_of
from remuda.member.postgres.turn_forms import TurnForms
from remuda.member.sessions.statement import PlanTypes, parameter_types
from remuda.member.sessions.transaction_definitions import (
    are_transactional,
    can_be_transactional,
)
from remuda.member.statements.plans import Plans
from remuda.postgres.catalog_values import catalog_oid
from remuda.postgres.messages import Bind
from remuda.postgres.parameters import check_declared, declared_type, decode, is_readable
from remuda.postgres.prepared import Manner, Prepared
from remuda.session.answers import shown
from remuda.session.client_session import ClientSession, PreparedText
from remuda.session.index_answers import COLUMNS as INDEX_COLUMNS
from remuda.session.parameters import fitted
from remuda.session.planning import (
    Planned,
    PlannedChange,
    PlannedExplain,
    PlannedInsert,
    PlannedQuery,
)
from remuda.session.settings import Meaning, setting_of
from remuda.sql.parsing.parser import split_script
from remuda.sql.scope.statements import (
    AnalyzeStatement,
    CancelStatement,
    CopyStatement,
    LockStatement,
    PrivilegeStatement,
    SessionStatement,
    ShowKind,
    ShowStatement,
)
from remuda.sql.text.lexer import is_blank
from remuda.sql.trees.cursors import Declaration, FetchTree
from remuda.sql.trees.session import DiscardTree, ExecuteTree, ShowSettingTree
from remuda.sql.trees.transaction import (
    BeginTree,
    CommitTree,
    RollbackTree,
    SetTransactionTree,
    TransactionTree,
)

_BY_TYPES: Final = (
    AmbiguousFunction,
    IndeterminateType,
    TypeMismatch,
    UndefinedFunction,
    WrongParameters,
)
"""Errors of a statement that may be right once its parameters have types."""
_SETTINGS: Final = tuple(Column(name, VARCHAR) for name in ("name", "setting", "description"))


MANY_VALUES: Final = 1000
"""From so many parameters they are read on a thread: each takes some 5 microseconds."""


@dataclass(frozen=True, slots=True)
class Planning:
    """The plan of a prepared statement. ``types`` are those of the parameters of its plan,
    ``oids`` the types that the client has declared for them, or was told where they are types of
    PostgreSQL's catalog; 0: as the plan says."""

    text: str
    by: PlanTypes
    types: tuple[SqlType, ...]
    oids: tuple[int, ...]
    columns: Sequence[Column] | None = None
    """Those of the result; None: it gives no rows."""
    turns: TurnForms = field(default_factory=TurnForms, compare=False)


@dataclass(frozen=True, slots=True)
class Bound:
    """A statement with its values, which have the types ``types``."""

    planning: Planning
    by: PlanTypes
    types: tuple[SqlType, ...]
    values: tuple[PhysicalValue, ...]


def knowing(session: ClientSession, statements: Mapping[str, Prepared]) -> ClientSession:
    """The session with the statements that messages have prepared, as those of PREPARE."""
    for name, prepared in statements.items():
        if name and isinstance(prepared.token, Planning):
            known = PreparedText(prepared.text, prepared.token.by.types)
            session = session.with_prepared(name, known)
    return session


class Preparing:
    def __init__(self, core: Core, plans: Plans) -> None:
        self._core = core
        self._plans = plans

    async def prepare(
        self,
        text: str,
        oids: tuple[int, ...],
        session: ClientSession,
        user: str,
        cursor: Callable[[str], Sequence[Column] | None],
    ) -> Prepared:
        """``cursor`` gives the columns of an open cursor. Raises what planning raises,
        UndefinedType for parameters of unknown types, and InsufficientPrivilege."""
        enums = self._enums()
        sent = oids
        oids = tuple(0 if oid in enums else oid for oid in oids)
        check_declared(oids)
        if is_blank(text) or (text.rstrip().endswith(";") and not split_script(text)):
            return Prepared("", Manner.SESSION, oids, None, None)
        declared_types = [enums.get(oid) or declared_type(oid) for oid in sent]
        found, by = await self._planned(text, declared_types, user, session.meaning)
        self._core.access.check(user, found, session.definitions)
        types = parameter_types(found)
        if len(types) < MANY_VALUES:
            read_as, shown_oids = _oids(types, oids)
        else:
            read_as, shown_oids = await self._plans.aside(lambda: _oids(types, oids))
        columns = await self._columns(found, session, user, cursor)
        fields = None if columns is None else fields_of(columns)
        planning = Planning(text, by, types, read_as, columns)
        by_key = isinstance(found, PlannedQuery) and found.point is not None
        created = self._core.world.clock.wall_micros()
        manner = manner_of(found, session)
        return Prepared(text, manner, shown_oids, fields, planning, by_key, created)

    def _enums(self) -> dict[int, SqlType]:
        """The types of users by their OIDs. Values of them are read as the plan says."""
        found: dict[int, SqlType] = {}
        for enum in self._core.catalog.types:
            found[enum.oid] = enum_of(enum)
            found[enum.array_oid] = array(enum_of(enum))
        return found

    async def manner(self, text: str, user: str, session: ClientSession) -> Manner:
        """Raises what planning raises."""
        if is_blank(text):
            return Manner.SESSION
        meaning = session.meaning
        found = await self._plans.plan(text, None, local=False, user=user, meaning=meaning)
        return manner_of(found, session)

    async def _planned(
        self, text: str, declared: list[SqlType | None], user: str, meaning: Meaning
    ) -> tuple[Planned, PlanTypes]:
        """By the types that the binder infers where the declared ones fit into them, so that one
        plan serves all clients (a read by key, above all); otherwise by the declared ones."""
        inferred: tuple[SqlType, ...] = ()
        problem: RemudaError | None = None
        try:
            found = await self._plans.plan(text, None, local=False, user=user, meaning=meaning)
            inferred = parameter_types(found)
            if all(_fits(*pair) for pair in zip(declared, inferred, strict=False)):
                return found, PlanTypes(None)
        except _BY_TYPES as error:
            problem = error
        count = len(inferred) or await self._plans.parameters(text)
        if not count and problem is not None:
            raise problem
        declared = (declared + [None] * count)[:count]
        for unknown in (NULL, VARCHAR):
            types = tuple(
                _declared(t, inferred[place] if inferred else None, unknown)
                for place, t in enumerate(declared)
            )
            try:
                found = await self._plans.plan(text, types, local=False, user=user, meaning=meaning)
            except _BY_TYPES as error:
                problem = problem or error
                continue
            return found, PlanTypes(types)
        assert problem is not None
        raise problem

    # --- values -------------------------------------------------------------------------------

    @staticmethod
    def bind(prepared: Prepared, message: Bind, zone: str) -> Bound:
        """``zone``: that of the session. Raises the DataErrors of values."""
        planning = prepared.token
        if planning is None:
            return Bound(Planning("", PlanTypes(None), (), ()), PlanTypes(None), (), ())
        assert isinstance(planning, Planning)
        formats = message.formats
        if len(formats) < 2:
            formats = (formats or (0,)) * len(message.values)
        found = [
            decode(value, form, oid, wanted, zone)
            for value, form, oid, wanted in zip(
                message.values, formats, planning.oids, planning.types, strict=False
            )
        ]
        values = tuple([parameter.value for parameter in found])
        types = tuple([parameter.type for parameter in found])
        if types == planning.types:
            return Bound(planning, planning.by, types, values)
        suitable = fitted(values, types, planning.types, zone)
        if suitable is not None:
            return Bound(planning, planning.by, planning.types, suitable)
        return Bound(planning, PlanTypes(types), types, values)

    async def bind_aside(self, prepared: Prepared, message: Bind, zone: str) -> Bound:
        """``bind`` on a thread: the loop must not stand still for tens of thousands of values."""
        return await self._plans.aside(lambda: self.bind(prepared, message, zone))

    # --- columns ------------------------------------------------------------------------------

    async def _columns(
        self,
        found: Planned,
        session: ClientSession,
        user: str,
        cursor: Callable[[str], Sequence[Column] | None],
    ) -> Sequence[Column] | None:
        """None: the statement gives no rows."""
        columns: Sequence[Column] = ()
        match found:
            case PlannedQuery(declares=Declaration()):
                return None
            case SessionStatement(FetchTree(name=name, moves=False)):
                return cursor(name)
            case PlannedQuery(columns=columns) | PlannedChange(columns=columns):
                if isinstance(found, PlannedQuery):
                    return found.shown
            case PlannedExplain():
                return QUERY_PLAN
            case ShowStatement(kind=ShowKind.INDEXES):
                return INDEX_COLUMNS
            case ShowStatement():
                seen = self._core.access.catalog(user, session.definitions)
                columns, _ = shown(found, seen)
            case SessionStatement(ShowSettingTree(name=None)):
                return _SETTINGS
            case SessionStatement(ShowSettingTree(name=str(name))):
                return (Column(setting_of(name).name, VARCHAR),)
            case SessionStatement(ExecuteTree() as tree):
                named = session.prepared.get(tree.name)
                if named is not None:
                    inner = await self._plans.plan(
                        named.text, named.types, local=False, user=user, meaning=session.meaning
                    )
                    return await self._columns(inner, session, user, cursor)
            case _:
                return None
        return columns or None


def _oids(
    types: tuple[SqlType, ...], oids: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """As which types values are read, and which ones the client is told. Types of the catalog are
    told and read as PostgreSQL's, if their values can be read."""
    declared = (*oids, *[0] * len(types))[: max(len(types), len(oids))]
    known = [oid if is_readable(oid) else 0 for oid in map(catalog_oid, types)]
    known += [0] * (len(declared) - len(known))
    read_as = tuple([oid or own for oid, own in zip(declared, known, strict=False)])
    shown = tuple(
        [
            oid or (type_oid(types[place]) if place < len(types) else 0)
            for place, oid in enumerate(read_as)
        ]
    )
    return read_as, shown


def _declared(t: SqlType | None, inferred: SqlType | None, unknown: SqlType) -> SqlType:
    """The type to plan a parameter by. A declared NUMERIC says nothing of digits."""
    if t is None:
        return inferred or unknown
    if t.kind is Kind.DECIMAL and inferred is not None and inferred.kind is Kind.DECIMAL:
        return inferred
    return t


def _fits(declared: SqlType | None, inferred: SqlType) -> bool:
    """Whether values of the declared type are values of the inferred one, and mean the same."""
    if declared is None or declared == inferred:
        return True
    if declared.kind in INTEGER_KINDS and inferred.kind in INTEGER_KINDS:
        return INTEGER_KINDS.index(declared.kind) <= INTEGER_KINDS.index(inferred.kind)
    if declared.kind in INTEGER_KINDS or declared.kind is Kind.REAL:
        return inferred.kind is Kind.DECIMAL and declared.kind is not Kind.REAL
    if declared.element is not None and inferred.element is not None:
        return _fits(declared.element, inferred.element)
    return declared.kind is inferred.kind or (declared.is_text and inferred.is_text)


def manner_of(found: Planned, session: ClientSession) -> Manner:
    match found:
        case PlannedQuery() | PlannedInsert() | PlannedChange() | PlannedExplain():
            return Manner.ROWS
        case CopyStatement():
            return Manner.ROWS
        case SessionStatement(BeginTree()):
            return Manner.BEGIN
        case SessionStatement(SetTransactionTree()):
            return Manner.SESSION
        case SessionStatement(CommitTree(chain=False) | RollbackTree(chain=False)):
            return Manner.CONTROL
        case SessionStatement(tree) if isinstance(tree, TransactionTree):
            return Manner.BLOCK
        case SessionStatement(ExecuteTree()):
            return Manner.ROWS
        case SessionStatement(DiscardTree()):
            return Manner.OUTSIDE
        case SessionStatement() | ShowStatement() | AnalyzeStatement() | CancelStatement():
            return Manner.SESSION
        case PrivilegeStatement() | LockStatement():
            return Manner.SESSION
        case _ if can_be_transactional(found) and are_transactional(session):
            return Manner.ROWS
        case _:
            return Manner.OUTSIDE
