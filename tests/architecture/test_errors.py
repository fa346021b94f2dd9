"""Errors that cross the wire have their classes where every process knows them."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import remuda
from remuda.errors import RemudaError, from_report

LOCAL = {"ExpectationFailed", "JavaMissing", "PipelineInvalid", "SparkMissing", "SparkNotStarted"}
"""Raised in the user's process only."""
HOME = "remuda.errors"
ROOT = Path(__file__).resolve().parents[2]
SOURCES = [path for path in (ROOT / "src").rglob("*.py") if not path.stem.endswith("_pb2")]
FIELDS = {"message", "detail", "hint", "position", "statement", "member", "subject", "args"}
SKIPPED = ("remuda.spark", "remuda.rpc.messages")


def all_kinds() -> list[type[RemudaError]]:
    for module in pkgutil.walk_packages(remuda.__path__, "remuda."):
        if "__main__" not in module.name and not module.name.startswith(SKIPPED):
            importlib.import_module(module.name)
    return sorted(RemudaError.kinds.values(), key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", all_kinds(), ids=lambda kind: kind.__name__)
def test_every_error_is_known_to_the_other_side(kind: type[RemudaError]) -> None:
    if kind.__name__ not in LOCAL and kind.__module__.startswith("remuda."):
        assert kind.__module__ == HOME
    assert len(kind.sqlstate) == 5


def test_an_error_comes_back_as_what_it_was() -> None:
    for kind in all_kinds():
        if kind.__module__ == HOME:
            assert type(from_report(kind("message").to_report())) is kind


def test_an_error_is_not_changed_once_it_exists() -> None:
    """It may be kept, or raised again elsewhere: ``at``, ``within`` and ``saying`` copy it."""
    found = []
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        errors = {"error", *re.findall(r"^ +except .* as (\w+):", text, re.MULTILINE)}
        changes = re.finditer(r"\b(\w+)\.(\w+)(?:, \w+\.\w+| = \w+\.\w+)* = ", text)
        found += [
            f"{path.relative_to(ROOT)}: {change[0]}"
            for change in changes
            if change[1] in errors and change[2] in FIELDS
        ]
    assert found == []
