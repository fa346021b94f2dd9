"""Parameters of statements: Python values to the engine's form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remuda.datatypes.sql import NULL, SqlType
from remuda.datatypes.values import PhysicalValue, infer_type, to_physical
from remuda.errors import DataError, InputError, TypeMismatch, UndefinedType, WrongParameters


def parameters_of(values: Sequence[Any]) -> tuple[list[PhysicalValue], list[SqlType]]:
    """Physical values and the types that the values themselves suggest."""
    types = []
    for number, value in enumerate(values, start=1):
        try:
            types.append(NULL if value is None else infer_type(value))
        except UndefinedType as error:
            raise TypeMismatch(f"parameter {number}: {error.message}") from error
    return typed_parameters(values, types), types


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


def one_sequence(params: tuple[Any, ...]) -> Sequence[Any]:
    """``sql(text, 1, 2)`` and ``sql(text, (1, 2))`` mean the same."""
    if len(params) == 1 and isinstance(params[0], list | tuple):
        return params[0]
    if len(params) == 1 and isinstance(params[0], dict):
        raise InputError(
            "named parameters are not supported", hint="Write ? and give the values in order."
        )
    return params
