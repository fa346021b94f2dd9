"""Images of relations, and what changes between two answers."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from remuda.gateway.console.differences import EXACT_MAX, Difference, Image, plain

NAMES = ("part", "member", "state")


def test_only_what_differs_is_told() -> None:
    image = Image(("part",))
    first = image.become(NAMES, [(1, 1, "ok"), (2, 2, "ok")])
    assert first == Difference(
        {
            "1": {"part": 1, "member": 1, "state": "ok"},
            "2": {"part": 2, "member": 2, "state": "ok"},
        }
    )
    assert image.become(NAMES, [(1, 1, "ok"), (2, 2, "ok")]) is None
    assert image.become(NAMES, [(2, 3, "ok"), (3, 3, "new")]) == Difference(
        {"2": {"member": 3}, "3": {"part": 3, "member": 3, "state": "new"}}, ("1",)
    )
    assert image.whole().as_json() == {
        "set": {
            "2": {"part": 2, "member": 3, "state": "ok"},
            "3": {"part": 3, "member": 3, "state": "new"},
        },
        "whole": True,
    }


def test_a_key_of_several_columns() -> None:
    image = Image(("part", "member"))
    image.become(NAMES, [(1, 1, "a"), (1, 2, "b"), (1, None, "c")])
    assert list(image.rows) == ["1|1", "1|2", "1|None"]


@pytest.mark.parametrize("seed", range(20))
def test_a_page_that_takes_all_differences_has_the_last_answer(seed: int) -> None:
    chance = random.Random(seed)
    image = Image(("part",))
    page: dict[str, dict[str, object]] = {}
    for _ in range(30):
        parts = chance.sample(range(8), chance.randrange(8))
        rows = [(part, chance.randrange(3), chance.choice(("ok", None))) for part in parts]
        found = image.become(NAMES, rows)
        for key in found.gone if found else ():
            del page[key]
        for key, cells in found.changed.items() if found else ():
            page[key] = page.get(key, {}) | cells
        assert page == {str(row[0]): dict(zip(NAMES, row, strict=True)) for row in rows}


def test_values_in_the_form_of_json() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert plain(EXACT_MAX) == EXACT_MAX
    assert plain(EXACT_MAX + 1) == "9007199254740993"
    assert plain(True) is True
    assert plain(moment) == plain(moment.replace(tzinfo=None)) == moment.timestamp() * 1000
    assert plain(date(2026, 1, 2)) == "2026-01-02"
    assert plain((1, [None, Decimal("1.50")])) == [1, [None, "1.50"]]
    assert plain({"a": UUID(int=1)}) == {"a": "00000000-0000-0000-0000-000000000001"}
