"""Functions about the catalog and the session, as PostgreSQL's clients call them.

They are no functions of the engine: each is replaced, while a statement is bound, by an expression
over its arguments. Those that look something up become a CASE over what the catalog holds now; a
plan is not used any more once the catalog has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Final

from remuda.catalog.definition_text import constraint_text, unique_text
from remuda.catalog.pg_objects import (
    comments,
    index_text,
    indexes,
    relations,
)
from remuda.catalog.pg_routines import KIND_AGGREGATE, Routine, function_text
from remuda.catalog.pg_types import ALL_DIGITS, BY_NAME, OBJECTS, SPANS
from remuda.catalog.temporary import in_temporary_schema, own_schema
from remuda.datatypes.identifiers import in_quotes, quoted_name
from remuda.datatypes.schema import PG_TEMP, ViewDefinition
from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    INTEGER,
    VARCHAR,
    Kind,
    SqlType,
    aliased,
    array,
)
from remuda.datatypes.texts.text import type_name
from remuda.errors import AmbiguousFunction, RemudaError, UndefinedFunction, WrongObjectType
from remuda.plan.expression import Call, Case, Cast, Expression, InList, Literal
from remuda.sql.expressions.expressions import ExpressionBinder, register, register_call
from remuda.sql.expressions.functions.enums import ENUM_FUNCTIONS
from remuda.sql.expressions.functions.ignored_settings import IGNORED
from remuda.sql.expressions.functions.shown_texts import ShownTexts
from remuda.sql.expressions.functions.transactions import (
    column_size,
    transaction_number,
    transaction_status,
)
from remuda.sql.parsing.parser import parse
from remuda.sql.scope.object_names import (
    NOTHING,
    OID,
    Holder,
    as_number,
    found_number,
    hidden_relations,
    looked_up,
    names,
    number,
)
from remuda.sql.scope.resolution import current, searched
from remuda.sql.scope.routines import routines
from remuda.sql.scope.statements import roles_known
from remuda.sql.trees import ast
from remuda.sql.trees.syntax import QueryTree

VERSION: Final = "PostgreSQL 15.0 (Remuda)"
SETTING_NAMES: Final = (
    "application_name", "bytea_output", "client_encoding", "client_min_messages", "datestyle",
    "default_tablespace", "default_transaction_deferrable", "default_transaction_isolation",
    "default_transaction_read_only",
    "definitions_in_transactions",
    "engine", "extra_float_digits", "idle_in_transaction_session_timeout", "integer_datetimes",
    "intervalstyle", "jit", "keep_profiles",
    "lc_collate", "lc_ctype", "lock_timeout", "max_function_args", "max_identifier_length",
    "max_index_keys", "read_consistency",
    "role", "search_path", "server_encoding", "server_version", "server_version_num", "sql_dialect",
    "standard_conforming_strings", "statement_timeout", "synchronize_seqscans", "test_pauses",
    "timezone", "transaction_deferrable", "transaction_isolation", "transaction_read_only",
    "xmloption",
    *(setting.name for setting in IGNORED),
)  # fmt: skip
"""Every setting of a session (``session.settings`` has their values), in lower case."""
_COLUMNS: Final = 4096
"""More than a relation has columns."""


# --- what functions are made of ----------------------------------------------------------------

Function = Callable[[ExpressionBinder, list[ast.Node], ast.Node], Expression]


def _text(value: str | None) -> Literal:
    return Literal(VARCHAR, value)


def _constant(value: Literal) -> Function:
    def bind(_binder: ExpressionBinder, _nodes: list[ast.Node], _node: ast.Node) -> Expression:
        return value

    return bind


def _number(binder: ExpressionBinder, node: ast.Node) -> Expression:
    """An oid. A text is the name of a relation."""
    bound = binder.bind(node)
    if isinstance(bound, Literal) and isinstance(bound.value, str):
        return Literal(OID, number(binder.context, "regclass", bound.value, node))
    return binder.convert.implicit(bound, BIGINT, node)


def _looked_up(
    key: Expression, found: Mapping[int, str], otherwise: Literal | None = None
) -> Expression:
    value = looked_up(key, found)
    return value if otherwise is None else Call(VARCHAR, "coalesce", (value, otherwise))


def _by_oid(made: Callable[[Holder], Mapping[int, str]]) -> Function:
    def bind(binder: ExpressionBinder, nodes: list[ast.Node], _node: ast.Node) -> Expression:
        return _looked_up(_number(binder, nodes[0]), made(Holder(binder.context)))

    return bind


# --- definitions and comments ------------------------------------------------------------------


def _comments(holder: Holder) -> dict[int, str]:
    return {comment.oid: comment.text for comment in comments(holder) if not comment.place}


def _column_comment(binder: ExpressionBinder, nodes: list[ast.Node], _node: ast.Node) -> Expression:
    found = {
        comment.oid * _COLUMNS + comment.place: comment.text
        for comment in comments(Holder(binder.context))
        if comment.place
    }
    place = binder.convert.implicit(binder.bind(nodes[1]), BIGINT, nodes[1])
    times = Call(BIGINT, "*", (_number(binder, nodes[0]), Literal(BIGINT, _COLUMNS)))
    return _looked_up(Call(BIGINT, "+", (times, place)), found)


def _constraints(binder: ExpressionBinder, *, pretty: bool = False) -> dict[int, str]:
    texts = ShownTexts(binder)
    found = texts.foreign_keys()
    for schema in Holder(binder.context).maps:
        if not schema.has_row_ids:
            found[schema.key_oid] = constraint_text(schema, None)
        for check in schema.checks:
            found[check.oid] = texts.check(schema, check, pretty=pretty)
        for index in schema.uniques:
            if index.constraint:
                found[index.constraint_oid] = unique_text(schema, index)
    return found


def _view_definition(
    binder: ExpressionBinder, nodes: list[ast.Node], _node: ast.Node
) -> Expression:
    """``pg_get_viewdef(view [, pretty])``"""
    key, texts = _number(binder, nodes[0]), ShownTexts(binder)
    asked = {key.value} if isinstance(key, Literal) else None
    found = {
        r.oid: texts.view(r.source) + ";"
        for r in relations(Holder(binder.context))
        if isinstance(r.source, ViewDefinition) and (asked is None or r.oid in asked)
    }
    return _looked_up(key, found)


def _expression_text(
    binder: ExpressionBinder, nodes: list[ast.Node], _node: ast.Node
) -> Expression:
    """``pg_get_expr(expression, relation [, pretty])``"""
    text = binder.convert.cast(binder.bind(nodes[0]), VARCHAR, nodes[0])
    other = ShownTexts(binder).expressions()
    if not other:
        return text
    keys = Literal(array(VARCHAR), tuple(other))
    values = Literal(array(VARCHAR), tuple(other.values()))
    found = Call(VARCHAR, "lookup", (text, keys, values))
    return Call(VARCHAR, "coalesce", (found, text))


def _role_name(binder: ExpressionBinder, nodes: list[ast.Node], _node: ast.Node) -> Expression:
    known = {role.oid: role.name for role in roles_known(binder.context.catalog).listed}
    return _looked_up(_number(binder, nodes[0]), known)


def _map_names(holder: Holder) -> dict[int, str]:
    return {schema.oid: schema.name for schema in holder.maps}


def _index_names(holder: Holder) -> dict[int, str]:
    return {index.oid: index.name for index in indexes(holder)}


def _kinds(holder: Holder) -> dict[int, str]:
    found = {r.oid: {"r": "table", "v": "view", "S": "sequence"}[r.kind] for r in relations(holder)}
    return {**found, **{index.oid: "index" for index in indexes(holder)}}


def _exists(binder: ExpressionBinder, nodes: list[ast.Node], _node: ast.Node) -> Expression:
    """Whether a relation has this OID: for the sizes of relations."""
    known = dict.fromkeys(names(binder.context, "regclass"), "")
    return Call(BOOLEAN, "is_not_null", (looked_up(_number(binder, nodes[0]), known),))


def _either(
    binder: ExpressionBinder, node: ast.Node, true: Expression, false: Expression
) -> Expression:
    condition = binder.condition(node, "pretty")
    if isinstance(condition, Literal):
        return true if condition.value else false
    return Case(VARCHAR, ((condition, true),), false)


def _constraint_definition(
    binder: ExpressionBinder, nodes: list[ast.Node], _node: ast.Node
) -> Expression:
    """``pg_get_constraintdef(constraint [, pretty])``"""
    key, texts = _number(binder, nodes[0]), _constraints(binder)
    plain = _looked_up(key, texts)
    if len(nodes) == 1:
        return plain
    short = _constraints(binder, pretty=True)
    return _either(binder, nodes[1], _looked_up(key, short), plain)


def _index_definition(
    binder: ExpressionBinder, nodes: list[ast.Node], _node: ast.Node
) -> Expression:
    """``pg_get_indexdef(index [, column, pretty])``: column 0 asks for all of it."""
    found = list(indexes(Holder(binder.context)))
    key = _number(binder, nodes[0])
    whole = _looked_up(key, {index.oid: index_text(index) for index in found})
    if len(nodes) == 1:
        return whole
    pretty = _looked_up(key, {index.oid: index_text(index, pretty=True) for index in found})
    whole = _either(binder, nodes[2], pretty, whole)
    place = binder.convert.implicit(binder.bind(nodes[1]), BIGINT, nodes[1])
    if isinstance(place, Literal) and place.value == 0:
        return whole
    columns = {
        index.oid * _COLUMNS + number: quoted_name(name)
        for index in found
        for number, name in enumerate(index.columns, 1)
    }
    times = Call(BIGINT, "*", (key, Literal(BIGINT, _COLUMNS)))
    none = _looked_up(key, dict.fromkeys([index.oid for index in found], ""))
    looked_up = _looked_up(Call(BIGINT, "+", (times, place)), columns)
    column = Call(VARCHAR, "coalesce", (looked_up, none))
    is_zero = Call(BOOLEAN, "=", (place, Literal(BIGINT, 0)))
    return Case(VARCHAR, ((is_zero, whole),), column)


def _visible(binder: ExpressionBinder, nodes: list[ast.Node], _node: ast.Node) -> Expression:
    """Whether a relation can be named without its schema."""
    hidden = [Literal(BIGINT, oid) for oid in hidden_relations(binder.context)]
    inside = InList(BOOLEAN, _number(binder, nodes[0]), tuple(hidden))
    return Call(BOOLEAN, "not", (inside,))


# --- functions ---------------------------------------------------------------------------------


def _of_routine(made: Callable[[Routine], str | None]) -> Function:
    """A text about the function of an oid."""

    def bind(binder: ExpressionBinder, nodes: list[ast.Node], _node: ast.Node) -> Expression:
        bound = binder.bind(nodes[0])
        if isinstance(bound, Literal) and isinstance(bound.value, str):
            key: Expression = Literal(OID, number(binder.context, "regproc", bound.value, nodes[0]))
        else:
            key = binder.convert.implicit(bound, BIGINT, nodes[0])
        found = {each.oid: text for each in routines() if (text := made(each)) is not None}
        return _looked_up(key, found)

    return bind


def _function_definition(
    binder: ExpressionBinder, nodes: list[ast.Node], node: ast.Node
) -> Expression:
    """``pg_get_functiondef(function)``. No CREATE FUNCTION makes an aggregate: asked for one by a
    constant, it raises WrongObjectType; beside a column it is NULL."""
    text = _of_routine(lambda each: None if each.kind == KIND_AGGREGATE else function_text(each))
    asked = binder.bind(nodes[0])
    if isinstance(asked, Literal):
        oid = asked.value
        if isinstance(oid, str):
            oid = number(binder.context, "regproc", oid, nodes[0])
        for each in routines():
            if each.oid == oid and each.kind == KIND_AGGREGATE:
                message = f'"{each.name}" is an aggregate function'
                raise binder.context.error(WrongObjectType, message, node)
    return text(binder, nodes, node)


# --- types -------------------------------------------------------------------------------------


def _format_type(binder: ExpressionBinder, nodes: list[ast.Node], _node: ast.Node) -> Expression:
    key = _number(binder, nodes[0])
    plain = _looked_up(key, {0: NOTHING, **names(binder.context, "regtype")}, _text("???"))
    modifier = binder.convert.implicit(binder.bind(nodes[1]), BIGINT, nodes[1])
    branches: list[tuple[Expression, Expression]] = []
    for name, (least, after) in _WITH_MODIFIERS.items():
        t = BY_NAME[name]
        head, tail = t.shown, ""
        if t.name in ("time", "timestamp", "timestamptz"):
            head, _, tail = t.shown.partition(" ")
        given = Call(BOOLEAN, ">=", (modifier, Literal(BIGINT, least)))
        for oid, brackets in ((t.oid, ""), (t.array, "[]")):
            is_type = Call(BOOLEAN, "=", (key, Literal(BIGINT, oid)))
            end = f" {tail}".rstrip() + brackets
            text = Call(VARCHAR, "concat", (_text(head), *after(modifier), _text(end)))
            branches.append((Call(BOOLEAN, "and", (is_type, given)), text))
    known = Call(BOOLEAN, "is_null", (key,))
    return Case(VARCHAR, ((known, _text(None)), *branches), plain)


def _in_parentheses(*parts: Expression) -> tuple[Expression, ...]:
    return _text("("), *parts, _text(")")


def _length(modifier: Expression) -> tuple[Expression, ...]:
    return _in_parentheses(Cast(VARCHAR, _arithmetic("-", modifier, 4)))


def _precision(modifier: Expression) -> tuple[Expression, ...]:
    rest = _arithmetic("-", modifier, 4)
    precision, scale = _arithmetic("/", rest, 65536), _arithmetic("%", rest, 65536)
    return _in_parentheses(Cast(VARCHAR, precision), _text(","), Cast(VARCHAR, scale))


def _second_digits(modifier: Expression) -> tuple[Expression, ...]:
    return _in_parentheses(Cast(VARCHAR, modifier))


def _interval_fields(modifier: Expression) -> tuple[Expression, ...]:
    names = {bits: f" {' to '.join(span)}".rstrip() for span, bits in SPANS.items()}
    digits = _arithmetic("%", modifier, 65536)
    every = Call(BOOLEAN, "=", (digits, Literal(BIGINT, ALL_DIGITS)))
    shown = Call(VARCHAR, "concat", _second_digits(digits))
    fields = _looked_up(_arithmetic("/", modifier, 65536), names)
    return fields, Case(VARCHAR, ((every, _text("")),), shown)


def _arithmetic(operator: str, left: Expression, right: int) -> Expression:
    return Call(BIGINT, operator, (left, Literal(BIGINT, right)))


_WITH_MODIFIERS: Final[dict[str, tuple[int, Callable[[Expression], tuple[Expression, ...]]]]] = {
    "varchar": (4, _length),
    "bpchar": (4, _length),
    "numeric": (4, _precision),
    "time": (0, _second_digits),
    "timestamp": (0, _second_digits),
    "timestamptz": (0, _second_digits),
    "interval": (0, _interval_fields),
}
"""Types whose modifier is shown, the least one, and the text that it is."""


# --- the session -------------------------------------------------------------------------------


def _current_setting(
    binder: ExpressionBinder, nodes: list[ast.Node], _node: ast.Node
) -> Expression:
    """``current_setting(name [, missing_ok])``: the session tells the values when it is run."""
    name = binder.convert.implicit(binder.bind(nodes[0]), VARCHAR, nodes[0])
    lenient: Expression = Literal(BOOLEAN, False)
    if len(nodes) > 1:
        lenient = binder.condition(nodes[1], "current_setting")
    if isinstance(name, Literal) and isinstance(lenient, Literal):
        if name.value is None or lenient.value is None:
            return _text(None)
        return Call(VARCHAR, "session_setting", (name, lenient))
    lower = Call(VARCHAR, "lower", (name,))
    branches = tuple(
        (
            Call(BOOLEAN, "=", (lower, _text(known))),
            Call(VARCHAR, "session_setting", (_text(known), Literal(BOOLEAN, False))),
        )
        for known in SETTING_NAMES
    )
    return Case(VARCHAR, branches, _text(None))


def _schemas(binder: ExpressionBinder, nodes: list[ast.Node], _node: ast.Node) -> Expression:
    """``current_schemas(with implicit ones)``"""
    wanted = binder.condition(nodes[0], "current_schemas")
    texts = array(VARCHAR)
    context = binder.context
    both, one = (current(context.catalog, path) for path in (searched(context.path), context.path))
    own = own_schema(context.catalog.namespaces)
    if own is not None:
        both.insert(0, own.name)
    return Case(texts, ((wanted, Literal(texts, tuple(both))),), Literal(texts, tuple(one)))


def _schema(binder: ExpressionBinder, _node: ast.Node) -> Expression:
    """The schema in which new relations are made, NULL without one."""
    found = current(binder.context.catalog, binder.context.path)
    return _text(found[0] if found else None)


def _temporary_schema(
    binder: ExpressionBinder, _nodes: list[ast.Node], _node: ast.Node
) -> Expression:
    """``pg_my_temp_schema()``: 0 while the session has no temporary table."""
    own = own_schema(binder.context.catalog.namespaces)
    return Literal(OID, 0 if own is None else own.oid)


def _to_object(kind: str) -> Function:
    """``to_regclass(text)`` and its kind: NULL where the name is that of no object."""

    def bind(binder: ExpressionBinder, nodes: list[ast.Node], node: ast.Node) -> Expression:
        bound = binder.bind(nodes[0])
        if isinstance(bound, Literal) and isinstance(bound.value, str):
            try:
                found = found_number(binder.context, kind, bound.value)
            except AmbiguousFunction:
                found = None
            except RemudaError as error:
                raise binder.context.located(error, node) from None
            return Literal(aliased(BIGINT, kind), found)
        return as_number(binder.context, kind, binder.convert.implicit(bound, VARCHAR, nodes[0]))

    return bind


def _type_of(binder: ExpressionBinder, nodes: list[ast.Node], _node: ast.Node) -> Expression:
    """``pg_typeof(x)``: PostgreSQL's name of the type, without length or digits."""
    return _text(_bare_type_name(binder.bind(nodes[0]).type))


