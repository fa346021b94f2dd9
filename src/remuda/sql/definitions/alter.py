"""ALTER TABLE and ALTER VIEW: from actions to edits of the catalog.

Actions apply one after the other to the schema. What new rows must fulfil from now on (a CHECK, NOT
NULL) holds as soon as the edits are made; then the rows that are there are verified. A column
becomes NOT NULL only after that, because the planner relies on it: until then a CHECK guards it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from remuda.catalog.edits import DropMap, DropView, Edit, PutMap, PutView
from remuda.catalog.indexes import without_index
from remuda.datatypes.identifiers import quoted_name
from remuda.datatypes.schema import (
    NOT_NULL_GUARD,
    PUBLIC,
    Check,
    Column,
    Default,
    MapSchema,
    ViewDefinition,
)
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.widening import widening
from remuda.errors import (
    DependentObjects,
    DuplicateColumn,
    DuplicateMap,
    DuplicateObject,
    InvalidDefinition,
    NotSupported,
    NumberNotDefined,
    SqlSyntaxError,
    UndefinedColumn,
    UndefinedObject,
)
from remuda.sql.definitions.added_keys import with_key
from remuda.sql.definitions.constraints import bind_default, condition_columns, default_of
from remuda.sql.definitions.conversions import converts_itself
from remuda.sql.definitions.filling import fill_texts, needs_filling, while_filling
from remuda.sql.definitions.generated import (
    altered_generation,
    check_generated,
    no_default,
    refuse_new_type,
    without_dependents,
)
from remuda.sql.definitions.index_definitions import bind_rename_index, index_in
from remuda.sql.definitions.map_options import with_settings
from remuda.sql.definitions.namespaces import bind_place
from remuda.sql.definitions.renames import with_renamed_checks, with_renamed_views
from remuda.sql.definitions.schemas import (
    check_column_name,
    map_of,
    missing,
    new_column,
    with_checks,
)
from remuda.sql.definitions.sequences import (
    altered,
    generated,
    identity_type,
    owned_by,
    sequence_of,
    uses,
    with_renamed_defaults,
)
from remuda.sql.definitions.unique_constraints import with_uniques
from remuda.sql.definitions.verifications import verifications
from remuda.sql.queries.views import BindQuery, placed, renamed, with_dependents
from remuda.sql.scope.context import Context
from remuda.sql.scope.enum_names import resolved
from remuda.sql.scope.notices import Notice, column_there, not_there
from remuda.sql.scope.resolution import Place, found_in, place_in
from remuda.sql.scope.statements import CatalogStatement, NumbersFrom
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees.syntax import (
    Action,
    AddCheck,
    AddColumn,
    AddIdentity,
    AddKey,
    AddUnique,
    AlterTree,
    ChangeDefault,
    ChangeNullable,
    ChangeOptions,
    ChangeType,
    DropColumn,
    DropConstraint,
    DropExpression,
    DropIdentity,
    Name,
    Rename,
    SetExpression,
    SetIdentity,
    SetOwner,
    SetSchema,
    UniqueDefinition,
)


@dataclass
class _Alteration:
    """The schema so far, and what the rows that are there must fulfil under it."""

    context: Context
    schema: MapSchema
    sequences: list[MapSchema] = field(default_factory=list)
    """Those that new columns own, and those that are altered."""
    dropped: list[MapSchema] = field(default_factory=list)
    """Sequences whose columns are dropped."""
    numbers: list[NumbersFrom] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    not_null: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    uniques: list[str] = field(default_factory=list)
    filled: list[str] = field(default_factory=list)
    """Columns whose values are computed for the rows that are there."""
    cascade: bool = False

    def column(self, name: Name) -> Column:
        names = [column.name for column in self.schema.shown]
        if name.text not in names:
            error = UndefinedColumn(
                f'column "{name.text}" of map "{self.schema.name}" does not exist',
                hint=did_you_mean(name.text, names),
            )
            raise placed(self.context, error, name)
        return self.schema.column(name.text)

    def put(self, column: Column, name: str = "") -> None:
        """Replace the column called ``name`` (its own name if that stays)."""
        self.schema = replace(
            self.schema,
            columns=tuple(
                column if other.name == (name or column.name) else other
                for other in self.schema.columns
            ),
        )


def bind_alter(context: Context, tree: AlterTree, bind: BindQuery) -> CatalogStatement:
    tag = f"ALTER {tree.kind}"
    version = context.catalog.version
    if tree.kind == "INDEX":
        return bind_rename_index(context, tree)
    if context.relation(tree.name) is None and tree.if_exists:
        skipped = not_there("relation", tree.name.text)
        return CatalogStatement(tag, version, (), notices=(skipped,))
    first = tree.actions[0]
    if isinstance(first, Rename) and first.what == "RELATION":
        return CatalogStatement(tag, version, _rename_relation(context, tree, first, bind))
    if isinstance(first, SetSchema | SetOwner):
        return CatalogStatement(tag, version, bind_place(context, tree, first, bind))
    if tree.kind == "VIEW":
        raise missing(context, tree.name, "VIEW")
    before = map_of(context, tree.name)
    work = _Alteration(context, before)
    for action in tree.actions:
        _apply(work, action)
    wanted: list[Edit] = [PutMap(work.schema), *map(PutMap, work.sequences)]
    wanted += [DropMap(each.name) for each in work.dropped]
    if isinstance(first, Rename) and first.old is not None:
        old, new = first.old.text, first.new.text
        wanted = with_renamed_views(context.catalog, wanted, old, new, bind)
    edits = with_dependents(
        context,
        wanted,
        f'alter map "{before.name}"',
        tree.name,
        bind,
        cascade=work.cascade,
        may_cascade=any(isinstance(action, DropColumn) for action in tree.actions),
    )
    found = _verified(work, before, edits, tag)
    return replace(found, numbers=tuple(work.numbers), notices=tuple(work.notices))


def _verified(
    work: _Alteration, before: MapSchema, edits: tuple[Edit, ...], tag: str
) -> CatalogStatement:
    catalog, schema = work.context.catalog, work.schema
    not_null = [name for name in work.not_null if name in schema.position]
    checks = [check for check in schema.checks if check.name in work.checks]
    uniques = [index for index in schema.uniques if index.name in work.uniques]
    if not (not_null or checks or uniques or work.filled):
        return CatalogStatement(tag, catalog.version, edits)
    guards = tuple(
        Check(NOT_NULL_GUARD + name, f"{quoted_name(name)} IS NOT NULL") for name in not_null
    )
    guarded = replace(
        schema,
        columns=tuple(
            replace(column, nullable=True) if column.name in not_null else column
            for column in schema.columns
        ),
        checks=(*schema.checks, *guards),
    )
    verify = verifications(schema, not_null, checks, uniques)
    views = [catalog.find_view(edit.name) for edit in edits if isinstance(edit, DropView)]
    undo: list[Edit] = [PutMap(before), *(PutView(view) for view in views if view is not None)]
    fill = fill_texts(schema, work.filled)
    early = while_filling(schema, not_null, work.checks, work.uniques) if fill else guarded
    return CatalogStatement(
        tag,
        catalog.version,
        edits=(PutMap(early), *edits[1:]),
        fill=fill,
        filled=(PutMap(guarded),) if fill and verify else (),
        verify=verify,
        finally_=(PutMap(schema),) if not_null else (),
        undo=(*undo, *(DropMap(each.name) for each in work.sequences if not each.map_id)),
    )


def _rename_relation(
    context: Context, tree: AlterTree, action: Rename, bind: BindQuery
) -> tuple[Edit, ...]:
    new, known = action.new.text, context.relation(tree.name)
    place = Place(PUBLIC if known is None else known.namespace, new)
    more: list[Edit] = []
    if tree.kind == "SEQUENCE" or _is_sequence(context, tree):
        sequence = sequence_of(context, tree.name)
        edit: Edit = PutMap(replace(sequence, name=place.full))
        more = with_renamed_defaults(context.catalog, sequence.name, place)
    elif tree.kind == "TABLE" and not isinstance(known, ViewDefinition):
        schema = map_of(context, tree.name)
        after = replace(schema, name=place.full, key_name=schema.primary_key)
        edit = PutMap(with_renamed_checks(schema, after, schema.local, new))
    else:
        if not isinstance(known, ViewDefinition):
            raise missing(context, tree.name, "VIEW")
        edit = PutView(renamed(known, place.full))
    if found_in(context.catalog, place.namespace, new) is not None:
        error = DuplicateMap(f'a map or view of the name "{new}" already exists')
        raise placed(context, error, action.new)
    what = f'rename "{tree.name.text}"'
    wanted = [edit, *more]
    edits = with_renamed_views(context.catalog, wanted, tree.name.text, new, bind)
    return with_dependents(context, edits, what, tree.name, bind, cascade=False, may_cascade=False)


def _is_sequence(context: Context, tree: AlterTree) -> bool:
    """PostgreSQL's ALTER TABLE renames sequences, too, and views."""
    found = context.relation(tree.name)
    return tree.kind == "TABLE" and isinstance(found, MapSchema) and found.sequence is not None


