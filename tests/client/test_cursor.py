"""Statements and cursors against fake members."""

from __future__ import annotations

import dataclasses
import socket
import threading
from decimal import Decimal

import pyarrow as pa
import pytest

from remuda.client.blocking.client import connect
from remuda.client.network import backoff
from remuda.datatypes import sql
from remuda.datatypes.hashes.keyhash import hasher, partition_of
from remuda.datatypes.schema import Column, MapSchema
from remuda.errors import (
    ConnectionBroken,
    DivisionByZero,
    InputError,
    MemberUnavailable,
    NotSupported,
    Position,
    QueryCanceled,
    SqlSyntaxError,
    TransientError,
    TypeMismatch,
)
from remuda.rpc import type_codec
from remuda.rpc.messages import user_pb2
from remuda.rpc.packing import packer

COLUMNS = (Column("n", sql.BIGINT), Column("price", sql.decimal(9, 2)), Column("s", sql.VARCHAR))


def page(start: int, count: int) -> pa.RecordBatch:
    """Engine form: the short decimal is an int64."""
    numbers = list(range(start, start + count))
    return pa.record_batch(
        {
            "n": pa.array(numbers, pa.int64()),
            "price": pa.array([n * 100 for n in numbers], pa.int64()),
            "s": pa.array([None if n % 2 else f"s{n}" for n in numbers]),
        }
    )


@pytest.fixture
def numbers(grid, script):
    grid.scripts["numbers"] = script(COLUMNS, tuple(page(i * 10, 10) for i in range(20)))
    grid.scripts["endless"] = script(COLUMNS, (page(0, 10),), endless=True)
    grid.scripts["none"] = script(COLUMNS, (page(0, 0),))
    grid.scripts["create"] = script(tag="CREATE TABLE")
    grid.scripts["insert"] = script(tag="INSERT", affected=7)


@pytest.mark.usefixtures("numbers")
class TestReading:
    def test_iterates_rows_of_python_values(self, client):
        cursor = client.sql("numbers")
        assert cursor.rowcount == -1
        assert cursor.fetchone() == (0, Decimal("0.00"), "s0")
        row = cursor.fetchone()
        assert (row.n, row.price, row.s) == (1, Decimal("1.00"), None)
        assert [r.n for r in cursor.fetchmany(25)] == list(range(2, 27))
        assert len(cursor.fetchall()) == 173
        assert cursor.fetchone() is None
        assert cursor.fetchmany(5) == []
        assert cursor.rowcount == 200
        assert cursor.columns == COLUMNS

    def test_arrow_and_pandas(self, client):
        table = client.sql("numbers").to_arrow()
        assert table.num_rows == 200
        assert table.schema.field("price").type == pa.decimal128(9, 2)
        assert client.sql("numbers").to_pandas()["n"].sum() == 19900
        assert sum(batch.num_rows for batch in client.sql("numbers").batches()) == 200

    def test_an_empty_result_has_columns(self, client):
        cursor = client.sql("none")
        assert cursor.fetchall() == []
        assert cursor.to_arrow().schema.names == ["n", "price", "s"]

    def test_statements_without_a_result(self, client):
        cursor = client.sql("create")
        assert (cursor.tag, cursor.columns, cursor.fetchall()) == ("CREATE TABLE", (), [])
        assert client.sql("insert").rowcount == 7

    def test_scalar(self, client):
        assert client.sql("numbers").scalar() == 0
        assert client.sql("none").scalar() is None

    def test_polars_is_optional(self, client, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "polars", None)
        with pytest.raises(NotSupported, match="polars"):
            client.sql("numbers").to_polars()


