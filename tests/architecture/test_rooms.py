"""Folders stay small enough to be read: at most 25 modules, or a declared catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src"
MODULES_MAX = 25
CATALOGUES = {
    "remuda/execution/evaluate": "functions and operators of expressions, by type",
    "remuda/execution/operators": "physical operators",
}
"""Lists of things of one kind, one module each: readers look a name up."""
FOLDERS = sorted(path for path in SRC.rglob("*") if path.is_dir() and any(path.glob("*.py")))


def modules(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(SRC)))
def test_a_folder_has_few_modules_and_a_purpose(folder: Path) -> None:
    name = str(folder.relative_to(SRC))
    if name not in CATALOGUES:
        assert len(modules(folder)) <= MODULES_MAX, "divide it into rooms (docs/decisions/0074)"
    start = (folder / "__init__.py").read_text("utf-8")
    assert start.lstrip().startswith('"""'), "__init__.py says in its docstring what it is for"


def test_a_declared_catalogue_has_more_modules_than_others_may() -> None:
    assert [name for name in CATALOGUES if len(modules(SRC / name)) <= MODULES_MAX] == []
