"""CREATE, ALTER and DROP SEQUENCE, and the sequences that columns own (SERIAL, IDENTITY)."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from remuda.catalog.edits import DropMap, Edit, PutMap
from remuda.datatypes.identifiers import name_parts, sql_name
from remuda.datatypes.schema import (
    GENERATION,
    PG_TEMP,
    PUBLIC,
    ROW_ID,
    Column,
    Default,
    Identity,
    MapSchema,
    SequenceOptions,
    ViewDefinition,
    full_name,
)
from remuda.datatypes.sequences import RANGES
from remuda.datatypes.sql import BIGINT, BOOLEAN, Kind, SqlType
from remuda.errors import (
    DependentObjects,
    DuplicateMap,
    InvalidName,
    InvalidParameterValue,
    NotSupported,
    RemudaError,
    SqlSyntaxError,
    UndefinedColumn,
    UndefinedMap,
    WrongObjectType,
    WrongState,
)
from remuda.plan.expression import Call, Literal, walk
from remuda.plan.sequence_calls import SEQUENCE_FUNCTIONS
from remuda.sql.definitions.constraints import default_of
from remuda.sql.queries.views import placed
from remuda.sql.scope.context import Context
from remuda.sql.scope.names import absent_schema
from remuda.sql.scope.notices import Notice, already_there, not_there
from remuda.sql.scope.resolution import Place, found_in, place_in, refuse_name_of_index, replaced
from remuda.sql.scope.statements import CatalogReader, CatalogStatement, NumbersFrom
from remuda.sql.text.lexemes import TokenKind
from remuda.sql.text.lexer import tokenize
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees.names import Name
from remuda.sql.trees.sequences import (
    AlterSequenceTree,
    CreateSequenceTree,
    IdentityClause,
    SequenceClauses,
)
from remuda.sql.trees.syntax import DropTree

_TYPES = {
    "smallint": "smallint", "int2": "smallint", "integer": "integer", "int": "integer",
    "int4": "integer", "bigint": "bigint", "int8": "bigint",
}  # fmt: skip
_BY_KIND = {Kind.SMALLINT: "smallint", Kind.INTEGER: "integer", Kind.BIGINT: "bigint"}


# --- schemas -----------------------------------------------------------------------------------


def sequence_schema(place: Place, options: SequenceOptions) -> MapSchema:
    """The map that holds the state."""
    return MapSchema(
        name=place.full,
        columns=(
            Column("last_value", BIGINT, nullable=False),
            Column("log_cnt", BIGINT, nullable=False),
            Column("is_called", BOOLEAN, nullable=False),
            Column(GENERATION, BIGINT, nullable=False),
            Column(ROW_ID, BIGINT, nullable=False),
        ),
        key=(ROW_ID,),
        partition_by=(ROW_ID,),
        sequence=options,
        namespace=place.namespace,
    )


def _slot(context: Context, name: str) -> int:
    """A number of its own for each sequence: two are never made by one version of a catalog under
    one name, but for temporary ones that were renamed."""
    taken = {s.sequence.link for s in _sequences(context.catalog) if s.sequence is not None}
    text = f"{context.catalog.version} {name}"
    while True:
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        found = int.from_bytes(digest, "big", signed=True)
        if found not in taken:
            return found
        text += "+"


def options_of(
    context: Context, clauses: SequenceClauses, before: SequenceOptions | None, kind: str, name: str
) -> SequenceOptions:
    """The clauses over what was ``before``; ``kind``: the type unless they say one. Raises
    InvalidParameterValue as PostgreSQL does."""
    reading = _Reading(context, clauses)
    kind = reading.kind(before, kind)
    increment = _first(clauses.increment, None if before is None else before.increment, 1)
    if increment == 0:
        raise reading.refused("increment", "INCREMENT must not be zero")
    minimum, maximum = reading.bounds(before, kind, increment)
    cache = _first(clauses.cache, None if before is None else before.cache, 1)
    if cache <= 0:
        raise reading.refused("cache", f"CACHE ({cache}) must be greater than zero")
    begin = minimum if increment > 0 else maximum
    start = _first(clauses.start, None if before is None else before.start, begin)
    reading.check("start", start, minimum, maximum)
    if clauses.restart is not None:
        reading.check("restart", clauses.restart, minimum, maximum)
    cycle = before is not None and before.cycle if clauses.cycle is None else clauses.cycle
    slot, link = (_slot(context, name),) * 2 if before is None else (before.slot, before.link)
    return SequenceOptions(kind, start, increment, minimum, maximum, cache, cycle, slot, link)


def _first(given: int | None, before: int | None, default: int) -> int:
    found = before if given is None else given
    return default if found is None else found


@dataclass(frozen=True, slots=True)
class _Reading:
    """The clauses of one statement."""

    context: Context
    clauses: SequenceClauses

    def refused(self, clause: str, message: str) -> RemudaError:
        error = InvalidParameterValue(message)
        position = self.clauses.positions.get(clause)
        return error if position is None else error.at(position, self.context.text)

    def kind(self, before: SequenceOptions | None, default: str) -> str:
        if self.clauses.type is None:
            return default if before is None else before.type
        found = _TYPES.get(self.clauses.type.text)
        if found is None:
            raise self.refused("type", "sequence type must be smallint, integer, or bigint")
        return found

    def bounds(self, before: SequenceOptions | None, kind: str, increment: int) -> tuple[int, int]:
        _, least, greatest = RANGES[kind]
        old = (None, None) if before is None else _kept_bounds(before, kind)
        minimum = _bound(self.clauses.minimum, old[0], 1 if increment > 0 else least)
        maximum = _bound(self.clauses.maximum, old[1], greatest if increment > 0 else -1)
        for clause, word, value in (
            ("maximum", "MAXVALUE", maximum),
            ("minimum", "MINVALUE", minimum),
        ):
            if not least <= value <= greatest:
                message = f"{word} ({value}) is out of range for sequence data type {kind}"
                raise self.refused(clause, message)
        if minimum >= maximum:
            clause = "maximum" if self.clauses.minimum is None else "minimum"
            message = f"MINVALUE ({minimum}) must be less than MAXVALUE ({maximum})"
            raise self.refused(clause, message)
        return minimum, maximum

    def check(self, clause: str, value: int, minimum: int, maximum: int) -> None:
        word = clause.upper()
        if value < minimum:
            message = f"{word} value ({value}) cannot be less than MINVALUE ({minimum})"
            raise self.refused(clause, message)
        if value > maximum:
            message = f"{word} value ({value}) cannot be greater than MAXVALUE ({maximum})"
            raise self.refused(clause, message)


def _kept_bounds(before: SequenceOptions, kind: str) -> tuple[int | None, int | None]:
    """Bounds that were those of the type follow it to another type."""
    _, least, greatest = RANGES[before.type]
    follows = kind != before.type
    return (
        None if follows and before.minimum == least else before.minimum,
        None if follows and before.maximum == greatest else before.maximum,
    )


def _bound(given: int | str | None, before: int | None, default: int) -> int:
    if isinstance(given, int):
        return given
    return default if given == "no" or before is None else before


# --- CREATE and ALTER SEQUENCE -----------------------------------------------------------------


def bind_sequence(
    context: Context, tree: CreateSequenceTree | AlterSequenceTree
) -> CatalogStatement:
    if isinstance(tree, CreateSequenceTree):
        return _bind_create(context, tree)
    return _bind_alter(context, tree)


def _bind_create(context: Context, tree: CreateSequenceTree) -> CatalogStatement:
    catalog, name, tag = context.catalog, tree.name.text, "CREATE SEQUENCE"
    place = context.place(tree.name, temporary=tree.temporary)
    if found_in(catalog, place.namespace, place.local) is not None:
        if tree.if_not_exists:
            return CatalogStatement(tag, catalog.version, (), notices=(already_there(name),))
        raise placed(context, DuplicateMap(f'relation "{name}" already exists'), tree.name)
    refuse_name_of_index(catalog, place, tree.name)
    _refuse_name(context, tree.clauses)
    options = options_of(context, tree.clauses, None, "bigint", place.full)
    edits: list[Edit] = [PutMap(sequence_schema(place, options))]
    if tree.clauses.owner:
        edits.append(PutMap(_owned(context, tree.clauses.owner, options.link, place)))
    return CatalogStatement(tag, catalog.version, tuple(edits), numbers=(NumbersFrom(place.full),))


def _bind_alter(context: Context, tree: AlterSequenceTree) -> CatalogStatement:
    catalog, name, tag = context.catalog, tree.name.text, "ALTER SEQUENCE"
    if context.relation(tree.name) is None and tree.if_exists:
        skipped = (not_there("relation", name),)
        return CatalogStatement(tag, catalog.version, (), notices=skipped)
    schema, clauses = sequence_of(context, tree.name), tree.clauses
    _refuse_name(context, clauses)
    found, numbers = altered(context, schema, clauses)
    edits: list[Edit] = [PutMap(found)]
    if clauses.owner is not None:
        edits += _given_to(context, schema, clauses.owner, tree.name)
    return CatalogStatement(tag, catalog.version, tuple(edits), numbers=(numbers,))


def altered(
    context: Context, schema: MapSchema, clauses: SequenceClauses
) -> tuple[MapSchema, NumbersFrom]:
    """The sequence as the clauses change it, and where its numbers go on."""
    before = schema.sequence
    assert before is not None
    options = options_of(context, clauses, before, before.type, schema.name)
    value = None
    if clauses.restarts:
        value = options.start if clauses.restart is None else clauses.restart
    return replace(schema, sequence=options), NumbersFrom(schema.name, value)


def _refuse_name(context: Context, clauses: SequenceClauses) -> None:
    if clauses.name is not None:
        error = SqlSyntaxError('invalid sequence option "SEQUENCE NAME"')
        raise placed(context, error, clauses.name)


def sequence_of(context: Context, name: Name) -> MapSchema:
    """Raises UndefinedMap, UndefinedSchema, WrongObjectType."""
    found = context.relation(name)
    if found is None:
        if (absent := absent_schema(context, name)) is not None:
            raise absent
        error = UndefinedMap(
            f'relation "{name.shown}" does not exist',
            hint=did_you_mean(name.text, [s.name for s in _sequences(context.catalog)]),
        )
        raise placed(context, error, name)
    if isinstance(found, ViewDefinition) or found.sequence is None:
        raise placed(context, WrongObjectType(f'"{name.text}" is not a sequence'), name)
    return found


# --- what belongs to what ----------------------------------------------------------------------


def _maps(catalog: CatalogReader) -> Iterator[MapSchema]:
    for name in catalog.names():
        schema = catalog.find(name)
        if schema is not None:
            yield schema


def _sequences(catalog: CatalogReader) -> list[MapSchema]:
    return [schema for schema in _maps(catalog) if schema.sequence is not None]


def owned_by(catalog: CatalogReader, columns: Sequence[Column]) -> list[MapSchema]:
    """The sequences that columns own."""
    links = {link for column in columns for link in column.sequences}
    if not links:
        return []
    return [s for s in _sequences(catalog) if s.sequence is not None and s.sequence.link in links]


def _owned(context: Context, owner: Sequence[Name], link: int, place: Place) -> MapSchema:
    """The map of the column ``owner``, which owns the sequence in ``place``, too."""
    table, name = owner
    found = context.relation(table)
    if found is None:
        raise placed(context, UndefinedMap(f'relation "{table.shown}" does not exist'), table)
    if isinstance(found, ViewDefinition) or found.sequence is not None:
        error = WrongObjectType(f'sequence cannot be owned by relation "{table.text}"')
        raise placed(context, error, table)
    if found.temporary != (place.namespace == PG_TEMP):
        apart = WrongState("sequence must be in same schema as table it is linked to")
        raise placed(context, apart, table)
    if name.text not in [column.name for column in found.shown]:
        missing = UndefinedColumn(
            f'column "{name.text}" of relation "{table.text}" does not exist',
            hint=did_you_mean(name.text, [column.name for column in found.shown]),
        )
        raise placed(context, missing, name)
    column = found.column(name.text)
    return _with_column(found, replace(column, sequences=(*column.sequences, link)))


def _with_column(schema: MapSchema, column: Column) -> MapSchema:
    columns = tuple(column if each.name == column.name else each for each in schema.columns)
    return replace(schema, columns=columns)


def _given_to(
    context: Context, schema: MapSchema, owner: Sequence[Name], place: Name
) -> list[Edit]:
    """OWNED BY: taken from the column that owns it, and given to ``owner`` (none: to nobody)."""
    assert schema.sequence is not None
    link = schema.sequence.link
    edits: dict[str, MapSchema] = {}
    for table in _maps(context.catalog):
        for column in table.columns:
            if link in column.sequences:
                if column.identity is not None:
                    raise placed(context, _identity_keeps(schema, table, column), place)
                left = tuple(each for each in column.sequences if each != link)
                edits[table.name] = _with_column(table, replace(column, sequences=left))
    if owner:
        taken = _owned(context, owner, link, place_in(schema))
        before = edits.get(taken.name)
        if before is not None:
            column = before.column(owner[1].text)
            sequences = (*column.sequences, link)
            taken = _with_column(before, replace(column, sequences=sequences))
        edits[taken.name] = taken
    return [PutMap(table) for table in edits.values()]


def _identity_keeps(schema: MapSchema, table: MapSchema, column: Column) -> NotSupported:
    return NotSupported(
        "cannot change ownership of identity sequence",
        detail=f'Sequence "{schema.name}" is linked to table "{table.name}".',
        hint=f'ALTER TABLE ... ALTER COLUMN "{column.name}" DROP IDENTITY drops it.',
    )


def uses(column: Column, name: str) -> bool:
    """Whether the default of a column names the sequence."""
    if column.default is None or "val" not in column.default.text.lower():
        return False
    return any(
        isinstance(part, Call)
        and part.function in SEQUENCE_FUNCTIONS
        and part.arguments
        and isinstance(part.arguments[0], Literal)
        and kept_name(str(part.arguments[0].value)) == name
        for part in walk(default_of(column))
    )


def kept_name(text: str) -> str:
    """The full name of the relation that a text in a definition names; "" for no name."""
    try:
        *schema, local = name_parts(text)
    except InvalidName:
        return ""
    return full_name(schema[-1] if schema else PUBLIC, local)


def default_text(place: Place) -> str:
    """The DEFAULT of a column that takes numbers of the sequence."""
    return f"nextval({_literal(sql_name(place))}::regclass)"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# --- DROP and RENAME ---------------------------------------------------------------------------


def bind_drop_sequence(context: Context, tree: DropTree) -> CatalogStatement:
    catalog, tag = context.catalog, "DROP SEQUENCE"
    notices: list[Notice] = []
    edits: list[Edit] = []
    tables: dict[str, MapSchema] = {}
    for name in tree.names:
        if context.relation(name) is None:
            absent = absent_schema(context, name)
            if tree.if_exists:
                skipped = ("sequence", name.text) if absent is None else ("schema", name.schema)
                notices.append(not_there(*skipped))
                continue
            if absent is not None:
                raise absent
            error = UndefinedMap(
                f'sequence "{name.shown}" does not exist',
                hint=did_you_mean(name.text, [s.name for s in _sequences(catalog)]),
            )
            raise placed(context, error, name)
        schema = sequence_of(context, name)
        if DropMap(schema.name) not in edits:
            edits.append(DropMap(schema.name))
        _release(context, schema, tables, name, cascade=tree.cascade)
    edits += [PutMap(table) for table in tables.values()]
    return CatalogStatement(tag, catalog.version, tuple(edits), notices=tuple(notices))


def _release(
    context: Context, schema: MapSchema, tables: dict[str, MapSchema], place: Name, *, cascade: bool
) -> None:
    """Into ``tables``: the maps as they are without the sequence. Raises DependentObjects."""
    assert schema.sequence is not None
    link = schema.sequence.link
    for known in _maps(context.catalog):
        table = tables.get(known.name, known)
        for column in known.columns:
            used = uses(column, schema.name)
            if not used and link not in column.sequences:
                continue
            if column.identity is not None and link in column.sequences:
                error = DependentObjects(
                    f"cannot drop sequence {schema.name} because column {column.name} of table "
                    f"{known.name} requires it",
                    hint=f"You can drop column {column.name} of table {known.name} instead.",
                )
                raise placed(context, error, place)
            if used and not cascade:
                error = DependentObjects(
                    f"cannot drop sequence {schema.name} because other objects depend on it",
                    detail=f"default value for column {column.name} of table {known.name} depends "
                    f"on sequence {schema.name}",
                    hint="Use DROP ... CASCADE to drop the dependent objects too.",
                )
                raise placed(context, error, place)
            left = replace(
                table.column(column.name),
                sequences=tuple(each for each in column.sequences if each != link),
            )
            table = _with_column(table, replace(left, default=None) if used else left)
        if table is not known:
            tables[known.name] = table


def without_sequence(schema: MapSchema, sequence: MapSchema) -> MapSchema:
    """A map as it is when the sequence is gone: without defaults that take its numbers."""
    assert sequence.sequence is not None
    link = sequence.sequence.link
    for column in schema.columns:
        used = uses(column, sequence.name)
        if used or link in column.sequences:
            left = tuple(each for each in column.sequences if each != link)
            changed = replace(column, sequences=left)
            if used:
                changed = replace(changed, default=None, identity=None)
            schema = _with_column(schema, changed)
    return schema


def with_renamed_defaults(catalog: CatalogReader, old: str, new: Place) -> list[Edit]:
    """The maps whose defaults take numbers of a sequence that is renamed. ``old``: its full
    name."""
    edits: list[Edit] = []
    for schema in _maps(catalog):
        changed = with_renamed_sequence(schema, old, new)
        if changed is not schema:
            edits.append(PutMap(changed))
    return edits


def with_renamed_sequence(schema: MapSchema, old: str, new: Place) -> MapSchema:
    """A map whose defaults name a sequence that has another name now. ``old``: its full name."""
    written = _literal(sql_name(new))
    for column in schema.columns:
        if column.default is not None and uses(column, old):
            text = column.default.text
            parts = [
                (token.start, token.end, written)
                for token in tokenize(text)
                if token.kind is TokenKind.STRING and kept_name(token.text) == old
            ]
            default = Default(replaced(text, parts))
            schema = _with_column(schema, replace(column, default=default))
    return schema


# --- columns that own sequences ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Generated:
    """A column with its sequence."""

    column: Column
    sequence: MapSchema


def generated(
    context: Context,
    table: Place,
    column: Column,
    kind: str,
    identity: IdentityClause | None,
    *,
    taken: Collection[str] = (),
) -> Generated:
    """``column`` as SERIAL or IDENTITY, whose numbers have the type ``kind``. ``taken``: full names
    of sequences that the same statement makes. The sequence is in the schema of its table unless
    the statement names another one."""
    clauses = SequenceClauses() if identity is None else identity.clauses
    given = clauses.name
    if given is not None:
        place = context.place(given) if given.schema else Place(table.namespace, given.text)
        there = found_in(context.catalog, place.namespace, place.local) is not None
        if there or place.full in taken:
            raise placed(context, DuplicateMap(f'relation "{given.text}" already exists'), given)
    else:
        place = _sequence_place(context.catalog, table, column.name, taken)
    options = options_of(context, clauses, None, kind, place.full)
    made = replace(
        column,
        nullable=False,
        default=Default(default_text(place)),
        identity=None if identity is None else identity.kind or Identity.BY_DEFAULT,
        sequences=(*column.sequences, options.link),
    )
    return Generated(made, sequence_schema(place, options))


def identity_type(context: Context, name: Name, found: SqlType) -> str:
    """Raises InvalidParameterValue."""
    kind = _BY_KIND.get(found.kind)
    if kind is None:
        error = InvalidParameterValue(
            "identity column type must be smallint, integer, or bigint",
        )
        raise placed(context, error, name)
    return kind


def _sequence_place(
    catalog: CatalogReader, table: Place, column: str, taken: Collection[str]
) -> Place:
    base = f"{table.local}_{column}_seq"
    place, number = Place(table.namespace, base), 0
    while found_in(catalog, place.namespace, place.local) is not None or place.full in taken:
        number += 1
        place = Place(table.namespace, f"{base}{number}")
    return place
