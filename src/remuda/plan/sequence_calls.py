"""Calls of ``nextval``, ``currval``, ``lastval`` and ``setval``.

They are no functions of the engine, which may compute a call twice, elsewhere or not at all. The
binder takes them out of the operator in which they stand: the initiator computes the rows below
it, makes the calls row by row, in the order in which they are written, and supplies the rows with
the results (``logical.Recursion.calls``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from remuda.plan.expression import Call, Expression, walk

NEXTVAL: Final = "nextval"
CURRVAL: Final = "currval"
LASTVAL: Final = "lastval"
SETVAL: Final = "setval"
SEQUENCE_FUNCTIONS: Final = frozenset({NEXTVAL, CURRVAL, LASTVAL, SETVAL})


@dataclass(frozen=True, slots=True)
class SequenceCall:
    """``map_id`` is the sequence, or 0 where ``name``, a place among the columns of the row, has
    its OID or its name. ``value`` and ``is_called`` are the places of the arguments of ``setval``.
    ``guard`` is that of a BOOLEAN: the call is made where it is true, and NULL elsewhere."""

    function: str
    map_id: int = 0
    name: int | None = None
    value: int | None = None
    is_called: int | None = None
    guard: int | None = None


def is_call(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.function in SEQUENCE_FUNCTIONS


def has_calls(expression: Expression) -> bool:
    """Whether the expression, or a part of it, is a call of a sequence."""
    return any(is_call(part) for part in walk(expression))
