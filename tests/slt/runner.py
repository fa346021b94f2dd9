"""A runner for sqllogictest files: statements and queries with their expected results.

Supported records: ``statement ok``, ``statement error [REGEX or SQLSTATE]``, ``query TYPES
[nosort|rowsort|valuesort]`` with ``----``, ``halt``, and ``skipif``/``onlyif`` lines that name a
variant. Types are only counted; values are rendered as DuckDB's runner does (NULL, (empty), floats
with their shortest form unless the column is ``R``, which is compared within a relative 1e-6).
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from remuda.errors import RemudaError

Execute = Callable[[str], Sequence[Sequence[object]]]


@dataclass
class Record:
    line: int
    kind: str
    sql: str
    types: str = ""
    sort: str = "nosort"
    error: str | None = None
    expected: list[str] = field(default_factory=list)
    skip: set[str] = field(default_factory=set)
    only: set[str] = field(default_factory=set)


def parse_file(path: Path) -> Iterator[Record]:
    lines = path.read_text(encoding="utf-8").splitlines()
    index = 0
    skip: set[str] = set()
    only: set[str] = set()
    while index < len(lines):
        line = lines[index].strip()
        start = index + 1
        index += 1
        if not line or line.startswith("#"):
            continue
        words = line.split()
        if words[0] in ("skipif", "onlyif"):
            (skip if words[0] == "skipif" else only).update(words[1:])
            continue
        if words[0] == "halt":
            return
        sql: list[str] = []
        while index < len(lines) and lines[index].strip() not in ("", "----"):
            sql.append(lines[index])
            index += 1
        expected: list[str] = []
        if index < len(lines) and lines[index].strip() == "----":
            index += 1
            while index < len(lines) and lines[index].strip() != "":
                expected.append(lines[index])
                index += 1
        record = Record(start, words[0], "\n".join(sql), expected=expected, skip=skip, only=only)
        if words[0] == "statement":
            record.error = " ".join(words[2:]) if words[1] == "error" else None
            record.kind = "error" if words[1] == "error" else "statement"
        elif words[0] == "query":
            record.types = words[1]
            record.sort = words[2] if len(words) > 2 else "nosort"
        else:
            raise ValueError(f"{path.name}:{start}: unknown record '{line}'")
        yield record
        skip, only = set(), set()


def render(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case float():
            if math.isnan(value):
                return "NaN"
            if math.isinf(value):
                return "Infinity" if value > 0 else "-Infinity"
            return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
        case Decimal():
            return f"{value:f}"
        case dt.datetime():
            return value.isoformat(sep=" ")
        case bytes():
            return "\\x" + value.hex()
        case "":
            return "(empty)"
        case _:
            return str(value).replace("\n", "\\n")


def equal(expected: str, actual: str, type_letter: str) -> bool:
    if expected == actual:
        return True
    if type_letter != "R":
        return False
    try:
        return math.isclose(float(expected), float(actual), rel_tol=1e-6, abs_tol=1e-9)
    except ValueError:
        return False


def run_record(record: Record, execute: Execute) -> None:
    """Raises AssertionError with the place when the record does not hold."""
    if record.kind == "statement":
        execute(record.sql)
        return
    if record.kind == "error":
        try:
            rows = execute(record.sql)
        except RemudaError as error:
            text = f"{error.sqlstate} {error}"
            if record.error and not re.search(record.error, text):
                raise AssertionError(f"expected /{record.error}/, got: {text}") from error
            return
        raise AssertionError(f"expected an error, got {len(rows)} rows")
    rows = [[render(value) for value in row] for row in execute(record.sql)]
    for row in rows:
        assert len(row) == len(record.types), f"{len(row)} columns, expected {len(record.types)}"
    expected = [line.split("\t") if "\t" in line else None for line in record.expected]
    if any(len(record.types) > 1 and line is None for line in expected):
        expected_rows = [line.split() for line in record.expected]
    else:
        expected_rows = [
            line or [text] for line, text in zip(expected, record.expected, strict=True)
        ]
    if record.sort == "rowsort":
        rows.sort()
        expected_rows.sort()
    elif record.sort == "valuesort":
        rows = [[value] for value in sorted(value for row in rows for value in row)]
        expected_rows = [[value] for value in sorted(v for row in expected_rows for v in row)]
    same = len(rows) == len(expected_rows) and all(
        len(left) == len(right)
        and all(
            equal(left[i], right[i], record.types[min(i, len(record.types) - 1)])
            for i in range(len(left))
        )
        for left, right in zip(expected_rows, rows, strict=True)
    )
    if not same:
        shown = "\n".join("\t".join(row) for row in rows[:50])
        wanted = "\n".join("\t".join(row) for row in expected_rows[:50])
        raise AssertionError(f"expected:\n{wanted}\ngot:\n{shown}")


def run_file(path: Path, execute: Execute, variant: str) -> int:
    """Run every record; the number of records run. Raises AssertionError naming file and line."""
    count = 0
    for record in parse_file(path):
        if variant in record.skip or (record.only and variant not in record.only):
            continue
        try:
            run_record(record, execute)
        except (AssertionError, RemudaError) as error:
            place = f"{path.name}:{record.line} [{variant}]"
            raise AssertionError(f"{place}\n{record.sql}\n{error}") from error
        count += 1
    return count
