"""Lines of a member's log name the member only when it has a number."""

from __future__ import annotations

import json
import logging

from remuda.member.state.log import JsonFormatter, TextFormatter


def test_a_member_without_a_number_has_none_in_its_lines() -> None:
    record = logging.LogRecord("remuda.member", logging.INFO, "", 1, "joining", (), None)
    for number, shown in ((0, "-"), (3, "3")):
        line = JsonFormatter(lambda number=number: number).format(record)
        assert json.loads(line)["member"] == (number or None)
        assert f"member {shown} " in TextFormatter(lambda number=number: number).format(record)
