"""The pure parts of the client: rows, predicates, addresses, routing, results, the public names."""

from __future__ import annotations

import copy
import inspect
import pickle
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import remuda
from remuda.client.blocking.client import Client
from remuda.client.core.routing import Router
from remuda.client.embedded.ready import parse_ready
from remuda.client.network.address import format_address, parse_address, parse_addresses
from remuda.client.operations.job_frames import FRAME_SIZE
from remuda.client.requests import requests
from remuda.client.requests.result_stream import ResultStream
from remuda.client.values.arrow_stream import decode_stream, encode_stream, pieces
from remuda.client.values.row import Row, make_rows, row_class
from remuda.cluster.assignment import first_view
from remuda.datatypes import sql
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.view import MemberInfo
from remuda.errors import InputError, ProtocolError
from remuda.rpc.messages import user_pb2

VIEW = first_view(tuple(MemberInfo(n, f"u{n}", "h", n, n, n) for n in (1, 2, 3)))


class TestRow:
    def test_items_by_name_position_and_slice(self):
        row = row_class(("carrier", "count", "a b", "__key"))._make(("UA", 3, 1.5, 9))
        assert (row.carrier, row.count, row["a b"], row["__key"]) == ("UA", 3, 1.5, 9)
        assert (row[0], row[-1], row[1:3]) == ("UA", 9, (3, 1.5))
        assert row == ("UA", 3, 1.5, 9)
        assert hash(row) == hash(("UA", 3, 1.5, 9))
        carrier, *_ = row
        assert carrier == "UA"
        assert repr(row) == "Row(carrier='UA', count=3, a b=1.5, __key=9)"
        with pytest.raises(KeyError, match="no column 'x'"):
            row["x"]
        with pytest.raises(AttributeError, match="no column 'x'"):
            row.x  # noqa: B018
        with pytest.raises(AttributeError):
            row.carrier = "AA"

    def test_copies_and_pickles(self):
        row = row_class(("a", "b"))._make((1, 2))
        for copied in (pickle.loads(pickle.dumps(row)), copy.deepcopy(row)):
            assert copied == row
            assert copied.b == 2
            assert isinstance(copied, Row)

    def test_columns_with_one_name_mean_the_first(self):
        row = make_rows(["a", "a"], [[1], [2]], 1)[0]
        assert (row.a, tuple(row), row._asdict()) == (1, (1, 2), {"a": 1})

    def test_rows_without_columns(self):
        assert make_rows([], [], 2) == [(), ()]


class TestPredicates:
    @pytest.mark.parametrize(
        ("condition", "text", "parameters"),
        [
            (remuda.col("a") > 30, '("a" > ?)', (30,)),
            (remuda.col("a") == None, '("a" IS NULL)', ()),  # noqa: E711
            (remuda.col("a") != "x", '("a" <> ?)', ("x",)),
            (remuda.col("a") + 1 <= remuda.col("b"), '(("a" + ?) <= "b")', (1,)),
            (1 - remuda.col("a") < 2, '((? - "a") < ?)', (1, 2)),
            (-remuda.col("a") >= 0, '((- "a") >= ?)', (0,)),
            (remuda.col("a").in_(1, 2), '("a" IN (?, ?))', (1, 2)),
            (remuda.col("a").in_([1]), '("a" IN (?))', (1,)),
            (remuda.col("a").in_([]), "(1 = 0)", ()),
            (remuda.col("a").in_("xy"), '("a" IN (?))', ("xy",)),
            (remuda.col("a").between(1, 2), '("a" BETWEEN ? AND ?)', (1, 2)),
            (remuda.col("a").like("x%"), '("a" LIKE ?)', ("x%",)),
            (remuda.col("a").starts_with("x"), 'starts_with("a", ?)', ("x",)),
            (~remuda.col("a").is_not_null(), '(NOT ("a" IS NOT NULL))', ()),
            (
                (remuda.col('q"x') == 1) & remuda.col("b") | (remuda.col("c") < 2),
                '((("q""x" = ?) AND "b") OR ("c" < ?))',
                (1, 2),
            ),
        ],
    )
    def test_become_sql_with_parameters(self, condition, text, parameters):
        assert (condition.sql, condition.parameters) == (text, parameters)

    def test_have_no_truth_value(self):
        with pytest.raises(InputError, match="no truth value"):
            bool(remuda.col("a") > 1)
        with pytest.raises(InputError, match="no truth value"):
            remuda.col("a") > 1 and remuda.col("b") > 1
        with pytest.raises(InputError, match="cannot be combined"):
            (remuda.col("a") > 1) & True


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("h:1", ("h", 1)),
        ("h", ("h", 31010)),
        (" h:1 ", ("h", 1)),
        (":7", ("127.0.0.1", 7)),
        ("[::1]:5", ("::1", 5)),
        ("[::1]", ("::1", 31010)),
        ("::1", ("::1", 31010)),
    ],
)
def test_addresses(text, expected):
    assert parse_address(text) == expected


