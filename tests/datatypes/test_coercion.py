"""Conversions between types."""

from __future__ import annotations

from itertools import product

import pytest

from remuda.datatypes.coercion import (
    common_type,
    is_assignable,
    is_explicit,
    is_implicit,
)
from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    NULL,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TINYINT,
    VARCHAR,
    decimal,
    varchar,
)

TYPES = (
    BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, decimal(7, 2), decimal(38, 4),
    VARCHAR, varchar(3), BYTEA, DATE, TIME, TIMESTAMP, TIMESTAMPTZ,
)  # fmt: skip

COMMON = [
    ((SMALLINT, BIGINT), BIGINT),
    ((INTEGER, decimal(7, 2)), decimal(12, 2)),
    ((decimal(7, 2), decimal(9, 4)), decimal(9, 4)),
    ((decimal(38, 0), decimal(4, 2)), decimal(38, 2)),
    ((decimal(7, 2), DOUBLE), DOUBLE),
    ((INTEGER, REAL), DOUBLE),
    ((REAL, REAL), REAL),
    ((DATE, TIMESTAMP), TIMESTAMP),
    ((DATE, TIMESTAMPTZ, TIMESTAMP), TIMESTAMPTZ),
    ((varchar(3), varchar(5)), VARCHAR),
    ((varchar(3), NULL), VARCHAR),
    ((NULL, INTEGER), INTEGER),
    ((NULL, NULL), VARCHAR),
    ((VARCHAR, INTEGER), None),
    ((BOOLEAN, INTEGER), None),
    ((DATE, TIME), None),
]


@pytest.mark.parametrize(("types", "common"), COMMON)
def test_common_type(types, common):
    assert common_type(types) == common
    assert common_type(types[::-1]) == common


@pytest.mark.parametrize(("left", "right"), list(product(TYPES, TYPES)))
def test_common_type_is_reached_implicitly(left, right):
    common = common_type((left, right))
    assert common == common_type((right, left))
    if common is not None:
        assert is_implicit(left, common)
        assert is_implicit(right, common)


@pytest.mark.parametrize(("source", "target"), list(product(TYPES, TYPES)))
def test_each_kind_of_conversion_contains_the_stricter_one(source, target):
    if is_implicit(source, target):
        assert is_assignable(source, target)
    if is_assignable(source, target):
        assert is_explicit(source, target)


@pytest.mark.parametrize("target", [t for t in TYPES if not t.is_text])
def test_text_never_turns_into_anything_by_itself(target):
    assert not is_implicit(VARCHAR, target)
    assert not is_assignable(VARCHAR, target)
    assert is_explicit(VARCHAR, target)
