"""A member and a gateway, each in a loop of its own in a thread; Drill's Python clients outside."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from gateway_face import ROWS, TABLE, Face, serving

import remuda
from remuda.cli.gateway_command import beside
from remuda.config import MemberConfig


@pytest.fixture(scope="module")
def face() -> Iterator[Face]:
    with serving(MemberConfig()) as (member, loop):
        user = f"{member.info.host}:{member.info.user_port}"
        with remuda.connect(user) as client:
            client.sql(TABLE)
            client.sql(ROWS)
            client.sql("CREATE VIEW late AS SELECT id FROM flights WHERE delay > 1")
            client.sql("CREATE TABLE numbers (n BIGINT PRIMARY KEY, t VARCHAR)")
            client.sql("INSERT INTO numbers SELECT n, 'x' || n FROM generate_series(1, 20000) g(n)")
        with beside(user, 0) as http:
            yield Face(http, user, member, loop)
