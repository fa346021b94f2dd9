"""Numbers in SQL/JSON paths: arithmetic with PostgreSQL's digits, and methods of numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from typing import Any, Final

from remuda.datatypes.jsons import Json
from remuda.errors import DivisionByZero, NonNumericJsonItem, NumericOverflow

_EXACT: Final = Context(prec=5000, rounding=ROUND_HALF_UP)
"""More digits than any number of JSON, or the product of two, has."""
_EXPONENT_MAX: Final = 1000
_SIGNIFICANT: Final = 16
"""A quotient has so many digits at least."""
_SCALE_MAX: Final = 1000
_GROUP: Final = 4
"""PostgreSQL counts digits in groups."""


def is_number(value: Json) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def arithmetic(sign: str, left: int | Decimal, right: int | Decimal) -> Decimal:
    """Raises DivisionByZero or NumericOverflow."""
    result = _ARITHMETIC[sign](Decimal(left), Decimal(right))
    if result and result.adjusted() > _EXPONENT_MAX:
        raise NumericOverflow("value overflows numeric format")
    return result or abs(result)


def _scale(number: Decimal) -> int:
    return max(0, -int(number.as_tuple().exponent))


def _quotient(left: Decimal, right: Decimal) -> Decimal:
    if not right:
        raise DivisionByZero("division by zero")
    weights = _weight(left) - _weight(right)
    if _first_group(left) <= _first_group(right):
        weights -= 1
    scale = max(_SIGNIFICANT - weights * _GROUP, _scale(left), _scale(right), 0)
    step = Decimal(1).scaleb(-min(scale, _SCALE_MAX))
    # Exact quotient to one digit more, and the remainder into the last one, so that it rounds once.
    return _EXACT.divide(left, right).quantize(step, ROUND_HALF_UP, _EXACT)


def _weight(number: Decimal) -> int:
    """The power of 10000 of the first group of digits."""
    return number.adjusted() // _GROUP if number else 0


def _first_group(number: Decimal) -> int:
    if not number:
        return 0
    return int(abs(number).scaleb(-_weight(number) * _GROUP, _EXACT))


def _remainder(left: Decimal, right: Decimal) -> Decimal:
    if not right:
        raise DivisionByZero("division by zero")
    return _EXACT.remainder(left, right)


_ARITHMETIC: Final[dict[str, Callable[[Decimal, Decimal], Decimal]]] = {
    "+": _EXACT.add, "-": _EXACT.subtract, "*": _EXACT.multiply,
    "/": _quotient, "%": _remainder,
}  # fmt: skip

NUMERIC_METHODS: Final[dict[str, Callable[[Decimal], Decimal]]] = {
    "abs": abs,
    "floor": lambda number: number.to_integral_value(ROUND_FLOOR) + 0,
    "ceiling": lambda number: number.to_integral_value(ROUND_CEILING) + 0,
}


def double_of_number(value: int | Decimal) -> int | Decimal:
    """The number itself, if DOUBLE holds it. Raises NonNumericJsonItem."""
    as_float = float(value) if abs(Decimal(value)) < Decimal("1e309") else math.inf
    if math.isinf(as_float) or (value and not as_float):
        raise NonNumericJsonItem(
            "numeric argument of jsonpath item method .double() is out of range for type double "
            "precision"
        )
    return value


_DOUBLE: Final = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII)
_HEX: Final = re.compile(
    r"\s*[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?\d+)?\s*", re.ASCII
)


def double_of_text(text: str) -> Decimal:
    """Raises NonNumericJsonItem for what is no finite number."""
    number: Any = math.inf
    if _DOUBLE.fullmatch(text):
        number = float(text)
        if not number and re.search("[1-9]", re.split("[eE]", text)[0]):
            number = math.inf  # too small for DOUBLE
    elif _HEX.fullmatch(text):
        number = float.fromhex(text.strip())
    if not math.isfinite(number):
        raise NonNumericJsonItem(
            "string argument of jsonpath item method .double() is not a valid representation of a "
            "double precision number"
        )
    found = Decimal(f"{number:.15g}")
    return found or abs(found)
