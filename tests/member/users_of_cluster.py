"""The users of test clusters: who they are, how members know them, what tests ask of them."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from remuda.catalog.passwords import ITERATIONS_MIN, hashed
from remuda.catalog.users import ALL, Role, Users, encode_users
from remuda.client.network.login import Security
from remuda.errors import InsufficientPrivilege

READ, WRITE, ADMIN = Role
PASSWORD = "correct horse"
ROOT, READER, WRITER, OWNER, NOBODY = (
    Security(name, PASSWORD) for name in ("root", "reader", "writer", "owner", "nobody")
)


def people() -> Users:
    found = Users()
    for index, name in enumerate(("root", "reader", "writer", "owner", "nobody")):
        found = found.added(
            name, hashed(PASSWORD, bytes([index]) * 16, ITERATIONS_MIN), replace_it=False
        )
    for name, role, scope in (
        ("root", ADMIN, ALL),
        ("reader", READ, "t"),
        ("writer", WRITE, "t"),
        ("owner", ADMIN, "t"),
        ("owner", ADMIN, "twin"),
    ):
        found = found.granted(name, role, scope)
    return found


def known_users(tmp_path, monkeypatch):
    """Settings of members that know these users; wrong guesses are punished for an instant only."""
    monkeypatch.setattr("remuda.rpc.connection.AUTHENTICATION_PENALTY", 0.01)
    monkeypatch.setattr("remuda.member.base.passwords.AUTHENTICATION_PENALTY", 0.01)
    secret, users = tmp_path / "secret", tmp_path / "users.json"
    secret.write_text("a secret of the cluster")
    users.write_bytes(encode_users(people()))
    for path in (secret, users):
        path.chmod(0o600)
    return {"secret_file": str(secret), "users_file": str(users)}


@contextmanager
def refused(match: str):
    with pytest.raises(InsufficientPrivilege, match=match) as caught:
        yield
    assert caught.value.sqlstate == "42501"


async def prepared(cluster):
    """Maps t and u with a few rows; a client of every user, spread over the members."""
    root = await cluster.client(1, ROOT)
    for name in ("t", "u"):
        await root.sql(f"CREATE TABLE {name} (k BIGINT PRIMARY KEY, v TEXT)")
        await root.sql(f"INSERT INTO {name} SELECT g, 'v' || g FROM generate_series(1, 50) g(g)")
    await root.sql("CREATE INDEX i ON t (v)")
    await root.sql("CREATE VIEW both_maps AS SELECT t.k, u.v FROM t JOIN u ON t.k = u.k")
    await root.sql("CREATE VIEW one_map AS SELECT v FROM t")
    others = [
        await cluster.client(1 + index % len(cluster.members), who)
        for index, who in enumerate((READER, WRITER, OWNER, NOBODY), 1)
    ]
    return root, *others
