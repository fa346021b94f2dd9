"""Definitions of a transaction, merged with those of others (decision 0109)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from remuda.catalog.catalog import Catalog
from remuda.catalog.edits import (
    DropMap,
    DropNamespace,
    DropView,
    Edit,
    PutMap,
    PutNamespace,
    PutView,
)
from remuda.catalog.own.definitions import (
    OwnDefinitions,
    as_named,
    is_made,
    made_name,
    maker_of,
)
from remuda.datatypes.index import IndexDefinition, IndexedColumn, IndexKind
from remuda.datatypes.schema import Column, MapSchema, Namespace, ViewDefinition
from remuda.datatypes.sql import BIGINT, VARCHAR
from remuda.errors import (
    DuplicateMap,
    DuplicateObject,
    RemudaError,
    SerializationFailure,
    UndefinedSchema,
)

COLUMNS = (Column("k", BIGINT), Column("v", VARCHAR))


def schema(name: str) -> MapSchema:
    return MapSchema(name, COLUMNS, ("k",), ())


def view(name: str, of: str) -> ViewDefinition:
    return ViewDefinition(name, f"select k from {of}", (Column("k", BIGINT),), ("k",), (of,))


@dataclass
class Cluster:
    """The catalog of all, and transactions that make definitions by it."""

    catalog: Catalog = field(default_factory=Catalog)
    made: int = 0

    def edit(self, *edits: Edit) -> None:
        self.catalog = self.catalog.edited(edits)

    def begin(self) -> OwnDefinitions:
        return OwnDefinitions.over_catalog(self.catalog)

    def create(self, own: OwnDefinitions, name: str) -> OwnDefinitions:
        """CREATE TABLE in a transaction."""
        own.over(self.catalog)
        self.made += 1
        hidden = made_name(1, 7, self.made, name)
        self.edit(PutMap(schema(hidden)))
        shown = replace(self.catalog.get(hidden), name=name)
        return own.with_edits(self.catalog, [PutMap(shown)], [shown.map_id])

    def commit(self, own: OwnDefinitions) -> None:
        self.catalog = self.catalog.edited(own.decision(self.catalog))


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.edit(PutMap(schema("a")), PutMap(schema("b")), PutNamespace(Namespace("s", "")))
    made.edit(PutView(view("w", "a")))
    return made


def shown(catalog: Catalog) -> set[str]:
    return {*(each.name for each in catalog.shown.maps), *catalog.view_names()}


def test_nobody_else_sees_a_new_map_before_the_commit(cluster: Cluster) -> None:
    own = cluster.create(cluster.begin(), "new")
    assert shown(own.over(cluster.catalog)) == {"a", "b", "w", "new"}
    assert shown(cluster.catalog) == {"a", "b", "w"}
    before = own.over(cluster.catalog).get("new")
    cluster.commit(own)
    after = cluster.catalog.get("new")
    assert (after.map_id, after.columns, after.local) == (before.map_id, before.columns, "new")
    assert not is_made(after)
    assert all(0 < each.oid < cluster.catalog.following_oid for each in cluster.catalog.maps)


def test_a_hidden_name_tells_its_maker() -> None:
    hidden = schema(made_name(3, 41, 5, "s.with space"))
    assert is_made(hidden)
    assert hidden.internal
    assert maker_of(hidden) == (3, 41)
    assert hidden.local == "s.with space"
    assert as_named(f'map "{hidden.name}" is full') == 'map "s.with space" is full'


def test_what_others_have_made_of_other_objects_is_seen(cluster: Cluster) -> None:
    own = cluster.begin().with_edits(cluster.catalog, [DropMap("b")])
    cluster.edit(PutMap(schema("c")), PutMap(replace(cluster.catalog.get("a"), name="z")))
    merged = own.over(cluster.catalog)
    assert shown(merged) == {"z", "c", "w"}
    assert own.over(cluster.catalog) is merged
    cluster.commit(own)
    assert shown(cluster.catalog) == {"z", "c", "w"}


@pytest.mark.parametrize(
    "edits",
    [
        (DropMap("b"),),
        (DropMap("b"), PutMap(schema("b"))),
        "rename",
        "widen",
    ],
    ids=str,
)
def test_an_object_of_the_transaction_that_others_have_changed(
    cluster: Cluster, edits: Sequence[Edit] | str
) -> None:
    own = cluster.begin().with_edits(cluster.catalog, [DropMap("b")])
    known = cluster.catalog.get("b")
    if edits == "rename":
        edits = [PutMap(replace(known, name="other"))]
    elif edits == "widen":
        edits = [PutMap(replace(known, columns=(*known.columns, Column("n", BIGINT))))]
    assert not isinstance(edits, str)
    cluster.edit(*edits)
    with pytest.raises(SerializationFailure, match='map "b" was changed by others'):
        own.over(cluster.catalog)
    with pytest.raises(SerializationFailure):
        cluster.commit(own)


def test_a_name_that_others_have_taken(cluster: Cluster) -> None:
    one = cluster.create(cluster.begin(), "new")
    other = cluster.create(cluster.begin(), "new")
    cluster.commit(one)
    with pytest.raises(DuplicateMap, match='relation "new" already exists'):
        cluster.commit(other)
    third = cluster.begin().with_edits(cluster.catalog, [PutView(view("x", "b"))])
    cluster.edit(PutMap(schema("x")))
    with pytest.raises(DuplicateMap):
        third.over(cluster.catalog)


def test_a_map_that_a_view_of_the_transaction_reads_counts_as_used(cluster: Cluster) -> None:
    own = cluster.begin().with_edits(cluster.catalog, [PutView(view("x", "b"))])
    cluster.edit(PutMap(schema("c")))
    assert own.over(cluster.catalog).find_view("x")
    cluster.edit(DropMap("b"))
    with pytest.raises(SerializationFailure, match='relation "b"'):
        own.over(cluster.catalog)


def test_a_view_of_others_on_a_map_that_the_transaction_drops(cluster: Cluster) -> None:
    own = cluster.begin().with_edits(cluster.catalog, [DropMap("b")])
    cluster.edit(PutView(view("x", "b")))
    with pytest.raises(SerializationFailure, match='relation "b"'):
        cluster.commit(own)


def test_views_change_and_go(cluster: Cluster) -> None:
    known = cluster.catalog.find_view("w")
    assert known is not None
    own = cluster.begin().with_edits(cluster.catalog, [PutView(replace(known, name="z"))])
    own = own.with_edits(cluster.catalog, [PutView(view("y", "z"))])
    own = own.with_edits(cluster.catalog, [DropView("y"), PutView(view("x", "z"))])
    cluster.edit(PutMap(schema("c")))
    cluster.commit(own)
    assert set(cluster.catalog.view_names()) == {"z", "x"}
    found = {each.name: each for each in cluster.catalog.views}
    assert found["z"].view_id == known.view_id
    assert found["x"].view_id > 0
    gone = cluster.begin().with_edits(cluster.catalog, [DropView("x")])
    cluster.edit(DropView("x"))
    with pytest.raises(SerializationFailure, match='view "x"'):
        gone.over(cluster.catalog)


def test_schemas(cluster: Cluster) -> None:
    own = cluster.begin().with_edits(cluster.catalog, [PutNamespace(Namespace("n", ""))])
    other = cluster.begin().with_edits(cluster.catalog, [PutNamespace(Namespace("n", "x"))])
    dropped = cluster.begin().with_edits(cluster.catalog, [DropNamespace("s")])
    cluster.commit(own)
    assert "n" in cluster.catalog.namespace_names
    with pytest.raises(SerializationFailure, match='schema "n"'):
        cluster.commit(other)
    cluster.edit(PutMap(replace(schema("s.t"), namespace="s")))
    with pytest.raises(UndefinedSchema):
        cluster.commit(dropped)


def test_names_of_indexes_are_of_one_map(cluster: Cluster) -> None:
    def indexed(name: str) -> PutMap:
        index = IndexDefinition("i", IndexKind.SORTED, (IndexedColumn("v"),))
        return PutMap(replace(cluster.catalog.get(name), indexes=(index,)))

    own = cluster.begin().with_edits(cluster.catalog, [indexed("a")])
    cluster.edit(indexed("b"))
    with pytest.raises(DuplicateObject, match='relation "i"'):
        own.over(cluster.catalog)


def test_altered_maps_cannot_be_read_before_the_commit(cluster: Cluster) -> None:
    known = cluster.catalog.get("b")
    own = cluster.begin().with_edits(cluster.catalog, [PutMap(replace(known, name="z"))])
    assert own.altered == frozenset()
    assert own.over(cluster.catalog).get("z").version == known.version
    wider = replace(own.own.get("z"), columns=(*known.columns, Column("n", BIGINT)))
    changed = own.with_edits(cluster.catalog, [PutMap(wider)])
    assert changed.altered == {known.map_id}
    made = cluster.create(own, "new")
    wider = replace(made.own.get("new"), columns=(*known.columns, Column("n", BIGINT)))
    assert made.with_edits(cluster.catalog, [PutMap(wider)]).altered == frozenset()


def test_a_map_that_is_made_and_dropped_has_no_name(cluster: Cluster) -> None:
    own = cluster.create(cluster.begin(), "new")
    gone = own.with_edits(cluster.catalog, [DropMap("new")])
    assert all(map(gone.gives_up, own.made))
    assert not any(map(own.gives_up, own.made))
    cluster.commit(gone)
    assert shown(cluster.catalog) == {"a", "b", "w"}
    assert not [each for each in cluster.catalog.maps if is_made(each)]


def test_plans_of_two_transactions_are_not_the_same(cluster: Cluster) -> None:
    one, other = cluster.begin(), cluster.begin()
    assert one != other
    assert len({one, other, one}) == 2


# --- many transactions ----------------------------------------------------------------------


@dataclass
class Opened:
    """A transaction, and its net effect on the names."""

    own: OwnDefinitions
    gone: set[str] = field(default_factory=set)
    new: set[str] = field(default_factory=set)

    def takes(self, name: str) -> None:
        if name in self.new:
            self.new.remove(name)
        else:
            self.gone.add(name)


@pytest.mark.parametrize("seed", range(40))
def test_transactions_that_commit_might_have_run_one_after_the_other(seed: int) -> None:
    """Each of several transactions makes definitions while others commit. The names are then the
    same as if each one that has committed had made all of its definitions at its COMMIT."""
    chance = Random(seed)
    cluster, opened = Cluster(), dict[int, Opened]()
    names: set[str] = set()
    ends = {"committed": 0, "refused": 0}
    for _ in range(150):
        key = chance.randrange(4)
        found = opened.get(key) or Opened(cluster.begin())
        try:
            if (found.new or found.gone) and chance.random() < 0.35:
                del opened[key]
                cluster.commit(found.own)
                ends["committed"] += 1
                assert found.gone <= names
                assert not found.new & (names - found.gone)
                names = (names - found.gone) | found.new
                assert shown(cluster.catalog) == names
            elif _defined(cluster, found, chance):
                opened[key] = found
        except RemudaError:
            opened.pop(key, None)
            ends["refused"] += 1
            assert shown(cluster.catalog) == names
    assert ends["committed"] > 5, ends
    assert ends["refused"] > 0, ends


def _defined(cluster: Cluster, found: Opened, chance: Random) -> bool:
    """One definition of random objects; False: there are none for it."""
    seen = found.own.over(cluster.catalog)
    name, other = (f"m{chance.randrange(6)}" for _ in range(2))
    known, free = seen.find(name), other not in shown(seen)
    used = any(name in each.uses for each in seen.views)
    kind = chance.choice(("create", "create", "drop", "rename", "view"))
    if kind == "create" and free:
        found.own = cluster.create(found.own, other)
        found.new.add(other)
    elif kind == "drop" and known and not used:
        found.own = found.own.with_edits(cluster.catalog, [DropMap(name)])
        found.takes(name)
    elif kind == "rename" and known and free and not used:
        found.own = found.own.with_edits(cluster.catalog, [PutMap(replace(known, name=other))])
        found.takes(name)
        found.new.add(other)
    elif kind == "view" and known and free:
        found.own = found.own.with_edits(cluster.catalog, [PutView(view(other, name))])
        found.new.add(other)
    else:
        return False
    return True
