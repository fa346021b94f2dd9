"""``remuda sql`` and ``remuda status`` with words: an address, statements, and what is neither."""

from __future__ import annotations

import pytest

from remuda.cli.connecting import is_address
from remuda.cli.main import main


@pytest.mark.parametrize("order", ["words first", "words last", "words around"])
def test_statements_and_address_are_words(grid, script, capsys, order):
    grid.scripts |= {"insert": script(tag="INSERT", affected=3), "insert 2": script(tag="INSERT")}
    words, options = [grid.addresses[0], "insert 2;", "insert 2;"], ["--format", "table", "-x"]
    line = {
        "words first": [*words, *options],
        "words last": [*options, *words],
        "words around": [words[0], *options, *words[1:]],
    }[order]
    assert main(["sql", *line]) == 0
    assert capsys.readouterr().out.count("INSERT") == 2
    assert main(["sql", f"remuda://{grid.addresses[0]}", "insert"]) == 0


def test_status_takes_an_address(grid, capsys):
    for words in (["--connect", grid.addresses[0], "x"], ["a.b:1", "c.d:2"]):
        assert main(["status", *words]) == 1
        assert "as one list" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["SELECT", "1"], "'SELECT' is none", "remuda sql 'SELECT 1'"),
        (["SELECT 1", "h:1"], "the address h:1 stands behind", "comes first"),
        (["SELECT 1", "-c", "SELECT 2"], "statements are given twice: by -c", "Repeat -c"),
        (["-f", "x.sql", "SELECT 2"], "statements are given twice: by -f", "Repeat -c"),
        (["h:1", "--connect", "h:2", "SELECT 1"], "address is given twice: h:2 and h:1", "list"),
    ],
)
def test_words_that_are_refused(words, message, hint, capsys):
    assert main(["sql", *words]) == 1
    text = capsys.readouterr().err
    assert message in text
    assert hint in text


def test_unknown_options_are_refused(capsys):
    with pytest.raises(SystemExit):
        main(["sql", "SELECT 1", "--formt=csv"])
    assert "unrecognized arguments: --formt=csv" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("h:1", True), ("h:1,g:2", True), ("[::1]:31010", True), ("10.0.0.1", True),
        ("db.example.com", True), ("localhost", True), ("remuda://h", True),
        ("commit", False), ("SELECT 1", False), ("SELECT t.a FROM t", False), ("f();", False),
        ("'a:1'", False), (r"\d", False), ("x::int", False), ("1.5;", False), ("...", False),
    ],
)  # fmt: skip
def test_addresses_are_told_from_statements(word, found):
    assert is_address(word) == found
