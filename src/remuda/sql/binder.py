"""Binding: a parsed statement and the catalog -> a typed statement, or an error that says where."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from remuda.catalog.edits import PutNamespace
from remuda.catalog.system_relations import DATABASE
from remuda.datatypes.sql import SqlType
from remuda.datatypes.times.session_zones import UTC, session_zone
from remuda.errors import InvalidCursorDefinition, NotSupported, RemudaError
from remuda.plan.expression import Expression
from remuda.plan.logical import Logical
from remuda.sql.changes.changes import bind_insert
from remuda.sql.changes.changing_tables import bind_changing_query, changing_tables
from remuda.sql.changes.copy import bind_copy
from remuda.sql.changes.merge import bind_merge
from remuda.sql.changes.modify import bind_change
from remuda.sql.changes.truncate import bind_truncate
from remuda.sql.definitions.altering.alter import bind_alter
from remuda.sql.definitions.analyze import bind_analyze
from remuda.sql.definitions.comments import bind_comment
from remuda.sql.definitions.deferred import with_keys
from remuda.sql.definitions.enums import bind_type
from remuda.sql.definitions.index_definitions import bind_create_index, bind_drop_index
from remuda.sql.definitions.namespaces import bind_schema
from remuda.sql.definitions.privileges import bind_privileges
from remuda.sql.definitions.schema_elements import bind_elements
from remuda.sql.definitions.schemas import bind_create, bind_drop, bind_show
from remuda.sql.definitions.sequences import bind_sequence
from remuda.sql.definitions.table_locks import bind_lock
from remuda.sql.expressions.expressions import ExpressionBinder, Forbidding
from remuda.sql.expressions.functions.sequences import refuse_calls
from remuda.sql.expressions.item_effects import EffectItems
from remuda.sql.queries.numbers import numbered
from remuda.sql.queries.queries import bind_query
from remuda.sql.queries.relations import Environment
from remuda.sql.queries.views import bind_create_view
from remuda.sql.scope.context import Context
from remuda.sql.scope.object_names import as_text, is_written
from remuda.sql.scope.origins import origins
from remuda.sql.scope.output import project
from remuda.sql.scope.resolution import DEFAULT_PATH
from remuda.sql.scope.scope import Scope, column_refs
from remuda.sql.scope.statements import (
    AnalyzeStatement,
    BoundQuery,
    BoundStatement,
    CancelStatement,
    CatalogReader,
    CatalogStatement,
    ChangeStatement,
    ClusterStatement,
    CreateAsStatement,
    ExplainStatement,
    InsertStatement,
    LockStatement,
    ParsedStatement,
    SessionStatement,
    SnapshotStatement,
)
from remuda.sql.text.lexemes import too_deep
from remuda.sql.trees import ast
from remuda.sql.trees.cluster import (
    AcceptLossTree,
    CancelTree,
    DrainTree,
    FinishUpgradeTree,
    LogLevelTree,
    ResetStatementsTree,
)
from remuda.sql.trees.copy import CopyTree
from remuda.sql.trees.cursors import CloseTree, FetchTree
from remuda.sql.trees.names import Name
from remuda.sql.trees.namespaces import AlterSchemaTree, CommentSchemaTree, DropSchemaTree
from remuda.sql.trees.privileges import PrivilegeTree
from remuda.sql.trees.sequences import AlterSequenceTree, CreateSequenceTree
from remuda.sql.trees.session import (
    DeallocateTree,
    DiscardTree,
    ExecuteTree,
    ListenTree,
    NotifyTree,
    PrepareTree,
    SetConstraintsTree,
    SetTree,
    ShowSettingTree,
    UnlistenTree,
)
from remuda.sql.trees.snapshot import (
    CreateSnapshotTree,
    DropSnapshotTree,
    ExpireSnapshotTree,
    RestoreSnapshotTree,
    ShowSnapshotsTree,
    VerifySnapshotTree,
)
from remuda.sql.trees.syntax import (
    AlterTree,
    AnalyzeTree,
    ChangeTree,
    CommentTree,
    CreateIndexTree,
    CreateSchemaTree,
    CreateTree,
    CreateViewTree,
    DeclareTree,
    DropIndexTree,
    DropTree,
    ExplainTree,
    InsertTree,
    LockTree,
    MergeTree,
    QueryTree,
    SchemaElement,
    ShowTree,
    Tree,
    TruncateTree,
)
from remuda.sql.trees.transaction import (
    BeginTree,
    CommitTree,
    ReleaseTree,
    RollbackToTree,
    RollbackTree,
    SavepointTree,
    SetTransactionTree,
)
from remuda.sql.trees.types import AlterTypeTree, CommentTypeTree, CreateTypeTree, DropTypeTree


def bind(
    parsed: ParsedStatement,
    catalog: CatalogReader,
    parameter_types: Sequence[SqlType | None] | None = None,
    zone: str = UTC,
    path: tuple[str, ...] = DEFAULT_PATH,
    *,
    database: str = DATABASE,
) -> BoundStatement:
    """Resolve names and types. ``parameter_types`` are types that the client fixed; the others are
    inferred from where the parameters stand. ``zone``: that of the session, for literals;
    ``path``: its search path; ``database``: its name of the database.

    Raises the InputErrors with position and suggestion, LimitExceeded for deep nesting.
    """
    context = Context(
        parsed.text, catalog, parsed.parameters, parameter_types, session_zone(zone),
        path=path, database=database,
    )  # fmt: skip
    try:
        return _bind(context, parsed)
    except RemudaError as error:
        raise error.within(parsed.text) from error.__cause__
    except RecursionError:
        raise too_deep(None).within(parsed.text) from None


def _bind(context: Context, parsed: ParsedStatement) -> BoundStatement:
    match parsed.tree:
        case QueryTree() | InsertTree() | ChangeTree() | MergeTree() as tree:
            return _bind_runnable(context, tree)
        case DeclareTree() as tree:
            return _bind_declared(context, tree)
        case ExplainTree() as tree:
            return _bind_explain(context, tree)
        case TruncateTree() as tree:
            return bind_truncate(context, tree)
        case _:
            _check_databases(context, parsed.tree)
            return _bind_definition(context, parsed)


def _check_databases(context: Context, tree: object) -> None:
    """Refuse names in a definition that begin with the name of another database."""
    if isinstance(tree, Name):
        if tree.database and tree.database not in context.databases:
            raise NotSupported(
                "cross-database references are not implemented: "
                f'"{tree.database}.{tree.schema}.{tree.text}"',
                position=tree.position,
                hint="Leave out the name of the database.",
            )
    elif isinstance(tree, tuple | list):
        for part in tree:
            _check_databases(context, part)
    elif dataclasses.is_dataclass(tree):
        for field in dataclasses.fields(tree):
            _check_databases(context, getattr(tree, field.name))


def _bind_definition(context: Context, parsed: ParsedStatement) -> BoundStatement:
    match parsed.tree:
        case CreateTree() as tree:
            return _bind_create(context, tree)
        case CreateViewTree() as tree:
            return bind_create_view(context, tree, _bind_alone)
        case AlterTree() as tree:
            return bind_alter(context, tree, _bind_alone)
        case CreateIndexTree() as tree:
            return bind_create_index(context, tree)
        case CommentTree() as tree:
            return bind_comment(context, tree)
        case DropTree() as tree:
            return bind_drop(context, tree, _bind_alone)
        case AnalyzeTree() | LockTree() as tree:
            return _bind_of_maps(context, tree)
        case CreateSchemaTree() as tree:
            return _bind_create_schema(context, tree)
        case DropSchemaTree() | AlterSchemaTree() | CommentSchemaTree() as tree:
            return bind_schema(context, tree, _bind_alone)
        case CreateTypeTree() | AlterTypeTree() | DropTypeTree() | CommentTypeTree() as tree:
            return bind_type(context, tree, _bind_alone)
        case _:
            return _bind_other(context, parsed)


def _bind_create_schema(context: Context, tree: CreateSchemaTree) -> CatalogStatement:
    made = bind_schema(context, tree, _bind_alone)
    if not tree.elements:
        return made

    def bind_element(inner: Context, element: SchemaElement) -> BoundStatement:
        return _bind_definition(inner, ParsedStatement(inner.text, element, 0))

    (edit,) = made.edits
    assert isinstance(edit, PutNamespace)
    return bind_elements(context, made, edit.namespace.name, tree.elements, bind_element)


def _bind_create(context: Context, tree: CreateTree) -> BoundStatement:
    made = bind_create(context, tree, _bind_alone)
    if not isinstance(made, CreateAsStatement) or not context.takes_numbers:
        return made
    source = None if made.source is None else numbered(context, made.source)
    return dataclasses.replace(made, source=source)


def _bind_of_maps(
    context: Context, tree: AnalyzeTree | LockTree
) -> AnalyzeStatement | LockStatement:
    if isinstance(tree, LockTree):
        return bind_lock(context, tree)
    return bind_analyze(context, tree)


def _bind_explain(context: Context, tree: ExplainTree) -> ExplainStatement:
    statement = tree.statement
    if not isinstance(statement, CreateTree):
        return ExplainStatement(tree.options, _bind_runnable(context, statement))
    made = _bind_create(context, statement)
    if not isinstance(made, CreateAsStatement) or made.source is None:
        raise NotSupported(
            "this statement has no plan",
            position=statement.name.position,
            hint="Prepare a query, or an INSERT, UPDATE, DELETE or MERGE.",
        )
    if tree.options.analyze:
        raise NotSupported(
            "EXPLAIN ANALYZE of CREATE TABLE AS is not supported",
            position=statement.name.position,
            hint="EXPLAIN ANALYZE its query.",
        )
    names = tuple(column.name for column in made.source.output)
    query = BoundQuery(made.source, names, context.finish_parameters())
    return ExplainStatement(tree.options, query, f"CREATE TABLE {made.schema.name} AS")


def _bind_other(context: Context, parsed: ParsedStatement) -> BoundStatement:
    match parsed.tree:
        case CopyTree() as tree:
            return bind_copy(context, tree, _bind_inner)
        case CreateSequenceTree() | AlterSequenceTree() as tree:
            return bind_sequence(context, tree)
        case ShowTree() as tree:
            return bind_show(context, tree)
        case DropIndexTree() as tree:
            return bind_drop_index(context, tree)
        case SetTree() | ShowSettingTree() | PrepareTree() | ExecuteTree() as tree:
            return SessionStatement(tree)
        case SetConstraintsTree() as tree:
            return SessionStatement(with_keys(context, tree))
        case (
            DeallocateTree()
            | DiscardTree()
            | FetchTree()
            | CloseTree()
            | ListenTree()
            | NotifyTree()
            | UnlistenTree()
            | BeginTree()
            | CommitTree()
            | RollbackTree()
            | SetTransactionTree()
            | SavepointTree()
            | RollbackToTree()
            | ReleaseTree() as tree
        ):
            return SessionStatement(tree)
        case CreateSnapshotTree() | ShowSnapshotsTree() | VerifySnapshotTree() as tree:
            return SnapshotStatement(tree)
        case RestoreSnapshotTree() | ExpireSnapshotTree() | DropSnapshotTree() as tree:
            return SnapshotStatement(tree)
        case _:
            return _bind_for_cluster(context, parsed)


def _bind_for_cluster(context: Context, parsed: ParsedStatement) -> BoundStatement:
    match parsed.tree:
        case (
            AcceptLossTree()
            | DrainTree()
            | FinishUpgradeTree()
            | ResetStatementsTree()
            | LogLevelTree()
        ) as tree:
            return ClusterStatement(tree)
        case CancelTree() as tree:
            return CancelStatement(tree)
        case PrivilegeTree() as tree:
            return bind_privileges(context, tree)
        case _:
            raise AssertionError(f"{type(parsed.tree).__name__} is bound elsewhere")


def _bind_declared(context: Context, tree: DeclareTree) -> BoundQuery:
    """The query of a cursor. Raises NotSupported, InvalidCursorDefinition."""
    declaration, position = tree.declaration, tree.declaration.position
    bound = _bind_runnable(context, tree.query)
    if not isinstance(bound, BoundQuery):
        raise NotSupported(
            "DECLARE CURSOR must not contain data-modifying statements in WITH",
            hint="Run the statement by itself: RETURNING gives its rows.",
            position=position,
        )
    if bound.effects:
        raise NotSupported(
            "a cursor cannot be declared for a query that sleeps, changes settings or signals "
            "sessions",
            hint="Run it as a statement of its own.",
            position=position,
        )
    if bound.locking and declaration.hold:
        raise NotSupported(
            "DECLARE CURSOR WITH HOLD ... FOR UPDATE is not supported",
            detail="Holdable cursors must be READ ONLY.",
            hint="Leave out WITH HOLD, or FOR UPDATE.",
            position=position,
        )
    if bound.locking and declaration.scroll:
        raise NotSupported(
            "DECLARE SCROLL CURSOR ... FOR UPDATE is not supported",
            detail="Scrollable cursors must be READ ONLY.",
            hint="Leave out SCROLL, or FOR UPDATE.",
            position=position,
        )
    if bound.locking and declaration.insensitive:
        raise InvalidCursorDefinition(
            "DECLARE INSENSITIVE CURSOR ... FOR UPDATE is not valid",
            detail="Insensitive cursors must be READ ONLY.",
            position=position,
        )
    return dataclasses.replace(bound, declares=declaration)


def bind_arguments(
    text: str,
    tree: ExecuteTree,
    types: Sequence[SqlType],
    catalog: CatalogReader,
    *,
    zone: str = UTC,
    path: tuple[str, ...] = DEFAULT_PATH,
    database: str = DATABASE,
) -> tuple[Expression, ...]:
    """The arguments of an EXECUTE in ``text``, constants of the parameters' ``types``."""
    moments = session_zone(zone)
    context = Context(text, catalog, 0, None, moments, path=path, database=database)
    binder = ExpressionBinder(context, Scope(), Forbidding(context, "EXECUTE parameters"))
    return tuple(
        binder.convert.assigned(
            refuse_calls(context, binder.bind(node), "EXECUTE parameters", node),
            wanted,
            node,
            f"parameter ${number}",
        )
        for number, (node, wanted) in enumerate(zip(tree.arguments, types, strict=True), 1)
    )


