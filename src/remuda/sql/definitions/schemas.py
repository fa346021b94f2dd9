"""CREATE TABLE, DROP, SHOW: parsed trees -> statements checked against the catalog."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from remuda.catalog.edits import DropMap, DropView, Edit, PutMap
from remuda.datatypes.map_options import NO_OPTIONS, refuse_for_replicated
from remuda.datatypes.schema import (
    HIDDEN,
    KEY_COLUMN,
    PG_TEMP,
    ROW_ID,
    VALUE_COLUMN,
    Check,
    Column,
    MapSchema,
    ValueShape,
    ViewDefinition,
)
from remuda.datatypes.sql import BIGINT, without_digits
from remuda.errors import (
    DuplicateColumn,
    DuplicateMap,
    DuplicateObject,
    InvalidDefinition,
    SqlSyntaxError,
    UndefinedMap,
    UndefinedSchema,
    WrongObjectType,
)
from remuda.plan.expression import ColumnRef, Expression, Literal
from remuda.plan.logical import Logical
from remuda.sql.definitions.constraints import bind_check, bind_default, condition_columns
from remuda.sql.definitions.foreign_keys import (
    constraint_names,
    with_foreign_keys,
    without_children,
)
from remuda.sql.definitions.generated import check_clauses, check_generated
from remuda.sql.definitions.map_options import with_settings
from remuda.sql.definitions.sequences import (
    bind_drop_sequence,
    generated,
    identity_type,
    owned_by,
    uses,
)
from remuda.sql.definitions.unique_constraints import copied_uniques, with_uniques
from remuda.sql.parsing.snippets import query_of
from remuda.sql.queries.relations import undefined_map
from remuda.sql.queries.views import BindQuery, placed, with_dependents
from remuda.sql.scope.context import Context
from remuda.sql.scope.declared_types import declared_types
from remuda.sql.scope.enum_names import resolved
from remuda.sql.scope.names import absent_schema, known_name, no_repeats
from remuda.sql.scope.notices import Notice, already_there, not_there
from remuda.sql.scope.output import project
from remuda.sql.scope.resolution import Place, found_in, refuse_name_of_index
from remuda.sql.scope.statements import (
    CatalogStatement,
    CreateAsStatement,
    CreateMapStatement,
    NumbersFrom,
    ShowKind,
    ShowStatement,
    told,
)
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees.syntax import (
    CheckDefinition,
    ColumnDefinition,
    CreateTree,
    DropTree,
    LikeDefinition,
    Name,
    ShowTree,
    Snippet,
)

# --- CREATE TABLE ------------------------------------------------------------------------------


def bind_create(
    context: Context, tree: CreateTree, bind: BindQuery
) -> CreateMapStatement | CreateAsStatement | CatalogStatement:
    """The schema of a new map. Key columns become NOT NULL; a column ``__key`` is the key alone; a
    map without any key gets the hidden key ``ROW_ID``."""
    place = _place(context, tree)
    existing = found_in(context.catalog, place.namespace, place.local)
    if existing is not None and not tree.if_not_exists:
        kind = "map" if isinstance(existing, MapSchema) else "view"
        error = DuplicateMap(
            f'{kind} "{tree.name.text}" already exists',
            hint="CREATE TABLE IF NOT EXISTS keeps the existing map." if kind == "map" else "",
        )
        raise placed(context, error, tree.name)
    if existing is None:
        refuse_name_of_index(context.catalog, place, tree.name)
    notices = () if existing is None else (already_there(tree.name.text),)
    source = None
    sequences: list[MapSchema] = []
    if tree.query is not None:
        source = bind(context, query_of(context, tree.query))
        columns = _columns_of_query(context, tree, source)
        source = _with_row_ids(context, source, columns, tree)
    else:
        columns = _columns(context, tree, place, sequences)
    schema = _schema(context, tree, place, columns)
    if sequences or schema.foreign_keys:
        version = context.catalog.version
        if existing is not None:
            return CatalogStatement("CREATE TABLE", version, (), notices=notices)
        edits = tuple(PutMap(each) for each in (*sequences, schema))
        numbers = tuple(NumbersFrom(each.name) for each in sequences)
        made = CatalogStatement("CREATE TABLE", version, edits, numbers=numbers)
        return replace(made, on_commit=tree.on_commit)
    if tree.query is None:
        return CreateMapStatement(schema, tree.if_not_exists, notices, tree.on_commit)
    read = source if tree.with_data else None
    return CreateAsStatement(schema, tree.if_not_exists, read, notices, tree.on_commit)


def _place(context: Context, tree: CreateTree) -> Place:
    """Raises InvalidDefinition for a temporary table in another schema, or with options."""
    place = context.place(tree.name, temporary=tree.temporary)
    options = tree.replicated or tree.partition_by is not None or tree.options
    if place.namespace == PG_TEMP and options:
        error = InvalidDefinition(
            "a temporary table has no options",
            hint="Its rows are on the member of its session: leave WITH and REPLICATED out.",
        )
        raise placed(context, error, tree.name)
    return place


def _with_row_ids(
    context: Context, source: Logical, columns: Sequence[Column], tree: CreateTree
) -> Logical:
    """The rows of the query, and NULL for the key that the map makes by itself, if it does."""
    if _named_key(tree, {column.name for column in columns}):
        return source
    values: list[Expression] = [ColumnRef(c.type, c.id, c.name) for c in source.output]
    names = [*(column.name for column in columns), ROW_ID]
    return project(context, source, names, [*values, Literal(BIGINT, None)])


def _named_key(tree: CreateTree, names: Collection[str]) -> tuple[Name, ...]:
    """The key columns that the definition names, or means by the name of one."""
    if tree.elements.key is not None:
        return tree.elements.key.columns
    return (Name(KEY_COLUMN, tree.name.position),) if KEY_COLUMN in names else ()


def _copied_key(context: Context, tree: CreateTree) -> tuple[Name, ...]:
    """The key of a map that it is like, INCLUDING INDEXES."""
    for like in tree.elements.like:
        schema = _map(context, like.name)
        if "indexes" in like.including and not schema.has_row_ids:
            return tuple(Name(name, like.name.position) for name in schema.key)
    return ()


def _schema(context: Context, tree: CreateTree, place: Place, columns: list[Column]) -> MapSchema:
    names = {column.name for column in columns}
    key_names = _named_key(tree, names) or _copied_key(context, tree)
    key = tuple(known_name(context, name, names) for name in key_names)
    if not key:
        key = (ROW_ID,)
        columns.append(Column(ROW_ID, BIGINT, nullable=False))
    no_repeats(context, key_names, "primary key")
    columns = [
        replace(column, nullable=column.nullable and column.name not in key) for column in columns
    ]
    shape = ValueShape.SCALAR if names - set(key) == {VALUE_COLUMN} else ValueShape.ROW
    given = tree.elements.key
    schema = MapSchema(
        name=place.full,
        columns=tuple(columns),
        key=key,
        partition_by=_partition_by(context, tree, key, names),
        replicated=tree.replicated,
        value_shape=shape,
        key_name=given.name.text if given is not None and given.name is not None else "",
        options=with_settings(context, NO_OPTIONS, tree.options),
        namespace=place.namespace,
    )
    for definition in tree.elements.columns:
        if definition.generated is not None:
            column = schema.column(definition.name.text)
            check_generated(context, schema, column, definition.generated)
    if schema.replicated and tree.options:
        _refuse_for_replicated(context, schema, tree.options[0].name)
    checks = [
        check if "comments" in like.including else replace(check, comment="")
        for like in tree.elements.like
        if "constraints" in like.including
        for check in _map(context, like.name).checks
    ]
    schema = with_checks(context, replace(schema, checks=tuple(checks)), tree.elements.checks)
    for like in tree.elements.like:
        if "indexes" in like.including:
            commented = "comments" in like.including
            schema = copied_uniques(context, schema, _map(context, like.name), comments=commented)
    schema = with_uniques(context, schema, tree.elements.uniques)
    return with_foreign_keys(context, schema, tree.elements.foreign_keys, _map)


def _refuse_for_replicated(context: Context, schema: MapSchema, name: Name) -> None:
    try:
        refuse_for_replicated(schema.options)
    except InvalidDefinition as problem:
        raise placed(context, problem, name) from None


def _columns(
    context: Context, tree: CreateTree, place: Place, sequences: list[MapSchema]
) -> list[Column]:
    """``sequences`` gets those that the columns own."""
    found: list[Column] = []
    like = list(tree.elements.like)
    for index, definition in enumerate((*tree.elements.columns, None)):
        while like and like[0].place == index:
            source = like.pop(0)
            shown = _map(context, source.name).shown
            for column in shown:
                copied = _copied(context, column, found, source)
                if column.identity is not None and "identity" in source.including:
                    copied = _copied_identity(context, place, column, copied, sequences)
                found.append(copied)
        if definition is not None:
            names = [column.name for column in found]
            found.append(new_column(context, place, definition, names, sequences))
    return found


def _copied_identity(
    context: Context, table: Place, column: Column, copied: Column, sequences: list[MapSchema]
) -> Column:
    """An identity column of a map that this one is LIKE, with a sequence of its own."""
    taken = [each.name for each in sequences]
    (found,) = (s.sequence for s in owned_by(context.catalog, [column]) if uses(column, s.name))
    assert found is not None
    made = generated(context, table, copied, found.type, None, taken=taken)
    assert made.sequence.sequence is not None
    new = made.sequence.sequence
    options = replace(found, slot=new.slot, link=new.link)
    sequences.append(replace(made.sequence, sequence=options))
    return replace(made.column, identity=column.identity)


def _copied(
    context: Context, column: Column, others: Sequence[Column], like: LikeDefinition
) -> Column:
    if any(column.name == other.name for other in others):
        raise placed(
            context,
            DuplicateColumn(f'column "{column.name}" specified more than once'),
            like.name,
        )
    return replace(
        column,
        id=0,
        missing=None,
        comment=column.comment if "comments" in like.including else "",
        default=column.default
        if "defaults" in like.including and column.identity is None
        else None,
        identity=None,
        generated=column.generated if "generated" in like.including else "",
        sequences=(),
    )


def new_column(
    context: Context,
    table: Place,
    definition: ColumnDefinition,
    others: Collection[str],
    sequences: list[MapSchema],
) -> Column:
    """A column as CREATE TABLE and ALTER TABLE define it; ``sequences`` gets the one that it owns,
    if it does."""
    name = definition.name
    check_column_name(context, name, others)
    assert definition.type is not None
    sql_type = resolved(context, definition.type, definition.type_position)
    default = None
    if definition.generated is not None:
        check_clauses(context, definition, table.local)
        nullable = definition.nullable is not False
        return Column(name.text, sql_type, nullable, generated=definition.generated.text)
    if definition.default is not None:
        default = bind_default(context, name.text, sql_type, definition.default)
    column = Column(name.text, sql_type, definition.nullable is not False, default)
    identity = definition.identity
    if not definition.serial and identity is None:
        return column
    _check_generated(context, definition, table.local)
    kind = definition.serial or identity_type(context, name, sql_type)
    taken = [each.name for each in sequences]
    made = generated(context, table, column, kind, identity, taken=taken)
    sequences.append(made.sequence)
    return made.column


def _check_generated(context: Context, definition: ColumnDefinition, table: str) -> None:
    name, identity = definition.name, definition.identity
    column = f'column "{name.text}" of table "{table}"'
    problem = ""
    if definition.nullable is True:
        problem = f"conflicting NULL/NOT NULL declarations for {column}"
    elif identity is not None and (definition.default is not None or definition.serial):
        problem = f"both default and identity specified for {column}"
    elif definition.default is not None:
        problem = f"multiple default values specified for {column}"
    if problem:
        place = name if identity is None else Name(name.text, identity.position)
        raise placed(context, SqlSyntaxError(problem), place)


def check_column_name(context: Context, name: Name, others: Collection[str]) -> None:
    if name.text in HIDDEN:
        error = InvalidDefinition(f'the column name "{name.text}" is reserved')
        raise placed(context, error, name)
    if name.text in others:
        raise placed(
            context, DuplicateColumn(f'column "{name.text}" specified more than once'), name
        )


def _columns_of_query(context: Context, tree: CreateTree, source: Logical) -> list[Column]:
    """The columns of CREATE TABLE AS: the names in parentheses come first, then the query's."""
    elements = tree.elements
    for definition in elements.columns:
        if definition.type is not None or elements.like:
            raise placed(
                context,
                SqlSyntaxError(
                    "CREATE TABLE AS takes the types of its columns from the query",
                    hint="Write the names alone: CREATE TABLE name (a, b, PRIMARY KEY (a)) AS ...",
                ),
                definition.name,
            )
    if len(elements.columns) > len(source.output):
        raise placed(
            context,
            SqlSyntaxError("too many column names were specified"),
            elements.columns[len(source.output)].name,
        )
    given = [definition.name for definition in elements.columns]
    found: list[Column] = []
    types = declared_types(source)
    for index, output in enumerate(source.output):
        name = given[index] if index < len(given) else Name(output.name, tree.name.position)
        check_column_name(context, name, [column.name for column in found])
        found.append(Column(name.text, without_digits(types[index])))
    return found


