"""Roles on sequences: USAGE and UPDATE are the role ``write``, SELECT is ``read``."""

from __future__ import annotations

import pytest
from users_of_cluster import known_users, prepared

from remuda.errors import InsufficientPrivilege, NumberNotDefined, UndefinedMap

CALLS = {
    "nextval": "SELECT nextval('{}')",
    "currval": "SELECT currval('{}')",
    "setval": "SELECT setval('{}', 50)",
    "by name": "SELECT nextval(n) FROM (VALUES ('{}')) q(n)",
    "by oid": "SELECT nextval(oid) FROM pg_class WHERE oid = '{}'::regclass",
    "in a condition": "SELECT 1 WHERE nextval('{}') > 0",
    "state": "SELECT last_value FROM {}",
}
ALLOWED = {
    "writer": {"nextval", "currval", "setval", "by name", "by oid", "in a condition"},
    "reader": {"currval", "state"},
    "owner": set(CALLS),
    "nobody": set[str](),
}
"""The roles are on the map ``t``, whose column owns the sequence."""


@pytest.fixture
def settings(tmp_path, monkeypatch):
    return known_users(tmp_path, monkeypatch)


@pytest.mark.parametrize("members", [1, 3])
def test_a_role_on_a_map_is_a_role_on_its_sequence(in_cluster, settings, members):
    unseen = (InsufficientPrivilege, UndefinedMap)

    async def scenario(cluster):
        root, *others = await prepared(cluster)
        await root.sql("CREATE SEQUENCE s OWNED BY t.k")
        await root.sql("CREATE SEQUENCE other")
        for who, name in zip(others, ("reader", "writer", "owner", "nobody"), strict=True):
            for call, text in CALLS.items():
                if call not in ALLOWED[name]:
                    with pytest.raises(unseen if name == "nobody" else InsufficientPrivilege):
                        await who.sql(text.format("s"))
                elif call == "currval":  # allowed; these clients keep no numbers
                    with pytest.raises(NumberNotDefined):
                        await who.sql(text.format("s"))
                else:
                    await who.sql(text.format("s"))
                with pytest.raises(unseen):
                    await who.sql(text.format("other"))
        await root.sql("GRANT USAGE, UPDATE ON SEQUENCE s TO root")
        await root.sql("GRANT SELECT ON SEQUENCE s TO root")
        await cluster.idle()

    in_cluster(scenario, members, **settings)
