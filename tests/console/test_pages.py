"""The page in a browser: Debian's Chromium, headless."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browser import CHROMIUM, Browser

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium here (Debian: apt-get install chromium)"
)


@pytest.fixture(scope="module")
def opened() -> Iterator[Browser]:
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def browser(opened: Browser) -> Iterator[Browser]:
    yield opened
    assert opened.problems == []
    opened.open("about:blank")


def show(browser: Browser, face: Any, view: str, *texts: str) -> None:
    browser.open(f"http://{face.http}/#{view}")
    browser.wait_text(*texts)


def test_the_cluster(browser: Browser, face: Any) -> None:
    show(browser, face, "cluster", "Member 1", "alive", "271 / 271", face.user, "All members serve")


def test_the_partitions(browser: Browser, face: Any) -> None:
    show(browser, face, "partitions", "all 271 complete", "Every partition has all its copies")
    assert browser.run("document.querySelectorAll('.herd .cell').length") == 271


def test_a_map_and_its_members(browser: Browser, face: Any) -> None:
    show(browser, face, "maps", "numbers", "1 with 3,000 entries")
    browser.click("a", "numbers")
    browser.wait_text("Partitioned by", "The map has no secondary indexes.")
    browser.click("a", "Close")
    browser.wait("location.hash === '#maps'")


def test_the_settings(browser: Browser, face: Any) -> None:
    show(browser, face, "settings", "heartbeat_interval", "differ from their defaults")
    browser.click("input[type=search]")
    browser.type("lease")
    browser.wait("!document.body.innerText.includes('heartbeat_interval\\n')")
    browser.wait_text("lease")


def test_light_and_dark(browser: Browser, face: Any) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    show(browser, face, "cluster", "alive")
    before = browser.run(background)
    browser.click("button", "Light or dark")
    assert browser.run(background) != before
    browser.run("localStorage.clear()")


def test_the_keyboard_reaches_everything(browser: Browser, face: Any) -> None:
    show(browser, face, "maps", "numbers")
    seen = set()
    for _ in range(30):
        browser.press("Tab", 9)
        seen.add(browser.run("document.activeElement.innerText?.trim().split('\\n')[0] ?? ''"))
    assert {"Skip to the content", "Cluster", "Partitions", "Entries", "numbers"} <= seen
