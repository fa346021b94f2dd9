"""COPY by both clients: data in and out, errors with their lines, all or nothing."""

from __future__ import annotations

import asyncio
import io
import itertools
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from faces import Blocking

import remuda.aio
from remuda.client.core import execution
from remuda.errors import (
    DuplicateObject,
    InputError,
    InvalidText,
    LimitExceeded,
    NotSupported,
    ObjectMismatch,
    RemudaError,
    UndefinedMap,
    UniqueViolation,
)

_names = itertools.count(1)


@pytest.fixture(scope="module")
def client(three_members):
    with three_members.connect() as client:
        client.sql("CREATE SCHEMA copied")
        yield client
        client.sql("DROP SCHEMA copied CASCADE")


@pytest.fixture
def table(client):
    name = f"copied.t{next(_names)}"
    client.sql(
        f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, name VARCHAR, price NUMERIC(10, 2) DEFAULT 1)"
    )
    return name


def rows_of(client, table):
    return [tuple(row) for row in client.sql(f"SELECT * FROM {table} ORDER BY id").fetchall()]


@pytest.fixture(params=["blocking", "asyncio"])
def face(request, client, three_members):
    """Runs a function of a client, with either."""

    async def of_asyncio(function):
        async with await remuda.aio.connect(client.addresses[0]) as found:
            return await function(found)

    async def of_blocking(function):
        return await function(Blocking(client))

    chosen = of_asyncio if request.param == "asyncio" else of_blocking
    return lambda function: asyncio.run(chosen(function))


