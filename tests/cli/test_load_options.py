"""The options of ``remuda load`` that need no Spark."""

from __future__ import annotations

import pytest

from remuda.cli.load import parse_types
from remuda.datatypes import sql
from remuda.errors import RemudaError


def test_types() -> None:
    assert parse_types("") == {}
    assert parse_types("a:BIGINT, b : decimal(7, 2),c:varchar(3),d:timestamp with time zone") == {
        "a": sql.BIGINT,
        "b": sql.decimal(7, 2),
        "c": sql.varchar(3),
        "d": sql.TIMESTAMPTZ,
    }


@pytest.mark.parametrize("text", ["a", "a:", "a:nothing", "a:decimal(99,1)", "a:int(", ":int,b"])
def test_wrong_types(text: str) -> None:
    with pytest.raises(RemudaError):
        parse_types(text)
