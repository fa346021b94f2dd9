"""VALUES of many rows: cells of one column that are computed in the same way, in different ways,
and in too many ways for one expression, compared with what the cells say."""

from __future__ import annotations

import json
import math
from decimal import Decimal

import pytest

ROWS = 40
CELLS = {
    "%s": lambda value: value,
    "NULL": lambda _: None,
    "7": lambda _: 7,
    "%s::bigint + 1": lambda value: value + 1,
    "%s::bigint * 3": lambda value: value * 3,
    "abs(%s::bigint)": abs,
    "abs(%s::bigint) + 2": lambda value: abs(value) + 2,
    "-(%s::bigint)": lambda value: -value,
    "coalesce(NULL, %s::bigint)": lambda value: value,
    "%s::bigint %% 5": lambda value: value % 5,
    "(SELECT max(x) FROM generate_series(1, %s::bigint) t(x))": lambda value: value,
    "CASE WHEN %s::bigint > 20 THEN 1 ELSE 2 END": lambda value: 1 if value > 20 else 2,
}


def asked(connection, forms):
    """The cells of ROWS rows, in turn of these forms, and what they are."""
    texts, values, expected = [], [], []
    for row in range(1, ROWS + 1):
        form = forms[row % len(forms)]
        texts.append(f"(%s::bigint, {form})")
        values += [row] * (1 + form.replace("%%", "").count("%s"))
        expected.append((row, CELLS[form](row)))
    text = f"SELECT a, b::bigint FROM (VALUES {', '.join(texts)}) v(a, b) ORDER BY a"
    return connection.execute(text, values).fetchall(), expected


@pytest.mark.parametrize("form", CELLS)
def test_cells_of_one_form(connection, form):
    found, expected = asked(connection, [form])
    assert found == expected


@pytest.mark.parametrize("count", [2, 5, 8, len(CELLS)])
def test_cells_of_several_forms(connection, count):
    found, expected = asked(connection, [*CELLS][:count])
    assert found == expected


def test_values_of_all_kinds(connection):
    connection.execute(
        "CREATE TABLE kinds (id BIGINT PRIMARY KEY, r REAL, d DOUBLE PRECISION, n NUMERIC(38, 4),"
        " t VARCHAR, b BYTEA, j JSON, a BIGINT[], u UUID, i INTERVAL, m TIMESTAMPTZ)"
    )
    row = (0.1, -2.5, Decimal("-12345678901234567890.5"), "é'\\", b"\0\xff", {"a": [1]}, [1, None])
    rest = ("6f1e1a4e-0000-4000-8000-000000000001", "1 mon 2 days", "2024-01-31 12:00:00+01")
    cells = "(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
    values = []
    for number in range(ROWS):
        kept = [*row[:5], json.dumps(row[5]), row[6], *rest]
        values += [number, *([None] * 10 if number % 3 == 0 else kept)]
    connection.execute(f"INSERT INTO kinds VALUES {', '.join([cells] * ROWS)}", values)
    connection.execute(f"INSERT INTO kinds VALUES {cells}", [ROWS, *values[12:22]])
    (given,) = connection.execute("SELECT * FROM kinds WHERE id = %s", (ROWS,)).fetchall()
    for found in connection.execute("SELECT * FROM kinds WHERE id < %s ORDER BY id", (ROWS,)):
        wanted = (None,) * 10 if found[0] % 3 == 0 else given[1:]
        assert found[1:] == wanted
    connection.execute("DROP TABLE kinds")


def test_volatile_cells_are_computed_for_each_row(connection):
    cells = ", ".join(["(%s, random())"] * ROWS)
    found = connection.execute(
        f"SELECT count(DISTINCT b), count(DISTINCT a) FROM (VALUES {cells}) v(a, b)",
        list(range(ROWS)),
    ).fetchone()
    assert found == (ROWS, ROWS)


def test_a_literal_zero_keeps_its_sign(connection):
    cells = ", ".join(
        ["(%s::int, '0'::double precision)", "(%s::int, '-0'::double precision)"] * 10
    )
    found = connection.execute(
        f"SELECT a, b FROM (VALUES {cells}) v(a, b) ORDER BY a", list(range(20))
    ).fetchall()
    assert [math.copysign(1, zero) for _, zero in found] == [1, -1] * 10