@pytest.mark.parametrize("text", ["h:x", "h:0", "h:70000", "h:", "", "[::1", "[::1]5"])
def test_bad_addresses(text):
    with pytest.raises(InputError, match="is no address"):
        parse_address(text)


def test_lists_of_addresses():
    expected = (("a", 1), ("b", 2))
    for given in ("a:1,b:2", ["a:1", "b:2"], [("a", 1), "b:2"], ["a:1,b:2"]):
        assert parse_addresses(given) == expected
    assert parse_addresses(("a", 1)) == (("a", 1),)
    assert format_address("::1", 5) == "[::1]:5"
    with pytest.raises(InputError, match="no address"):
        parse_addresses([])


class TestRouting:
    SCHEMA = MapSchema(
        "m",
        (Column("v", sql.DOUBLE), Column("a", sql.VARCHAR, False), Column("b", sql.BIGINT, False)),
        ("b", "a"),
        ("a",),
    )

    def batch(self, count):
        arrays = [
            pa.array(np.arange(count, dtype=float)),
            pa.array([f"k{i % 50}" for i in range(count)]),
            pa.array(range(count), pa.int64()),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=engine_schema(self.SCHEMA))

    def test_single_keys_and_batches_agree(self):
        router = Router(self.SCHEMA, VIEW)
        batch = self.batch(500)
        seen = 0
        for member, part in router.split(batch):
            rows = part.to_pylist()
            assert [row["b"] for row in rows] == sorted(row["b"] for row in rows)
            for row in rows:
                assert router.owner((row["b"], row["a"])) == member
            seen += len(rows)
        assert seen == 500

    def test_few_owners_and_none(self):
        router = Router(self.SCHEMA, VIEW)
        assert router.split(self.batch(0)) == []
        ((_, part),) = router.split(self.batch(1))
        assert part.num_rows == 1

    def test_replicated_rows_go_everywhere(self):
        schema = MapSchema("m", self.SCHEMA.columns, ("b", "a"), ("a",), replicated=True)
        found = Router(schema, VIEW).split(self.batch(7))
        assert [(member, part.num_rows) for member, part in found] == [(1, 7), (2, 7), (3, 7)]


class TestStreams:
    def test_arrow_round_trip(self):
        batch = pa.record_batch({"a": [1, 2, 3]})
        buffer = b"".join(encode_stream(batch.schema, [batch]))
        assert decode_stream(buffer) == (batch.schema, [batch])
        with pytest.raises(ProtocolError, match="no Arrow stream"):
            decode_stream(b"nonsense")

    def test_pieces_are_bounded(self):
        batch = pa.record_batch({"a": pa.array(range(10_000), pa.int64())})
        found = list(pieces(batch, 10_000))
        assert sum(piece.num_rows for piece in found) == 10_000
        assert all(piece.num_rows * 8 <= 10_000 for piece in found)
        assert pa.Table.from_batches(found).to_pydict() == {"a": list(range(10_000))}

    def test_an_unexpected_message(self):
        stream = ResultStream("select", requests.Clock())
        with pytest.raises(ProtocolError, match="unexpected message 99"):
            stream.on_request(99, b"", b"")

    def test_a_canceled_statement_without_an_error(self):
        stream = ResultStream("select", requests.Clock())
        result = user_pb2.QueryResult(query_state=user_pb2.QueryResult.CANCELED)
        outcome = stream.on_request(user_pb2.QUERY_RESULT, result.SerializeToString(), b"")
        assert type(outcome.error).__name__ == "QueryCanceled"


