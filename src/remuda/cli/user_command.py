"""``remuda user``: the file of users and roles that members read."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import getpass
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from remuda.catalog.passwords import SALT_SIZE, PasswordHash, hashed
from remuda.catalog.users import ALL, Role, Users, decode_users, encode_users, role_of
from remuda.cli.results.table import Alignment, harmless, text_table
from remuda.errors import DiskFull, InputError
from remuda.session.settings import setting_of
from remuda.session.user_settings import user_setting

_ROLES = ", ".join(role.value for role in Role)
_MODE = 0o600


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "user",
        help="users and their roles",
        description="Change the file of users that members read (their setting users_file). "
        "Members see a change within a second; every member needs the same file.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, about, act in (
        ("add", "add a user; the password comes from a prompt, or from standard input", _add),
        ("password", "give a user another password", _password),
        ("remove", "remove a user", _remove),
        ("list", "show users and roles", None),
    ):
        action = _action(actions, name, about)
        if act is not None:
            action.add_argument("name")
        action.set_defaults(act=act)
    for name, about, act in (
        ("grant", "give a user a role", _grant),
        ("revoke", "take a role away", _revoke),
    ):
        action = _action(actions, name, about)
        action.add_argument("name")
        action.add_argument("role", help=_ROLES)
        scope = action.add_mutually_exclusive_group(required=True)
        scope.add_argument("--map", metavar="M", help="on this map")
        scope.add_argument("--all", action="store_true", help="on all maps, and the cluster itself")
        action.set_defaults(act=act)
    action = _action(actions, "set", "have the PostgreSQL sessions of a user begin with a setting")
    action.add_argument("name")
    action.add_argument("setting", help="as default_transaction_isolation")
    action.add_argument("value", help="as 'read committed'")
    action.set_defaults(act=_set)
    action = _action(actions, "reset", "take a setting of a user away")
    action.add_argument("name")
    action.add_argument("setting")
    action.set_defaults(act=_reset)
    parser.set_defaults(run=run)


def _action(actions: Any, name: str, about: str) -> argparse.ArgumentParser:
    action: argparse.ArgumentParser = actions.add_parser(name, help=about, description=about)
    action.add_argument(
        "--file",
        type=Path,
        default=os.environ.get("REMUDA_USERS_FILE") or None,
        help="the users' file (REMUDA_USERS_FILE)",
    )
    return action


def run(options: argparse.Namespace) -> int:
    if options.file is None:
        raise InputError("no users' file named", hint="Name it with --file or REMUDA_USERS_FILE.")
    file = Path(options.file)
    act: Callable[[Users, argparse.Namespace], Users] | None = options.act
    if act is None:
        sys.stdout.write(describe(_read(file)))
        return 0
    if act in (_add, _password):
        options.hash = _new_password(options.name)  # before anybody waits for the lock
    with _locked(file):
        _write(file, act(_read(file, new=act is _add), options))
    return 0


# --- actions -----------------------------------------------------------------------------------


def _add(users: Users, options: argparse.Namespace) -> Users:
    return users.added(options.name, options.hash, replace_it=False)


def _password(users: Users, options: argparse.Namespace) -> Users:
    return users.added(options.name, options.hash, replace_it=True)


def _remove(users: Users, options: argparse.Namespace) -> Users:
    return users.removed(options.name)


def _grant(users: Users, options: argparse.Namespace) -> Users:
    return users.granted(options.name, role_of(options.role), ALL if options.all else options.map)


def _revoke(users: Users, options: argparse.Namespace) -> Users:
    return users.revoked(options.name, role_of(options.role), ALL if options.all else options.map)


def _set(users: Users, options: argparse.Namespace) -> Users:
    return users.configured(options.name, *user_setting(options.setting, options.value))


def _reset(users: Users, options: argparse.Namespace) -> Users:
    return users.configured(options.name, setting_of(options.setting).name.lower(), None)


def describe(users: Users) -> str:
    rows = [
        (harmless(name), "all maps" if scope == ALL else harmless(scope), _names(roles))
        for name, user in sorted(users.by_name.items())
        for scope, roles in (sorted(user.roles.items()) or [("-", frozenset[Role]())])
    ]
    left = Alignment.LEFT
    if not rows:
        return "no users\n"
    settings = [
        (harmless(name), harmless(setting), harmless(value))
        for name, user in sorted(users.by_name.items())
        for setting, value in sorted(user.settings.items())
    ]
    text = text_table(("user", "map", "roles"), rows, (left, left, left))
    if settings:
        text += "\n" + text_table(("user", "setting", "value"), settings, (left, left, left))
    return text


def _names(roles: frozenset[Role]) -> str:
    return ", ".join(role.value for role in Role if role in roles) or "-"


def _new_password(name: str) -> PasswordHash:
    if sys.stdin.isatty():
        password = getpass.getpass(f"Password of {name}: ")
        if getpass.getpass("The same again: ") != password:
            raise InputError("the two passwords differ")
    else:
        try:
            password = sys.stdin.readline().rstrip("\r\n")
        except UnicodeDecodeError:
            raise InputError("the password on standard input is not UTF-8 text") from None
    return hashed(password, secrets.token_bytes(SALT_SIZE))


# --- the file ----------------------------------------------------------------------------------


def _read(file: Path, *, new: bool = False) -> Users:
    try:
        return decode_users(file.read_bytes(), str(file))
    except FileNotFoundError:
        if new:
            return Users()
        raise InputError(
            f"there is no users' file {file}", hint="remuda user add makes it."
        ) from None
    except OSError as problem:
        raise InputError(f"the users' file {file} cannot be read: {problem.strerror}") from None


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    """So that of two changes at a time none is lost."""
    try:
        descriptor = os.open(file.with_name(file.name + ".lock"), os.O_CREAT | os.O_RDWR, _MODE)
    except OSError as problem:
        raise InputError(f"{file} cannot be changed: {problem.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(file: Path, users: Users) -> None:
    """Replace it in one step, with the permissions and the owner that it has."""
    temporary = file.with_name(file.name + ".new")
    try:
        temporary.unlink(missing_ok=True)
        before = file.stat() if file.exists() else None
        mode = _MODE if before is None else before.st_mode & 0o777
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        with open(descriptor, "wb") as out:
            out.write(encode_users(users))
            out.flush()
            os.fsync(descriptor)
        if before is not None and before.st_uid != os.getuid():
            os.chown(temporary, before.st_uid, before.st_gid)
        temporary.replace(file)
    except OSError as problem:
        raise DiskFull(f"the users' file {file} cannot be written: {problem.strerror}") from None
