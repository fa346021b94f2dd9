"""The requests of plans to secondary indexes: tests of their columns, unions and intersections.

Values are expressions without columns, of the indexed columns' types. The rows from an index are a
superset of the rows that pass; the filter of the scan says which do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from remuda.plan.expression import Expression


@dataclass(frozen=True, slots=True)
class IndexEqual:
    """None: the column is NULL. Otherwise a value that is NULL finds nothing."""

    value: Expression | None


@dataclass(frozen=True, slots=True)
class IndexRange:
    """Without bounds: the column is not NULL."""

    low: Expression | None = None
    low_inclusive: bool = True
    high: Expression | None = None
    high_inclusive: bool = True


@dataclass(frozen=True, slots=True)
class IndexPrefix:
    """The column begins with this text."""

    prefix: Expression


IndexTest: TypeAlias = IndexEqual | IndexRange | IndexPrefix


@dataclass(frozen=True, slots=True)
class IndexProbe:
    """Rows that pass all tests of one of ``choices``; tests are of the first of ``columns``, all
    but the last are equalities. ``negated``: rows that are not NULL and pass none."""

    index: str
    index_id: int
    columns: tuple[str, ...]
    choices: tuple[tuple[IndexTest, ...], ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IndexUnion:
    parts: tuple[IndexAccess, ...]


@dataclass(frozen=True, slots=True)
class IndexIntersection:
    parts: tuple[IndexAccess, ...]


IndexAccess: TypeAlias = IndexProbe | IndexUnion | IndexIntersection


NOTHING = IndexProbe("", 0, (), ())


def probes_of(access: IndexAccess) -> Iterator[IndexProbe]:
    if isinstance(access, IndexProbe):
        yield access
        return
    for part in access.parts:
        yield from probes_of(part)