def test_every_kind_of_source(face, client, table, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id,name\n1,one\n")
    sources = [
        (path, {"format": "csv", "header": True, "columns": ["id", "name"]}),
        (b"2\ttwo\t\\N\n", {}),
        (io.StringIO("3;three;3.5\n"), {"format": "csv", "delimiter": ";"}),
        (io.BytesIO(b"4\tfo\\tur\t4\n"), {}),
        (iter(["5\tfi", "ve\t5\n", b"6\tsix\t6\n"]), {}),
        ([(7, "seven", None), [8, None, 8]], {}),
        ([(9, "nine")], {"columns": ["id", "name"]}),
        (pa.table({"name": ["ten"], "id": [10]}), {}),
        (pa.table({"id": [11]}).to_reader(), {}),
        (iter(pa.table({"id": [12, 13]}).to_batches()), {}),
        (pd.DataFrame({"id": [14], "price": [Decimal("1.25")]}), {}),
        ([], {}),
    ]

    async def load(found):
        return [await found.copy_from(table, source, **options) for source, options in sources]

    assert face(load) == [1, 1, 1, 1, 2, 2, 1, 1, 1, 2, 1, 0]
    found = rows_of(client, table)
    assert [row[0] for row in found] == list(range(1, 15))
    assert [str(row[1]) for row in found[:4]] == ["one", "two", "three", "fo\tur"]
    assert [None if row[2] is None else float(row[2]) for row in found] == [
        1, None, 3.5, 4, 5, 6, None, 8, 1, 1, 1, 1, 1, 1.25,
    ]  # fmt: skip


def test_every_kind_of_sink(face, client, table, tmp_path):
    client.copy_from(table, [(1, "é", 1), (2, None, None)])

    class Async:
        data = b""

        async def write(self, data):
            self.data += data

    async def unload(found):
        kept, text, slow, path = io.BytesIO(), io.StringIO(), Async(), tmp_path / "out"
        query = f"SELECT id, name FROM {table} ORDER BY id; "
        counts = [
            await found.copy_to(query, kept),
            await found.copy_to(query, text, format="csv", header=True, null="-"),
            await found.copy_to(table, path, columns=["id"], format="binary"),
            await found.copy_to(f"COPY ({query[:-2]}) TO STDOUT", slow),
        ]
        return counts, kept.getvalue(), text.getvalue(), path.read_bytes(), slow.data

    counts, kept, text, binary, slow = face(unload)
    assert counts == [2, 2, 2, 2]
    assert kept == slow == "1\té\n2\t\\N\n".encode()
    assert text == "id,name\n1,é\n2,-\n"
    assert binary.startswith(b"PGCOPY\n\xff\r\n\0")
    assert len(binary) == 19 + 2 * 14 + 2


def test_what_goes_out_comes_in(client, table):
    """More than the pieces that are under way at a time, in each format."""
    numbers = range(20_000)
    assert client.copy_from(table, ((n, "x" * (n % 200), n) for n in numbers)) == 20_000
    for form in ("text", "csv", "binary"):
        data = io.BytesIO()
        assert client.copy_to(table, data, format=form) == 20_000
        before = rows_of(client, table)
        client.sql(f"TRUNCATE {table}")
        data.seek(0)
        assert client.copy_from(table, data, format=form) == 20_000
        assert rows_of(client, table) == before


@pytest.mark.parametrize(
    ("target", "source", "options", "kind", "said"),
    [
        ("{t}", b"1\tx\t1\n2\tx\n", {}, RemudaError, "line 2"),
        ("{t}", b"1\tx\t1\nq\tx\t1\n", {}, InvalidText, 'line 2, column id: "q"'),
        ("{t}", b"7\tx\t1\n7\ty\t1\n", {}, UniqueViolation, "(id)=(7)"),
        ("{t}", [(1, "x", "y")], {}, ObjectMismatch, "price"),
        ("{t}", [(1, "x")], {}, ObjectMismatch, "a tuple of 2, not a tuple or list of 3"),
        ("{t}", [1], {}, ObjectMismatch, "of type int"),
        ("{t}", pa.table({"nix": [1]}), {}, RemudaError, "nix"),
        ("{t}", [(1, "x", 1)], {"format": "csv"}, InputError, "a format of their own"),
        ("COPY {t} FROM STDIN", [(1, "x", 1)], {}, InputError, "a format of their own"),
        ("COPY {t} FROM STDIN", b"", {"header": True}, InputError, "beside a COPY statement"),
        ("COPY {t} TO STDOUT", b"", {}, InputError, "copy_from runs COPY ... FROM STDIN"),
        ("{t}", 7, {}, InputError, "cannot read from int"),
        ("{t}", {"id": 1}, {}, InputError, "cannot read from dict"),
        ("{t}", [b"1", 2], {}, InputError, "bytes or text, not int"),
        ("{t}", "/nowhere/at all", {}, InputError, "No such file"),
        ("{t}", b"", {"format": "xml"}, RemudaError, '"xml" not recognized'),
        ("{t}", b"", {"delimiter": 7}, InputError, "a text or a bool, not 7"),
        ("{t}", b"", {"columns": "id"}, InputError, "a list of names"),
        ("nowhere", b"", {}, UndefinedMap, "nowhere"),
    ],
)
def test_errors(client, table, target, source, options, kind, said):
    with pytest.raises(kind) as caught:
        client.copy_from(target.format(t=table), source, **options)
    assert said in str(caught.value)
    assert rows_of(client, table) == []
    assert client.copy_from(table, b"1\tx\t1\n") == 1  # the connection is as good as before


def test_errors_of_what_goes_out(client, table, tmp_path):
    client.copy_from(table, b"1\tx\t1\n")
    for target, sink, options, said in [
        (table, 7, {}, "cannot write to int"),
        (table, tmp_path, {}, "could not write file"),
        (f"COPY {table} FROM STDIN", io.BytesIO(), {}, "copy_to runs COPY ... TO STDOUT"),
        ("SELECT 1", io.BytesIO(), {"columns": ["x"]}, "SELECT list"),
        ("SELECT 1/0", io.BytesIO(), {}, "division by zero"),
        (table, io.StringIO(), {"format": "binary"}, "no UTF-8 text"),
    ]:
        with pytest.raises(RemudaError, match=said.replace(".", r"\.")):
            client.copy_to(target, sink, **options)
    with pytest.raises(NotSupported, match="need a client that carries their data"):
        client.sql(f"COPY {table} FROM STDIN")


def test_a_source_that_fails_leaves_nothing(face, client, table):
    def broken():
        yield b"".join(b"%d\tx\t1\n" % n for n in range(200_000))
        yield b"300000\tx\t1\n"
        raise DuplicateObject("mine")

    async def load(found):
        with pytest.raises(DuplicateObject, match="mine"):
            await found.copy_from(table, broken())
        return await found.copy_from(table, b"1\tx\t1\n")

    assert face(load) == 1
    assert [row[0] for row in rows_of(client, table)] == [1]


def test_a_wrong_row_ends_a_long_load_early(client, table, monkeypatch):
    monkeypatch.setattr(execution, "PIECES_IN_FLIGHT", 1)
    taken = []

    def endless():
        for number in itertools.count():
            taken.append(number)
            yield b"wrong\n" * 100_000

    with pytest.raises(RemudaError, match="line 1"):
        client.copy_from(table, endless())
    assert len(taken) < 100


def test_in_transactions(client, table):
    with client.transaction() as tx:
        assert tx.copy_from(table, [(1, "x", 1)]) == 1
        data = io.BytesIO()
        assert tx.copy_to(table, data) == 1
        assert client.sql(f"SELECT count(*) FROM {table}").fetchall() == [(0,)]
    assert data.getvalue() == b"1\tx\t1.00\n"
    client.sql("BEGIN")
    assert client.copy_from(table, b"2\tx\t1\n") == 1
    client.sql("ROLLBACK")
    client.sql("BEGIN")
    with pytest.raises(InvalidText):
        client.copy_from(table, b"q\tx\t1\n")
    assert client.transaction_state.name == "MARKED_ROLLBACK"
    client.sql("ROLLBACK")
    assert [row[0] for row in rows_of(client, table)] == [1]


def test_in_a_transaction_on_asyncio(client, table):
    async def load():
        async with (
            await remuda.aio.connect(client.addresses[0]) as found,
            found.transaction() as tx,
        ):
            loaded = await tx.copy_from(table, b"1\tx\t1\n")
            return loaded, await tx.copy_to(table, io.BytesIO())

    assert asyncio.run(load()) == (1, 1)
    assert [row[0] for row in rows_of(client, table)] == [1]


def test_a_copy_that_is_too_large_for_its_transaction(client, table):
    """One that has written something else before; alone, any size fits."""
    data = b"".join(b"%d\t%s\t1\n" % (n, b"x" * 2000) for n in range(40_000))
    with (
        pytest.raises(LimitExceeded, match="has written more than") as caught,
        client.transaction() as tx,
    ):
        tx.copy_from(table, b"-1\tx\t1\n")
        tx.copy_from(table, data)
    assert "outside of a transaction" in caught.value.hint
    assert rows_of(client, table) == []
    with client.transaction() as tx:
        assert tx.copy_from(table, data) == 40_000
    assert client.sql(f"SELECT count(*) FROM {table}").fetchall() == [(40_000,)]
