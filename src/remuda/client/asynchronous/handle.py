"""The base of every operation of a map handle: the map as the client knows it now."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import cached_property
from typing import Any, Self, TypeVar

from remuda.client.core.core import Core
from remuda.client.core.reader import Reader
from remuda.client.core.tries import MAYBE_AGAIN, STALE
from remuda.client.network.deadline import Deadline
from remuda.client.network.latest import Latest
from remuda.client.operations.binding import Binding
from remuda.client.operations.transaction_binding import TransactionBinding
from remuda.client.operations.transaction_core import TransactionCore
from remuda.client.requests import requests
from remuda.client.requests.requests import NO_OPTIONS, MapDescription
from remuda.client.values.decoding import python_values
from remuda.client.values.fields import check_type, class_shape
from remuda.client.values.inference import infer_schema
from remuda.client.values.objects import ObjectCodec
from remuda.client.values.predicate import Condition, Operand, quote
from remuda.client.values.row import Row
from remuda.client.values.values import parameters_of
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import require_unicode
from remuda.errors import InputError, ObjectMismatch, RemudaError, UndefinedMap

T = TypeVar("T")

AGAIN = (*MAYBE_AGAIN, *STALE)
"""Errors after which a request that can be sent again is sent again."""
_DESCRIBED_KEPT = 1000
_CLASSES_KEPT = 100


class Handle:
    """The name of a map, and its ``Binding`` while that is good."""

    def __init__(
        self,
        core: Core,
        name: str,
        value_type: type | None = None,
        key_type: type | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise InputError(f"the name of a map is text, found {type(name).__name__}")
        require_unicode(name, "the name of a map")
        if value_type is not None:
            check_type("value_type", value_type)
        if key_type is not None:
            check_type("key_type", key_type)
        self.name = name
        self._core = core
        self._value_type = value_type
        self._key_type = key_type
        self._binding: Binding | None = None
        self._learned: set[tuple[type, type]] = set()
        """Classes of keys and values that have been put, and have told what they could."""

    @cached_property
    def _described(self) -> Latest[MapDescription]:
        return Latest(self._core.ports, self._describe)

    async def schema(self) -> MapSchema:
        """The schema as the cluster has it now."""
        return (await self._bind(self._core.deadline())).schema

    async def _bind(self, deadline: Deadline) -> Binding:
        """Learn the schema from the cluster. UndefinedMap when there is none."""
        return self._bound((await self._described.get(deadline)).schema)

    async def _describe(self, deadline: Deadline) -> MapDescription:
        call = requests.describe_map(self.name, schema_only=True)
        found = await self._core.call(None, call, True, deadline)
        described = self._core.described
        if len(described) >= _DESCRIBED_KEPT:
            described.clear()
        described[self.name] = found
        return found

    def _unbind(self) -> None:
        """The map is not as this handle knows it."""
        self._binding = None
        self._core.described.pop(self.name, None)

    async def _bound_now(self, deadline: Deadline) -> Binding:
        """The map as this handle knows it, in the view that the client knows."""
        binding = self._binding
        if binding is None:
            known = await self._core.still_described(self.name)
            return await self._bind(deadline) if known is None else self._bound(known.schema)
        if binding.view is not self._core.view:
            self._binding = binding = self._rebuilt(binding)
        return binding

    async def _bound_perhaps(self, deadline: Deadline) -> Binding:
        """The map as it was known last: for a request that fails if that is not good any more."""
        if self._binding is None:
            known = await self._core.last_described(self.name)
            return await self._bind(deadline) if known is None else self._bound(known.schema)
        return await self._bound_now(deadline)

    async def _bind_again(self, error: RemudaError, deadline: Deadline) -> Binding:
        """The map as it is now, after a request met ``error``."""
        if isinstance(error, STALE):
            self._unbind()
        return await self._bound_now(deadline)

    async def _read_again(
        self,
        error: RemudaError,
        deadline: Deadline,
        ask: Callable[[Binding], Coroutine[Any, Any, T]],
    ) -> tuple[Binding, T]:
        """``ask`` once more, and again, while ``Tries`` allows it."""
        tries = self._core.tries(self._core.settings.retry_reads, deadline, reads=True)
        while True:
            await tries.after(error)
            binding = await self._bind_again(error, deadline)
            try:
                return binding, await ask(binding)
            except AGAIN as another:
                error = another

    def _bound(self, schema: MapSchema) -> Binding:
        binding = self._binding
        if (
            binding is None
            or binding.schema != schema
            or binding.router.view is not self._core.view
        ):
            binding = self._binding = self._made(schema)
        return binding

    async def _bind_for(
        self, key: Any, value: Any, deadline: Deadline, *, perhaps: bool = False
    ) -> Binding:
        """The binding for a write: creates the map from its first entry, learns the classes.
        ``perhaps``: the map may be as it was known last."""
        binding = self._binding
        if binding is None or binding.view is not self._core.view:
            bound = self._bound_perhaps if perhaps else self._bound_now
            try:
                binding = await bound(deadline)
            except UndefinedMap:
                inferred = infer_schema(self.name, key, value)
                ObjectCodec(inferred).row(key, value)  # what does not fit makes no map
                call = requests.create_map(inferred, True)
                created = await self._core.call(None, call, deadline=deadline)
                binding = self._bound(created.schema)
        if self._value_type is None and _is_learned(type(value)):
            self._value_type = type(value)
            self._binding = binding = self._rebuilt(binding)
        if self._key_type is None and _is_learned(type(key)):
            self._key_type = type(key)
            self._binding = binding = self._rebuilt(binding)
        if len(self._learned) < _CLASSES_KEPT:
            self._learned.add((type(key), type(value)))
        return binding

    async def _newer(self, binding: Binding, error: ObjectMismatch, deadline: Deadline) -> Binding:
        """The map as it is now, if that is not what an object did not fit; raises ``error`` if it
        is."""
        newest = await self._bind(deadline)
        known, schema = binding.schema, newest.schema
        if (schema.map_id, schema.version) == (known.map_id, known.version):
            raise error
        return newest

    def _rebuilt(self, binding: Binding) -> Binding:
        return self._made(binding.schema)

    def _made(self, schema: MapSchema) -> Binding:
        core = self._core
        if isinstance(core, TransactionCore):
            return TransactionBinding(core, schema, self._value_type, self._key_type)
        return Binding(core, schema, self._value_type, self._key_type)

    def _all_columns(self, binding: Binding) -> tuple[str, ...]:
        return tuple(column.name for column in binding.schema.columns)

    def _select(
        self, binding: Binding, columns: Sequence[str], where: Condition | Operand | None
    ) -> Selection:
        listed = ", ".join(map(quote, columns))
        condition, values = condition_of(where)
        text = f"SELECT {listed} FROM {quote(binding.schema.name)}{condition}"  # noqa: S608  (quoted)
        return Selection(self._core, text, values)

    async def _run(self, text: str) -> None:
        reader = await self._core.execute(text, (), (), NO_OPTIONS)
        await reader.close()


class Selection:
    """Runs a SELECT while it is entered, and gives its rows as Python values, batch by batch."""

    def __init__(self, core: Core, text: str, values: Sequence[Any]) -> None:
        self._core = core
        self._text = text
        self._values = values
        self._reader: Reader

    async def __aenter__(self) -> Self:
        physical, types = parameters_of(self._values)
        self._reader = await self._core.execute(self._text, physical, types, NO_OPTIONS)
        return self

    async def next(self) -> Iterable[tuple[Any, ...]] | None:
        """The rows of the next batch; None at the end."""
        batch = await self._reader.next_batch()
        if batch is None:
            return None
        found = zip(batch.columns, self._reader.columns, strict=True)
        return zip(*[python_values(array, column) for array, column in found], strict=True)

    async def __aexit__(self, *_: object) -> None:
        await self._reader.close()


def condition_of(where: Condition | Operand | None) -> tuple[str, tuple[Any, ...]]:
    """The WHERE clause of a condition, and its parameters. InputError."""
    if where is None:
        return "", ()
    if not isinstance(where, Condition | Operand):
        raise InputError(
            f"where= takes a condition, found {type(where).__name__}",
            hint='Like remuda.col("delay") > 30.',
        )
    return f" WHERE {where.sql}", where.parameters


def _is_learned(cls: type) -> bool:
    """Classes worth remembering from a put: dataclasses and named tuples, not rows or mappings."""
    return class_shape(cls) is not None and not issubclass(cls, Row)