def _apply(work: _Alteration, action: Action) -> None:
    match action:
        case AddColumn():
            _add_column(work, action)
        case AddCheck(check=check):
            known = {check.name for check in work.schema.checks}
            work.schema = with_checks(work.context, work.schema, [check])
            work.checks += [c.name for c in work.schema.checks if c.name not in known]
        case AddUnique() | AddKey():
            _add_unique(work, action)
        case DropColumn():
            _drop_column(work, action)
        case DropConstraint():
            _drop_constraint(work, action)
        case ChangeType():
            _change_type(work, action)
        case ChangeDefault():
            _change_default(work, action)
        case ChangeNullable():
            _change_nullable(work, action)
        case ChangeOptions(settings=settings):
            options = with_settings(work.context, work.schema.options, settings)
            work.schema = replace(work.schema, options=options)
        case Rename():
            _rename(work, action)
        case SetExpression() | DropExpression():
            _change_expression(work, action)
        case AddIdentity() | SetIdentity() | DropIdentity():
            _change_identity(work, action)


def _add_column(work: _Alteration, action: AddColumn) -> None:
    context, schema = work.context, work.schema
    name = action.column.name
    if name.text in schema.position:
        if action.if_not_exists:
            work.notices.append(column_there(name.text, schema.local))
            return
        error = DuplicateColumn(f'column "{name.text}" of map "{schema.name}" already exists')
        raise placed(context, error, name)
    check_column_name(context, name, schema.position)
    column = new_column(context, place_in(schema), action.column, schema.position, work.sequences)
    work.numbers += [NumbersFrom(each.name) for each in work.sequences]
    work.schema = replace(schema, columns=(*schema.columns, column))
    if action.column.generated is not None:
        check_generated(context, work.schema, column, action.column.generated)
    if needs_filling(column):
        work.filled.append(column.name)
    if not column.nullable:
        work.not_null.append(column.name)
    known = {check.name for check in schema.checks}
    work.schema = with_checks(context, work.schema, action.elements.checks)
    work.checks += [c.name for c in work.schema.checks if c.name not in known]
    if action.elements.key is not None:
        _add_unique(work, AddKey(action.elements.key))
    _add_uniques(work, action.elements.uniques)


