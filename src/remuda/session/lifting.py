"""Literals as parameters: statements by key that differ only in them share one plan (decision
0100).

``lift`` takes the literals out of a text, and ``fits_of`` is the one place that decides whether the
plan of what is left means the same as the text did. Literals stay where they are unless both agree.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from remuda.datatypes.sql import INTEGER, INTEGER_KINDS, VARCHAR, Kind, SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.errors import InputError
from remuda.plan.expression import (
    Call,
    Case,
    Cast,
    Expression,
    InList,
    Literal,
    Parameter,
    walk,
)
from remuda.plan.keyed_write import KeyedWrite
from remuda.plan.physical import ValuesScan
from remuda.planner.point import PointRead, rows_of_leaf
from remuda.session.parameters import fitted
from remuda.session.planning import Planned, PlannedChange, PlannedInsert, PlannedQuery
from remuda.sql.expressions.constants import negated, number_literal

TEXT_MAX: Final = 2048
"""Characters of a statement whose literals are looked for."""
NUMBER_MAX: Final = 30
"""Characters of a number that is lifted."""
FORMS_MAX: Final = 4096
"""Forms of statements that a member remembers."""

_STARTS: Final = re.compile(r"\s*(?:SELECT|UPDATE|DELETE|INSERT)\b", re.IGNORECASE)
_TOKEN: Final = re.compile(
    r"""
      [=<>(,]\s*(?P<whole>[+-]?\d+(?:\.\d+)?)(?![\w.])(?=\s*(?:[,);A-Za-z]|\Z))
    | [=<>(,+*-]\s*(?P<part>\d+)(?![\w.])
    | [=<>(,+*-]\s*'(?P<string>(?:[^'\0]|'')*)'(?!\s*')
    | '(?:[^']|'')*' | "[^"]*"
    | \b(?P<begin>WHERE|SET|VALUES)\b
    | \b(?P<end>RETURNING)\b
    | (?P<refused>--|/\*|[$?]|;(?!\s*\Z)|\b(?:ORDER|GROUP|LIMIT|OFFSET|FETCH|HAVING|UNION
        |INTERSECT|EXCEPT|WITH|OVER|WINDOW)\b)
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""A literal behind one of these signs is an operand: neither a position of ORDER BY nor a part of a
type. It is a ``whole`` operand if no operator follows, and a ``part`` of one otherwise."""

Types: TypeAlias = tuple[SqlType | None, ...]


class Lifted(NamedTuple):
    """A text with ``$1``, ``$2`` ... in place of its literals. ``types``: None where the place of
    the literal says its type, as it does for a string, or for a number that is all of an operand.
    ``given``: the types of ``values``."""

    form: str
    types: Types
    given: tuple[SqlType, ...]
    values: tuple[PhysicalValue, ...]


def lift(text: str) -> Lifted | None:
    """None: the text has no such literals, or is none that could share a plan."""
    if len(text) > TEXT_MAX or _STARTS.match(text) is None or "\\" in text:
        return None
    parts: list[str] = []
    types: list[SqlType | None] = []
    literals: list[Literal] = []
    at, lifting = 0, False
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind is None:
            continue
        if kind == "refused":
            return None
        if kind in ("begin", "end"):
            lifting = kind == "begin"
            continue
        if not lifting:
            continue
        found = _literal(kind, token)
        if found is None:
            continue
        literals.append(found)
        types.append(found.type if kind == "part" else None)
        parts += (text[at : token.start(kind) - (kind == "string")], f"${len(types)}")
        at = token.end()
    if not literals:
        return None
    parts.append(text[at:])
    values = tuple([literal.value for literal in literals])
    given = tuple([literal.type for literal in literals])
    return Lifted("".join(parts), tuple(types), given, values)


def _literal(kind: str, token: re.Match[str]) -> Literal | None:
    if kind == "string":
        value = token["string"].replace("''", "'")
        return None if value.endswith(" ") else Literal(VARCHAR, value)
    text = token[kind]
    if len(text) > NUMBER_MAX:
        return None
    found: Literal | None = number_literal(text.lstrip("+-"))
    if text.startswith("-") and found is not None:
        found = negated(found)
    if found is None or (kind == "part" and found.type != INTEGER):
        return None  # -2147483648 is INTEGER, and 2147483648 is not
    return found if found.type.kind in _EXACT else None


# --- whether the plan means the same ----------------------------------------------------------

_EXACT: Final = (*INTEGER_KINDS, Kind.DECIMAL)
_KINDS: Final = (
    *_EXACT, Kind.DOUBLE, Kind.VARCHAR, Kind.CHAR, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ
)  # fmt: skip
_COMPARED: Final = ("=", "<>", "<", "<=", ">", ">=")
_COMPUTED: Final = ("+", "-", "*", "neg")
_CONNECTED: Final = ("and", "or", "not")
_DIGITS: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9:.+-]*)?")
"""No 'today', no name of a zone, and no date whose order DateStyle says."""


@dataclass(frozen=True, slots=True)
class Fits:
    """``types[i]`` are those in which the value of parameter ``i`` must have an exact counterpart;
    another value may round, or fail, and a literal does so when it is bound."""

    types: tuple[tuple[SqlType, ...], ...]

    def values(self, lifted: Lifted, zone: str) -> tuple[PhysicalValue, ...] | None:
        """The values for the plan; None: this text must be planned by itself."""
        found = list(lifted.values)
        for place, (given, targets) in enumerate(zip(lifted.given, self.types, strict=True)):
            value, have = found[place], given
            for number, target in enumerate(targets):
                if have == target:
                    continue
                if have.is_text and not target.is_text and not _DIGITS.fullmatch(str(value)):
                    return None
                try:
                    exact = fitted((value,), (have,), (target,), zone)
                except InputError:
                    return None
                if exact is None:
                    return None
                if number == 0:
                    found[place], value, have = exact[0], exact[0], target
        return tuple(found)


def fits_of(found: Planned, types: Types) -> Fits | None:
    """The types that the values of lifted literals must fit, so that the plan ``found`` means
    what the text does. None: that is not known for each value.

    The plan must leave nothing to choose, so that no literal decides by its share of the rows: it
    reads or changes an entry by key, or stores one row. Each parameter is compared, stored, or
    added to integers: there a literal has the same type whatever its digits are. None is in a
    column of the result, whose name and type a literal makes.
    """
    reading = _Reading(types)
    if not reading.reads(found):
        return None
    assert isinstance(found, PlannedQuery | PlannedInsert | PlannedChange)
    source = found if isinstance(found, PlannedQuery) else found.source
    draws = not isinstance(found, PlannedQuery) and found.keyed is not None and found.keyed.draws
    if (source.supplied and not draws) or source.effects or source.declares:
        return None
    wanted = source.parameter_types
    if any(t.kind not in _KINDS or t.alias for t in wanted):
        return None
    pairs = zip(wanted, reading.targets, strict=True)
    return Fits(tuple([(first, *dict.fromkeys(more)) for first, more in pairs]))


class _Reading:
    """Looks at the expressions of one plan."""

    def __init__(self, types: Types) -> None:
        self._types = types
        self.targets: list[list[SqlType]] = [[] for _ in types]

    def reads(self, found: Planned) -> bool:
        match found:
            case PlannedQuery(point=PointRead() as point):
                return self._point(point)
            case PlannedInsert(keyed=keyed) | PlannedChange(keyed=keyed, answer=None) if (
                keyed is not None
            ):
                drawn = [each.expression for each in keyed.draws if each.expression is not None]
                return not any(map(self._lifted, drawn)) and self._keyed(keyed.write)
            case PlannedInsert(source=source):
                rows = rows_of_leaf(source.plan)
                if rows is None or not isinstance(rows.leaf, ValuesScan) or rows.filters:
                    return False
                return len(rows.leaf.rows) == 1 and all(map(self._stored, rows.expressions))
            case _:
                return False

    def _point(self, point: PointRead) -> bool:
        keys = [part for key in point.keys for part in key]
        shown = not any(map(self._lifted, point.expressions))
        return shown and all(map(self._stored, keys)) and self._condition(point.filter)

    def _keyed(self, write: KeyedWrite) -> bool:
        shown = not any(map(self._lifted, write.returning))
        stored = all(map(self._stored, (*write.key, *write.row)))
        return shown and stored and self._condition(write.filter)

    def _lifted(self, expression: Expression) -> bool:
        return any(self._is_literal(part) for part in walk(expression))

    def _is_literal(self, part: Expression) -> bool:
        return isinstance(part, Parameter) and part.index < len(self._types)

    def _condition(self, expression: Expression | None) -> bool:
        if expression is None or not self._lifted(expression):
            return True
        match expression:
            case Call(function=function, arguments=parts) if function in _CONNECTED:
                return all(map(self._condition, parts))
            case Call(function=function, arguments=parts) if function in _COMPARED:
                return all(map(self._stored, parts))
            case InList(operand=operand, values=values):
                return all(map(self._stored, (operand, *values)))
            case _:
                return False

    def _stored(self, expression: Expression) -> bool:
        """An operand of a comparison, or a value for a column."""
        match expression:
            case _ if not self._lifted(expression):
                return True
            case Parameter():
                return True
            case Cast(type=target, operand=operand):
                if target.kind not in _KINDS:
                    return False
                parameter = _below_casts(operand)
                if parameter is None:
                    return self._stored(operand)
                self.targets[parameter.index] += _cast_types(expression)
                return True
            case Call(function="check_length", arguments=(Parameter(index=index), _)):
                self.targets[index].append(expression.type)
                return True
            case Case(branches=branches, otherwise=otherwise):  # that of an upsert
                chosen = [value for _, value in branches]
                tested = all(self._condition(condition) for condition, _ in branches)
                return tested and all(map(self._stored, (*chosen, otherwise)))
            case _:
                return self._computed(expression)

    def _computed(self, expression: Expression) -> bool:
        """Integers: the types of other results depend on the digits of literals."""
        if not self._lifted(expression):
            return True
        match expression:
            case Parameter(type=found, index=index):
                return self._types[index] is not None and found.kind in INTEGER_KINDS
            case Cast(type=target, operand=Parameter() as operand):
                wider = target.kind in INTEGER_KINDS and operand.type.kind in INTEGER_KINDS
                wider = wider and _rank(target) >= _rank(operand.type)
                return wider and self._computed(operand)
            case Call(function=function, arguments=parts) if function in _COMPUTED:
                integers = all(part.type.kind in INTEGER_KINDS for part in (expression, *parts))
                return integers and all(map(self._computed, parts))
            case _:
                return False


def _rank(t: SqlType) -> int:
    return INTEGER_KINDS.index(t.kind)


def _below_casts(expression: Expression) -> Parameter | None:
    while isinstance(expression, Cast):
        expression = expression.operand
    return expression if isinstance(expression, Parameter) else None


def _cast_types(expression: Expression) -> list[SqlType]:
    found: list[SqlType] = []
    while isinstance(expression, Cast):
        found.append(expression.type)
        expression = expression.operand
    return found


# --- forms that were met -----------------------------------------------------------------------


@dataclass(slots=True)
class _Form:
    refused_at: int | None = None
    """The version of the catalog by which its plan does not mean the same."""
    planned: Planned | None = None
    fits: Fits | None = None


class Forms:
    """The forms of statements that a member was given, least recently used out first. A form that
    comes for the first time is left alone: most never come again."""

    def __init__(self, size: int = FORMS_MAX) -> None:
        self._size = size
        self._forms: OrderedDict[tuple[str, Types], _Form] = OrderedDict()
        self._texts: OrderedDict[int, None] = OrderedDict()
        """Hashes of texts that ran by a shared plan."""

    def wanted(self, lifted: Lifted, version: int) -> bool:
        """Whether to plan the form of ``lifted``. ``version``: that of the catalog."""
        key = lifted.form, lifted.types
        form = self._forms.get(key)
        if form is None:
            self._forms[key] = _Form()
            if len(self._forms) > self._size:
                self._forms.popitem(last=False)
            return False
        self._forms.move_to_end(key)
        return form.refused_at != version

    def came_before(self, text: str) -> bool:
        """Whether ``text`` ran by a shared plan before. A text that repeats is worth a plan of its
        own, by which the short ways answer it."""
        number = hash(text)
        if number in self._texts:
            self._texts.move_to_end(number)
            return True
        self._texts[number] = None
        if len(self._texts) > self._size:
            self._texts.popitem(last=False)
        return False

    def refuse(self, lifted: Lifted, version: int) -> None:
        """Texts of this form are planned one by one, until the catalog changes."""
        self._forms[lifted.form, lifted.types] = _Form(refused_at=version)

    def fits(self, lifted: Lifted, found: Planned) -> Fits | None:
        """``fits_of``, remembered for as long as the plan is the same."""
        form = self._forms.setdefault((lifted.form, lifted.types), _Form())
        if form.planned is not found:
            form.planned, form.fits = found, fits_of(found, lifted.types)
        return form.fits
