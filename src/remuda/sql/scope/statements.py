"""Statements: what the parser hands to the binder, and what the binder hands to the session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, Final, Literal, Protocol, TypeAlias, runtime_checkable

from remuda.catalog.edits import Edit
from remuda.catalog.roles import EVERYBODY_IS_THE_OWNER, Roles
from remuda.catalog.users import Role
from remuda.copying.options import CopyOptions
from remuda.datatypes.index import IndexDefinition
from remuda.datatypes.schema import Column, MapSchema, Namespace, Origin, ViewDefinition
from remuda.datatypes.sql import BOOLEAN, VARCHAR, EnumType, SqlType, aliased
from remuda.datatypes.values import PhysicalValue
from remuda.errors import Position, RemudaError
from remuda.plan.expression import Literal as Constant
from remuda.plan.logical import Logical
from remuda.sql.scope.notices import Notice, already_there
from remuda.sql.trees.cluster import CancelTree, ClusterTree
from remuda.sql.trees.cursors import Declaration
from remuda.sql.trees.session import SessionTree
from remuda.sql.trees.snapshot import SnapshotTree
from remuda.sql.trees.syntax import ExplainOptions, LockMode, Tree


class CatalogReader(Protocol):
    """The maps that a statement may name, by their full names (``datatypes.schema``).
    ``version`` changes with every change of the catalog."""

    @property
    def version(self) -> int: ...

    @property
    def namespaces(self) -> Sequence[Namespace]: ...

    @property
    def types(self) -> Sequence[EnumType]: ...

    def find(self, name: str) -> MapSchema | None: ...

    def find_view(self, name: str) -> ViewDefinition | None: ...

    def names(self) -> Sequence[str]: ...

    def view_names(self) -> Sequence[str]: ...


@runtime_checkable
class DiscreetReader(Protocol):
    """A ``CatalogReader`` of which not everything may be told."""

    def told(self) -> CatalogReader: ...


def told(catalog: CatalogReader) -> CatalogReader:
    """What may be told of it to whoever sent the statement: for hints and functions that look
    names up."""
    return catalog.told() if isinstance(catalog, DiscreetReader) else catalog


@runtime_checkable
class RoleReader(Protocol):
    """A ``CatalogReader`` that knows for whom it is read."""

    def whole(self) -> CatalogReader:
        """All of it: names of relations that the user may not see are in it, too."""
        ...

    def roles(self) -> Roles: ...


def roles_known(catalog: CatalogReader) -> Roles:
    """The roles that whoever sent the statement may know of."""
    return catalog.roles() if isinstance(catalog, RoleReader) else EVERYBODY_IS_THE_OWNER


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """One statement, not yet bound. ``text`` is its own text, without the rest of a script;
    positions in errors refer to it.

    ``parameters`` is the number of positional parameters: the count of ``?`` or the highest ``$n``.
    """

    text: str
    tree: Tree
    parameters: int

    @property
    def reads_only(self) -> bool:
        return self.tree.reads_only


VOID: Final = aliased(VARCHAR, "void")
"""Of functions that only act: an empty text, which drivers read as nothing."""


class SignalKind(Enum):
    CANCEL = "cancel"
    TERMINATE = "terminate"
    RESET_STATEMENTS = "reset statements"


@dataclass(frozen=True, slots=True)
class BackendSignal:
    """``column`` of a result has the pids of clients. Each of them is signalled when all rows are
    there, and its place gets whether it was: BOOLEAN. ``RESET_STATEMENTS`` takes no pid."""

    shows: ClassVar[SqlType | None] = BOOLEAN
    column: int
    kind: SignalKind


@dataclass(frozen=True, slots=True)
class SettingChange:
    """``column`` of a result has the value that a setting of the session takes with each row;
    ``local``: until the end of the transaction."""

    shows: ClassVar[SqlType | None] = None
    """The type of its results, where that is not the type of its arguments."""
    column: int
    name: str
    local: bool


@dataclass(frozen=True, slots=True)
class NamedSettingChange:
    """``column`` of a result has, with each row, the name of a setting and the value that it takes,
    as an array of two texts; its place gets the value. ``local``: as in ``SettingChange``."""

    shows: ClassVar[SqlType | None] = VARCHAR
    column: int
    local: bool


@dataclass(frozen=True, slots=True)
class Sleep:
    """``column`` of a result has the seconds to wait for each row; its place gets an empty
    text."""

    shows: ClassVar[SqlType | None] = VOID
    column: int


class AdvisoryAct(Enum):
    LOCK = "lock"
    TRY = "try"
    UNLOCK = "unlock"
    UNLOCK_ALL = "unlock all"


@dataclass(frozen=True, slots=True)
class AdvisoryCall:
    """``column`` of a result has the keys of advisory locks as texts: one number, or two with a
    comma between them. ``of_transaction``: until its end."""

    shows: ClassVar[SqlType | None] = VOID
    column: int
    act: AdvisoryAct
    shared: bool
    of_transaction: bool


@dataclass(frozen=True, slots=True)
class AdvisoryWait(AdvisoryCall):
    """Its places get empty texts."""


@dataclass(frozen=True, slots=True)
class AdvisoryTest(AdvisoryCall):
    """Its places get whether the lock was taken, or was held."""

    shows: ClassVar[SqlType | None] = BOOLEAN


@dataclass(frozen=True, slots=True)
class NotifyCall:
    """``column`` of a result has the channel and the payload of ``pg_notify`` as an array; its
    places get empty texts."""

    shows: ClassVar[SqlType | None] = VOID
    column: int


ItemEffect: TypeAlias = (
    BackendSignal
    | SettingChange
    | NamedSettingChange
    | Sleep
    | AdvisoryWait
    | AdvisoryTest
    | NotifyCall
)


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """``plan.output[i]`` is the result column called ``names[i]`` (names may repeat)."""

    plan: Logical
    names: tuple[str, ...]
    parameter_types: tuple[SqlType, ...] = ()
    locking: bool = False
    """FOR UPDATE, FOR SHARE."""
    effects: tuple[ItemEffect, ...] = ()
    declares: Declaration | None = None
    """The cursor that is declared for it."""
    origins: tuple[Origin | None, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class CreateMapStatement:
    """``schema.map_id`` is 0: the catalog gives the id."""

    schema: MapSchema
    if_not_exists: bool
    notices: tuple[Notice, ...] = ()
    on_commit: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class CreateAsStatement:
    """A map for the rows of a query. ``source.output`` are the first columns of ``schema``;
    it is None when the map stays empty."""

    schema: MapSchema
    if_not_exists: bool
    source: Logical | None
    notices: tuple[Notice, ...] = ()
    on_commit: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Verification:
    """No row of a map that ``edits`` have changed may fulfil ``query``, a SELECT: ``refusal`` makes
    the error of the first row of its result (physical values of the types ``shown``)."""

    query: str
    refusal: Callable[[Sequence[PhysicalValue]], RemudaError]
    shown: tuple[SqlType, ...] = ()
    """The types of the first columns of the result; the others tell nothing."""


@dataclass(frozen=True, slots=True)
class NumbersFrom:
    """The numbers of the sequence ``name`` go on at ``value``, or behind it if it ``is_called``.
    ``value`` None: a new sequence begins, another one goes on where it is."""

    name: str
    value: int | None = None
    is_called: bool = False


@dataclass(frozen=True, slots=True)
class CatalogStatement:
    """ALTER, DROP, CREATE VIEW, COMMENT, and CREATE TABLE with sequences: ``edits`` of the catalog
    of ``version``. Then the states of sequences are set: ``numbers``.

    ``fill`` are UPDATEs that give the rows that are there the values of new or generated columns.
    They see the new sequences. ``filled`` are edits that are made after them.
    With ``verify`` the edits are made first, so that every new row meets what they demand; then the
    rows that are there are looked at. If all is well, ``finally_`` is made; otherwise ``undo``.
    """

    tag: str
    version: int
    edits: tuple[Edit, ...]
    verify: tuple[Verification, ...] = ()
    finally_: tuple[Edit, ...] = ()
    undo: tuple[Edit, ...] = ()
    notices: tuple[Notice, ...] = ()
    numbers: tuple[NumbersFrom, ...] = field(default=(), repr=False)
    fill: tuple[str, ...] = field(default=(), repr=False)
    filled: tuple[Edit, ...] = field(default=(), repr=False)
    on_commit: str = field(default="", repr=False)
    """Of a temporary table with sequences."""
    grants: tuple[PrivilegeStatement, ...] = field(default=(), repr=False)
    """They must find what they ask for before anything is made."""


@dataclass(frozen=True, slots=True)
class CreateIndexStatement:
    """``exists``: an index of the name is there already, and IF NOT EXISTS was said."""

    schema: MapSchema
    definition: IndexDefinition
    exists: bool
    concurrently: bool = False

    @property
    def notices(self) -> tuple[Notice, ...]:
        return (already_there(self.definition.name),) if self.exists else ()


@dataclass(frozen=True, slots=True)
class DropIndexStatement:
    """``indexes`` are (map id, name of the index)."""

    indexes: tuple[tuple[int, str], ...]
    if_exists: bool
    notices: tuple[Notice, ...] = ()
    concurrently: bool = False


InsertMode: TypeAlias = Literal["insert", "sink"]


@dataclass(frozen=True, slots=True)
class InsertStatement:
    """Rows of ``source`` go into the map of ``schema``: ``source.output`` is all of its columns, in
    schema order, of the schema's types. Mode ``insert`` refuses keys that exist, ``sink`` replaces.

    The source may put out NULL for a column that is NOT NULL: whoever stores the row checks it.
    """

    schema: MapSchema
    source: Logical
    mode: InsertMode
    parameter_types: tuple[SqlType, ...] = ()


@dataclass(frozen=True, slots=True)
class CopyStatement:
    """COPY between a client and a map or a query. Of COPY FROM the ``source`` is an INSERT that
    reads the relation ``relation``, which has the rows of the client with ``columns``; otherwise it
    is what gives the rows.

    ``direct``: the columns of the map without a plan, each a place in ``columns`` or a constant.
    None: there is more to compute.
    """

    options: CopyOptions
    source: InsertStatement | BoundQuery | ChangeStatement
    columns: tuple[Column, ...] = ()
    relation: str = ""
    direct: tuple[int | Constant, ...] | None = None


class Repeats(Enum):
    """What to do when a statement comes to the same row more than once."""

    NEVER = "never"
    """It cannot, or the owner of the row refuses it."""
    FIRST = "first"
    """The first time counts."""
    REFUSE = "refuse"


class MergeAction(Enum):
    """What MERGE does with one row; the value travels in the first column of its source."""

    INSERT = 1
    UPDATE = 2
    """The old row is removed, the new one written."""
    DELETE = 3


@dataclass(frozen=True, slots=True)
class Arbiter:
    """Columns, by position, whose values tell rows apart: the key, or those of a unique index."""

    positions: tuple[int, ...]
    nulls_distinct: bool = True


@dataclass(frozen=True, slots=True)
class ChangeStatement:
    """UPDATE, DELETE, and INSERT with ON CONFLICT or RETURNING.

    ``source.output`` is, in this order: all columns of the rows to write, of the schema's types in
    schema order, if it ``writes``; the key columns of the rows to remove if it ``removes``; the
    columns of RETURNING, whose names are ``returning``. A row that is both removed and written
    under the same key is replaced.
    """

    verb: Literal["INSERT", "SINK", "UPDATE", "DELETE", "MERGE"]
    schema: MapSchema
    source: Logical
    writes: bool
    removes: bool
    insert_only: bool
    """A row whose key exists (and is not removed) is refused."""
    reads_target: bool
    """The rows were made from what the map held: they must not have changed since."""
    repeats: Repeats
    returning: tuple[str, ...]
    parameter_types: tuple[SqlType, ...] = ()
    origins: tuple[Origin | None, ...] = field(default=(), repr=False)
    """Those of ``source``."""
    chooses: bool = False
    """The first column of ``source`` is a ``MergeAction``: not every row is written and removed."""
    query: BoundQuery | None = None
    """What the statement answers: it reads the rows of RETURNING as ``relation``."""
    relation: str = ""
    arbiters: tuple[Arbiter, ...] = ()
    """Of ``source.output``: what a row that comes a second time has in common with the first one;
    none: the key."""
    keeps_uniques: bool = False
    """Every row that it writes was there before, under the same key and with the same values in the
    columns of all unique indexes."""


@dataclass(frozen=True, slots=True)
class TruncateStatement:
    schema: MapSchema
    numbers: tuple[NumbersFrom, ...] = field(default=(), repr=False)
    """RESTART IDENTITY: the sequences that its columns own begin again."""


@dataclass(frozen=True, slots=True)
class ExplainStatement:
    """``title``: what the plan of a query is for, "" for itself."""

    options: ExplainOptions
    statement: BoundQuery | InsertStatement | ChangeStatement
    title: str = ""


class ShowKind(Enum):
    INDEXES = "indexes"
    MAPS = "maps"
    VIEWS = "views"
    COLUMNS = "columns"
    CREATE = "create"


@dataclass(frozen=True, slots=True)
class ShowStatement:
    """SHOW MAPS, SHOW TABLES, SHOW VIEWS (without ``relation``); SHOW COLUMNS FROM, DESCRIBE, SHOW
    CREATE of a map or a view."""

    kind: ShowKind
    relation: MapSchema | ViewDefinition | None = None


@dataclass(frozen=True, slots=True)
class AnalyzeStatement:
    """Statistics of these maps are to be taken again; none for a VACUUM or REINDEX: members collect
    old versions and keep indexes by themselves."""

    maps: tuple[MapSchema, ...]
    tag: str = "ANALYZE"


@dataclass(frozen=True, slots=True)
class LockStatement:
    """LOCK TABLE, in the order of its names."""

    schemas: tuple[MapSchema, ...]
    mode: LockMode
    nowait: bool


@dataclass(frozen=True, slots=True)
class SessionStatement:
    """About the client's session: carried out where that is known."""

    tree: SessionTree


