"""psql and pgbench, as Debian ships them."""

from __future__ import annotations

import os
import shutil
import subprocess

import psycopg
import pytest

SCRIPTS = ("tpcb-like", "simple-update", "select-only")
"""Of pgbench."""
psql_needed = pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
pgbench_needed = pytest.mark.skipif(
    shutil.which("pgbench") is None, reason="pgbench is not installed"
)


@pytest.fixture
def run(door, items):
    def one(program, *arguments, text=None):
        environment = os.environ | {
            "PGHOST": door["host"],
            "PGPORT": str(door["port"]),
            "PGUSER": "bob",
            "PGDATABASE": "shop",
        }
        return subprocess.run(
            [program, *arguments], input=text, env=environment, capture_output=True,
            text=True, timeout=60, check=False,
        )  # fmt: skip

    return one


@psql_needed
def test_a_script_of_psql(run):
    script = r"""
        \set ON_ERROR_STOP on
        SELECT id, name, price FROM items ORDER BY id;
        SELECT 6 * 7 AS answer \gset
        \echo :answer
        SELECT name FROM items WHERE id = $1 \bind 2 \g
        SELECT 1 AS one \gx
        BEGIN; INSERT INTO items VALUES (9, 'awl'); ROLLBACK;
        SELECT count(*) FROM items;
    """
    if "15." in run("psql", "--version").stdout:  # \bind came with psql 16
        script = script.replace(r"$1 \bind 2 \g", "2;")
    done = run("psql", "-XAt", text=script)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "1|saw|19.50", "2|nail|0.10", "42", "nail", "one|1", "BEGIN", "INSERT 0 1", "ROLLBACK", "2",
    ]  # fmt: skip


@psql_needed
def test_what_psql_describes(run):
    commands = [
        r"\dt", r"\d items", r"\d cheap", r"\di", r"\dv", r"\dn", r"\du", r"\dT", r"\df",
        r"\dp", r"\l", r"\dt+", r"\d+ items", r"\sv cheap", r"\conninfo", r"\ds", r"\dx",
    ]  # fmt: skip
    done = run("psql", "-X", *[part for command in commands for part in ("-c", command)])
    assert "ERROR" not in done.stderr
    shown = done.stdout
    for line in (
        " public | items | table | remuda",
        " name   | character varying(20)    |           | not null | ",
        " price  | numeric(10,2)            |           |          | ",
        '    "items_pkey" PRIMARY KEY, btree (id)',
        '    "items_name" btree (name)',
        '                        View "public.cheap"',
        " public | items_name | index | remuda | items",
        " public | cheap | view | remuda",
        "CREATE OR REPLACE VIEW public.cheap AS",
        'You are connected to database "shop" as user "bob"',
    ):
        assert line in shown, f"{line}\n{shown}"


@psql_needed
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT nam FROM items", ["42703", 'column "nam" does not exist', "LINE 1:", "HINT:"]),
        ("INSERT INTO items VALUES (1, 'x')", ["23505", "DETAIL:", "CONSTRAINT NAME:  items_pkey"]),
        (r"\copy items (nam) TO STDOUT", ["42703", 'column "nam"']),
        (r"COPY items TO '/tmp/items'", ["42501", "HINT:  Anyone can COPY to stdout"]),
        ("LOAD 'news'", ["0A000", "LOAD is not supported"]),
        ("DECLARE c CURSOR FOR SELECT 1", ["25P01", "DECLARE CURSOR can only be used"]),
        ("FETCH 3 FROM c", ["34000", 'cursor "c" does not exist']),
        ("MOVE 3 IN c", ["34000", 'cursor "c" does not exist']),
        ("CLOSE c", ["34000", 'cursor "c" does not exist']),
    ],
)
def test_what_psql_says_of_errors(run, text, said):
    done = run("psql", "-X", "-v", "VERBOSITY=verbose", "-c", text)
    assert done.returncode == 1
    for part in said:
        assert part in done.stderr


