"""Programs that stand in pages, run as they stand there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def programs_of(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def output_of(program: str, folder: Path) -> str:
    """What it prints; it must end well."""
    script = folder / "program.py"
    script.write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=250, check=False,
        cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
