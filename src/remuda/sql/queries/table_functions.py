"""Functions in FROM: ``generate_series(1, 9) [WITH ORDINALITY] AS g (n)``, ``ROWS FROM (...)``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from remuda.catalog.pg_types import VECTORS
from remuda.catalog.system_relations import FUNCTIONS
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import BIGINT, JSON, VARCHAR, SqlType, array, unrestricted
from remuda.datatypes.texts.text import type_name
from remuda.errors import SqlSyntaxError, UndefinedFunction, UndefinedType
from remuda.plan.expression import Call, ColumnRef, Expression, Literal
from remuda.plan.functions.set_functions import (
    RECORD_FUNCTIONS,
    SET_FUNCTIONS,
    VECTOR_SUBSCRIPTS,
    SetCall,
    SetSignature,
)
from remuda.plan.logical import Logical, OutputColumn, Project, Unfold
from remuda.sql.expressions.calls import function_name
from remuda.sql.expressions.conversion import is_untyped
from remuda.sql.expressions.expressions import ExpressionBinder, Forbidding
from remuda.sql.expressions.type_names import type_from_tree
from remuda.sql.queries.clauses import default_name
from remuda.sql.scope.context import Context, identifier
from remuda.sql.scope.output import one_row
from remuda.sql.scope.resolution import find
from remuda.sql.scope.scope import Scope, column_refs
from remuda.sql.scope.supplied import supplied
from remuda.sql.trees import ast
from remuda.sql.trees.places import position_of

_POPULATING: Final = {
    f"{kind}_populate_{rows}": f"json_to_{rows}"
    for kind in ("json", "jsonb")
    for rows in ("record", "recordset")
}


def is_table_function(node: ast.Node) -> bool:
    if not isinstance(node, ast.Table):
        return False
    return bool(node.args.get("rows_from")) or not isinstance(node.this, ast.Identifier)


@dataclass(frozen=True, slots=True)
class TableFunction:
    """Its plan, and the names of its columns where no alias gives others. ``name`` is its alias
    where there is none."""

    plan: Logical
    name: str
    columns: list[tuple[str, Expression]]
    alias: ast.Node | None
    column_aliases: list[ast.Node]


def bind_table_function(context: Context, node: ast.Node, parent: Scope | None) -> TableFunction:
    """``parent``: the columns that arguments may use, those of relations to the left included."""
    return _Binder(context, parent).bind(node)


def bound_call(
    binder: ExpressionBinder, name: str, arguments: Sequence[ast.Node], node: ast.Node
) -> tuple[SetCall, SetSignature]:
    """A call of a set function. Raises UndefinedFunction for arguments that it does not take."""
    context = binder.context
    bound = [binder.bind(argument) for argument in arguments]
    given = tuple(argument.type for argument in bound)
    if name == "generate_subscripts" and given and given[0].alias in VECTORS:
        name = VECTOR_SUBSCRIPTS
    function = SET_FUNCTIONS[name]
    signature = function.resolve(given)
    if signature is None:
        shown = ["unknown" if is_untyped(e) else type_name(e.type) for e in bound]
        raise context.error(
            UndefinedFunction,
            f"function {name}({', '.join(shown)}) does not exist",
            node,
            hint=f"{name} takes: {function.summary}.",
        )
    converted = tuple(
        binder.convert.implicit(argument, wanted, place)
        for argument, wanted, place in zip(bound, signature.arguments, arguments, strict=True)
    )
    types = tuple(found for _, found in signature.columns)
    return SetCall(function.name, converted, types), signature


class _Binder:
    def __init__(self, context: Context, parent: Scope | None) -> None:
        self.context = context
        forbidding = Forbidding(context, "functions in FROM")
        self.binder = ExpressionBinder(context, Scope(parent=parent), forbidding)

    def bind(self, node: ast.Node) -> TableFunction:
        ordinality = bool(node.args.get("ordinality"))
        alias = node.args.get("alias")
        names = [] if alias is None else list(alias.args.get("columns") or ())
        self.context.only(node, "this", "alias", "ordinality", "rows_from", "joins")
        calls = [part.this for part in node.args.get("rows_from") or (node,)]
        definitions = [name for name in names if isinstance(name, ast.ColumnDef)]
        if definitions:
            names = []
        plan, name, columns = self._plan(calls, ordinality, definitions)
        if alias is not None and alias.this is not None and len(columns) - ordinality == 1:
            given, expression = columns[0]
            columns[0] = (given or identifier(alias.this), expression)
        columns = [(column or name, expression) for column, expression in columns]
        return TableFunction(plan, name, columns, alias, names)

    def _plan(
        self, calls: Sequence[ast.Node], ordinality: bool, definitions: Sequence[ast.ColumnDef]
    ) -> tuple[Logical, str, list[tuple[str, Expression]]]:
        """The plan, the function's name, the columns ("" for one that goes by its relation's)."""
        bound: list[SetCall] = []
        names: list[str] = []
        first = ""
        for call in calls:
            name = self._name(call)
            first = first or name
            fields: list[tuple[str, SqlType]] | None = None
            if name in _POPULATING:
                name, call, fields = self._populating(name, call, definitions)  # noqa: PLW2901
            if name in FUNCTIONS and len(calls) == 1 and not (call.expressions or ordinality):
                return self._supplied(name)
            if name not in SET_FUNCTIONS:
                if len(calls) > 1 or ordinality:
                    raise self.context.unsupported(
                        f"the function {name} among rows", call, hint="Put the function into FROM."
                    )
                return self._scalar(call, name)
            arguments = call.expressions
            several = name == "unnest" and len(arguments) > 1
            for group in [[a] for a in arguments] if several else [list(arguments)]:
                made, signature = bound_call(self.binder, name, group, call)
                made, signature = self._defined(made, signature, definitions, fields, call)
                bound.append(made)
                names += [column for column, _ in signature.columns]
        if len(bound) > 1:
            functions = [made.function for made in bound for _ in made.types]
            names = [name or own for name, own in zip(names, functions, strict=True)]
        types = [found for made in bound for found in made.types]
        output = [self._column(n or first, t) for n, t in zip(names, types, strict=True)]
        if ordinality:
            names.append("ordinality")
            output.append(OutputColumn(self.context.new_id(), "ordinality", BIGINT, nullable=False))
        plan = Unfold(tuple(output), one_row(), tuple(bound), ordinality)
        columns: list[tuple[str, Expression]] = [
            (n, ColumnRef(c.type, c.id, c.name)) for n, c in zip(names, output, strict=True)
        ]
        return plan, first, columns

    def _defined(
        self,
        made: SetCall,
        signature: SetSignature,
        definitions: Sequence[ast.ColumnDef],
        fields: list[tuple[str, SqlType]] | None,
        node: ast.Node,
    ) -> tuple[SetCall, SetSignature]:
        """With the columns of a column definition list, which some functions need if no
        ``fields`` are known."""
        if made.function not in RECORD_FUNCTIONS:
            if definitions:
                raise self.context.error(
                    SqlSyntaxError,
                    'a column definition list is only allowed for functions returning "record"',
                    definitions[0],
                )
            return made, signature
        if definitions and fields is not None:
            raise self.context.error(
                SqlSyntaxError,
                "a column definition list is redundant for a function returning a named composite "
                "type",
                definitions[0],
            )
        if not definitions and fields is None:
            raise self.context.error(
                SqlSyntaxError,
                'a column definition list is required for functions returning "record"',
                node,
                hint="Write AS x (column type, ...) behind it.",
            )
        columns = [self._definition(each) for each in definitions] if fields is None else fields
        names = Literal(array(VARCHAR), tuple(name for name, _ in columns))
        types = tuple(each for _, each in columns)
        arguments = made.arguments
        if made.function == "json_to_record":  # of NULL a row of NULLs
            arguments = (Call(JSON, "coalesce", (*arguments, Literal(JSON, "{}"))),)
        call = SetCall(made.function, (*arguments, names), types)
        return call, SetSignature((*signature.arguments, names.type), tuple(columns))

    def _definition(self, definition: ast.ColumnDef) -> tuple[str, SqlType]:
        self.context.only(definition, "this", "kind")
        place = position_of(self.context.text, definition.this)
        return identifier(definition.this), type_from_tree(
            self.context, definition.args["kind"], place
        )

    def _populating(
        self, name: str, call: ast.Node, definitions: Sequence[ast.ColumnDef]
    ) -> tuple[str, ast.Node, list[tuple[str, SqlType]] | None]:
        """``jsonb_populate_record(NULL::map, json)`` is ``jsonb_to_record(json)`` with the columns
        of the map."""
        base = call.expressions[0] if len(call.expressions) == 2 else None
        row_type = str(base.to.this) if isinstance(base, ast.Cast) else ""
        found = find(self.context.catalog, self.context.path, "", row_type)
        schema = found if isinstance(found, MapSchema) else None
        of_null = isinstance(base, ast.Cast) and isinstance(base.operand, ast.Null)
        if row_type not in ("", "record") and schema is None:
            raise self.context.error(UndefinedType, f'type "{row_type}" does not exist', base)
        if not of_null or not (schema is not None or (row_type == "record" and definitions)):
            raise self.context.unsupported(
                f"{name} of another record than a NULL of a map's type",
                call if base is None else base,
                hint="Write NULL::map, or json_to_record(json) AS x (column type, ...).",
            )
        plain = ast.Call(
            call.start, call.end, this=_POPULATING[name], expressions=call.expressions[1:]
        )
        if schema is None:
            return _POPULATING[name], plain, None
        return _POPULATING[name], plain, [(c.name, c.type) for c in schema.shown]

    def _column(self, name: str, sql_type: SqlType) -> OutputColumn:
        return OutputColumn(self.context.new_id(), name, unrestricted(sql_type))

    def _name(self, call: ast.Node) -> str:
        if isinstance(call, ast.Call):
            return function_name(call)
        return default_name(call)

    def _supplied(self, name: str) -> tuple[Logical, str, list[tuple[str, Expression]]]:
        """Rows that the catalog gives."""
        relation = FUNCTIONS[name]
        plan = supplied(self.context, relation.qualified, relation.columns, alias=name)
        return plan, name, column_refs(plan.output)

    def _scalar(
        self, call: ast.Node, name: str
    ) -> tuple[Logical, str, list[tuple[str, Expression]]]:
        """A function that gives one value: one row."""
        value = self.binder.convert.settled(self.binder.bind(call), call)
        column = self._column(name, value.type)
        plan = Project((column,), one_row(), (value,))
        return plan, name, [("", ColumnRef(column.type, column.id, column.name))]
