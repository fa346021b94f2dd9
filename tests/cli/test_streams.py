"""Standard streams that are closed, full, or not text; names that are no good for a terminal."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from remuda.cli.main import main
from remuda.cli.results.aligned import Table
from remuda.cli.results.table import Alignment, counted, harmless, harmless_name
from remuda.cli.shell.session import Session


@pytest.fixture
def answers(grid, script):
    grid.scripts["insert"] = script(tag="INSERT", affected=3)
    return ["sql", "--connect", ",".join(grid.addresses)]


def run(words, redirections="", given=b""):
    """The command in a shell of its own, which closes or redirects its streams."""
    line = f'exec "$0" -m remuda.cli.main "$@" {redirections}'
    return subprocess.run(
        ["/bin/sh", "-c", line, sys.executable, *words],
        input=given,
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_told(answers):
    for words in ([*answers, "-c", "insert"], ["status", *answers[1:]]):
        result = run(words, "> /dev/full")
        assert result.returncode == 1
        assert result.stderr == b"remuda: No space left on device\n"


def test_closed_streams_are_empty_ones(answers):
    assert run([*answers, "-c", "insert"], ">&-").returncode == 0
    assert run([*answers, "-c", "insert"], "2>&-").stdout == b"INSERT 3\n"
    assert run(answers, "<&-").returncode == 0


def test_a_reader_that_has_seen_enough(answers):
    result = run([*answers, "-c", "insert"], "| true")
    assert result.stderr == b""


@pytest.mark.parametrize("given", [b"\xff\xfe", b"SELECT '\xff';"])
def test_input_that_is_no_text(answers, given):
    result = run(answers, given=given)
    assert result.returncode == 1
    assert b"standard input is not" in result.stderr
    assert b"bug" not in result.stderr


def test_a_statement_that_is_no_text(answers, capsys):
    assert main([*answers, "-c", "SELECT '\udcff'"]) == 1
    assert "the statement is not valid Unicode" in capsys.readouterr().err


def test_control_characters_do_not_reach_the_terminal(client):
    assert harmless("a\x1b[2J\nb\x9b\x7f\t") == "a\\x1b[2J\nb\\x9b\\x7f\\x09"
    assert harmless_name("a\nb") == "a\\x0ab"
    out = io.StringIO()
    table = Table(("k\x1b",), (Alignment.LEFT,), [("v\x07",)], "m\n", ("at\x1b",))
    Session(client, out=out).print_table(table)
    assert not set(out.getvalue()) & {"\x1b", "\x07"}
    assert "m\\x0a" in out.getvalue()


def test_numbers_of_things():
    assert [counted(number, "row") for number in (0, 1, 2000)] == ["0 rows", "1 row", "2,000 rows"]
