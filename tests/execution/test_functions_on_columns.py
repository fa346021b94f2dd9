"""Every example of a function gives on columns what it gives on constants, row by row.

The literals of each bound example become columns: of one row, of rows that repeat the values
between NULLs, and one argument at a time, so that both vectorized and general ways run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from remuda.datatypes.values import array_to_values, values_to_array
from remuda.execution.batch import Batch
from remuda.execution.evaluate.casts import float_to_unscaled
from remuda.execution.evaluate.compile import Compiler, evaluate_constant
from remuda.execution.evaluate.decimals import canonical, compact
from remuda.plan.expression import Call, ColumnRef, Expression, Literal, transform
from remuda.plan.functions.catalog import SCALAR_FUNCTIONS, NullRule, is_volatile
from remuda.plan.logical import Project
from remuda.sql.binder import bind
from remuda.sql.parsing.parser import parse

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))
import sql_examples

MORE = (
    "substring('flights', 2, 3)",
    "substring('\\x010203'::BYTEA FROM 2)",
    "trim('  a ')",
    "ltrim('xxa', 'x')",
    "btrim('\\x010201'::BYTEA, '\\x01'::BYTEA)",
    "replace('a-b', '-', '+')",
    "'abc' LIKE 'a\\_c'",
    "'a_c' LIKE 'ax_c' ESCAPE 'x'",
    "'ABC' ILIKE 'a%'",
    "lpad('7', 3, '0')",
    "round(5.5::DOUBLE PRECISION, -400)",
    "trunc(5.5::DOUBLE PRECISION, 400)",
    "split_part('a-b-c', '-', -1)",
    "concat('a', true, 2)",
    "concat_ws(',', 'a', NULL, 'b')",
    "position('b' IN 'abc')",
    "upper('straße')",
    "regexp_replace('foobarbaz', 'b(..)', 'X\\1Y', 'g')",
    "regexp_match('foobar', 'o(b)(a)')",
    "regexp_split_to_array('a1b22c', '[0-9]+')",
    "'äöü' ~ '^[[:alpha:]]+$'",
    "substring('foobar' SIMILAR '#\"o_b#\"%' ESCAPE '#')",
    "round(1234.567, -2)",
    "power(2, 0.5)",
    "5.5 % 2.1",
    "to_char(-125.8, '999D99S')",
    "to_char(DATE '2024-12-30', 'IYYY-IW-ID')",
    "to_date('2024-060', 'YYYY-DDD')",
    "greatest(1, 2.5, 3)",
    "nullif('a', 'b')",
    "width_bucket(5, 10, 1, 4)",
)


class _NoMaps:
    version = 1

    def find(self, _name: str) -> None:
        return None

    find_view = find

    def names(self) -> list[str]:
        return []

    view_names = names


def examples() -> Iterator[str]:
    for group in vars(sql_examples).values():
        if isinstance(group, dict):
            for texts in group.values():
                yield from texts if isinstance(texts, tuple) else ()
    yield from MORE


def bound(text: str) -> Expression:
    statement = bind(parse(f"SELECT {text}"), _NoMaps())
    project = statement.plan
    assert isinstance(project, Project)
    return project.expressions[0]


def evaluated(expression: Expression, columns: list[pa.Array], rows: int) -> list[object]:
    compiler = Compiler({place: place for place in range(len(columns))})
    result = compiler.column(expression)(Batch(columns, rows))
    assert len(result) == rows
    return array_to_values(canonical(result, expression.type), expression.type)


def with_columns(
    expression: Expression, rows: int, pattern: list[bool], only: int | None = None
) -> tuple[Expression, list[pa.Array], int]:
    """``expression`` with its literals as columns (or the one of number ``only``), the columns, and
    the number of literals. ``pattern[i]``: row i has the value, else NULL."""
    columns: list[pa.Array] = []
    seen = 0

    def rewrite(part: Expression) -> Expression:
        nonlocal seen
        if not isinstance(part, Literal) or part.type.kind.name == "NULL":
            return part
        seen += 1
        if only is not None and seen - 1 != only:
            return part
        values = [part.value if wanted else None for wanted in pattern[:rows]]
        columns.append(compact(values_to_array(values, part.type)))
        return ColumnRef(part.type, len(columns) - 1, f"c{len(columns)}")

    return transform(expression, rewrite), columns, seen


CASES = list(dict.fromkeys(examples()))


@pytest.mark.parametrize("text", CASES)
def test_on_columns(text: str) -> None:
    expression = bound(text)
    if is_volatile(expression):
        pytest.skip("another value each time")
    expected = evaluate_constant(expression)
    rewritten, columns, literals = with_columns(expression, 1, [True])
    if literals == 0:
        return
    assert evaluated(rewritten, columns, 1) == [expected]
    pattern = [True, not _is_strict(expression), True, True]
    rewritten, columns, _ = with_columns(expression, 4, pattern)
    values = evaluated(rewritten, columns, 4)
    assert [values[0], values[2], values[3]] == [expected] * 3
    assert values[1] == (None if _is_strict(expression) else expected)
    for place in range(literals):
        rewritten, columns, _ = with_columns(expression, 4, pattern, only=place)
        values = evaluated(rewritten, columns, 4)
        assert [values[0], values[2], values[3]] == [expected] * 3, f"argument {place + 1}"
        wanted = None if _is_strict(expression) else expected
        assert values[1] == wanted, f"argument {place + 1}"


def _is_strict(expression: Expression) -> bool:
    """One call of a function that gives NULL for NULL."""
    if not isinstance(expression, Call):
        return False
    plain = all(isinstance(part, Literal) for part in expression.arguments)
    return plain and SCALAR_FUNCTIONS[expression.function].nulls is NullRule.STRICT


@pytest.mark.parametrize("text", CASES)
def test_over_no_rows(text: str) -> None:
    expression = bound(text)
    rewritten, columns, _ = with_columns(expression, 0, [])
    assert evaluated(rewritten, columns, 0) == []


def test_a_float_with_an_infinite_product_is_converted_without_a_warning() -> None:
    """Pytest makes an error of NumPy's warning, which a member would write to its output."""
    assert list(float_to_unscaled(np.array([1e300, 0.5]), 20, None)) == [10**320, 5 * 10**19]
