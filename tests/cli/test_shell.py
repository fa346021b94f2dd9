"""The shell against members: psql's forms, its commands, relations, and transactions."""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from remuda.cli.main import main
from remuda.cli.results.options import PrintOptions
from remuda.cli.shell.commands import index
from remuda.cli.shell.session import Options, Session, _milliseconds
from remuda.cli.sql_command import run_text

SCRIPTS = Path(__file__).parent / "scripts"


@pytest.fixture(scope="module")
def client(three_members):
    with three_members.connect() as client:
        yield client


@pytest.fixture
def shell(client):
    """Runs a text; what the shell prints, standard output and errors in their order."""

    def run(text, *, stops=False, **printing):
        out = io.StringIO()
        session = Session(
            client,
            out=out,
            errors=out,
            options=Options(PrintOptions(**printing)),
            variables={"ON_ERROR_STOP": "on" if stops else "off"},
            stdin=io.StringIO("typed\n").readline,
        )
        run_text(session, text)
        session.end_output()
        return out.getvalue()

    return run


def test_results_have_the_forms_of_psql(shell):
    """``forms_of_psql.txt`` is the standard output of psql 15 on PostgreSQL 15 for ``forms.sql``;
    ``--rewrite`` does not make it."""
    expected = (SCRIPTS / "forms_of_psql.txt").read_text()
    found = shell((SCRIPTS / "forms.sql").read_text())
    assert found.replace("to errors\n", "") == expected


def test_crosstabs_have_the_form_of_psql(shell):
    """``crosstab_of_psql.txt`` is the standard output of psql 15 for ``crosstab.sql``."""
    expected = (SCRIPTS / "crosstab_of_psql.txt").read_text()
    assert shell("\\set QUIET on\n" + (SCRIPTS / "crosstab.sql").read_text()) == expected


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("SELECT 1, 2, 3, 4 \\crosstabview", "data column must be specified when query returns"),
        ("SELECT 1, 2 \\crosstabview", "query must return at least three columns"),
        ("SELECT 1, 2, 3 \\crosstabview 1 1", "horizontal headers must be different columns"),
        ("SELECT 1, 2, 3 \\crosstabview 1 7", "column number 7 is out of range 1..3"),
        ("SELECT 1, 2, 3 \\crosstabview 1 nothing", 'column name not found: "nothing"'),
        ("SELECT 1 a, 2 b, 3 b \\crosstabview a b", 'ambiguous column name: "b"'),
        (
            "VALUES (1, NULL, 3), (1, NULL, 4) \\crosstabview",
            'query result contains multiple data values for row "1", column "(null)"',
        ),
        (
            "SELECT 1, i, 2 FROM generate_series(1, 1601) g(i) \\crosstabview",
            "maximum number of columns (1600) exceeded",
        ),
    ],
)
def test_crosstabs_say_what_is_wrong(shell, command, problem):
    found = shell(command)
    assert f"\\crosstabview: {problem}" in found.replace("vertical and horizontal", "horizontal")
    head = shell("SELECT 5 AS a, 6 AS b, 7 AS c \\crosstabview").splitlines()[0]
    assert head.split() == ["a", "|", "6"]


def test_relations(shell, golden, client):
    found = shell((SCRIPTS / "relations.sql").read_text())
    found = found.replace(", ".join(client.addresses), "ADDRESSES")
    golden.check("cli/relations.txt", found)


def test_relations_about_the_grid(shell):
    lines = shell("\\d sys.Maps").splitlines()
    assert lines[0].strip() == 'View "sys.maps"'
    assert any(line.split("|")[0].strip() == "partition_by" for line in lines)
    assert 'any relation named "sys.nothing"' in shell("\\d sys.nothing")
    assert 'any relation named "sys.a;b"' in shell("\\d sys.a;b")


def test_all_commands_are_listed(shell):
    text = shell("\\?")
    for section in index.SECTIONS:
        for command in section.commands:
            assert command.usage in text
            assert command.about in text


