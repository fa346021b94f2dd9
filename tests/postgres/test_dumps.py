"""A database of PostgreSQL, dumped by pg_dump, loaded by psql, dumped again and loaded into another
database of PostgreSQL: both copies are compared statement by statement with the original."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("dumped.sql")
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1:]
QUESTIONS = SCRIPT.with_name("dumped_questions.sql").read_text().splitlines()


@pytest.fixture(scope="module")
def original() -> Iterator[dict[str, str]]:
    """A server of PostgreSQL with the database: the variables that connect to it."""
    if not PROGRAMS:
        pytest.skip("PostgreSQL's server is not installed")
    user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    try:
        owner = pwd.getpwnam(user)
    except KeyError:
        pytest.skip("PostgreSQL refuses to run as root")
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    os.chown(folder, owner.pw_uid, owner.pw_gid)

    def run(program: str, *arguments: str) -> None:
        subprocess.run(
            [str(PROGRAMS[0] / program), *arguments],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder,
            user=owner.pw_uid, group=owner.pw_gid,
        )  # fmt: skip

    data = str(folder / "data")
    try:
        run("initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8")
        options = f"-k {folder} -c listen_addresses= -c fsync=off"
        run("pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            connected = {"PGHOST": str(folder), "PGUSER": "postgres", "PGDATABASE": "postgres"}
            asked(connected, "-f", str(SCRIPT))
            yield connected
        finally:
            run("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def program(connected: dict[str, str], name: str, *arguments: str) -> str:
    done = subprocess.run(
        [name, *arguments], env=os.environ | connected, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def asked(connected: dict[str, str], *arguments: str) -> str:
    return program(connected, "psql", "-XqAt", "-v", "VERBOSITY=terse", *arguments)


def answers(connected: dict[str, str], questions: Sequence[str]) -> list[str]:
    """As psql shows them; of an error what it says. One psql asks all: a mark follows each answer
    in both of its outputs."""
    arguments = [
        part for each in questions for part in (each, r"\echo @@", r"\warn @@", "ROLLBACK")
    ]
    done = subprocess.run(
        ["psql", "-XqAt", "-v", "VERBOSITY=terse", *(x for a in arguments for x in ("-c", a))],
        env=os.environ | connected | {"PGTZ": "UTC"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    rows, errors = done.stdout.split("@@\n"), done.stderr.split("@@\n")
    assert len(rows) == len(errors) == len(questions) + 1, done.stderr
    return [row + error for row, error in zip(rows[:-1], errors[:-1], strict=True)]


@pytest.mark.parametrize("form", [["--inserts"], []], ids=["inserts", "copy"])
def test_a_dump_loads_and_compares_equal(
    form: list[str], original: dict[str, str], door: dict[str, str], tmp_path: Path
) -> None:
    remuda = {"PGHOST": str(door["host"]), "PGPORT": str(door["port"]), "PGUSER": "bob"}
    dump = tmp_path / "dump.sql"
    dump.write_text(program(original, "pg_dump", *form))
    assert "PostgreSQL database dump complete" in dump.read_text()
    loaded = asked(remuda, "-f", str(dump))
    assert "ERROR" not in loaded, [line for line in loaded.splitlines() if "ERROR" in line]
    back = tmp_path / "back.sql"
    back.write_text(program(remuda, "pg_dump", "--no-owner", *form))
    try:
        # Numbers that the questions take, and rows that they write, are taken back for the next.
        again = tmp_path / "again.sql"
        again.write_text(program(original, "pg_dump", "--clean", *form))
        expected = answers(original, QUESTIONS)
        found = answers(remuda, QUESTIONS)
        assert dict(zip(QUESTIONS, found, strict=True)) == dict(
            zip(QUESTIONS, expected, strict=True)
        )
        asked(original, "-f", str(again))
        asked(original, "-c", "CREATE DATABASE returned")
        returned = original | {"PGDATABASE": "returned"}
        loaded = asked(returned, "-v", "ON_ERROR_STOP=1", "-f", str(back))
        assert "ERROR" not in loaded, loaded
        found = answers(returned, QUESTIONS)
        assert dict(zip(QUESTIONS, found, strict=True)) == dict(
            zip(QUESTIONS, expected, strict=True)
        )
    finally:
        asked(original, "-c", "DROP DATABASE IF EXISTS returned")
        asked(remuda, "-c", "DROP SCHEMA sales CASCADE")
        for name in ("people", "plain", "pair", "kinds", "uses", "follows", '"Mixed Case"'):
            asked(remuda, "-c", f"DROP TABLE {name} CASCADE")
        asked(remuda, "-c", 'DROP SEQUENCE "Odd Names"')
        asked(remuda, "-c", "DROP TYPE size")