# --- CHECK -------------------------------------------------------------------------------------


def with_checks(
    context: Context, schema: MapSchema, definitions: Sequence[CheckDefinition]
) -> MapSchema:
    """``schema`` with more CHECK constraints, named as PostgreSQL names them."""
    checks = list(schema.checks)
    for definition in definitions:
        bind_check(context, schema, definition.condition)
        names = constraint_names(replace(schema, checks=tuple(checks)))
        if definition.name is not None and definition.name.text in names:
            raise placed(
                context,
                DuplicateObject(
                    f'constraint "{definition.name.text}" for map "{schema.name}" already exists'
                ),
                definition.name,
            )
        name = (
            definition.name.text
            if definition.name is not None
            else _check_name(schema, definition.condition, names)
        )
        valid = definition.valid or not schema.map_id  # a new map has no rows
        checks.append(Check(name, definition.condition.text, valid=valid))
    return replace(schema, checks=tuple(checks))


def _check_name(schema: MapSchema, condition: Snippet, taken: Collection[str]) -> str:
    """``map_column_check`` for a condition on one column, ``map_check`` otherwise."""
    columns = condition_columns(schema, Check("", condition.text))
    middle = f"{schema.columns[columns[0]].name}_" if len(columns) == 1 else ""
    base = f"{schema.local}_{middle}check"
    name, number = base, 0
    while name in taken:
        number += 1
        name = f"{base}{number}"
    return name


