"""Users, roles, and their file."""

from __future__ import annotations

import json

import pytest

from remuda.catalog.passwords import ITERATIONS_MIN, hashed
from remuda.catalog.users import ALL, Role, Users, decode_users, encode_users, role_of
from remuda.errors import DuplicateObject, InputError, InsufficientPrivilege, UndefinedObject

HASH = hashed("x", bytes(16), ITERATIONS_MIN)
READ, WRITE, ADMIN = Role


def users(**roles):
    found = Users()
    for name, grants in roles.items():
        found = found.added(name, HASH, replace_it=False)
        for scope, role in grants:
            found = found.granted(name, role, scope)
    return found


@pytest.mark.parametrize("role", Role)
def test_a_role_holds_where_it_was_given(role):
    ann = users(ann=[("t", role)]).get("ann")
    implied = set(Role) if role is ADMIN else {role}
    assert {r for r in Role if ann.has(r, "t")} == implied
    assert not any(ann.has(r, name) for r in Role for name in ("u", ALL, ""))
    assert ann.sees("t")
    assert not ann.sees("u")
    everywhere = users(ann=[(ALL, role)]).get("ann")
    assert {r for r in Role if everywhere.has(r, "whatever")} == implied
    assert {r for r in Role if everywhere.has(r, ALL)} == implied


def test_who_lacks_a_role_is_told_which():
    ann = users(ann=[("t", READ)]).get("ann")
    with pytest.raises(InsufficientPrivilege) as caught:
        ann.require(WRITE, "t")
    assert caught.value.sqlstate == "42501"
    assert caught.value.message == 'user "ann" lacks the role write on map "t"'
    assert caught.value.hint.endswith("remuda user grant ann write --map t")
    with pytest.raises(InsufficientPrivilege, match="the role admin on all maps"):
        ann.require(ADMIN, ALL)


def test_changes():
    found = users(ann=[("t", READ), ("t", WRITE)], bob=[])
    with pytest.raises(DuplicateObject, match='user "ann" exists already'):
        found.added("ann", HASH, replace_it=False)
    other = hashed("y", bytes(16), ITERATIONS_MIN)
    changed = found.added("ann", other, replace_it=True)
    assert changed.get("ann").password == other
    assert changed.get("ann").roles == found.get("ann").roles
    less = found.revoked("ann", READ, "t").revoked("ann", WRITE, "t")
    assert less.get("ann").roles == {}
    with pytest.raises(UndefinedObject, match='"ann" does not have the role read on map "t"'):
        less.revoked("ann", READ, "t")
    assert list(found.removed("bob").by_name) == ["ann"]
    for act in (
        lambda: found.removed("eve"),
        lambda: found.granted("eve", READ, "t"),
        lambda: found.added("eve", HASH, replace_it=True),
    ):
        with pytest.raises(UndefinedObject, match='user "eve" does not exist'):
            act()


def test_the_file():
    found = users(ann=[("t", READ), ("t", WRITE), (ALL, READ)], böb=[(ALL, ADMIN)])
    text = encode_users(found)
    assert decode_users(text, "file") == found
    document = json.loads(text)
    assert document["users"]["ann"]["roles"] == {ALL: ["read"], "t": ["read", "write"]}
    assert document["format"] == 1
    settled = found.configured("ann", "statement_timeout", "5s").configured("böb", "x.y", "1")
    text = encode_users(settled)
    assert decode_users(text, "file") == settled
    assert json.loads(text)["format"] == 2
    less = settled.configured("ann", "statement_timeout", None).configured("böb", "x.y", None)
    assert less == found


BAD = {
    "not JSON": b"{",
    "not UTF-8": b"\xff",
    "a list": b"[]",
    "no users": b"{}",
    "more than users": b'{"users": {}, "x": 1}',
    "users are a list": b'{"users": []}',
    "an entry is none": b'{"users": {"ann": 1}}',
    "no password": b'{"users": {"ann": {}}}',
    "a plain password": b'{"users": {"ann": {"password": "secret"}}}',
    "an unknown key": json.dumps({"users": {"a": {"password": HASH.text(), "x": 1}}}).encode(),
    "roles are a list": json.dumps(
        {"users": {"a": {"password": HASH.text(), "roles": []}}}
    ).encode(),
    "settings are a list": json.dumps(
        {"users": {"a": {"password": HASH.text(), "settings": []}}}
    ).encode(),
    "a setting is no text": json.dumps(
        {"users": {"a": {"password": HASH.text(), "settings": {"work_mem": 4}}}}
    ).encode(),
    "a role is unknown": json.dumps(
        {"users": {"a": {"password": HASH.text(), "roles": {"t": ["own"]}}}}
    ).encode(),
    "too deep": b"[" * 100_000,
    "an empty name": json.dumps({"users": {"": {"password": HASH.text()}}}).encode(),
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_files_that_are_wrong(content):
    with pytest.raises(InputError, match=r"users\.json"):
        decode_users(content, "users.json")


def test_names_and_roles():
    for name in ("", "x" * 64, "a\nb", "\0"):
        with pytest.raises(InputError, match="a user's name has 1 to 63"):
            Users().added(name, HASH, replace_it=False)
    assert role_of("read") is READ
    with pytest.raises(InputError, match="no role 'own'"):
        role_of("own")
