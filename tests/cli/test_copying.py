r"""``\copy`` and COPY statements in the shell, against members."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from remuda.cli.main import main
from remuda.cli.results.options import PrintOptions
from remuda.cli.shell.copying import Copy, parse_command, parse_statement
from remuda.cli.shell.editing import run_shell
from remuda.cli.shell.session import Options, Session
from remuda.cli.sql_command import run_text
from remuda.errors import SqlSyntaxError

CSV = Options(PrintOptions(format="csv"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("t from 'a b''c.csv' csv header;", Copy("t", True, "file", "a b'c.csv", "csv header")),
        ("t from plain.csv with csv", Copy("t", True, "file", "plain.csv", "with csv")),
        ("t TO /tmp/x-y.z", Copy("t", False, "file", "/tmp/x-y.z", "")),
        (
            '"From".T (a, "to") From STDIN (FORMAT csv)',
            Copy('"From".T (a, "to")', True, "stream", "stdin", "(FORMAT csv)"),
        ),
        (
            "(select 'to' from t /* to */) to program 'cat > x'",
            Copy("(select 'to' from t /* to */)", False, "program", "cat > x", ""),
        ),
        ("t to pstdout", Copy("t", False, "stream", "pstdout", "")),
        ("t from pstdin", Copy("t", True, "stream", "pstdin", "")),
    ],
)
def test_parts_of_a_command(text, found):
    assert parse_command(text) == found


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "end of line"),
        ("t", "end of line"),
        ("t from", "end of line"),
        ("t from program", "end of line"),
        ("t from program cat", '"cat"'),
        ("t from stdout", '"stdout"'),
        ("t to stdin", '"stdin"'),
        ("(select 1 to 'x'", "\"'x'\""),
        ("t (a from 'x", '"from"'),
    ],
)
def test_commands_that_cannot_be_read(text, where):
    with pytest.raises(SqlSyntaxError) as caught:
        parse_command(text)
    assert caught.value.message == f"\\copy: parse error at {where}"


@pytest.mark.parametrize(
    "text",
    [
        "-- x\n copy t from stdin",
        "COPY t (a) FROM STDIN (FORMAT csv)",
        "copy (select 1) to stdout",
        "COPY t TO stdout",
    ],
)
def test_statements_with_data(text):
    assert parse_statement(text) is not None


@pytest.mark.parametrize(
    "text",
    ["", "select 1", "copy t from 'file'", "copy t to program 'x'", "copy t from pstdin", "copy t"],
)
def test_statements_without_data(text):
    assert parse_statement(text) is None


@pytest.fixture(scope="module")
def client(three_members):
    with three_members.connect() as client:
        client.sql('CREATE TABLE "Copied" (id BIGINT PRIMARY KEY, name VARCHAR)')
        yield client
        client.sql('DROP TABLE "Copied"')


@pytest.fixture
def session(client):
    client.sql('TRUNCATE "Copied"')
    return Session(client, out=io.StringIO(), errors=io.StringIO(), options=CSV)


def rows(session):
    return [tuple(r) for r in session.client.sql('SELECT * FROM "Copied" ORDER BY id').fetchall()]


def test_data_among_statements(session):
    script = r"""
