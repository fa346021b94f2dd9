"""Runs statements given as text, without a cursor around their result."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from remuda.client.core.core import Core
from remuda.client.core.reader import Reader
from remuda.client.requests.pages import KnownHeaders
from remuda.client.requests.requests import NO_OPTIONS, RunOptions
from remuda.client.values.values import (
    one_sequence,
    parameters_of,
    statement_text,
    timeout_seconds,
    with_hint,
)
from remuda.errors import InputError


class Statements:
    """The common execution of statements in both clients."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._headers = KnownHeaders()

    async def run(self, text: str, params: tuple[Any, ...], timeout: float | None) -> Reader:
        """The work of ``Client.sql``."""
        text = statement_text(text)
        values = one_sequence(params)
        physical, types = parameters_of(values)
        options = NO_OPTIONS if timeout is None else RunOptions(timeout=timeout_seconds(timeout))
        header = self._headers.get(text)
        route = None
        if header is not None and header.route is not None:
            route = partial(self._core.owner, header.route, values, physical, types)
        try:
            reader = await self._core.execute(
                text, physical, types, options, header=header, route=route
            )
        except InputError as error:
            raise with_hint(error, text, params) from error.__cause__
        self._headers.learn(text, reader.header)
        return reader

    async def run_with(
        self, sql: str, params: Sequence[Any], options: RunOptions, member: int | None
    ) -> Reader:
        """The work of ``Client.query``."""
        physical, types = parameters_of(params)
        text = statement_text(sql)
        return await self._core.execute(text, physical, types, options, member=member)
