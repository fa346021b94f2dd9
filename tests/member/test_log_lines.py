"""Lines of a member's log name the member only when it has a number."""

from __future__ import annotations

import json
import logging

from remuda.member.log import JsonFormatter, TextFormatter, _Identity


def test_a_member_without_a_number_has_none_in_its_lines() -> None:
    record = logging.LogRecord("remuda.member", logging.INFO, "", 1, "joining", (), None)
    identity = _Identity()
    assert json.loads(JsonFormatter(identity).format(record))["member"] is None
    assert "member - " in TextFormatter(identity).format(record)
    identity.member = 3
    assert json.loads(JsonFormatter(identity).format(record))["member"] == 3
    assert "member 3 " in TextFormatter(identity).format(record)
