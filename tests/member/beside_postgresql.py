"""PostgreSQL's server beside the members of a test."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

PROGRAMS = Path("/usr/lib/postgresql/15/bin")


@pytest.fixture
def postgresql() -> Iterator[psycopg.Connection[Any]]:
    """A server of its own, reached by a socket in its folder."""
    if not (PROGRAMS / "initdb").exists():
        pytest.skip("PostgreSQL's server is not installed")
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    if as_user:
        shutil.chown(folder, "postgres")

    def run(*command: str) -> None:
        subprocess.run([*as_user, *command], check=True, stdout=subprocess.DEVNULL, cwd="/")

    data = str(folder / "data")
    try:
        run(str(PROGRAMS / "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "--no-sync")
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        control = str(PROGRAMS / "pg_ctl")
        log = str(folder / "log")
        run(control, "-D", data, "-o", options, "-w", "-l", log, "start")
        try:
            address = f"host={folder} user=postgres dbname=postgres"
            with psycopg.connect(address, autocommit=True) as connection:
                yield connection
        finally:
            run(control, "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