COPY "Copied" (id, name) FROM stdin;
1	one; two
2	\N
\.
\copy "Copied" from stdin csv
3,"a
b"
\.
SELECT count(*) FROM "Copied";
COPY (SELECT * FROM "Copied" ORDER BY id) TO STDOUT;
"""
    run_text(session, script)
    assert session.errors.getvalue() == ""
    assert session.out.getvalue() == "COPY 2\nCOPY 1\ncount\n3\n1\tone; two\n2\t\\N\n3\ta\\nb\n"
    assert rows(session) == [(1, "one; two"), (2, None), (3, "a\nb")]


def test_an_error_names_the_line_and_leaves_the_rest_of_the_data(session):
    run_text(session, 'COPY "Copied" FROM stdin;\n1\tx\nq\ty\nDROP TABLE "Copied";\n')
    assert session.failed
    assert session.errors.getvalue() == (
        'ERROR 22P02: invalid input syntax for type bigint: "q"\n'
        'CONTEXT: COPY Copied, line 2, column id: "q"\n'
    )
    assert rows(session) == []


def test_files(session, tmp_path):
    file = tmp_path / "it's"
    quoted = str(file).replace("'", "''")
    session.client.copy_from('COPY "Copied" FROM STDIN', b"1\tone\n2\ttwo\n")
    assert run_text(session, f"\\copy \"Copied\" (id) TO '{quoted}' (FORMAT csv, HEADER)")
    assert file.read_text().splitlines()[0] == "id"
    session.client.sql('TRUNCATE "Copied"')
    assert run_text(session, f"\\copy \"Copied\" (id) FROM '{quoted}' csv header;")
    assert session.out.getvalue() == "COPY 2\nCOPY 2\n"
    assert rows(session) == [(1, None), (2, None)]
    assert not run_text(session, f"\\copy \"Copied\" FROM '{tmp_path}/none'")
    assert not run_text(session, f'\\copy "Copied" TO {tmp_path}')
    errors = session.errors.getvalue().splitlines()
    assert [line.rpartition(": ")[2] for line in errors] == [
        "No such file or directory",
        "Is a directory",
    ]


def test_programs(session, tmp_path):
    assert run_text(session, '\\copy "Copied" from program \'printf "1\\tx\\n"\'')
    assert run_text(session, f"\\copy \"Copied\" to program 'cat > {tmp_path}/x'")
    assert Path(tmp_path / "x").read_text() == "1\tx\n"
    assert not run_text(session, '\\copy "Copied" from program \'printf "2\\tx\\n"; exit 3\'')
    assert not run_text(session, "\\copy \"Copied\" to program 'cat > /dev/null; exit 4'")
    errors = session.errors.getvalue()
    assert "exited with exit code 3" in errors
    assert "exited with exit code 4" in errors
    assert rows(session) == [(1, "x")]  # of a program that fails nothing is kept


def test_statements_of_the_command_line_read_standard_input(client, monkeypatch, capsys):
    client.sql('TRUNCATE "Copied"')
    monkeypatch.setattr("sys.stdin", io.StringIO("1\tx\n2\ty\n"))
    options = ["sql", client.addresses[0], "-c", 'COPY "Copied" FROM STDIN', "-c", "SELECT 7 AS n"]
    assert main([*options, "--format", "csv"]) == 0
    assert capsys.readouterr().out == "COPY 2\nn\n7\n"


class Typed:
    """A reader of lines that were typed before."""

    def __init__(self, *lines):
        self._lines = list(lines)
        self.prompts = []

    def read(self, prompt):
        self.prompts.append(prompt)
        if not self._lines:
            raise EOFError
        return self._lines.pop(0)

    def history(self):
        return []


def test_data_that_is_typed(session):
    reader = Typed('copy "Copied" from stdin;', "1\tx", "\\.", "\\copy", "\\q")
    run_shell(session, reader)
    assert "COPY 1\n" in session.out.getvalue()
    assert session.errors.getvalue().startswith("ERROR 42601: \\copy: parse error at end of line")
    assert [p.strip() for p in reader.prompts] == [
        "remuda>", ">>", ">>", "remuda>", "remuda>",
    ]  # fmt: skip


def test_restricted_commands(session):
    """pg_dump's scripts are loaded this way."""
    run_text(session, "\\restrict key")
    assert not run_text(session, "\\copy x to program 'false'")
    assert not run_text(session, "\\unrestrict other")
    assert run_text(session, "\\unrestrict key")
    assert run_text(session, "\\x")
    assert "backslash commands are restricted" in session.errors.getvalue()


def test_binary_goes_to_a_pipe(client, tmp_path):
    path = tmp_path / "b"
    session = Session(client, out=io.TextIOWrapper(path.open("wb")), errors=io.StringIO())
    assert session.statement("COPY (SELECT 1) TO STDOUT (FORMAT binary)")
    session.out.close()
    assert path.read_bytes().startswith(b"PGCOPY\n\xff")