def _identity_column(work: _Alteration, name: Name) -> Column:
    column = work.column(name)
    if column.identity is None:
        raise placed(
            work.context,
            NumberNotDefined(
                f'column "{column.name}" of relation "{work.schema.name}" is not an identity column'
            ),
            name,
        )
    return column


def _change_default(work: _Alteration, action: ChangeDefault) -> None:
    column = work.column(action.name)
    if column.identity is not None:
        error = SqlSyntaxError(
            f'column "{column.name}" of relation "{work.schema.name}" is an identity column',
            hint="Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead.",
        )
        raise placed(work.context, error, action.name)
    if column.generated:
        raise placed(work.context, no_default(work.schema, column, action), action.name)
    default = None
    if action.default is not None:
        default = bind_default(work.context, column.name, column.type, action.default)
    work.put(replace(column, default=default))


def _change_expression(work: _Alteration, action: SetExpression | DropExpression) -> None:
    column = work.column(action.name)
    changed = altered_generation(work.context, work.schema, column, action)
    if isinstance(changed, Notice):
        work.notices.append(changed)
        return
    work.put(changed)
    if changed.generated:
        work.filled.append(column.name)


def _change_identity(work: _Alteration, action: AddIdentity | SetIdentity | DropIdentity) -> None:
    match action:
        case AddIdentity():
            _add_identity(work, action)
        case SetIdentity():
            _set_identity(work, action)
        case DropIdentity():
            _drop_identity(work, action)


def _add_identity(work: _Alteration, action: AddIdentity) -> None:
    context, column = work.context, work.column(action.name)
    where = f'column "{column.name}" of relation "{work.schema.name}"'
    problem = ""
    if column.identity is not None:
        problem = f"{where} is already an identity column"
    elif column.default is not None or column.generated:
        problem = f"{where} already has a default value"
    elif column.nullable:
        problem = f"{where} must be declared NOT NULL before identity can be added"
    if problem:
        raise placed(context, NumberNotDefined(problem), action.name)
    kind = identity_type(context, action.name, column.type)
    taken = [each.name for each in work.sequences]
    made = generated(context, place_in(work.schema), column, kind, action.identity, taken=taken)
    work.put(made.column)
    work.sequences.append(made.sequence)
    work.numbers.append(NumbersFrom(made.sequence.name))


