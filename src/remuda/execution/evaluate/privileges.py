"""Whether roles have privileges on objects: ``has_privilege``, by facts that the binder has written
into the plan."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

import pyarrow as pa

from remuda.catalog.privileges import decode_privileges
from remuda.datatypes.sql import BOOLEAN
from remuda.datatypes.values import values_to_array
from remuda.execution.evaluate.kernel import Kernel, column
from remuda.execution.evaluate.numbers import Value
from remuda.plan.expression import Call, Literal


def _has_privilege(call: Call) -> Kernel:
    facts = call.arguments[0]
    assert isinstance(facts, Literal)
    known = decode_privileges(str(facts.value))

    @cache
    def held(
        role: int | str | None, name: int | str | None, *rest: int | str | None
    ) -> bool | None:
        if role is None or name is None or None in rest:
            return None
        *columns, words = rest
        user, number = known.role_number(role), known.number(name)
        for each in columns:
            assert each is not None
            if not known.has_column(number, each):
                return None
        return known.held(user, number, str(words))

    def kernel(values: list[Value], rows: int) -> pa.Array:
        columns = [column(value, rows).to_pylist() for value in values[1:]]
        return values_to_array([held(*row) for row in zip(*columns, strict=True)], BOOLEAN)

    return kernel


PRIVILEGES: Final[dict[str, Callable[[Call], Kernel]]] = {"has_privilege": _has_privilege}
