"""PostgreSQL's types that do not exist here say what to use; its names of arrays mean arrays."""

from __future__ import annotations

import pytest

from remuda.datatypes.sql import INTEGER, array
from remuda.errors import NotSupported, UndefinedType
from remuda.sql.text.types import type_from_name


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("inet", "VARCHAR"),
        ("tstzrange", "two columns"),
        ("datemultirange", "two columns"),
        ("time with time zone", "TIMESTAMP WITH TIME ZONE"),
        ("bit varying", "BYTEA"),
        ("tid", "a key names a row"),
    ],
)
def test_a_type_of_postgresql_says_what_to_use(name: str, hint: str) -> None:
    with pytest.raises(NotSupported, match=f'type "{name}" is not supported') as refused:
        type_from_name(name, (), None)
    assert hint in str(refused.value.hint)


def test_other_names_are_no_types() -> None:
    for name in ("_inet", "_integer", "int4ranges"):
        with pytest.raises(UndefinedType):
            type_from_name(name, (), None)


def test_an_underscore_means_an_array() -> None:
    assert type_from_name("_int4", (), None) == array(INTEGER)
