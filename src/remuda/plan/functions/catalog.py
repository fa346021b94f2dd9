"""The catalog of functions: names, argument types, result types, NULL rules.

The binder resolves every call here and makes all conversions explicit; the evaluator implements
the functions under these names and may rely on the argument types that ``resolve`` chose. Types
follow PostgreSQL unless a function says otherwise.

Guarantees for the evaluator, beyond the types of each ``Signature``:

- comparisons, ``coalesce``, ``nullif``, ``greatest``, ``least``: all arguments have one type
  (only the length of text, and CHAR against VARCHAR, may differ);
- ``+ - %`` on DECIMAL: both are DECIMAL, scales may differ, the result has the larger scale;
- ``* /`` on DECIMAL: both are DECIMAL; ``*`` has the sum of the scales (less where 38 digits would
  not do), ``/`` the scale of the result; both are rounded half away from zero;
- ``+ - * / %`` on integers: both have the type of the result; ``/`` truncates towards zero, ``%``
  has the sign of the dividend; leaving the type's range is NumericOverflow;
- ``extract`` and ``date_trunc``: the first argument is a VARCHAR literal out of
  ``EXTRACT_FIELDS`` or ``TRUNC_FIELDS``;
- a Cast to VARCHAR(n) or CHAR(n) of longer text raises StringTooLong unless only blanks are cut
  (PostgreSQL truncates silently in an explicit CAST); numbers round half away from zero;
- ``round`` and ``trunc`` of a DECIMAL with digits: the result type carries the scale.
"""

from __future__ import annotations

from typing import Final

from remuda.plan.expression import Call, Expression, walk
from remuda.plan.functions import aggregates as function_aggregates
from remuda.plan.functions import arrays as function_arrays
from remuda.plan.functions import dates as function_dates
from remuda.plan.functions import intervals as function_intervals
from remuda.plan.functions import json as function_json
from remuda.plan.functions import numbers as function_numbers
from remuda.plan.functions import operators as function_operators
from remuda.plan.functions import privileges as function_privileges
from remuda.plan.functions import sampling as function_sampling
from remuda.plan.functions import session_zone as function_session_zone
from remuda.plan.functions import text as function_text
from remuda.plan.functions import windows as function_windows
from remuda.plan.functions.dates import extract_signature
from remuda.plan.functions.numbers import with_digits, with_exponent
from remuda.plan.functions.set_functions import SET_FUNCTIONS
from remuda.plan.functions.signatures import (
    AggregateFunction,
    NullRule,
    Resolver,
    ScalarFunction,
    Signature,
    Types,
    WindowFunction,
)
from remuda.plan.sequence_calls import SEQUENCE_FUNCTIONS

__all__ = [
    "AGGREGATE_FUNCTIONS",
    "ALIASES",
    "INTERNAL",
    "OPERATORS",
    "SCALAR_FUNCTIONS",
    "WINDOW_FUNCTIONS",
    "AggregateFunction",
    "NullRule",
    "Resolver",
    "ScalarFunction",
    "Signature",
    "Types",
    "WindowFunction",
    "callable_names",
    "extract_signature",
    "is_volatile",
    "volatile_functions",
    "with_digits",
    "with_exponent",
]

_FAMILIES: Final = (
    function_operators,
    function_text,
    function_numbers,
    function_dates,
    function_intervals,
    function_sampling,
    function_arrays,
    function_json,
    function_session_zone,
    function_privileges,
)
"""Each has FUNCTIONS and ALIASES. A new family: a module of that form, and its name here."""

SCALAR_FUNCTIONS: Final[dict[str, ScalarFunction]] = {
    function.name: function for family in _FAMILIES for function in family.FUNCTIONS
}

OPERATORS: Final = frozenset(
    {"+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "||", "and", "or", "not", "neg"}
    | {"like", "ilike", "similar_to", "~", "~*", "&", "|", "#", "bit_not", "<<", ">>"}
    | {name for name in SCALAR_FUNCTIONS if name.startswith("is_")}
    | function_arrays.OPERATORS
    | function_json.OPERATORS
)
"""Names that are operators in SQL: not callable as f(x)."""

INTERNAL: Final = (
    frozenset(
        {"add_interval", "check_length", "interval_fields", "substring_regex", "substring_similar"}
        | {
            "round_fraction",
            "row_count",
            "single_row",
            "sampled",
            "session_setting",
            "current_user",
            "backend_pid",
            "current_database",
            "transaction_number",
        }
    )
    | function_arrays.INTERNAL
    | function_json.INTERNAL
    | function_session_zone.INTERNAL
    | function_privileges.INTERNAL
)
"""Names that only the binder writes."""

ALIASES: Final[dict[str, str]] = {
    alias: name for family in _FAMILIES for alias, name in family.ALIASES.items()
}
"""Other SQL names -> catalog names, same arguments."""

AGGREGATE_FUNCTIONS: Final[dict[str, AggregateFunction]] = {
    function.name: function for function in function_aggregates.FUNCTIONS
}
AGGREGATE_FUNCTIONS.update(
    (alias, AGGREGATE_FUNCTIONS[name]) for alias, name in function_aggregates.ALIASES.items()
)

WINDOW_FUNCTIONS: Final[dict[str, WindowFunction]] = {
    function.name: function for function in function_windows.FUNCTIONS
}


STABLE_FUNCTIONS: Final = frozenset(
    {
        "backend_pid",
        "current_database",
        "current_date",
        "current_timestamp",
        "current_user",
        "session_setting",
        "statement_timestamp",
        "transaction_number",
    }
    | {"single_row"}
)
"""Functions that do not fold, and yet give the same value all through a statement."""


def volatile_functions(expression: Expression) -> frozenset[str]:
    """The functions in it that may give two values when they are computed twice."""
    return frozenset(
        part.function
        for part in walk(expression)
        if isinstance(part, Call)
        and (
            (
                part.function in SCALAR_FUNCTIONS
                and not SCALAR_FUNCTIONS[part.function].folds
                and part.function not in STABLE_FUNCTIONS
            )
            or part.function in SEQUENCE_FUNCTIONS
        )
    )


def is_volatile(expression: Expression) -> bool:
    """Whether computing it twice may give two values."""
    return bool(volatile_functions(expression))


def callable_names() -> list[str]:
    """Every name that may be written as ``name(...)``: for suggestions and completion."""
    names = set(SCALAR_FUNCTIONS) - OPERATORS - INTERNAL
    names |= set(ALIASES) | set(AGGREGATE_FUNCTIONS) | set(WINDOW_FUNCTIONS)
    return sorted(names | set(SET_FUNCTIONS) | SEQUENCE_FUNCTIONS)
