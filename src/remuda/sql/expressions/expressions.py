"""Scalar expressions: syntax trees -> typed expressions.

The handlers of the single kinds of trees are in ``operators`` and ``calls``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias

from remuda.errors import GroupingError, NotSupported, WindowingError
from remuda.plan.expression import Expression
from remuda.plan.logical import Logical
from remuda.sql.expressions.conversion import Converter
from remuda.sql.scope.context import Context
from remuda.sql.scope.scope import Scope
from remuda.sql.trees import ast


class Surroundings(Protocol):
    """The questions that an expression may ask of the query around it."""

    @property
    def has_grouping_sets(self) -> bool: ...

    def aggregate(self, name: str, node: ast.Node, filter_node: ast.Node | None) -> Expression: ...

    def window(self, node: ast.Window) -> Expression: ...

    def grouping_operation(self, node: ast.Node) -> Expression: ...

    def set_function(
        self, name: str, arguments: Sequence[ast.Node], node: ast.Node
    ) -> Expression: ...

    def subquery(self, node: ast.Node) -> Logical:
        """The plan of a subquery; it may use columns of the query around it."""
        ...


class Forbidding:
    """Surroundings without aggregates, windows, subqueries; ``clause`` is named in errors."""

    def __init__(self, context: Context, clause: str) -> None:
        self.context = context
        self.clause = clause

    @property
    def has_grouping_sets(self) -> bool:
        return False

    def aggregate(
        self,
        name: str,  # noqa: ARG002
        node: ast.Node,
        filter_node: ast.Node | None,  # noqa: ARG002
    ) -> Expression:
        raise self.context.error(
            GroupingError, f"aggregate functions are not allowed in {self.clause}", node
        )

    def window(self, node: ast.Window) -> Expression:
        raise self.context.error(
            WindowingError, f"window functions are not allowed in {self.clause}", node.this
        )

    def grouping_operation(self, node: ast.Node) -> Expression:
        raise self.context.error(
            GroupingError, f"grouping operations are not allowed in {self.clause}", node
        )

    def set_function(
        self,
        name: str,  # noqa: ARG002
        arguments: Sequence[ast.Node],  # noqa: ARG002
        node: ast.Node,
    ) -> Expression:
        raise self.context.error(
            NotSupported,
            f"set-returning functions are not allowed in {self.clause}",
            node,
            hint="Move the function into a subquery in FROM.",
        )

    def subquery(self, node: ast.Node) -> Logical:
        raise self.context.error(
            NotSupported,
            f"cannot use subquery in {self.clause}",
            node,
            hint="Run the query first, and give its value.",
        )


class Embedding(Forbidding):
    """Surroundings that allow subqueries, but no aggregates and windows."""

    def __init__(
        self, context: Context, clause: str, plan_of: Callable[[ast.Node], Logical]
    ) -> None:
        super().__init__(context, clause)
        self.plan_of = plan_of

    def subquery(self, node: ast.Node) -> Logical:
        return self.plan_of(node)


class ExpressionBinder:
    """Binds the expressions of one clause in one scope."""

    def __init__(self, context: Context, scope: Scope, surroundings: Surroundings) -> None:
        self.context = context
        self.scope = scope
        self.surroundings = surroundings
        self.convert = Converter(context)

    def bind(self, node: Any) -> Expression:
        """The expression, perhaps still untyped (see ``conversion``)."""
        entry = _HANDLERS.get(type(node))
        if entry is None:
            raise self.context.unsupported(
                describe(node), node, hint="docs/sql.md lists the expressions that are supported."
            )
        handler, consumed = entry
        for name, value in node.args.items():
            if value and name not in consumed:
                self.context.only(node, *consumed)
        return handler(self, node)

    def settled(self, node: ast.Node) -> Expression:
        """The expression with a type for sure."""
        return self.convert.settled(self.bind(node), node)

    def condition(self, node: ast.Node, clause: str) -> Expression:
        return self.convert.condition(self.bind(node), node, clause)

    def call(self, name: str, *nodes: ast.Node, node: ast.Node | None = None,
             shown: str = "") -> Expression:  # fmt: skip
        return self.convert.call(name, [self.bind(n) for n in nodes], nodes, node, shown)


Handler: TypeAlias = Callable[[ExpressionBinder, Any], Expression]
_HANDLERS: dict[type[Any], tuple[Handler, frozenset[str]]] = {}


def register(kind: type[Any], handler: Handler, *consumed: str) -> None:
    """Announce how ``kind`` is bound and which of its parts the handler looks at: all fields of a
    TypedNode."""
    if issubclass(kind, ast.TypedNode):
        consumed = kind.part_names()
    _HANDLERS[kind] = handler, frozenset(consumed)


CALL_HANDLERS: Final[dict[str, Handler]] = {}
"""Names of functions whose calls are not bound in the general way."""


def register_call(name: str, handler: Handler) -> None:
    CALL_HANDLERS[name] = handler


def describe(node: ast.Node) -> str:
    """The name of a construct that has no handler."""
    if isinstance(node, ast.Var):
        return f"the keyword {str(node.this).upper()}"
    known = _NAMES.get(type(node).__name__)
    if known is not None:
        return known
    words = "".join(" " + c.lower() if c.isupper() else c for c in type(node).__name__)
    return f"the expression{words}"


_NAMES: Final = {
    "RegexpLike": "a regular expression match",
    "RegexpILike": "a regular expression match",
    "SimilarTo": "SIMILAR TO",
    "Array": "ARRAY",
    "Bracket": "an array subscript",
    "Tuple": "a row value",
    "Interval": "INTERVAL outside date arithmetic",
    "AtTimeZone": "AT TIME ZONE",
    "Collate": "COLLATE",
    "Placeholder": "a named parameter",
    "Any": "ANY",
    "All": "ALL",
    "BitwiseAnd": "the operator &",
    "BitwiseOr": "the operator |",
    "BitwiseXor": "the operator #",
    "BitwiseNot": "the operator ~",
    "JSONExtract": "JSON access",
    "JSONExtractScalar": "JSON access",
    "Lambda": "a lambda",
    "Kwarg": "a named argument",
    "Dot": "access to a nested field",
    "Concat": "text in several adjacent literals",
    "HexString": "a bit string",
    "BitString": "a bit string",
    "National": "N'...'",
    "Distinct": "DISTINCT in a function that is not an aggregate",
    "Order": "ORDER BY inside a function",
    "If": "IF",
    "WithinGroup": "WITHIN GROUP",
    "IgnoreNulls": "IGNORE NULLS",
    "RespectNulls": "RESPECT NULLS",
}
