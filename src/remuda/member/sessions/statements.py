"""BEGIN, COMMIT, ROLLBACK and the like; what every other statement needs in a transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Final, TypeAlias

from remuda.errors import (
    ActiveTransaction,
    NoActiveTransaction,
    NotSupported,
    QueryCanceled,
    ReadOnlyTransaction,
    RemudaError,
    SchemaChanged,
)
from remuda.member.base.core import Core
from remuda.member.cursors.named_cursor import NamedCursor
from remuda.member.sessions.cursor_statements import CursorStatements
from remuda.member.sessions.modes import MODES, change_modes, default_modes, with_defaults
from remuda.member.sessions.open_transaction import OpenTransaction
from remuda.member.sessions.session import TransactionSessions
from remuda.member.sessions.statement import Client, Statement
from remuda.member.sessions.transaction_definitions import (
    DEFINITIONS,
    are_transactional,
    to_rewrite,
)
from remuda.rpc.client_channel import ClientChannel
from remuda.rpc.messages import user_pb2
from remuda.session.client_session import ClientSession
from remuda.session.planning import (
    Planned,
    PlannedChange,
    PlannedExplain,
    PlannedInsert,
    PlannedQuery,
)
from remuda.session.settings import SETTINGS, checked, milliseconds, setting_of
from remuda.sql.parsing.cluster import TAG as CLUSTER_TAG
from remuda.sql.scope.notices import (
    ALREADY_BEGUN,
    DEFINITIONS_STAY,
    NO_TRANSACTION,
    definition_commits,
)
from remuda.sql.scope.statements import (
    AnalyzeStatement,
    CancelStatement,
    CatalogStatement,
    ClusterStatement,
    CopyStatement,
    CreateAsStatement,
    CreateIndexStatement,
    CreateMapStatement,
    DropIndexStatement,
    InsertStatement,
    LockStatement,
    PrivilegeStatement,
    SessionStatement,
    ShowStatement,
    TruncateStatement,
)
from remuda.sql.trees.session import DiscardTree, SetTree
from remuda.sql.trees.transaction import (
    BeginTree,
    CommitTree,
    ReleaseTree,
    RollbackToTree,
    RollbackTree,
    SavepointTree,
    SetTransactionTree,
    TransactionTree,
)
from remuda.transaction.isolation import Modes
from remuda.transaction.states import State

Rewrite: TypeAlias = Callable[[OpenTransaction, Collection[int], int], Awaitable[None]]
_STATES: Final = {
    State.ACTIVE: user_pb2.ACTIVE,
    State.SUSPENDED: user_pb2.SUSPENDED,
    State.MARKED_ROLLBACK: user_pb2.MARKED_ROLLBACK,
}


def status_of(transaction: OpenTransaction | None) -> user_pb2.TransactionStatus:
    """The status of a transaction, as its client is told."""
    if transaction is None or transaction.state not in _STATES:
        return user_pb2.TransactionStatus(state=user_pb2.NO_TRANSACTION)
    return user_pb2.TransactionStatus(
        transaction=transaction.name,
        member=transaction.id.near,
        state=_STATES[transaction.state],
    )


def _is_temporary(statement: Statement, found: Planned) -> bool:
    """Whether it writes or defines temporary relations alone, or has nothing to define."""
    match found:
        case CreateMapStatement() | CreateAsStatement() | TruncateStatement():
            return found.schema.temporary
        case CreateIndexStatement(schema=schema):
            return schema.temporary
        case DropIndexStatement(indexes=indexes):
            return all(map_id < 0 for map_id, _ in indexes)
        case CatalogStatement():
            return statement.defines_temporary(found)
        case _:
            return False


@dataclass(frozen=True)
class Ended:
    """The answer to a statement about transactions. ``session``: None leaves it."""

    tag: str
    session: ClientSession | None = None


class TransactionStatements:
    def __init__(
        self,
        core: Core,
        sessions: TransactionSessions,
        cursors: CursorStatements,
        clients: Callable[[ClientChannel], Client | None],
        rewrite: Rewrite,
    ) -> None:
        """``rewrite``: see ``checks.altered_tables``."""
        self._core, self._clients, self._rewrite = core, clients, rewrite
        self._sessions, self._cursors = sessions, cursors

    # --- beside a statement -------------------------------------------------------------------

    def find(
        self, name: str, channel: ClientChannel, user: str
    ) -> tuple[OpenTransaction | None, RemudaError | None]:
        """The transaction of a statement; or why there is none, if the client believes so."""
        if not name:
            return None, None
        try:
            return self._sessions.find(name, channel, user), None
        except RemudaError as error:
            return None, error

    def disconnected(self, channel: ClientChannel, cause: RemudaError) -> None:
        self._sessions.channel_closed(channel, cause)

    @staticmethod
    def accepted(statement: Statement) -> None:
        """Its transaction is not idle until it is ``closed``."""
        if (transaction := statement.transaction) is not None:
            transaction.running.add(statement.query)

    def interrupt(self, statement: Statement, error: RemudaError) -> None:
        """It does not wait for locks any more."""
        if statement.transaction is not None:
            self._sessions.interrupt(statement.transaction, error)

    def closed(self, statement: Statement) -> None:
        """It has ended, or its client is gone."""
        if statement.transaction is not None:
            statement.transaction.running.discard(statement.query)
            statement.transaction.last_used = self._core.world.clock.monotonic()

    @staticmethod
    def finished(statement: Statement, error: RemudaError | None) -> None:
        """A failed statement fails its transaction; one that only read and is not wanted any more
        does not."""
        progress = statement.progress
        if error is None or statement.transaction is None or progress.spares_transaction:
            return
        if not (progress.only_reads and isinstance(error, QueryCanceled)):
            statement.transaction.failed(error)

    @staticmethod
    def status(statement: Statement) -> user_pb2.TransactionStatus | None:
        """None: the client knows it."""
        transaction = statement.transaction
        if statement.given_up or (transaction is not None and transaction.state in _STATES):
            return status_of(transaction)
        return None

    # --- other statements ---------------------------------------------------------------------

    async def enter(self, statement: Statement, found: Planned) -> None:
        """Before a statement runs in its transaction. Raises FailedTransaction, ActiveTransaction,
        ReadOnlyTransaction."""
        transaction = statement.transaction
        if isinstance(found, SessionStatement) and isinstance(found.tree, TransactionTree):
            return  # ``control`` decides
        if statement.lost is not None:
            raise statement.lost
        if transaction is None:
            _check_autocommitted(statement.session, found)
            return
        self._sessions.still_open(transaction)
        transaction.check()
        match found:
            case SessionStatement(DiscardTree()):
                raise _outside("DISCARD")
            case SessionStatement() | ShowStatement() | AnalyzeStatement() | CancelStatement():
                return
            case PrivilegeStatement() | LockStatement():
                return
            case PlannedExplain(statement=inner, options=options):
                if options.analyze:
                    self._check_write(transaction, inner)
            case PlannedQuery() | PlannedInsert() | PlannedChange() | CopyStatement():
                self._check_write(transaction, found)
            case _:
                if not _is_temporary(statement, found) and not self._defines(
                    statement, transaction, found
                ):
                    await self._commit_before(statement, transaction, found)
                    return
        if statement.local or statement.partitions is not None:
            raise NotSupported(
                "reads of some partitions take no part in transactions",
                hint="Read all partitions, or read outside of the transaction.",
            )
        statement.locking = isinstance(found, PlannedQuery) and found.locking
        statement.read_timestamp = await self._sessions.read_at(transaction)
        own = transaction.definitions
        if own is not None and (altered := to_rewrite(own, found)):
            await self._rewrite(transaction, altered, statement.read_timestamp)
            statement.session = transaction.session(statement.sent)
            raise SchemaChanged("tables that the transaction has altered have their new form now")

    @staticmethod
    def _defines(statement: Statement, transaction: OpenTransaction, found: Planned) -> bool:
        """Whether a definition becomes a part of its transaction. Raises ReadOnlyTransaction."""
        if not isinstance(found, DEFINITIONS) or not are_transactional(statement.session):
            return False
        if isinstance(found, CreateIndexStatement | DropIndexStatement) and found.concurrently:
            raise _outside(f"{_name(found)} CONCURRENTLY")
        transaction.check_writable(_name(found))
        return True

    async def _commit_before(
        self, statement: Statement, transaction: OpenTransaction, found: Planned
    ) -> None:
        """A definition takes effect at once, so it is refused. Where the session asks for that, the
        changes before it are committed first, and another transaction follows. Raises the errors of
        ``check_writable`` and of the commit, and ActiveTransaction."""
        what = _name(found)
        setting = SETTINGS["definitions_in_transactions"]
        if not isinstance(found, DEFINITIONS):
            raise _outside(what)
        if statement.session.value(setting) != "commit":
            raise _outside(what, definition=True)
        transaction.check_writable(what)
        if transaction.kept:
            raise ActiveTransaction(
                f"{what} cannot run while there is a savepoint",
                hint="It commits the transaction, so ROLLBACK TO could undo nothing: RELEASE "
                f'"{transaction.kept[0][0]}" first.',
            )
        if transaction.asked:
            transaction = await self._followed(statement, transaction)
        elif transaction.follows_definition:
            return  # with nothing to commit: the client knows, or this statement is planned again
        transaction.follows_definition = True
        statement.progress.notice(definition_commits(what))

    async def _followed(
        self, statement: Statement, transaction: OpenTransaction
    ) -> OpenTransaction:
        """The one in which its client is after the commit. Raises the errors of the commit: the
        block has failed then."""
        try:
            await self._commit(statement, chain=True)
        except BaseException:
            self._chain(statement, transaction, chain=True)
            raise
        finally:
            statement.given_up = False
            self.accepted(statement)
        following = statement.transaction
        assert following is not None
        following.local.update(transaction.local)
        client = self._clients(statement.channel)
        if client is not None:  # its temporary tables outlive a definition that fails as well
            tables = statement.sent.temporary
            client.goes_on_with(client.session.with_temporary(tables))
        return following

    @staticmethod
    def _check_write(transaction: OpenTransaction, found: Planned) -> None:
        if (what := _writes_rows(found)) is not None:
            transaction.check_writable(what)

    def set(self, statement: Statement, tree: SetTree) -> bool:
        """SET LOCAL, and SET of what belongs to the transaction alone; False: it is another one.
        Raises what ``checked`` raises, and ActiveTransaction."""
        name = (tree.name or "").lower()
        transaction = statement.transaction
        if name in MODES and tree.value is not None:
            modes = MODES[name](checked(setting_of(name), tree.value))
            if transaction is not None:
                change_modes(transaction, modes)
            return True
        if transaction is None or tree.name is None:
            return False
        setting = setting_of(tree.name)
        key = setting.name.lower()
        if not tree.local:
            transaction.local.pop(key, None)
            return False
        if tree.value is None:
            transaction.local[key] = setting.default
        else:
            now = transaction.session(statement.session).value(setting)
            transaction.local[key] = checked(setting, tree.value, now)
        return True

    # --- statements about transactions --------------------------------------------------------

    async def control(self, statement: Statement, tree: TransactionTree) -> Ended:
        """Carry it out. ``statement.transaction`` is what the client has afterwards. Raises what
        the commit raises, NoActiveTransaction, UndefinedSavepoint, FailedTransaction."""
        transaction = statement.transaction
        if statement.lost is not None and not isinstance(tree, RollbackTree):
            statement.given_up = isinstance(tree, CommitTree)
            raise statement.lost
        try:
            match tree:
                case BeginTree(modes=modes, tag=tag):
                    self._begin(statement, modes)
                    return Ended(tag)
                case CommitTree(chain=chain):
                    return await self._commit(statement, chain)
                case RollbackTree(chain=chain):
                    return self._roll_back(statement, chain)
                case SetTransactionTree(modes=modes, session=True):
                    return Ended("SET", with_defaults(statement.sent, modes))
                case SetTransactionTree(modes=modes):
                    if transaction is not None:
                        change_modes(transaction, modes)
                    return Ended("SET")
                case SavepointTree() | RollbackToTree() | ReleaseTree():
                    return self._savepoint(statement.sent, _needed(transaction, tree), tree)
        except RemudaError as error:
            if error.position is None:
                raise error.at(tree.position, statement.text) from error.__cause__
            raise

    def _begin(self, statement: Statement, modes: Modes) -> None:
        if statement.transaction is not None:
            # PostgreSQL warns and goes on, and drivers rely on it.
            statement.progress.notice(ALREADY_BEGUN)
            statement.progress.spares_transaction = True
            change_modes(statement.transaction, modes)
            return
        if not statement.takes_transactions:
            raise NotSupported(
                "this client does not keep a transaction between statements",
                hint="Every statement is atomic by itself.",
            )
        session = statement.sent
        defaults = default_modes(session)
        if modes.pessimistic:
            modes = modes.locking(defaults)
        setting = SETTINGS["idle_in_transaction_session_timeout"]
        statement.transaction = self._sessions.begin(
            statement.channel,
            statement.user,
            modes=modes,
            defaults=defaults,
            session=session,
            pessimistic=bool(modes.pessimistic),
            idle_timeout=milliseconds(session.value(setting)) / 1000,
            label=session.values.get("application_name", ""),
            traceparent=statement.traceparent,
        )

    async def _commit(self, statement: Statement, chain: bool) -> Ended:
        transaction, statement.given_up = statement.transaction, True
        if transaction is None:
            _check_chain(chain, "COMMIT AND CHAIN")
            statement.progress.notice(NO_TRANSACTION)
            return Ended("COMMIT")
        if transaction.state is State.MARKED_ROLLBACK:
            return self._roll_back(statement, chain)
        held = await self._held(statement, transaction)
        try:
            await self._sessions.commit(transaction)
        except BaseException:
            for cursor in held:
                cursor.close()
            raise
        self._cursors.committed(statement, held)
        tables = statement.sent.temporary
        if tables is not None:
            statement.sent = statement.sent.with_temporary(tables.committed())
        self._chain(statement, transaction, chain)
        return Ended("COMMIT", None if tables is None else statement.sent)

    async def _held(self, statement: Statement, transaction: OpenTransaction) -> list[NamedCursor]:
        """Its cursors WITH HOLD, read to their ends. An error rolls it back."""
        try:
            return await self._cursors.before_commit(statement)
        except BaseException:
            self._sessions.roll_back(transaction)
            raise

    def _roll_back(self, statement: Statement, chain: bool) -> Ended:
        transaction, statement.given_up = statement.transaction, True
        if transaction is None:
            if statement.lost is None:
                _check_chain(chain, "ROLLBACK AND CHAIN")
                statement.progress.notice(NO_TRANSACTION)
            return Ended("ROLLBACK")
        self._sessions.roll_back(transaction)
        if transaction.follows_definition:
            statement.progress.notice(DEFINITIONS_STAY)
        self._chain(statement, transaction, chain)
        session = statement.sent.with_values(transaction.base.values)
        if session.temporary is not None:
            session = session.with_temporary(session.temporary.settled(""))
        return Ended("ROLLBACK", session if session != statement.sent else None)

    def _chain(self, statement: Statement, before: OpenTransaction, chain: bool) -> None:
        if not chain:
            return
        statement.transaction = self._sessions.begin(
            statement.channel,
            statement.user,
            modes=before.modes,
            defaults=before.defaults,
            session=statement.sent,
            pessimistic=before.pessimistic,
            label=before.label,
            traceparent=statement.traceparent,
        )

    def _savepoint(
        self,
        session: ClientSession,
        transaction: OpenTransaction,
        tree: SavepointTree | RollbackToTree | ReleaseTree,
    ) -> Ended:
        """``session``: as its client has it."""
        match tree:
            case SavepointTree(name=name):
                transaction.check()
                transaction.savepoint(name)
                transaction.kept.append((name, session.temporary))
                return Ended("SAVEPOINT")
            case ReleaseTree(name=name):
                transaction.check()
                transaction.release(name)
                transaction.kept_at(name, ends=True)
                return Ended("RELEASE")
            case RollbackToTree(name=name):
                transaction.roll_back_to(name)
                tables = transaction.kept_at(name)
                if tables is session.temporary:
                    return Ended("ROLLBACK")
                return Ended("ROLLBACK", session.with_temporary(tables))


def _needed(
    transaction: OpenTransaction | None, tree: SavepointTree | RollbackToTree | ReleaseTree
) -> OpenTransaction:
    if transaction is None:
        names = {
            SavepointTree: "SAVEPOINT",
            RollbackToTree: "ROLLBACK TO SAVEPOINT",
            ReleaseTree: "RELEASE SAVEPOINT",
        }
        raise NoActiveTransaction(f"{names[type(tree)]} can only be used in transaction blocks")
    return transaction


def _check_chain(chain: bool, what: str) -> None:
    if chain:
        raise NoActiveTransaction(f"{what} can only be used in transaction blocks")


def _writes_rows(found: Planned) -> str | None:
    """The command that writes rows of tables that others see; None: it writes no such rows."""
    match found:
        case CopyStatement(source=InsertStatement(schema=schema)):
            what = "COPY FROM"
        case PlannedInsert(schema=schema):
            what = "INSERT"
        case PlannedChange(schema=schema, verb=what):
            pass
        case _:
            return None
    return None if schema.temporary else what


def _check_autocommitted(session: ClientSession, found: Planned) -> None:
    """A statement outside of BEGIN and COMMIT is a transaction of its own, so the session's default
    holds for it. Raises ReadOnlyTransaction."""
    if not default_modes(session).read_only:
        return
    match found:
        case PlannedInsert() | PlannedChange() | CopyStatement():
            what = _writes_rows(found)
        case PlannedExplain(statement=inner, options=options) if options.analyze:
            _check_autocommitted(session, inner)
            return
        case (
            CatalogStatement()
            | CreateMapStatement()
            | CreateAsStatement()
            | CreateIndexStatement()
            | DropIndexStatement()
            | TruncateStatement()
        ):
            what = _name(found)
        case _:
            return
    if what is None:
        return
    raise ReadOnlyTransaction(
        f"cannot execute {what} in a read-only transaction",
        hint="The session's default_transaction_read_only is on.",
    )


def _outside(what: str, *, definition: bool = False) -> ActiveTransaction:
    return ActiveTransaction(
        f"{what} cannot run inside a transaction block",
        hint="It takes effect at once and cannot be rolled back: run it before BEGIN, or after "
        "COMMIT; or SET definitions_in_transactions = 'transactional' or 'commit'."
        if definition
        else "Run it before BEGIN, or after COMMIT.",
    )


def _name(found: Planned) -> str:
    match found:
        case CatalogStatement(tag=tag):
            return tag
        case CreateMapStatement():
            return "CREATE TABLE"
        case CreateAsStatement():
            return "CREATE TABLE AS"
        case CreateIndexStatement():
            return "CREATE INDEX"
        case DropIndexStatement():
            return "DROP INDEX"
        case TruncateStatement():
            return "TRUNCATE"
        case ClusterStatement():
            return CLUSTER_TAG
        case _:
            return "the statement"
