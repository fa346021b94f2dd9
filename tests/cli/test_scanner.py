"""Cutting input into statements."""

from __future__ import annotations

import pytest

from remuda.cli.shell.scanner import Scanner, Stop


def split(text, variables=None):
    """The statements, and the unfinished rest."""
    scanner = Scanner(lambda name, quote: (variables or {}).get(quote + name))
    statements = []
    for line in text.splitlines(keepends=True):
        scanner.feed(line)
        while (stop := scanner.scan()) is not Stop.INPUT:
            if stop is Stop.COMMAND:
                statements.append("\\" + scanner.rest_of_line())
                continue
            if not scanner.is_empty:
                statements.append(scanner.statement)
            scanner.clear()
    return tuple(statements), scanner


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
        ("select (1; 2); x", ("select (1; 2)",), "x"),
        (r"select E'it\';s'; select 'it\'; x", (r"select E'it\';s'", r"select 'it\'"), "x"),
        (r"select e'a''\';'; x", (r"select e'a''\';'",), "x"),
        ("select me$$a; b$$; x", ("select me$$a", "b$$"), "x"),
        ("select 'a\n;b'\n;\nx", ("select 'a\n;b'",), "x"),
        ("/* a\n; */ select 1;", ("/* a\n; */ select 1",), ""),
        ("select 1 \\g file\nx", ("\\g file",), "select 1 x"),
        ("select '\\g', \"\\x\" -- \\y\n;", ("select '\\g', \"\\x\" -- \\y",), ""),
    ],
)
def test_split(text, statements, rest):
    found, scanner = split(text)
    assert (found, scanner.statement) == (statements, rest.strip())


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
    assert split(text)[1].is_empty is empty


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", "="),
        ("select", "-"),
        ("select 'a", "'"),
        ("select E'a", "'"),
        ('select "a', '"'),
        ("select $x$ a", "$"),
        ("select (1", "("),
        ("select /* /* a */", "*"),
        ("select 1; -- x", "="),
    ],
)
def test_the_prompt_tells_what_is_open(text, status):
    assert split(text)[1].status == status


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select :a;", "select 1"),
        ("select :'a', :\"a\";", "select '1', \"1\""),
        ("select ':a', x::a, :b, a[1:2];", "select ':a', x::a, :b, a[1:2]"),
        ("select :'b', 'x;y';", "select :'b', 'x;y'"),
        ("select :{?a};", "select TRUE"),
        ("select :c;", "select :a"),
        ("select $$:a$$ /* :a */ -- :a\n;", "select $$:a$$ /* :a */ -- :a"),
    ],
)
def test_variables_are_replaced_outside_of_quotes(text, expected):
    known = {"a": "1", "'a": "'1'", '"a': '"1"', "?a": "TRUE", "c": ":a"}
    assert split(text, known)[0] == (expected,)


def test_a_variable_may_hold_whole_statements():
    assert split(":a 3;", {"a": "select 1; select"})[0] == ("select 1", "select 3")
