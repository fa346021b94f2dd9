"""Random data and options: PostgreSQL 15 and the readers take the same rows, or refuse them by the
same SQLSTATE. PostgreSQL reads the rows that the writers write, and the other way round."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import tempfile
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from remuda.copying.binary_reading import BinaryReader
from remuda.copying.options import Format, Given, options_of
from remuda.copying.reading import Target, TextReader
from remuda.copying.writing import RowWriter
from remuda.datatypes import sql
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.values import from_physical, to_physical, values_to_array
from remuda.errors import RemudaError

PROGRAMS = Path("/usr/lib/postgresql/15/bin")
SEEDS = 150
COLUMNS = [
    Column("a", sql.INTEGER),
    Column("b", sql.VARCHAR),
    Column("c", SqlType(Kind.VARCHAR, length=5)),
]
TYPES = [sql.BIGINT, sql.VARCHAR, sql.decimal(12, 3), sql.BOOLEAN, sql.DOUBLE, sql.BYTEA]


@pytest.fixture(scope="module")
def postgres():
    if not (PROGRAMS / "initdb").exists():
        pytest.skip("PostgreSQL 15 is not installed")
    user = "postgres" if os.geteuid() == 0 else None  # it refuses to run as root
    # Not below pytest's folder, which other users may not enter.
    with tempfile.TemporaryDirectory(prefix="remuda-copy-", ignore_cleanup_errors=True) as top:
        if user is not None:
            shutil.chown(top, user)
        yield from _server(Path(top), user)


def _server(top, user):
    data = str(top / "data")
    initdb = [str(PROGRAMS / "initdb"), "-D", data, "-A", "trust", "-U", "postgres", "--no-sync",
              "-E", "UTF8", "--locale=C"]  # fmt: skip
    subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, user=user, cwd=top)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    control = [str(PROGRAMS / "pg_ctl"), "-D", data, "-w", "-t", "60", "-l", str(top / "log")]
    options = f"-p {port} -h 127.0.0.1 -k {top}"
    subprocess.run(
        [*control, "-o", options, "start"],
        check=True, stdout=subprocess.DEVNULL, user=user, cwd=top,
    )  # fmt: skip
    try:
        address = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        with psycopg.connect(address, autocommit=True) as connection:
            yield connection
    finally:
        subprocess.run(
            [*control, "-m", "fast", "stop"],
            check=True, stdout=subprocess.DEVNULL, user=user, cwd=top,
        )  # fmt: skip


def random_options(chance, *, csv):
    found = {"format": "csv"} if csv else {}
    if chance.random() < 0.1:
        found["header"] = chance.choice(["true", "match"])
    if chance.random() < 0.3:
        found["delimiter"] = chance.choice(["|", ",", ";", "\t"])
    if chance.random() < 0.3:
        found["null"] = chance.choice(["", "x", "NULL", "\\N", "\\\\"])
    if csv and chance.random() < 0.3:
        found["quote"] = chance.choice(["'", '"'])
    if csv and chance.random() < 0.3:
        found["escape"] = chance.choice(["\\", "'", '"'])
    if csv and chance.random() < 0.2:
        found["force_null"] = ("b",)
    if csv and chance.random() < 0.2:
        found["force_not_null"] = ("b", "c")
    return found


def random_data(chance, options, *, csv):
    delimiter = options.get("delimiter", "," if csv else "\t")
    line_end = chance.choice(["\n"] * 5 + ["\r\n", "\r"])
    parts = ["a", "b", "\\", "\\N", "\\n", '"', "'", '""', delimiter, "é", "\n", "\r", "\\x41",
             "\\101", "\\" + delimiter, " ", "x"]  # fmt: skip

    def value():
        kind = chance.random()
        if kind < 0.3:
            return str(chance.randrange(-9, 999))
        if kind < 0.4:
            return options.get("null", "" if csv else "\\N")
        if kind < 0.7:
            return chance.choice("ab1x")
        return "".join(chance.choice(parts) for _ in range(chance.randrange(4)))

    def written(text):
        if not csv or chance.random() < 0.6:
            return text
        quote = options.get("quote", '"')
        escape = options.get("escape", quote)
        for mark in dict.fromkeys((escape, quote)):
            text = text.replace(mark, escape + mark)
        return quote + text + quote

    clean = chance.random() < 0.6
    lines = []
    for _ in range(chance.randrange(6)):
        count = 3 if chance.random() < 0.95 else chance.randrange(5)
        row = [str(chance.randrange(100)) if clean else value(), *(value() for _ in range(4))]
        lines.append(delimiter.join(written(text) for text in row[:count]))
    text = line_end.join(lines) + (line_end if chance.random() < 0.8 else "")
    return text.encode()


def statement_of(table, options):
    def quoted(value):
        if isinstance(value, tuple):
            return f"({', '.join(value)})"
        return "E'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    listed = ", ".join(f"{name} {quoted(value)}" for name, value in options.items())
    return f"COPY {table} FROM STDIN" + (f" ({listed})" if listed else "")


def by_postgresql(connection, options, data):
    connection.execute("CREATE TEMPORARY TABLE IF NOT EXISTS t (a INT, b TEXT, c VARCHAR(5))")
    connection.execute("TRUNCATE t")
    try:
        with connection.cursor().copy(statement_of("t", options)) as copy:
            copy.write(data)
    except psycopg.Error as error:
        return error.sqlstate
    return connection.execute("SELECT a, b, c FROM t ORDER BY ctid").fetchall()


def by_reader(options, data, chance):
    """In pieces of random sizes."""
    given = [Given(name, value, None) for name, value in options.items()]
    found = []
    try:
        reader = TextReader(Target("t", COLUMNS, "UTC"), options_of(given, incoming=True))
        at = 0
        while at < len(data):
            size = chance.randrange(1, 40)
            for batch in reader.feed(data[at : at + size]):
                found += zip(*(column.to_pylist() for column in batch), strict=True)
            at += size
        for batch in reader.end():
            found += zip(*(column.to_pylist() for column in batch), strict=True)
    except RemudaError as error:
        return error.sqlstate
    return found


@pytest.mark.parametrize("csv", [False, True], ids=["text", "csv"])
def test_readers_take_what_postgresql_takes(postgres, monkeypatch, csv):
    differences = []
    for seed in range(SEEDS):
        chance = random.Random(seed)
        monkeypatch.setattr("remuda.copying.reading.PIECE_SIZE", chance.choice([1, 7, 10**6]))
        options = random_options(chance, csv=csv)
        data = random_data(chance, options, csv=csv)
        expected = by_postgresql(postgres, options, data)
        found = by_reader(options, data, chance)
        if found != expected:
            differences.append((seed, statement_of("t", options), data, expected, found))
    assert differences == []


def random_rows(chance):
    texts = ["", "a", "\\N", "NULL", 'say "x"', "tab\there", "line\nend\r", "\\.", "é\\", " , "]

    def row(number):
        return (
            number,
            chance.choice([None, *texts]),
            chance.choice([None, Decimal(chance.randrange(-(10**9), 10**9)) / 1000]),
            chance.choice([None, True, False]),
            chance.choice([None, 0.1, -1e300, chance.random()]),
            chance.choice([None, b"", b"\x00\\\xff"]),
        )

    return [row(number) for number in range(chance.randrange(30))]


@pytest.mark.parametrize("form", list(Format))
def test_rows_travel_both_ways(postgres, form):
    postgres.execute(
        "CREATE TEMPORARY TABLE IF NOT EXISTS u"
        " (a BIGINT, b TEXT, c NUMERIC(12,3), d BOOLEAN, e DOUBLE PRECISION, f BYTEA)"
    )
    options = options_of([Given("format", form.value, None)], incoming=False)
    target = Target("u", [Column(n, t) for n, t in zip("abcdef", TYPES, strict=True)], "UTC")
    for seed in range(20):
        postgres.execute("TRUNCATE u")
        rows = random_rows(random.Random(seed))
        columns = [
            values_to_array([None if r[p] is None else to_physical(r[p], t) for r in rows], t)
            for p, t in enumerate(TYPES)
        ]
        writer = RowWriter("abcdef", TYPES, options, "UTC", framed=False)
        data = writer.head() + bytes(writer.rows(columns, len(rows))) + writer.tail()
        with postgres.cursor().copy(f"COPY u FROM STDIN (FORMAT {form.value})") as copy:
            copy.write(data)
        assert postgres.execute("SELECT * FROM u ORDER BY a").fetchall() == rows
        with postgres.cursor().copy(f"COPY u TO STDOUT (FORMAT {form.value})") as copy:
            theirs = b"".join(bytes(piece) for piece in copy)
        assert theirs == data
        reader = BinaryReader(target) if form is Format.BINARY else TextReader(target, options)
        batches = [*reader.feed(theirs), *reader.end()]
        found = []
        for batch in batches:
            values = [
                [None if v is None else from_physical(v, t) for v in array.to_pylist()]
                for array, t in zip(batch, TYPES, strict=True)
            ]
            found += zip(*values, strict=True)
        assert found == rows
