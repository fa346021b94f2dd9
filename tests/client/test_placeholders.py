"""Parameters are given one by one, and errors say so to who gives them otherwise."""

from __future__ import annotations

import pytest

import remuda
from remuda.client.network.address import parse_addresses
from remuda.client.operations.near_cache import NearCache, near_cache_of
from remuda.errors import InputError, RemudaError, WrongParameters

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def client(three_members):
    with three_members.connect() as found:
        yield found


@pytest.mark.parametrize("wanted", [[1], [1, 2], [2, 3, 4]])
def test_a_list_is_one_parameter(client, wanted):
    text = "SELECT g FROM generate_series(1, 3) g(g) WHERE g = ANY(?) ORDER BY g"
    expected = [(n,) for n in wanted if n < 4]
    assert client.sql(text, wanted).fetchall() == expected
    assert client.prepare(text)(wanted).fetchall() == expected
    with client.transaction() as transaction:
        assert transaction.sql(text, wanted).fetchall() == expected


def test_one_by_one_or_as_a_tuple(client):
    assert client.sql("SELECT ?::INT, ?::TEXT", 1, "a").fetchone() == (1, "a")
    assert client.sql("SELECT ?::INT, ?::TEXT", (1, "a")).fetchone() == (1, "a")
    assert client.execute_many("SELECT ?::INT, ?::INT", [[1, 2], (3, 4)]) == 2


@pytest.mark.parametrize("how", ["sql", "prepare", "transaction"])
def test_parameters_in_a_list_are_told_of(client, how):
    text = "SELECT 1 + ?, 2 + ?"
    if how == "sql":
        with pytest.raises(WrongParameters, match="one by one"):
            client.sql(text, [1, 2])
    elif how == "prepare":
        with pytest.raises(WrongParameters, match="one by one"):
            client.prepare(text)([1, 2])
    else:
        transaction = client.transaction().begin()
        with pytest.raises(WrongParameters, match="one by one"):
            transaction.sql(text, [1, 2])
        transaction.rollback()


@pytest.mark.parametrize(
    "text", ["SELECT %s", "SELECT 1 WHERE 1 = %s", "SELECT 1 WHERE 1 = %(x)s", "SELECT 1 %s"]
)
def test_placeholders_of_other_drivers_are_told_of(client, text):
    with pytest.raises(RemudaError, match=r"Placeholders are \?"):
        client.sql(text, 1)


def test_keys_by_default(client):
    client.sql("CREATE TABLE numbered (id SERIAL PRIMARY KEY, v INT)")
    given = client.sql("INSERT INTO numbered (v) VALUES (7), (8) RETURNING id").fetchall()
    assert given == [(1,), (2,)]
    client.sql("CREATE TABLE s (id UUID DEFAULT gen_random_uuid() PRIMARY KEY, v INT)")
    client.sql("INSERT INTO s (v) VALUES (1), (2)")
    assert client.sql("SELECT count(DISTINCT id) FROM s").scalar() == 2


def test_addresses_behind_a_scheme(client):
    with remuda.connect(f"remuda://{client.addresses[0]}") as other:
        assert other.sql("SELECT 1").scalar() == 1
    assert parse_addresses("remuda://a:1,b:2/") == (("a", 1), ("b", 2))
    assert parse_addresses(["remuda://a", "b:2"]) == (("a", 31010), ("b", 2))
    for wrong in ("http://a:1", "remuda://", "remuda://a/db", "remuda://me@a", "remuda://a?x=1"):
        with pytest.raises(InputError):
            parse_addresses(wrong)


def test_the_usual_near_cache(client):
    near = client.map("near", near_cache=True)
    near.put(1, 2)
    assert near.get(1) == near.get(1) == 2
    assert near_cache_of(True) == NearCache()
    assert near_cache_of(None) is near_cache_of(False) is None
    with pytest.raises(InputError, match="NearCache"):
        client.map("near", near_cache=5)


def test_a_map_and_a_result_show_themselves(client):
    words = client.map("words")
    words.put_all({1: "<a>", 2: "b"})
    assert sorted(words.items()) == [(1, "<a>"), (2, "b")]
    assert "&lt;a&gt;" in words._repr_html_()
    cursor = client.sql("SELECT __key AS k, this FROM words ORDER BY 1")
    assert "(k BIGINT, this VARCHAR)" in repr(cursor)
    assert "<td>&#x27;" not in cursor._repr_html_()
    assert "<td>1</td><td>&lt;a&gt;</td>" in cursor._repr_html_()
    assert cursor.fetchall() == [(1, "<a>"), (2, "b")]  # what was shown is still there
    assert {words.popitem()[0], words.popitem()[0]} == {1, 2}
    with pytest.raises(KeyError):
        words.popitem()
    words.clear()
    assert words.count() == 0
