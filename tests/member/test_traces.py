"""Statements, requests and transactions as spans of OpenTelemetry."""

from __future__ import annotations

import asyncio
import contextvars
import gzip
import queue
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from transacting import Session

import remuda
import remuda.aio
from remuda.client.network.tracing import TRACED, trace_part, traced
from remuda.config import MemberConfig
from remuda.errors import CheckViolation, DivisionByZero, InputError, SerializationFailure
from remuda.member.base.request_traces import MESSAGES
from remuda.member.metrics.traces import Traces, traces_to
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.world import system_world

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def exported(monkeypatch: Any) -> Any:
    """The spans of the test's members, each with the identity of a member, and a tracer for its
    client."""
    exporter = InMemorySpanExporter()

    def tracer(instance: str) -> Any:
        names = Resource.create({"service.instance.id": instance})
        provider = TracerProvider(resource=names, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        return provider.get_tracer("remuda")

    monkeypatch.setattr(
        "remuda.member.base.core.traces_to",
        lambda _endpoint, identity, clock: Traces(tracer, identity, clock),
    )
    return Exported(exporter, tracer("program"))


class Exported:
    def __init__(self, exporter: InMemorySpanExporter, tracer: Any) -> None:
        self.tracer = tracer
        self.clear = exporter.clear
        self._exporter = exporter

    def all(self) -> list[Any]:
        """The spans of members."""
        found = self._exporter.get_finished_spans()
        return [span for span in found if span.name.startswith("remuda.")]

    def named(self, name: str) -> list[Any]:
        return [span for span in self.all() if span.name == f"remuda.{name}"]


def test_a_statement_is_one_trace_over_client_and_members(in_cluster: Any, exported: Any) -> None:
    async def scenario(cluster: Any) -> None:
        info = cluster.member(1).info
        client = await remuda.aio.connect(f"{info.host}:{info.user_port}")
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, a BIGINT)")
        await client.sql("INSERT INTO t SELECT n, n FROM generate_series(1, 900) g(n)")
        exported.clear()
        with exported.tracer.start_as_current_span("of the program") as outer:
            rows = await client.sql("SELECT a % 7, count(*) FROM t WHERE k > 5 GROUP BY 1")
            assert len([row async for row in rows]) == 7
        await client.close()
        found = exported.all()
        trace = outer.get_span_context()
        assert {span.context.trace_id for span in found} == {trace.trace_id}
        [whole] = [span for span in found if span.name == "remuda.statement"]
        assert whole.parent.span_id == trace.span_id
        assert whole.attributes["db.query.text"].startswith("SELECT a % $1")
        assert whole.attributes["db.response.returned_rows"] == 7
        parts = [span for span in found if span is not whole]
        assert {span.parent.span_id for span in parts} == {whole.context.span_id}
        fragments = [span for span in parts if span.name == "remuda.fragment"]
        assert {span.attributes["remuda.member"] for span in fragments} == {1, 2, 3}
        uuids = {member.info.number: member.core.uuid for member in cluster.members}
        for span in fragments:
            ran = span.attributes["remuda.member"]
            assert span.resource.attributes["service.instance.id"] == uuids[ran]
        assert "remuda.planning" in {span.name for span in parts}
        for span in found:
            assert span.start_time <= span.end_time

    in_cluster(scenario, 3)


def test_failures_and_statements_without_a_client_span(in_cluster: Any, exported: Any) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        exported.clear()
        with pytest.raises(DivisionByZero):
            await client.sql("SELECT 1 / (n - 1) FROM generate_series(1, 3) g(n)")
        [whole] = exported.named("statement")
        assert whole.parent is None
        assert whole.attributes["error.type"] == "22012"
        assert not whole.status.is_ok
        exported.clear()
        await client.run("SELECT 1 + 1", traceparent="nonsense")
        await client.run("SELECT 1 + 1", traceparent=PARENT)
        await client.run(f"SELECT 1 + 1 /* app='x',traceparent='{PARENT}' */")
        first, second, third = exported.named("statement")
        assert first.parent is None
        assert f"{second.parent.span_id:016x}" == PARENT.split("-")[2]
        assert third.parent == second.parent

    in_cluster(scenario, 1)


