"""The commands of docs/security.md run as they stand there, in their order."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import remuda
from remuda.config import INSECURE_WORDS, MemberConfig

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
START = "remuda start --members 3 --config remuda.toml &\n"


@pytest.mark.cluster
@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")
def test_the_commands(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "remuda"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m remuda.cli.main "$@"\n')
    command.chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("REMUDA_")}
    environment["PATH"] = f"{command.parent}:{environment['PATH']}"

    def run(script: str) -> str:
        done = subprocess.run(
            ["sh", "-e"], input=script, cwd=tmp_path, env=environment, capture_output=True,
            text=True, timeout=100, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    authority, users, members, client = COMMANDS
    run(authority)
    assert "flights" in run(users)
    assert members.endswith(START)
    run(members.removesuffix(START))
    settings = {name: str(tmp_path / value) for name, value in (
        ("tls_certificate", "member.pem"), ("tls_key", "member.key"), ("tls_ca", "ca.pem"),
        ("secret_file", "secret"), ("users_file", "users.json"),
    )}  # fmt: skip
    with remuda.start(members=3, config=tmp_path / "remuda.toml", settings=settings) as cluster:
        # The page starts the default port, which others may have here.
        assert "remuda sql --tls-ca" in client
        output = run(client.replace("remuda sql", f"remuda sql --connect {cluster.address}"))
        assert "ann" in output
        with cluster.connect(user="app", password="battery staple") as app:
            assert app.sql("SELECT count(*) FROM flights").fetchone() == (0,)


def test_names_and_words() -> None:
    known = {setting.name for setting in fields(MemberConfig)}
    named = set(re.findall(r"\b(tls_\w+|secret_file|users_file|insecure)\b(?!`, because)", PAGE))
    assert named - {"tls_key"} <= known
    assert f'insecure = "{INSECURE_WORDS}"' in PAGE
