"""The programs of docs/postgres.md run as they stand there, but for the port. Those of Java, Go and
Node run where the language and the driver are:

- ``REMUDA_TEST_PGJDBC``: the driver's jar (default: that of Debian's libpostgresql-jdbc-java);
- ``REMUDA_TEST_GO_MODULE``: a folder with a go.mod that requires github.com/jackc/pgx/v5;
- ``REMUDA_TEST_NODE_MODULES``: a node_modules with ``pg`` and ``postgres`` (default: Debian's).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.programs import ROOT

PAGE = (ROOT / "docs/postgres.md").read_text(encoding="utf-8")
SECTIONS = re.findall(r"\n### (.*?)\n(.*?)(?=\n##)", PAGE, re.DOTALL)
PROGRAMS = {
    title: re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL)[0] for title, text in SECTIONS
}
OUTPUTS = {
    "psql": ['    "items_pkey" PRIMARY KEY, btree (id)', " saw  | 19.50"],
    "psycopg": ["psycopg ('saw', Decimal('19.50'))", "streamed saw", "streamed nail"],
    "A pool of psycopg": ["pool (Decimal('20.50'),)"],
    "asyncpg": ["asyncpg {'name': 'nail', 'price': Decimal('0.10')}"],
    "psycopg2": ["psycopg2 ('nail', Decimal('0.10'))"],
    "pg8000": ["pg8000 [['nail', Decimal('0.10')]]"],
    "SQLAlchemy": ["SQLAlchemy ['id BIGINT', 'name TEXT', 'price NUMERIC(10, 2)']",
                   "cheap ['nail']"],
    "SQLAlchemy's ORM": ["ORM ['awl', 'saw']"],
    "Alembic": ["Alembic ['code']"],
    "Django": [],
    "pandas": ["pandas {1: 'saw', 2: 'nail'}", "written (2, 2)"],
    "Polars": ["Polars ['saw', 'nail'] Decimal(precision=38, scale=10)"],
    "connectorx": ["connectorx ['saw', 'nail']"],
    "JupySQL": ["JupySQL ['saw', 'nail']"],
    "JDBC": ["JDBC nail 0.10"],
    "Go, by pgx": ["pgx nail"],
    "Node, by pg": ["pg nail 0.10"],
    "Node, by postgres.js": ["postgres.js nail"],
}  # fmt: skip
SLOW = {"Go, by pgx", "JDBC", "JupySQL", "pandas"}
"""Their programs take seconds to start or to compile, and their drivers have tests of their own."""
HIDDEN = 'import sys\nsys.modules["pyspark"] = None\n'
"""JupySQL imports pyspark if it is there, and wants all of Spark Connect then."""
JAR = os.environ.get("REMUDA_TEST_PGJDBC", "/usr/share/java/postgresql.jar")
GO_MODULE = os.environ.get("REMUDA_TEST_GO_MODULE", "")
NODE_MODULES = os.environ.get("REMUDA_TEST_NODE_MODULES", "/usr/share/nodejs")


def command(language: str, program: str, folder: Path) -> list[str]:
    """Skips the test if this machine lacks the language or the driver."""
    match language:
        case "sh":
            _need("psql")
            return ["sh", _file(folder, "program.sh", program)]
        case "python":
            return [sys.executable, _file(folder, "program.py", program)]
        case "ipython":
            text = HIDDEN + program
            return [sys.executable, "-m", "IPython", _file(folder, "program.ipy", text)]
        case "java":
            _need("java")
            if not Path(JAR).exists():
                pytest.skip("no jar of pgjdbc (REMUDA_TEST_PGJDBC)")
            return ["java", "-cp", JAR, _file(folder, "Items.java", program)]
        case "go":
            _need("go")
            if not GO_MODULE:
                pytest.skip("no Go module that requires pgx (REMUDA_TEST_GO_MODULE)")
            for name in ("go.mod", "go.sum"):
                shutil.copy(Path(GO_MODULE) / name, folder / name)
            return ["go", "run", _file(folder, "program.go", program)]
        case "js":
            _need("node")
            found = re.search(r'require\("(.*?)"\)', program)
            assert found is not None
            if not (Path(NODE_MODULES) / found[1]).exists():
                pytest.skip(f"no package {found[1]} of Node (REMUDA_TEST_NODE_MODULES)")
            return ["node", _file(folder, "program.js", program)]
    raise AssertionError(f"no test knows how to run {language}")


def _need(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


def _file(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def run(title: str, doors: list[int], folder: Path) -> list[str]:
    """The lines that a program prints; it must end well."""
    language, program = PROGRAMS[title]
    for port, door in zip((31432, 31442), doors, strict=False):
        program = program.replace(str(port), str(door))
    environment = os.environ | {
        "NODE_PATH": NODE_MODULES, "PLOOMBER_STATS_ENABLED": "false", "HOME": str(folder),
        "GOFLAGS": "-mod=mod", "GOCACHE": os.environ.get("GOCACHE", str(folder / "cache")),
        "GOMODCACHE": os.environ.get("GOMODCACHE", str(Path.home() / "go/pkg/mod")),
    }  # fmt: skip
    done = subprocess.run(
        command(language, program, folder), capture_output=True, text=True, timeout=250,
        check=False, cwd=folder, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def doors(three_members, tmp_path_factory) -> list[int]:
    """The members' ports, with the table of the first program behind them."""
    found = [int(member.postgres.split(":")[1]) for member in three_members.members]
    if shutil.which("psql") is not None:
        lines = run("psql", found, tmp_path_factory.mktemp("psql"))
        assert set(OUTPUTS["psql"]) <= set(lines), lines
    else:
        with three_members.connect() as client:
            for statement in re.findall(r"^[CI][RN].*;$", PROGRAMS["psql"][1], re.MULTILINE):
                client.sql(statement)
    return found


@pytest.mark.cluster
@pytest.mark.parametrize(
    "title",
    [
        pytest.param(title, marks=pytest.mark.soak) if title in SLOW else title
        for title in PROGRAMS
        if title != "psql"
    ],
)
def test_program(title: str, doors: list[int], tmp_path: Path) -> None:
    lines = run(title, doors, tmp_path)
    assert [line for line in lines if line in OUTPUTS[title]] == OUTPUTS[title], lines


def test_every_program_has_an_output() -> None:
    assert PROGRAMS.keys() == OUTPUTS.keys()
