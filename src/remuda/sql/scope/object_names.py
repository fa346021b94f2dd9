"""``regclass`` and its kind: types of objects of the catalog.

A value is the OID of an object. As text it is the object's name, and a text is read as a name. The
names are those of the catalog while the statement is bound; a plan is not used any more once the
catalog has changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from remuda.catalog.pg_objects import indexes, relations, schemas
from remuda.catalog.pg_routines import pg_operators
from remuda.catalog.pg_types import OBJECTS, PG_TYPES, VECTORS
from remuda.catalog.system_relations import PG_CATALOG, SYSTEM, SystemRelation
from remuda.catalog.temporary import (
    maps_as_listed,
    namespaces_as_listed,
    own_schema,
    views_as_listed,
)
from remuda.datatypes.identifiers import (
    name_parts,
    quoted_name,
    relation_parts,
    written_parts,
)
from remuda.datatypes.schema import PG_TEMP
from remuda.datatypes.sql import BIGINT, VARCHAR, EnumType, SqlType, aliased, array
from remuda.datatypes.texts.text import parse_text
from remuda.errors import (
    AmbiguousFunction,
    DataError,
    InvalidName,
    InvalidText,
    NotSupported,
    RemudaError,
    SqlSyntaxError,
    UndefinedFunction,
    UndefinedMap,
    UndefinedObject,
    UndefinedSchema,
    UndefinedType,
)
from remuda.plan.expression import Call, Cast, Expression, Literal
from remuda.sql.scope.context import Context
from remuda.sql.scope.enum_names import find_enum
from remuda.sql.scope.resolution import KEPT_PATH, Kept, Place, Reference, find_any, searched
from remuda.sql.scope.routines import routines
from remuda.sql.scope.statements import roles_known, told
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees import ast

OID: Final = aliased(BIGINT, "oid")
NOTHING: Final = "-"
"""How the OID 0 is written: no object."""


class Holder:
    """The catalog of a statement, as ``pg_objects`` reads it."""

    def __init__(self, context: Context) -> None:
        catalog = told(context.catalog)
        maps = [catalog.find(name) for name in catalog.names()]
        views = [catalog.find_view(name) for name in catalog.view_names()]
        own = own_schema(catalog.namespaces)
        self.maps = maps_as_listed([each for each in maps if each is not None], own)
        self.views = views_as_listed([each for each in views if each is not None], own)
        self.namespaces = namespaces_as_listed(catalog.namespaces, own)
        self.types: Sequence[EnumType] = catalog.types


# --- the names of each kind --------------------------------------------------------------------

_Named = Iterator[tuple[int, str, str]]
"""OID, schema and name of objects; the schema is "" for kinds that are in none."""


def _relations(context: Context) -> _Named:
    holder = Holder(context)
    for relation in relations(holder):
        yield relation.oid, relation.schema, relation.name
    for index in indexes(holder):
        yield index.oid, index.schema.namespace, index.name


def _functions(_context: Context) -> _Named:
    for routine in routines():
        yield routine.oid, PG_CATALOG, routine.name


def _operators(_context: Context) -> _Named:
    for operator in pg_operators():
        yield operator.oid, PG_CATALOG, operator.name


def _schemas(context: Context) -> _Named:
    for name, oid in schemas(Holder(context)):
        yield oid, "", name


def _roles(context: Context) -> _Named:
    for role in roles_known(context.catalog).listed:
        yield role.oid, "", role.name


_LISTED: Final[dict[str, tuple[Callable[[Context], _Named], str, type[RemudaError]]]] = {
    "regclass": (_relations, "relation", UndefinedMap),
    "regproc": (_functions, "function", UndefinedFunction),
    "regprocedure": (_functions, "function", UndefinedFunction),
    "regoper": (_operators, "operator", UndefinedFunction),
    "regoperator": (_operators, "operator", UndefinedFunction),
    "regnamespace": (_schemas, "schema", UndefinedSchema),
    "regrole": (_roles, "role", UndefinedObject),
}
_PLAINLY_NAMED: Final = frozenset({"regclass", "regnamespace", "regrole"})
_UNQUALIFIED: Final = frozenset({"regnamespace", "regrole"})
_SIGNED: Final = frozenset({"regprocedure", "regoperator"})
"""Kinds whose names have types in parentheses."""
_OVERLOADED: Final = frozenset({"regproc", "regoper"})
"""Kinds of which several objects may have one name."""


def names(context: Context, kind: str) -> dict[int, str]:
    """How each object of a kind is written."""
    if kind == "regtype":
        found = {t.oid: t.shown for t in PG_TYPES}
        found.update({t.array: f"{t.shown}[]" for t in PG_TYPES if t.array})
        found.update(_enum_names(context))
        return found
    if kind == "regprocedure":
        return {routine.oid: routine.signature for routine in routines()}
    if kind == "regoperator":
        return {operator.oid: operator.signature for operator in pg_operators()}
    listed, _, _ = _LISTED[kind]
    if kind in _OVERLOADED:
        found = _overloaded(listed(context), quoted=kind == "regproc")
        if kind == "regproc":  # they cannot be called, and are what operators are made of
            found = {each.function: each.function_name for each in pg_operators()} | found
        return found
    meant = _numbers(context, kind)
    return {
        oid: quoted_name(name)
        if meant.get((name,)) == oid
        else f"{quoted_name(schema)}.{quoted_name(name)}"
        for oid, schema, name in listed(context)
    }


def hidden_relations(context: Context) -> list[int]:
    """The OIDs of the relations that cannot be named without their schema."""
    meant = _numbers(context, "regclass")
    return [oid for oid, _, name in _relations(context) if meant.get((name,)) != oid]


def _overloaded(named: _Named, *, quoted: bool) -> dict[int, str]:
    """A name that several objects have is written with its schema, as it stands for none alone."""
    found = list(named)
    times = Counter(name for _, _, name in found)
    return {
        oid: (f"{schema}." if times[name] > 1 else "") + (quoted_name(name) if quoted else name)
        for oid, schema, name in found
    }


def _signatures(kind: str) -> dict[tuple[str, ...], int]:
    """The OIDs of functions or operators by their names with the types of their operands."""
    found: dict[tuple[str, ...], int] = {}
    if kind == "regprocedure":
        signed = [(each.oid, each.name, each.arguments) for each in routines()]
    else:
        signed = [(o.oid, o.name, (o.left or "none", o.right)) for o in pg_operators()]
    for oid, name, types in signed:
        key = f"{name}({','.join(types)})"
        found[key,] = found[PG_CATALOG, key] = oid
    return found


def _numbers(context: Context, kind: str) -> dict[tuple[str, ...], int]:
    """The OIDs by name, and by schema and name."""
    found: dict[tuple[str, ...], int] = {}
    if kind == "regtype":
        for t in PG_TYPES:
            for name in (t.name, t.shown):
                found[name,] = found[PG_CATALOG, name] = t.oid
                found[f"{name}[]",] = found[PG_CATALOG, f"{name}[]"] = t.array
            found[f"_{t.name}",] = found[PG_CATALOG, f"_{t.name}"] = t.array
        return _enum_numbers(context) | found
    if kind in _SIGNED:
        return _signatures(kind)
    path = ("", *searched(context.path))
    places = {schema: place for place, schema in reversed(list(enumerate(path)))}
    at: dict[str, int] = {}
    own = own_schema(context.catalog.namespaces)
    temporary = "" if own is None else own.name
    for oid, schema, name in _LISTED[kind][0](context):
        found[schema, name] = oid
        searched_as = schema
        if schema and schema == temporary:
            searched_as = PG_TEMP
            found[PG_TEMP, name] = oid
        place = places.get(searched_as, len(path))
        if place < at.get(name, len(path)):
            found[name,], at[name] = oid, place
    return found


def _enum_names(context: Context) -> Iterator[tuple[int, str]]:
    for enum in told(context.catalog).types:
        name = quoted_name(enum.local)
        if find_enum(context.catalog, context.path, "", enum.local) is not enum:
            name = f"{quoted_name(enum.namespace)}.{name}"
        yield from ((enum.oid, name), (enum.array_oid, f"{name}[]"))


def _enum_numbers(context: Context) -> dict[tuple[str, ...], int]:
    found: dict[tuple[str, ...], int] = {}
    for enum in told(context.catalog).types:
        name = enum.local
        named = {name: enum.oid, f"{name}[]": enum.array_oid, f"_{name}": enum.array_oid}
        found.update(((enum.namespace, each), oid) for each, oid in named.items())
        if find_enum(context.catalog, context.path, "", name) is enum:
            found.update(((each,), oid) for each, oid in named.items())
    return found


# --- text to number ----------------------------------------------------------------------------


def found_number(context: Context, kind: str, text: str) -> int | None:
    """The OID of the object that ``text`` names; None without one. Raises InvalidName,
    SqlSyntaxError for too many parts or the empty name of a type, and NotSupported for the name of
    another database."""
    parts = _parts(context, kind, text)
    if kind in _SIGNED:
        return _signatures(kind).get(parts)
    if kind in _OVERLOADED:
        named = [oid for oid, _, name in _LISTED[kind][0](context) if name == parts[-1]]
        if len(named) > 1:
            object_kind = _LISTED[kind][1]
            raise AmbiguousFunction(
                f'more than one {object_kind} named "{text.strip()}"',
                hint=f"Name the types of its arguments, as a {_WITH_TYPES[kind]}.",
            )
    return _numbers(context, kind).get(parts)


def _parts(context: Context, kind: str, text: str) -> tuple[str, ...]:
    """Schema and name, without that of the database."""
    if kind in _SIGNED:
        return _signed_parts(kind, text)
    if kind == "regoper":
        parts = _operator_parts(text)
    elif kind == "regtype":
        parts = _type_parts(text)
    elif kind == "regclass":
        parts = relation_parts(text)
    else:
        parts = name_parts(text)
    if kind in _UNQUALIFIED and len(parts) > 1:
        raise InvalidName("invalid name syntax", hint="Such an object is in no schema.")
    if len(parts) > 3:
        raise SqlSyntaxError(
            f"improper qualified name (too many dotted names): {'.'.join(parts)}",
            hint="Write schema.name.",
        )
    if len(parts) < 3:
        return parts
    if parts[0] not in context.databases:
        raise NotSupported(
            f'cross-database references are not implemented: "{".".join(parts)}"',
            hint="Leave out the name of the database.",
        )
    return parts[1:]


def number(context: Context, kind: str, text: str, node: ast.Node | None) -> int:
    """The OID of the object that ``text`` names. Raises the error of the kind without one."""
    text = text.strip()
    if text == NOTHING:
        return 0
    if text.isdecimal():
        return int(text)
    try:
        found = found_number(context, kind, text)
        parts = _parts(context, kind, text)
    except RemudaError as error:
        raise context.located(error, node) from None
    if found is not None:
        if context.kept is not None and kind == "regclass":
            _keep(context, context.kept, text, found, node)
        return found
    if len(parts) > 1:
        known_schemas = {PG_TEMP, *(name for _, _, name in _schemas(context))}
        if parts[-2] not in known_schemas:
            raise context.error(
                UndefinedSchema,
                f'schema "{parts[-2]}" does not exist',
                node,
                hint=did_you_mean(parts[-2], known_schemas),
            )
    if kind == "regtype":
        raise context.error(UndefinedType, f'type "{text}" does not exist', node)
    if kind in _PLAINLY_NAMED:
        text = ".".join(parts)
    listed, what, undefined = _LISTED[kind]
    known = [name for _, _, name in listed(context)]
    raise context.error(
        undefined, f'{what} "{text}" does not exist', node, hint=did_you_mean(text, known)
    )


def _keep(context: Context, kept: Kept, text: str, oid: int, node: ast.Node | None) -> None:
    """Note the relation that a literal names in a text that the catalog is going to keep."""
    if not isinstance(node, ast.Literal) or node.start < 0:
        return
    for listed, schema, name in _relations(context):
        if listed == oid and schema not in SYSTEM:
            parts = name_parts(text)
            plain = len(parts) == 2 or (  # with the database: others call it otherwise
                len(parts) == 1 and find_in_kept(context, name) == (schema, name)
            )
            place = Place(schema, name)
            kept.references.append(Reference(node.start, node.end, place, plain, literal=True))


def find_in_kept(context: Context, name: str) -> tuple[str, str] | None:
    """The schema and the name of the relation that ``name`` means along ``KEPT_PATH``."""
    found = find_any(context.catalog, KEPT_PATH, "", name)
    if found is None:
        return None
    if isinstance(found, SystemRelation):
        return found.schema, found.name
    return found.namespace, found.local


_WITH_TYPES: Final = {"regproc": "regprocedure", "regoper": "regoperator"}


def _signed_parts(kind: str, text: str) -> tuple[str, ...]:
    """``pg_catalog.lower(character varying)``, with the types as the catalog names them. Raises
    InvalidName."""
    name, parenthesis, rest = text.partition("(")
    if not parenthesis:
        raise InvalidText(
            "expected a left parenthesis", hint=f'Write "{text}" with the types of its arguments.'
        )
    if not rest.rstrip().endswith(")"):
        raise InvalidText("expected a right parenthesis", hint=f'Write "{text})".')
    types = [each.strip() for each in rest.rstrip()[:-1].split(",") if each.strip()]
    parts = name_parts(name) if kind == "regprocedure" else _operator_parts(name.strip())
    return (*parts[:-1], f"{parts[-1]}({','.join(map(_type_in_catalog, types))})")


def _operator_parts(text: str) -> tuple[str, ...]:
    """No operator has a point in its name. Raises InvalidName."""
    if not text.strip():
        raise InvalidName("invalid name syntax")
    schema, point, name = text.strip().rpartition(".")
    return (schema.strip().lower(), name.strip()) if point else (text,)


def _type_parts(text: str) -> tuple[str, ...]:
    """A name may have several words, and a modifier. Raises SqlSyntaxError, InvalidName."""
    text = text.strip()
    if not text:
        raise SqlSyntaxError('invalid type name ""')
    if '"' in text:
        bare = text.removesuffix("[]")
        *schema, name = name_parts(bare)
        return (*schema, name + text[len(bare) :])
    *schema, name = (part.strip().lower() for part in text.split("."))
    return (*schema, _plain_type(name))


def _type_in_catalog(text: str) -> str:
    """``timestamp with time zone []`` -> ``timestamptz[]``."""
    plain = _plain_type(text.strip().strip('"').lower())
    element = plain.removesuffix("[]")
    return (
        next((t.name for t in PG_TYPES if element in (t.name, t.shown.strip('"'))), element)
        + (plain[len(element) :])
    )


def _plain_type(text: str) -> str:
    """``character varying(20) []`` without what says nothing about the type: its modifier."""
    head, _, tail = text.partition("(")
    words = (head + " " + tail.partition(")")[2]).replace("[", " [").split()
    brackets = "[]" if words and words[-1] == "[]" else ""
    name = " ".join(words[: len(words) - bool(brackets)])
    return _SPELLINGS.get(name, name) + brackets


_SPELLINGS: Final = {
    "int": "int4",
    "decimal": "numeric",
    "dec": "numeric",
    "char": "bpchar",
    "float": "float8",
    "double": "float8",
    "string": "text",
    "tinyint": "int2",
}
"""Names of types that the grammar knows and the catalog does not."""


def of_objects(sql_type: SqlType) -> bool:
    """Whether values are OIDs of objects, or arrays of such."""
    return (sql_type.element or sql_type).alias in OBJECTS


def object_literal(
    context: Context, text: str, sql_type: SqlType, node: ast.Node | None
) -> Literal:
    """The value of a type ``of_objects`` that ``text`` names. Raises what ``number`` raises."""
    if sql_type.element is None:
        return Literal(sql_type, number(context, sql_type.alias, text, node))
    kind = sql_type.element.alias
    try:
        parts = parse_text(text, array(VARCHAR))
    except DataError as error:
        raise context.located(error, node) from None
    assert isinstance(parts, tuple)
    return Literal(
        sql_type, tuple(None if p is None else number(context, kind, str(p), node) for p in parts)
    )


def as_number(
    context: Context, kind: str, text: Expression, *, required: bool = False
) -> Expression:
    """The OIDs of what a column, or a parameter, names. Where there is no such object the value is
    NULL, or if it is ``required`` the statement fails, as far as objects of the kind have plain
    names."""
    if kind in _PLAINLY_NAMED:
        numbers = _numbers(context, kind)
        full = {
            (database, *parts): oid
            for database in context.databases
            for parts, oid in numbers.items()
            if len(parts) > 1
        }
        found = {written_parts(parts): oid for parts, oid in {**numbers, **full}.items()}
        _, what, undefined = _LISTED[kind]
        missing = (undefined.__name__, what) if required else ("", "")
        constants = (
            Literal(array(VARCHAR), tuple(found)),
            Literal(array(BIGINT), tuple(found.values())),
            Literal(array(VARCHAR), missing),
        )
        return Call(aliased(BIGINT, kind), "named_object", (text, *constants))
    known: dict[str, int] = {}
    for parts, oid in _numbers(context, kind).items():
        *schema, name = parts
        known[".".join(parts)] = known[".".join([*schema, quoted_name(name)])] = oid
    folded = Call(VARCHAR, "lower", (text,))
    exact, lower = (_looked_up(OID, key, known) for key in (text, folded))
    return Call(aliased(BIGINT, kind), "coalesce", (exact, lower))


# --- number to text ----------------------------------------------------------------------------


def looked_up(key: Expression, found: Mapping[int, str]) -> Expression:
    """The text of each number; NULL for those that are not in ``found``."""
    return _looked_up(VARCHAR, key, found)


def _looked_up(
    result: SqlType, key: Expression, found: Mapping[int, str] | Mapping[str, int]
) -> Expression:
    keys = Literal(array(key.type), tuple(found))
    values = Literal(array(result), tuple(found.values()))
    return Call(result, "lookup", (key, keys, values))


def is_written(sql_type: SqlType) -> bool:
    """Whether values are written in another way than those of the plain type: by name, or with
    blanks between the elements."""
    inner = sql_type.element or sql_type
    return inner.alias in OBJECTS or (sql_type.alias in VECTORS and not sql_type.is_text)


def as_text(context: Context, value: Expression) -> Expression:
    """How a value ``is_written``: its text, of an array of objects an array of texts."""
    if value.type.alias in VECTORS:
        shown = aliased(VARCHAR, value.type.alias)  # drivers are told the type of the catalog
        return Call(shown, "array_to_string", (value, Literal(VARCHAR, " ")))
    if value.type.element is not None:
        kind, plain = value.type.element.alias, retyped(value, array(BIGINT))
        known = {0: NOTHING, **names(context, kind)}
        keys, texts = array(BIGINT), array(VARCHAR)
        found = (Literal(keys, tuple(known)), Literal(texts, tuple(known.values())))
        return Call(texts, "lookup_each", (plain, *found))
    plain = retyped(value, BIGINT)
    known = {0: NOTHING, **names(context, value.type.alias)}
    return Call(VARCHAR, "coalesce", (looked_up(plain, known), Cast(VARCHAR, plain)))


def retyped(value: Expression, sql_type: SqlType) -> Expression:
    """The same value under another name of its type."""
    return value if value.type.alias == sql_type.alias else replace(value, type=sql_type)
