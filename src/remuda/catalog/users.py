"""Users, their roles, and the file that holds both.

A role holds for one map, for all maps of a schema (``sales.*``), or for all (``*``). ``read``:
SELECT and get. ``write``: INSERT, UPDATE, DELETE, put, jobs. ``admin``: both, and the definition of
the map; for all maps also the cluster itself: making maps, cancelling queries of others, the state
of members.

The file is JSON::

    {"format": 2, "users": {"ann": {"password": "SCRAM-SHA-256$...", "roles": {"*": ["read"]},
                                    "settings": {"default_transaction_isolation": "..."}}}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final

from remuda.catalog.passwords import PasswordHash, parse_hash
from remuda.datatypes.schema import PUBLIC, prefix
from remuda.errors import (
    DuplicateObject,
    InputError,
    InsufficientPrivilege,
    NotSupported,
    UndefinedObject,
)
from remuda.formats import USERS_FILE

ALL: Final = "*"
USER_NAME_MAX: Final = 63
USERS_MAX: Final = 10_000


class Role(Enum):
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class User:
    """``roles``: by map, or ``ALL``. ``settings``: those with which the PostgreSQL sessions of the
    user begin, by name in lower case."""

    name: str
    password: PasswordHash
    roles: Mapping[str, frozenset[Role]] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)

    def has(self, role: Role, name: str) -> bool:
        """``name``: a map, the scope of a schema, or ``ALL``."""
        return held(self.roles, role, name)

    def require(self, role: Role, name: str) -> None:
        """Raises InsufficientPrivilege."""
        if not self.has(role, name):
            raise lacking(self.name, role, name)

    def sees(self, name: str) -> bool:
        """Whether the map may be shown at all: with any role on it."""
        return any(self.roles.get(scope) for scope in (name, ALL, _scope_around(name)))


def held(roles: Mapping[str, Collection[Role]], role: Role, name: str) -> bool:
    """Whether ``roles``, by scope, include ``role`` on ``name``: see ``User.has``."""
    for scope in (name, ALL, _scope_around(name)):
        found = roles.get(scope)
        if found is not None and (role in found or Role.ADMIN in found):
            return True
    return False


def schema_scope(namespace: str) -> str:
    """The scope of the roles on all relations of a schema: ``sales.*``."""
    return f"{prefix(namespace) or PUBLIC + '.'}*"


_PREFIX: Final = re.compile(r'(?:"(?:[^"]|"")+"|[^".]+)\.')


def _scope_around(name: str) -> str:
    """The scope of the schema that a full name begins with; that of ``public`` without one."""
    found = _PREFIX.match(name)
    return f"{PUBLIC}.*" if found is None else f"{found[0]}*"


def lacking(user: str, role: Role, name: str) -> InsufficientPrivilege:
    scope = _shown(name)
    return InsufficientPrivilege(
        f'user "{user}" lacks the role {role.value} on {scope}',
        hint=f"An administrator may give it: remuda user grant {user} {role.value} "
        f"{'--all' if name == ALL else f'--map {name}'}",
    )


def differing(user: str, role: Role, scope: str, statement: str) -> NotSupported:
    """The refusal of a GRANT or REVOKE that would have to change the users' file."""
    verb = statement.lower()
    where = "--all" if scope == ALL else f"--map '{scope}'"
    has = "lacks" if verb == "grant" else "has"
    return NotSupported(
        f'{statement} does not change the users\' file, and user "{user}" {has} the role '
        f"{role.value} on {_shown(scope)}",
        hint=f"Change the file of each member: remuda user {verb} {user} {role.value} {where}."
        + (" A role may come from its schema, from all maps, or from admin." * (verb == "revoke")),
    )


def _shown(scope: str) -> str:
    if scope == ALL:
        return "all maps"
    if scope.endswith(".*"):
        return f'all maps of schema "{scope[:-2]}"'
    return f'map "{scope}"'


def role_of(text: str) -> Role:
    """Raises InputError."""
    try:
        return Role(text)
    except ValueError:
        names = ", ".join(role.value for role in Role)
        raise InputError(f"there is no role {text!r}", hint=f"Roles are {names}.") from None