@pytest.mark.usefixtures("numbers")
class TestEnding:
    def running(self, grid):
        return [run for member in grid.members for run in member.running]

    def test_reading_is_bounded_by_acknowledgement(self, client, grid):
        cursor = client.sql("endless")
        (run,) = self.running(grid)
        cursor.fetchmany(5)
        grid.run(lambda: None)
        assert run.sent <= 3 + 1
        cursor.close()

    def test_closing_early_cancels_and_keeps_the_connection(self, client, grid):
        for _ in range(5):
            with client.sql("endless") as cursor:
                assert cursor.fetchone().n == 0
        assert all(run.over for run in self.running(grid))
        channels = sum(len(grid.run(lambda m=m: m.server.channels)) for m in grid.members)
        assert channels <= 4  # three members, and perhaps the first contact
        with pytest.raises(InputError, match="the cursor is closed"):
            cursor.fetchone()

    def test_closing_at_the_end_sends_nothing(self, client, grid):
        with client.sql("none") as cursor:
            cursor.fetchall()
        cursor.close()
        assert all(user_pb2.CANCEL_QUERY not in member.requests for member in grid.members)

    def test_a_forgotten_cursor_frees_its_query(self, client, grid):
        cursor = client.sql("endless")
        (run,) = self.running(grid)
        del cursor
        assert run.member.gone.wait(10)

    def test_cancel_from_another_thread(self, client):
        cursor = client.sql("endless")
        cursor.fetchone()
        canceler = threading.Thread(target=cursor.cancel)
        canceler.start()
        with pytest.raises(QueryCanceled, match="canceled by the user"):
            for _ in cursor:
                pass
        canceler.join()
        with pytest.raises(QueryCanceled):
            cursor.fetchone()


class TestErrors:
    def test_the_same_class_with_statement_and_caret(self, client, grid, script):
        error = SqlSyntaxError("unexpected FORM", position=Position(1, 10, 9, 4))
        grid.scripts["SELECT a FORM b"] = script(error=error)
        with pytest.raises(SqlSyntaxError) as caught:
            client.sql("SELECT a FORM b")
        assert str(caught.value).splitlines() == [
            "unexpected FORM",
            "LINE 1: SELECT a FORM b",
            "                 ^^^^",
        ]

    def test_an_error_after_some_rows(self, client, grid, script):
        grid.scripts["q"] = script(COLUMNS, (page(0, 10),) * 5, error=DivisionByZero("by zero"))
        cursor = client.sql("q")
        with pytest.raises(DivisionByZero):
            cursor.fetchall()
        grid.scripts["ok"] = script(COLUMNS, (page(0, 1),))
        assert len(client.sql("ok").fetchall()) == 1

    def test_a_result_that_overtakes_the_handle(self, client, grid, script):
        grid.scripts["q"] = script(error=DivisionByZero("by zero"), result_first=True)
        grid.scripts["ddl"] = script(result_first=True, tag="DROP TABLE")
        for _ in range(4):
            with pytest.raises(DivisionByZero):
                client.sql("q")
            assert client.sql("ddl").tag == "DROP TABLE"

    def test_a_member_that_leaves(self, client, grid, script):
        grid.scripts["endless"] = script(COLUMNS, (page(0, 10),), endless=True)
        cursor = client.query("endless", member=2)
        cursor.fetchone()
        grid.stop_member(2)
        with pytest.raises((ConnectionBroken, TransientError), match="member 2"):
            for _ in cursor:
                pass
        with pytest.raises(MemberUnavailable, match=r"member 2 .* is not reachable"):
            client.query("endless", member=2)
        client.query("endless", member=1).close()

    def test_reads_are_retried_on_request(self, grid, script):
        grid.scripts["SELECT 1"] = script(COLUMNS, (page(0, 1),))
        with connect(grid.addresses, retry_reads=2) as client:
            grid.stop_member(2)
            for _ in range(4):
                assert len(client.sql("SELECT 1").fetchall()) == 1

    def test_a_statement_for_any_member_passes_over_those_that_are_gone(self, grid, script):
        grid.scripts["INSERT"] = script(COLUMNS, (page(0, 1),))
        with connect(grid.addresses) as client:
            grid.stop_member(2)
            client._core.pool(2).drop_idle()
            for _ in range(4):
                assert len(client.sql("INSERT").fetchall()) == 1
                assert client.cluster_info().member != 2
            grid.stop_member(1)
            grid.stop_member(3)
            for number in (1, 3):
                client._core.pool(number).drop_idle()
            with pytest.raises(MemberUnavailable, match="is not reachable"):
                client.sql("INSERT")

    def test_silence_is_named(self, grid):
        grid.silent.add("describe_map")
        expected = r"member \d .* did not answer within 0\.05"
        with (
            connect(grid.addresses[0]) as client,
            pytest.raises(MemberUnavailable, match=expected),
        ):
            client.with_timeout(0.05).describe("m")

    def test_a_member_that_hangs_costs_one_request_its_timeout(self, grid, monkeypatch):
        monkeypatch.setattr(backoff, "_LONG", 0.0)
        with connect(grid.addresses[0]) as client, socket.socket() as hangs:
            hangs.bind(("127.0.0.1", 0))
            hangs.listen()
            pool = client._core.pool(2)
            pool.drop_idle()
            pool.port = hangs.getsockname()[1]
            pool.settings = dataclasses.replace(pool.settings, connect_timeout=0.05)
            with pytest.raises(MemberUnavailable, match=r"member 2 .* did not shake hands"):
                client.cluster_info(2)
            with pytest.raises(MemberUnavailable, match=r"member 2 .* did not answer a moment ago"):
                client.cluster_info(2)
            assert client.cluster_info(1).member == 1
            pool.backoff.until = 0.0
            with pytest.raises(MemberUnavailable, match=r"member 2 .* did not shake hands"):
                client.cluster_info(2)

    def test_nobody_there(self, grid):
        port = grid.view.members[0].user_port
        grid.stop_member(1)
        with pytest.raises(MemberUnavailable, match=rf"127\.0\.0\.1:{port} is not reachable"):
            connect(f"127.0.0.1:{port}")
        with connect([f"127.0.0.1:{port}", grid.addresses[1]]) as client:
            assert client.cluster_info(2).member == 2

    def test_unknown_member_and_closed_client(self, grid):
        client = connect(grid.addresses)
        with pytest.raises(InputError, match="no member 9"):
            client.query("x", member=9)
        client.close()
        client.close()
        with pytest.raises(ConnectionBroken, match="client is closed"):
            client.cluster_info()


