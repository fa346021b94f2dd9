"""A map is a dictionary to whoever takes one."""

from __future__ import annotations

from collections.abc import MutableMapping

import pytest


@pytest.fixture
def numbers(client):
    found = client.map("numbers")
    found.put_all({1: "a", 2: "b", 3: "c"})
    return found


def test_it_is_a_mutable_mapping(client, numbers):
    assert isinstance(numbers, MutableMapping)
    assert isinstance(client.map("numbers", near_cache=True), MutableMapping)
    for name in dir(MutableMapping):
        if not name.startswith("_"):
            assert callable(getattr(numbers, name)), name


def test_pop(numbers):
    assert numbers.pop(1) == "a"
    assert numbers.pop(1, None) is None
    assert numbers.pop(1, "x") == "x"
    with pytest.raises(KeyError, match="1"):
        numbers.pop(1)


def test_setdefault(numbers, monkeypatch):
    assert numbers.setdefault(1, "x") == "a"
    assert numbers.setdefault(9, "x") == "x"
    assert numbers[9] == "x"
    real, calls = numbers._map.get, []

    async def removed_meanwhile(key, default=None):
        calls.append(key)
        if len(calls) == 1:
            await numbers._map.remove(key)
        return await real(key, default)

    monkeypatch.setattr(numbers._map, "get", removed_meanwhile)
    assert numbers.setdefault(9, "y") == "y"
    assert real and calls == [9]


def test_update(client, numbers):
    numbers.update({1: "A", 4: "d"})
    numbers.update([(5, "e")])
    assert numbers.get_all(range(9)) == {1: "A", 2: "b", 3: "c", 4: "d", 5: "e"}
    words = client.map("words")
    words.update({"a": 1}, b=2)
    assert words.get_all("ab") == {"a": 1, "b": 2}


def test_it_shows_what_it_knows(client, numbers):
    assert repr(client.map("numbers")) == "<Map numbers>"
    assert repr(numbers) == "<Map numbers (__key BIGINT, this VARCHAR) by (__key)>"


def test_the_asyncio_face(face):
    async def scenario(client):
        numbers = client.map("numbers")
        await numbers.put_all({1: "a", 2: "b"})
        assert await numbers.pop(1) == "a"
        with pytest.raises(KeyError):
            await numbers.pop(1)
        assert await numbers.pop(1, None) is None
        assert await numbers.setdefault(2, "x") == "b"
        await numbers.update({2: "B"})
        assert await numbers.get(2) == "B"

    face(scenario)
