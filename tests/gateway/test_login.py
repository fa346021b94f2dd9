"""Users: the gateway passes names and passwords on, and keeps them apart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from gateway_face import Face, serving
from pydrill.client import PyDrill
from pydrill.exceptions import TransportError
from sqlalchemy_drill.drilldbapi import connect

import remuda
from remuda.catalog.passwords import SALT_SIZE, hashed
from remuda.catalog.users import ALL, Role, Users, encode_users
from remuda.cli.gateway_command import beside
from remuda.config import MemberConfig

pytestmark = pytest.mark.filterwarnings("ignore")


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
        with remuda.connect(user, user="ann", password="ann-secret") as client:
            client.sql("CREATE TABLE open_map (k INTEGER PRIMARY KEY)")
            client.sql("CREATE TABLE closed_map (k INTEGER PRIMARY KEY)")
            client.sql("INSERT INTO open_map VALUES (7)")
        with beside(user, 0) as http:
            yield Face(http, user, member, loop)


def ask(face: Any, query: str, user: str = "", password: str = "", **headers: str) -> Any:
    return requests.post(
        f"http://{face.http}/query.json",
        json={"query": query},
        auth=(user, password) if user else None,
        headers=headers,
        timeout=60,
    )


def test_without_a_user_nothing_is_answered(face: Any) -> None:
    response = ask(face, "SELECT 1")
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"].startswith("Basic")
    assert response.json()["errorMessage"].startswith("PERMISSION ERROR")
    assert face.get("/status").status_code == 401
    assert PyDrill(host=face.host, port=face.port).is_active()  # that it runs is no secret


def test_basic_authentication(face: Any) -> None:
    assert ask(face, "SELECT k FROM open_map", "bob", "bob-secret").json()["rows"] == [{"k": 7}]
    assert ask(face, "SELECT k FROM closed_map", "bob", "bob-secret").status_code in (400, 403)
    assert ask(face, "SELECT k FROM closed_map", "ann", "ann-secret").json()["rows"] == []
    assert ask(face, "SELECT 1", "bob", "ann-secret").status_code == 401
    assert ask(face, "SELECT 1", "bob", "").status_code == 401
    assert ask(face, "SELECT 1", Authorization="Bearer x").status_code == 401


def test_the_login_form(face: Any) -> None:
    with requests.Session() as session:
        url = f"http://{face.http}"
        wrong = session.post(
            f"{url}/j_security_check", data={"j_username": "bob", "j_password": "x"}, timeout=60
        )
        assert wrong.status_code == 401
        assert not session.cookies
        right = session.post(
            f"{url}/j_security_check",
            data={"j_username": "bob", "j_password": "bob-secret"},
            timeout=60,
        )
        assert right.status_code == 200
        cookie = right.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        query = {"query": "SELECT k FROM open_map"}
        assert session.post(f"{url}/query.json", json=query, timeout=60).json()["rows"]
        assert session.post(f"{url}/logout", timeout=60).status_code == 200
        session.cookies.set("REMUDA_SESSION", cookie.partition("=")[2].partition(";")[0])
        assert session.post(f"{url}/query.json", json=query, timeout=60).status_code == 401
        assert session.post(f"{url}/j_security_check", json={}, timeout=60).status_code == 415


def test_a_user_cancels_only_own_statements(face: Any) -> None:
    url = f"http://{face.http}"
    with requests.post(
        f"{url}/query.json",
        json={
            "query": "SELECT a.n FROM generate_series(1, 100000) a(n), generate_series(1, 9999) b"
        },
        auth=("ann", "ann-secret"),
        stream=True,
        timeout=60,
    ) as response:
        pieces = response.iter_content(400)  # kept: its end would close the connection
        head = next(pieces).decode()
        query = head.partition('"queryId": "')[2][:36]
        cancel = f"{url}/profiles/cancel/{query}"
        assert requests.get(cancel, auth=("bob", "bob-secret"), timeout=60).status_code == 404
        assert requests.get(cancel, timeout=60).status_code == 404
        assert requests.get(cancel, auth=("ann", "ann-secret"), timeout=60).status_code == 200


def test_pydrill_logs_in(face: Any) -> None:
    drill = PyDrill(host=face.host, port=face.port, auth="bob:bob-secret")
    assert drill.query("SELECT k FROM open_map").rows == [{"k": 7}]
    with pytest.raises(TransportError) as caught:
        PyDrill(host=face.host, port=face.port, auth="bob:wrong")
    assert caught.value.status_code == 401


def test_sqlalchemy_drill_logs_in(face: Any) -> None:
    from sqlalchemy_drill.drilldbapi import DatabaseError  # noqa: PLC0415

    connection = connect(face.host, face.port, "public", drilluser="bob", drillpass="bob-secret")
    cursor = connection.cursor()
    cursor.execute("SELECT k FROM open_map")
    assert cursor.fetchall() == [(7,)]
    with pytest.raises(DatabaseError, match="PERMISSION"):
        connect(face.host, face.port, "public", drilluser="bob", drillpass="wrong")


def test_members_that_cannot_be_reached() -> None:
    with beside("127.0.0.1:1", 0) as http:
        response = requests.post(
            f"http://{http}/query.json", json={"query": "SELECT 1"}, timeout=60
        )
        assert response.status_code == 502
        assert "127.0.0.1:1" in response.json()["errorMessage"]
