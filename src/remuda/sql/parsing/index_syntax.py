"""CREATE INDEX, DROP INDEX and SHOW INDEXES as text.

::

    CREATE [UNIQUE] INDEX [CONCURRENTLY] [[IF NOT EXISTS] name] ON map [USING method] (element, ...)
        [NULLS [NOT] DISTINCT] [TYPE kind] [WITH (type = kind)]
    element   column [COLLATE collation] [operator class] [ASC | DESC] [NULLS FIRST | LAST]
    kind      SORTED | HASH | BITMAP         method   a kind, or btree (SORTED)
    DROP INDEX [CONCURRENTLY] [IF EXISTS] name [ON map]
    SHOW INDEXES [FROM map]

CONCURRENTLY says nothing but that the statement is in no transaction: an index never stops writes.
"""

from __future__ import annotations

from typing import Final

from remuda.datatypes.index import IndexKind
from remuda.errors import InputError, InvalidDefinition, NotSupported, UndefinedObject
from remuda.sql.parsing.option_settings import skip_collation, skip_storage, skip_tablespace
from remuda.sql.parsing.token_reader import TokenReader
from remuda.sql.trees.syntax import CreateIndexTree, DropIndexTree, Name, ShowTree

_METHODS: Final = {
    "sorted": IndexKind.SORTED,
    "btree": IndexKind.SORTED,
    "hash": IndexKind.HASH,
    "bitmap": IndexKind.BITMAP,
}
_KINDS: Final = "Kinds of indexes: SORTED (btree), HASH, BITMAP."


def read_create_index(reader: TokenReader) -> CreateIndexTree:
    """After CREATE; UNIQUE or INDEX comes next."""
    unique = reader.accept("unique")
    reader.expect("index")
    concurrently = reader.accept("concurrently")
    if_not_exists = reader.accept("if", "not", "exists")
    name = None
    if if_not_exists or reader.word() != "on":
        name = reader.name()
    reader.expect("on")
    reader.accept("only")
    target = reader.map_name()
    kind = _method(reader) if reader.accept("using") else None
    columns, descending, classes = _elements(reader)
    included = reader.names() if reader.accept("include") else ()
    nulls_distinct = True
    if reader.accept("nulls"):
        nulls_distinct = not reader.accept("not")
        reader.expect("distinct")
    while True:
        place = reader.position()
        given = _kind_clause(reader)
        if given is None:
            break
        if kind not in (None, given):
            raise InvalidDefinition("the kind of the index is given twice", position=place)
        kind = given
    skip_tablespace(reader)
    if reader.word() == "where":
        reader.unsupported("WHERE of an index", "ON map (column, ...)")
    reader.end()
    return CreateIndexTree(
        name,
        if_not_exists,
        target,
        kind or IndexKind.SORTED,
        columns,
        descending,
        unique,
        nulls_distinct,
        operator_classes=classes,
        included=included,
        concurrently=concurrently,
    )


def _method(reader: TokenReader) -> IndexKind:
    token = reader.peek()
    word = token.text.lower() if token is not None else ""
    if word not in _METHODS:
        if token is None or not word.isidentifier():
            reader.fail(_KINDS)
        raise UndefinedObject(
            f'access method "{word}" does not exist', position=reader.position(), hint=_KINDS
        )
    reader.index += 1
    return _METHODS[word]


def _kind_clause(reader: TokenReader) -> IndexKind | None:
    """``TYPE kind`` or ``WITH (type = kind)``; PostgreSQL's storage parameters say no kind."""
    if reader.accept("type"):
        return _method(reader)
    if not reader.accept("with"):
        return None
    reader.expect("(")
    kind: IndexKind | None = None
    while True:
        if not skip_storage(reader):
            kind = _kind_option(reader)
        if not reader.accept(","):
            break
    reader.expect(")")
    return kind


def _kind_option(reader: TokenReader) -> IndexKind:
    option = reader.name()
    if option.text != "type":
        raise InvalidDefinition(
            f'unknown option "{option.text}"',
            position=option.position,
            hint="Known options: type = sorted|hash|bitmap.",
        )
    reader.expect("=")
    return _method(reader)


_Elements = tuple[tuple[Name, ...], tuple[bool, ...], tuple[Name | None, ...]]


def _elements(reader: TokenReader) -> _Elements:
    """Columns, whether each goes down, and their operator classes."""
    reader.expect("(", hint="An index needs columns: ON map (column, ...).")
    names: list[Name] = []
    directions: list[bool] = []
    classes: list[Name | None] = []
    while True:
        if reader.word() == "(":
            _refuse_expression(reader)
        names.append(reader.name())
        if reader.word() in ("(", "::", "||", "+", "-", "*", "/", "."):
            _refuse_expression(reader)
        skip_collation(reader)
        classes.append(_operator_class(reader))
        down = reader.accept("desc")
        if not down:
            reader.accept("asc")
        _nulls(reader, down)
        directions.append(down)
        if not reader.accept(","):
            break
    reader.expect(")")
    return tuple(names), tuple(directions), tuple(classes)


def _operator_class(reader: TokenReader) -> Name | None:
    """The operator class of a column, where one is named."""
    if reader.word() in ("asc", "desc", "nulls", ",", ")", ""):
        return None
    name = reader.map_name()
    if reader.word() == "(":
        raise InputError(f"operator class {name.shown} has no options", position=reader.position())
    return name


def _refuse_expression(reader: TokenReader) -> None:
    raise NotSupported(
        "indexes on expressions are not supported",
        position=reader.position(),
        hint="Name columns of the map.",
    )


def _nulls(reader: TokenReader, down: bool) -> None:
    """NULLs stand where they stand by default: last, first where it goes down."""
    place = reader.position()
    if not reader.accept("nulls"):
        return
    first = reader.accept("first")
    if not first:
        reader.expect("last")
    if first != down:
        raise NotSupported(
            "NULLS FIRST and NULLS LAST of an index must say what holds anyway",
            position=place,
            hint="ASC has its NULLs last, DESC first.",
        )


def read_drop_index(reader: TokenReader) -> DropIndexTree:
    """After DROP INDEX."""
    concurrently = reader.accept("concurrently")
    if_exists = reader.accept("if", "exists")
    names = reader.listed(reader.map_name)
    target = reader.map_name() if reader.accept("on") else None
    if not reader.accept("cascade"):
        reader.accept("restrict")
    reader.end()
    return DropIndexTree(names, if_exists, target, concurrently)


def read_show_indexes(reader: TokenReader) -> ShowTree:
    """After SHOW INDEXES."""
    name = None
    if reader.accept("from") or reader.accept("in") or reader.accept("on"):
        name = reader.map_name()
    reader.end()
    return ShowTree("INDEXES", name)
