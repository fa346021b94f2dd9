"""A member and a gateway with the console, and a browser of a person without a session."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "gateway"))
from gateway_face import Face, serving
from visitor import Visitor

import remuda
from remuda.cli.gateway_command import beside
from remuda.config import MemberConfig


@pytest.fixture(scope="module")
def face() -> Iterator[Face]:
    with serving(MemberConfig()) as (member, loop):
        user = f"{member.info.host}:{member.info.user_port}"
        with remuda.connect(user) as client:
            client.sql("CREATE TABLE numbers (n BIGINT PRIMARY KEY, t VARCHAR)")
            client.sql("INSERT INTO numbers SELECT n, 'x' || n FROM generate_series(1, 3000) g(n)")
        with beside(user, 0) as http:
            yield Face(http, user, member, loop)


@pytest.fixture
def visitor(face: Face) -> Visitor:
    return Visitor(face.http)