def _set_identity(work: _Alteration, action: SetIdentity) -> None:
    column = _identity_column(work, action.name)
    identity = action.identity
    if identity.kind is not None:
        work.put(replace(column, identity=identity.kind))
    if identity.clauses.positions:
        for sequence in owned_by(work.context.catalog, [column]):
            if uses(column, sequence.name):
                changed, numbers = altered(work.context, sequence, identity.clauses)
                work.sequences.append(changed)
                work.numbers.append(numbers)


def _drop_identity(work: _Alteration, action: DropIdentity) -> None:
    if work.column(action.name).identity is None and action.if_exists:
        return
    column = _identity_column(work, action.name)
    gone = [s for s in owned_by(work.context.catalog, [column]) if uses(column, s.name)]
    links = {s.sequence.link for s in gone if s.sequence is not None}
    left = tuple(link for link in column.sequences if link not in links)
    work.put(replace(column, identity=None, default=None, sequences=left))
    work.dropped += gone


def _add_uniques(work: _Alteration, definitions: Sequence[UniqueDefinition]) -> None:
    known = {index.name for index in work.schema.indexes}
    work.schema = with_uniques(work.context, work.schema, definitions)
    work.uniques += [i.name for i in work.schema.uniques if i.name not in known]


def _add_unique(work: _Alteration, action: AddUnique | AddKey) -> None:
    if isinstance(action, AddUnique):
        _add_uniques(work, [action.unique])
        return
    key = action.key
    work.schema = with_key(work.context, work.schema, key)
    for name in key.columns:
        _change_nullable(work, ChangeNullable(name, nullable=False))
    work.uniques.append(work.schema.primary_key)


def _drop_column(work: _Alteration, action: DropColumn) -> None:
    schema = work.schema
    if action.if_exists and action.name.text not in schema.position:
        return
    column = work.column(action.name)
    if column.name in schema.key:
        error = InvalidDefinition(
            f'column "{column.name}" is in the primary key of map "{schema.name}"',
            hint="The key of a map stays as it was defined.",
        )
        raise placed(work.context, error, action.name)
    position = schema.position[column.name]
    gone = [c for c in schema.checks if position in condition_columns(schema, c)]
    shared = [c for c in gone if len(condition_columns(schema, c)) > 1]
    if shared and not action.cascade:
        error_ = DependentObjects(
            f'cannot drop column "{column.name}" because other objects depend on it',
            detail=f'constraint "{shared[0].name}" reads it and other columns.',
            hint="Use DROP COLUMN ... CASCADE to drop the constraint too.",
        )
        raise placed(work.context, error_, action.name)
    try:
        schema = without_dependents(schema, column.name, cascade=action.cascade)
    except DependentObjects as problem:
        raise placed(work.context, problem, action.name) from None
    work.cascade = work.cascade or action.cascade
    work.dropped += owned_by(work.context.catalog, [column])
    work.schema = replace(
        schema,
        columns=tuple(other for other in schema.columns if other is not column),
        checks=tuple(check for check in schema.checks if check not in gone),
        columns_made=max(schema.columns_made, *(other.id for other in schema.columns)),
    )


def _drop_constraint(work: _Alteration, action: DropConstraint) -> None:
    schema, name = work.schema, action.name
    left = tuple(check for check in schema.checks if check.name != name.text)
    if len(left) < len(schema.checks):
        work.schema = replace(schema, checks=left)
        return
    uniques = [index for index in schema.uniques if index.constraint]
    if any(index.name == name.text for index in uniques):
        key = schema.added_key
        left_name = "" if key is not None and key.name == name.text else schema.key_name
        work.schema = replace(without_index(schema, name.text), key_name=left_name)
        work.uniques = [other for other in work.uniques if other != name.text]
        return
    if name.text == schema.primary_key and not schema.has_row_ids:
        raise placed(
            work.context,
            InvalidDefinition("the primary key of a map stays as it was defined"),
            name,
        )
    if not action.if_exists:
        error = UndefinedObject(
            f'constraint "{name.text}" of map "{schema.name}" does not exist',
            hint=did_you_mean(
                name.text, [*(c.name for c in schema.checks), *(i.name for i in uniques)]
            ),
        )
        raise placed(work.context, error, name)


