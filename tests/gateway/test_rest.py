"""The REST interface by hand: bodies, statuses, limits, refusals, streaming, cancelling."""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import Any

import pytest
import requests

from remuda.errors import InputError
from remuda.gateway.failures import Refused
from remuda.gateway.login import _basic
from remuda.gateway.payload import read_payload
from remuda.gateway.server import BODY_SIZE_MAX, GatewaySettings, is_loopback

JSON = {"Content-Type": "application/json"}
SLOW = "SELECT count(*) FROM numbers a, numbers b, numbers c, numbers d WHERE a.n + b.n = c.n * d.n"


def test_a_row_of_every_type(face: Any) -> None:
    answer = face.post("SELECT * FROM flights ORDER BY id").json()
    assert answer["queryState"] == "COMPLETED"
    assert answer["metadata"] == [
        "BIGINT", "VARCHAR(2)", "SMALLINT", "BIT", "FLOAT8", "VARDECIMAL(7, 2)", "DATE", "TIME",
        "TIMESTAMP", "LIST", "VARBINARY", "VARCHAR", "VARCHAR", "INTERVAL",
    ]  # fmt: skip
    first, second = answer["rows"]
    assert first == {
        "id": 1, "carrier": "UA", "small": -3, "ok": True, "delay": 1.5, "price": 12.5,
        "day": 1709164800000, "at": 36672000, "moment": 1709201472000, "tags": ["a", "b"],
        "raw": "AP8=", "doc": '{"k": [1]}', "code": "00112233-4455-6677-8899-aabbccddeeff",
        "span": "P1M2DT3H4M5.5S",
    }  # fmt: skip
    assert second == dict.fromkeys(first) | {"id": 2, "carrier": "DL"}
    assert answer["columns"] == list(first)


def test_order_of_the_answer_and_its_exact_numbers(face: Any) -> None:
    text = face.post(
        "SELECT 12345678901234567890.5 AS d, 'NaN'::float8 AS x, ROW(1, 'é') AS r"
    ).text
    assert list(json.loads(text)) == [
        "queryId", "columns", "metadata", "attemptedAutoLimit", "rows", "queryState",
    ]  # fmt: skip
    assert '"d": 12345678901234567890.5, "x": "NaN", "r": {"f1": 1, "f2": "é"}' in text


def test_statements_without_a_result(face: Any) -> None:
    for statement, summary in (
        ("CREATE TABLE made (k INTEGER PRIMARY KEY)", "CREATE TABLE"),
        ("INSERT INTO made VALUES (1), (2)", "INSERT 2"),
        ("DELETE FROM made WHERE k = 1", "DELETE 1"),
        ("DROP TABLE made", "DROP TABLE"),
    ):
        answer = face.post(statement).json()
        assert answer["rows"] == [{"ok": True, "summary": summary}]
        assert answer["queryState"] == "COMPLETED"


@pytest.mark.parametrize(
    ("statement", "status", "kind", "text"),
    [
        ("SELEC 1", 400, "SqlSyntaxError", "PARSE ERROR: syntax error"),
        ("SELECT nope", 400, "UndefinedColumn", 'VALIDATION ERROR: column "nope"'),
        ("SELECT * FROM nope", 400, "UndefinedMap", "nope"),
        ("SELECT 1/0", 400, "DivisionByZero", "FUNCTION ERROR: division by zero"),
        ("SHOW FILES", 400, "NotSupported", "there are no files"),
        ("USE nope", 400, "UndefinedSchema", 'schema "nope" does not exist'),
    ],
)
def test_failed_statements(face: Any, statement: str, status: int, kind: str, text: str) -> None:
    response = face.post(statement)
    assert response.status_code == status
    answer = response.json()
    assert answer["queryState"] == "FAILED"
    assert answer["exception"] == f"remuda.errors.{kind}"
    assert text in answer["errorMessage"]
    assert answer["stackTrace"] == []


def test_an_error_behind_rows_is_the_end_of_the_answer(face: Any) -> None:
    response = face.post("SELECT 10 / (19000 - n) AS q FROM numbers ORDER BY n")
    answer = response.json()
    if response.status_code == 200:
        assert answer["rows"]
    assert answer["queryState"] == "FAILED"
    assert "division by zero" in answer["errorMessage"]


def test_autolimit_and_empty_results(face: Any) -> None:
    for limit in (5, "5"):
        answer = face.post("SELECT n FROM numbers ORDER BY n", autoLimit=limit).json()
        assert (len(answer["rows"]), answer["attemptedAutoLimit"]) == (5, 5)
    assert len(face.post("SELECT n FROM numbers", autoLimit=0).json()["rows"]) == 20000
    big = face.post("SELECT n, t FROM numbers ORDER BY n", autoLimit="5000").json()["rows"]
    assert big[-1] == {"n": 5000, "t": "x5000"}
    empty = face.post("SELECT n FROM numbers WHERE n < 0").json()
    assert (empty["rows"], empty["columns"]) == ([], ["n"])
    idle(face)


