"""TLS on both sides of the gateway: members that speak nothing else, and HTTPS for Drill's Python
clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import requests
from gateway_face import ROWS, TABLE, Face, serving
from pydrill.client import PyDrill
from pydrill.exceptions import TransportError
from sqlalchemy import create_engine, text
from sqlalchemy_drill.drilldbapi import connect

import remuda
from remuda.catalog.passwords import SALT_SIZE, hashed
from remuda.catalog.users import ALL, Role, Users, encode_users
from remuda.cli.gateway_command import beside
from remuda.config import MemberConfig
from remuda.errors import InputError
from remuda.gateway.server import GatewaySettings
from remuda.rpc.tls import TlsFiles

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def the_clients_say_whom_they_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    """For ``requests`` these variables outweigh what its session says."""
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)


@pytest.fixture(scope="module")
def files(certificates: Any) -> tuple[str, str]:
    return certificates.issue("gateway", "127.0.0.1", "localhost")


@pytest.fixture(scope="module")
def face(tmp_path_factory: Any, certificates: Any, files: tuple[str, str]) -> Iterator[Face]:
    folder: Path = tmp_path_factory.mktemp("https")
    secret = hashed("ann-secret", bytes(SALT_SIZE), iterations=4096)
    users = Users().added("ann", secret, replace_it=False)
    for role in Role:
        users = users.granted("ann", role, ALL)
    (folder / "users.json").write_bytes(encode_users(users))
    (folder / "secret").write_text("0123456789abcdef0123456789abcdef\n")
    for private in folder.iterdir():
        private.chmod(0o600)
    certificate, key = certificates.issue("tls_member")
    config = MemberConfig(
        users_file=str(folder / "users.json"),
        secret_file=str(folder / "secret"),
        tls_certificate=certificate,
        tls_key=key,
        tls_ca=certificates.ca,
    )
    with serving(config) as (member, loop):
        user = f"{member.info.host}:{member.info.user_port}"
        options = {"user": "ann", "password": "ann-secret", "ca": certificates.ca}
        with remuda.connect(user, **options) as client:
            client.sql(TABLE)
            client.sql(ROWS)
        https = TlsFiles(certificate=files[0], key=files[1], minimum="1.2")
        with beside(user, 0, https, ca=certificates.ca) as address:
            yield Face(address, user, member, loop)


def test_who_does_not_trust_the_certificate_says_nothing(face: Any, certificates: Any) -> None:
    url, query = f"https://{face.http}/query.json", {"query": "SELECT 1 AS x"}
    ask: Any = {"json": query, "auth": ("ann", "ann-secret"), "timeout": 60}
    assert requests.post(url, verify=certificates.ca, **ask).json()["rows"] == [{"x": 1}]
    with pytest.raises(requests.exceptions.SSLError):
        requests.post(url, verify=True, **ask)
    with pytest.raises(requests.exceptions.ConnectionError):
        requests.post(url.replace("https", "http"), **ask)


def test_the_session_cookie_stays_within_https(face: Any, certificates: Any) -> None:
    found = requests.post(
        f"https://{face.http}/j_security_check",
        data={"j_username": "ann", "j_password": "ann-secret"},
        verify=certificates.ca,
        timeout=60,
    )
    assert found.status_code == 200
    assert "Secure" in found.headers["Set-Cookie"]


def test_pydrill(face: Any, certificates: Any) -> None:
    options = {"use_ssl": True, "verify_certs": True, "ca_certs": certificates.ca}
    drill = PyDrill(host=face.host, port=face.port, auth="ann:ann-secret", **options)
    assert drill.is_active()
    rows = drill.query("SELECT id, carrier FROM flights ORDER BY id").rows
    assert rows == [{"id": 1, "carrier": "UA"}, {"id": 2, "carrier": "DL"}]
    with pytest.raises(TransportError):
        PyDrill(host=face.host, port=face.port, auth="ann:wrong", **options)


def test_sqlalchemy_drill(face: Any, certificates: Any) -> None:
    connection = connect(
        face.host,
        face.port,
        "public",
        drilluser="ann",
        drillpass="ann-secret",
        use_ssl=True,
        verify_ssl=certificates.ca,
    )
    cursor = connection.cursor()
    cursor.execute("SELECT id, ok FROM flights ORDER BY id")
    assert cursor.fetchall() == [(1, True), (2, None)]
    engine = create_engine(f"drill+sadrill://ann:ann-secret@{face.http}/public?use_ssl=True")
    with engine.connect() as through:
        assert through.execute(text("SELECT max(id) FROM flights")).scalar() == 2
    assert pd.read_sql("SELECT id FROM flights ORDER BY id", engine)["id"].tolist() == [1, 2]
    engine.dispose()


def test_a_client_that_goes_away_ends_its_statement(face: Any, certificates: Any) -> None:
    long = "SELECT a.n FROM generate_series(1, 100000) a(n), generate_series(1, 9999) b"
    with requests.post(
        f"https://{face.http}/query.json",
        json={"query": long},
        auth=("ann", "ann-secret"),
        verify=certificates.ca,
        stream=True,
        timeout=60,
    ) as response:
        pieces = response.iter_content(400)  # kept: its end would close the connection
        assert next(pieces)
        assert face.gauges()["queries"] == 1
    drill = PyDrill(host=face.host, port=face.port, auth="ann:ann-secret", use_ssl=True)
    while drill.query("SELECT count(*) AS n FROM sys.queries").rows != [{"n": 1}]:
        pass  # its own; each look takes a round trip


def test_what_does_not_serve(files: tuple[str, str], certificates: Any) -> None:
    _, other = certificates.issue("other", "127.0.0.1")
    with (
        pytest.raises(InputError, match="do not serve"),
        beside("127.0.0.1:1", 0, TlsFiles(certificate=files[0], key=other)),
    ):
        pass
    https = TlsFiles(certificate=files[0], key=files[1])
    with pytest.raises(InputError, match="other machines"):
        GatewaySettings("127.0.0.1:1", host="0.0.0.0", https=https)
    assert GatewaySettings("127.0.0.1:1", host="0.0.0.0", https=https, remote=True).https is https