def _change_type(work: _Alteration, action: ChangeType) -> None:
    column = work.column(action.name)
    try:
        refuse_new_type(work.schema, column.name)
    except NotSupported as problem:
        raise placed(work.context, problem, action.name) from None
    new = resolved(work.context, action.type, action.position)
    same = column.type == new  # but for digits of seconds
    computed = not converts_itself(work.context, action)
    if same and str(column.type) == str(new) and not computed:
        return
    text = column.type.is_text and new.is_text
    key = column.name in work.schema.key and not (same or text)
    convert = widening(column.type, new)
    if not same and any(column.name in index.names for index in work.schema.uniques):
        _keep_distinct(work, column, new, action.name)
    if key or computed or convert is None:
        why = (
            "the type of a key column cannot be changed"
            if key
            else "USING is supported for a cast of the column to its new type alone"
            if computed
            else f'column "{column.name}" of type {column.type} cannot become {new}: '
            "some value might not fit"
        )
        raise placed(
            work.context,
            NotSupported(
                why,
                hint="Add a column of the new type, fill it with UPDATE, drop the old one, and "
                "rename.",
            ),
            action.name,
        )
    default = column.default and Default(column.default.text)
    if default is not None:
        default_of(replace(column, type=new, default=default))  # does it fit?
    missing = None if column.missing is None else convert(column.missing)
    work.put(replace(column, type=new, default=default, missing=missing))
    for check in work.schema.checks:
        condition_columns(work.schema, check)


def _keep_distinct(work: _Alteration, column: Column, new: SqlType, place: Name) -> None:
    """Different values of the old type are different ones of the new one. Raises NotSupported."""
    old = column.type
    text = old.is_text and new.is_text and (old.kind is Kind.CHAR or new.kind is not Kind.CHAR)
    if not (text or (old.is_integer and new.is_integer)):
        error = NotSupported(
            f'the type of column "{column.name}", which is in a UNIQUE constraint, cannot become '
            f"{new}",
            hint="Drop the constraint, change the type, and add the constraint again.",
        )
        raise placed(work.context, error, place)


def _change_nullable(work: _Alteration, action: ChangeNullable) -> None:
    column = work.column(action.name)
    if action.nullable and column.name in work.schema.key:
        error = InvalidDefinition(f'column "{column.name}" is in a primary key')
        raise placed(work.context, error, action.name)
    if action.nullable:
        work.not_null = [name for name in work.not_null if name != column.name]
    elif column.nullable:
        work.not_null.append(column.name)
    work.put(replace(column, nullable=action.nullable))


def _rename(work: _Alteration, action: Rename) -> None:
    context, schema = work.context, work.schema
    assert action.old is not None
    old, new = action.old.text, action.new.text
    if action.what == "CONSTRAINT":
        _rename_constraint(work, action.old, action.new)
        return
    column = work.column(action.old)
    if new in schema.position:
        error = DuplicateColumn(f'column "{new}" of map "{schema.name}" already exists')
        raise placed(context, error, action.new)
    check_column_name(context, action.new, schema.position)
    work.put(replace(column, name=new), old)
    renamed_schema = replace(
        work.schema,
        key=tuple(new if name == old else name for name in schema.key),
        partition_by=tuple(new if name == old else name for name in schema.partition_by),
    )
    try:
        work.schema = with_renamed_checks(schema, renamed_schema, old, new)
    except NotSupported as problem:
        raise placed(context, problem, action.old) from None


def _rename_constraint(work: _Alteration, old: Name, new: Name) -> None:
    schema = work.schema
    uniques = [index.name for index in schema.uniques if index.constraint]
    names = [schema.primary_key, *(check.name for check in schema.checks), *uniques]
    if old.text not in names:
        error = UndefinedObject(f'constraint "{old.text}" of map "{schema.name}" does not exist')
        raise placed(work.context, error, old)
    foreign = old.text in uniques and index_in(work.context, schema.namespace, new.text) is not None
    if new.text in names or foreign:  # names of indexes are those of a schema
        taken = DuplicateObject(f'constraint "{new.text}" for map "{schema.name}" already exists')
        raise placed(work.context, taken, new)
    work.schema = replace(
        schema,
        key_name=new.text if old.text == schema.primary_key else schema.key_name,
        checks=tuple(
            replace(check, name=new.text) if check.name == old.text else check
            for check in schema.checks
        ),
        indexes=tuple(
            replace(i, name=new.text) if i.constraint and i.name == old.text else i
            for i in schema.indexes
        ),
    )
