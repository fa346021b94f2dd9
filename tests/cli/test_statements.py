"""Cutting input into statements."""

from __future__ import annotations

import pytest

from remuda.cli.statements import is_empty, split


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("", (), ""),
        ("select 1", (), "select 1"),
        ("select 1; select 2;", ("select 1", "select 2"), ""),
        (";;  ; select 1;", ("select 1",), ""),
        ("select ';'; x", ("select ';'",), " x"),
        ("select 'it''s; fine';", ("select 'it''s; fine'",), ""),
        ('select "a;b";', ('select "a;b"',), ""),
        ("select 1 -- not; here\n;", ("select 1 -- not; here",), ""),
        ("select /* a; /* b; */ c; */ 1;", ("select /* a; /* b; */ c; */ 1",), ""),
        ("select $$a;b$$; $x$ ; $$ ; $x$;", ("select $$a;b$$", "$x$ ; $$ ; $x$"), ""),
        ("select 'open; ", (), "select 'open; "),
        ("select /* open; ", (), "select /* open; "),
        ("select $1; select $2", ("select $1",), " select $2"),
    ],
)
def test_split(text, statements, rest):
    found = split(text)
    assert (found.statements, found.rest) == (statements, rest)


@pytest.mark.parametrize(
    ("text", "empty"),
    [
        ("", True),
        (" \n\t", True),
        ("-- only", True),
        ("/* a */ -- b\n", True),
        ("/* a", False),
        ("x", False),
        ("-- a\nx", False),
        ("'", False),
    ],
)
def test_is_empty(text, empty):
    assert is_empty(text) is empty
