"""The client's types, as the users of an installed package see them."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("typed_program.py")


def test_the_package_says_that_it_is_typed():
    assert files("remuda").joinpath("py.typed").is_file()


def test_a_program_over_both_faces(golden, pytestconfig):
    # The cache stays from run to run: mypy looks at what has changed since.
    cache = pytestconfig.cache.mkdir("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    command += ["--cache-dir", str(cache), "--no-error-summary", str(PROGRAM)]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    lines = PROGRAM.read_text(encoding="utf-8").splitlines()
    shown = []
    for line in found.stdout.splitlines():
        match = re.fullmatch(r".*typed_program\.py:(\d+): note: Revealed type is \"(.*)\"", line)
        shown.append(f"{lines[int(match[1]) - 1].strip()}\n    {match[2]}" if match else line)
    assert found.returncode == 0, found.stdout + found.stderr
    golden.check("client/typed_program.txt", "\n".join(shown))
