"""A new operator, aggregate, message or system view is named in few files of ``src``.

The examples of CONTRIBUTING stand for their kind. The files generated from a ``.proto`` and the
list of PostgreSQL's own functions do not count: nobody edits them.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOT_EDITED = re.compile(r"_pb2\.pyi?$|catalog/pg_functions\.py$")

EXAMPLES = {
    "physical operator": (
        r"GroupLimit|\blimited_group\b",
        {
            "plan/physical.py",
            "planner/operators/group_limit.py",
            "planner/exploration/explore.py",
            "execution/operators/group_limit.py",
        },
    ),
    "aggregate": (
        r"\bbit_xor\b",
        {
            "plan/functions/aggregates.py",
            "execution/operators/aggregate_states.py",
            "execution/operators/aggregate_choice.py",
        },
    ),
    "message": (
        r"\b(CANCEL_BACKEND|CancelBackend)\b",
        {"rpc/messages/control.proto", "member/postgres/wing.py"},
    ),
    "system view": (
        r"\bsys\.logs\b|^logs:",
        {
            "catalog/system_relations.py",
            "member/system/system_relations.py",
            "cli/status_command.py",
            "gateway/console/topics.py",
        },
    ),
}
"""Kind: a pattern that finds the example of CONTRIBUTING, and the files of ``src/remuda`` that have
it."""


@cache
def sources() -> dict[str, str]:
    folder = ROOT / "src" / "remuda"
    files = (path for path in folder.rglob("*") if path.suffix in (".py", ".pyi", ".proto"))
    return {
        str(path.relative_to(folder)): path.read_text("utf-8")
        for path in files
        if NOT_EDITED.search(str(path)) is None
    }


def naming(pattern: str) -> set[str]:
    found = re.compile(pattern, re.MULTILINE)
    return {name for name, text in sources().items() if found.search(text)}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_an_example_is_in_few_files(kind: str) -> None:
    pattern, files = EXAMPLES[kind]
    assert naming(pattern) == files
    assert len(files) <= (4 if kind in ("physical operator", "system view") else 3)


def test_contributing_names_the_examples() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for kind, example in zip(
        EXAMPLES, ("GroupLimit|limited_group", "bit_xor", "CANCEL_BACKEND", "sys.logs"), strict=True
    ):
        assert f"git grep -nE '{example}' src" in page, kind