class TestCommands:
    def test_a_result_goes_to_a_file_or_a_program(self, shell, tmp_path):
        text = f"select 7 as n \\g {tmp_path}/a\nselect 8 as n \\g (format=csv) |cat > {tmp_path}/b"
        assert shell(text) == ""
        assert (tmp_path / "a").read_text() == " n \n---\n 7\n(1 row)\n\n"
        assert (tmp_path / "b").read_text() == "n\n8\n"

    def test_a_program_that_ends_early_has_seen_enough(self, shell, capfd):
        many = "select repeat('x', 1000) as wide from generate_series(1, 20000)"
        assert (
            shell(f"{many} \\g |head -n 1\n\\o |head -n 1\n{many};\n\\o\n\\echo next\n") == "next\n"
        )
        assert len(capfd.readouterr().out.splitlines()) == 2

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
    def test_a_full_disk_is_told(self, shell):
        many = "select repeat('x', 1000) as wide from generate_series(1, 2000)"
        full = shell(f"{many} \\g /dev/full\nselect 1 \\g /dev/full\n\\echo next\n")
        assert full.count("cannot be written: No space left on device") == 2
        assert full.endswith("next\n")

    def test_results_go_to_a_file_until_told_otherwise(self, shell, tmp_path):
        text = (
            f"\\o {tmp_path}/a\nselect 1 as x;\n\\qecho written\n\\echo shown\n\\o\nselect 2 as y;"
        )
        assert shell(text, format="csv") == "shown\ny\n2\n"
        assert (tmp_path / "a").read_text() == "x\n1\nwritten\n"

    def test_files_include_files_beside_them(self, shell, tmp_path):
        (tmp_path / "a.sql").write_text("\\echo a\n\\ir b.sql\n\\echo again a\n\\q\n\\echo never\n")
        (tmp_path / "b.sql").write_text("\\echo b\nselect nonsense;\n")
        found = shell(f"\\i {tmp_path}/a.sql\n\\echo behind")
        assert found.startswith("a\nb\n")
        assert f"{tmp_path}/b.sql:2: ERROR 42703" in found
        assert found.endswith("again a\nbehind\n")

    def test_an_error_in_a_file_ends_all_if_wanted(self, shell, tmp_path):
        (tmp_path / "a.sql").write_text("select nonsense;\n\\echo never\n")
        found = shell(f"\\i {tmp_path}/a.sql\n\\echo never", stops=True)
        assert "42703" in found
        assert "never" not in found

    def test_a_file_that_is_not_there(self, shell):
        assert "/nothing.sql cannot be read: No such file" in shell("\\i /nothing.sql")

    def test_watch_repeats(self, shell):
        found = shell("select 5 as five \\watch 0 c=3", format="csv")
        assert found == "five\n5\n" * 3
        assert "(every 0s)" in shell("select 5 as five \\watch i=0 c=1")
        assert 'incorrect value "x"' in shell("select 5 \\watch x")
        assert "incorrect value" in shell("select 5 \\watch -1")

    def test_parameters_of_one_statement(self, shell):
        found = shell("\\bind 7 'a b'\nselect $1::int + 1 as n, $2::text as t \\g\n", format="csv")
        assert found == "n,t\n8,a b\n"

    def test_parameters_have_the_types_that_the_statement_wants(self, shell):
        text = "\\bind 7 2024-01-31\nselect 8 where 7 = $1 and $2 = date '2024-01-31' \\g\n"
        assert shell(text, tuples_only=True, format="unaligned") == "8\n"
        found = shell("\\bind x\nselect 1 where 1 = $1 \\g\n")
        assert found == 'ERROR 22P02: invalid input syntax for type integer: "x"\n'
        assert "has 1 parameters, 2 were given" in shell("\\bind 1 2\nselect 1 + $1 \\g\n")

    def test_the_editor_changes_the_statement(self, shell, monkeypatch):
        monkeypatch.setenv("EDITOR", "sed -i s/one/two/")
        assert shell("select 'one' as one \\e\n;", format="csv") == "one\ntwo\n"
        monkeypatch.setenv("EDITOR", "false")
        assert "could not start editor" in shell("select 1 \\e\n\\r")

    def test_the_editor_changes_a_file(self, shell, monkeypatch, tmp_path):
        (tmp_path / "a.sql").write_text("select 1 as one;\n")
        monkeypatch.setenv("EDITOR", "sed -i s/1/2/")
        assert shell(f"\\e {tmp_path}/a.sql\n", format="csv") == "one\n2\n"

    def test_the_buffer(self, shell, tmp_path):
        found = shell(
            f"\\p\nselect 1\n\\p\n\\w {tmp_path}/a\n\\r\n\\p\nselect 2 as b;\n\\p\n\\g",
            format="csv",
        )
        empty, first, reset, kept, *rest = found.splitlines()
        assert (empty, first, kept) == (
            "Query buffer is empty.",
            "select 1",
            "Query buffer is empty.",
        )
        assert reset == "Query buffer reset (cleared)."
        assert rest == ["b", "2", "select 2 as b", "b", "2"]
        assert (tmp_path / "a").read_text() == "select 1\n"

    def test_gset_wants_one_row(self, shell):
        assert "no rows returned for \\gset" in shell("select 1 where false \\gset")
        assert "more than one row" in shell("values (1), (2) \\gset")

    def test_gdesc_runs_nothing(self, shell):
        found = shell("select 1 / (x - x) as a, 'b' as b from generate_series(1, 3) t(x) \\gdesc")
        assert " a      | INTEGER\n b      | VARCHAR\n(2 rows)\n" in found
        assert "0A000" in shell("create table nothing (a int) \\gdesc")

    def test_gexec_stops_at_an_error_if_wanted(self, shell):
        text = "values ('select nonsense'), ('select 3 as n') \\gexec\n"
        assert "3" in shell(text).splitlines()[-1] or "3" in shell(text, format="csv")
        assert "n\n3" not in shell(text, format="csv", stops=True)

    def test_variables_of_the_system(self, shell, monkeypatch):
        monkeypatch.setenv("REMUDA_TEST_NAME", "given")
        text = "\\getenv a REMUDA_TEST_NAME\n\\echo :a\n\\setenv REMUDA_TEST_NAME new\n"
        text += "\\echo `echo $REMUDA_TEST_NAME`\n"
        assert shell(text) == "given\nnew\n"
        assert os.environ["REMUDA_TEST_NAME"] == "new"

    def test_a_variable_is_asked_for(self, shell, capsys):
        assert shell("\\prompt 'name: ' n\n\\echo hello :n") == "hello typed\n"
        assert capsys.readouterr().err == "name: "

    def test_programs_of_the_system(self, shell, capfd):
        assert shell("\\! echo from a shell; exit 3\n\\echo :SHELL_EXIT_CODE\n") == "3\n"
        assert capfd.readouterr().out == "from a shell\n"

    def test_queries_of_commands_are_shown(self, shell):
        found = shell("\\set ECHO_HIDDEN on\n\\dn\n")
        assert "********* QUERY **********\nSELECT n.nspname" in found
        assert "List of schemas" in found
        assert "List of schemas" in shell("\\dn")

    def test_input_is_echoed(self, shell):
        text = "\\set ECHO all\nselect 1 as n;\n\\echo x\n"
        assert shell(text, format="csv") == "select 1 as n;\nn\n1\n\\echo x\nx\n"
        found = shell("\\set ECHO queries\nselect 1\n as n;\n\\echo x\n", format="csv")
        assert found == "select 1\n as n\nn\n1\nx\n"
        assert "STATEMENT: select nonsense" in shell("\\set ECHO errors\nselect nonsense;")

    def test_errors_as_long_as_wanted(self, shell):
        text = "\\set VERBOSITY {}\nselect nonsense;"
        assert shell(text.format("sqlstate")) == "ERROR 42703\n"
        assert shell(text.format("terse")) == 'ERROR 42703: column "nonsense" does not exist\n'
        assert "KIND: UndefinedColumn" in shell(text.format("verbose"))
        found = shell("\\errverbose\nselect nonsense;\n\\errverbose")
        assert found.startswith("There is no previous error.\n")
        assert found.count("does not exist") == 2
        assert "RETRYABLE: no" in found

    @pytest.mark.parametrize(
        ("text", "error"),
        [
            ("\\pset", ""),
            ("\\pset border x", 'border must be a number, not "x"'),
            ("\\pset nonsense", "unknown option: nonsense"),
            ("\\pset linestyle dots", "allowed line styles are ascii, unicode"),
            ("\\pset csv_fieldsep ab", "must be a single character"),
            ("\\set a-b 1", 'invalid variable name: "a-b"'),
            ("\\set ECHO nonsense", "Available values are: none, errors, queries, all."),
            ("\\set AUTOCOMMIT x", 'unrecognized value "x" for "AUTOCOMMIT": Boolean expected'),
            ("\\endif", "\\endif: no matching \\if"),
            ("\\if true", "reached EOF without finding closing \\endif(s)"),
            ("\\if true\n\\else\n\\else\n\\endif", "cannot occur after \\else"),
            ("\\if true\n\\else\n\\elif true\n\\endif", "cannot occur after \\else"),
            ("\\echo 'open", "unterminated quoted string"),
            ("\\timing on more", '\\timing: extra argument "more" ignored'),
            ("\\encoding latin1", "Texts are UTF8."),
            ("\\cd /nothing", "could not change directory to /nothing: No such file"),
            ("\\unset", "\\unset: missing required argument"),
            ("select 1 \\; select 2;", "Statements are sent one by one."),
            ("\\g", "the query buffer is empty"),
            ("\\o /nothing/x", "/nothing/x cannot be written: No such file"),
            ("\\echo `exit 3`", "failed with exit code 3"),
            ("\\password", "remuda user password NAME"),
            ("\\sv nothing", 'view "nothing" does not exist'),
        ],
    )
    def test_wrong_uses_are_told(self, shell, text, error):
        found = shell(text)
        assert error in found
        assert "Traceback" not in found

    def test_wrapped_and_automatic_records(self, shell):
        text = "select repeat('wide ', 20) as a, repeat('long ', 20) as b;"
        wide = shell(text, columns=60, expanded="auto")
        assert wide.startswith("-[ RECORD 1 ]")
        wrapped = shell(text, columns=60, format="wrapped")
        assert max(map(len, wrapped.splitlines())) <= 60
        assert shell("select 1 as a, 2 as b;", columns=60, expanded="auto").startswith(" a | b \n")

    def test_markdown_and_json_lines(self, shell):
        text = "values (1, 'a|b'), (2, null);"
        assert shell(text, format="markdown").splitlines()[2] == "| 1 | a\\|b |"
        rows = [json.loads(line) for line in shell(text, format="ndjson").splitlines()]
        assert rows == [{"column1": 1, "column2": "a|b"}, {"column1": 2, "column2": None}]

    def test_parquet_into_a_file(self, shell, tmp_path):
        shell(f"values (1, 'a'), (2, null) \\g (format=parquet) {tmp_path}/x\n")
        assert pq.read_table(tmp_path / "x").to_pylist() == [
            {"column1": 1, "column2": "a"},
            {"column1": 2, "column2": None},
        ]

    def test_numbers_in_groups(self, shell):
        found = shell(
            "\\pset numericlocale on\nselect -1234567.5 as a, '1234' as b;", format="unaligned"
        )
        assert "-1,234,567.5|1234" in found


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0012345, "1.234 ms"),
        (1.5, "1500.000 ms (00:01.500)"),
        (3725.25, "3725250.000 ms (01:02:05.250)"),
    ],
)
def test_times_are_those_of_psql(seconds, text):
    assert _milliseconds(seconds) == text