def _bare_type_name(sql_type: SqlType) -> str:
    if sql_type.alias:
        return sql_type.alias
    if sql_type.element is not None:
        return f"{_bare_type_name(sql_type.element)}[]"
    if sql_type.is_text and sql_type.length is not None:
        return {Kind.CHAR: "character"}.get(sql_type.kind, "character varying")
    if sql_type.is_text:
        return "text"
    names = {Kind.NULL: "unknown", Kind.DECIMAL: "numeric", Kind.ROW: "record", Kind.JSON: "jsonb"}
    zoneless = {Kind.TIME: "time without time zone", Kind.TIMESTAMP: "timestamp without time zone"}
    found = names.get(sql_type.kind) or zoneless.get(sql_type.kind)
    return found or type_name(replace(sql_type, length=None))


def _current_database(_binder: ExpressionBinder, _node: ast.Node) -> Expression:
    """There is one, under the name that the client has asked for."""
    return Call(VARCHAR, "current_database", ())


def _backend_pid(_binder: ExpressionBinder, _nodes: list[ast.Node], _node: ast.Node) -> Expression:
    """The number of the connection, which the member that runs the statement knows."""
    return Call(INTEGER, "backend_pid", ())


_BLOCKING: Final = """
    SELECT coalesce((
        SELECT array_agg(DISTINCT "$blocking" ORDER BY "$blocking")
        FROM (SELECT pid AS "$pid", blocking_pid AS "$blocking" FROM sys.lock_waits) AS "$waits"
        WHERE "$pid" = "$asked"
    ), CAST('{}' AS INT[]))
"""


