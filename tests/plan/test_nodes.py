"""Every class of plan nodes: its inputs are found by their types, and every builder knows it."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest

from remuda.plan.codec import decode, encode
from remuda.plan.physical import (
    ANY,
    NODES,
    Physical,
    Traits,
    ValuesScan,
    inputs_of,
    with_inputs,
)

LEAF = ValuesScan((), Traits(ANY), ())
OTHER = ValuesScan((), Traits(ANY), ((),))


def made(kind: type[Physical]) -> Physical:
    """A node whose inputs are ``LEAF`` and whose other fields are of no interest."""
    values: dict[str, Any] = {"output": (), "traits": Traits(ANY)}
    for field in fields(kind):
        if field.type == "Physical":
            values[field.name] = LEAF
        elif field.type == "tuple[Physical, ...]":
            values[field.name] = (LEAF, LEAF, LEAF)
        else:
            values.setdefault(field.name, None)
    return kind(**values)


@pytest.mark.parametrize("kind", NODES, ids=lambda kind: kind.__name__)
def test_inputs_of_every_node_are_known(kind: type[Physical]) -> None:
    """A field that holds a node in a form that ``inputs_of`` does not see would hide it from all
    that walks a plan: EXPLAIN, the cut into fragments, admission."""
    held = [field for field in fields(kind) if re.search(r"\bPhysical\b", str(field.type))]
    assert {str(field.type) for field in held} <= {"Physical", "tuple[Physical, ...]"}
    node = made(kind)
    inputs = inputs_of(node)
    assert bool(inputs) == bool(held)
    assert all(each is LEAF for each in inputs)
    assert with_inputs(node, inputs) is node
    others = with_inputs(node, tuple(OTHER for _ in inputs))
    assert type(others) is kind
    assert inputs_of(others) == tuple(OTHER for _ in inputs)


@pytest.mark.parametrize("kind", NODES, ids=lambda kind: kind.__name__)
def test_every_node_travels_between_members(kind: type[Physical]) -> None:
    assert decode(encode(made(kind))) == made(kind)


@pytest.mark.parametrize("kind", NODES, ids=lambda kind: kind.__name__)
def test_every_node_has_a_line_in_explain(kind: type[Physical]) -> None:
    assert kind.title is not Physical.title