# --- names -------------------------------------------------------------------------------------


def _partition_by(
    context: Context, tree: CreateTree, key: tuple[str, ...], names: set[str]
) -> tuple[str, ...]:
    """The partition attribute: some of the key columns, hashed in the order of their naming."""
    if tree.partition_by is None:
        return key
    no_repeats(context, tree.partition_by, "partition_by")
    for name in tree.partition_by:
        if known_name(context, name, names) not in key:
            raise InvalidDefinition(
                f'partition_by column "{name.text}" is not part of the primary key',
                position=name.position,
                statement=context.text,
                hint="A row must be found by its key alone: partition_by takes key columns only.",
            )
    return tuple(name.text for name in tree.partition_by)


# --- DROP, SHOW --------------------------------------------------------------------------------


def bind_drop(context: Context, tree: DropTree, bind: BindQuery) -> CatalogStatement:
    if tree.kind == "SEQUENCE":
        return _with_dropped_views(context, bind_drop_sequence(context, tree), tree, bind)
    catalog = context.catalog
    edits: list[Edit] = []
    notices: list[Notice] = []
    for name in tree.names:
        found = context.relation(name)
        if found is None:
            if not tree.if_exists:
                raise _not_dropped(context, name, tree.kind)
            absent = absent_schema(context, name) is not None
            skipped = ("schema", name.schema) if absent else (tree.kind.lower(), name.text)
            notices.append(not_there(*skipped))
            continue
        if kind_of(found) != tree.kind:
            raise placed(context, wrong_kind(found, tree.kind), name)
        edit = DropMap(found.name) if tree.kind == "TABLE" else DropView(found.name)
        if edit not in edits:
            edits.append(edit)
            sequences = owned_by(catalog, found.columns)
            edits += [DropMap(each.name) for each in sequences]
    if tree.cascade:
        edits = list(without_children(catalog, edits))
    tag = f"DROP {tree.kind}"
    if not edits:
        return CatalogStatement(tag, catalog.version, (), notices=tuple(notices))
    what = f'drop {"map" if tree.kind == "TABLE" else "view"} "{tree.names[0].text}"'
    all_edits = with_dependents(context, edits, what, tree.names[0], bind, cascade=tree.cascade)
    return CatalogStatement(tag, catalog.version, all_edits, notices=tuple(notices))


