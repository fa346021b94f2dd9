"""Functions of PostgreSQL that are expressions over others: each is one line of a table.

``$1`` is the first argument. An expression is bound in place of the call.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from remuda.errors import UndefinedFunction
from remuda.plan.expression import Expression
from remuda.sql.expressions.expressions import ExpressionBinder, register_call
from remuda.sql.expressions.functions import privileges, sequences, system
from remuda.sql.parsing.parser import parse
from remuda.sql.trees import ast
from remuda.sql.trees.syntax import QueryTree

assert privileges
assert sequences
assert system
"""Importing them registers their functions, which some expressions here use."""

_VISIBLE: Final = (
    "type", "function", "collation", "conversion", "operator", "opclass", "opfamily",
    "statistics_obj", "ts_config", "ts_dict", "ts_parser", "ts_template",
)  # fmt: skip

_MAP_BYTES: Final = """coalesce((
    SELECT "$m".bytes FROM (SELECT name AS "$name", bytes FROM sys.maps) AS "$m"
    WHERE "$m"."$name" = pg_map_name($1)), 0)"""
_INDEX_BYTES: Final = """coalesce((
    SELECT sum("$i".bytes) FROM (SELECT map AS "$map", bytes FROM sys.indexes) AS "$i"
    WHERE "$i"."$map" = pg_map_name($1)), 0)"""
_ONE_INDEX_BYTES: Final = """coalesce((
    SELECT "$i".bytes FROM (SELECT name AS "$name", bytes FROM sys.indexes) AS "$i"
    WHERE "$i"."$name" = pg_index_name($1)), 0)"""
_RELATION_BYTES: Final = f"""CASE WHEN pg_relation_exists($1)
    THEN CAST({_MAP_BYTES} + {_ONE_INDEX_BYTES} AS BIGINT) END"""
_ALL_BYTES: Final = "CAST(coalesce((SELECT sum(bytes) FROM sys.maps), 0) AS BIGINT)"
_HALF: Final = "div({} + sign({}), 2)"


_DEFAULT_PRIVILEGES: Final = {
    "r": ("arwdDxt", ""), "c": ("", ""), "s": ("rwU", ""), "n": ("UC", ""), "t": ("C", ""),
    "d": ("CTc", "Tc"), "f": ("X", "X"), "l": ("U", "U"), "T": ("U", "U"), "F": ("U", ""),
    "S": ("U", ""), "L": ("rw", ""), "p": ("sA", ""),
}  # fmt: skip
"""By the letter of a kind of objects: the letters of the owner's privileges, and of everybody's."""


def _default_privileges() -> str:
    """As aclitem shows them: ``{=Tc/owner,owner=CTc/owner}``."""
    owner = "pg_get_userbyid($2)"
    branches = []
    for kind, (own, everybody) in _DEFAULT_PRIVILEGES.items():
        items = [f"'={everybody}/' || {owner}"] if everybody else []
        items += [f"{owner} || '={own}/' || {owner}"] if own else []
        array = f"ARRAY[{', '.join(items)}]" if items else "CAST('{}' AS TEXT[])"
        branches.append(f"WHEN '{kind}' THEN {array}")
    return f"CASE $1 {' '.join(branches)} END"


def _pretty(unit: str, shift: int) -> str:
    """A number of bytes in a unit, rounded half away from zero."""
    halves = f"div(CAST($1 AS DECIMAL(38,0)), {1 << (shift - 1)})"
    return f"CAST({_HALF.format(halves, halves)} AS BIGINT) || ' {unit}'"


def _size_pretty() -> str:
    """Bytes below 10 kB, then the first unit of which there are less than 20,480 halves."""
    limits = [("kB", 10), ("MB", 20), ("GB", 30), ("TB", 40)]
    branches = " ".join(
        f"WHEN abs(div(CAST($1 AS DECIMAL(38,0)), {1 << (shift - 1)})) < 20479 "
        f"THEN {_pretty(unit, shift)}"
        for unit, shift in limits
    )
    return (
        f"CASE WHEN $1 IS NULL THEN NULL WHEN abs($1) < 10240 THEN trunc($1) || ' bytes' "
        f"{branches} ELSE {_pretty('PB', 50)} END"
    )


MACROS: Final[dict[tuple[str, int], str]] = {
    **{(f"pg_{what}_is_visible", 1): "($1 IS NOT NULL)" for what in _VISIBLE},
    ("row_security_active", 1): "false",
    ("pg_is_in_recovery", 0): "false",
    ("pg_relation_is_publishable", 1): "false",
    ("pg_notification_queue_usage", 0): (
        "(SELECT pg_notification_queue_usage FROM pg_notification_queue_usage())"
    ),
    ("pg_is_other_temp_schema", 1): "false",
    ("inet_client_addr", 0): "NULL::text",
    ("inet_client_port", 0): "NULL::int",
    ("inet_server_addr", 0): "NULL::text",
    ("inet_server_port", 0): "NULL::int",
    ("getdatabaseencoding", 0): "'UTF8'",
    ("pg_client_encoding", 0): "current_setting('client_encoding')",
    ("pg_encoding_to_char", 1): "CASE $1 WHEN 6 THEN 'UTF8' WHEN 0 THEN 'SQL_ASCII' ELSE '' END",
    ("pg_char_to_encoding", 1): (
        "CASE upper(replace($1, '-', '')) WHEN 'UTF8' THEN 6 WHEN 'UNICODE' THEN 6 "
        "WHEN 'SQL_ASCII' THEN 0 ELSE -1 END"
    ),
    ("pg_encoding_max_length", 1): "CASE $1 WHEN 6 THEN 4 WHEN 0 THEN 1 END",
    ("pg_get_userbyid", 1): (
        "CASE WHEN $1 IS NOT NULL THEN coalesce(pg_role_name($1), 'unknown (OID=' || $1 || ')') END"
    ),
    ("acldefault", 2): _default_privileges(),
    **{
        (name, count): "NULL::text"
        for name, counts in {
            "pg_get_partkeydef": (1,),
            "pg_get_partition_constraintdef": (1,),
            "pg_get_statisticsobjdef": (1,),
            "pg_get_statisticsobjdef_columns": (1,),
            "pg_get_ruledef": (1, 2),
            "pg_get_triggerdef": (1, 2),
            "pg_get_function_sqlbody": (1,),
            "pg_get_function_arg_default": (2,),
            "shobj_description": (2,),
        }.items()
        for count in counts
    },
    ("pg_tablespace_location", 1): "CASE WHEN $1 IS NOT NULL THEN '' END",
    ("pg_size_pretty", 1): _size_pretty(),
    ("pg_table_size", 1): _RELATION_BYTES,
    ("pg_relation_size", 1): _RELATION_BYTES,
    ("pg_relation_size", 2): _RELATION_BYTES,
    ("pg_indexes_size", 1): (
        f"CASE WHEN pg_relation_exists($1) THEN CAST({_INDEX_BYTES} AS BIGINT) END"
    ),
    ("pg_total_relation_size", 1): (
        f"CASE WHEN pg_relation_exists($1) THEN CAST({_MAP_BYTES} + {_INDEX_BYTES} + "
        f"{_ONE_INDEX_BYTES} AS BIGINT) END"
    ),
    ("pg_database_size", 1): f"CASE WHEN $1 IS NOT NULL THEN {_ALL_BYTES} END",
    ("pg_tablespace_size", 1): f"CASE WHEN $1 IS NOT NULL THEN {_ALL_BYTES} END",
    ("pg_describe_object", 3): (
        "CASE WHEN $1 = 1259 THEN pg_relation_word($2) || ' ' || $2::regclass::text "
        "WHEN $1 = 1247 THEN 'type ' || $2::regtype::text "
        "WHEN $1 = 1255 THEN 'function ' || $2::regproc::text "
        "WHEN $1 = 2615 THEN 'schema ' || $2::regnamespace::text END"
    ),
}
"""(name, number of arguments) -> the expression."""


@cache
def _tree(text: str) -> ast.Node:
    tree = parse(f"SELECT {text}").tree
    assert isinstance(tree, QueryTree)
    found: ast.Node = tree.root.expressions[0]
    return found


def _call(binder: ExpressionBinder, node: ast.Call) -> Expression:
    name, arguments = str(node.this).lower(), node.expressions
    text = MACROS.get((name, len(arguments)))
    if text is None:
        raise binder.context.error(
            UndefinedFunction, f"function {name} of {len(arguments)} arguments does not exist", node
        )

    def given(part: ast.Node) -> ast.Node | None:
        if not isinstance(part, ast.Parameter):
            return None
        return ast.Paren(this=arguments[int(part.this.this) - 1])

    return binder.bind(_tree(text).rewritten(given))


for _name in {name for name, _ in MACROS}:
    register_call(_name, _call)
