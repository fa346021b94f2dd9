"""The programs of docs/transactions.md run as they stand there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.programs import output_of, programs_of

PROGRAMS = programs_of("docs/transactions.md")
OUTPUTS = [
    [
        "Account(owner='ann', amount=70) Account(owner='ann', amount=100)",
        "Account(owner='ann', amount=70) Account(owner='bob', amount=130)",
        "40001 Key (__key)=(1)",
        "131",
        "2 ROLLED_BACK",
    ],
    ["5"],
]


@pytest.mark.cluster
@pytest.mark.parametrize(("program", "expected"), list(zip(PROGRAMS, OUTPUTS, strict=True)))
def test_program(program: str, expected: list[str], tmp_path: Path) -> None:
    assert output_of(program, tmp_path).splitlines() == expected