class TestParameters:
    def test_types_travel_with_the_values(self, client, grid, script):
        grid.scripts["q"] = script(COLUMNS, (page(0, 0),))
        client.sql("q", 1, "x", None, Decimal("1.5"))
        client.sql("q", (1, "x", None, Decimal("1.5")))
        for _, message in grid.statements:
            types = type_codec.decode_types(message.parameter_types)
            assert types[:3] == (sql.BIGINT, sql.VARCHAR, sql.NULL)
            assert packer(types).unpack(message.parameters) == (1, "x", None, 15)

    def test_unfit_parameters(self, client):
        with pytest.raises(TypeMismatch, match="parameter 2: the Python type set"):
            client.sql("q", 1, {1})
        with pytest.raises(InputError, match="named parameters"):
            client.sql("q", {"a": 1})

    def test_options(self, client, grid, script):
        grid.scripts["q"] = script(COLUMNS, (page(0, 0),))
        client.query("q", member=3, partitions=[2, 5], at=77, local=True, timeout=3, page_rows=9)
        ((number, message),) = grid.statements
        assert number == 3
        assert list(message.partitions) == [2, 5]
        assert (message.read_timestamp, message.local_only) == (77, True)
        assert (message.timeout, message.page_rows) == (3, 9)


class TestPrepared:
    TEXT = "SELECT * FROM m WHERE id = ?"

    @pytest.fixture
    def statement(self, client, grid, script):
        columns = (Column("id", sql.BIGINT, False), Column("v", sql.VARCHAR))
        client.create_map(MapSchema("m", columns, ("id",), ("id",)))
        grid.prepared[self.TEXT] = ((sql.BIGINT,), (0,))
        grid.scripts[self.TEXT] = script(COLUMNS, (page(0, 1),))
        return client.prepare(self.TEXT)

    def test_goes_to_the_owner_of_the_key(self, statement, grid):
        for key in range(20):
            assert statement(key).fetchone().n == 0
        for key, (number, message) in enumerate(grid.statements):
            assert message.type == user_pb2.PREPARED_STATEMENT_TYPE
            assert number == grid.view.owners[partition_of(hasher((sql.BIGINT,))((key,)))]

    def test_sends_the_types_of_the_values(self, statement, grid):
        assert statement.parameter_types == (sql.BIGINT,)
        for value, declared in ((None, sql.NULL), ("x", sql.VARCHAR), (1.5, sql.DOUBLE)):
            assert statement(value).fetchone().n == 0
            _, message = grid.statements[-1]
            assert type_codec.decode_types(message.parameter_types) == (declared,)


def test_threads_share_a_client(client, grid, script):
    grid.scripts["q"] = script(COLUMNS, (page(0, 10),) * 3)
    failures = []

    def work():
        try:
            handle = client.map("shared")
            for number in range(50):
                handle.put(number, number)
                assert handle.get(number) == number
                assert len(client.sql("q").fetchall()) == 30
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
