"""Drill's dialect, as far as its clients write it by themselves, put into PostgreSQL's.

Texts are rewritten before they are parsed, so the parser, the binder and all messages stay those
of one dialect. What is rewritten:

- names in backticks, which Drill finds without regard to case;
- SHOW SCHEMAS, SHOW DATABASES, SHOW TABLES, DESCRIBE, USE, EXPLAIN PLAN FOR, ALTER SESSION;
- the relations of INFORMATION_SCHEMA, whose columns are in capitals there, and ``sys.drillbits``
  and ``sys.version``;
- subqueries in FROM without an alias.

Everything else means what it means in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from remuda.catalog.catalog import Catalog, undefined_map
from remuda.catalog.system_relations import DATABASE, PUBLIC, SYSTEM, system_relation
from remuda.datatypes.identifiers import quoted_name
from remuda.datatypes.schema import MapSchema, ViewDefinition
from remuda.errors import NotSupported, SqlSyntaxError, UndefinedSchema
from remuda.sql.drill.names import Names
from remuda.sql.drill.schema import SYSTEM as DRILL_SYSTEM
from remuda.sql.drill.schema import TABLES
from remuda.sql.drill.words import Piece, pieces_of, without_blanks

_NO_ALIAS: Final = frozenset(
    {"WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "FETCH", "UNION", "INTERSECT"}
    | {"EXCEPT", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "ON", "USING"}
    | {"WINDOW", "TABLESAMPLE", "FOR"}
)
_QUERY_STARTS: Final = ("SELECT", "VALUES", "WITH")


def in_postgres(text: str, catalog: Catalog, path: tuple[str, ...] = (PUBLIC,)) -> str:
    """``path``: the schemas in which the session searches. Raises SqlSyntaxError, and NotSupported,
    UndefinedMap, UndefinedSchema for what Drill has and Remuda has not."""
    pieces = pieces_of(text)
    words = without_blanks(pieces)
    first = words[0].word if words else ""
    second = words[1].word if len(words) > 1 else ""
    match first, second:
        case "SHOW", "SCHEMAS" | "DATABASES":
            return _show_schemas(words[2:])
        case "SHOW", "TABLES":
            return _show_tables(words[2:], catalog)
        case "SHOW", "FILES":
            raise NotSupported("there are no files here", hint="SHOW TABLES lists the maps.")
        case "USE", _:
            return _use(words[1:], catalog)
        case (("DESCRIBE" | "DESC"), "SCHEMA"):
            raise NotSupported("DESCRIBE SCHEMA is not supported", hint="Use SHOW TABLES.")
        case (("DESCRIBE" | "DESC"), _):
            skipped = 2 if second == "TABLE" else 1
            return _describe(words[skipped:], catalog, path)
        case "EXPLAIN", "PLAN":
            return "EXPLAIN " + _rewritten(_after_for(pieces), catalog)
        case "ALTER", "SESSION" | "SYSTEM":
            return _option(words[2:])
        case "SET", _ if len(words) > 1 and words[1].text.startswith("`"):
            return _option(words)  # as the JDBC driver sets options
        case _:
            return _rewritten(pieces, catalog)


# --- statements -------------------------------------------------------------------------------


def _show_schemas(rest: Sequence[Piece]) -> str:
    return (
        _select(["SCHEMA_NAME"], "SCHEMATA")
        + _like(rest, "SCHEMA_NAME")
        + ' ORDER BY "SCHEMA_NAME"'
    )


def _show_tables(rest: Sequence[Piece], catalog: Catalog) -> str:
    schema = "current_schema()"
    if rest and rest[0].word in ("FROM", "IN"):
        names, rest = _path(rest[1:])
        schema = _text(_schema(names, catalog))
    query = _select(["TABLE_SCHEMA", "TABLE_NAME"], "TABLES")
    like = _like(rest, "TABLE_NAME")
    like += (" AND " if like else " WHERE ") + f'"TABLE_SCHEMA" = {schema}'
    return query + like + ' ORDER BY "TABLE_NAME"'


def _select(columns: Sequence[str], relation: str) -> str:
    names = ", ".join(f'"{column}"' for column in columns)
    return f"SELECT {names} FROM {TABLES[relation][1]} AS found"  # noqa: S608 (constants)


def _like(rest: Sequence[Piece], column: str) -> str:
    if not rest:
        return ""
    if len(rest) == 2 and rest[0].word == "LIKE" and rest[1].kind == "text":
        return f' WHERE "{column}" LIKE {rest[1].text}'
    raise SqlSyntaxError(
        f"syntax error at {rest[0].text!r}", hint="Only LIKE 'pattern' may follow here."
    )


def _use(rest: Sequence[Piece], catalog: Catalog) -> str:
    names, rest = _path(rest)
    _at_end(rest)
    schema = _schema(names, catalog)
    if schema in SYSTEM:
        raise NotSupported(
            f'"{schema}" cannot be the default schema',
            hint=f'Name its relations with their schema: "{schema}.x".',
        )
    return f"SET search_path = {quoted_name(schema)}"


def _describe(rest: Sequence[Piece], catalog: Catalog, path: tuple[str, ...]) -> str:
    names, rest = _path(rest)
    if len(names) > 1:
        schema = _schema(names[:-1], catalog)
    else:
        known = (each for each in path if _spelled(each, names[-1], catalog))
        schema = next(known, PUBLIC)
    relation = _relation(schema, names[-1], catalog)
    query = _select(["COLUMN_NAME", "DATA_TYPE", "IS_NULLABLE"], "COLUMNS")
    query += f' WHERE "TABLE_SCHEMA" = {_text(schema)} AND "TABLE_NAME" = {_text(relation)}'
    if rest and rest[0].name is not None:
        query += f' AND lower("COLUMN_NAME") = {_text(rest[0].name.lower())}'
        rest = rest[1:]
    _at_end(rest)
    return query + ' ORDER BY "ORDINAL_POSITION"'


def _relation(schema: str, name: str, catalog: Catalog) -> str:
    """As it is spelled in the catalog. Raises UndefinedMap."""
    same = _spelled(schema, name, catalog)
    if name in same:
        return name
    if len(same) != 1:
        raise undefined_map(name, _relations_in(schema, catalog))
    return same[0]


def _spelled(schema: str, name: str, catalog: Catalog) -> list[str]:
    """The relations of a schema that have the name, without regard to case."""
    return [each for each in _relations_in(schema, catalog) if each.lower() == name.lower()]


def _relations_in(schema: str, catalog: Catalog) -> list[str]:
    if schema in SYSTEM:
        return [found for found in SYSTEM[schema] if system_relation(schema, found)]
    found: list[MapSchema | ViewDefinition] = [*catalog.maps, *catalog.views]
    return [each.local for each in found if each.namespace == schema]


def _option(rest: Sequence[Piece]) -> str:
    if rest and rest[0].word == "RESET" and len(rest) > 1:
        return "RESET ALL" if rest[1].word == "ALL" else f"RESET {_option_name(rest[1:])[0]}"
    if rest and rest[0].word == "SET":
        name, rest = _option_name(rest[1:])
        value = "".join(piece.text for piece in rest[1:])
        if len(rest) > 1 and rest[0].text == "=":
            return f"SET {name} = {value}"
    raise SqlSyntaxError("syntax error in ALTER SESSION", hint="ALTER SESSION SET name = value.")


def _option_name(rest: Sequence[Piece]) -> tuple[str, Sequence[Piece]]:
    """Drill writes ``planner.width`` with and without backticks. Behind the word ``exec`` the
    tokenizer would take everything for one piece."""
    names, rest = _path(rest)
    parts = [part for name in names for part in name.split(".")]
    shown = ('"exec"' if part.lower() == "exec" else quoted_name(part) for part in parts)
    return ".".join(shown), rest


def _after_for(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """What EXPLAIN PLAN ... FOR explains."""
    for place, piece in enumerate(pieces):
        if piece.word == "FOR":
            return pieces[place + 1 :]
    raise SqlSyntaxError("syntax error in EXPLAIN PLAN", hint="EXPLAIN PLAN FOR query.")


# --- names ------------------------------------------------------------------------------------


def _path(rest: Sequence[Piece]) -> tuple[list[str], Sequence[Piece]]:
    """``a.b.c`` and what follows it; ``a.b`` in one pair of backticks is one name."""
    names: list[str] = []
    while rest and (name := rest[0].name) is not None:
        names.append(name)
        rest = rest[1:]
        if not rest or rest[0].text != ".":
            return names, rest
        rest = rest[1:]
    raise SqlSyntaxError("syntax error: a name is missing")


def _schema(names: Sequence[str], catalog: Catalog) -> str:
    """``public``, ``remuda``, ``remuda.public``, ``sys`` ...: the schema that is meant, as the
    catalog spells it."""
    path = [part for name in names for part in name.split(".")]
    if path and path[0].lower() == DATABASE:
        path = path[1:] or [PUBLIC]
    created = (namespace.name for namespace in catalog.namespaces)
    known = list(dict.fromkeys((PUBLIC, *SYSTEM, *created)))
    same = [each for each in known if path and each.lower() == path[0].lower()]
    if len(path) == 1 and path[0] in same:
        return path[0]
    if len(path) == 1 and len(same) == 1:
        return same[0]
    raise UndefinedSchema(
        f'schema "{".".join(names)}" does not exist', hint=f"Schemas: {', '.join(known)}."
    )


def _at_end(rest: Sequence[Piece]) -> None:
    if rest:
        raise SqlSyntaxError(f"syntax error at {rest[0].text!r}")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


# --- queries ----------------------------------------------------------------------------------


def _rewritten(pieces: Sequence[Piece], catalog: Catalog) -> str:
    found = list(pieces)
    words = [place for place, piece in enumerate(found) if piece.kind != "blank"]
    capitals = _relations(found, words)
    names = Names(catalog, found, capitals)
    for number, place in enumerate(words):
        piece = found[place]
        if piece.kind == "ticked" or (piece.kind == "word" and piece.word in capitals):
            dotted = number > 1 and found[words[number - 1]].text == "."
            before = found[words[number - 2]].name if dotted else None
            found[place] = Piece("quoted", names.quoted(piece, before or ""))
    _aliases(found, words)
    return "".join(piece.text for piece in found)


def _relations(found: list[Piece], words: Sequence[int]) -> frozenset[str]:
    """Put Drill's relations in place of their names; the columns in capitals that they bring."""
    capitals: set[str] = set()
    for number in range(len(words) - 2):
        schema, dot, relation = (found[place] for place in words[number : number + 3])
        if dot.text != "." or schema.name is None or relation.name is None:
            continue
        query = ""
        if schema.name.upper() == "INFORMATION_SCHEMA":
            columns, query = TABLES.get(relation.name.upper(), ((), ""))
            capitals.update(columns)
        elif schema.name.lower() == "sys":
            query = DRILL_SYSTEM.get(relation.name.lower(), "")
        if query:
            after = found[words[number + 3]] if number + 3 < len(words) else None
            if not _is_alias(after):
                query += f" AS {quoted_name(relation.name)}"
            for place in words[number : number + 2]:
                found[place] = Piece("blank", "")
            found[words[number + 2]] = Piece("sign", query)
    return frozenset(capitals)


def _is_alias(piece: Piece | None) -> bool:
    """Whether what follows a relation gives it another name."""
    return piece is not None and piece.name is not None and piece.word not in _NO_ALIAS


def _aliases(found: list[Piece], words: Sequence[int]) -> None:
    """Names for subqueries in FROM that have none."""
    opened: list[bool] = []
    made = 0
    for number, place in enumerate(words):
        text = found[place].text
        if text == "(":
            before = found[words[number - 1]] if number else None
            inside = found[words[number + 1]].word if number + 1 < len(words) else ""
            is_query = before is not None and before.word in ("FROM", "JOIN")
            opened.append(is_query and inside in _QUERY_STARTS)
        elif text == ")" and opened:
            after = found[words[number + 1]] if number + 1 < len(words) else None
            if opened.pop() and not _is_alias(after):
                found[place] = Piece("sign", f') AS "_{made}"')
                made += 1
