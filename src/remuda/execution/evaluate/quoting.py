"""Texts made of values: concat, concat_ws, format, and quoting for SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.identifiers import quoted_name
from remuda.errors import InputError, NullNotAllowed
from remuda.execution.arrays import boolean_array, mask_of
from remuda.execution.evaluate.kernel import Kernel, column
from remuda.execution.evaluate.numbers import Value
from remuda.execution.evaluate.result_size import check_joined, gathered
from remuda.execution.evaluate.rows import per_row
from remuda.plan.expression import Call

_SPECIFIER: Final = re.compile(r"%(?:(\d+)\$)?(-)?(?:(\d+)|\*(?:(\d+)\$)?)?(.)?", re.DOTALL)


def quote_literal(text: str) -> str:
    quoted = "'" + text.replace("'", "''").replace("\\", "\\\\") + "'"
    return "E" + quoted if "\\" in text else quoted


def texts(values: Sequence[Value], rows: int) -> list[pa.Array]:
    """Arguments as columns of text; a BOOLEAN is t or f, as PostgreSQL's clients see it."""
    return [_as_text(column(value, rows)) for value in values]


def _as_text(array: pa.Array) -> pa.Array:
    if pa.types.is_null(array.type):
        return array.cast(pa.string())
    if not pa.types.is_boolean(array.type):
        return array
    return pc.if_else(array, "t", "f")


def _concat(call: Call) -> Kernel:
    def kernel(values: list[Value], rows: int) -> pa.Array:
        parts = texts(values, rows)
        check_joined(parts, rows, call.function)
        return pc.binary_join_element_wise(*parts, "", null_handling="replace", null_replacement="")

    return kernel


def _concat_ws(call: Call) -> Kernel:
    def kernel(values: list[Value], rows: int) -> pa.Array:
        columns = [array.to_pylist() for array in texts(values, rows)]
        joined = (
            None if row[0] is None else row[0].join(p for p in row[1:] if p is not None)
            for row in zip(*columns, strict=True)
        )
        return pa.array(gathered(joined, call.function), pa.string())

    return kernel


def _quote_nullable(_: Call) -> Kernel:
    def kernel(values: list[Value], rows: int) -> pa.Array:
        (array,) = texts(values, rows)
        return pa.array(
            ["NULL" if text is None else quote_literal(text) for text in array.to_pylist()],
            pa.string(),
        )

    return kernel


def _quote_literal(call: Call) -> Kernel:
    quote = per_row(quote_literal)(call)
    return lambda values, rows: quote(list(texts(values, rows)), rows)


def _format(_: Call) -> Kernel:
    def kernel(values: list[Value], rows: int) -> pa.Array:
        columns = [array.to_pylist() for array in texts(values, rows)]
        return pa.array(
            [
                None if row[0] is None else formatted(row[0], row[1:])
                for row in zip(*columns, strict=True)
            ],
            pa.string(),
        )

    return kernel


def formatted(template: str, values: Sequence[str | None]) -> str:
    """``%[n$][-][width]s``, ``I``, ``L`` and ``%%``, as in PostgreSQL."""
    pieces: list[str] = []
    done = used = 0

    def argument(number: str | None) -> str | None:
        nonlocal used
        if number is None:
            used += 1
        else:
            used = int(number)
            if used == 0:
                raise InputError("format specifies argument 0, but arguments are numbered from 1")
        if used > len(values):
            raise InputError("too few arguments for format()")
        return values[used - 1]

    while (match := _SPECIFIER.search(template, done)) is not None:
        pieces.append(template[done : match.start()])
        done = match.end()
        number, left, width, width_number, kind = match.groups()
        if kind is None:
            raise InputError("unterminated format() type specifier",
                             hint='For a single "%" use "%%".')  # fmt: skip
        if kind == "%":
            pieces.append("%")
            continue
        if kind not in "sIL":
            raise InputError(f'unrecognized format() type specifier "{kind}"',
                             hint='For a single "%" use "%%".')  # fmt: skip
        space = int(width or 0)
        if "*" in match[0]:
            space = int(argument(width_number) or 0)
        if space < 0:
            left, space = "-", -space
        text = _converted(kind, argument(number))
        pieces.append(text.ljust(space) if left else text.rjust(space))
    return "".join([*pieces, template[done:]])


def _converted(kind: str, value: str | None) -> str:
    if kind == "s":
        return value or ""
    if kind == "L":
        return "NULL" if value is None else quote_literal(value)
    if value is None:
        raise NullNotAllowed("null values cannot be formatted as an SQL identifier")
    return quoted_name(value)


def _counting(valid: bool) -> Callable[[Call], Kernel]:
    """num_nulls, num_nonnulls"""

    def make(_: Call) -> Kernel:
        def kernel(values: list[Value], rows: int) -> pa.Array:
            total = pc.cast(boolean_array(mask_of(pa.repeat(pa.scalar(False), rows))), pa.int32())
            for value in values:
                array = column(value, rows)
                test = pc.is_valid(array) if valid else pc.is_null(array)
                total = pc.add(total, test.cast(pa.int32()))
            return total

        return kernel

    return make


QUOTING_STRICT: Final[dict[str, Callable[[Call], Kernel]]] = {
    "quote_ident": per_row(quoted_name),
    "quote_literal": _quote_literal,
}
OWN_NULLS: Final[dict[str, Callable[[Call], Kernel]]] = {
    "concat": _concat,
    "concat_ws": _concat_ws,
    "format": _format,
    "quote_nullable": _quote_nullable,
    "num_nulls": _counting(valid=False),
    "num_nonnulls": _counting(valid=True),
}
"""Functions that look at NULLs themselves."""
