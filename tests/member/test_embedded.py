"""A member process that is killed, seen from a client of the others."""

from __future__ import annotations

import os
import signal

import pytest

import remuda
from remuda.errors import RemudaError, TransientError

pytestmark = pytest.mark.cluster


def test_a_killed_member_fails_requests_fast_and_is_named() -> None:
    with remuda.start(members=3, settings={"backups": 0}) as cluster, cluster.connect() as client:
        client.sql("CREATE TABLE m (id INTEGER PRIMARY KEY, v BIGINT)")
        values = ", ".join(f"({i}, {i})" for i in range(500))
        client.sql(f"INSERT INTO m VALUES {values}")
        assert [tuple(row) for row in client.sql("SELECT count(*) FROM m")] == [(500,)]
        os.kill(cluster.pids[2], signal.SIGKILL)
        messages = []
        for _ in range(3):
            with pytest.raises(RemudaError) as caught:
                list(client.sql("SELECT count(*) FROM m"))
            assert isinstance(caught.value, TransientError)
            messages.append(str(caught.value))
        assert any("member" in message for message in messages), messages
        assert [tuple(row) for row in client.sql("SELECT 1 + 1")] == [(2,)]
