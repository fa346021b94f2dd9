"""Plans and expressions as bytes: compact JSON over a registry of dataclasses; never pickle.

The text is ``[version, nodes]``. A node is ``[tag, field, ...]`` and comes after the nodes that it
refers to; equal nodes are written once (types and columns recur everywhere); the last node is the
value. The last fields of a node are left out where they have their defaults, so a field that a
release appends, with a default, changes nothing for plans that do not use it. A field is a JSON
scalar, ``[n]`` (node n), ``["t", ...]`` (tuple), ``["b", base64]`` (bytes) or ``["f", text]`` (a
float that JSON has no number for).
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from dataclasses import MISSING, fields
from enum import Enum
from typing import Any

from remuda.datatypes import sql
from remuda.errors import InternalError, ProtocolError
from remuda.formats import PLAN
from remuda.plan import expression as ex
from remuda.plan import index_access, keyed_write, logical, physical, windows
from remuda.plan.functions import set_functions
from remuda.plan.physical import PhysicalPlan

_DATACLASSES: tuple[type, ...] = (
    sql.EnumType,
    sql.SqlType,
    ex.ColumnRef,
    ex.Literal,
    ex.Parameter,
    ex.Call,
    ex.Cast,
    ex.Case,
    ex.InList,
    ex.EachOf,
    ex.ArgumentOrder,
    ex.AggregateCall,
    ex.SortKey,
    windows.FrameBound,
    windows.Frame,
    windows.WindowCall,
    logical.OutputColumn,
    physical.Distribution,
    physical.Traits,
    index_access.IndexEqual,
    index_access.IndexRange,
    index_access.IndexPrefix,
    index_access.IndexProbe,
    index_access.IndexUnion,
    index_access.IndexIntersection,
    *physical.NODES,
    set_functions.SetCall,
    physical.Pruning,
    physical.Fragment,
    physical.MapDependency,
    physical.PhysicalPlan,
    keyed_write.KeyedWrite,
)
_ENUMS: tuple[type[Enum], ...] = (
    sql.Kind,
    logical.JoinKind,
    windows.FrameUnit,
    windows.BoundKind,
    windows.Exclusion,
    physical.Placement,
    physical.AggregatePhase,
    physical.ExchangeKind,
    physical.IndexOrder,
    physical.Site,
    keyed_write.Meets,
)

_FIELDS: dict[type, tuple[str, ...]] = {t: tuple(f.name for f in fields(t)) for t in _DATACLASSES}
_DEFAULTS: dict[type, tuple[object, ...]] = {
    t: tuple(f.default for f in fields(t)) for t in _DATACLASSES
}
_LEAST: dict[type, int] = {
    t: max((place for place, one in enumerate(defaults, 1) if one is MISSING), default=0)
    for t, defaults in _DEFAULTS.items()
}
"""How many fields a node has at least: those up to the last one without a default."""
_SCALARS = frozenset({type(None), int, bool, str})
"""Types of values that JSON has, too."""
_CLASS_BY_TAG: dict[str, type] = {t.__name__: t for t in _DATACLASSES}
_ENUM_BY_TAG: dict[str, type[Enum]] = {t.__name__: t for t in _ENUMS}


def encode_plan(plan: PhysicalPlan) -> bytes:
    return encode(plan)


def decode_plan(data: bytes | memoryview) -> PhysicalPlan:
    """Raises ``ProtocolError`` when ``data`` is not a plan of this version."""
    plan = decode(data)
    if not isinstance(plan, PhysicalPlan):
        raise ProtocolError(f"expected a plan, found {type(plan).__name__}")
    return plan


def encode(value: object) -> bytes:
    """Any plan value: a Fragment, an Expression, a PhysicalPlan, a tuple of them ...

    Raises ``InternalError`` for a value of a type that is not registered.
    """
    writer = _Writer()
    # A tuple or a scalar needs no node of its own: it is written after the nodes.
    root = writer.write(value)
    text = json.dumps([PLAN.number, writer.nodes, root], separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


class _Writer:
    def __init__(self) -> None:
        self.nodes: list[list[Any]] = []
        self._index: dict[str, int] = {}
        self._places: dict[int, list[int]] = {}
        """Where the nodes of objects are, by identity."""

    def write(self, value: object) -> Any:
        kind = type(value)
        if kind in _SCALARS:
            return value
        if kind is float:
            assert isinstance(value, float)
            return value if math.isfinite(value) else ["f", repr(value)]
        if kind is tuple:
            assert isinstance(value, tuple)
            written: list[Any] = ["t"]
            for item in value:
                written.append(self.write(item))  # noqa: PERF401 (a frame less per level)
            return written
        if kind is bytes:
            assert isinstance(value, bytes)
            return ["b", base64.b64encode(value).decode("ascii")]
        return self._node(value, kind)

    def _node(self, value: object, kind: type) -> list[int]:
        # Most nodes are types and enums, the same few objects again and again. The value that is
        # written keeps them all alive, so that no identity is used twice.
        place = self._places.get(id(value))
        if place is not None:
            return place
        if kind in _FIELDS:
            node: list[Any] = [kind.__name__]
            items = [getattr(value, name) for name in _FIELDS[kind]]
            least, defaults = _LEAST[kind], _DEFAULTS[kind]
            while len(items) > least and items[-1] is defaults[len(items) - 1]:
                items.pop()
            for item in items:
                node.append(item if type(item) in _SCALARS else self.write(item))  # noqa: PERF401 (a frame less)
        elif isinstance(value, Enum) and kind in _ENUMS:
            node = [kind.__name__, value.name]
        else:
            raise InternalError(f"{kind.__name__} is not a plan value")
        key = repr(node)
        index = self._index.get(key)
        if index is None:
            index = self._index[key] = len(self.nodes)
            self.nodes.append(node)
        place = self._places[id(value)] = [index]
        return place


def decode(data: bytes | memoryview) -> object:
    """Raises ``ProtocolError`` for anything that ``encode`` of this version does not write."""
    try:
        document = json.loads(bytes(data).decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a plan is not readable: {error}") from error
    match document:
        case [int(version), list(nodes), root]:
            PLAN.check(version)
        case _:
            raise ProtocolError("a plan must be [version, nodes, root]")
    done: list[object] = []
    for node in nodes:
        done.append(_decode_node(node, done))
    return _decode_field(root, done)


def _decode_node(node: object, done: list[object]) -> object:
    match node:
        case [str(tag), str(name)] if tag in _ENUM_BY_TAG:
            try:
                return _ENUM_BY_TAG[tag][name]
            except KeyError:
                raise ProtocolError(f"a plan names {tag}.{name}, which does not exist") from None
        case [str(tag), *values] if tag in _CLASS_BY_TAG:
            cls = _CLASS_BY_TAG[tag]
            if not _LEAST[cls] <= len(values) <= len(_FIELDS[cls]):
                raise ProtocolError(f"{tag} has {len(_FIELDS[cls])} fields, found {len(values)}")
            return cls(*[_decode_field(value, done) for value in values])
    raise ProtocolError(f"a plan contains an unknown node: {str(node)[:80]}")


def _decode_field(value: object, done: list[object]) -> object:
    if not isinstance(value, list):
        if isinstance(value, dict):
            raise ProtocolError("a plan contains a JSON object")
        return value
    match value:
        case [bool()]:
            pass
        case [int(index)] if 0 <= index < len(done):
            return done[index]
        case ["t", *items]:
            return tuple([_decode_field(item, done) for item in items])
        case ["b", str(text)]:
            try:
                return base64.b64decode(text, validate=True)
            except binascii.Error as error:
                raise ProtocolError("a plan contains broken base64") from error
        case ["f", ("nan" | "inf" | "-inf") as text]:
            return float(str(text))
    raise ProtocolError(f"a plan contains an unknown value: {str(value)[:80]}")
