"""What a user can do wrong, at real members: a clear error each time; the next request works."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda import errors
from remuda.client.network.deadline import Deadline
from remuda.client.network.driving import finish
from remuda.client.requests.requests import Call
from remuda.limits import FRAME_SIZE_MAX, ROW_SIZE_MAX, STATEMENT_LENGTH_MAX
from remuda.rpc.blocking import BlockingChannel
from remuda.rpc.frame import REQUEST, Frame, FrameReader, encode, varint
from remuda.rpc.messages import user_pb2

pytestmark = pytest.mark.cluster

ROWS = 300


@pytest.fixture(scope="module")
def cluster(three_members: remuda.Cluster) -> remuda.Cluster:
    return three_members


@pytest.fixture(scope="module")
def client(cluster: Any) -> Iterator[Any]:
    with cluster.connect() as client:
        client.sql(
            "CREATE TABLE t (id BIGINT PRIMARY KEY, small SMALLINT, name VARCHAR(8), "
            "price DECIMAL(9,2), day DATE)"
        )
        client.map("t").put_all(
            pa.table(
                {
                    "id": range(ROWS),
                    "small": pa.array([i % 7 for i in range(ROWS)], pa.int16()),
                    "name": [f"n{i}" for i in range(ROWS)],
                    "price": pa.array(range(ROWS), pa.decimal128(9, 2)),
                    "day": pa.nulls(ROWS, pa.date32()),
                }
            )
        )
        yield client


@pytest.fixture(autouse=True)
def the_next_request_works(client: Any) -> Iterator[None]:
    """And nothing of the failed one is left on any member."""
    yield
    assert client.sql("SELECT count(*) FROM t").scalar() == ROWS
    assert client.map("t").get(1).name == "n1"
    idle(client)


def gauges(client: Any, member: int) -> dict[str, int]:
    call = Call(user_pb2.MEMBER_STATE, user_pb2.Empty(), user_pb2.MemberState.FromString)
    state = finish(client._core.call(member, call))
    return {gauge.name: gauge.value for gauge in state.gauges}


def idle(client: Any, deadline: float = 20.0) -> None:
    """Until no member holds anything of a query, a cursor or a job."""
    names = ("queries", "fragments", "cursors", "statements", "jobs", "staging", "turns")
    end = time.monotonic() + deadline
    while True:
        held = {
            (member.number, name): value
            for member in client._core.view.members
            for name, value in gauges(client, member.number).items()
            if name in names and value
        }
        if not held:
            return
        assert time.monotonic() < end, f"still held: {held}"


STATEMENTS = [
    ("SELEC 1", "42601", "^^^^^"),
    ("SELECT (1", "42601", "^"),
    ("SELECT 'open", "42601", "^"),
    ("SELECT \0 1", "42601", "^"),
    ("SELECT * FROM nowhere", "42P01", "^^^^^^^"),
    ("SELECT nothing FROM t", "42703", "^^^^^^^"),
    ("SELECT t.id FROM t, t", "42712", "^"),
    ("SELECT id FROM t, (SELECT id FROM t) AS u", "42702", "^^"),
    ("SELECT fly(id) FROM t", "42883", "^^^"),
    ("SELECT id + name FROM t", "42883", "^"),
    ("SELECT id FROM t WHERE name", "42804", "^^^^"),
    ("SELECT id, count(*) FROM t", "42803", "^^"),
    ("SELECT 1 / 0", "22012", ""),
    ("SELECT sum(id / (small - small)) FROM t", "22012", ""),
    ("SELECT 9223372036854775807 + id FROM t", "22003", ""),
    ("SELECT CAST(id * 200 AS SMALLINT) FROM t", "22003", ""),
    ("SELECT CAST(300 AS TINYINT)", "22003", "^^^"),
    ("SELECT CAST(name AS BIGINT) FROM t", "22P02", ""),
    ("SELECT DATE 'someday'", "22007", "^"),
    ("INSERT INTO t (id, name) VALUES (-1, 'much too long')", "22001", "^"),
    ("INSERT INTO t (id, price) VALUES (-1, 12345678.9)", "22003", ""),
    ("INSERT INTO t (id) VALUES (NULL)", "23502", ""),
    ("INSERT INTO t (id) VALUES (1)", "23505", ""),
    ("INSERT INTO t (id) VALUES (-1), (-1)", "23505", ""),
    ("CREATE TABLE t (id BIGINT PRIMARY KEY)", "42P07", "^"),
    ("CREATE TABLE u (id NUMBR PRIMARY KEY)", "42704", "^^^^^"),
    ("DROP TABLE nowhere", "42P01", "^^^^^^^"),
    ("SELECT " + "(" * 5000 + "1" + ")" * 5000, "54000", ""),
    ("SELECT '" + "x" * STATEMENT_LENGTH_MAX + "'", "54000", ""),
    ("SELECT repeat('x', 2000000000)", "54000", ""),
    ("SELECT ?", "42P18", "^"),
]


@pytest.mark.parametrize(
    ("text", "sqlstate", "caret"), STATEMENTS, ids=[text[:40] for text, *_ in STATEMENTS]
)
def test_statements(client: Any, text: str, sqlstate: str, caret: str) -> None:
    with pytest.raises((errors.InputError, errors.ResourceError)) as caught:
        client.sql(text).fetchall()
    assert caught.value.sqlstate == sqlstate, caught.value
    if caret:
        assert caught.value.position is not None
        assert str(caught.value).splitlines()[2].strip().startswith(caret)


@pytest.mark.parametrize(
    ("arguments", "options", "kind"),
    [
        ((None,), {}, errors.InputError),
        ((5,), {}, errors.InputError),
        (("SELECT '\udcff'",), {}, errors.InvalidText),
        (("SELECT ?", "\udcff"), {}, errors.InvalidText),
        (("SELECT ?", object()), {}, errors.TypeMismatch),
        (("SELECT ?", 2**200), {}, errors.NumericOverflow),
        (("SELECT ? + ?", 1), {}, errors.WrongParameters),
        (("SELECT ?", 1, 2), {}, errors.WrongParameters),
        (("SELECT id FROM t WHERE id = ?", 1, 2), {}, errors.WrongParameters),
        (("SELECT 1",), {"timeout": -1}, errors.InputError),
        (("SELECT 1",), {"timeout": float("nan")}, errors.InputError),
        (("SELECT 1",), {"timeout": "soon"}, errors.InputError),
    ],
)
def test_arguments_of_statements(
    client: Any, arguments: tuple[Any, ...], options: dict[str, Any], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        client.sql(*arguments, **options).fetchall()


def test_a_closed_cursor_is_not_an_empty_one(client: Any) -> None:
    cursor = client.sql("SELECT id FROM t")
    cursor.close()
    with pytest.raises(errors.InputError, match="closed"):
        cursor.fetchall()


@pytest.mark.parametrize(
    "entries",
    [
        None,
        5,
        [1, 2, 3],
        {-1: {"small": 1}, -2: {"small": "one"}},
        {-1: {"small": 40_000}},
        {-1: {"name": "much too long"}},
        {-1: {"name": "\udcff"}},
        {None: {"small": 1}},
        {"text": {"small": 1}},
        {-1: {"no such field": 1}},
        {-1: 7},
        pa.table({"id": [-1, None]}),
        pa.table({"id": [-1, -1]}),
        pa.table({"id": ["one"]}),
        pa.table({"id": [-1], "other": [1]}),
    ],
    ids=lambda entries: repr(entries)[:40].replace("\n", " "),
)
def test_entries(client: Any, entries: Any) -> None:
    with pytest.raises(errors.InputError):
        client.map("t").put_all(entries)


def test_an_object_that_does_not_fit_makes_no_map(client: Any) -> None:
    with pytest.raises(errors.ObjectMismatch):
        client.map("new").put(1, 2**70)
    with pytest.raises(errors.UndefinedMap):
        client.describe("new")


@pytest.mark.parametrize("schema", ["t", None, {"id": "bigint"}])
def test_a_map_of_no_schema(client: Any, schema: Any) -> None:
    with pytest.raises(errors.InputError, match=r"create_map takes a MapSchema, not") as caught:
        client.create_map(schema)
    assert "CREATE TABLE" in caught.value.hint


@pytest.mark.parametrize("name", ["", "x" * 300, None, 5, "a\udcff"], ids=repr)
def test_names_of_maps(client: Any, name: Any) -> None:
    with pytest.raises(errors.InputError):
        client.map(name).put(1, 1)


@pytest.mark.parametrize("size", [ROW_SIZE_MAX + 1, FRAME_SIZE_MAX + 1])
def test_rows_that_are_too_large(client: Any, size: int) -> None:
    texts = client.map("texts")
    texts.put(0, "short")
    large = "x" * size
    with pytest.raises(errors.RowTooLarge):
        texts.put(1, large)
    for entries in ({1: large, 2: "short"}, pa.table({"__key": [1], "this": [large]})):
        with pytest.raises(errors.RowTooLarge):
            texts.put_all(entries)
    assert texts.size() == 1
    client.drop_map("texts")


def test_rows_that_fit_a_frame_only_one_by_one(client: Any) -> None:
    texts = client.map("texts")
    texts.put(0, "short")
    owner = finish(texts._map._bind(Deadline(60.0))).router.owner
    keys = [key for key in range(100) if owner((key,)) == 1][:5]
    large = "x" * (ROW_SIZE_MAX - 100)
    texts.put_all(dict.fromkeys(keys, large))
    assert {key: len(value) for key, value in texts.get_all(keys).items()} == dict.fromkeys(
        keys, len(large)
    )
    client.drop_map("texts")


# --- the wire ---


def raw(cluster: Any, data: bytes) -> bytes:
    """What a member answers to these bytes until it closes the connection."""
    host, port = cluster.address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=30) as sock:
        with contextlib.suppress(ConnectionError):
            sock.sendall(data)
        received = bytearray()
        with contextlib.suppress(ConnectionError):
            while piece := sock.recv(1 << 16):
                received += piece
        return bytes(received)


@pytest.mark.parametrize(
    "data",
    [b"\xff" * 64, b"GET / HTTP/1.1\r\n\r\n", varint(FRAME_SIZE_MAX * 2) + b"x" * 100],
    ids=["malformed", "another protocol", "oversized"],
)
def test_frames(cluster: Any, data: bytes) -> None:
    raw(cluster, data)


def test_another_version_is_refused_and_told(cluster: Any) -> None:
    hello = user_pb2.UserToBitHandshake(rpc_version=99, channel=user_pb2.USER)
    answer = raw(cluster, encode(Frame(REQUEST, 1, 0, hello.SerializeToString())))
    reader = FrameReader()
    reader.room[: len(answer)] = answer
    (frame,) = reader.received(len(answer))
    welcome = user_pb2.BitToUserHandshake.FromString(frame.pbody)
    assert welcome.status == user_pb2.RPC_VERSION_MISMATCH
    assert "version 99" in welcome.errorMessage


def test_an_oversized_request_after_the_handshake(cluster: Any, client: Any) -> None:
    pool = client._core.pool(1)
    channel = pool.take()
    assert isinstance(channel, BlockingChannel)
    channel._socket.sendall(varint(FRAME_SIZE_MAX * 2) + b"\x00" * 32)
    with pytest.raises((errors.ConnectionBroken, errors.ProtocolError)):
        channel.receive(30)
    channel.close()


# --- ends ---


def test_a_timeout_in_the_middle_of_an_aggregation(client: Any) -> None:
    with pytest.raises(errors.QueryTimeout):
        client.sql(
            "SELECT count(*) FROM t a, t b, t c, t d, t e, t f, t g, t h"
            " WHERE a.name < b.name AND c.name < d.name AND e.name < f.name AND g.name < h.name",
            timeout=0.3,
        ).fetchall()


def test_a_dropped_map_ends_its_queries(client: Any) -> None:
    client.map("gone").put_all(pa.table({"id": range(200_000)}), key="id")
    cursor = client.sql("SELECT * FROM gone")
    cursor.fetchone()
    client.sql("DROP TABLE gone")
    with pytest.raises(errors.SchemaChanged):
        cursor.fetchall()


def test_a_member_that_hangs_fails_queries_and_is_named() -> None:
    settings = {"heartbeat_interval": 0.2, "heartbeat_timeout": 1.0}
    with (
        remuda.start(members=2, settings=settings) as cluster,
        remuda.connect(cluster.addresses[0]) as client,
    ):
        client.map("m").put_all(pa.table({"id": range(1000)}), key="id")
        os.kill(cluster.pids[1], signal.SIGSTOP)
        try:
            with pytest.raises(errors.MemberUnavailable, match=r"member 2 .*lost"):
                client.query("SELECT count(*) FROM m", member=1).fetchall()
            assert client.query("SELECT 1", member=1).scalar() == 1
        finally:
            os.kill(cluster.pids[1], signal.SIGCONT)
