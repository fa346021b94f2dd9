"""``Statement``: a statement that is parsed and planned once and run many times: all its logic."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Self

from remuda.client.asynchronous.cursor import Cursor
from remuda.client.core.core import Core, is_read
from remuda.client.core.reader import Reader
from remuda.client.core.tries import MAYBE_AGAIN, Tries
from remuda.client.network.deadline import NEVER, Deadline
from remuda.client.network.latest import Latest
from remuda.client.requests import requests
from remuda.client.requests.pages import Header
from remuda.client.requests.requests import (
    NO_OPTIONS,
    PreparedPlan,
    Prologue,
    RunOptions,
    prologue,
)
from remuda.client.values.values import (
    one_sequence,
    parameters_of,
    statement_text,
    timeout_seconds,
    with_hint,
)
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.errors import InputError, SchemaChanged, UndefinedStatement


class Statement:
    """A prepared statement: await a call with its parameters. Needs no closing.

    A statement that reads or changes one key of one map goes straight to the member that owns the
    key.
    """

    def __init__(self, core: Core, text: str) -> None:
        self.text = statement_text(text)
        self._core = core
        self._plans: dict[int, PreparedPlan] = {}
        self._asked: dict[int, Latest[PreparedPlan]] = {}
        self._header: Header | None = None
        self._reads = is_read(self.text)
        self._starts: dict[int, Prologue] = {}
        """By member: how the latest request to it began."""
        self._first: PreparedPlan

    async def prepare(self) -> Self:
        """Parse and plan it, on the member whose turn it is. InputError for a wrong statement."""
        tries: Tries | None = None
        deadline = self._core.deadline()
        while True:
            try:
                self._first = await self._plan(self._core.nearest(None), deadline)
            except MAYBE_AGAIN as error:
                repeats = self._core.settings.retry_reads
                tries = tries or self._core.tries(repeats, deadline, reads=True)
                await tries.after(error)
            else:
                return self

    @property
    def parameter_types(self) -> tuple[SqlType, ...]:
        """The SQL types of the parameters, as the member inferred them from the text; NULL for all
        where only values can decide them. A call may give values of other types."""
        return self._first.parameter_types

    async def __call__(self, *params: Any, timeout: float | None = None) -> Cursor:
        """Run it with these parameters, one by one. Else as ``Client.sql``."""
        return Cursor(await self.run(params, timeout))

    async def run(self, params: tuple[Any, ...], timeout: float | None) -> Reader:
        """A call without a cursor around its result."""
        values = one_sequence(params)
        # The values decide the types, as in ``Client.sql``; the member keeps a plan for each
        # combination of types that comes (``PlanCache``).
        physical, types = parameters_of(values)
        asked = NO_OPTIONS if timeout is None else RunOptions(timeout=timeout_seconds(timeout))
        settings = self._core.settings
        options = asked if settings.timeout is None else self._core.limited(asked)
        tries: Tries | None = None
        deadline = Deadline(options.timeout)
        whole, began = options, time.monotonic()
        while True:
            member = self._member(values, physical, types)
            try:
                plan = self._plans.get(member) or await self._plan(member, deadline)
                header = self._header
                made_of = plan.handle, types, header.form if header else 0
                start = self._starts.get(member)
                if start is None or (start.statement, start.types, start.form) != made_of:
                    start = self._starts[member] = prologue(*made_of)
                reader = await self._core.execute(
                    self.text,
                    physical,
                    types,
                    options,
                    handle=plan.handle,
                    header=header,
                    member=member,
                    known=(start, self._reads, deadline),
                )
            except (*MAYBE_AGAIN, UndefinedStatement, SchemaChanged) as error:
                if tries is None:
                    repeats = settings.retry_reads if self._reads else 0
                    tries = self._core.tries(repeats, deadline, reads=self._reads)
                await tries.after(error)
                self._plans.pop(member, None)
                options = whole.after(time.monotonic() - began)
            except InputError as error:
                raise with_hint(error, self.text, params) from error.__cause__
            else:
                self._header = reader.header
                return reader

    def __repr__(self) -> str:
        return f"<Statement {self.text!r}>"

    async def _plan(self, member: int, deadline: Deadline = NEVER) -> PreparedPlan:
        """Prepare on one more member: a handle means something only to the member that gave it."""
        asked = self._asked.get(member)
        if asked is None:
            ask = partial(self._ask, member)
            asked = self._asked.setdefault(member, Latest(self._core.ports, ask))
        plan = await asked.get(deadline)
        self._plans[member] = plan
        return plan

    async def _ask(self, member: int, deadline: Deadline) -> PreparedPlan:
        asked = None if deadline.seconds is None else deadline
        return await self._core.call(member, requests.prepare(self.text), True, asked)

    def _member(
        self, values: Sequence[Any], physical: list[PhysicalValue], types: tuple[SqlType, ...]
    ) -> int:
        route = self._first.route
        if route is None:
            return self._core.nearest(None)
        owner = self._core.owner(route, values, physical, types)
        return self._core.nearest(owner)
