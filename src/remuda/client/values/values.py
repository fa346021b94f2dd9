"""Parameters of statements: Python values to the engine's form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from remuda.datatypes.sql import NULL, SqlType
from remuda.datatypes.values import (
    PhysicalValue,
    infer_type,
    require_unicode,
    to_physical,
    usual_types,
)
from remuda.errors import (
    DataError,
    InputError,
    LimitExceeded,
    SqlSyntaxError,
    TypeMismatch,
    UndefinedColumn,
    UndefinedType,
    WrongParameters,
)
from remuda.limits import STATEMENT_LENGTH_MAX

_PERCENT: Final = re.compile(r"%s|%\(\w+\)s")


def parameters_of(values: Sequence[Any]) -> tuple[list[PhysicalValue], tuple[SqlType, ...]]:
    """Physical values and the types that the values themselves suggest."""
    usual = usual_types(tuple(map(type, values)))
    if usual is not None:
        return typed_parameters(values, usual) if usual else [], usual
    types = []
    for number, value in enumerate(values, start=1):
        try:
            types.append(NULL if value is None else infer_type(value))
        except UndefinedType as error:
            raise TypeMismatch(f"parameter {number}: {error.message}") from error
    return typed_parameters(values, types), tuple(types)


def typed_parameters(values: Sequence[Any], types: Sequence[SqlType]) -> list[PhysicalValue]:
    """Physical values of the types that a prepared statement declares."""
    if len(values) != len(types):
        raise WrongParameters(
            f"the statement takes {len(types)} parameters, {len(values)} were given"
        )
    physical: list[PhysicalValue] = []
    for number, (value, declared) in enumerate(zip(values, types, strict=True), start=1):
        try:
            physical.append(None if value is None else to_physical(value, declared))
        except (DataError, TypeMismatch) as error:
            raise type(error)(f"parameter {number}: {error.message}") from error
    return physical


def with_hint(error: InputError, text: str, params: tuple[Any, ...]) -> InputError:
    """The error of a statement with what its author may have meant by its placeholders."""
    hint = ""
    if isinstance(error, WrongParameters) and len(params) == 1 and isinstance(params[0], list):
        hint = (
            "A list is one parameter, an array. Give several parameters one by one: "
            "sql(text, a, b)."
        )
    elif (
        isinstance(error, SqlSyntaxError | UndefinedColumn | WrongParameters)
        and params
        and _PERCENT.search(text)
    ):
        hint = (
            "Placeholders are ? (or $1, $2), not %s. remuda.dbapi.connect(paramstyle='format') "
            "and 'pyformat' take %s and %(name)s."
        )
    if not hint:
        return error
    return type(error)(
        error.message,
        detail=error.detail,
        hint=hint,
        position=error.position,
        statement=error.statement,
        member=error.member,
    )


def statement_text(text: object) -> str:
    """``text`` itself. Refuses text that a member would refuse or that cannot be sent."""
    if not isinstance(text, str):
        raise InputError(f"a statement is text, found {type(text).__name__}")
    if len(text) > STATEMENT_LENGTH_MAX:
        raise LimitExceeded(f"a statement has at most {STATEMENT_LENGTH_MAX} characters")
    if not text.isascii():
        require_unicode(text, "the statement")
    return text


def timeout_seconds(timeout: object) -> float:
    """A statement's timeout: a number above 0."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        raise InputError(f"timeout is a number of seconds above 0, found {timeout!r}")
    return timeout


def one_sequence(params: tuple[Any, ...]) -> Sequence[Any]:
    """``sql(text, 1, 2)`` and ``sql(text, (1, 2))`` mean the same. A list is one value, an array,
    however many it holds."""
    if len(params) == 1 and isinstance(params[0], tuple):
        return params[0]
    if len(params) == 1 and isinstance(params[0], dict):
        raise InputError(
            "named parameters are not supported", hint="Write ? and give the values in order."
        )
    return params
