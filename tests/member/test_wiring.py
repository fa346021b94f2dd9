"""After ``Member(...)`` every room exists, and nothing is put into another object from outside.

A room that needs something of a higher one gets it as an argument of its constructor, or tells the
listeners that have added themselves to one of its lists.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.syntax_trees import syntax_tree

import remuda.member
from remuda.config import MemberConfig
from remuda.member.base.wing import Routes, Wing, all_routes
from remuda.member.member import Member
from remuda.world import system_world

ROOT = Path(remuda.member.__path__[0])
MISSING = {
    "Forming._limit",
}
"""Attributes that are declared and not there before the start. The set only shrinks."""
WIRING = {"__init__", "begin", "listen", "serve", "start"}
"""Methods that put objects together. Others may fill in a message that they are given."""


# --- a member that is constructed and not started ------------------------------------------------


@cache
def declared(kind: type) -> frozenset[str]:
    """The attributes that the methods of a class assign or annotate."""
    source = syntax_tree(Path(inspect.getfile(kind)).read_text(encoding="utf-8"))
    (found,) = (
        n for n in ast.walk(source) if isinstance(n, ast.ClassDef) and n.name == kind.__name__
    )
    return frozenset(
        node.attr
        for node in ast.walk(found)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def parts_of(value: Any) -> Iterator[Any]:
    """The objects that a value holds directly."""
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    elif inspect.ismethod(value):
        yield value.__self__
    else:
        yield from getattr(value, "__dict__", {}).values()


def rooms_of(member: Member) -> list[Any]:
    """Every object of the member's own classes that can be reached from it."""
    found: dict[int, Any] = {}
    seen: dict[int, Any] = {}
    ahead: list[Any] = [member]
    while ahead:
        value = ahead.pop()
        if id(value) in seen or isinstance(value, type) or inspect.ismodule(value):
            continue
        seen[id(value)] = value
        if type(value).__module__.startswith("remuda.member."):
            found[id(value)] = value
        ahead.extend(parts_of(value))
    return list(found.values())


@pytest.fixture
def rooms() -> list[Any]:
    async def constructed() -> list[Any]:
        config = MemberConfig(cluster_size=1, user_port=0, data_port=0, control_port=0)
        return rooms_of(Member(config, system_world()))

    return asyncio.run(constructed())


def test_a_constructed_member_has_every_attribute(rooms: list[Any]) -> None:
    assert len(rooms) > 100
    lacking = {
        f"{kind.__name__}.{name}"
        for room in rooms
        for kind in type(room).__mro__
        if kind.__module__.startswith("remuda.member.")
        for name in declared(kind)
        if not hasattr(room, name)
    }
    assert lacking == MISSING


def test_a_member_lacks_nothing_that_its_start_could_bring(rooms: list[Any]) -> None:
    """The names of its rooms are all there: ``start`` binds none."""
    source = syntax_tree(inspect.getsource(sys.modules[Member.__module__]))
    (kind,) = (n for n in source.body if isinstance(n, ast.ClassDef))
    (start,) = (n for n in kind.body if isinstance(n, ast.AsyncFunctionDef) and n.name == "start")
    calls = [n.func for n in ast.walk(start) if isinstance(n, ast.Call)]
    made = [call.id for call in calls if isinstance(call, ast.Name) and call.id[0].isupper()]
    assert made == []


# --- assignments from outside --------------------------------------------------------------------


