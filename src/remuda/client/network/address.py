"""Addresses as users write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, TypeGuard

from remuda.errors import InputError
from remuda.limits import USER_PORT

Address: TypeAlias = tuple[str, int]
SCHEME = "remuda"


def parse_address(text: str, default_port: int = USER_PORT) -> Address:
    """``host``, ``host:port``, ``[v6]:port`` or ``:port`` (this machine)."""
    text = text.strip()
    host, port = text, ""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise _bad(text)
        port = rest[1:]
    elif text.count(":") == 1:
        host, port = text.split(":")
        if not port:
            raise _bad(text)
    if not port:
        number = default_port
    elif port.isdecimal() and 0 < int(port) < 65536:
        number = int(port)
    else:
        raise _bad(text)
    if not host and not text.startswith(":"):
        raise _bad(text)
    return host or "127.0.0.1", number


def parse_addresses(addresses: str | Address | Iterable[str | Address]) -> tuple[Address, ...]:
    """One address, a comma-separated list, the same behind ``remuda://``, or any iterable of
    addresses."""
    if isinstance(addresses, str):
        addresses = _without_scheme(addresses)
        found = tuple(parse_address(part) for part in addresses.split(",") if part.strip())
    elif _is_pair(addresses):
        found = (addresses,)
    elif not isinstance(addresses, Iterable):
        raise _bad(str(addresses))
    else:
        found = tuple(a for part in addresses for a in parse_addresses(part))  # type: ignore[arg-type]
    if not found:
        raise InputError("no address of a member given", hint='Like "127.0.0.1:31010".')
    return found


def _without_scheme(text: str) -> str:
    """``remuda://host:port,host2:port/`` as the list that it holds. InputError for other URLs."""
    scheme, mark, rest = text.strip().partition("://")
    if not mark:
        return text
    if scheme.lower() != SCHEME:
        raise InputError(
            f'"{text}" is no address of a Remuda cluster',
            hint=f"Write host:port, or {SCHEME}://host:port,host2:port.",
        )
    rest = rest.removesuffix("/")
    if "/" in rest or "?" in rest or "@" in rest:
        raise InputError(
            f'"{text}" has more than addresses',
            hint="User, password and other options are parameters of connect().",
        )
    return rest


def format_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_pair(value: object) -> TypeGuard[Address]:
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and isinstance(value[0], str)
        and isinstance(value[1], int)
    )


def _bad(text: str) -> InputError:
    return InputError(f'"{text}" is no address', hint="Write host:port, like 127.0.0.1:31010.")