MAP_OPERATIONS: list[tuple[str, Any]] = [
    ("map_get", lambda m: m.get(1)),
    ("map_put", lambda m: m.put(2, {"a": 2})),
    ("map_put", lambda m: m.put_all({k: {"a": k} for k in range(10, 20)})),
    ("map_get", lambda m: m.get_all(range(10, 20))),
    ("map_compute", lambda m: m.compute(1, "a = a + 1")),
    ("map_remove", lambda m: m.remove(2)),
    ("map_size", lambda m: m.size()),
]


@pytest.mark.parametrize("blocking", [False, True])
def test_each_key_operation_inside_of_a_span_has_one_of_its_own(
    in_cluster: Any, exported: Any, blocking: bool
) -> None:
    async def called(client: Any, operation: Any) -> None:
        if blocking:
            await asyncio.to_thread(contextvars.copy_context().run, operation, client.map("t"))
        else:
            await operation(client.map("t"))

    async def scenario(cluster: Any) -> None:
        info = cluster.member(1).info
        address = f"{info.host}:{info.user_port}"
        maker = await cluster.client(1)
        await maker.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, a BIGINT)")
        await maker.sql("INSERT INTO t VALUES (1, 1)")
        client = (
            await asyncio.to_thread(remuda.connect, address)
            if blocking
            else await remuda.aio.connect(address)
        )
        for name, operation in MAP_OPERATIONS:
            exported.clear()
            with exported.tracer.start_as_current_span("of the program") as outer:
                await called(client, operation)
            spans = exported.named(name)
            assert spans, (name, [span.name for span in exported.all()])
            for span in spans:
                assert span.parent.span_id == outer.get_span_context().span_id
                assert span.attributes["db.operation.name"] == name
                assert span.attributes["db.collection.name"] == "t"
                assert span.status.is_ok
                assert 0 < span.start_time <= span.end_time
        exported.clear()
        await called(client, MAP_OPERATIONS[0][1])
        assert [span.parent for span in exported.named("map_get")] == [None]
        closed = client.close()
        if closed is not None:
            await closed

    in_cluster(scenario, 3)


def test_a_request_that_fails_says_so(in_cluster: Any, exported: Any) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, a BIGINT CHECK (a > 0))")
        info = cluster.member(1).info
        user = await remuda.aio.connect(f"{info.host}:{info.user_port}")
        with pytest.raises(CheckViolation):
            await user.map("t").put(1, {"a": -1})
        await user.close()
        [span] = exported.named("map_put")
        assert (span.attributes["error.type"], span.status.is_ok) == ("23514", False)

    in_cluster(scenario, 1)


def test_transactions_have_spans_from_their_begin_to_their_end(
    in_cluster: Any, exported: Any
) -> None:
    async def scenario(cluster: Any) -> None:
        maker = await cluster.client(1)
        await maker.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, a BIGINT)")
        await maker.sql("INSERT INTO t VALUES (1, 1)")
        info = cluster.member(1).info
        client = await remuda.aio.connect(f"{info.host}:{info.user_port}")
        exported.clear()
        with exported.tracer.start_as_current_span("of the program") as outer:
            async with client.transaction(concurrency="pessimistic") as transaction:
                table = transaction.map("t")
                assert (await table.get(1)).a == 1
                await table.put(1, {"a": 2})
        [whole] = exported.named("transaction")
        assert whole.parent.span_id == outer.get_span_context().span_id
        assert whole.attributes["remuda.state"] == "committed"
        assert whole.attributes["remuda.writes"] == 1
        requests = [span for span in exported.all() if span is not whole]
        assert {"remuda.map_get", "remuda.transaction_end"} <= {span.name for span in requests}
        assert {span.parent.span_id for span in requests} == {whole.parent.span_id}
        named = {span.attributes.get("remuda.transaction") for span in requests} - {None}
        assert named == {whole.attributes["remuda.transaction"]}
        await client.close()
        exported.clear()
        session = Session(await cluster.client(1))
        await session.sql("BEGIN")
        await session.sql("UPDATE t SET a = 3 WHERE k = 1")
        await maker.sql("UPDATE t SET a = 4 WHERE k = 1")
        with pytest.raises(SerializationFailure):
            await session.sql("COMMIT")
        [failed] = exported.named("transaction")
        assert (failed.attributes["error.type"], failed.status.is_ok) == ("40001", False)
        assert failed.attributes["remuda.state"] == "rolled back"

    in_cluster(scenario, 1)


