"""``Statement``: a statement that is parsed and planned once and run many times."""

from __future__ import annotations

from typing import Any

from remuda.client import requests
from remuda.client.core import Core
from remuda.client.cursor import Cursor
from remuda.client.requests import PreparedPlan, Route, RunOptions
from remuda.client.result_stream import Header
from remuda.client.routing import Router
from remuda.client.values import one_sequence, parameters_of, typed_parameters
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue, to_physical
from remuda.errors import (
    DataError,
    SchemaChanged,
    TypeMismatch,
    UndefinedMap,
    UndefinedStatement,
    ViewChanged,
)


class Statement:
    """A prepared statement: call it with its parameters. Thread-safe; needs no closing.

    A statement that reads one key of one map goes straight to the member that owns the key.
    """

    def __init__(self, core: Core, text: str) -> None:
        self.text = text
        self._core = core
        self._plans: dict[int, PreparedPlan] = {}
        self._header: Header | None = None
        self._routers: dict[str, Router] = {}
        self._first = self._plan(self._any_member())

    @property
    def parameter_types(self) -> tuple[SqlType, ...]:
        """The SQL types of the parameters, as the member inferred them."""
        return self._first.parameter_types

    def __call__(self, *params: Any, timeout: float | None = None) -> Cursor:
        """Run it; parameters one by one or as one sequence."""
        values = one_sequence(params)
        physical, types = self._physical(values)
        member = self._member(values)
        try:
            return self._run(member, physical, types, timeout)
        except (UndefinedStatement, SchemaChanged, ViewChanged) as error:
            if isinstance(error, ViewChanged):
                self._core.refresh()
            self._plans.pop(member, None)
            self._routers.clear()
            return self._run(self._member(values), physical, types, timeout)

    def __repr__(self) -> str:
        return f"<Statement {self.text!r}>"

    def _run(
        self,
        member: int,
        physical: list[PhysicalValue],
        types: list[SqlType],
        timeout: float | None,
    ) -> Cursor:
        plan = self._plans.get(member) or self._plan(member)
        options = RunOptions(timeout=timeout)
        cursor = self._core.execute(
            self.text, physical, types, options, plan=plan, header=self._header, member=member
        )
        self._header = cursor.header
        return cursor

    def _plan(self, member: int) -> PreparedPlan:
        """Prepare on one more member: a handle means something only to the member that gave it."""
        plan = self._core.call(member, requests.prepare(self.text), read=True)
        self._plans[member] = plan
        return plan

    def _physical(self, values: Any) -> tuple[list[PhysicalValue], list[SqlType]]:
        declared = self._first.parameter_types
        if not declared and values:
            return parameters_of(values)
        return typed_parameters(values, declared), list(declared)

    def _member(self, values: Any) -> int:
        route = self._first.route
        if route is not None:
            owner = self._owner(route, values)
            if owner is not None:
                return owner
        return self._any_member()

    def _owner(self, route: Route, values: Any) -> int | None:
        """The owner of the key; None when the parameters are no key (the member will say why)."""
        router = self._routers.get(route.map)
        if router is None or router.view is not self._core.view:
            try:
                schema = self._core.call(None, requests.describe_map(route.map), read=True).schema
            except UndefinedMap:
                return None
            router = self._routers[route.map] = Router(schema, self._core.view)
        schema = router.schema
        types = (schema.columns[i].type for i in schema.partition_positions)
        try:
            parts = [
                to_physical(values[index], declared)
                for index, declared in zip(route.parameters, types, strict=True)
            ]
        except (DataError, TypeMismatch):
            return None
        return None if None in parts else router.owner_of_partition_key(parts)

    def _any_member(self) -> int:
        return self._core.next_member()