def _blocking_pids(binder: ExpressionBinder, nodes: list[ast.Node], _node: ast.Node) -> Expression:
    """``pg_blocking_pids(pid)``: a subquery for each row. Its names begin with $, so they do not
    hide those of the argument."""
    tree = parse(_BLOCKING).tree
    assert isinstance(tree, QueryTree)

    def asked(part: ast.Node) -> ast.Node | None:
        return nodes[0] if isinstance(part, ast.Column) and part.name == "$asked" else None

    return binder.bind(tree.root.rewritten(asked).expressions[0])


_CHANNELS: Final = "SELECT ARRAY(SELECT pg_listening_channels FROM pg_listening_channels())"


def _listening_channels(
    binder: ExpressionBinder, _nodes: list[ast.Node], node: ast.Node
) -> Expression:
    tree = parse(_CHANNELS).tree
    assert isinstance(tree, QueryTree)
    return binder.surroundings.set_function("unnest", tree.root.expressions, node)


def _serial_sequence(
    binder: ExpressionBinder, nodes: list[ast.Node], _node: ast.Node
) -> Expression:
    """The sequence that a column owns; the table is named as ``regclass`` reads names."""
    table, column = (binder.convert.implicit(binder.bind(each), VARCHAR, each) for each in nodes)
    holder = Holder(binder.context)
    if isinstance(table, Literal) and isinstance(table.value, str):
        number(binder.context, "regclass", table.value, nodes[0])
    found = {s.sequence.link: s for s in holder.maps if s.sequence is not None}
    shown_as = names(binder.context, "regclass")
    branches: list[tuple[Expression, Expression]] = []
    for schema in holder.maps:
        quoted = f"{quoted_name(schema.namespace)}.{quoted_name(schema.local)}"
        space, local = in_quotes(schema.namespace), in_quotes(schema.local)
        written = [shown_as[schema.oid], quoted, f"{schema.namespace}.{schema.local}"]
        written += [f"{space}.{local}", f"{quoted_name(schema.namespace)}.{local}"]
        if "." not in shown_as[schema.oid]:
            written += [schema.local, local]
        tables = tuple(map(_text, dict.fromkeys(written)))
        for owner in schema.columns:
            for link in owner.sequences[:1]:
                if link in found:
                    named = InList(BOOLEAN, table, tables)
                    same = Call(BOOLEAN, "=", (column, _text(owner.name)))
                    owned = found[link]
                    place = PG_TEMP if in_temporary_schema(owned) else owned.namespace
                    where = f"{quoted_name(place)}.{quoted_name(owned.local)}"
                    shown = _text(where)
                    branches.append((Call(BOOLEAN, "and", (named, same)), shown))
    if not branches:
        return _text(None)
    return Case(VARCHAR, tuple(branches), _text(None))


