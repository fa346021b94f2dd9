"""``remuda.col``: conditions over the columns of a map, written in Python, run as SQL.

    flights.entries(where=(col("delay") > 30) & col("carrier").in_("UA", "AA"))

Values always travel as parameters, never as text of the statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from remuda.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """Something with a value: a column or arithmetic over columns. Comparing makes a condition."""

    sql: str
    parameters: tuple[Any, ...] = ()

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return self.is_null() if other is None else self._compare("=", other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return self.is_not_null() if other is None else self._compare("<>", other)

    def __lt__(self, other: object) -> Condition:
        return self._compare("<", other)

    def __le__(self, other: object) -> Condition:
        return self._compare("<=", other)

    def __gt__(self, other: object) -> Condition:
        return self._compare(">", other)

    def __ge__(self, other: object) -> Condition:
        return self._compare(">=", other)

    def __hash__(self) -> int:
        return hash((self.sql, self.parameters))

    def __bool__(self) -> bool:
        raise _no_truth_value()

    def __add__(self, other: object) -> Operand:
        return self._arithmetic("+", other)

    def __sub__(self, other: object) -> Operand:
        return self._arithmetic("-", other)

    def __mul__(self, other: object) -> Operand:
        return self._arithmetic("*", other)

    def __truediv__(self, other: object) -> Operand:
        return self._arithmetic("/", other)

    def __mod__(self, other: object) -> Operand:
        return self._arithmetic("%", other)

    def __radd__(self, other: object) -> Operand:
        return _operand(other)._arithmetic("+", self)

    def __rsub__(self, other: object) -> Operand:
        return _operand(other)._arithmetic("-", self)

    def __rmul__(self, other: object) -> Operand:
        return _operand(other)._arithmetic("*", self)

    def __rtruediv__(self, other: object) -> Operand:
        return _operand(other)._arithmetic("/", self)

    def __neg__(self) -> Operand:
        return Operand(f"(- {self.sql})", self.parameters)

    def in_(self, *values: Any) -> Condition:
        """One of the values, given one by one or as one list."""
        if (
            len(values) == 1
            and isinstance(values[0], Iterable)
            and not isinstance(values[0], str | bytes)
        ):
            values = tuple(values[0])
        if not values:
            return Condition("(1 = 0)")
        parts = [_operand(value) for value in values]
        listed = ", ".join(part.sql for part in parts)
        return Condition(f"({self.sql} IN ({listed}))", self._with(*parts))

    def between(self, low: Any, high: Any) -> Condition:
        """From ``low`` to ``high``, both included."""
        first, last = _operand(low), _operand(high)
        return Condition(
            f"({self.sql} BETWEEN {first.sql} AND {last.sql})", self._with(first, last)
        )

    def like(self, pattern: str) -> Condition:
        """SQL LIKE: ``%`` is any text, ``_`` any character."""
        return self._compare("LIKE", pattern)

    def starts_with(self, prefix: str) -> Condition:
        part = _operand(prefix)
        return Condition(f"starts_with({self.sql}, {part.sql})", self._with(part))

    def is_null(self) -> Condition:
        return Condition(f"({self.sql} IS NULL)", self.parameters)

    def is_not_null(self) -> Condition:
        return Condition(f"({self.sql} IS NOT NULL)", self.parameters)

    def _compare(self, operator: str, other: object) -> Condition:
        right = _operand(other)
        return Condition(f"({self.sql} {operator} {right.sql})", self._with(right))

    def _arithmetic(self, operator: str, other: object) -> Operand:
        right = _operand(other)
        return Operand(f"({self.sql} {operator} {right.sql})", self._with(right))

    def _with(self, *others: Operand) -> tuple[Any, ...]:
        return self.parameters + tuple(value for other in others for value in other.parameters)


@dataclass(frozen=True, slots=True)
class Condition:
    """True, false or unknown for each row; ``&``, ``|`` and ``~`` combine conditions."""

    sql: str
    parameters: tuple[Any, ...] = ()

    def __and__(self, other: Condition | Operand) -> Condition:
        return self._combine("AND", other)

    def __or__(self, other: Condition | Operand) -> Condition:
        return self._combine("OR", other)

    def __invert__(self) -> Condition:
        return Condition(f"(NOT {self.sql})", self.parameters)

    def __bool__(self) -> bool:
        raise _no_truth_value()

    def _combine(self, operator: str, other: Condition | Operand) -> Condition:
        if not isinstance(other, Condition | Operand):
            raise InputError(f"a condition cannot be combined with {other!r}")
        return Condition(f"({self.sql} {operator} {other.sql})", self.parameters + other.parameters)


def col(name: str) -> Operand:
    """The column ``name`` of the map that is asked, exactly as it is spelled in the schema."""
    return Operand(quote(name))


def quote(name: str) -> str:
    """An SQL identifier that means exactly ``name``."""
    return '"' + name.replace('"', '""') + '"'


def assignments_of(values: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    """The list behind SET in an UPDATE, from columns by name and their new values; with its
    parameters. InputError."""
    texts, parameters = [], tuple[Any, ...]()
    for name, value in values.items():
        if not isinstance(name, str):
            raise InputError(f"columns are named by text, found {name!r}")
        operand = _operand(value)
        texts.append(f"{quote(name)} = {operand.sql}")
        parameters += operand.parameters
    return ", ".join(texts), parameters


def _operand(value: object) -> Operand:
    if isinstance(value, Operand):
        return value
    if isinstance(value, Condition):
        return Operand(value.sql, value.parameters)
    return Operand("?", (value,))


def _no_truth_value() -> InputError:
    return InputError(
        "a condition has no truth value in Python",
        hint="Combine conditions by &, | and ~ with parentheses, not by and, or, not.",
    )
