"""Pipelines mean the same as one request after the other, and bound what is under way."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import remuda
from remuda.errors import (
    DivisionByZero,
    InputError,
    MemberUnavailable,
    ObjectMismatch,
    OutcomeUnknown,
    RemudaError,
    UndefinedMap,
)

KEYS = st.integers(0, 5)
VALUES = st.integers(-3, 3)
STEPS = st.one_of(
    st.tuples(st.sampled_from(["get", "contains", "remove", "delete"]), KEYS),
    st.tuples(st.sampled_from(["put", "get_and_put", "put_if_absent", "replace"]), KEYS, VALUES),
    st.tuples(st.just("compute"), KEYS, VALUES),
)


@dataclass
class Number:
    v: int


def carried_out(entries: Any, step: tuple[Any, ...]) -> Any:
    """What a step of ``STEPS`` gives, on a map or on a handle of a pipeline."""
    name, key, *values = step
    if name == "compute":  # which fails where the value is 0
        return entries.compute(key, "v = 12 / v + ?", *values)
    return getattr(entries, name)(key, *map(Number, values))


def outcome_of(work: Any) -> Any:
    try:
        return work()
    except RemudaError as error:
        return type(error)


@pytest.fixture(scope="module")
def cluster(three_members: Any) -> Any:
    return three_members


@pytest.fixture(scope="module")
def client(cluster: Any) -> Iterator[Any]:
    with cluster.connect() as client:
        yield client


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STEPS, min_size=1, max_size=60), st.integers(1, 40))
def test_a_pipeline_gives_what_one_request_after_the_other_gives(
    client: Any, steps: list[tuple[Any, ...]], in_flight: int
) -> None:
    for name in ("one", "piped"):
        client.map(name, Number).put(0, Number(1))
        client.sql(f"DELETE FROM {name}").close()
    one = client.map("one", Number)
    expected = [outcome_of(lambda step=step: carried_out(one, step)) for step in steps]
    with client.pipeline(in_flight=in_flight) as pipeline:
        piped = pipeline.map("piped", Number)
        outcomes = [carried_out(piped, step) for step in steps]
        assert [outcome_of(outcome.result) for outcome in outcomes] == expected
    assert dict(client.map("piped", Number).items()) == dict(one.items())


def test_the_error_of_one_request_fails_that_one_only(client: Any) -> None:
    with client.pipeline() as pipeline:
        items = pipeline.map("errors", Number)
        items.put(1, Number(0))
        bad = items.compute(1, "v = 1 / v")
        good = items.get(1)
        unfit = items.put(1, {"other": 1})
        wrong_key = items.get("x")
        last = items.put(2, Number(5))
        assert good.result() == Number(0)
        assert last.result() is None
        assert isinstance(bad.error(), DivisionByZero)
        assert isinstance(unfit.error(), ObjectMismatch)
        with pytest.raises(ObjectMismatch):
            wrong_key.result()
        assert {id(each) for each in pipeline.flush()} == {id(bad), id(unfit), id(wrong_key)}
        assert pipeline.flush() == []


def test_an_error_that_nobody_has_looked_at_is_raised_at_the_end(client: Any) -> None:
    with pytest.raises(UndefinedMap), client.pipeline() as pipeline:
        pipeline.map("no_such_map").get(1)
    with pytest.raises(ZeroDivisionError), client.pipeline() as pipeline:
        pipeline.map("no_such_map").get(1)
        raise ZeroDivisionError


def test_one_key_in_two_forms_is_one_key(client: Any) -> None:
    client.sql("CREATE TABLE priced (k DECIMAL(9, 2) PRIMARY KEY, v BIGINT)").close()
    with client.pipeline() as pipeline:
        items = pipeline.map("priced")
        for number in range(60):
            items.put(Decimal("1.5") if number % 2 else Decimal("1.50"), {"v": number})
        assert items.get(Decimal("1.500")).result().v == 59


def test_the_client_reads_what_its_pipeline_has_written(client: Any) -> None:
    near = client.map("near", Number, near_cache=True)
    near.put(1, Number(0))
    for value in range(1, 6):
        assert near.get(1) == Number(value - 1)
        with client.pipeline() as pipeline:
            pipeline.map("near", Number).put(1, Number(value))
        assert near.get(1) == Number(value)


@pytest.mark.parametrize("in_flight", [0, -1, 1.5, True, None])
def test_a_wrong_bound_is_refused(client: Any, in_flight: Any) -> None:
    with pytest.raises(InputError, match="in_flight"):
        client.pipeline(in_flight=in_flight)


def test_a_transaction_has_no_pipeline(client: Any) -> None:
    client.sql("BEGIN").close()
    try:
        with pytest.raises(InputError, match="transaction"):
            client.pipeline()
    finally:
        client.sql("ROLLBACK").close()


def test_a_pipeline_of_a_closed_client_ends(cluster: Any) -> None:
    client = cluster.connect()
    pipeline = client.pipeline()
    items = pipeline.map("closing", Number)
    items.put(1, Number(1)).result()
    client.close()
    outcome = items.put(2, Number(2))
    with pytest.raises(RemudaError, match="closed"):
        outcome.result()


def test_no_more_is_under_way_than_was_allowed(monkeypatch: Any, grid: Any) -> None:
    """Fake members that answer nothing until told."""
    held: list[Any] = []
    release = threading.Event()
    for member in grid.members:
        real = member.on_map_put

        def handle(request: Any, real: Any = real) -> None:
            if release.is_set():
                real(request)
            else:
                held.append((real, request))

        monkeypatch.setattr(member, "on_map_put", handle)
    done = threading.Event()
    client = remuda.connect(grid.addresses)
    with client, client.pipeline(in_flight=10) as pipeline:
        release.set()
        items = pipeline.map("numbers", Number)
        items.put(-1, Number(0)).result()
        release.clear()

        def put() -> None:
            for key in range(100):
                items.put(key, Number(key))
            pipeline.flush()
            done.set()

        thread = threading.Thread(target=put, daemon=True)
        thread.start()
        deadline = 1000
        while len(held) < 10 and deadline:
            thread.join(0.01)
            deadline -= 1
        thread.join(0.05)
        assert len(held) == 10
        assert not done.is_set()
        release.set()
        for real, request in held:
            grid.loop.call_soon_threadsafe(real, request)
        assert done.wait(30)
        thread.join()
        assert len(client.map("numbers", Number)) == 101


@pytest.mark.soak
def test_a_member_that_is_killed_leaves_no_request_without_an_outcome() -> None:
    """Each key gets 1, 2, 3, ... in order; after the loss each has a value that was written last,
    or one whose outcome is not known."""
    with remuda.start(members=3) as cluster, cluster.connect() as client:
        client.map("kept", Number).put_all({key: Number(0) for key in range(60)})
        written: dict[int, list[Any]] = {key: [] for key in range(60)}
        with client.pipeline() as pipeline:
            items = pipeline.map("kept", Number)
            for value in range(1, 41):
                if value == 20:
                    os.kill(cluster.pids[2], signal.SIGKILL)
                for key in range(60):
                    written[key].append(items.put(key, Number(value)))
            pipeline.flush()
        found = client.map("kept", Number).get_all(range(60))
        for key, outcomes in written.items():
            assert all(outcome.done for outcome in outcomes)
            errors = [outcome.error() for outcome in outcomes]
            lost = {type(error) for error in errors if error is not None}
            assert lost <= {OutcomeUnknown, MemberUnavailable}, lost
            last = max(value for value, error in enumerate(errors, 1) if error is None)
            unknown = {v for v, e in enumerate(errors, 1) if e is not None and e.may_have_run}
            assert found[key].v in {last, *(v for v in unknown if v > last)}
        assert any(outcomes[-1].error() is None for outcomes in written.values())