def _with_dropped_views(
    context: Context, found: CatalogStatement, tree: DropTree, bind: BindQuery
) -> CatalogStatement:
    if not found.edits:
        return found
    action = f'drop sequence "{tree.names[0].text}"'
    edits = with_dependents(context, found.edits, action, tree.names[0], bind, cascade=tree.cascade)
    return replace(found, edits=edits)


def kind_of(found: MapSchema | ViewDefinition) -> str:
    if isinstance(found, ViewDefinition):
        return "VIEW"
    return "TABLE" if found.sequence is None else "SEQUENCE"


def wrong_kind(found: MapSchema | ViewDefinition, wanted: str = "TABLE") -> WrongObjectType:
    if wanted == "SEQUENCE" or kind_of(found) == "SEQUENCE":
        noun = {"TABLE": "map", "VIEW": "view", "SEQUENCE": "sequence"}
        return WrongObjectType(
            f'"{found.name}" is not a {noun[wanted]}',
            hint=f"It is a {noun[kind_of(found)]}: write {kind_of(found)} instead of {wanted}.",
        )
    if isinstance(found, MapSchema):
        return WrongObjectType(
            f'"{found.name}" is not a view', hint="It is a map: write TABLE instead of VIEW."
        )
    return WrongObjectType(
        f'"{found.name}" is not a map', hint="It is a view: write VIEW instead of TABLE."
    )


