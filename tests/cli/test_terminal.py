"""The shell as a user meets it: on a pseudo terminal, with prompt_toolkit and rich."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios

import pyarrow as pa
import pytest

from remuda.datatypes import sql
from remuda.datatypes.schema import Column, MapSchema

COLUMNS = (Column("carrier", sql.VARCHAR), Column("late", sql.DOUBLE))


def _take_terminal():
    """Its Ctrl-C is for this process: a signal."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    def __init__(self, command, env, size=(0, 0)):
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self.child = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=env,
            start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509  (nothing is locked there)
        )
        os.close(theirs)
        self.seen = ""

    def expect(self, text, since=0):
        """Wait until the terminal shows it; the place behind it."""
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
        return self.seen.index(text, since) + len(text)

    def type(self, text):
        os.write(self.ours, text.encode())

    def press(self, letter):
        """Ctrl with a letter."""
        os.write(self.ours, bytes([ord(letter) & 31]))

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


@pytest.fixture
def shell(three_members, tmp_path):
    """A terminal whose shell is connected to members, behind its first prompt."""
    pytest.importorskip("prompt_toolkit")
    with three_members.connect() as client:
        address = client.addresses[0]
    command = [sys.executable, "-m", "remuda.cli.main", "sql", address]
    state = {"XDG_STATE_HOME": str(tmp_path), "REMUDARC": str(tmp_path / "rc")}
    env = os.environ | state | {"TERM": "xterm", "NO_COLOR": "1", "PAGER": "tail -n 3"}
    found = Terminal(command, env, (24, 100))
    found.expect("remuda>")
    yield found
    found.close()


def test_statements_of_several_lines_are_remembered_whole(shell, tmp_path):
    at = len(shell.seen)
    shell.type("select 1\r")
    at = shell.expect("->", at)
    shell.type("+ 41 as n;\r")
    at = shell.expect("(1 row)", at)
    at = shell.expect("remuda>", at)
    assert "42" in shell.seen
    shell.press("p")
    at = shell.expect("+ 41 as n;", at)
    shell.type("\r")
    at = shell.expect("(1 row)", at)
    shell.type("\\s\r")
    at = shell.expect("select 1\r\n+ 41 as n;\r\n", at)
    shell.expect("remuda>", at)
    shell.press("d")
    assert shell.child.wait(30) == 0
    history = (tmp_path / "remuda" / "sql_history").read_text()
    assert history.count("+select 1\n++ 41 as n;\n") == 1


def test_ctrl_c_cancels_the_statement(shell, three_members):
    at = len(shell.seen)
    with three_members.connect() as client:
        running = "SELECT count(*) FROM sys.queries WHERE text LIKE '%2000000001%'"
        shell.type("select count(*) from generate_series(1, 2000000001);\r")
        while client.sql(running).scalar() < 2:  # this one as well
            pass
        shell.press("c")
        at = shell.expect("canceled", at)
        at = shell.expect("remuda>", at)
        while client.sql(running).scalar() > 1:
            pass
    shell.type("select 40 + 2 as n;\r")
    shell.expect("42", at)


def test_ctrl_c_ends_a_script(three_members, tmp_path):
    (tmp_path / "a.sql").write_text(
        "select count(*) from generate_series(1, 2000000002);\n\\echo on\n"
    )
    with three_members.connect() as client:
        words = ["-f", str(tmp_path / "a.sql"), "-X", "-v", "ON_ERROR_STOP=0"]
        command = [sys.executable, "-m", "remuda.cli.main", "sql", client.addresses[0], *words]
        terminal = Terminal(command, os.environ)
        running = "SELECT count(*) FROM sys.queries WHERE text LIKE '%2000000002%'"
        while client.sql(running).scalar() < 2:  # this one as well
            pass
        terminal.press("c")
        assert terminal.child.wait(30) == 130
        while client.sql(running).scalar() > 1:
            pass
    terminal.close()


def test_ctrl_c_forgets_what_was_typed(shell):
    at = len(shell.seen)
    shell.type("select nonsense\r")
    at = shell.expect("->", at)
    shell.press("c")
    at = shell.expect("remuda>", at)
    shell.type("select 7 as seven;\r")
    shell.expect("(1 row)", at)
    assert "ERROR" not in shell.seen


def test_ctrl_c_ends_a_watch(shell):
    at = len(shell.seen)
    shell.type("select 3 as n \\watch 1000\r")
    at = shell.expect("(every 1000s)", at)
    at = shell.expect("(1 row)", at)
    shell.press("c")
    at = shell.expect("remuda>", at)
    shell.type("\\echo again\r")
    shell.expect("again\r\n", at)


def test_long_results_go_through_the_pager(shell):
    """The pager of this test shows the last three lines."""
    at = len(shell.seen)
    shell.type("select x as number from generate_series(1, 900) t(x) order by 1;\r")
    at = shell.expect("(900 rows)", at)
    assert "    899\r" not in shell.seen
    assert "    900\r" in shell.seen
    shell.type("\\pset pager off\r")
    at = shell.expect("Pager usage is off.", at)
    shell.type("select x as number from generate_series(1, 900) t(x) order by 1;\r")
    shell.expect("    899\r", at)


def test_wide_tables_become_records(shell):
    at = len(shell.seen)
    shell.type("select repeat('a', 90) as long, 'b' as short, 1 as one;\r")
    at = shell.expect("-[ RECORD 1 ]", at)
    shell.type("select 'a' as long, 'b' as short, 1 as one;\r")
    shell.expect("------+-------+-----", at)


def test_words_that_leave(shell):
    shell.type("quit\r")
    assert shell.child.wait(30) == 0


def test_completion_of_functions_and_joins(shell, three_members):
    at = len(shell.seen)
    shell.type("select date_bi\t")
    at = shell.expect("n", at)
    shell.type("('1 day', now(), now()) is null as never;\r")
    at = shell.expect("never", at)
    shell.expect("(1 row)", at)
    with three_members.connect() as client:
        client.sql("CREATE TABLE tickets (id INT PRIMARY KEY, flight_id INT)")
        client.sql("CREATE TABLE flights (id INT PRIMARY KEY)")
    at = len(shell.seen)
    shell.type("select count(*) from tickets t join flights f on t.f\t")
    shell.expect("light_id = f.id", at)


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