def test_names_are_distinct(face: Any) -> None:
    assert face.post("SELECT 1 AS a, 2 AS A, 3 AS a").json()["rows"] == [{"a": 1, "a0": 2, "a1": 3}]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"{}", '"query"'),
        (b'{"query": 1}', '"query"'),
        (b'{"query": " "}', '"query"'),
        (b'{"query": "x", "queryType": "LOGICAL"}', "LOGICAL"),
        (b'{"query": "x", "queryType": 7}', "7"),
        (b'{"query": "SET a.b = 1"}', "session"),
        (b'{"query": "-- x\\n /* y */ ; set a.b = 1"}', "session"),
        (b'{"query": "alter /**/ session set `a.b` = 1"}', "session"),
        (b"[" * 100_000, "not JSON"),
        (b'{"query": "x", "autoLimit": -1}', "autoLimit"),
        (b'{"query": "x", "autoLimit": "many"}', "autoLimit"),
        (b'{"query": "x", "autoLimit": true}', "autoLimit"),
        (b'{"query": "x", "defaultSchema": "dfs.tmp"}', "dfs.tmp"),
        (b'{"query": "x", "options": {"a": 1}}', "options"),
        (b'{"query": "x", "userName": 3}', "userName"),
        (b'{"query": "\xff"}', "not JSON"),
    ],
)
def test_wrong_bodies(face: Any, body: bytes, text: str) -> None:
    with pytest.raises(Refused, match=text) as caught:
        read_payload(body)
    assert caught.value.status == 400
    url = f"http://{face.http}/query.json"
    response = requests.post(url, data=body, headers=JSON, timeout=60)
    assert (response.status_code, list(response.json())) == (400, ["errorMessage"])


def test_requests_share_no_settings(face: Any) -> None:
    """Neither do those that are hidden well enough to be run."""
    face.post("/* /* */ */ SET a.b = 'changed'")
    shown = face.post('SHOW "a.b"')
    assert shown.status_code == 400
    assert "unrecognized" in shown.json()["errorMessage"]


def test_a_limit_may_be_huge(face: Any) -> None:
    assert face.post("SELECT 1 AS x", autoLimit=10**30).json()["rows"] == [{"x": 1}]
    broken = requests.post(
        f"http://{face.http}/query.json",
        data=b"\x1f\x8b junk",
        headers={**JSON, "Content-Encoding": "gzip"},
        timeout=60,
    )
    assert broken.status_code == 400


def test_another_user_cannot_be_named(face: Any) -> None:
    response = face.post("SELECT 1", userName="somebody")
    assert response.status_code == 400
    assert "somebody" in response.json()["errorMessage"]


def test_other_pages_of_a_browser_are_refused(face: Any) -> None:
    url, body = f"http://{face.http}/query.json", b'{"query": "SELECT 1"}'

    def status(**headers: str) -> int:
        found = {name.replace("_", "-"): value for name, value in headers.items()}
        return requests.post(url, data=body, headers=found, timeout=60).status_code

    assert status(Content_Type="application/json") == 200
    assert status(Content_Type="text/plain") == 415
    assert status(Content_Type="application/x-www-form-urlencoded") == 415
    assert status() == 415
    assert status(Content_Type="application/json", Origin="http://evil.example") == 403
    assert status(Content_Type="application/json", Origin=f"http://{face.http}") == 200
    assert status(Content_Type="application/json", Sec_Fetch_Site="cross-site") == 403
    assert status(Content_Type="application/json", Host="evil.example") == 403
    assert status(Content_Type="application/json", Host=f"localhost:{face.port}") == 200
    refused = requests.get(
        f"http://{face.http}/status", headers={"Host": "evil.example:80"}, timeout=60
    )
    assert refused.status_code == 403


def test_paths_that_are_not_there(face: Any) -> None:
    assert face.get("/nope").status_code == 404
    assert "POST /query.json" in face.get("/nope").json()["errorMessage"]
    assert face.get("/query.json").status_code == 405
    assert face.get("/status/threads").status_code == 404


def test_a_body_has_a_limit(face: Any) -> None:
    body = b'{"query": "SELECT 1' + b" " * BODY_SIZE_MAX + b'"}'
    response = requests.post(f"http://{face.http}/query.json", data=body, headers=JSON, timeout=60)
    assert response.status_code == 413
    long = face.post("SELECT '" + "x" * 5_000_000 + "'")
    assert long.status_code == 413
    assert "characters" in long.json()["errorMessage"]
    assert face.post("SELECT 1").status_code == 200