class TestTransactions:
    @pytest.fixture(autouse=True)
    def table(self, client):
        client.sql("CREATE TABLE shelled (id BIGINT PRIMARY KEY)")
        yield
        client.sql("DROP TABLE shelled")

    def count(self, client):
        return client.sql("SELECT count(*) FROM shelled").scalar()

    def test_autocommit_off(self, shell, client):
        text = "\\set AUTOCOMMIT off\ninsert into shelled values (1);\nrollback;\n"
        text += "insert into shelled values (2);\ncommit;\n"
        assert shell(text) == "INSERT 1\nROLLBACK\nINSERT 1\nCOMMIT\n"
        assert [row[0] for row in client.sql("SELECT id FROM shelled")] == [2]

    def test_an_error_takes_back_one_statement(self, shell, client):
        text = "\\set ON_ERROR_ROLLBACK on\nbegin;\ninsert into shelled values (1);\n"
        text += "select nonsense;\ninsert into shelled values (2);\ncommit;\n"
        assert shell(text).endswith("INSERT 1\nCOMMIT\n")
        assert self.count(client) == 2

    def test_one_transaction_for_all(self, client, capsys):
        where = client.addresses[0]
        texts = ["-c", "insert into shelled values (1)", "-c", "select nonsense"]
        assert main(["sql", where, "-X", "-1", *texts]) == 1
        assert self.count(client) == 0
        assert main(["sql", where, "-X", "-1", *texts[:2]]) == 0
        assert self.count(client) == 1
        assert capsys.readouterr().out == "BEGIN\nINSERT 1\nROLLBACK\nBEGIN\nINSERT 1\nCOMMIT\n"


