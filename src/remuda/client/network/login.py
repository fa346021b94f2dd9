"""How a client shows who it is, and how it protects its connections. No socket: every face of the
client takes from here what it sends and what it checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from remuda.errors import InputError
from remuda.rpc.messages import user_pb2
from remuda.rpc.sasl import SASL_SUPPORT, ClientExchange, PlainClient

if TYPE_CHECKING:
    from remuda.rpc.tls import ClientTls, TlsFiles

OPTIONS: Final = ("tls", "ca", "certificate", "key", "server_name", "user", "password")
"""Of ``security``, as connection options of every face are named."""
_VARIABLES: Final = {
    "tls": "REMUDA_TLS",
    "ca": "REMUDA_TLS_CA",
    "certificate": "REMUDA_TLS_CERTIFICATE",
    "key": "REMUDA_TLS_KEY",
    "server_name": "REMUDA_TLS_SERVER_NAME",
    "user": "REMUDA_USER",
    "password": "REMUDA_PASSWORD",
}


@dataclass(frozen=True, slots=True)
class Security:
    """Small and picklable: Spark's tasks take it along."""

    user: str = ""
    password: str = field(default="", repr=False)
    tls: TlsFiles | None = None

    def exchange(self) -> ClientExchange | None:
        """The answers to a member that asks who is there; anew for each connection."""
        return PlainClient(self.user, self.password) if self.user else None

    def client_tls(self) -> ClientTls | None:
        """Raises InputError for files that do not serve."""
        if self.tls is None:
            return None
        from remuda.rpc.tls import ClientTls, client_context  # noqa: PLC0415 (few clients need it)

        return ClientTls(client_context(self.tls), self.tls.server_name)

    def introduce(self, hello: user_pb2.UserToBitHandshake) -> user_pb2.UserToBitHandshake:
        """``hello`` with the user's name; the password goes later, to a member that asks."""
        if self.user:
            hello.credentials.user_name = self.user
            hello.sasl_support = SASL_SUPPORT
        return hello

    def options(self) -> dict[str, Any]:
        """As ``connect`` takes them."""
        found: dict[str, Any] = {"user": self.user, "password": self.password}
        if self.tls is not None:
            files = self.tls
            found |= {"tls": True, "ca": files.ca, "certificate": files.certificate}
            found |= {"key": files.key, "server_name": files.server_name}
        return found

    def check(self, host: str) -> None:
        """Raises InputError before a password would travel in the clear."""
        if not self.password or self.tls is not None:
            return
        from remuda.config import is_loopback  # noqa: PLC0415 (the settings of members are many)

        if not is_loopback(host):
            raise InputError(
                f"the password of {self.user} would travel to {host} unencrypted",
                hint="Connect with TLS: tls=True, and ca= for a certificate authority of your own.",
            )


NO_SECURITY: Final = Security()


def security(
    *,
    tls: bool | None = None,
    ca: str = "",
    certificate: str = "",
    key: str = "",
    server_name: str = "",
    user: str = "",
    password: str = "",
) -> Security:
    """``tls``: None means, if any of its files is named. Raises InputError for what cannot be
    together, and for files that do not serve."""
    named = [
        name for name, value in (("ca", ca), ("certificate", certificate), ("key", key)) if value
    ]
    if tls is False and named:
        raise InputError(f"{named[0]} is of no use without TLS")
    if password and not user:
        raise InputError("a password without a user", hint="Name the user as well.")
    if "\0" in user or "\0" in password:
        raise InputError("a user or password cannot hold the character NUL")
    wanted = bool(named) if tls is None else tls
    files = None
    if wanted:
        from remuda.rpc.tls import TlsFiles  # noqa: PLC0415 (few clients need it)

        files = TlsFiles(ca, certificate, key, server_name, "1.2")
    found = Security(user, password, files)
    found.client_tls()
    return found


def from_environment(
    given: Mapping[str, str | None], environment: Mapping[str, str]
) -> dict[str, str]:
    """``given`` options, those that are missing from REMUDA_USER, REMUDA_TLS_CA, ..."""
    found = {name: value for name, value in given.items() if value is not None}
    for name, variable in _VARIABLES.items():
        if name not in found and environment.get(variable):
            found[name] = environment[variable]
    return found


def of_options(options: Mapping[str, str]) -> Security:
    """``security`` of options that are texts: those of Spark, of the command line."""
    text = options.get("tls", "").lower()
    if text not in ("", "true", "false", "yes", "no"):
        raise InputError(f'option "tls" must be true or false, not {text!r}')
    tls = None if not text else text in ("true", "yes")
    rest = {name: value for name, value in options.items() if name in OPTIONS and name != "tls"}
    return security(tls=tls, **rest)