def test_a_statement_that_reads_by_key_has_a_span(in_cluster: Any, exported: Any) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, a BIGINT)")
        await client.sql("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
        exported.clear()
        for key in (1, 2, 3, 9):
            await client.run("SELECT a FROM t WHERE k = ?", key, traceparent=PARENT)
        found = exported.named("statement")
        assert [span.attributes["db.response.returned_rows"] for span in found] == [1, 1, 1, 0]
        assert {f"{span.parent.span_id:016x}" for span in found} == {PARENT.split("-")[2]}
        assert {s.attributes["db.query.text"] for s in found} == {"SELECT a FROM t WHERE k = $1"}

    in_cluster(scenario, 3)


def test_spans_reach_a_collector_with_the_identity_of_their_member(monkeypatch: Any) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
    came: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            zipped = self.headers.get("Content-Encoding") == "gzip"
            came.put(gzip.decompress(body) if zipped else body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}/v1/traces"
        traces = traces_to(endpoint, "the first member", system_world().clock)
        assert traces is not None
        traces.ended("remuda.map_get", PARENT, traces.now(), {"db.operation.name": "map_get"}, None)
        told = came.get()
        server.shutdown()
    for part in (b"remuda.map_get", b"the first member", bytes.fromhex(PARENT.split("-")[1])):
        assert part in told


def test_each_traced_request_can_tell_a_span() -> None:
    assert MESSAGES.keys() == TRACED
    told = traced(RpcType.MAP_GET, b"")
    for kind in MESSAGES.values():
        number = kind.DESCRIPTOR.fields_by_name["traceparent"].number
        assert number == user_pb2.KeysRequest.DESCRIPTOR.fields_by_name["traceparent"].number
    assert told == b""


def test_nothing_is_sent_outside_of_a_span(monkeypatch: Any) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    calls: list[str] = []

    def counted(_frame: Any, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            calls.append(getattr(argument, "__name__", "trace_part"))

    sys.setprofile(counted)
    try:
        part = trace_part()
    finally:
        sys.setprofile(None)
    assert part == b""
    assert calls == ["trace_part", "setprofile"]


def test_a_span_travels_in_the_form_of_w3c(monkeypatch: Any) -> None:
    class Known:
        is_valid, trace_id, span_id, trace_flags = True, 0xAF7651916CD43DD8448EB211C80319C, 0xB7, 1

    class Trace:
        get_current_span = staticmethod(
            lambda: type("Span", (), {"get_span_context": staticmethod(Known)})
        )

    monkeypatch.setitem(sys.modules, "opentelemetry.trace", Trace)
    known = "00-0af7651916cd43dd8448eb211c80319c-00000000000000b7-01"
    assert user_pb2.RunQuery.FromString(trace_part()).traceparent == known
    for rpc_type, kind in MESSAGES.items():
        assert kind.FromString(traced(rpc_type, b"")).traceparent == known  # type: ignore[arg-type,attr-defined]
    assert traced(RpcType.MAP_PUT_BATCH, user_pb2.PutBatchRequest(map="t")).startswith(b"\n\x01t")
    assert traced(RpcType.JOB_BEGIN, b"as it is") == b"as it is"


def test_without_an_endpoint_nothing_is_imported_and_without_packages_it_is_refused(
    monkeypatch: Any,
) -> None:
    assert MemberConfig().trace_endpoint == ""
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    clock = system_world().clock
    assert traces_to("", "1", clock) is None
    with pytest.raises(InputError, match="needs the packages of OpenTelemetry") as caught:
        traces_to("http://127.0.0.1:4318/v1/traces", "1", clock)
    assert "remuda[otel]" in (caught.value.hint or "")