@dataclass(frozen=True, slots=True)
class SnapshotStatement:
    """About snapshots: carried out as it was read."""

    tree: SnapshotTree


@dataclass(frozen=True, slots=True)
class ClusterStatement:
    """About the cluster itself: carried out as it was read."""

    tree: ClusterTree


@dataclass(frozen=True, slots=True)
class CancelStatement:
    """About the work of somebody: carried out as it was read."""

    tree: CancelTree


@dataclass(frozen=True, slots=True)
class PrivilegeStatement:
    """GRANT (``grants``) or REVOKE of roles on maps, schemas or all maps. ``users``: names ("": the
    one that asks) and their positions. The users' file is not changed: the statement succeeds if
    the file says already what it asks for."""

    grants: bool
    roles: tuple[tuple[Role, str], ...]
    users: tuple[tuple[str, Position], ...]
    public: bool

    @property
    def tag(self) -> str:
        return "GRANT" if self.grants else "REVOKE"


BoundStatement: TypeAlias = (
    BoundQuery
    | CreateMapStatement
    | CreateAsStatement
    | CatalogStatement
    | CreateIndexStatement
    | DropIndexStatement
    | InsertStatement
    | ChangeStatement
    | CopyStatement
    | TruncateStatement
    | ExplainStatement
    | ShowStatement
    | AnalyzeStatement
    | LockStatement
    | SessionStatement
    | SnapshotStatement
    | ClusterStatement
    | CancelStatement
    | PrivilegeStatement
)
