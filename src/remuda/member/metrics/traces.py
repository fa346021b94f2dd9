"""Statements as spans of OpenTelemetry, made when they have ended.

The member that initiates a statement is told the profile of each fragment, wherever it ran. So it
tells the spans of all members, and these pass nothing on to each other for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from remuda.errors import InputError
from remuda.execution.context import FragmentProfile
from remuda.session.query_profiles import QueryFacts
from remuda.sql.text.fingerprint import READ_MAX, fingerprint

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

SERVICE = "remuda"


class StatementTraces:
    """Needs the package opentelemetry-api. Whether a trace is kept, the tracer's sampler decides:
    usually as the client's span says."""

    def __init__(self, tracer: Tracer) -> None:
        from opentelemetry import trace  # noqa: PLC0415 (an extra)
        from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415

        self._tracer = tracer
        self._trace = trace
        self._propagator = tracecontext.TraceContextTextMapPropagator()

    def statement(self, facts: QueryFacts, seconds: float, text: str, traceparent: str) -> Context:
        """The spans of a statement that has ended after ``seconds``: a whole one below the client's
        (one of its own if ``traceparent`` is none), and its planning and its wait for memory. What
        it gives is for ``fragment``."""
        known = fingerprint(text[: READ_MAX + 1])
        parent = self._propagator.extract({"traceparent": traceparent}) if traceparent else None
        attributes = {
            "db.system.name": SERVICE,
            "db.query.text": "" if known is None else known.text,
            "db.response.returned_rows": facts.rows,
            "remuda.query": facts.query,
            "remuda.member": facts.member,
        }
        began = facts.started / 1e6
        kind = self._trace.SpanKind.SERVER
        span = self._begun("remuda.statement", parent, began, attributes, kind=kind)
        if facts.error is not None:
            span.set_attribute("error.type", facts.error.sqlstate)
            span.set_status(self._trace.StatusCode.ERROR, facts.error.sqlstate)
        context = self._trace.set_span_in_context(span)
        if facts.planning:
            self._whole("remuda.planning", context, began, facts.planning, {})
        if facts.queued:
            self._whole("remuda.queue", context, began + facts.planning, facts.queued, {})
        span.end(_nanoseconds(began + seconds))
        return context

    def fragment(self, context: Context, profile: FragmentProfile, began: float) -> None:
        """The span of a part of a query on one of the members. ``began``: seconds since 1970 when
        the statement did, for a fragment that has done nothing."""
        active = [operator for operator in profile.operators if operator.first]
        first = min((operator.first for operator in active), default=began)
        last = max((operator.last for operator in active), default=first)
        attributes = {
            "remuda.member": profile.member,
            "remuda.fragment": profile.fragment,
            "remuda.instance": profile.instance,
            "remuda.memory": profile.peak_memory,
            "remuda.rows": profile.operators[0].rows if profile.operators else 0,
            "remuda.operators": [operator.operator for operator in profile.operators],
        }
        self._whole("remuda.fragment", context, first, max(0.0, last - first), attributes)

    def _whole(
        self, name: str, context: Context, began: float, seconds: float, attributes: Any
    ) -> None:
        self._begun(name, context, began, attributes).end(_nanoseconds(began + seconds))

    def _begun(
        self,
        name: str,
        context: Context | None,
        began: float,
        attributes: Mapping[str, Any],
        **options: Any,
    ) -> Span:
        at = _nanoseconds(began)
        return self._tracer.start_span(
            name, context, attributes=attributes, start_time=at, **options
        )


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)


def traces_to(endpoint: str, identity: str) -> StatementTraces | None:
    """Sends spans to a collector (OTLP over HTTP); None for no endpoint. ``identity`` tells members
    apart. Raises InputError where OpenTelemetry's packages are not installed."""
    if not endpoint:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError as problem:
        raise InputError(
            f"trace_endpoint needs the packages of OpenTelemetry: {problem}",
            hint="pip install 'remuda[otel]', or leave trace_endpoint empty.",
        ) from None
    names = {"service.name": SERVICE, "service.instance.id": identity}
    provider = TracerProvider(resource=Resource.create(names))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return StatementTraces(provider.get_tracer(SERVICE))
