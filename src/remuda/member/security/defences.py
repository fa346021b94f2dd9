"""How a member protects its channels: TLS, the cluster's secret, users; and what it insists on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from ssl import SSLContext
from typing import Final

from remuda.config import MemberConfig, check_exposure
from remuda.errors import InputError
from remuda.member.state.log import fields
from remuda.rpc.connection import ChannelKind
from remuda.rpc.sasl import (
    NONCE_SIZE,
    SECRET_SIZE_MIN,
    TAG_SIZE,
    ClientExchange,
    PlainServer,
    SecretClient,
    SecretServer,
)
from remuda.rpc.strangers import Guard, Verifier
from remuda.rpc.tls import ClientTls, TlsFiles, client_context, server_context
from remuda.world import World

log = logging.getLogger(__name__)

SECRET_SIZE_MAX: Final = 1024
_OTHERS_READ: Final = 0o004
_OTHERS_WRITE: Final = 0o022


@dataclass(frozen=True)
class Defences:
    """The settings by which the parts of a member listen and connect."""

    listening: dict[ChannelKind, SSLContext]
    tls: ClientTls | None
    """For connecting to other members."""
    secret: bytes
    """b"" = the members do not show each other anything."""
    nonce: Callable[[], bytes]

    def guard(self, kind: ChannelKind, verifier: Verifier | None) -> Guard | None:
        """How strangers on a channel show who they are; ``verifier`` knows the users, if any."""
        if kind is ChannelKind.USER:
            return None if verifier is None else Guard(PlainServer, verifier)
        if not self.secret:
            return None
        return Guard(lambda: SecretServer(self.secret, kind, self.nonce()))

    def login(self, kind: ChannelKind) -> ClientExchange | None:
        """How this member shows to another that it belongs to the cluster."""
        return SecretClient(self.secret, kind, self.nonce()) if self.secret else None


def no_defences() -> Defences:
    return Defences({}, None, b"", lambda: b"")


def defences(config: MemberConfig, world: World) -> Defences:
    """Raises InputError: files that do not serve, or an address that needs more protection."""
    check_exposure(config)
    tag = world.chance.bits(8 * TAG_SIZE).to_bytes(TAG_SIZE)
    rest = NONCE_SIZE - TAG_SIZE

    def nonce() -> bytes:
        return tag + world.chance.bits(8 * rest).to_bytes(rest)

    listening: dict[ChannelKind, SSLContext] = {}
    tls = None
    if config.tls_certificate:
        key = config.tls_key or config.tls_certificate
        warn_if_open(world, key, "TLS key", "read it and pose as this member")
        files = TlsFiles(
            config.tls_ca,
            config.tls_certificate,
            config.tls_key,
            config.tls_server_name,
            config.tls_minimum,
        )
        wanted = config.tls_client_certificates
        members = server_context(files, client_certificates=wanted != "none")
        listening = dict.fromkeys(ChannelKind, members)
        listening[ChannelKind.USER] = server_context(files, client_certificates=wanted == "all")
        tls = ClientTls(client_context(files), config.tls_server_name)
    secret = read_secret(config.secret_file, world) if config.secret_file else b""
    return Defences(listening, tls, secret, nonce)


def read_secret(path: str, world: World) -> bytes:
    """Raises InputError: no file, too short, or one that everybody may read."""
    mode = world.disk.facts(Path(path)).permissions
    if mode & (_OTHERS_READ | _OTHERS_WRITE):
        raise InputError(
            f"the secret file {path} can be read or changed by others (mode {mode:03o})",
            hint=f"chmod 600 {path}",
        )
    secret = world.disk.read(Path(path)).strip()
    if not SECRET_SIZE_MIN <= len(secret) <= SECRET_SIZE_MAX:
        raise InputError(
            f"the secret in {path} must have {SECRET_SIZE_MIN} to {SECRET_SIZE_MAX} bytes, "
            f"not {len(secret)}",
            hint="Make one: openssl rand -base64 32",
        )
    return secret


def warn_if_open(world: World, path: str, what: str, danger: str) -> None:
    """Log when others than the owner may read a file of secrets."""
    mode = world.disk.facts(Path(path)).permissions
    if mode & (_OTHERS_READ | _OTHERS_WRITE):
        log.warning(
            "%s can be read or changed by others: they could %s",
            what,
            danger,
            extra=fields(file=path, mode=f"{mode:03o}", fix=f"chmod 600 {path}"),
        )
