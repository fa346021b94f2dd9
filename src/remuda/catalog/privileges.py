"""PostgreSQL's privileges as the roles of the users' file mean them.

SELECT is ``read``; INSERT, UPDATE, DELETE and TRUNCATE are ``write``. USAGE and UPDATE of a
sequence are ``write``. CREATE in a schema is ``admin`` of its maps. Everybody has USAGE of schemas,
CONNECT and TEMPORARY. An administrator of all maps is a superuser, and alone may grant.

``Privileges`` holds what ``has_table_privilege`` and its kind answer by. The binder makes one for a
call and writes it into the plan as a text; the evaluator reads it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from remuda.catalog.users import Role, held
from remuda.errors import (
    InvalidParameterValue,
    RemudaError,
    UndefinedColumn,
    UndefinedDatabase,
    UndefinedObject,
    UndefinedSchema,
    WrongObjectType,
)

TABLE: Final[dict[str, Role | None]] = {
    "select": Role.READ,
    "insert": Role.WRITE,
    "update": Role.WRITE,
    "delete": Role.WRITE,
    "truncate": Role.WRITE,
    "references": None,
    "trigger": None,
}
SEQUENCE: Final[dict[str, Role | None]] = {
    "usage": Role.WRITE,
    "select": Role.READ,
    "update": Role.WRITE,
}
SCHEMA: Final[dict[str, Role | None]] = {"usage": None, "create": Role.ADMIN}
DATABASE: Final[dict[str, Role | None]] = {
    "connect": None,
    "temporary": None,
    "temp": None,
    "create": Role.ADMIN,
}
"""Of each kind of objects: privileges, and the roles that they are. None: everybody has it."""

_FORMS: Final[dict[str, Mapping[str, Role | None]]] = {
    "table": TABLE,
    "sequence": SEQUENCE,
    "schema": SCHEMA,
    "database": DATABASE,
    "everybody": {"select": None, "usage": None, "execute": None},
    "superusers": {},
}
"""Forms of objects. Privileges that a form does not name are those of superusers alone."""
_WORDS: Final = {
    "table": (*TABLE, "rule"),
    "any_column": ("select", "insert", "update", "references"),
    "column": ("select", "insert", "update", "references"),
    "sequence": tuple(SEQUENCE),
    "schema": tuple(SCHEMA),
    "database": tuple(DATABASE),
    "function": ("execute",),
    "type": ("usage",),
    "language": ("usage",),
    "tablespace": ("create",),
    "server": ("usage",),
    "foreign_data_wrapper": ("usage",),
    "role": ("usage", "member"),
}
"""By the kind of objects that a function asks about: the words that it knows."""
_WITH_OPTION: Final = " with grant option"
_WITH_ADMIN: Final = " with admin option"
_MISSING: Final[dict[str, tuple[type[RemudaError], str]]] = {
    "schema": (UndefinedSchema, "pg_namespace lists the schemas."),
    "database": (UndefinedDatabase, "current_database() tells the one that there is."),
    "language": (UndefinedObject, "pg_language lists the languages."),
    "tablespace": (UndefinedObject, "pg_tablespace lists the tablespaces."),
}
_KNOWN_ROLES: Final = "pg_roles lists the roles that the session may know of."
PUBLIC: Final = "public"
"""The name that stands for every role."""
TABLE_OID: Final = "tableoid"
TABLE_OID_PLACE: Final = -6
"""The only system column, and its number."""
NO_PRIVILEGE: Final = "rule"
"""A word of older releases of PostgreSQL, for a privilege that nobody has."""


@dataclass(frozen=True, slots=True)
class Object:
    """``scopes``: the maps whose roles count. All of them must give the role, each by one of its
    names."""

    form: str
    scopes: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Privileges:
    """``roles``: those of the users by OID, by scope; None is a superuser. ``users``: the OIDs of
    users by name. ``objects`` of one ``kind`` by OID. ``named``: their OIDs, of kinds that are in
    no schema. ``tables``: the names of tables and of their columns, where errors tell them."""

    kind: str
    users: Mapping[str, int]
    roles: Mapping[int, Mapping[str, frozenset[Role]] | None]
    objects: Mapping[int, Object] = field(default_factory=dict)
    named: Mapping[str, int] = field(default_factory=dict)
    tables: Mapping[int, tuple[str, Sequence[str]]] = field(default_factory=dict)

    def role_number(self, role: int | str) -> int:
        """Raises UndefinedObject for an unknown name."""
        if isinstance(role, int):
            return role
        if role == PUBLIC and self.kind != "role":
            return 0
        found = self.users.get(role)
        if found is None:
            raise UndefinedObject(f'role "{role}" does not exist', hint=_KNOWN_ROLES)
        return found

    def number(self, name: int | str) -> int:
        """The OID of an object. Raises UndefinedSchema, UndefinedDatabase, UndefinedObject for an
        unknown name."""
        if isinstance(name, int):
            return name
        if self.kind == "role":
            return self.role_number(name)
        found = self.named.get(name)
        if found is None:
            error, hint = _MISSING.get(self.kind, (UndefinedObject, "There is none here."))
            what = self.kind.replace("foreign_data", "foreign-data").replace("_", " ")
            raise error(f'{what} "{name}" does not exist', hint=hint)
        return found

    def has_column(self, table: int, column: int | str) -> bool:
        """Raises UndefinedColumn for an unknown name; False for a number without a column."""
        if table not in self.tables:
            return False
        name, columns = self.tables[table]
        if isinstance(column, int):
            return 0 < column <= len(columns) or column == TABLE_OID_PLACE
        if column in columns or column == TABLE_OID:
            return True
        raise UndefinedColumn(
            f'column "{column}" of relation "{name}" does not exist',
            hint=f"It has the columns {', '.join(columns)}.",
        )

    def held(self, role: int, number: int, words: str) -> bool | None:
        """Whether the role has one of the privileges on the object; None: there is no such object.
        Raises InvalidParameterValue for a word that is no privilege, WrongObjectType for a table
        where a sequence is asked about."""
        asked = [self._asked(word) for word in words.split(",")]
        if self.kind == "role":
            return any(self._is(role, number, grants=grants) for _, grants in asked)
        found = self.objects.get(number)
        if found is None:
            return None
        if self.kind == "sequence" and found.form != "sequence":
            raise WrongObjectType(
                f'"{self.tables[number][0]}" is not a sequence',
                hint="has_table_privilege asks about tables.",
            )
        return any(self._has(role, found, word, grants=grants) for word, grants in asked)

    def _asked(self, text: str) -> tuple[str, bool]:
        """The privilege, and whether the right to grant it is asked for."""
        word = text.strip().lower()
        options = (_WITH_OPTION, _WITH_ADMIN) if self.kind == "role" else (_WITH_OPTION,)
        for option in options:
            if word.endswith(option):
                plain, grants = word.removesuffix(option), True
                break
        else:
            plain, grants = word, False
        if plain not in _WORDS[self.kind]:
            known = ", ".join(each.upper() for each in _WORDS[self.kind])
            raise InvalidParameterValue(
                f'unrecognized privilege type: "{text.strip()}"', hint=f"Privileges are {known}."
            )
        return plain, grants

    def _has(self, role: int, found: Object, word: str, *, grants: bool) -> bool:
        if word == NO_PRIVILEGE:
            return False
        roles = self.roles.get(role, {})
        if roles is None:
            return True
        form = _FORMS[found.form]
        if grants or word not in form:
            return False
        needed = form[word]
        return needed is None or all(
            any(held(roles, needed, name) for name in names) for names in found.scopes
        )

    def _is(self, member: int, role: int, *, grants: bool) -> bool:
        """Roles have no members: each is itself, and a superuser counts as every one."""
        if self.roles.get(member, {}) is None:
            return True
        return member == role and not grants

    def encode(self) -> str:
        roles = {
            number: None
            if scopes is None
            else {scope: sorted(role.value for role in given) for scope, given in scopes.items()}
            for number, scopes in self.roles.items()
        }
        objects = {number: [each.form, each.scopes] for number, each in self.objects.items()}
        parts = (self.kind, self.users, roles, objects, self.named, self.tables)
        return json.dumps(parts, separators=(",", ":"))


def decode_privileges(text: str) -> Privileges:
    """The inverse of ``Privileges.encode``."""
    kind, users, roles, objects, named, columns = json.loads(text)
    return Privileges(
        kind,
        users,
        {
            int(number): None
            if scopes is None
            else {scope: frozenset(map(Role, given)) for scope, given in scopes.items()}
            for number, scopes in roles.items()
        },
        {
            int(number): Object(form, tuple(map(tuple, scopes)))
            for number, (form, scopes) in objects.items()
        },
        named,
        {int(number): (name, found) for number, (name, found) in columns.items()},
    )
