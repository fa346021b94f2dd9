"""A refusal (0A000) says what to do instead: every place that raises one gives a hint, and every
golden error of a statement shows one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tests.syntax_trees import syntax_tree

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "remuda"
GOLDEN = ROOT / "tests" / "golden" / "sql"


def name_of(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def refusals(path: Path) -> list[tuple[ast.Call, bool]]:
    """The calls that make a NotSupported, and whether each gives a hint."""
    found = []
    for call in ast.walk(syntax_tree(path.read_text(encoding="utf-8"))):
        if not isinstance(call, ast.Call):
            continue
        named = any(keyword.arg == "hint" for keyword in call.keywords)
        first = call.args[0] if call.args else None
        if name_of(call) == "NotSupported":
            found.append((call, named))
        elif isinstance(first, ast.Name) and first.id == "NotSupported":  # Context.error
            found.append((call, named or len(call.args) > 3))
        elif name_of(call) == "unsupported":
            on_reader = "context" not in ast.unparse(call.func)  # TokenReader: the 2nd is the hint
            found.append((call, named or len(call.args) > (1 if on_reader else 2)))
    return found


def test_every_refusal_gives_a_hint() -> None:
    counted = 0
    without = []
    for path in sorted(SOURCE.rglob("*.py")):
        if path.name.endswith("_pb2.py"):
            continue
        for call, hinted in refusals(path):
            counted += 1
            if not hinted:
                without.append(f"{path.relative_to(ROOT)}:{call.lineno}: {ast.unparse(call)[:100]}")
    assert without == []
    assert counted > 150


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("errors_*.golden")), ids=lambda path: path.stem)
def test_every_golden_refusal_shows_a_hint(path: Path) -> None:
    blocks = path.read_text(encoding="utf-8").split("\n\n")
    refused = [block for block in blocks if "\nNotSupported 0A000: " in block]
    assert [block for block in refused if "\nHINT: " not in block] == []
