"""The page in a browser: Debian's Chromium, headless."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from browser import CHROMIUM, Browser

import remuda
from remuda.errors import QueryCanceled, RemudaError

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
    browser.open(f"http://{face.http}/#/{view}")
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
    browser.wait("location.hash === '#/maps'")


def test_statements_heat_a_map(browser: Browser, face: Any) -> None:
    """Gets are few among the reads of most maps."""
    show(browser, face, "maps", "numbers", "Rows read/s")
    hot = """(() => {
        const titles = [...document.querySelectorAll('th')].map((e) => e.innerText.trim());
        const rows = [...document.querySelectorAll('tr')];
        const row = rows.find((e) => e.innerText.includes('numbers'));
        const cell = (title) => row.children[titles.indexOf(title)].innerText;
        return cell('Rows read/s') !== '0' && cell('Rows written/s') !== '0';
    })()"""
    assert not browser.run(hot)
    ended = threading.Event()

    def work() -> None:
        with remuda.connect(face.user) as client:
            while not ended.is_set():
                client.sql("SELECT sum(n) FROM numbers").fetchall()
                client.sql("UPDATE numbers SET t = 'hot' WHERE n = 11")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        browser.wait(hot)
    finally:
        ended.set()
        thread.join(60)
    browser.wait(f"!{hot}")


def test_the_settings(browser: Browser, face: Any) -> None:
    show(browser, face, "settings", "heartbeat_interval", "differ from their defaults")
    assert browser.run("[...document.querySelectorAll('th')].every((e) => e.textContent.trim())")
    browser.click("input[type=search]")
    browser.type("lease")
    browser.wait("!document.body.innerText.includes('heartbeat_interval\\n')")
    browser.wait_text("lease")


def test_light_and_dark(browser: Browser, face: Any) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    show(browser, face, "cluster", "alive")
    before = browser.run(background)
    browser.click("button", "Theme")
    assert browser.run(background) != before
    browser.run("localStorage.clear()")


def test_the_keyboard_reaches_everything(browser: Browser, face: Any) -> None:
    show(browser, face, "maps", "numbers")
    seen = set()
    for _ in range(30):
        browser.press("Tab", 9)
        seen.add(browser.run("document.activeElement.innerText?.trim().split('\\n')[0] ?? ''"))
    assert {"Skip to the content", "Cluster", "Partitions", "Entries", "numbers"} <= seen


SLOW = "SELECT count(*) FROM generate_series(1, 2000000000) g(i) JOIN numbers ON n = i % 3000"
"""Its rows come steadily, and it ends soon after it was cancelled."""


@contextmanager
def running(face: Any, text: str) -> Iterator[None]:
    """A statement of a program, which somebody ends; the error is no matter of the test."""

    def run() -> None:
        with remuda.connect(face.user) as client, suppress(QueryCanceled):
            client.sql(text).fetchall()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        with remuda.connect(face.user) as client:
            for row in client.activity.queries():
                if row.text == text:
                    client.activity.cancel_query(row.query)
        thread.join(60)
    assert not thread.is_alive()


def test_a_running_statement_shows_its_plan_at_work_and_ends_by_a_click(
    browser: Browser, face: Any
) -> None:
    show(browser, face, "statements", "Nothing runs.")
    with running(face, SLOW):
        browser.wait_text("SELECT count(*) FROM generate_series", "running")
        browser.click("td", "SELECT count(*) FROM generate_series")
        browser.wait("document.querySelectorAll('.node').length > 2")
        rows = "[...document.querySelectorAll('.node .figures')].map((e) => e.innerText).join()"
        before = browser.run(rows)
        browser.wait(f"({rows}) !== {json.dumps(before)}")
        assert face.gauges()["queries"] == 1
        browser.click("button", "Cancel")
        browser.wait_text("cancelled", "57014")
        assert face.gauges()["queries"] == 0
        browser.wait("document.querySelectorAll('.node').length > 2")
    browser.click("a", "All statements")
    browser.wait_text("Nothing runs.", "57014")


def test_an_unknown_statement(browser: Browser, face: Any) -> None:
    show(browser, face, "statements/00000000-0000-0000-0000-000000000001", "no profile")


def test_who_waits_for_whom_and_a_rollback_by_a_click(browser: Browser, face: Any) -> None:
    show(browser, face, "transactions", "Nobody waits for a lock.", "No transaction is open.")
    update = "UPDATE numbers SET t = 'w' WHERE n = 7"
    with remuda.connect(face.user, application="holder") as holder:
        holder.sql("BEGIN PESSIMISTIC")
        holder.sql(update)
        ended: list[object] = []

        def wait() -> None:
            with remuda.connect(face.user, application="waiter") as waiter:
                waiter.sql("BEGIN PESSIMISTIC")
                ended.append(waiter.sql(update).rowcount)
                waiter.sql("ROLLBACK")

        thread = threading.Thread(target=wait)
        thread.start()
        browser.wait(
            "document.querySelector('.waits')?.getAttribute('aria-label').startsWith("
            "'waiter waits for holder, numbers')"
        )
        browser.click("tr:has(code) button", "Roll back")
        thread.join(60)
        assert ended == [1]
        with suppress(RemudaError):
            holder.sql("ROLLBACK")
    browser.wait_text("Nobody waits for a lock.", "No transaction is open.")


def write(browser: Browser, text: str) -> None:
    browser.click("textarea")
    browser.press("a", 65, modifiers=2)
    browser.type(text)


def test_the_editor_completes_runs_and_draws(browser: Browser, face: Any) -> None:
    show(browser, face, "sql", "Ctrl+Enter")
    browser.wait("performance.getEntriesByName(location.origin + '/console/words').length")
    write(browser, "SELECT t, n FROM numb")
    browser.wait(
        "document.querySelector('.choices:not([hidden]) li').innerText.startsWith('numbers')"
    )
    browser.press("Tab", 9)
    browser.wait("document.querySelector('textarea').value === 'SELECT t, n FROM numbers'")
    browser.type(" ORDER BY n LIMIT 5; SELECT 2 AS other")
    browser.press("Home", 36)
    browser.press("Enter", 13, modifiers=2)
    browser.wait_text("x5", "5 rows")
    assert browser.run("document.querySelectorAll('.results tbody tr').length") == 5
    browser.click("[role=tab]", "Chart")
    browser.wait("document.querySelectorAll('.chart rect').length === 5")
    browser.click("button", "Explain")
    browser.wait("document.querySelectorAll('.results .node').length >= 2")
    browser.click("button", "Explain analyze")
    root = "document.querySelector('.results .node .figures b')"
    browser.wait(f"{root}.innerText === '5'")


def test_errors_in_the_editor_stand_at_their_place(browser: Browser, face: Any) -> None:
    show(browser, face, "sql", "Ctrl+Enter")
    write(browser, "SELECT 1;\nSELECT wrong FROM numbers")
    browser.press("Enter", 13, modifiers=2)
    browser.wait_text('column "wrong" does not exist', "42703")
    assert browser.run("document.querySelector('.editor .wrong').innerText") == "wrong"


def test_a_statement_of_the_editor_is_cancelled_by_a_click(browser: Browser, face: Any) -> None:
    show(browser, face, "sql", "Ctrl+Enter")
    write(browser, SLOW)
    browser.click("button", "Run")
    browser.wait_text("Running for")
    while not face.gauges()["queries"]:
        browser.wait_text("Running for")
    browser.click("button", "Cancel")
    browser.wait_text("Cancelled.")
    while face.gauges()["queries"]:
        browser.wait_text("Cancelled.")


def test_streams(browser: Browser, face: Any) -> None:
    with remuda.connect(face.user) as client:
        client.sql("CREATE TABLE kept (k BIGINT PRIMARY KEY) WITH (change_retention = '1h')")
        show(browser, face, "streams", "Nobody listens to changes.", "change_retention")
        with client.map("numbers").listen(lambda _: None):
            browser.wait_text("listener", "1 subscription")
        client.sql("DROP TABLE kept")
    browser.wait_text("Nobody listens to changes.", "No map keeps its changes")


def test_snapshots_without_a_store(browser: Browser, face: Any) -> None:
    show(browser, face, "snapshots", "No snapshot has been made yet", "The members keep no logs")
