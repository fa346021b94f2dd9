"""The shell as a user meets it: on a pseudo terminal, with prompt_toolkit and rich."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys

import pyarrow as pa
import pytest

from remuda.datatypes import sql
from remuda.datatypes.schema import Column, MapSchema

COLUMNS = (Column("carrier", sql.VARCHAR), Column("late", sql.DOUBLE))


class Terminal:
    def __init__(self, command, env):
        self.ours, theirs = pty.openpty()
        self.child = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True
        )
        os.close(theirs)
        self.seen = ""

    def expect(self, text, since=0):
        while text not in self.seen[since:]:
            assert select.select([self.ours], [], [], 30)[0], f"no {text!r} in {self.seen!r}"
            try:
                piece = os.read(self.ours, 65536)
            except OSError:  # the other end is closed
                piece = b""
            if b"\x1b[6n" in piece:  # where is the cursor?
                os.write(self.ours, b"\x1b[1;1R")
            assert piece, f"no {text!r} in {self.seen!r}"
            self.seen += piece.decode()
        return len(self.seen)

    def type(self, text):
        os.write(self.ours, text.encode())

    def close(self):
        os.close(self.ours)
        self.child.kill()
        self.child.wait()


@pytest.fixture
def terminal(grid, script, tmp_path):
    pytest.importorskip("prompt_toolkit")
    pytest.importorskip("rich")
    page = pa.record_batch({"carrier": ["UA", None], "late": [12.5, 3.0]})
    grid.scripts["select * from flights"] = script(COLUMNS, (page,))
    grid.create(MapSchema("flights", COLUMNS, ("carrier",), ("carrier",)))
    command = [sys.executable, "-m", "remuda.cli.main", "sql", "--connect", grid.addresses[0]]
    env = os.environ | {"XDG_STATE_HOME": str(tmp_path), "TERM": "xterm", "COLUMNS": "100"}
    found = Terminal(command, env)
    yield found
    found.close()


def test_a_conversation(terminal, tmp_path):
    terminal.expect("\\? for help")
    at = terminal.expect("remuda>")
    terminal.type("select * from fli\t")
    at = terminal.expect("ghts", at)
    terminal.type(";\r")
    at = terminal.expect("(2 rows)", at)
    assert "12.5" in terminal.seen
    assert "<null>" in terminal.seen
    terminal.type("select nothing;\r")
    at = terminal.expect("ERROR 42P01", at)
    terminal.type("\\q\r")
    assert terminal.child.wait(30) == 0
    history = (tmp_path / "remuda" / "sql_history").read_text()
    assert "select * from flights;" in history
    assert "Traceback" not in terminal.seen