def bind_show(context: Context, tree: ShowTree) -> ShowStatement:
    if tree.what == "INDEXES":
        return ShowStatement(
            ShowKind.INDEXES, None if tree.name is None else _map(context, tree.name)
        )
    if tree.name is None:
        return ShowStatement(ShowKind.VIEWS if tree.what == "VIEWS" else ShowKind.MAPS)
    found = context.relation(tree.name)
    if found is None:
        raise missing(context, tree.name, "VIEW" if tree.what == "CREATE VIEW" else "TABLE")
    if tree.what == "COLUMNS":
        return ShowStatement(ShowKind.COLUMNS, found)
    if isinstance(found, MapSchema) != (tree.what == "CREATE TABLE"):
        raise placed(context, wrong_kind(found), tree.name)
    return ShowStatement(ShowKind.CREATE, found)


def map_of(context: Context, name: Name) -> MapSchema:
    """The map that a definition names."""
    return _map(context, name)


def _map(context: Context, name: Name) -> MapSchema:
    found = context.relation(name)
    if found is None:
        raise missing(context, name, "TABLE")
    if not isinstance(found, MapSchema) or found.sequence is not None:
        raise placed(context, wrong_kind(found), name)
    return found


def _not_dropped(context: Context, name: Name, kind: str) -> UndefinedMap | UndefinedSchema:
    """In the word of the statement, as PostgreSQL has it."""
    error = missing(context, name, kind)
    if kind != "TABLE" or isinstance(error, UndefinedSchema):
        return error
    told_as = UndefinedMap(f'table "{name.text}" does not exist', hint=error.hint)
    return told_as.at(name.position, context.text)


def missing(context: Context, name: Name, kind: str) -> UndefinedMap | UndefinedSchema:
    absent = absent_schema(context, name)
    if absent is not None:
        return absent
    error = undefined_map(context, name.shown, None)
    if kind == "VIEW":
        error = UndefinedMap(
            f'view "{name.shown}" does not exist',
            hint=did_you_mean(name.text, told(context.catalog).view_names()),
            statement=context.text,
        )
    return error.at(name.position, context.text)
