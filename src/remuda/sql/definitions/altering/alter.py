"""ALTER TABLE and ALTER VIEW: from actions to edits of the catalog.

Actions apply one after the other to the schema. What new rows must fulfil from now on (a CHECK, NOT
NULL) holds as soon as the edits are made; then the rows that are there are verified. A column
becomes NOT NULL only after that, because the planner relies on it: until then a CHECK guards it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from remuda.catalog.edits import DropMap, DropView, Edit, PutMap, PutView
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
from remuda.datatypes.widening import widening
from remuda.errors import (
    DuplicateColumn,
    DuplicateMap,
    InvalidDefinition,
    NotSupported,
    NumberNotDefined,
    SqlSyntaxError,
)
from remuda.sql.definitions.altering.added_keys import with_key
from remuda.sql.definitions.altering.alteration import Alteration
from remuda.sql.definitions.altering.constraint_states import change_constraint
from remuda.sql.definitions.altering.conversions import converts_itself, keep_distinct
from remuda.sql.definitions.altering.dropped_parts import drop_column, drop_constraint
from remuda.sql.definitions.altering.filling import fill_texts, needs_filling, while_filling
from remuda.sql.definitions.altering.renames import (
    with_renamed_checks,
    with_renamed_constraint,
    with_renamed_views,
)
from remuda.sql.definitions.altering.verifications import verifications
from remuda.sql.definitions.constraints import bind_default, condition_columns, default_of
from remuda.sql.definitions.foreign_keys import (
    keep_comparable,
    parent_of,
    with_foreign_keys,
    without_children,
)
from remuda.sql.definitions.generated import (
    altered_generation,
    check_generated,
    no_default,
    refuse_new_type,
)
from remuda.sql.definitions.index_definitions import bind_rename_index
from remuda.sql.definitions.map_options import with_changed_options
from remuda.sql.definitions.namespaces import bind_place
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
from remuda.sql.definitions.unique_constraints import with_adopted, with_uniques
from remuda.sql.queries.views import BindQuery, placed, renamed, with_dependents
from remuda.sql.scope.context import Context
from remuda.sql.scope.enum_names import resolved
from remuda.sql.scope.notices import Notice, column_there, index_renamed, not_there
from remuda.sql.scope.resolution import Place, found_in, place_in, refuse_name_of_index
from remuda.sql.scope.statements import CatalogStatement, NumbersFrom
from remuda.sql.trees.syntax import (
    Action,
    AddCheck,
    AddColumn,
    AddForeignKey,
    AddIdentity,
    AddKey,
    AddUnique,
    AdoptIndex,
    AlterConstraint,
    AlterTree,
    ChangeDefault,
    ChangeNullable,
    ChangeOptions,
    ChangeType,
    CheckDefinition,
    DropColumn,
    DropConstraint,
    DropExpression,
    DropIdentity,
    ForeignKeyDefinition,
    Name,
    Rename,
    SetExpression,
    SetIdentity,
    SetOwner,
    SetSchema,
    UniqueDefinition,
    ValidateConstraint,
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
    work = Alteration(context, before)
    for action in tree.actions:
        _apply(work, action)
    wanted: list[Edit] = [PutMap(work.schema), *map(PutMap, work.sequences)]
    wanted += [DropMap(each.name) for each in work.dropped]
    if isinstance(first, Rename) and first.old is not None:
        old, new = first.old.text, first.new.text
        wanted = with_renamed_views(context.catalog, wanted, old, new, bind)
    if work.cascade:
        wanted = list(without_children(context.catalog, wanted))
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
    work: Alteration, before: MapSchema, edits: tuple[Edit, ...], tag: str
) -> CatalogStatement:
    catalog, schema = work.context.catalog, work.schema
    not_null = [name for name in work.not_null if name in schema.position]
    checks = [check for check in schema.checks if check.name in work.checks]
    uniques = [index for index in schema.uniques if index.name in work.uniques]
    keys = [key for key in schema.foreign_keys if key.name in work.foreign_keys]
    if not (not_null or checks or uniques or keys or work.filled):
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
    parents = [(key, parent_of(catalog, schema, key)) for key in keys]
    verify = verifications(schema, not_null, checks, uniques, parents)
    views = [catalog.find_view(edit.name) for edit in edits if isinstance(edit, DropView)]
    undo: list[Edit] = [PutMap(before), *(PutView(view) for view in views if view is not None)]
    fill = fill_texts(schema, work.filled)
    demanded = {*work.checks, *work.uniques, *work.foreign_keys}
    early = while_filling(schema, not_null, demanded) if fill else guarded
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
    refuse_name_of_index(context.catalog, place, action.new)
    what = f'rename "{tree.name.text}"'
    wanted = [edit, *more]
    edits = with_renamed_views(context.catalog, wanted, tree.name.text, new, bind)
    return with_dependents(context, edits, what, tree.name, bind, cascade=False, may_cascade=False)


def _is_sequence(context: Context, tree: AlterTree) -> bool:
    """PostgreSQL's ALTER TABLE renames sequences, too, and views."""
    found = context.relation(tree.name)
    return tree.kind == "TABLE" and isinstance(found, MapSchema) and found.sequence is not None


