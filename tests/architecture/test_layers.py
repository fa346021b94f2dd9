"""The import rules of docs/ARCHITECTURE.md, and the tidiness that no linter checks."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import grimp
import pytest
from tests.syntax_trees import syntax_tree

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for path in (ROOT / "src").rglob("*.py") if not path.name.endswith("_pb2.py"))
FILE_LINES_MAX = 600
CATALOGUES = {
    ROOT / "src/remuda/errors.py",
    ROOT / "src/remuda/plan/physical.py",
    ROOT / "src/remuda/sql/trees/ast.py",
}
"""A list of things of one kind is one idea, however many there are."""
CATALOGUE_LINES_MAX = 950
FUNCTION_LINES_MAX = 90
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}


def test_layers() -> None:
    """import-linter's contracts (pyproject.toml): layers, purity, who may import what."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_file_imports_itself_over_others() -> None:
    """Imports for type checkers count: a reader follows them, too. The error names the circle."""
    graph = grimp.build_graph("remuda", "pyspark_remuda")
    found = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    graphlib.TopologicalSorter(found).prepare()


CLASSIC_ONLY = {"sparkContext", "_jvm", "_jsc", "_jdf", "_jsparkSession", "_sc", "rdd"}
"""What Spark Connect has not."""
HOSTING = ROOT / "src/remuda/spark/hosting"
SPARK = [
    path
    for path in SOURCES
    if path.is_relative_to(ROOT / "src/remuda/spark") and not path.is_relative_to(HOSTING)
]


@pytest.mark.parametrize("path", SPARK, ids=lambda path: path.name)
def test_spark_connect(path: Path) -> None:
    """Only hosting may rely on classic Spark; elsewhere ``getattr`` asks whether it is there."""
    tree = syntax_tree(path.read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    assert [node.lineno for node in found if node.attr in CLASSIC_ONLY] == []


def test_what_the_workers_of_spark_import() -> None:
    """They import the data source only, each of them anew: pandas alone would double the time."""
    code = "import pyspark_remuda, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"pandas", "yaml", "remuda.member", "remuda.execution"}
    heavy |= {f"remuda.spark.{name}" for name in ("hosting", "loading", "pipeline")}
    heavy |= {"remuda.spark.transfer.cut_reader", "remuda.client.core", "remuda.client.blocking"}
    assert heavy & set(done.stdout.split()) == set()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_tidy(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    most = CATALOGUE_LINES_MAX if path in CATALOGUES else FILE_LINES_MAX
    assert lines <= most, f"{lines} lines: is there more than one idea in it?"
    assert path.stem not in FORBIDDEN_NAMES, "name it for what it does"
    tree = syntax_tree(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= FUNCTION_LINES_MAX, f"{node.name} has {length} lines"
    if text.strip() and path.name != "__init__.py":
        assert ast.get_docstring(tree), "a module says in its docstring what it is for"
