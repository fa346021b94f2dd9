"""The context that one statement shares while it is bound: ids, parameter types, the text for
errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from remuda.catalog.system_relations import DATABASE
from remuda.datatypes.schema import PG_TEMP, Origin
from remuda.datatypes.sql import NULL, VARCHAR, Kind, SqlType
from remuda.datatypes.times.zones import Zone
from remuda.errors import (
    IndeterminateParameter,
    LimitExceeded,
    NotSupported,
    RemudaError,
    SqlSyntaxError,
)
from remuda.plan.expression import ColumnId, Parameter
from remuda.sql.scope.resolution import (
    KEPT_PATH,
    Kept,
    Place,
    Relation,
    find,
    place_of,
    temporary_place,
)
from remuda.sql.scope.statements import CatalogReader
from remuda.sql.trees import ast
from remuda.sql.trees.names import Name
from remuda.sql.trees.places import position_of

ErrorType = TypeVar("ErrorType", bound=RemudaError)

RELATIONS_MAX: Final = 1000
"""Relations of one statement after CTEs have been expanded."""


class Context:
    """Mutable state of binding one statement."""

    def __init__(
        self,
        text: str,
        catalog: CatalogReader,
        parameters: int,
        known: Sequence[SqlType | None] | None = None,
        zone: Zone | None = None,
        *,
        path: tuple[str, ...] = KEPT_PATH,
        database: str = DATABASE,
    ) -> None:
        self.text = text
        self.zone = zone
        """That of literals without one; None: UTC."""
        self.catalog = catalog
        self.path = path
        """The schemas in which names without one are searched."""
        self.databases = frozenset({DATABASE, database})
        """The names that the one database has for the session: names of relations may begin with
        one of them."""
        self.kept: Kept | None = None
        """While a text is bound that the catalog is going to keep: the relations that it names."""
        self.parameter_types: list[SqlType | None] = [None] * parameters
        for index, found in enumerate((known or ())[:parameters]):
            self.parameter_types[index] = found
        self.uses: set[str] = set()
        """The maps and views that have been named so far."""
        self.inside: list[str] = []
        """The views that are being bound, the outermost first."""
        self.origins: dict[ColumnId, Origin] = {}
        """Of the columns of tables and views that were named so far (``sql.scope.origins``)."""
        self.takes_numbers = False
        """Whether calls of sequences were bound (``sql.queries.numbers``)."""
        self._last_id = 0
        self._relations = 0
        self._names: set[str] = set()

    def relation(self, name: Name) -> Relation | None:
        """The map or view that a definition names."""
        return find(self.catalog, self.path, name.schema, name.text)

    def place(self, name: Name, *, temporary: bool = False) -> Place:
        """Where a definition makes a relation, which is ``temporary``. Raises UndefinedSchema,
        InsufficientPrivilege, InvalidDefinition."""
        if temporary or name.schema == PG_TEMP:
            return temporary_place(name)
        return place_of(self.catalog, self.path, name)

    def new_id(self) -> ColumnId:
        self._last_id += 1
        return self._last_id

    def unique(self, name: str) -> str:
        """``name``, or one like it that was not given out before."""
        found, number = name, 1
        while found in self._names:
            number += 1
            found = f"{name} ({number})"
        self._names.add(found)
        return found

    def count_relation(self, node: ast.Node) -> None:
        self._relations += 1
        if self._relations > RELATIONS_MAX:
            raise self.error(
                LimitExceeded, f"a statement can read at most {RELATIONS_MAX} relations", node
            )

    # --- errors ---

    def error(
        self,
        kind: type[ErrorType],
        message: str,
        node: ast.Node | None,
        hint: str = "",
        detail: str = "",
    ) -> ErrorType:
        return kind(
            message,
            position=position_of(self.text, node),
            statement=self.text,
            hint=hint,
            detail=detail,
        )

    def unsupported(self, what: str, node: ast.Node | None, hint: str = "") -> NotSupported:
        return self.error(NotSupported, f"{what} is not supported", node, hint)

    def located(self, error: ErrorType, node: ast.Node | None) -> ErrorType:
        """``error`` with the place of ``node``, unless it has one."""
        return error.at(error.position or position_of(self.text, node), self.text)

    def only(self, node: ast.Node, *consumed: str) -> None:
        """Refuse every part of ``node`` that its binder does not know: nothing is ever ignored."""
        for name, value in node.args.items():
            if value and name not in consumed:
                raise self._leftover(node, name, value)

    def _leftover(self, node: ast.Node, name: str, value: object) -> RemudaError:
        inner = value[0] if isinstance(value, list) else value
        place = inner if isinstance(inner, ast.Node) else node
        if name == "into":
            return self.error(SqlSyntaxError, "SELECT ... INTO is not allowed here", place)
        what = CLAUSES.get(name) or name.rstrip("_").replace("_", " ").upper()
        if position_of(self.text, place) is None:
            place = node
        return self.unsupported(
            what, place, hint="Leave it out; docs/sql.md lists what is supported."
        )

    # --- parameters ---

    def parameter(self, index: int) -> Parameter:
        """The parameter, untyped (Kind.NULL) as long as nothing tells its type."""
        return Parameter(self.parameter_types[index] or NULL, index)

    def finish_parameters(self) -> tuple[SqlType, ...]:
        """The types of all parameters; IndeterminateParameter if one stayed open."""
        for index, found in enumerate(self.parameter_types):
            if found is None:
                raise self.undetermined(index, None)
            if found.kind is Kind.NULL:  # the client has sent NULL, and nothing says of which type
                self.parameter_types[index] = VARCHAR
        return tuple(found for found in self.parameter_types if found is not None)

    def undetermined(self, index: int, node: ast.Node | None) -> IndeterminateParameter:
        return self.error(
            IndeterminateParameter,
            f"could not determine data type of parameter ${index + 1}",
            node,
            hint=f"Say it with a cast, for example CAST(${index + 1} AS INTEGER).",
        )


def identifier(node: ast.Node) -> str:
    """The name that an identifier means: unquoted ones fold to lower case."""
    name = str(node.this)
    return name if node.args.get("quoted") else name.lower()


CLAUSES: Final = {
    "windows": "WINDOW",
    "locks": "FOR UPDATE",
    "only": "FROM ONLY",
    "db": "a name with a schema",
    "catalog": "a name with a catalog",
    "conflict": "ON CONFLICT",
    "returning": "RETURNING",
    "on": "DISTINCT ON",
    "ordinality": "WITH ORDINALITY",
    "default": "DEFAULT VALUES",
}
"""Names of the parts of trees -> what users call them."""
