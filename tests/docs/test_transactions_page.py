"""The programs of docs/transactions.md run as they stand there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "transactions.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
OUTPUTS = [
    [
        "Account(owner='ann', amount=70) Account(owner='ann', amount=100)",
        "Account(owner='ann', amount=70) Account(owner='bob', amount=130)",
        "40001 key (1,)",
        "131",
        "2 ROLLED_BACK",
    ],
    ["5"],
]


@pytest.mark.cluster
@pytest.mark.parametrize(("program", "expected"), list(zip(PROGRAMS, OUTPUTS, strict=True)))
def test_program(program: str, expected: list[str], tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=250, check=False,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == expected
