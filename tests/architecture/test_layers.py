"""The import rules of docs/ARCHITECTURE.md, and the tidiness that no linter checks."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for path in (ROOT / "src").rglob("*.py") if not path.name.endswith("_pb2.py"))
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 90
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}


def test_layers() -> None:
    """import-linter's contracts (pyproject.toml): layers, purity, who may import what."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_tidy(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    assert lines <= FILE_LINES_MAX, f"{lines} lines: is there more than one idea in it?"
    assert path.stem not in FORBIDDEN_NAMES, "name it for what it does"
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= FUNCTION_LINES_MAX, f"{node.name} has {length} lines"
    if text.strip() and path.name != "__init__.py":
        assert ast.get_docstring(tree), "a module says in its docstring what it is for"