def test_it_listens_on_loopback_only_unless_told() -> None:
    with pytest.raises(InputError, match="other machines"):
        GatewaySettings(connect="x:1", host="0.0.0.0")
    assert GatewaySettings(connect="x:1", host="0.0.0.0", remote=True).remote
    assert [is_loopback(h) for h in ("localhost", "127.0.0.2", "::1", "10.0.0.1", "h")] == [
        True, True, True, False, False,
    ]  # fmt: skip


def test_basic_authentication_is_read() -> None:
    found = _basic("Basic YW5uOnNlY3JldDp4")
    assert (found.user, found.password) == ("ann", "secret:x")
    for wrong in ("Bearer x", "Basic ???", "Basic eA==", "Basic", ""):
        with pytest.raises(Refused):
            _basic(wrong)


def idle(face: Any) -> None:
    """Until no statement runs on the member any more."""
    waited = threading.Event()
    for _ in range(2000):
        gauges = face.gauges()
        if not any(gauges[name] for name in ("queries", "statements", "cursors", "reads")):
            return
        waited.wait(0.01)
    raise AssertionError(f"statements are left: {face.gauges()}")


def running(face: Any) -> None:
    waited = threading.Event()
    while not face.gauges()["statements"]:
        waited.wait(0.005)


def raw_request(face: Any, query: str) -> socket.socket:
    body = json.dumps({"query": query}).encode()
    sock = socket.create_connection((face.host, face.port))
    head = f"POST /query.json HTTP/1.1\r\nHost: {face.http}\r\nContent-Type: application/json\r\n"
    sock.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return sock


def test_a_client_that_goes_away_cancels_its_statement(face: Any) -> None:
    idle(face)
    sock = raw_request(face, SLOW)  # no row for a long time
    running(face)
    sock.close()
    idle(face)
    sock = raw_request(face, "SELECT a.n FROM numbers a, numbers b")  # rows without an end
    assert sock.recv(100).startswith(b"HTTP/1.1 200")
    sock.close()
    idle(face)


def test_a_slow_reader_holds_the_statement_back(face: Any) -> None:
    """It never has the whole result in memory: the member stops when nobody reads."""
    idle(face)
    sock = raw_request(face, "SELECT a.n, a.t FROM numbers a, numbers b")
    assert sock.recv(1)
    before = -1
    while (sent := sum(row[0] for row in sent_rows(face))) != before:
        before = sent
        time.sleep(0.2)
    assert sent < 40_000_000  # of 400 million rows
    sock.close()
    idle(face)


def sent_rows(face: Any) -> list[tuple[int]]:
    import remuda  # noqa: PLC0415

    with remuda.connect(face.user) as client:
        return [tuple(row) for row in client.sql("SELECT rows FROM sys.queries")]


def test_cancel_by_its_id(face: Any) -> None:
    idle(face)
    sock = raw_request(face, "SELECT a.n FROM numbers a, numbers b")
    head = sock.recv(2000).decode()
    while '"queryId": "' not in head:
        head += sock.recv(2000).decode()
    query = head.partition('"queryId": "')[2][:36]
    assert face.get(f"/profiles/{query}.json").json()["query"].startswith("SELECT a.n")
    assert query in face.get("/profiles.json").text
    assert face.get(f"/profiles/cancel/{query}").status_code == 200
    end = b""
    while piece := sock.recv(65536):
        end = (end + piece)[-3000:]
        if b'"queryState"' in end:
            break
    assert b'"queryState": "CANCELED"' in end
    assert face.get(f"/profiles/cancel/{query}").status_code == 404
    sock.close()
    idle(face)
    ended = {
        found["queryId"]: found for found in face.get("/profiles.json").json()["finishedQueries"]
    }
    assert ended[query]["state"] == "Cancelled"
    profile = face.get(f"/profiles/{query}.json").json()
    assert profile["query"].startswith("SELECT a.n")
    assert (profile["state"], profile["sqlState"]) == ("Cancelled", "57014")
    assert profile["profile"]["runs"]
    assert face.get("/profiles/no-such-query.json").status_code == 404


def test_many_at_once(face: Any) -> None:
    answers: list[Any] = []

    def ask(number: int) -> None:
        answers.append(
            face.post(f"SELECT {number} AS x, count(*) AS n FROM numbers").json()["rows"]
        )

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(a[0]["x"] for a in answers) == list(range(20))
    assert {a[0]["n"] for a in answers} == {20000}
