"""The evaluation of a SQL/JSON path in a document, as PostgreSQL's executor has it.

Lax mode passes over what is not there, takes elements out of arrays where single values are wanted,
and a single value for an array of one. In strict mode both are errors. An error inside of a
condition makes it unknown; elsewhere it ends the evaluation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, ClassVar, Final, NamedTuple

from remuda.datatypes.jsons import Json, json_type, ordered_keys
from remuda.errors import (
    DivisionByZero,
    InvalidDatetime,
    InvalidJsonDatetimeArgument,
    InvalidJsonSubscript,
    JsonArrayNotFound,
    JsonMemberNotFound,
    JsonNumberNotFound,
    JsonObjectNotFound,
    JsonSingletonRequired,
    NonNumericJsonItem,
    NumericOverflow,
    SqlJsonError,
    UndefinedSetting,
)
from remuda.execution.evaluate.json_path_datetimes import JsonMoment, compared, moment_of
from remuda.execution.evaluate.json_path_numbers import (
    NUMERIC_METHODS,
    arithmetic,
    double_of_number,
    double_of_text,
    is_number,
)
from remuda.execution.evaluate.json_path_syntax import (
    CONDITIONS,
    LEVEL_LAST,
    Item,
    JsonPath,
    Path,
)
from remuda.execution.evaluate.jsonb_layout import offsets

Found = list[Json] | None
"""Where values go; None if only one is asked for, whatever it is."""

RECOVERABLE: Final = (SqlJsonError, DivisionByZero, NumericOverflow, InvalidDatetime)
"""An error that makes a condition unknown, and that a silent call passes over."""

_VARIABLES_ID: Final = 1
_ID_STEP: Final = 10_000_000_000
"""Objects are told apart by the place in their document, and documents by this."""
_ORDER: Final[dict[str, Callable[[int, int], bool]]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip


class _Base(NamedTuple):
    """The document that ``.keyvalue()`` counts places in, and its number."""

    document: Json
    number: int


class _Scope(NamedTuple):
    base: _Base
    current: Json = None
    """The meaning of ``@``."""
    size: int = -1
    """How many elements the array has whose subscripts are computed: ``last`` is one less."""
    lenient: bool = True
    """Whether what is not there is passed over."""
    quiet: bool = False
    """Whether somebody around takes errors as unknown."""


class Evaluation:
    """One evaluation. ``zones`` allows values to be compared by the session's zone; ``variables``
    is None where none can be given: then each is null."""

    def __init__(
        self, path: JsonPath, document: Json, variables: dict[str, Json] | None, zones: bool
    ) -> None:
        self.lax, self.path = path
        self.document = document
        self.variables = variables
        self.zones = zones
        self.last_number = _VARIABLES_ID + 1
        self.places: dict[int, dict[int, int]] = {}
        self.kept: list[Json] = []

    def into(self, found: list[Json], silent: bool) -> bool:
        """Adds what the path leads to; False if an error ended that and was passed over."""
        return self._ends_well(found, silent)

    def leads_anywhere(self, silent: bool) -> bool | None:
        """None if an error was passed over."""
        # In strict mode all values are asked for, because any may be an error.
        found: Found = None if self.lax else []
        if found is None:
            return self._exists(silent)
        return bool(found) if self._ends_well(found, silent) else None

    def _start(self, silent: bool) -> _Scope:
        return _Scope(_Base(self.document, 0), self.document, lenient=self.lax, quiet=silent)

    def _ends_well(self, found: list[Json], silent: bool) -> bool:
        try:
            self._run(self.path, 0, self.document, self._start(silent), found, unwrap=self.lax)
        except RECOVERABLE:
            if not silent:
                raise
            return False
        return True

    def _exists(self, silent: bool) -> bool | None:
        try:
            return self._run(
                self.path, 0, self.document, self._start(silent), None, unwrap=self.lax
            )
        except RECOVERABLE:
            if not silent:
                raise
            return None

    # --- items ---

    def _run(
        self, path: Path, at: int, value: Json, scope: _Scope, found: Found, *, unwrap: bool
    ) -> bool:
        """The items of ``path`` from ``at`` on, applied to ``value``; whether there was a value."""
        item = path[at]
        if item.kind in CONDITIONS:
            known = self._condition(item, value, scope)
            return self._next(path, at, known, scope, found)
        step = self._STEPS[item.kind]
        if unwrap and isinstance(value, list) and item.kind in _UNWRAPPING:
            return self._each(path, at, value, scope, found, unwrap=False)
        return step(self, path, at, value, scope, found)

    def _next(self, path: Path, at: int, value: Json, scope: _Scope, found: Found) -> bool:
        if at + 1 < len(path):
            return self._run(path, at + 1, value, scope, found, unwrap=self.lax)
        if found is not None:
            found.append(value)
        return True

    def _each(
        self, path: Path, at: int, value: list[Json], scope: _Scope, found: Found, *, unwrap: bool
    ) -> bool:
        """The items from ``at`` on, applied to each element."""
        any_found = False
        for element in value:
            if at < len(path):
                any_found |= self._run(path, at, element, scope, found, unwrap=unwrap)
            else:
                any_found |= self._next(path, at, element, scope, found)
            if any_found and found is None:
                return True
        return any_found

    def _values(self, path: Path, value: Json, scope: _Scope, unwrap: bool) -> list[Json]:
        """All values of an argument; in lax mode, ``unwrap`` puts elements in place of arrays."""
        found: list[Json] = []
        self._run(path, 0, value, scope, found, unwrap=self.lax)
        if not (unwrap and self.lax):
            return found
        return [part for each in found for part in (each if isinstance(each, list) else [each])]

    # --- where paths begin ---

    def _root(self, path: Path, at: int, _: Json, scope: _Scope, found: Found) -> bool:
        scope = scope._replace(base=_Base(self.document, 0))
        return self._next(path, at, self.document, scope, found)

    def _current(self, path: Path, at: int, _: Json, scope: _Scope, found: Found) -> bool:
        return self._next(path, at, scope.current, scope, found)

    def _literal(self, path: Path, at: int, _: Json, scope: _Scope, found: Found) -> bool:
        return self._next(path, at, path[at].value, scope, found)

    def _variable(self, path: Path, at: int, _: Json, scope: _Scope, found: Found) -> bool:
        name = path[at].value
        if self.variables is None:
            return self._next(path, at, None, scope, found)
        if name not in self.variables:
            raise UndefinedSetting(f'could not find jsonpath variable "{name}"')
        scope = scope._replace(base=_Base(self.variables, _VARIABLES_ID))
        return self._next(path, at, self.variables[name], scope, found)

    def _last(self, path: Path, at: int, _: Json, scope: _Scope, found: Found) -> bool:
        return self._next(path, at, scope.size - 1, scope, found)

    # --- steps ---

    def _key(self, path: Path, at: int, value: Json, scope: _Scope, found: Found) -> bool:
        name = path[at].value
        if not isinstance(value, dict):
            if scope.lenient:
                return False
            raise JsonMemberNotFound("jsonpath member accessor can only be applied to an object")
        if name in value:
            return self._next(path, at, value[name], scope, found)
        if scope.lenient:
            return False
        raise JsonMemberNotFound(f'JSON object does not contain key "{name}"')

    def _any_key(self, path: Path, at: int, value: Json, scope: _Scope, found: Found) -> bool:
        if isinstance(value, dict):
            members = [value[name] for name in ordered_keys(value)]
            return self._each(path, at + 1, members, scope, found, unwrap=self.lax)
        if scope.lenient:
            return False
        raise JsonObjectNotFound(
            "jsonpath wildcard member accessor can only be applied to an object"
        )

    def _any_element(self, path: Path, at: int, value: Json, scope: _Scope, found: Found) -> bool:
        if isinstance(value, list):
            return self._each(path, at + 1, value, scope, found, unwrap=self.lax)
        if self.lax:
            return self._next(path, at, value, scope, found)
        if scope.lenient:
            return False
        raise JsonArrayNotFound("jsonpath wildcard array accessor can only be applied to an array")

    def _elements(self, path: Path, at: int, value: Json, scope: _Scope, found: Found) -> bool:
        if not isinstance(value, list) and not self.lax:
            if scope.lenient:
                return False
            raise JsonArrayNotFound("jsonpath array accessor can only be applied to an array")
        items = value if isinstance(value, list) else [value]
        inner = scope._replace(size=len(items))
        bounds = path[at].parts
        any_found = False
        for low, high in zip(bounds[::2], bounds[1::2], strict=True):
            first = self._subscript(low, value, inner)
            last = self._subscript(high, value, inner) if high else first
            if not scope.lenient and (first < 0 or first > last or last >= len(items)):
                raise InvalidJsonSubscript("jsonpath array subscript is out of bounds")
            for element in items[max(first, 0) : max(last + 1, 0)]:
                any_found |= self._next(path, at, element, inner, found)
                if any_found and found is None:
                    return True
        return any_found

    def _subscript(self, path: Path, value: Json, scope: _Scope) -> int:
        found = self._values(path, value, scope, unwrap=False)
        if len(found) != 1 or not is_number(found[0]):
            raise InvalidJsonSubscript("jsonpath array subscript is not a single numeric value")
        place = int(found[0])
        if not -(2**31) <= place < 2**31:
            raise InvalidJsonSubscript("jsonpath array subscript is out of integer range")
        return place

    def _filter(self, path: Path, at: int, value: Json, scope: _Scope, found: Found) -> bool:
        [condition] = path[at].parts
        if self._known(condition, value, scope._replace(current=value)) is not True:
            return False
        return self._next(path, at, value, scope, found)

    def _levels(self, path: Path, at: int, value: Json, scope: _Scope, found: Found) -> bool:
        first, last = path[at].value
        inside = scope._replace(lenient=True)
        any_found = False
        if first == 0:
            try:
                any_found = self._next(path, at, value, inside, found)
            except RECOVERABLE:
                # PostgreSQL forgets an error of the outermost level if there are others.
                if not (scope.quiet and isinstance(value, dict | list)):
                    raise
            if any_found and found is None:
                return True
        for level, inner in _inside(value, last):
            if level >= first or (
                first == last == LEVEL_LAST and not isinstance(inner, dict | list)
            ):
                if at + 1 < len(path):
                    any_found |= self._run(path, at + 1, inner, inside, found, unwrap=self.lax)
                else:
                    any_found |= self._next(path, at, inner, inside, found)
                if any_found and found is None:
                    return True
        return any_found

    # --- operators ---

    def _signed(self, path: Path, at: int, value: Json, scope: _Scope, found: Found) -> bool:
        item = path[at]
        any_found = False
        only_asked = found is None and at + 1 == len(path)
        for operand in self._values(item.parts[0], value, scope, unwrap=True):
            if not is_number(operand):
                if only_asked:
                    continue
                raise JsonNumberNotFound(
                    f"operand of unary jsonpath operator {item.value} is not a numeric value"
                )
            result = -operand or 0 * operand if item.value == "-" else operand
            any_found |= self._next(path, at, result, scope, found)
            if any_found and found is None:
                return True
        return any_found

    def _computed(self, path: Path, at: int, value: Json, scope: _Scope, found: Found) -> bool:
        item = path[at]
        sides = [self._values(part, value, scope, unwrap=True) for part in item.parts]
        for name, side in zip(("left", "right"), sides, strict=True):
            if len(side) != 1 or not is_number(side[0]):
                raise JsonSingletonRequired(
                    f"{name} operand of jsonpath operator {item.kind} is not a single numeric value"
                )
        result = arithmetic(item.kind, sides[0][0], sides[1][0])
        return self._next(path, at, result, scope, found)

    # --- methods ---

    def _type(self, path: Path, at: int, value: Json, scope: _Scope, found: Found) -> bool:
        name = value.type if isinstance(value, JsonMoment) else json_type(value)
        return self._next(path, at, name, scope, found)

    def _size(self, path: Path, at: int, value: Json, scope: _Scope, found: Found) -> bool:
        if not isinstance(value, list) and not self.lax:
            if scope.lenient:
                return False
            raise JsonArrayNotFound("jsonpath item method .size() can only be applied to an array")
        size = len(value) if isinstance(value, list) else 1
        return self._next(path, at, size, scope, found)

    def _numeric(self, path: Path, at: int, value: Json, scope: _Scope, found: Found) -> bool:
        name = path[at].kind
        if not is_number(value):
            raise NonNumericJsonItem(
                f"jsonpath item method .{name}() can only be applied to a numeric value"
            )
        return self._next(path, at, NUMERIC_METHODS[name](Decimal(value)), scope, found)

    def _double(self, path: Path, at: int, value: Json, scope: _Scope, found: Found) -> bool:
        if is_number(value):
            number = double_of_number(value)
        elif isinstance(value, str):
            number = double_of_text(value)
        else:
            raise NonNumericJsonItem(
                "jsonpath item method .double() can only be applied to a string or numeric value"
            )
        return self._next(path, at, number, scope, found)

    def _datetime(self, path: Path, at: int, value: Json, scope: _Scope, found: Found) -> bool:
        if not isinstance(value, str):
            raise InvalidJsonDatetimeArgument(
                "jsonpath item method .datetime() can only be applied to a string"
            )
        return self._next(path, at, moment_of(value, path[at].value), scope, found)

    def _keyvalue(self, path: Path, at: int, value: Json, scope: _Scope, found: Found) -> bool:
        if not isinstance(value, dict):
            raise JsonObjectNotFound(
                "jsonpath item method .keyvalue() can only be applied to an object"
            )
        if not value:
            return False
        if found is None and at + 1 == len(path):
            return True
        number = self._place(value, scope.base) + scope.base.number * _ID_STEP
        any_found = False
        for key in ordered_keys(value):
            pair = {"key": key, "value": value[key], "id": number}
            inner = scope._replace(base=_Base(pair, self.last_number))
            self.last_number += 1
            any_found |= self._next(path, at, pair, inner, found)
            if any_found and found is None:
                return True
        return any_found

    def _place(self, value: Json, base: _Base) -> int:
        known = self.places.get(id(base.document))
        if known is None:
            # The document is kept, so that no other value gets its id.
            self.kept.append(base.document)
            known = self.places[id(base.document)] = offsets(base.document)
        return known.get(id(value), 0)

    # --- conditions ---

    def _known(self, path: Path, value: Json, scope: _Scope) -> bool | None:
        [item] = path
        return self._condition(item, value, scope)

    def _condition(self, item: Item, value: Json, scope: _Scope) -> bool | None:
        """None is unknown."""
        kind, parts = item.kind, item.parts
        if kind in ("&&", "||"):
            decides = kind == "||"
            left = self._known(parts[0], value, scope)
            if left is decides:
                return decides
            right = self._known(parts[1], value, scope)
            return left if right is not decides and right is not None else right
        if kind == "!":
            inner = self._known(parts[0], value, scope)
            return None if inner is None else not inner
        if kind == "is unknown":
            return self._known(parts[0], value, scope) is None
        scope = scope._replace(quiet=True)
        try:
            if kind == "exists":
                found: Found = None if self.lax else []
                any_found = self._run(parts[0], 0, value, scope, found, unwrap=self.lax)
                return any_found if found is None else bool(found)
            lefts = self._values(parts[0], value, scope, unwrap=True)
            rights = [None]
            if len(parts) == 2:
                rights = self._values(parts[1], value, scope, unwrap=kind != "starts with")
        except RECOVERABLE:
            return None
        return self._any_pair(item, lefts, rights)

    def _any_pair(self, item: Item, lefts: list[Json], rights: list[Json]) -> bool | None:
        """True if any pair is; in strict mode, one that is unknown decides over all."""
        found = unknown = False
        for left in lefts:
            for right in rights:
                holds = self._holds(item, left, right)
                if holds is None:
                    if not self.lax:
                        return None
                    unknown = True
                elif holds:
                    if self.lax:
                        return True
                    found = True
        return True if found else None if unknown else False

    def _holds(self, item: Item, left: Json, right: Json) -> bool | None:
        if item.kind == "like_regex":
            if not isinstance(left, str):
                return None
            return item.value.pattern.search(left) is not None
        if item.kind == "starts with":
            if not isinstance(left, str) or not isinstance(right, str):
                return None
            return left.startswith(right)
        return self._compared(item.kind, left, right)

    def _compared(self, sign: str, left: Json, right: Json) -> bool | None:
        if isinstance(left, JsonMoment) or isinstance(right, JsonMoment):
            if isinstance(left, JsonMoment) and isinstance(right, JsonMoment):
                order = compared(left, right, self.zones)
                return None if order is None else _ORDER[sign](order, 0)
            return sign == "!=" if left is None or right is None else None
        kinds = json_type(left), json_type(right)
        if kinds[0] != kinds[1]:
            return sign == "!=" if "null" in kinds else None
        if kinds[0] in ("object", "array"):
            return None
        if left is None:
            return _ORDER[sign](0, 0)
        return _ORDER[sign](left, right)

    _STEPS: ClassVar[dict[str, Callable[[Evaluation, Path, int, Any, _Scope, Found], bool]]] = {
        "$": _root,
        "@": _current,
        "literal": _literal,
        "variable": _variable,
        "last": _last,
        "key": _key,
        ".*": _any_key,
        "[*]": _any_element,
        "[]": _elements,
        "?": _filter,
        "**": _levels,
        "sign": _signed,
        "+": _computed,
        "-": _computed,
        "*": _computed,
        "/": _computed,
        "%": _computed,
        "type": _type,
        "size": _size,
        "abs": _numeric,
        "ceiling": _numeric,
        "floor": _numeric,
        "double": _double,
        "datetime": _datetime,
        "keyvalue": _keyvalue,
    }


def _inside(value: Json, last: int) -> Iterator[tuple[int, Json]]:
    """(level, value) of all that is inside of ``value``, outer values first, down to ``last``."""
    pending = [(1, part) for part in reversed(_parts(value))] if last > 0 else []
    while pending:
        level, found = pending.pop()
        yield level, found
        if level < last:
            pending += [(level + 1, part) for part in reversed(_parts(found))]


def _parts(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return [value[name] for name in ordered_keys(value)]
    return value if isinstance(value, list) else []


_UNWRAPPING: Final = frozenset({
    "key", ".*", "?", "abs", "ceiling", "floor", "double", "datetime", "keyvalue",
})  # fmt: skip
"""Steps that lax mode applies to the elements of an array."""
