"""How commands reach a cluster: address, TLS, user. The password is never an argument, which other
users of the machine could see: it comes from a file, REMUDA_PASSWORD, or a prompt."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from pathlib import Path
from typing import Any, Final

from remuda.client.blocking.client import Client, connect
from remuda.client.network.login import from_environment, of_options
from remuda.errors import InputError
from remuda.limits import USER_PORT

_LOCAL: Final = f"127.0.0.1:{USER_PORT}"
_OPTIONS = {
    "ca": "tls_ca",
    "certificate": "tls_certificate",
    "key": "tls_key",
    "server_name": "tls_server_name",
    "user": "user",
}


def add_connect(parser: argparse.ArgumentParser, default: str | None = _LOCAL) -> None:
    """The options. ``default`` None: the command may be told the address by a word, too. An action
    whose command has the options as well is made with ``argument_default=argparse.SUPPRESS``: else
    its defaults would replace those that were given in front of the action."""
    unset = parser.argument_default
    parser.add_argument(
        "--connect",
        default=default if unset is None else unset,
        metavar="HOST:PORT",
        help=f"any member, or several with commas ({_LOCAL})",
    )
    parser.add_argument("--user", metavar="NAME", help="who you are (REMUDA_USER)")
    parser.add_argument(
        "--password-file",
        metavar="FILE",
        help="file with the password; else REMUDA_PASSWORD, or a prompt",
    )
    parser.add_argument(
        "--tls", action="store_true", default=unset, help="encrypt (REMUDA_TLS=yes)"
    )
    parser.add_argument(
        "--tls-ca", metavar="FILE", help="PEM file of the CA to trust, if not the system's"
    )
    parser.add_argument("--tls-certificate", metavar="FILE", help="PEM file to show to members")
    parser.add_argument("--tls-key", metavar="FILE", help="PEM file with its key")
    parser.add_argument(
        "--tls-server-name", metavar="NAME", help="what the members' certificates name"
    )


def connection_options(options: argparse.Namespace) -> dict[str, str]:
    """Options of the command line and the environment, by the names of ``login.OPTIONS``."""
    given: dict[str, str | None] = {
        name: getattr(options, attribute) for name, attribute in _OPTIONS.items()
    }
    given["tls"] = "true" if options.tls else None
    given["password"] = None if options.password_file is None else _from_file(options.password_file)
    found = from_environment(given, os.environ)
    if "user" in found and "password" not in found:
        found["password"] = _asked(found["user"])
    return found


def security_options(options: argparse.Namespace) -> dict[str, Any]:
    """The same as arguments of ``connect``. Raises InputError for what is wrong with them."""
    found = connection_options(options)
    of_options(found)
    tls = found.pop("tls", "").lower() in ("true", "yes")
    return found | ({"tls": True} if tls else {})


def client_of(options: argparse.Namespace, application: str, word: str | None = None) -> Client:
    """A client as the options say, and ``word``, an address. Raises what ``connect`` raises."""
    if word is not None and options.connect is not None:
        raise InputError(
            f"the address is given twice: {options.connect} and {word}",
            hint="Name several members as one list: host:port,host2:port.",
        )
    address = word or options.connect or _LOCAL
    return connect(address, application=application, **security_options(options))


def client_at(options: argparse.Namespace, application: str, address: str, user: str) -> Client:
    """A client at another address, or as another user, who is asked for a password."""
    given = security_options(options)
    if user and user != given.get("user"):
        given |= {"user": user, "password": _asked(user)}
    return connect(address, application=application, **given)


def is_address(word: str) -> bool:
    """Whether it names members: a URL, ``host:port`` or a list of those, a host with a dot in its
    name, ``localhost``."""
    if any(sign in word for sign in " ;()'\"\\*"):
        return False
    return "://" in word or all(map(_is_host, word.split(",")))


def _is_host(word: str) -> bool:
    host, colon, port = word.rpartition(":")
    if colon:
        return port.isdecimal() and (":" not in host or host.startswith("["))
    return word == "localhost" or ("." in word and not word.startswith(".") and ".." not in word)


def _from_file(path: str) -> str:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as problem:
        raise InputError(f"the password file {path} cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"the password file {path} is not UTF-8 text") from None
    return text.split("\n", 1)[0].rstrip("\r")


def _asked(user: str) -> str:
    if not sys.stdin.isatty():
        raise InputError(
            f"there is no password for {user}",
            hint="Give it in a file (--password-file) or in REMUDA_PASSWORD.",
        )
    return getpass.getpass(f"Password of {user}: ")
