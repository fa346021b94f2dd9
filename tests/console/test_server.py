"""The console's server over real sockets: sessions, tokens, headers, events, statements."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
import requests
from visitor import Visitor

import remuda.gateway.console.console as module
from remuda.gateway.console.statements import CELL_MAX, ROWS_MAX

PAGE = Path(module.__file__).with_name("page")
SIZE_MAX = 500_000
SLOW = "SELECT count(*) FROM numbers a, numbers b, numbers c, numbers d WHERE a.n + b.n = c.n * d.n"


def test_the_page_and_its_files(face: Any) -> None:
    response = requests.get(f"http://{face.http}/", timeout=60)
    assert response.status_code == 200
    assert "text/html" in response.headers["Content-Type"]
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    for file in PAGE.iterdir():
        url = f"http://{face.http}/console/{file.name}"
        found = requests.get(url, timeout=60)
        assert (found.status_code, found.content) == (200, file.read_bytes())
        tag = {"If-None-Match": found.headers["ETag"]}
        assert requests.get(url, headers=tag, timeout=60).status_code == 304


def test_the_page_is_small_and_asks_nobody_else() -> None:
    texts = [file.read_text("utf-8") for file in PAGE.iterdir()]
    assert sum(len(text.encode()) for text in texts) < SIZE_MAX
    for text in texts:
        addresses = text.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in addresses
        assert "https://" not in addresses
        assert "innerHTML" not in text


@pytest.mark.parametrize("path", ["/console/nothing.js", "/console/..%2f..%2fconsole.py"])
def test_other_files_are_not_there(face: Any, path: str) -> None:
    response = requests.get(f"http://{face.http}{path}", timeout=60)
    assert response.status_code == 404
    assert "there is no" in response.json()["error"]["message"]


def test_a_session_has_a_token(face: Any, visitor: Visitor) -> None:
    assert visitor.described["user"] == "remuda"
    assert visitor.get("/console/session").json()["token"] == visitor.token
    assert Visitor(face.http).token != visitor.token
    cookie = requests.get(f"http://{face.http}/console/session", timeout=60).headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie


CHANGES = [
    ("/console/statements", {"text": "SELECT 1"}),
    ("/console/cancel", {"query": "00000000-0000-0000-0000-000000000001"}),
    ("/console/login", {"user": "ann", "password": "x"}),
    ("/console/logout", {}),
]


@pytest.mark.parametrize(("path", "body"), CHANGES)
def test_changes_need_the_token(face: Any, visitor: Visitor, path: str, body: Any) -> None:
    for token in ("", "wrong", Visitor(face.http).token, "é"):
        response = visitor.post(path, body, token.encode())  # type: ignore[arg-type]
        assert response.status_code == 403
        assert "token of its page" in response.json()["error"]["message"]
    alone = requests.post(f"http://{face.http}{path}", json=body, timeout=60)
    assert alone.status_code == 401
    assert "load the page again" in alone.json()["error"]["message"]
    elsewhere = requests.post(
        f"http://{face.http}{path}",
        json=body,
        headers={"X-Remuda-Token": visitor.token, "Origin": "http://evil.example"},
        cookies=visitor.session.cookies,
        timeout=60,
    )
    assert elsewhere.status_code == 403


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("", "1 to 16 topics"),
        ("topic=nothing", 'there is no topic "nothing"'),
        ("topic=operators:xyz", "'xyz' is not the id of a statement"),
        ("&".join(f"topic=t{n}" for n in range(17)), "1 to 16 topics"),
    ],
)
def test_wrong_topics(visitor: Visitor, query: str, text: str) -> None:
    response = visitor.get(f"/console/events?{query}")
    assert response.status_code == 400
    assert text in response.json()["error"]["message"]


def test_events_need_a_session(face: Any) -> None:
    url = f"http://{face.http}/console/events?topic=members"
    assert requests.get(url, timeout=60).status_code == 401


def test_events_are_the_whole_and_then_differences(face: Any, visitor: Visitor) -> None:
    with visitor.events("members", "maps") as events:
        first = {event["topic"]: event for event in (next(events), next(events))}
        assert first["members"]["whole"]
        (member,) = first["members"]["set"].values()
        assert (member["member"], member["state"], member["partitions"]) == (1, "alive", 271)
        (known,) = first["maps"]["set"].values()
        assert (known["name"], known["rows"]) == ("numbers", 3000)
        visitor.run("CREATE TABLE later (k BIGINT PRIMARY KEY)")
        event = next(e for e in events if e["topic"] == "maps")
        assert "whole" not in event
        ((key, made),) = event["set"].items()
        assert made["name"] == "later"
        visitor.run("INSERT INTO later VALUES (1), (2)")
        event = next(e for e in events if e["topic"] == "maps" and "rows" in e["set"].get(key, {}))
        assert event["set"][key]["rows"] == 2
        assert "name" not in event["set"][key]
        visitor.run("DROP TABLE later")
        event = next(e for e in events if e["topic"] == "maps" and "gone" in e)
        assert event["gone"] == [key]


def test_two_pages_share_one_question(face: Any) -> None:
    """And the second one has everything at once."""
    ann, ben = Visitor(face.http), Visitor(face.http)
    with ann.events("settings") as first:
        whole = next(first)
        with ben.events("settings") as second:
            assert next(second)["set"] == whole["set"]


def test_watching_leaves_no_profiles(face: Any, visitor: Visitor) -> None:
    with visitor.events("members", "history", "queries") as events:
        for _ in range(3):
            next(events)
    text = "SELECT count(*) FROM sys.query_history WHERE text LIKE '%sys.members%'"
    assert visitor.run(text)[1]["rows"] == [["0"]]


def test_a_running_statement_is_seen_and_ended(face: Any, visitor: Visitor) -> None:
    answers: list[requests.Response] = []

    def run() -> None:
        answers.append(Visitor(face.http).post("/console/statements", {"text": SLOW}))

    with visitor.events("queries") as events:
        assert next(events)["set"] == {}
        thread = threading.Thread(target=run)
        thread.start()
        query = next(key for event in events for key in event["set"])
        with visitor.events(f"operators:{query}") as operators:
            names = {row["name"] for row in next(operators)["set"].values()}
            assert names
        profile = visitor.get(f"/console/profile/{query}").json()
        assert profile["text"] == SLOW
        assert profile["runs"][0]["plan"]["Fragments"]
        ended = visitor.post("/console/cancel", {"query": query})
        assert (ended.status_code, ended.json()) == (200, {})
        assert next(event for event in events if query in event.get("gone", ()))
        thread.join(60)
    (answer,) = answers
    assert answer.status_code == 409
    assert answer.json()["error"]["sqlstate"] == "57014"
    again = visitor.post("/console/cancel", {"query": query})
    assert again.status_code == 400
    assert again.json()["error"]["sqlstate"] == "42704"


def test_rows_as_texts(visitor: Visitor) -> None:
    head, rows, end = visitor.run(
        "SELECT 9007199254740993 AS big, NULL AS nothing, 0.1::float8 AS f, true AS b, "
        "ARRAY[1, NULL] AS a, DATE '2026-02-03' AS d, '{\"k\": 1}'::json AS j, 1.50 AS n"
    )
    assert [column["name"] for column in head["columns"]] == [
        "big", "nothing", "f", "b", "a", "d", "j", "n",
    ]  # fmt: skip
    assert [column["number"] for column in head["columns"]] == [
        True, False, True, False, False, False, False, True,
    ]  # fmt: skip
    assert rows["rows"] == [
        ["9007199254740993", None, "0.1", "true", "{1,NULL}", "2026-02-03", '{"k": 1}', "1.50"]
    ]
    assert (end["end"]["tag"], end["end"]["rows"], end["end"]["more"]) == ("SELECT", 1, False)


def test_rows_are_limited_and_the_rest_is_not_read(face: Any, visitor: Visitor) -> None:
    lines = visitor.run("SELECT n FROM numbers ORDER BY n", rows=1000)
    rows = [row for line in lines[1:-1] for row in line["rows"]]
    assert rows == [[str(n)] for n in range(1, 1001)]
    assert lines[-1]["end"]["more"] is True
    assert visitor.run("SELECT n FROM numbers", rows=3000)[-1]["end"]["more"] is False
    ((long,),) = visitor.run(f"SELECT repeat('é', {CELL_MAX + 1})")[1]["rows"]
    assert long == "é" * CELL_MAX + "…"


def test_statements_without_a_result(visitor: Visitor) -> None:
    for text, tag, rows in (
        ("CREATE TABLE made (k INTEGER PRIMARY KEY)", "CREATE TABLE", None),
        ("INSERT INTO made VALUES (1), (2)", "INSERT", 2),
        ("DROP TABLE made", "DROP TABLE", None),
    ):
        head, end = visitor.run(text)
        assert head["columns"] == []
        assert end["end"]["tag"] == tag
        assert rows is None or end["end"]["rows"] == rows


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({"text": "SELEC 1"}, 400, "syntax error"),
        ({"text": "SELECT nope"}, 400, 'column "nope" does not exist'),
        ({"text": "SELECT 1/0"}, 400, "division by zero"),
        ({"text": "BEGIN"}, 400, ""),
        ({"text": "SET engine = 'spark'"}, 400, "a session of its own"),
        ({"text": "/* x */ prepare p as select 1"}, 400, "a session of its own"),
        ({"text": " "}, 400, '"text"'),
        ({"text": 1}, 400, '"text"'),
        ({}, 400, '"text"'),
        ([], 400, "not a JSON object"),
        ({"text": "SELECT 1", "rows": 0}, 400, f"1 to {ROWS_MAX}"),
        ({"text": "SELECT 1", "rows": True}, 400, f"1 to {ROWS_MAX}"),
        ({"text": "SELECT 1", "rows": "7"}, 400, f"1 to {ROWS_MAX}"),
    ],
)
def test_wrong_statements(visitor: Visitor, body: Any, status: int, text: str) -> None:
    response = visitor.post("/console/statements", body)
    assert response.status_code == status
    error = response.json()["error"]
    assert text in error["message"]
    assert "Traceback" not in response.text


def test_an_error_tells_its_place(visitor: Visitor) -> None:
    error = visitor.post("/console/statements", {"text": "SELECT m FROM numbers"}).json()["error"]
    assert (error["sqlstate"], error["offset"], error["length"]) == ("42703", 7, 1)


def test_an_error_behind_rows_is_the_end(visitor: Visitor) -> None:
    text = "SELECT 10 / (2500000 - n) AS q FROM generate_series(1, 3000000) g(n)"
    lines = visitor.run(f"{text} LIMIT 10")
    assert len(lines[1]["rows"]) == 10
    response = visitor.post("/console/statements", {"text": f"SELECT max(q) FROM ({text}) x"})
    assert (response.status_code, response.json()["error"]["sqlstate"]) == (400, "22012")


@pytest.mark.parametrize("body", [b"", b"[" * 100_000, b"\xff", b"7"])
def test_bodies_that_are_not_json(face: Any, visitor: Visitor, body: bytes) -> None:
    response = visitor.session.post(
        f"{visitor.base}/console/statements",
        data=body,
        headers={"X-Remuda-Token": visitor.token, "Content-Type": "application/json"},
        timeout=60,
    )
    assert response.status_code == 400
    assert "JSON" in response.json()["error"]["message"]
    form = visitor.session.post(
        f"{visitor.base}/console/statements",
        data={"text": "SELECT 1"},
        headers={"X-Remuda-Token": visitor.token},
        timeout=60,
    )
    assert form.status_code == 415


def test_a_statement_ends_with_its_request(face: Any, visitor: Visitor) -> None:
    """That is how a page cancels its own."""
    text = "SELECT a.n FROM numbers a, numbers b, numbers c"
    with visitor.session.post(
        f"{visitor.base}/console/statements",
        json={"text": text, "rows": ROWS_MAX},
        headers={"X-Remuda-Token": visitor.token},
        stream=True,
        timeout=60,
    ) as response:
        head = json.loads(next(response.iter_lines(chunk_size=1)))
        assert head["columns"][0]["name"] == "n"
        query = head["query"]
    with visitor.events("queries") as events:
        whole = next(events)["set"]
        while query in whole:
            whole = {} if query in next(events).get("gone", ()) else whole
    assert face.gauges()["cursors"] == 0


def test_what_the_editor_completes(visitor: Visitor) -> None:
    words = visitor.get("/console/words").json()
    assert words["relations"]["numbers"][0] == ["n", "bigint"]
    assert ["member", "integer"] in words["relations"]["sys.members"]
    assert {"count", "date_trunc"} <= set(words["functions"])


def test_no_profile_is_kept_of_an_unknown_statement(visitor: Visitor) -> None:
    response = visitor.get("/console/profile/00000000-0000-0000-0000-000000000001")
    assert response.status_code == 404
    assert visitor.get("/console/profile/nonsense").status_code == 400
