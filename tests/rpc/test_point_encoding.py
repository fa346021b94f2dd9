"""The hand-written messages are what protobuf reads."""

from __future__ import annotations

import pytest

from remuda.rpc import point_encoding as encoding
from remuda.rpc.messages import common_pb2, user_pb2

CLOCKS = (0, 1, 2**62 + 5)


@pytest.mark.parametrize("clock", CLOCKS)
def test_context(clock: int) -> None:
    data = encoding.encode_context(clock, 300, 7)
    assert common_pb2.Context.FromString(data) == common_pb2.Context(
        clock=clock, view=300, sender=7
    )


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 128, 129, 20_000, 3_000_000])
def test_rows(size: int) -> None:
    data = encoding.encode_rows([bytes(size), None, b""], encoding.encode_context(5, 1, 2))
    message = user_pb2.RowsResponse.FromString(data)
    assert [entry.row if entry.HasField("row") else None for entry in message.rows] == [
        bytes(size), None, b"",
    ]  # fmt: skip
    assert message.context == common_pb2.Context(clock=5, view=1, sender=2)


@pytest.mark.parametrize("about", [None, b"", user_pb2.AnswerForm(route_parameters=[1, 2])])
def test_answer(about: bytes | user_pb2.AnswerForm | None) -> None:
    form = about.SerializeToString() if isinstance(about, user_pb2.AnswerForm) else about
    context = encoding.encode_context(5, 1, 2)
    rows = [b"a", b"", bytes(200)]
    data = encoding.encode_answer((-5, 2**62), context, 2**63 + 1, form, rows)
    expected = user_pb2.QueryAnswer(
        query_id=common_pb2.QueryId(part1=-5, part2=2**62),
        context=common_pb2.Context(clock=5, view=1, sender=2),
        form=2**63 + 1,
        rows=rows,
    )
    if form is not None:
        expected.about.MergeFromString(form)
        expected.about.SetInParent()
    assert user_pb2.QueryAnswer.FromString(data) == expected


def test_requests_from_parts() -> None:
    context = encoding.encode_context(9, 3)
    keys = user_pb2.KeysRequest(map="m", map_id=4, schema_version=2)
    data = (
        keys.SerializeToString()
        + encoding.field(encoding.KEYS_ITEM, b"key")
        + encoding.field(encoding.KEYS_CONTEXT, context)
    )
    keys.keys.append(b"key")
    keys.context.MergeFromString(context)
    assert user_pb2.KeysRequest.FromString(data) == keys
    put = user_pb2.PutRequest.FromString(data)
    assert (list(put.rows), put.context) == ([b"key"], keys.context)

    run = user_pb2.RunQuery(type=user_pb2.SQL, plan="SELECT 1")
    data = (
        run.SerializeToString()
        + encoding.field(encoding.RUN_PARAMETERS, b"row")
        + encoding.field(encoding.RUN_CONTEXT, context)
    )
    run.parameters = b"row"
    run.context.MergeFromString(context)
    assert user_pb2.RunQuery.FromString(data) == run