@pgbench_needed
@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_a_script_of_pgbench(run, connect, mode, tmp_path):
    connection = connect()
    connection.execute(f"CREATE TABLE accounts_{mode} (id BIGINT PRIMARY KEY, total INTEGER)")
    connection.execute(f"INSERT INTO accounts_{mode} VALUES (1, 0), (2, 0), (3, 0)")
    script = tmp_path / "transfer.sql"
    script.write_text(
        f"""\\set id random(1, 3)
        SELECT total FROM accounts_{mode} WHERE id = :id \\gset
        BEGIN;
        UPDATE accounts_{mode} SET total = total + 1 WHERE id = :id;
        END;
        """
    )
    done = run(
        "pgbench", "-n", "-f", str(script), "-M", mode, "-c", "2", "-t", "10", "--max-tries", "100"
    )
    assert done.returncode == 0, done.stderr
    assert "number of transactions actually processed: 20/20" in done.stdout
    assert f"query mode: {mode}" in done.stdout
    total = connection.execute(f"SELECT sum(total) FROM accounts_{mode}").fetchone()
    assert total == (20,)


@pytest.fixture(scope="module")
def bench(cluster_of):
    """Runs pgbench at a member of its own, and the member's address. The tables are there, filled
    by ``pgbench -i`` at scale 1: in one transaction, which writes 51 MiB. The settings are the
    default ones."""
    with cluster_of(1) as cluster:
        host, port = cluster.members[0].postgres.split(":")
        environment = os.environ | {
            "PGHOST": host, "PGPORT": port, "PGUSER": "bob", "PGDATABASE": "shop",
            "PGOPTIONS": "-c definitions_in_transactions=commit",
        }  # fmt: skip

        def one(*arguments):
            return subprocess.run(
                ["pgbench", *arguments], env=environment, capture_output=True, text=True,
                timeout=200, check=False,
            )  # fmt: skip

        done = one("-i", "-s", "1", "-q")
        assert done.returncode == 0, done.stderr
        with psycopg.connect(host=host, port=port, user="bob", autocommit=True) as connection:
            yield one, connection


@pgbench_needed
def test_pgbench_makes_its_tables(bench):
    _, connection = bench
    for table, rows in (("branches", 1), ("tellers", 10), ("accounts", 100_000), ("history", 0)):
        found = connection.execute(f"SELECT count(*) FROM pgbench_{table}").fetchone()
        assert found == (rows,), table
    keys = (
        "SELECT conrelid::regclass::text FROM pg_constraint"
        " WHERE contype = 'p' AND conname LIKE 'pgbench%' ORDER BY 1"
    )
    assert connection.execute(keys).fetchall() == [
        ("pgbench_accounts",), ("pgbench_branches",), ("pgbench_tellers",),
    ]  # fmt: skip


@pgbench_needed
@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_the_balances_of_pgbench_agree(bench, mode):
    """Each transaction adds one amount to an account, a teller, a branch and the history; clients
    that meet run theirs again."""
    run, connection = bench
    connection.execute("TRUNCATE pgbench_history")
    before = connection.execute("SELECT sum(abalance) FROM pgbench_accounts").fetchone()[0]
    for script in SCRIPTS:
        done = run("-n", "-b", script, "-M", mode, "-c", "2", "-t", "5", "--max-tries", "1000")
        assert done.returncode == 0, done.stderr
        assert "number of transactions actually processed: 10/10" in done.stdout
        assert "number of failed transactions: 0 " in done.stdout
    total = "SELECT count(*), sum(delta) FROM pgbench_history"
    count, moved = connection.execute(total).fetchone()
    assert count == 20  # of the two scripts that write
    after = connection.execute("SELECT sum(abalance) FROM pgbench_accounts").fetchone()[0]
    assert after - before == moved
    sums = "SELECT sum(tbalance) = (SELECT sum(bbalance) FROM pgbench_branches)"
    assert connection.execute(f"{sums} FROM pgbench_tellers").fetchone() == (True,)
