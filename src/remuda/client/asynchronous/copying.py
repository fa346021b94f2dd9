"""COPY: rows of files, iterables and Arrow data into a map, and rows out into a file."""

from __future__ import annotations

import codecs
import contextlib
import inspect
import io
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

from remuda.client.core.core import Core
from remuda.client.core.reader import Reader
from remuda.client.operations.copy_source import Rows, source_of
from remuda.client.requests import requests
from remuda.client.requests.requests import RunOptions
from remuda.client.values.values import statement_text, timeout_seconds
from remuda.datatypes.identifiers import quoted_name, sql_name
from remuda.errors import InputError
from remuda.rpc.messages import user_pb2

_BLANK: Final = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
_COPY: Final = re.compile(_BLANK + r"copy[\s(\"]", re.IGNORECASE | re.DOTALL)
_QUERY: Final = re.compile(
    _BLANK + r"(?:\(|(?:select|values|with|table|insert|update|delete|merge)[\s(*])",
    re.IGNORECASE | re.DOTALL,
)
_LISTS: Final = ("force_quote", "force_not_null", "force_null")

Write = Callable[[bytes], Awaitable[None]]


async def copy_from(
    core: Core,
    target: str,
    source: Any,
    *,
    columns: Sequence[str] | None,
    timeout: float | None,
    options: dict[str, Any],
) -> int:
    """``Client.copy_from``."""
    target = statement_text(target)
    given = await source_of(source)
    name = target
    if isinstance(given, Rows):
        if _COPY.match(target) or options:
            raise InputError(
                "rows and Arrow data are copied in a format of their own",
                hint="Name the map, and give neither a COPY statement nor options of one.",
            )
        text = await _statement(
            core, target, columns or given.names, "FROM STDIN", {"format": "binary"}
        )
    elif _COPY.match(target):
        _refuse_both(columns, options)
        text = target
    else:
        text = await _statement(core, target, columns, "FROM STDIN", options)
    async with _begun(core, text, timeout, user_pb2.COPY_IN) as reader:
        pieces = given.encoded(name, reader.columns) if isinstance(given, Rows) else given
        await _send(reader, pieces)
        while await reader.next_batch() is not None:
            pass
        return reader.rowcount


async def copy_to(
    core: Core,
    target: str,
    sink: Any,
    *,
    columns: Sequence[str] | None,
    timeout: float | None,
    options: dict[str, Any],
) -> int:
    """``Client.copy_to``."""
    target = statement_text(target)
    if _COPY.match(target):
        _refuse_both(columns, options)
        text = target
    elif _QUERY.match(target):
        if columns is not None:
            raise InputError("the columns of a query are those of its SELECT list")
        text = f"COPY ({target.strip().rstrip(';')}\n) TO STDOUT{_options(options)}"
    else:
        text = await _statement(core, target, columns, "TO STDOUT", options)
    async with _begun(core, text, timeout, user_pb2.COPY_OUT) as reader, _writer(sink) as write:
        while (batch := await reader.next_batch()) is not None:
            for piece in batch.column(0):
                await write(piece.as_py())
        return reader.rowcount


@contextlib.asynccontextmanager
async def _begun(
    core: Core, text: str, timeout: float | None, way: user_pb2.CopyWay
) -> AsyncGenerator[Reader]:
    """The COPY, once the member has asked for its data, or sends it. InputError for another
    statement."""
    options = RunOptions(
        timeout=None if timeout is None else timeout_seconds(timeout), carries_copy=True
    )
    reader = await core.execute(text, (), (), options)
    try:
        if reader.execution.stream.copy != way:
            into, verb = ("from", "FROM STDIN") if way == user_pb2.COPY_IN else ("to", "TO STDOUT")
            raise InputError(
                f"copy_{into} runs COPY ... {verb}, and this is another statement",
                hint="Run COPY the other way by copy_to or copy_from, other statements by sql.",
            )
        yield reader
    except BaseException:
        await reader.close()
        raise
    finally:
        core.told(reader.execution.stream)
        core.wrote()


async def _send(reader: Reader, pieces: AsyncIterator[bytes]) -> None:
    """One piece is kept back, to be marked as the last one."""
    execution = reader.execution
    before = b""
    async for piece in pieces:
        if before and not await execution.send_piece(before, last=False):
            return
        before = piece
    await execution.send_piece(before, last=True)


async def _statement(
    core: Core, name: str, columns: Sequence[str] | None, way: str, options: dict[str, Any]
) -> str:
    """COPY of a map by its full name. UndefinedMap, InputError."""
    if isinstance(columns, str):
        raise InputError("columns is a list of names, not one text", hint=f'Give ["{columns}"].')
    call = requests.describe_map(name, schema_only=True)
    schema = (await core.call(None, call, deadline=core.deadline())).schema
    listed = "" if columns is None else f" ({', '.join(map(quoted_name, columns))})"
    return f"COPY {sql_name(schema)}{listed} {way}{_options(options)}"


def _options(options: dict[str, Any]) -> str:
    if not options:
        return ""
    return f" ({', '.join(_option(name, value) for name, value in options.items())})"


def _option(name: str, value: Any) -> str:
    """Raises InputError for a value that no option has."""
    word = name.upper()
    if not re.fullmatch(r"[A-Z_]+", word):
        raise InputError(f"{name!r} is not an option of COPY")
    if isinstance(value, bool):
        return f"{word} {'true' if value else 'false'}"
    if name.lower() in _LISTS and not isinstance(value, str):
        return f"{word} ({', '.join(map(quoted_name, value))})"
    if value == "*":
        return f"{word} *"
    if not isinstance(value, str):
        raise InputError(f"the option {name} of COPY is a text or a bool, not {value!r}")
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"{word} E'{escaped}'"


def _refuse_both(columns: Sequence[str] | None, options: dict[str, Any]) -> None:
    if columns is not None or options:
        raise InputError(
            "columns and options are given beside a COPY statement",
            hint="Write them into the statement, or name the map alone.",
        )


@contextlib.asynccontextmanager
async def _writer(sink: Any) -> AsyncGenerator[Write]:
    """Raises InputError for what takes no data."""
    if not isinstance(sink, str | os.PathLike):
        write = getattr(sink, "write", None)
        if write is None:
            raise InputError(
                f"copy_to cannot write to {type(sink).__name__}",
                hint="Give a path, or an object with write().",
            )
        yield _into(write, text=isinstance(sink, io.TextIOBase))
        return
    try:
        with Path(sink).open("wb") as file:
            yield _into(file.write, text=False)
    except OSError as error:
        raise InputError(f'could not write file "{sink}": {error.strerror}') from error


def _into(write: Callable[[Any], Any], *, text: bool) -> Write:
    decoder = codecs.getincrementaldecoder("utf-8")() if text else None

    async def put(data: bytes) -> None:
        try:
            found = write(data if decoder is None else decoder.decode(data))
        except UnicodeDecodeError:
            raise InputError(
                "the data of this COPY is no UTF-8 text", hint="Open the file in binary mode."
            ) from None
        if inspect.isawaitable(found):
            await found

    return put