class TestCommandLine:
    @pytest.fixture
    def sql(self, client, capsys, monkeypatch, tmp_path):
        monkeypatch.setenv("REMUDARC", str(tmp_path / "rc"))

        def run(*words):
            status = main(["sql", client.addresses[0], *words])
            return status, capsys.readouterr()

        return run

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (["-A", "-t"], "1|a\n2|\n"),
            (["-At", "-F", ";", "-R", "/"], "1;a/2;/"),
            (["-At", "-z"], "1\0a\n2\0\n"),
            (["--csv"], "column1,column2\n1,a\n2,\n"),
            (["--csv", "-P", "csv_fieldsep=;"], "column1;column2\n1;a\n2;\n"),
            (["--csv", "-t", "-P", "null=-"], "1,a\n2,-\n"),
            (["-x", "-A"], "column1|1\ncolumn2|a\n\ncolumn1|2\ncolumn2|\n"),
            (
                ["--format", "ndjson", "-q"],
                '{"column1": 1, "column2": "a"}\n{"column1": 2, "column2": null}\n',
            ),
        ],
    )
    def test_options_of_the_format(self, sql, words, expected):
        status, captured = sql(*words, "-c", "values (1, 'a'), (2, null)")
        assert (status, captured.out) == (0, expected)

    def test_statements_and_files_run_in_the_order_given(self, sql, tmp_path):
        (tmp_path / "a.sql").write_text("\\echo from :who")
        words = ["-c", "\\echo one", "-f", str(tmp_path / "a.sql"), "-c", "\\echo three"]
        status, captured = sql("-v", "who=a file", *words)
        assert (status, captured.out) == (0, "one\nfrom a file\nthree\n")

    def test_the_users_file_is_read_unless_told_otherwise(self, sql, tmp_path):
        (tmp_path / "rc").write_text("\\set greeting hello\n\\pset format csv\n")
        assert sql("-c", "\\echo :greeting", "-c", "select 1 as n")[1].out.endswith("hello\nn\n1\n")
        assert sql("-X", "-c", "\\echo :greeting")[1].out == ":greeting\n"

    def test_the_exit_status(self, sql, tmp_path):
        (tmp_path / "a.sql").write_text("select nonsense;\n\\echo next\n")
        file = ["-f", str(tmp_path / "a.sql")]
        status, captured = sql(*file)
        assert (status, captured.out) == (1, "")
        assert captured.err.startswith(f"{tmp_path}/a.sql:1: ERROR 42703")
        assert sql(*file, "-v", "ON_ERROR_STOP=1")[0] == 3
        status, captured = sql(*file, "-v", "ON_ERROR_STOP=0")
        assert (status, captured.out) == (0, "next\n")
        assert sql("-c", "select nonsense", "-v", "ON_ERROR_STOP=1")[0] == 1

    def test_databases_and_time(self, sql):
        status, captured = sql("-l", "-X", "--timing", "-c", "select 1 as n", "--csv")
        assert status == 0
        assert captured.out.splitlines()[-2:] == ["n", "1"]
        assert "remuda" in captured.out
        assert re.fullmatch(r"(Time: \d+\.\d{3} ms( \(\d\d:.*\))?\n)+", captured.err)

    def test_output_to_a_file(self, sql, tmp_path):
        assert sql("-o", str(tmp_path / "out"), "-At", "-c", "select 5")[1].out == ""
        assert (tmp_path / "out").read_text() == "5\n"

    def test_another_member(self, sql, client):
        status, captured = sql(
            "-c", f"\\c {client.addresses[1]}", "-c", "\\conninfo", "-c", "\\c a:b"
        )
        assert status == 1
        assert "You are now connected to " in captured.out
        assert re.search(r'You are connected to .* as user "remuda"', captured.out)
        assert '"a:b" is no address' in captured.err

    def test_wrong_options(self, sql, capsys):
        assert sql("-P", "nonsense=1", "-c", "select 1")[0] == 1
        assert sql("-v", "ECHO=nonsense", "-c", "select 1")[0] == 1
        assert "Available values" in sql("-v", "ECHO=nonsense", "-c", "select 1")[1].err
