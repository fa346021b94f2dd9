"""The programs of docs/drill.md run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "drill.md"


@pytest.mark.filterwarnings("ignore")
def test_programs(face: Any, capsys: pytest.CaptureFixture[str]) -> None:
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert programs
    for program in programs:
        exec(compile(program.replace("8047", str(face.port)), str(PAGE), "exec"), {})
    assert "UA" in capsys.readouterr().out
