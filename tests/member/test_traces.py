"""Statements as spans of OpenTelemetry."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import remuda
import remuda.aio
from remuda.client.core.tracing import trace_part
from remuda.config import MemberConfig
from remuda.errors import DivisionByZero, InputError
from remuda.member.metrics.traces import StatementTraces, traces_to
from remuda.rpc.messages import user_pb2

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def exported(monkeypatch: Any) -> Any:
    """What the members of the test have told, and a tracer for its client."""
    reason = "the packages of the extra otel are not installed"
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason=reason)
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: PLC0415
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import (  # noqa: PLC0415
        InMemorySpanExporter,
    )

    exporter, provider = InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(
        "remuda.member.statements.query_history.traces_to",
        lambda *_: StatementTraces(provider.get_tracer("remuda")),
    )
    exporter.tracer = provider.get_tracer("program")
    return exporter


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
        found = [s for s in exported.get_finished_spans() if s.name.startswith("remuda.")]
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
        [whole] = [s for s in exported.get_finished_spans() if s.name == "remuda.statement"]
        assert whole.parent is None
        assert whole.attributes["error.type"] == "22012"
        assert not whole.status.is_ok
        exported.clear()
        await client.run("SELECT 1 + 1", traceparent="nonsense")
        await client.run("SELECT 1 + 1", traceparent=PARENT)
        first, second = [s for s in exported.get_finished_spans() if s.name == "remuda.statement"]
        assert first.parent is None
        assert f"{second.parent.span_id:016x}" == PARENT.split("-")[2]

    in_cluster(scenario, 1)


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
    assert calls == ["trace_part", "get", "setprofile"]


def test_a_span_travels_in_the_form_of_w3c(monkeypatch: Any) -> None:
    class Known:
        is_valid, trace_id, span_id, trace_flags = True, 0xAF7651916CD43DD8448EB211C80319C, 0xB7, 1

    class Trace:
        get_current_span = staticmethod(
            lambda: type("Span", (), {"get_span_context": staticmethod(Known)})
        )

    monkeypatch.setitem(sys.modules, "opentelemetry.trace", Trace)
    told = user_pb2.RunQuery.FromString(trace_part()).traceparent
    assert told == "00-0af7651916cd43dd8448eb211c80319c-00000000000000b7-01"


def test_without_an_endpoint_nothing_is_imported_and_without_packages_it_is_refused(
    monkeypatch: Any,
) -> None:
    assert MemberConfig().trace_endpoint == ""
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    assert traces_to("", "1") is None
    with pytest.raises(InputError, match="needs the packages of OpenTelemetry") as caught:
        traces_to("http://127.0.0.1:4318/v1/traces", "1")
    assert "remuda[otel]" in (caught.value.hint or "")