@dataclass(frozen=True, slots=True)
class Users:
    """All of them, by name. Changes give a new value."""

    by_name: Mapping[str, User] = field(default_factory=dict)

    def find(self, name: str) -> User | None:
        return self.by_name.get(name)

    def get(self, name: str) -> User:
        """Raises UndefinedObject."""
        found = self.by_name.get(name)
        if found is None:
            raise UndefinedObject(f'user "{name}" does not exist')
        return found

    def added(self, name: str, password: PasswordHash, *, replace_it: bool) -> Users:
        """With a new user, or, if ``replace_it``, another password of one that there is. Raises
        DuplicateObject, UndefinedObject, InputError for a name that cannot be."""
        if replace_it:
            return self._with(replace(self.get(name), password=password))
        _check_name(name)
        if name in self.by_name:
            raise DuplicateObject(
                f'user "{name}" exists already', hint="remuda user password changes the password."
            )
        return self._with(User(name, password))

    def removed(self, name: str) -> Users:
        self.get(name)
        return Users({n: user for n, user in self.by_name.items() if n != name})

    def granted(self, name: str, role: Role, scope: str) -> Users:
        user = self.get(name)
        roles = dict(user.roles)
        roles[scope] = roles.get(scope, frozenset()) | {role}
        return self._with(replace(user, roles=roles))

    def revoked(self, name: str, role: Role, scope: str) -> Users:
        """Raises UndefinedObject if the user does not have it."""
        user = self.get(name)
        held = user.roles.get(scope, frozenset())
        if role not in held:
            where = _shown(scope)
            raise UndefinedObject(f'user "{name}" does not have the role {role.value} on {where}')
        roles = {s: r for s, r in user.roles.items() if s != scope}
        if held - {role}:
            roles[scope] = held - {role}
        return self._with(replace(user, roles=roles))

    def configured(self, name: str, setting: str, value: str | None) -> Users:
        """With another setting of a user; None: with the default. Raises UndefinedObject."""
        user = self.get(name)
        settings = {key: old for key, old in user.settings.items() if key != setting}
        if value is not None:
            settings[setting] = value
        return self._with(replace(user, settings=settings))

    def _with(self, user: User) -> Users:
        return Users({**self.by_name, user.name: user})


def _check_name(name: str) -> None:
    size = len(name.encode("utf-8", "surrogatepass"))
    if not 0 < size <= USER_NAME_MAX or not name.isprintable():
        raise InputError(
            f"a user's name has 1 to {USER_NAME_MAX} bytes, all of them printable, not {name!r}"
        )


# --- the file ----------------------------------------------------------------------------------


def encode_users(users: Users) -> bytes:
    """Members of an older release read a file without settings."""
    number = USERS_FILE.number if any(u.settings for u in users.by_name.values()) else 1
    content = {
        name: {
            "password": user.password.text(),
            "roles": {
                scope: sorted(role.value for role in roles)
                for scope, roles in sorted(user.roles.items())
            },
        }
        | ({"settings": dict(sorted(user.settings.items()))} if user.settings else {})
        for name, user in sorted(users.by_name.items())
    }
    return (
        json.dumps({"format": number, "users": content}, indent=2, ensure_ascii=False) + "\n"
    ).encode()


def decode_users(content: bytes, source: str) -> Users:
    """Raises InputError naming the ``source`` and the user, UnknownFormat. A file without a format
    has the first one."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as problem:  # the latter: brackets nested too deeply
        raise InputError(f"{source} is not valid JSON: {problem}") from None
    if not isinstance(document, dict):
        raise InputError(f'{source} must hold one object, "users"')
    USERS_FILE.check(document.get("format", 1), source)
    entries = document.get("users")
    if not isinstance(entries, dict) or not document.keys() <= {"format", "users"}:
        raise InputError(f'{source} must hold "format" and one object, "users", and nothing else')
    if len(entries) > USERS_MAX:
        raise InputError(f"{source} has more than {USERS_MAX} users")
    found = {}
    for name, entry in entries.items():
        try:
            found[name] = _decode_user(name, entry)
        except InputError as error:
            raise InputError(f'{source}, user "{name}": {error.message}') from None
    return Users(found)


def _decode_user(name: str, entry: Any) -> User:
    _check_name(name)
    if not isinstance(entry, dict) or not set(entry) <= {"password", "roles", "settings"}:
        raise InputError('an entry has "password", "roles" and "settings", and nothing else')
    password, roles = entry.get("password"), entry.get("roles", {})
    settings = entry.get("settings", {})
    if not isinstance(password, str):
        raise InputError("there is no password")
    if not isinstance(roles, dict) or not all(isinstance(r, list) for r in roles.values()):
        raise InputError('"roles" must hold a list of roles for each map')
    if not isinstance(settings, dict) or not all(isinstance(v, str) for v in settings.values()):
        raise InputError('"settings" must hold a text for each setting')
    return User(
        name,
        parse_hash(password),
        {scope: frozenset(role_of(role) for role in held) for scope, held in roles.items()},
        {key.lower(): value for key, value in settings.items()},
    )
