"""The keys that a read by a secondary index asks for, from the values of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final, TypeAlias

from remuda.datatypes.values import PhysicalValue
from remuda.execution.evaluate.compile import evaluate_constant
from remuda.execution.evaluate.one_row import Formula, Formulas
from remuda.execution.operators.index_scan import bound_access
from remuda.plan.expression import Expression
from remuda.plan.index_access import IndexEqual
from remuda.planner.index_read import IndexRead
from remuda.storage.indexes.access import Probe, spans_of
from remuda.storage.indexes.keys import KeyForm, Span, after
from remuda.transaction.own_writes import Row

SPANS_MAX: Final = 64
LAST_WORD: Final = 2**63 - 1
_NOTHING: Final = object()
"""Equal to no value."""

Wanted: TypeAlias = tuple[Callable[[Row], object], object]
"""The places of each entry whose values are compared: how to take them, and the values that they
must have."""


class IndexAsk:
    """An ``IndexRead``, ready for its executions: values that are given are not evaluated, and a
    key of them is made without tests of columns."""

    def __init__(self, read: IndexRead, parameters: int) -> None:
        self.read = read
        keys = _equals(read)
        values = [value for _, value in read.equal]
        self._formulas = formulas = Formulas([*keys, *values], parameters, {})
        self._keys = _all_of([formulas.of(each) for each in keys])
        self._values = _all_of([formulas.of(each) for each in values])
        self._pick = itemgetter(*[place for place, _ in read.equal]) if values else None

    def spans(self, form: KeyForm, values: tuple[PhysicalValue, ...]) -> list[Span] | None:
        """The spans of keys that are asked for, at least one; None: not such as can be sent."""
        if self._keys:
            scope = self._formulas.scope(values, ())
            found = [formula(scope) for formula in self._keys]
            if None in found:
                return None
            key = form.key(found)
            spans: list[Span] = [(key, key + 1 if isinstance(key, int) else after(key))]
        else:
            probe = bound_access(self.read.access, values)
            assert isinstance(probe, Probe)
            spans = spans_of(form, probe.choices)
        if not spans or len(spans) > SPANS_MAX:
            return None
        if form.words and spans[-1][1] > LAST_WORD + 1:  # type: ignore[operator]
            return None  # NULLs have no word
        return spans

    def wanted(self, values: tuple[PhysicalValue, ...]) -> Wanted | None:
        """None: an entry may have any values."""
        if self._pick is None:
            return None
        if self._values:
            scope = self._formulas.scope(values, ())
            found = [formula(scope) for formula in self._values]
        else:
            found = [evaluate_constant(value, values) for _, value in self.read.equal]
        if None in found:
            return self._pick, _NOTHING
        return self._pick, found[0] if len(found) == 1 else tuple(found)


def _equals(read: IndexRead) -> list[Expression]:
    """The values of one choice of equalities; none where others are asked for."""
    if len(read.access.choices) != 1:
        return []
    tests = read.access.choices[0]
    values = [test.value for test in tests if isinstance(test, IndexEqual)]
    known = [value for value in values if value is not None]
    return known if len(known) == len(tests) else []


def _all_of(formulas: Sequence[Formula | None]) -> list[Formula]:
    known = [each for each in formulas if each is not None]
    return known if len(known) == len(formulas) else []


def exactly(rows: list[Row], wanted: Wanted | None) -> list[Row]:
    """The entries whose values are those that were asked for: an index may find others, too."""
    if wanted is None:
        return rows
    pick, values = wanted
    return [row for row in rows if pick(row) == values]
