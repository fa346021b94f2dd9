"""The console of a cluster with users: nobody sees anything without a login, and each user what the
members let this one see."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from gateway_face import Face, serving
from visitor import Visitor

import remuda
from remuda.catalog.passwords import SALT_SIZE, hashed
from remuda.catalog.users import ALL, Role, Users, encode_users
from remuda.cli.gateway_command import beside
from remuda.config import MemberConfig
from remuda.gateway.console import sessions
from remuda.gateway.console.sessions import IDLE_MAX, SESSIONS_MAX, STREAMS_MAX, Sessions


@pytest.fixture(scope="module")
def face(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Face]:
    users = Users()
    for name in ("ann", "bob"):
        secret = hashed(f"{name}-secret", bytes(SALT_SIZE), iterations=4096)
        users = users.added(name, secret, replace_it=False)
    for role in Role:
        users = users.granted("ann", role, ALL)
    users = users.granted("bob", Role.READ, "open_map")
    file: Path = tmp_path_factory.mktemp("users") / "users.json"
    file.write_bytes(encode_users(users))
    secret_file = file.with_name("secret")
    secret_file.write_text("0123456789abcdef0123456789abcdef\n")
    for private in (file, secret_file):
        private.chmod(0o600)
    config = MemberConfig(users_file=str(file), secret_file=str(secret_file))
    with serving(config) as (member, loop):
        user = f"{member.info.host}:{member.info.user_port}"
        options = {"user": "ann", "password": "ann-secret"}
        with remuda.connect(user, **options) as client:
            client.sql("CREATE TABLE open_map (k INTEGER PRIMARY KEY)")
            client.sql("CREATE TABLE closed_map (k INTEGER PRIMARY KEY)")
            client.sql("INSERT INTO open_map VALUES (7)")
        # It may connect as somebody itself: its visitors still have to say who they are.
        with beside(user, 0, **options) as http:
            yield Face(http, user, member, loop)


def test_nothing_is_shown_without_a_login(face: Any) -> None:
    visitor = Visitor(face.http)
    assert "user" not in visitor.described
    assert visitor.described["error"]["login"] is True
    assert visitor.post("/console/statements", {"text": "SELECT 1"}).status_code == 401
    assert visitor.get("/console/words").status_code == 401
    with visitor.events("members") as events:
        assert next(events)["problem"]["login"] is True


def test_a_login_changes_cookie_and_token(face: Any) -> None:
    visitor = Visitor(face.http)
    before, token = visitor.session.cookies[sessions.COOKIE], visitor.token
    wrong = visitor.login("bob", "ann-secret")
    assert wrong.status_code == 401
    assert wrong.json()["error"]["login"] is True
    assert "WWW-Authenticate" not in wrong.headers  # the browser would ask by itself
    for user, password in (("", "x"), (None, "x"), ("bob", None)):
        assert visitor.login(user, password).status_code == 400  # type: ignore[arg-type]
    right = visitor.login("bob", "bob-secret")
    assert (right.status_code, right.json()["user"]) == (200, "bob")
    assert visitor.token != token
    assert visitor.session.cookies[sessions.COOKIE] != before
    old = requests.get(
        f"http://{face.http}/console/events?topic=members",
        cookies={sessions.COOKIE: before},
        timeout=60,
    )
    assert old.status_code == 401


def test_users_see_what_they_may(face: Any) -> None:
    ann, bob = Visitor(face.http), Visitor(face.http)
    ann.login("ann", "ann-secret")
    bob.login("bob", "bob-secret")
    assert bob.run("SELECT k FROM open_map")[1]["rows"] == [["7"]]
    refused = bob.post("/console/statements", {"text": "SELECT k FROM closed_map"})
    assert refused.status_code in (400, 403)
    with ann.events("maps") as all_maps, bob.events("maps") as some:
        seen = [{row["name"] for row in next(e)["set"].values()} for e in (all_maps, some)]
    assert seen == [{"open_map", "closed_map"}, {"open_map"}]
    assert "closed_map" not in bob.get("/console/words").json()["relations"]
    assert "closed_map" in ann.get("/console/words").json()["relations"]


def test_a_logout_ends_the_session_and_its_streams(face: Any) -> None:
    visitor = Visitor(face.http)
    visitor.login("ann", "ann-secret")
    other = Visitor(face.http)
    other.session.cookies.update(visitor.session.cookies)
    other.token = visitor.token
    with visitor.events("members") as events:
        next(events)
        assert other.post("/console/logout", {}).status_code == 200
        with pytest.raises((StopIteration, requests.RequestException)):
            while True:
                next(events)
    fresh = Visitor(face.http)
    fresh.session.cookies.update(visitor.session.cookies)
    assert fresh.get("/console/words").status_code == 401


def test_a_session_has_few_streams(face: Any) -> None:
    visitor = Visitor(face.http)
    visitor.login("ann", "ann-secret")
    streams = [visitor.events("settings") for _ in range(STREAMS_MAX)]
    for stream in streams:
        next(stream.__enter__())
    assert visitor.get("/console/events?topic=settings").status_code == 429
    for stream in streams:
        stream.__exit__(None, None, None)


class Request:
    def __init__(self, name: str) -> None:
        self.cookies = {sessions.COOKIE: name}


def test_sessions_end_when_nobody_uses_them() -> None:
    now = [0.0]
    kept = Sessions(lambda: now[0], https=True)
    first = kept.begin()
    now[0] = IDLE_MAX
    assert kept.find(Request(first.name)) is first  # type: ignore[arg-type]
    now[0] += IDLE_MAX + 1
    assert kept.find(Request(first.name)) is None  # type: ignore[arg-type]
    more = [kept.begin() for _ in range(SESSIONS_MAX + 1)]
    assert kept.find(Request(more[0].name)) is None  # type: ignore[arg-type]
    assert kept.find(Request(more[1].name)) is more[1]  # type: ignore[arg-type]
