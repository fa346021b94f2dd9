"""Statements as parsed: queries and changes are trees of ``ast``, definitions have small ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, TypeAlias

from remuda.datatypes.index import IndexKind
from remuda.datatypes.schema import KeyAction
from remuda.datatypes.sql import SqlType
from remuda.errors import Position
from remuda.sql.text.lexemes import Token
from remuda.sql.trees import ast
from remuda.sql.trees.cluster import CancelTree, ClusterTree
from remuda.sql.trees.copy import CopyTree
from remuda.sql.trees.cursors import Declaration
from remuda.sql.trees.names import Name
from remuda.sql.trees.namespaces import AlterSchemaTree, CommentSchemaTree, DropSchemaTree
from remuda.sql.trees.privileges import PrivilegeTree
from remuda.sql.trees.sequences import (
    AlterSequenceTree,
    CreateSequenceTree,
    IdentityClause,
)
from remuda.sql.trees.session import SessionTree
from remuda.sql.trees.snapshot import SnapshotTree
from remuda.sql.trees.types import TypeTree

__all__ = ["Name"]  # of remuda.sql.trees.names


@dataclass(frozen=True, slots=True)
class QueryTree:
    """``locking``: FOR UPDATE, FOR SHARE."""

    root: ast.Node
    locking: bool = False
    reads_only: Literal[True] = True


@dataclass(frozen=True, slots=True)
class DeclareTree:
    """DECLARE of a cursor: bound as its query."""

    declaration: Declaration
    query: QueryTree
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class InsertTree:
    """``overriding``: SYSTEM or USER, of OVERRIDING ... VALUE."""

    root: ast.Insert
    sink: bool
    overriding: str = ""
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class ChangeTree:
    """UPDATE or DELETE."""

    root: ast.Update | ast.Delete
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class MergeTree:
    root: ast.Merge
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class TruncateTree:
    root: ast.Truncate
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class Snippet:
    """A part of a statement that another parser reads: an expression, a query."""

    text: str
    tokens: tuple[Token, ...] = field(repr=False)
    position: Position


@dataclass(slots=True)
class ColumnDefinition:
    """``type`` is None where the column takes it from a query; ``nullable`` is None where nothing
    is said."""

    name: Name
    type: SqlType | None
    nullable: bool | None = None
    default: Snippet | None = None
    identity: IdentityClause | None = None
    generated: Snippet | None = None
    serial: str = ""
    """The type of the numbers, for a type such as BIGSERIAL."""
    type_position: Position | None = None


@dataclass(frozen=True, slots=True)
class CheckDefinition:
    """``column``: the column that it was written behind."""

    name: Name | None
    condition: Snippet
    column: Name | None
    valid: bool = True


@dataclass(frozen=True, slots=True)
class KeyDefinition:
    name: Name | None
    columns: tuple[Name, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class UniqueDefinition:
    """UNIQUE behind a column or on its own."""

    name: Name | None
    columns: tuple[Name, ...]
    nulls_distinct: bool


@dataclass(frozen=True, slots=True)
class ForeignKeyDefinition:
    """FOREIGN KEY, or REFERENCES behind a column. ``parent_columns`` is empty where the primary key
    is meant."""

    name: Name | None
    columns: tuple[Name, ...]
    parent: Name
    parent_columns: tuple[Name, ...]
    on_delete: KeyAction = KeyAction.NO_ACTION
    on_update: KeyAction = KeyAction.NO_ACTION
    set_columns: tuple[Name, ...] = ()
    full: bool = False
    valid: bool = True
    deferrable: bool = False
    deferred: bool = False


@dataclass(frozen=True, slots=True)
class LikeDefinition:
    """The columns of a map, before the column number ``place`` of the definition; ``including``
    says what else is copied."""

    place: int
    name: Name
    including: frozenset[str]


@dataclass(slots=True)
class TableElements:
    """What stands in the parentheses of CREATE TABLE."""

    columns: list[ColumnDefinition] = field(default_factory=list)
    key: KeyDefinition | None = None
    checks: list[CheckDefinition] = field(default_factory=list)
    uniques: list[UniqueDefinition] = field(default_factory=list)
    foreign_keys: list[ForeignKeyDefinition] = field(default_factory=list)
    like: list[LikeDefinition] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OptionSetting:
    """``name = value`` among the options of a map; ``value`` is None for the default."""

    name: Name
    value: str | int | bool | None


@dataclass(frozen=True, slots=True)
class CreateTree:
    """``partition_by`` is None when the statement does not say. ``query``: CREATE TABLE AS, with
    its rows if ``with_data``."""

    name: Name
    if_not_exists: bool
    elements: TableElements
    replicated: bool
    partition_by: tuple[Name, ...] | None
    query: Snippet | None = None
    with_data: bool = True
    options: tuple[OptionSetting, ...] = ()
    temporary: bool = False
    on_commit: str = ""
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class CreateViewTree:
    name: Name
    or_replace: bool
    columns: tuple[Name, ...]
    query: Snippet
    temporary: bool = False
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class CreateIndexTree:
    """``name`` is None when the statement gives none. ``operator_classes`` has one for each column,
    None where none is named. The columns of INCLUDE are in the rows that an index finds."""

    name: Name | None
    if_not_exists: bool
    target: Name
    kind: IndexKind
    columns: tuple[Name, ...]
    descending: tuple[bool, ...]
    unique: bool = False
    nulls_distinct: bool = True
    operator_classes: tuple[Name | None, ...] = ()
    included: tuple[Name, ...] = ()
    concurrently: bool = False
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class DropIndexTree:
    names: tuple[Name, ...]
    if_exists: bool
    target: Name | None
    concurrently: bool = False
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class DropTree:
    kind: Literal["TABLE", "VIEW", "SEQUENCE"]
    names: tuple[Name, ...]
    if_exists: bool
    cascade: bool
    reads_only: Literal[False] = False


# --- ALTER TABLE ---


@dataclass(frozen=True, slots=True)
class AddColumn:
    column: ColumnDefinition
    elements: TableElements
    """Its constraints on whole rows."""
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class AddCheck:
    check: CheckDefinition


@dataclass(frozen=True, slots=True)
class AddUnique:
    unique: UniqueDefinition


@dataclass(frozen=True, slots=True)
class AdoptIndex:
    """ADD UNIQUE USING INDEX: a unique index becomes a constraint, under the ``name`` of it."""

    name: Name | None
    index: Name


@dataclass(frozen=True, slots=True)
class AddForeignKey:
    foreign_key: ForeignKeyDefinition


@dataclass(frozen=True, slots=True)
class ValidateConstraint:
    name: Name


@dataclass(frozen=True, slots=True)
class AlterConstraint:
    name: Name
    deferrable: bool
    deferred: bool


@dataclass(frozen=True, slots=True)
class AddKey:
    key: KeyDefinition


@dataclass(frozen=True, slots=True)
class DropColumn:
    name: Name
    if_exists: bool
    cascade: bool


@dataclass(frozen=True, slots=True)
class DropConstraint:
    name: Name
    if_exists: bool
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class ChangeType:
    name: Name
    type: SqlType
    using: Snippet | None
    position: Position | None
    """Of the type."""


@dataclass(frozen=True, slots=True)
class ChangeDefault:
    """``default`` is None for DROP DEFAULT."""

    name: Name
    default: Snippet | None


@dataclass(frozen=True, slots=True)
class ChangeNullable:
    name: Name
    nullable: bool


@dataclass(frozen=True, slots=True)
class AddIdentity:
    name: Name
    identity: IdentityClause


@dataclass(frozen=True, slots=True)
class SetIdentity:
    """SET GENERATED, SET clause, RESTART."""

    name: Name
    identity: IdentityClause


@dataclass(frozen=True, slots=True)
class SetExpression:
    """Another expression for a generated column."""

    name: Name
    expression: Snippet


@dataclass(frozen=True, slots=True)
class DropExpression:
    name: Name
    if_exists: bool


@dataclass(frozen=True, slots=True)
class DropIdentity:
    name: Name
    if_exists: bool


@dataclass(frozen=True, slots=True)
class Rename:
    """``old`` is None for the map or view itself."""

    what: Literal["RELATION", "COLUMN", "CONSTRAINT"]
    old: Name | None
    new: Name


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """``settings`` is empty where PostgreSQL alone keeps something otherwise afterwards; a
    ``column`` or an ``index`` that is named must be there."""

    settings: tuple[OptionSetting, ...]
    column: Name | None = None
    index: Name | None = None
    unchecked: Position | None = None
    """Where the statement asks for foreign keys that are not checked."""


@dataclass(frozen=True, slots=True)
class SetSchema:
    """SET SCHEMA of a map, a view or a sequence."""

    target: Name


@dataclass(frozen=True, slots=True)
class SetOwner:
    """OWNER TO: users have roles on maps and own nothing, so it changes nothing."""


Action: TypeAlias = (
    AddColumn
    | AddCheck
    | AddUnique
    | AdoptIndex
    | AddForeignKey
    | ValidateConstraint
    | AlterConstraint
    | AddKey
    | DropColumn
    | DropConstraint
    | ChangeType
    | ChangeDefault
    | ChangeNullable
    | ChangeOptions
    | AddIdentity
    | SetIdentity
    | DropIdentity
    | SetExpression
    | DropExpression
    | Rename
    | SetSchema
    | SetOwner
)


@dataclass(frozen=True, slots=True)
class AlterTree:
    """``kind`` INDEX: its one action is Rename."""

    kind: Literal["TABLE", "VIEW", "SEQUENCE", "INDEX"]
    name: Name
    if_exists: bool
    actions: tuple[Action, ...]
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class CommentTree:
    """``part`` is the column or constraint of the relation ``name``, for COMMENT ON COLUMN and
    COMMENT ON CONSTRAINT. An empty comment removes the one that is there."""

    kind: Literal["TABLE", "VIEW", "SEQUENCE", "COLUMN", "INDEX", "CONSTRAINT"]
    name: Name
    part: Name | None
    comment: str
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class ShowTree:
    """``name`` is the map or view that is asked for; None with TABLES and VIEWS."""

    what: Literal["TABLES", "VIEWS", "COLUMNS", "CREATE TABLE", "CREATE VIEW", "INDEXES"]
    name: Name | None
    reads_only: Literal[True] = True


class LockMode(Enum):
    """The modes of LOCK TABLE, the weakest first."""

    ACCESS_SHARE = "ACCESS SHARE"
    ROW_SHARE = "ROW SHARE"
    ROW_EXCLUSIVE = "ROW EXCLUSIVE"
    SHARE_UPDATE_EXCLUSIVE = "SHARE UPDATE EXCLUSIVE"
    SHARE = "SHARE"
    SHARE_ROW_EXCLUSIVE = "SHARE ROW EXCLUSIVE"
    EXCLUSIVE = "EXCLUSIVE"
    ACCESS_EXCLUSIVE = "ACCESS EXCLUSIVE"

    @property
    def weak(self) -> bool:
        """Whether a transaction holds it anyway that reads or writes rows."""
        return self in (LockMode.ACCESS_SHARE, LockMode.ROW_SHARE, LockMode.ROW_EXCLUSIVE)

    @property
    def excludes_writers(self) -> bool:
        return not (self.weak or self is LockMode.SHARE_UPDATE_EXCLUSIVE)


@dataclass(frozen=True, slots=True)
class LockTree:
    names: tuple[Name, ...]
    mode: LockMode
    nowait: bool
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class AnalyzeTree:
    """ANALYZE, VACUUM or REINDEX (``tag``) of maps, each with the columns that were named; no maps:
    all of them. ``indexes``: maps or indexes of REINDEX. It takes statistics if it ``measures``."""

    maps: tuple[tuple[Name, tuple[Name, ...]], ...]
    tag: str = "ANALYZE"
    measures: bool = True
    indexes: tuple[Name, ...] = ()
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    analyze: bool = False
    verbose: bool = False
    costs: bool = True
    """Whether estimates are shown."""
    json: bool = False


@dataclass(frozen=True, slots=True)
class ExplainTree:
    options: ExplainOptions
    statement: QueryTree | InsertTree | ChangeTree | MergeTree | CreateTree

    @property
    def reads_only(self) -> bool:
        return not self.options.analyze or self.statement.reads_only


SchemaElement: TypeAlias = (
    CreateTree | CreateViewTree | CreateIndexTree | CreateSequenceTree | PrivilegeTree
)
"""Of CREATE SCHEMA."""


@dataclass(frozen=True, slots=True)
class CreateSchemaTree:
    """``of_user``: its name is that of the session's user, instead of ``name``, which is a word
    for this user. ``user``: the name of another one to whom it should belong."""

    name: Name
    if_not_exists: bool
    of_user: bool = False
    user: Name | None = None
    elements: tuple[SchemaElement, ...] = ()
    reads_only: Literal[False] = False


SchemaTree: TypeAlias = CreateSchemaTree | DropSchemaTree | AlterSchemaTree | CommentSchemaTree
Tree: TypeAlias = (
    QueryTree
    | DeclareTree
    | InsertTree
    | ChangeTree
    | CopyTree
    | MergeTree
    | TruncateTree
    | CreateTree
    | CreateViewTree
    | AlterTree
    | CommentTree
    | CreateIndexTree
    | DropIndexTree
    | DropTree
    | CreateSequenceTree
    | AlterSequenceTree
    | SchemaTree
    | TypeTree
    | ShowTree
    | ExplainTree
    | AnalyzeTree
    | LockTree
    | SessionTree
    | SnapshotTree
    | ClusterTree
    | CancelTree
    | PrivilegeTree
)
