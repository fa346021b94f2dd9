"""The page of a cluster of three processes: a member is killed, cuts are made."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser

import remuda
from remuda.cli.gateway_command import beside

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(
        CHROMIUM is None, reason="no chromium here (Debian: apt-get install chromium)"
    ),
]


@pytest.fixture
def browser() -> Iterator[Browser]:
    opened = Browser()
    try:
        yield opened
        assert opened.problems == []
    finally:
        opened.close()


def test_a_killed_member_turns_red(browser: Browser) -> None:
    """Within two seconds of the view's change; its partitions fly to the others."""
    settings = {"heartbeat_interval": 0.25, "lease": 1, "heartbeat_timeout": 4}
    red = """document.querySelector('[data-member="3"]').classList.contains('bad')"""
    with remuda.start(members=3, settings=settings) as cluster:
        addresses = ",".join(member.user for member in cluster.members)
        with beside(addresses, 0) as http, cluster.connect() as client:
            browser.open(f"http://{http}/#/cluster")
            browser.wait_text("Member 3", "271 / 271")
            assert not browser.run(red)
            os.kill(cluster.pids[2], signal.SIGKILL)
            while client.sql("SELECT count(*) FROM sys.members").scalar() == 3:
                assert "Member 3" in browser.text()
            seen = browser.run(f"""new Promise((resolve) => {{
                const began = performance.now();
                const look = () => {{
                    if ({red} && document.body.innerText.includes("dropped by view")) {{
                        resolve(performance.now() - began);
                    }} else setTimeout(look, 10);
                }};
                look();
            }})""")
            assert seen < 2000
            browser.wait_text("suspected", "as members 1, 2 saw it", "View 2")
            browser.open(f"http://{http}/#/partitions")
            browser.wait("document.querySelectorAll('.herd .pen').length >= 2")
            browser.wait_text("all 271 complete")


def test_a_member_on_an_executor_and_cuts_on_a_time_line(browser: Browser, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    settings = {"snapshot_store": str(store), "labels": "hosted=spark"}
    with (
        remuda.start(members=1, settings=settings) as cluster,
        beside(cluster.address, 0) as http,
        cluster.connect() as client,
    ):
        client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        client.sql("CREATE SNAPSHOT nightly")
        browser.open(f"http://{http}/#/cluster")
        browser.wait_text("runs 1 member on its executors: 1")
        browser.open(f"http://{http}/#/snapshots")
        browser.wait("document.querySelectorAll('.cuts .cut').length === 1")
        browser.wait_text("nightly", "1 cut")