def _apply(work: Alteration, action: Action) -> None:
    match action:
        case AddColumn():
            _add_column(work, action)
        case AddCheck() | AddForeignKey():
            _add_constraint(work, action)
        case AddUnique() | AddKey() | AdoptIndex():
            _add_unique(work, action)
        case ValidateConstraint() | AlterConstraint():
            change_constraint(work, action)
        case DropColumn():
            drop_column(work, action)
        case DropConstraint():
            drop_constraint(work, action)
        case ChangeType():
            _change_type(work, action)
        case ChangeDefault():
            _change_default(work, action)
        case ChangeNullable():
            _change_nullable(work, action)
        case ChangeOptions():
            work.schema = with_changed_options(work.context, work.schema, action)
        case Rename():
            _rename(work, action)
        case SetExpression() | DropExpression():
            _change_expression(work, action)
        case AddIdentity() | SetIdentity() | DropIdentity():
            _change_identity(work, action)


def _add_column(work: Alteration, action: AddColumn) -> None:
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
    _add_checks(work, action.elements.checks)
    if action.elements.key is not None:
        _add_unique(work, AddKey(action.elements.key))
    _add_uniques(work, action.elements.uniques)
    _add_foreign_keys(work, action.elements.foreign_keys)


def _add_constraint(work: Alteration, action: AddCheck | AddForeignKey) -> None:
    if isinstance(action, AddCheck):
        _add_checks(work, [action.check])
    else:
        _add_foreign_keys(work, [action.foreign_key])


def _add_checks(work: Alteration, definitions: Sequence[CheckDefinition]) -> None:
    known = {check.name for check in work.schema.checks}
    work.schema = with_checks(work.context, work.schema, definitions)
    new = [check for check in work.schema.checks if check.name not in known]
    work.checks += [check.name for check in new if check.valid]


def _add_foreign_keys(work: Alteration, definitions: Sequence[ForeignKeyDefinition]) -> None:
    known = {key.name for key in work.schema.foreign_keys}
    work.schema = with_foreign_keys(work.context, work.schema, definitions, map_of)
    new = [key for key in work.schema.foreign_keys if key.name not in known]
    work.foreign_keys += [key.name for key in new if key.valid]


def _identity_column(work: Alteration, name: Name) -> Column:
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


def _change_default(work: Alteration, action: ChangeDefault) -> None:
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


def _change_expression(work: Alteration, action: SetExpression | DropExpression) -> None:
    column = work.column(action.name)
    changed = altered_generation(work.context, work.schema, column, action)
    if isinstance(changed, Notice):
        work.notices.append(changed)
        return
    work.put(changed)
    if changed.generated:
        work.filled.append(column.name)


def _change_identity(work: Alteration, action: AddIdentity | SetIdentity | DropIdentity) -> None:
    match action:
        case AddIdentity():
            _add_identity(work, action)
        case SetIdentity():
            _set_identity(work, action)
        case DropIdentity():
            _drop_identity(work, action)


def _add_identity(work: Alteration, action: AddIdentity) -> None:
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


def _set_identity(work: Alteration, action: SetIdentity) -> None:
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


def _drop_identity(work: Alteration, action: DropIdentity) -> None:
    if work.column(action.name).identity is None and action.if_exists:
        return
    column = _identity_column(work, action.name)
    gone = [s for s in owned_by(work.context.catalog, [column]) if uses(column, s.name)]
    links = {s.sequence.link for s in gone if s.sequence is not None}
    left = tuple(link for link in column.sequences if link not in links)
    work.put(replace(column, identity=None, default=None, sequences=left))
    work.dropped += gone


def _add_uniques(work: Alteration, definitions: Sequence[UniqueDefinition]) -> None:
    known = {index.name for index in work.schema.indexes}
    work.schema = with_uniques(work.context, work.schema, definitions)
    work.uniques += [i.name for i in work.schema.uniques if i.name not in known]


def _add_unique(work: Alteration, action: AddUnique | AddKey | AdoptIndex) -> None:
    if isinstance(action, AdoptIndex):
        work.schema = with_adopted(work.context, work.schema, action)
        if action.name is not None and action.name.text != action.index.text:
            work.notices.append(index_renamed(action.index.text, action.name.text))
        return
    if isinstance(action, AddUnique):
        _add_uniques(work, [action.unique])
        return
    key = action.key
    work.schema = with_key(work.context, work.schema, key)
    for name in key.columns:
        _change_nullable(work, ChangeNullable(name, nullable=False))
    work.uniques.append(work.schema.primary_key)


def _change_type(work: Alteration, action: ChangeType) -> None:
    column = work.column(action.name)
    try:
        refuse_new_type(work.schema, column.name)
    except NotSupported as problem:
        raise placed(work.context, problem, action.name) from None
    new = resolved(work.context, action.type, action.position)
    same = column.type == new  # but for digits of seconds
    if not same:
        keep_comparable(work.context, work.schema, action.name, new)
    computed = not converts_itself(work.context, action)
    if same and str(column.type) == str(new) and not computed:
        return
    text = column.type.is_text and new.is_text
    key = column.name in work.schema.key and not (same or text)
    convert = widening(column.type, new)
    if not same and any(column.name in index.names for index in work.schema.uniques):
        keep_distinct(work.context, column, new, action.name)
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


def _change_nullable(work: Alteration, action: ChangeNullable) -> None:
    column = work.column(action.name)
    if action.nullable and column.name in work.schema.key:
        error = InvalidDefinition(f'column "{column.name}" is in a primary key')
        raise placed(work.context, error, action.name)
    if action.nullable:
        work.not_null = [name for name in work.not_null if name != column.name]
    elif column.nullable:
        work.not_null.append(column.name)
    work.put(replace(column, nullable=action.nullable))


def _rename(work: Alteration, action: Rename) -> None:
    context, schema = work.context, work.schema
    assert action.old is not None
    old, new = action.old.text, action.new.text
    if action.what == "CONSTRAINT":
        work.schema = with_renamed_constraint(context, schema, action.old, action.new)
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