def targets(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Assign():
            found = node.targets
        case ast.AugAssign() | ast.AnnAssign():
            found = [node.target]
        case _:
            return
    for target in found:
        yield from target.elts if isinstance(target, ast.Tuple | ast.List) else [target]


def depth(target: ast.expr) -> tuple[int, str]:
    """How many attributes are followed, and from which name."""
    steps = 0
    while isinstance(target, ast.Attribute | ast.Subscript):
        steps += isinstance(target, ast.Attribute)
        target = target.value
    return steps, target.id if isinstance(target, ast.Name) else ""


def from_outside(text: str) -> list[str]:
    """Assignments to ``self.other.attribute``, and in ``WIRING`` to ``argument.attribute``."""
    tree = syntax_tree(text)
    found = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        given = function.args
        names = {each.arg for each in (*given.args, *given.kwonlyargs)} - {"self"}
        for node in ast.walk(function):
            for target in targets(node):
                if not isinstance(target, ast.Attribute):
                    continue
                steps, name = depth(target)
                own = function.name in WIRING and name in names
                if (name == "self" and steps > 1) or own:
                    found.append(f"{target.lineno}: {ast.unparse(target)}")
    return sorted(set(found))


def test_nothing_is_put_into_another_object() -> None:
    found = {
        str(module.relative_to(ROOT)): places
        for module in sorted(ROOT.rglob("*.py"))
        if (places := from_outside(module.read_text(encoding="utf-8")))
    }
    assert found == {}, "pass it to the constructor, or give the owner a method for it"


@pytest.mark.parametrize(
    "text",
    [
        "def start(self):\n    self.other.part = 1",
        "def start(self):\n    self.mine, self.other.part = 1, 2",
        "def start(self):\n    self.other.count += 1",
        "def __init__(self, other):\n    other.part = self.part",
    ],
)
def test_an_assignment_from_outside_is_found(text: str) -> None:
    assert len(from_outside(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "def start(self):\n    self.part = 1",
        "def start(self, other):\n    self.parts[other.name] = 1",
    ],
)
def test_an_object_sets_its_own(text: str) -> None:
    assert from_outside(text) == []


# --- wings ---------------------------------------------------------------------------------------

WINGS = [
    "Transactions",
    "Commits",
    "JobRows",
    "Jobs",
    "Queries",
    "Metrics",
    "CatalogService",
    "Membership",
    "Maps",
    "MapChanges",
    "MapExpiry",
    "MapEviction",
    "ReadLeases",
    "AdvisoryService",
    "Notifications",
    "Copies",
    "Receiving",
    "Giving",
    "Donations",
    "TransactionService",
    "Subscriptions",
    "IndexService",
    "ClusterStatistics",
    "Preparing",
    "CatalogRequests",
    "Statements",
    "SystemState",
    "ProfileService",
    "ActivityReport",
    "DrillMetadata",
    "DrillPlans",
    "StatementRequests",
    "RunQueries",
    "PostgresWing",
    "Snapshots",
    "Upkeep",
]
"""In the order in which they start, stop and close."""
PHASES = ("start", "stop", "close", "free")


def test_every_wing_of_the_member_is_listed(rooms: list[Any]) -> None:
    made = [room for room in rooms if isinstance(room, Wing)]
    (member,) = (room for room in rooms if isinstance(room, Member))
    assert [type(wing).__name__ for wing in member.wings] == WINGS
    assert {id(wing) for wing in made} == {id(wing) for wing in member.wings}


def test_wings_start_and_stop_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[str, str]] = []

    def noted(kind: type[Wing], phase: str) -> None:
        original = getattr(kind, phase)

        def call(self: Wing, *args: Any) -> None:
            called.append((phase, type(self).__name__))
            original(self, *args)

        monkeypatch.setattr(kind, phase, call)

    async def life() -> None:
        config = MemberConfig(cluster_size=1, user_port=0, data_port=0, control_port=0)
        member = Member(config, system_world())
        for wing in member.wings:
            for phase in PHASES:
                noted(type(wing), phase)
        await member.start()
        await member.stop()

    asyncio.run(life())
    assert called == [(phase, name) for phase in PHASES for name in WINGS]


def test_two_wings_never_serve_the_same_message() -> None:
    class Twice(Wing):
        def routes(self) -> Routes:
            return Routes(control={1: print})

    assert all_routes([Twice()]).control == {1: print}
    with pytest.raises(AssertionError):
        all_routes([Twice(), Twice()])
