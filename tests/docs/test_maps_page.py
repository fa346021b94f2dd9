"""docs/maps.md: its programs can be read, and every operation that it names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.syntax_trees import syntax_tree

import remuda.aio
from remuda.client.blocking.map import Map

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "maps.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
HANDLES = {"accounts", "flights", "sessions", "m"}


@pytest.mark.parametrize("face", [Map, remuda.aio.Map])
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_use_what_there_is(program: str, face: type) -> None:
    for node in ast.walk(syntax_tree(program)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert node.value.id not in HANDLES or hasattr(face, node.attr), node.attr


def test_the_table_names_what_there_is() -> None:
    first = PAGE.index("| here |")
    rows = PAGE[first : PAGE.index("\n\n", first)].splitlines()[2:]
    named = {name for row in rows for name in re.findall(r"`([a-z_]+)(?:\(|`)", row.split("|")[1])}
    assert {"compute_all", "get_or_default", "destroy", "put_if_absent"} <= named
    assert [name for name in named if not hasattr(Map, name)] == ["len"]
