"""Each decision record has a status, and its place in the index by theme."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "decisions"
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))
INDEX = (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name[:4])
def test_a_record_has_a_status(record: Path) -> None:
    text = record.read_text(encoding="utf-8")
    status = re.search(r"^Status: (accepted|proposed|rejected|superseded)\b", text, re.MULTILINE)
    assert status, f"{record.name} needs a line such as: Status: accepted."


def test_the_index_lists_each_record_once() -> None:
    listed = re.findall(r"^\| \[\d{4}\]\(([^)]+)\) \| \S", INDEX, re.MULTILINE)
    assert sorted(listed) == [record.name for record in RECORDS], "docs/decisions/README.md"
