"""The programs of docs/clients.md run as they stand there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.programs import output_of, programs_of

PROGRAMS = programs_of("docs/clients.md")
OUTPUTS = [
    ["Item(name='saw', price=19.5) dict_keys([1, 3]) 3", "35.0", "nail 0.1", "20000", "(20000, 2)"],
    ["332833500", "49", "10", "cancelled"],
    ["name Row(id=1, name='nail') [Row(id=2, name='saw')]", "(2, 2)", "23505", "[Row(name='saw')]"],
]


@pytest.mark.cluster
@pytest.mark.parametrize(("program", "expected"), list(zip(PROGRAMS, OUTPUTS, strict=True)))
def test_program(program: str, expected: list[str], tmp_path: Path) -> None:
    lines = output_of(program, tmp_path).splitlines()
    assert [line for line in lines if line in expected] == expected
