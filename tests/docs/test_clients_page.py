"""The programs of docs/clients.md run as they stand there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clients.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
OUTPUTS = [
    ["Item(name='saw', price=19.5) dict_keys([1, 3]) 3", "35.0", "nail 0.1", "20000", "(20000, 2)"],
    ["332833500", "49", "10", "cancelled"],
    ["name Row(id=1, name='nail') [Row(id=2, name='saw')]", "(2, 2)", "23505", "[Row(name='saw')]"],
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
    lines = done.stdout.splitlines()
    assert [line for line in lines if line in expected] == expected