def test_ready_lines():
    line = b'{"ready": true, "member": 2, "user": "h:1", "control": "h:2", "data": "h:3"}\n'
    ready, error = parse_ready(line)
    assert (ready.number, ready.user, ready.control, ready.data, error) == (
        2, "h:1", "h:2", "h:3", "",
    )  # fmt: skip
    assert parse_ready(b'{"ready": false, "error": "port in use"}') == (None, "port in use")
    assert "instead of its ready line" in parse_ready(b"hello")[1]
    assert "instead of its ready line" in parse_ready(b"[1]")[1]


def test_the_coordinator_of_a_job():
    assert requests.job_coordinator("12-abc") == 12
    assert requests.job_coordinator("abc") is None


def test_public_names():
    for name in remuda.__all__:
        assert getattr(remuda, name) is not None
    assert sorted(remuda.__all__) == remuda.__all__
    assert set(dir(remuda)) == set(remuda.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        remuda.nonsense  # noqa: B018
    for cls in (remuda.Client, remuda.Map, remuda.Cursor, remuda.Cluster, remuda.Statement):
        for name, member in inspect.getmembers(cls, inspect.isfunction):
            assert name.startswith("_") or inspect.getdoc(member), f"{cls.__name__}.{name}"


def test_signatures_for_spark():
    parameters = inspect.signature(Client.query).parameters
    assert list(parameters)[1:] == [
        "sql", "params", "member", "partitions", "at", "local", "timeout", "page_rows",
    ]  # fmt: skip


def test_job_writer_sends_bounded_frames(client, grid):
    columns = (Column("id", sql.BIGINT, False), Column("d", sql.decimal(9, 2)))
    client.create_map(MapSchema("m", columns, ("id",), ("id",)))
    count = 1_500_000
    job = client.begin_job("m")
    target = pickle.loads(pickle.dumps(job.target))
    batch = pa.RecordBatch.from_arrays(
        [pa.array(range(count), pa.int64()), pa.array(np.zeros(count, np.int64))],
        schema=engine_schema(job.schema),
    )
    with target.writer("3:1") as writer:
        writer.write(batch)
        task = writer.finish()
    assert (task.task, task.members, task.rows) == ("3:1", (1, 2, 3), count)
    staged = [batch for m in grid.members for batch in m.staged[job.id]["3:1"].values()]
    assert sum(part.num_rows for part in staged) == count
    assert len(staged) > 6
    assert max(part.nbytes for part in staged) <= FRAME_SIZE
    job.abort()
    job.abort()
    assert len(client.map("m")) == 0


def test_job_writer_refuses_what_is_not_in_the_engines_form(client, grid):
    columns = (Column("id", sql.BIGINT, False), Column("d", sql.decimal(9, 2)))
    client.create_map(MapSchema("m", columns, ("id",), ("id",)))
    with client.begin_job("m") as job, job.writer("0:0") as writer:
        external = pa.record_batch({"id": [1], "d": [Decimal("1.50")]})
        with pytest.raises(InputError, match="engine's form"):
            writer.write(external)
        nulls = pa.record_batch(
            {"id": pa.array([None], pa.int64()), "d": pa.array([1], pa.int64())}
        )
        with pytest.raises(InputError, match='null value in column "id"'):
            writer.write(nulls)
    with pytest.raises(ZeroDivisionError), client.begin_job("m") as job:
        job.write([pa.record_batch({"id": pa.array([1]), "d": pa.array([150])})])
        raise ZeroDivisionError
    assert all(job.id not in member.staged for member in grid.members)