FUNCTIONS: Final[dict[str, tuple[tuple[int, ...], Function]]] = {
    "current_database": ((0,), lambda binder, _nodes, node: _current_database(binder, node)),
    "current_schema": ((0,), lambda binder, _nodes, node: _schema(binder, node)),
    "current_schemas": ((1,), _schemas),
    "version": ((0,), _constant(_text(VERSION))),
    "current_setting": ((1, 2), _current_setting),
    "pg_typeof": ((1,), _type_of),
    **ENUM_FUNCTIONS,
    "pg_backend_pid": ((0,), _backend_pid),
    "pg_blocking_pids": ((1,), _blocking_pids),
    "txid_current": ((0,), transaction_number),
    "txid_current_if_assigned": ((0,), transaction_number),
    "txid_status": ((1,), transaction_status),
    "pg_current_xact_id": ((0,), transaction_number),
    "pg_current_xact_id_if_assigned": ((0,), transaction_number),
    "pg_xact_status": ((1,), transaction_status),
    "pg_column_size": ((1,), column_size),
    "pg_listening_channels": ((0,), _listening_channels),
    "format_type": ((2,), _format_type),
    "pg_get_constraintdef": ((1, 2), _constraint_definition),
    "pg_get_indexdef": ((1, 3), _index_definition),
    "pg_get_viewdef": ((1, 2), _view_definition),
    "pg_get_expr": ((2, 3), _expression_text),
    "pg_get_function_result": ((1,), _of_routine(attrgetter("result_text"))),
    "pg_get_function_arguments": ((1,), _of_routine(attrgetter("arguments_text"))),
    "pg_get_function_identity_arguments": ((1,), _of_routine(attrgetter("identity_text"))),
    "pg_get_functiondef": ((1,), _function_definition),
    "pg_table_is_visible": ((1,), _visible),
    "pg_my_temp_schema": ((0,), _temporary_schema),
    "obj_description": ((1, 2), _by_oid(_comments)),
    "col_description": ((2,), _column_comment),
    **{f"to_{kind}": ((1,), _to_object(kind)) for kind in OBJECTS},
    "pg_get_serial_sequence": ((2,), _serial_sequence),
    "pg_role_name": ((1,), _role_name),
    "pg_map_name": ((1,), _by_oid(_map_names)),
    "pg_index_name": ((1,), _by_oid(_index_names)),
    "pg_relation_exists": ((1,), _exists),
    "pg_relation_word": ((1,), _by_oid(_kinds)),
}
"""Name -> numbers of arguments, and the expression in its place."""


def _call(binder: ExpressionBinder, node: ast.Call) -> Expression:
    name = str(node.this).lower()
    counts, function = FUNCTIONS[name]
    if len(node.expressions) not in counts:
        raise binder.context.error(
            UndefinedFunction,
            f"function {name} of {len(node.expressions)} arguments does not exist",
            node,
        )
    return function(binder, list(node.expressions), node)


def _current_user(_binder: ExpressionBinder, _node: ast.Node) -> Expression:
    return Call(VARCHAR, "current_user", ())


for _name in FUNCTIONS:
    register_call(_name, _call)
register(ast.CurrentSchema, _schema)
register(ast.CurrentCatalog, _current_database)
register(ast.CurrentUser, _current_user)
register(ast.SessionUser, _current_user)
