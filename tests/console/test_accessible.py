"""Every page, light, dark and on a telephone, against the rules of axe-core (WCAG 2.2 A and AA)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import CHROMIUM, Browser

import remuda

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium here (Debian: apt-get install chromium)"
)
AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text(encoding="utf-8")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
PAGES = {
    "cluster": "alive",
    "partitions": "all 271 complete",
    "maps/numbers": "Partitioned by",
    "statements": "Nothing runs.",
    "transactions": "No transaction is open.",
    "sql": "Ctrl+Enter",
    "streams": "Nobody listens to changes.",
    "snapshots": "No snapshot has been made yet",
    "settings": "heartbeat_interval",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    opened = Browser()
    yield opened
    opened.close()


def violations(browser: Browser) -> list[str]:
    """What axe finds, with the elements."""
    if not browser.run("'axe' in window"):
        browser.run(f"{AXE}; 0")
    options = json.dumps({"runOnly": RULES, "resultTypes": ["violations"]})
    found: Any = browser.run(f"axe.run(document, {options}).then((r) => r.violations)")
    return [
        f"{rule['id']}: {node['html'][:160]} {node['failureSummary']}"
        for rule in found
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("form", ["light", "dark", "telephone"])
def test_every_page_is_clean(browser: Browser, face: Any, form: str) -> None:
    browser.dark(form == "dark")
    browser.size(*((390, 844) if form == "telephone" else (1360, 860)))
    found = {}
    for page, text in PAGES.items():
        browser.open("about:blank")
        browser.open(f"http://{face.http}/#/{page}")
        browser.wait_text(text)
        found[page] = violations(browser)
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        if browser.run(wide) > 0:
            found[page].append("the page is wider than the window")
    assert {page: lines for page, lines in found.items() if lines} == {}


def test_results_plans_and_errors_are_clean(browser: Browser, face: Any) -> None:
    browser.dark(False)
    browser.size(1360, 860)
    browser.open("about:blank")
    browser.open(f"http://{face.http}/#/sql")
    browser.wait_text("Ctrl+Enter")
    found = {}
    for text, button, seen in (
        ("SELECT t, n FROM numbers ORDER BY n LIMIT 5", "Run", "5 rows"),
        ("SELECT t, n FROM numbers ORDER BY n LIMIT 5", "Explain analyze", "fragment 0"),
        ("SELECT nothing FROM numbers", "Run", "42703"),
    ):
        browser.click("textarea")
        browser.press("a", 65, modifiers=2)
        browser.type(text)
        browser.press("Escape", 27)
        browser.click("button", button)
        browser.wait_text(seen)
        found[button, text] = violations(browser)
        if button == "Run" and seen == "5 rows":
            browser.click("[role=tab]", "Chart")
            browser.wait("document.querySelector('.chart')")
            found["chart", text] = violations(browser)
    with remuda.connect(face.user) as client:
        query = client.sql("SELECT max(query) FROM sys.query_history").scalar()
    browser.open("about:blank")
    browser.open(f"http://{face.http}/#/statements/{query}")
    browser.wait_text("Exchanges", "finished")
    found["profile", query] = violations(browser)
    assert {place: lines for place, lines in found.items() if lines} == {}
