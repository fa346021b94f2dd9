"""``remuda sql`` and ``remuda status``: what they print, as golden transcripts."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
from prompt_toolkit.history import FileHistory

from remuda import Interval
from remuda.cli.main import _COMMANDS, _parser, main
from remuda.cli.results.options import PrintOptions
from remuda.cli.results.values import csv_field, json_value, show
from remuda.cli.shell.editing import history_file, run_shell, shorten
from remuda.cli.shell.session import Options, Session
from remuda.cli.sql_command import run_text
from remuda.cli.status_command import MAPS_QUERY, MEMBERS_QUERY
from remuda.datatypes import sql
from remuda.datatypes.arrow import external_schema
from remuda.datatypes.schema import Column, MapSchema
from remuda.errors import DivisionByZero, Position, SqlSyntaxError

COLUMNS = (
    Column("id", sql.BIGINT, False),
    Column("name", sql.VARCHAR),
    Column("price", sql.decimal(9, 2)),
    Column("since", sql.DATE),
)
ROWS = [
    (1, "oak, red", Decimal("12.50"), date(2020, 2, 29)),
    (2, None, None, None),
    (-30, "Ünïcode 木\nsecond line", Decimal("-0.05"), date(1999, 12, 31)),
    (4, "", Decimal("1000000.00"), None),
]


def batch(columns, rows):
    schema = external_schema(columns)
    arrays = [pa.array(v, f.type) for v, f in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@pytest.fixture
def scripted(grid, script):
    plan = (Column("plan", sql.VARCHAR, False),)
    error = SqlSyntaxError("unexpected FORM", position=Position(1, 10, 9, 4), hint="FROM?")
    grid.scripts |= {
        "select * from trees": script(COLUMNS, (batch(COLUMNS, ROWS),)),
        "select none": script(COLUMNS, (batch(COLUMNS, ROWS[:1]).slice(0, 0),)),
        "explain select": script(plan, (batch(plan, [("Sort",), ("  Scan",)]),), tag="EXPLAIN"),
        "create table t": script(tag="CREATE TABLE"),
        "insert": script(tag="INSERT", affected=3),
        "SELECT a FORM b": script(error=error),
        "late": script(COLUMNS, (batch(COLUMNS, ROWS),), error=DivisionByZero("division by zero")),
    }
    schema = MapSchema("trees", COLUMNS, ("id",), ("id",))
    grid.create(schema)
    pairs = (Column("a", sql.INTEGER, False), Column("b", sql.VARCHAR, False))
    grid.create(MapSchema("Pairs", pairs, ("a", "b"), ("b",), replicated=False))
    grid.create(MapSchema("small", pairs, ("a",), ("a",), replicated=True))
    return grid


def transcript(client, text, **printing):
    out = io.StringIO()
    session = Session(client, out=out, errors=out, options=Options(PrintOptions(**printing)))
    run_text(session, text)
    return session, out.getvalue()


@pytest.mark.usefixtures("scripted")
class TestTranscripts:
    def test_table(self, client, golden):
        text = "select * from trees; select none; explain select; create table t; insert;\n"
        session, actual = transcript(client, text)
        assert not session.failed
        golden.check("cli/table.txt", actual)

    @pytest.mark.parametrize("name", ["csv", "json", "ndjson", "markdown", "html", "unaligned"])
    def test_formats(self, client, golden, name):
        text = "select * from trees;\nselect none;\ncreate table t"
        session, actual = transcript(client, text, format=name)
        golden.check(f"cli/formats.{name}", actual)
        assert not session.failed
        if name == "json":
            assert len(json.loads(actual.removesuffix("[]\n"))) == 4

    def test_commands(self, client, golden):
        text = "\\x on\nselect * from trees;\n\\timing on\n\\x off\n\\?\n"
        session, actual = transcript(client, text)
        assert session.timing
        golden.check("cli/commands.txt", actual)

    @pytest.mark.parametrize("text", ["\\nonsense", "\\x maybe", "SELECT a FORM b;"])
    def test_errors(self, client, golden, text):
        session, actual = transcript(client, text + "\nselect * from trees;")
        assert session.failed
        name = "".join(c for c in text if c.isalnum())
        golden.check(f"cli/error_{name}.txt", actual)

    def test_an_error_after_rows(self, client):
        session, actual = transcript(client, "late;")
        assert session.failed
        assert actual.endswith("ERROR 22012: division by zero\n")

    def test_quit_leaves(self, client):
        _, actual = transcript(client, "\\q\nselect * from trees;")
        assert actual == ""


@pytest.mark.usefixtures("scripted")
class TestShell:
    class Lines:
        def history(self):
            return []

        def __init__(self, *lines):
            self.lines = list(lines)
            self.prompts = []

        def read(self, prompt):
            self.prompts.append(prompt)
            if not self.lines:
                raise EOFError
            line = self.lines.pop(0)
            if line is KeyboardInterrupt:
                raise KeyboardInterrupt
            return line

    def test_statements_of_several_lines(self, client):
        out = io.StringIO()
        session = Session(client, out=out, errors=out)
        lines = self.Lines(
            "insert", KeyboardInterrupt, "select *", "from trees", ";", "", "bad;",
            "create table t; insert; -- the end", "\\q", "insert;",
        )  # fmt: skip
        run_shell(session, lines)
        assert lines.lines == ["insert;"]
        assert "CREATE TABLE\nINSERT 3\n" in out.getvalue()
        assert "ERROR 42P01" in out.getvalue()
        assert lines.prompts[:5] == ["remuda> ", "      -> ", "remuda> ", "      -> ", "      -> "]

    def test_the_end_of_input_leaves(self, client):
        run_shell(Session(client, out=io.StringIO()), self.Lines())

    def test_history_is_kept_in_the_state_directory(self, monkeypatch, tmp_path):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        assert history_file() == tmp_path / "state" / "remuda" / "sql_history"
        assert history_file().exists()
        named = tmp_path / "other" / "history"
        assert history_file(str(named)) == named
        assert named.exists()

    def test_a_history_is_shortened_to_its_size(self, tmp_path):
        found = FileHistory(str(tmp_path / "history"))
        statements = ["SELECT 1;", "SELECT 2,\n+3;", "# no comment", "SELECT 'ä';"]
        for statement in statements:
            found.store_string(statement)
        path = Path(found.filename)
        for size, kept in ((None, 4), ("x", 4), ("-1", 4), ("9", 4), ("3", 3), ("1", 1), ("0", 0)):
            shorten(path, size)
            left = list(FileHistory(str(path)).load_history_strings())
            assert left == statements[::-1][:kept]
        found.store_string("SELECT 4;")
        assert list(found.load_history_strings()) == ["SELECT 4;"]


@pytest.mark.usefixtures("scripted")
class TestProcess:
    """The command as a whole: exit status, streams, no traceback."""

    def test_exit_status_and_streams(self, grid, capsys):
        where = ["--connect", grid.addresses[0]]
        assert main(["sql", *where, "-c", "insert"]) == 0
        assert capsys.readouterr().out == "INSERT 3\n"
        assert main(["sql", *where, "-c", "insert", "-c", "SELECT a FORM b", "-c", "insert"]) == 1
        captured = capsys.readouterr()
        assert captured.out == "INSERT 3\n"
        assert captured.err.startswith("ERROR 42601: unexpected FORM\nLINE 1: SELECT a FORM b\n")

    def test_files_and_standard_input(self, grid, capsys, tmp_path, monkeypatch):
        file = tmp_path / "statements.sql"
        file.write_text("insert;\n\\timing off\ninsert")
        where = ["--connect", ",".join(grid.addresses)]
        assert main(["sql", *where, "-f", str(file)]) == 0
        assert capsys.readouterr().out == "INSERT 3\nTiming is off.\nINSERT 3\n"
        monkeypatch.setattr("sys.stdin", io.StringIO("insert;"))
        assert main(["sql", *where]) == 0
        assert capsys.readouterr().out == "INSERT 3\n"
        assert main(["sql", *where, "-f", str(tmp_path / "none.sql")]) == 1
        assert "none.sql cannot be read" in capsys.readouterr().err

    def test_nobody_there(self, grid, capsys):
        address = grid.addresses[0]
        grid.stop_member(1)
        for command in ("sql", "status"):
            assert main([command, "--connect", address, *(["-c", "x"] * (command == "sql"))]) == 1
            error = capsys.readouterr().err
            assert f"remuda: {address} is not reachable" in error
            assert "HINT: Check the address, and that a cluster runs there" in error
        assert main(["sql", "--connect", "a:b", "-c", "x"]) == 1
        assert '"a:b" is no address' in capsys.readouterr().err

    @pytest.mark.parametrize(
        "words", [["bogus"], ["sql", "--nonsense"], ["start", "--members", "x"]]
    )
    def test_wrong_usage(self, words, capsys):
        with pytest.raises(SystemExit) as caught:
            main(words)
        assert caught.value.code == 2
        error = capsys.readouterr().err
        assert len(error.splitlines()) == 2 and words[-1] in error and "--help lists" in error

    def test_without_a_command(self, capsys):
        assert main([]) == 2
        assert "commands:" in capsys.readouterr().err

    @pytest.mark.parametrize("name", _COMMANDS)
    def test_the_list_has_the_line_of_each_command(self, name, capsys):
        """The list is printed without the module of the command, and alike with it."""
        with pytest.raises(SystemExit):
            main(["--help"])
        shown = " ".join(capsys.readouterr().out.split())
        assert " ".join(_parser(name).format_help().split()) == shown

    def test_arrow_output_through_a_pipe(self, grid):
        command = [sys.executable, "-m", "remuda.cli.main", "sql", "--format", "arrow"]
        command += ["--connect", grid.addresses[0], "-c", "select * from trees"]
        found = subprocess.run(command, capture_output=True, check=True)
        table = pa.ipc.open_stream(found.stdout).read_all()
        assert [tuple(row.values()) for row in table.to_pylist()] == ROWS

    def test_a_reader_that_stops_early(self, grid, script):
        long = batch(COLUMNS, ROWS * 1000)
        grid.scripts["long"] = script(COLUMNS, (long,) * 100)
        command = [sys.executable, "-m", "remuda.cli.main", "sql", "--format", "csv"]
        command += ["--connect", grid.addresses[0], "-c", "long"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            assert child.stdout is not None
            assert child.stderr is not None
            assert child.stdout.readline() == b"id,name,price,since\n"
            child.stdout.close()
            assert child.stderr.read() == b""
            assert child.wait(30) == 141

    def status(self, grid, script, rows):
        """Has the grid tell these rows of sys.members."""
        known = (("member", sql.BIGINT), ("state", sql.VARCHAR), ("cause", sql.VARCHAR))
        texts = (Column(name, kind) for name, kind in known)
        kept = ("storage_held", "storage_limit", "writes_refused")
        held = ("memory_held", "memory_limit", "spilled")
        sizes = (Column(name, sql.BIGINT) for name in (*kept, *held))
        columns = (*texts, *sizes, Column("queued", sql.INTEGER))
        grid.scripts[MEMBERS_QUERY] = script(columns, (batch(columns, rows),))
        texts, counts = (sql.VARCHAR,) * 2, (sql.BIGINT,) * 5
        named = zip(
            ("name", "key", "columns", "rows", "bytes", "bytes_limit", "backup_bytes", "kind"),
            (*texts, *counts, sql.VARCHAR),
            strict=True,
        )
        columns = tuple(Column(name, kind) for name, kind in named)
        maps = [
            ("Pairs", "a, b", 2, 0, 0, None, 0, "partitioned"),
            ("small", "a", 2, 0, 0, 1 << 30, 0, "replicated"),
        ]  # nobody tells of "trees"
        grid.scripts[MAPS_QUERY] = script(columns, (batch(columns, maps),))

    def test_status_with_a_silent_member(self, grid, capsys, script):
        rows = [
            (1, "alive", None, 1 << 20, 9 << 30, 0, 0, 6 << 30, 0, 0),
            (2, "no answer", "member 2 did not answer within 2 s", *(None,) * 7),
        ]
        self.status(grid, script, rows)
        assert main(["status", "--connect", grid.addresses[0]]) == 0
        text = capsys.readouterr().out
        assert "member 2 did not answer: rows and bytes below lack its share\n" in text
        assert "SUSPECTED" not in text
        cells = {
            words[0]: words[6:13]
            for line in text.splitlines()
            if len(words := [part.strip() for part in line.split("|")]) == 13
        }
        assert cells["1"] == ["1 MiB", "9 GiB", "0", "0 B", "6 GiB", "0 B", "0"]
        assert cells["2"] == ["?"] * 7

    def test_status(self, grid, client, capsys, golden, script):
        rows = [
            (1, "alive", None, 1 << 20, 9 << 30, 0, 0, 6 << 30, 0, 0),
            (2, "alive", None, 9 << 30, 9 << 30, 7, 5_000_000, 6 << 30, 1 << 21, 3),
            (3, "suspected", "nothing came from it for 10 s", *(0,) * 6, None),
        ]
        self.status(grid, script, rows)
        handle = client.map("trees")
        handle.put(1, {"name": "oak"})
        assert main(["status", "--connect", grid.addresses[0]]) == 0
        text = capsys.readouterr().out
        for member in grid.view.members:
            text = text.replace(f"{member.user_port}", "PORT ".strip())
        lines = [" | ".join(part.strip() for part in line.split("|")) for line in text.splitlines()]
        lines = ["rule" if set(line) <= set("-+ |") and line else line for line in lines]
        lines[0] = lines[0].split("clock")[0]
        golden.check("cli/status.txt", "\n".join(lines))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (b"\x00\xff", "\\x00ff"),
        (2.0, "2"),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (Decimal("1E+3"), "1000"),
        (Decimal("0.00"), "0.00"),
        (datetime(2020, 1, 2, 3, 4, 5), "2020-01-02 03:04:05"),  # noqa: DTZ001
        (datetime(2020, 1, 2, 3, 4, 5, 60, tzinfo=UTC), "2020-01-02 03:04:05.000060+00"),
        (time(1, 2, 3), "01:02:03"),
        (date(2020, 1, 2), "2020-01-02"),
    ],
)
def test_values_as_text(value, text):
    assert show(value) == text


@pytest.mark.parametrize(
    ("value", "sql_type", "text", "in_json"),
    [
        (Interval(14, -1, 5_000_000), sql.INTERVAL, "1 year 2 mons -1 days +00:00:05", None),
        (UUID(int=5), sql.UUID, "00000000-0000-0000-0000-000000000005", None),
        ({"b": [1, None], "a": "x"}, sql.JSON, '{"a": "x", "b": [1, null]}', "same"),
        ([1, 2], sql.JSON, "[1, 2]", "same"),
        ([1, None, 3], sql.array(sql.INTEGER), "{1,NULL,3}", "[1, null, 3]"),
        (["a b", 'q"'], sql.array(sql.VARCHAR), '{"a b","q\\""}', '["a b", "q\\""]'),
        ([True], sql.array(sql.BOOLEAN), "{t}", "[true]"),
        (
            (1, None, [2]),
            sql.row([("f1", sql.INTEGER), ("f2", sql.VARCHAR), ("f3", sql.array(sql.INTEGER))]),
            "(1,,{2})",
            '{"f1": 1, "f2": null, "f3": [2]}',
        ),
    ],
)
def test_nested_values_as_text(value, sql_type, text, in_json):
    assert show(value, sql_type) == text
    expected = f'"{text}"' if in_json is None else text if in_json == "same" else in_json
    assert json_value(value, sql_type) == expected


def test_fields_of_csv_and_json():
    assert csv_field("") == '""'
    assert csv_field('a "b"') == '"a ""b"""'
    assert csv_field("plain text") == "plain text"
    assert json_value(Decimal("1.10")) == "1.10"
    assert json_value(2.0) == "2.0"
    assert json_value(float("nan")) == '"NaN"'
    assert json_value("木") == '"木"'
    assert json_value(None) == "null"
