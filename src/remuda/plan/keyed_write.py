"""The change that a statement makes to the one entry whose key it names, in the form in which the
initiator sends it to the owner of the key."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from remuda.datatypes.sql import SqlType
from remuda.plan.expression import ColumnId, Expression
from remuda.plan.sequence_calls import SequenceCall


class Meets(Enum):
    """The entries that a write concerns."""

    EXISTING = "existing"
    ABSENT = "absent"
    EITHER = "either"


@dataclass(frozen=True, slots=True)
class KeyedWrite:
    """``key`` holds expressions without columns, of the key columns' types, in key order. The
    owner evaluates the others over the entry that is there (over NULLs where none is): ``columns``
    maps their column ids to schema positions. The write takes place if ``filter`` is true.

    ``row`` has all columns in schema order and of the schema's types; without it the entry is
    removed. ``returning`` are what the statement gives back. ``refuses``: an entry that exists and
    is not met is an error.
    """

    map_name: str
    map_id: int
    schema_version: int
    meets: Meets
    refuses: bool
    key: tuple[Expression, ...]
    filter: Expression | None
    columns: tuple[tuple[ColumnId, int], ...]
    row: tuple[Expression, ...]
    returning: tuple[Expression, ...]
    parameter_types: tuple[SqlType, ...]
    """Of all parameters: those of the user, for the moment and the session
    (``clock_parameters``), and the values that the initiator draws (``Draw``)."""


@dataclass(frozen=True, slots=True)
class Draw:
    """A value that the initiator makes once for each execution, before it sends the write: another
    parameter. It is that of ``expression``, over the parameters before it; or the result of
    ``call``, which is made where ``expression`` is true (None: always) and is NULL elsewhere."""

    type: SqlType
    expression: Expression | None
    call: SequenceCall | None = None