def _bind_alone(context: Context, node: ast.Node) -> Logical:
    """A query that sees nothing around it."""
    return bind_query(context, node, Environment())


def _bind_inner(context: Context, tree: Tree) -> BoundStatement:
    """The query of a COPY."""
    assert isinstance(tree, QueryTree | InsertTree | ChangeTree | MergeTree)
    return _bind_runnable(context, tree)


def _written(context: Context, plan: Logical) -> Logical:
    """OIDs of objects as their names, in a result that a client reads."""
    if not any(is_written(column.type) for column in plan.output):
        return plan
    expressions = [
        as_text(context, reference) if is_written(reference.type) else reference
        for _, reference in column_refs(plan.output)
    ]
    return project(context, plan, [column.name for column in plan.output], expressions)


def _bind_runnable(
    context: Context, tree: QueryTree | InsertTree | ChangeTree | MergeTree
) -> BoundQuery | InsertStatement | ChangeStatement:
    if not isinstance(tree, QueryTree) or changing_tables(tree.root):
        change = _bind_changing(context, tree)
        if context.takes_numbers or change.schema.takes_numbers:
            change = _numbered(context, change)
        types = context.finish_parameters()
        if isinstance(change, ChangeStatement):
            known = origins(context, change.source)
            return dataclasses.replace(change, parameter_types=types, origins=known)
        return dataclasses.replace(change, parameter_types=types)
    items = EffectItems(context, tree.root)
    plan = _written(context, bind_query(context, items.root, Environment()))
    if context.takes_numbers:
        plan = numbered(context, plan)
    names = tuple(column.name for column in plan.output)
    effects = items.effects(len(names))
    query = BoundQuery(plan, names, context.finish_parameters(), tree.locking, effects)
    return dataclasses.replace(query, origins=origins(context, plan))


def _bind_changing(
    context: Context, tree: QueryTree | InsertTree | ChangeTree | MergeTree
) -> InsertStatement | ChangeStatement:
    if isinstance(tree, InsertTree):
        return bind_insert(context, tree)
    if isinstance(tree, MergeTree):
        return bind_merge(context, tree.root)
    if isinstance(tree, ChangeTree):
        return bind_change(context, tree)
    return bind_changing_query(context, tree.root)


def _numbered(
    context: Context, change: InsertStatement | ChangeStatement
) -> InsertStatement | ChangeStatement:
    source = numbered(context, change.source)
    if isinstance(change, InsertStatement) or change.query is None:
        return dataclasses.replace(change, source=source)
    query = dataclasses.replace(change.query, plan=numbered(context, change.query.plan))
    return dataclasses.replace(change, source=source, query=query)
