"""``nextval``, ``currval``, ``lastval`` and ``setval`` as calls. ``sql.queries.numbers`` takes them
out of the plan."""

from __future__ import annotations

from remuda.datatypes.identifiers import sql_name
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import BIGINT, BOOLEAN, VARCHAR
from remuda.errors import NotSupported, UndefinedFunction, WrongObjectType
from remuda.plan.expression import Call, Expression, Literal
from remuda.plan.sequence_calls import CURRVAL, LASTVAL, NEXTVAL, SETVAL, has_calls
from remuda.sql.expressions.calls import function_name
from remuda.sql.expressions.expressions import ExpressionBinder, register_call
from remuda.sql.scope.context import Context
from remuda.sql.scope.object_names import as_number, number
from remuda.sql.trees import ast

_COUNTS = {NEXTVAL: (1,), CURRVAL: (1,), LASTVAL: (0,), SETVAL: (2, 3)}


def sequence_named(context: Context, text: str, node: ast.Node | None) -> MapSchema:
    """The sequence of that name, as ``regclass`` reads names along the path of the context. Raises
    UndefinedMap, WrongObjectType."""
    oid = number(context, "regclass", text, node)
    catalog = context.catalog
    for name in catalog.names():
        schema = catalog.find(name)
        if schema is not None and schema.oid == oid:
            if schema.sequence is None:
                break
            return schema
    raise context.error(WrongObjectType, f'"{text}" is not a sequence', node)


def refuse_calls(context: Context, bound: Expression, clause: str, node: ast.Node) -> Expression:
    """``bound``, which is computed where no calls of sequences can be made. Raises NotSupported."""
    if not has_calls(bound):
        return bound
    raise context.error(
        NotSupported,
        f"calls of sequences are not allowed in {clause}",
        node,
        hint="Take the number in a statement of its own.",
    )


def _sequence(binder: ExpressionBinder, node: ast.Node) -> Expression:
    """The argument that says which sequence: a name, or an OID that a query computes, which may
    find it by its name along the path of the context. A constant name becomes one that is read
    along ``KEPT_PATH``, as those of defaults are."""
    written = node.operand if isinstance(node, ast.Cast) and _is_regclass(node) else node
    if isinstance(written, ast.Literal) and written.is_string:
        text = str(written.this)
        if binder.context.catalog.names():  # defaults are read without a catalog
            text = sql_name(sequence_named(binder.context, text, written))
        return Literal(VARCHAR, text)
    bound = binder.bind(node)
    if isinstance(bound, Literal) and isinstance(bound.value, str):
        return Literal(VARCHAR, sql_name(sequence_named(binder.context, bound.value, node)))
    if bound.type.is_text:
        if not binder.context.catalog.names():
            return bound
        return as_number(binder.context, "regclass", bound, required=True)
    return binder.convert.implicit(bound, BIGINT, node)


def _is_regclass(node: ast.Cast) -> bool:
    return "regclass" in str(node.to.args)


def _call(binder: ExpressionBinder, node: ast.Call) -> Expression:
    name, nodes = function_name(node), node.expressions
    if len(nodes) not in _COUNTS[name]:
        raise binder.context.error(
            UndefinedFunction, f"function {name} of {len(nodes)} arguments does not exist", node
        )
    binder.context.takes_numbers = True
    arguments: list[Expression] = []
    if nodes:
        arguments.append(_sequence(binder, nodes[0]))
    if name == SETVAL:
        arguments.append(binder.convert.implicit(binder.bind(nodes[1]), BIGINT, nodes[1]))
        called: Expression = Literal(BOOLEAN, True)
        if len(nodes) > 2:
            called = binder.convert.implicit(binder.bind(nodes[2]), BOOLEAN, nodes[2])
        arguments.append(called)
    return Call(BIGINT, name, tuple(arguments))


for _name in _COUNTS:
    register_call(_name, _call)
