"""Spans of OpenTelemetry, made when the work that they stand for has ended.

The member that initiates a statement is told the profile of each fragment, wherever it ran. So it
tells the spans of all members, and these pass nothing on to each other for it. The spans of a
fragment carry the identity of the member that ran it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sized
from typing import TYPE_CHECKING, Any, Final, TypeVar

from remuda.errors import InputError, RemudaError
from remuda.execution.context import FragmentProfile
from remuda.session.query_profiles import QueryFacts
from remuda.sql.text.fingerprint import READ_MAX, fingerprint
from remuda.world import Clock

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

SERVICE: Final = "remuda"
INSTANCES_MAX: Final = 1_000
"""Identities of members whose tracers are kept."""
Rows = TypeVar("Rows", bound=Sized)
_COMMENT: Final = re.compile(r"/\*(?:(?!\*/).)*\btraceparent='([0-9a-f-]{55})'", re.DOTALL)
"""A comment of a statement, as sqlcommenter writes it."""


class Traces:
    """Needs the package opentelemetry-api. Whether a trace is kept, the tracers' sampler decides:
    usually as the client's span says. Moments are seconds since 1970."""

    def __init__(self, tracer: Callable[[str], Tracer], own: str, clock: Clock) -> None:
        """``tracer`` makes the one of the member with an identity; ``own`` is that of this
        member."""
        from opentelemetry import trace  # noqa: PLC0415 (an extra)
        from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415

        self._make = tracer
        self._own = tracer(own)
        self._others: dict[str, Tracer] = {own: self._own}
        self._clock = clock
        self._trace = trace
        self._propagator = tracecontext.TraceContextTextMapPropagator()

    def now(self) -> float:
        return self._clock.wall_micros() / 1e6

    # --- statements ---------------------------------------------------------------------------

    def statement(self, facts: QueryFacts, seconds: float, text: str, traceparent: str) -> Context:
        """The spans of a statement that has ended after ``seconds``: a whole one below the client's
        (one of its own if ``traceparent`` is none), its planning, and its wait for memory. Its
        result is for ``fragment``."""
        attributes = {
            **_of_text(text),
            "db.response.returned_rows": facts.rows,
            "remuda.query": facts.query,
            "remuda.member": facts.member,
            "remuda.waited": facts.waited,
        }
        began = facts.started / 1e6
        parent = traceparent or _commented(text)
        span = self._server("remuda.statement", parent, began, attributes, facts.error)
        context = self._trace.set_span_in_context(span)
        if facts.planning:
            self._whole("remuda.planning", context, began, facts.planning)
        if facts.queued:
            self._whole("remuda.queue", context, began + facts.planning, facts.queued)
        span.end(_nanoseconds(began + seconds))
        return context

    def fragment(
        self, context: Context, profile: FragmentProfile, began: float, instance: str
    ) -> None:
        """The span of a part of a query on the member with the identity ``instance``. ``began`` is
        when the statement did, for a fragment that has done nothing."""
        active = [operator for operator in profile.operators if operator.first]
        first = min((operator.first for operator in active), default=began)
        last = max((operator.last for operator in active), default=first)
        attributes: dict[str, Any] = {
            "remuda.member": profile.member,
            "remuda.fragment": profile.fragment,
            "remuda.instance": profile.instance,
            "remuda.memory": profile.peak_memory,
            "remuda.rows": profile.operators[0].rows if profile.operators else 0,
            "remuda.operators": [operator.operator for operator in profile.operators],
        }
        span = self._of(instance).start_span(
            "remuda.fragment", context, attributes=attributes, start_time=_nanoseconds(first)
        )
        span.end(_nanoseconds(max(first, last)))

    def read(
        self, text: str, traceparent: str, member: int, answer: Callable[[Rows | RemudaError], None]
    ) -> Callable[[Rows | RemudaError], None]:
        """``answer`` of a statement that reads by key and is answered at once: it makes the span
        before it answers."""
        began = self.now()

        def answered(found: Rows | RemudaError) -> None:
            error = found if isinstance(found, RemudaError) else None
            rows = 0 if isinstance(found, RemudaError) else len(found)
            attributes = {
                **_of_text(text),
                "db.response.returned_rows": rows,
                "remuda.member": member,
            }
            parent = traceparent or _commented(text)
            span = self._server("remuda.statement", parent, began, attributes, error)
            span.end(_nanoseconds(self.now()))
            answer(found)

        return answered

    # --- requests and transactions ------------------------------------------------------------

    def ended(
        self,
        name: str,
        traceparent: str,
        began: float,
        attributes: Mapping[str, Any],
        error: RemudaError | None,
    ) -> None:
        """The span of a request of a client, or of a transaction, that ends now."""
        known = {"db.system.name": SERVICE, **attributes}
        span = self._server(name, traceparent, began, known, error)
        span.end(_nanoseconds(self.now()))

    # --- spans --------------------------------------------------------------------------------

    def _server(
        self,
        name: str,
        traceparent: str,
        began: float,
        attributes: Mapping[str, Any],
        error: RemudaError | None,
    ) -> Span:
        parent = self._propagator.extract({"traceparent": traceparent}) if traceparent else None
        span = self._own.start_span(
            name,
            parent,
            kind=self._trace.SpanKind.SERVER,
            attributes=attributes,
            start_time=_nanoseconds(began),
        )
        if error is not None:
            span.set_attribute("error.type", error.sqlstate)
            span.set_status(self._trace.StatusCode.ERROR, error.sqlstate)
        return span

    def _whole(self, name: str, context: Context, began: float, seconds: float) -> None:
        span = self._own.start_span(name, context, start_time=_nanoseconds(began))
        span.end(_nanoseconds(began + seconds))

    def _of(self, instance: str) -> Tracer:
        found = self._others.get(instance)
        if found is None:
            if len(self._others) >= INSTANCES_MAX:
                self._others.clear()
            found = self._others[instance] = self._make(instance)
        return found


def _of_text(text: str) -> dict[str, Any]:
    known = fingerprint(text[: READ_MAX + 1])
    return {"db.system.name": SERVICE, "db.query.text": "" if known is None else known.text}


def _commented(text: str) -> str:
    """The context that a comment of the statement carries."""
    found = _COMMENT.search(text)
    return "" if found is None else found[1]


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)


def traces_to(endpoint: str, identity: str, clock: Clock) -> Traces | None:
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
    processor = BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint))

    def tracer(instance: str) -> Tracer:
        """All share one queue; the provider of this member empties it when the process ends."""
        names = {"service.name": SERVICE, "service.instance.id": instance}
        provider = TracerProvider(
            resource=Resource.create(names), shutdown_on_exit=instance == identity
        )
        provider.add_span_processor(processor)
        return provider.get_tracer(SERVICE)

    return Traces(tracer, identity, clock)
