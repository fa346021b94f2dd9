"""docs/sql.md and docs/sql-explain.md are what docs/generate_sql.py makes (or ``--rewrite``)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_sql", DOCS / "generate_sql.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_sql_page(golden, generator: ModuleType) -> None:
    golden.check("../../docs/sql.md", generator.page())


def test_explain_page(golden, generator: ModuleType) -> None:
    golden.check("../../docs/sql-explain.md", generator.explain_page())
