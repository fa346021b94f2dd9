"""A failed test is reported, and the tests after it run, when pytest cannot show its source."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
FAILURES = """
import ast
import gc
import sys
import threading

from _pytest._code import code

def parse_deep(depth, stop):
    if depth:
        return parse_deep(depth - 1, stop)
    while not stop.is_set():
        try:
            ast.parse("a + b")
        except SystemError:
            pass

def test_fails_while_others_parse():
    # Each collection runs Python code, in which the other thread may parse.
    stop = threading.Event()
    gc.callbacks.append(lambda phase, info: sum(range(200)))
    gc.set_threshold(50, 5, 5)
    sys.setswitchinterval(1e-6)
    threading.Thread(target=parse_deep, args=(100, stop), daemon=True).start()
    assert [1, 2] == [1, 3]

def no_source(*arguments, **names):
    raise SystemError("AST constructor recursion depth mismatch")

def test_fails_without_source():
    code.getstatementrange_ast = no_source
    assert [3, 4] == [3, 5]

def test_goes_on():
    pass
""" + "".join(f"\nnumbers_{index} = [{index} + {index} * (1 - {index})]\n" for index in range(3000))
"""Thousands of statements: to parse them takes some collections of garbage."""


def test_failed_tests_are_reported_and_the_session_lives(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FAILURES, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "failed_reports", "-n", "1", "-W", "error"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "test_it.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(TESTS / "selection"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "assert [1, 2] == [1, 3]" in done.stdout
    assert "assert [3, 4] == [3, 5]" in done.stdout
    assert "could not write the report: " in done.stdout
    assert "INTERNALERROR" not in done.stdout
