"""Imports of test files and of the modules beside them, read from their text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
OF_ALL_TESTS = {TESTS / "conftest.py", *Path(__file__).resolve().parent.glob("*.py")}
"""They tell nothing about a single test."""


@cache
def imported_names(file: Path) -> frozenset[str]:
    """Modules that the file names in imports at any place: ``from a import b`` gives a and a.b."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(names)


@cache
def every_test_file() -> tuple[Path, ...]:
    return tuple(sorted(TESTS.rglob("test_*.py")))


@cache
def modules_beside_tests() -> dict[str, tuple[Path, ...]]:
    """Modules that tests share, by name: they import each other by it (the conftests' paths)."""
    found: dict[str, tuple[Path, ...]] = {}
    for file in sorted(TESTS.rglob("*.py")):
        if not file.stem.startswith("test_") and file.stem != "conftest":
            found[file.stem] = (*found.get(file.stem, ()), file)
    return found


def conftests(file: Path) -> Iterator[Path]:
    for folder in file.parents:
        if (folder / "conftest.py").exists():
            yield folder / "conftest.py"
        if folder == TESTS:
            return


def shared_modules(file: Path) -> set[Path]:
    """The conftests of a test file, but not that of all tests, and the modules beside tests that it
    imports, directly or through others."""
    waiting = [file, *(set(conftests(file)) - OF_ALL_TESTS)]
    found = set(waiting[1:])
    while waiting:
        for name in imported_names(waiting.pop()):
            for module in modules_beside_tests().get(name.split(".", 1)[0], ()):
                if module not in found | OF_ALL_TESTS:
                    found.add(module)
                    waiting.append(module)
    return found
