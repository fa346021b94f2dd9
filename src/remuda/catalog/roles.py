"""The roles that a session knows of: the owner of all definitions, and the users."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple
from zlib import crc32

from remuda.catalog.oids import FIRST_OID, OID_LIMIT
from remuda.catalog.pg_objects import OWNER_OID
from remuda.catalog.system_relations import OWNER
from remuda.catalog.users import ALL, Role, User


class ListedRole(NamedTuple):
    """A row of ``pg_roles``."""

    oid: int
    name: str
    admin: bool
    settings: tuple[str, ...] = ()
    """As ``name=value``."""
    user: User | None = None
    """The entry in the users' file; None: the owner of the definitions, who may do everything."""

    @property
    def config(self) -> list[str] | None:
        return list(self.settings) or None


def listed_roles(users: Iterable[User]) -> Iterator[ListedRole]:
    """The owner, then the users by name."""
    known = sorted(users, key=lambda user: user.name)
    owner = next((user for user in known if user.name == OWNER), None)
    yield ListedRole(OWNER_OID, OWNER, admin=True, user=owner)
    taken: set[int] = set()
    for user in known:
        oid = _oid(user.name, taken)
        taken.add(oid)
        if user.name != OWNER:
            settings = tuple(f"{name}={value}" for name, value in sorted(user.settings.items()))
            yield ListedRole(oid, user.name, user.has(Role.ADMIN, ALL), settings, user)


def _oid(name: str, taken: set[int]) -> int:
    """The same on all members as long as the users are the same."""
    size = OID_LIMIT - FIRST_OID
    place = crc32(name.encode()) % size
    while FIRST_OID + place in taken:
        place = (place + 1) % size
    return FIRST_OID + place


@dataclass(frozen=True, slots=True)
class Roles:
    """``users``: those that the session may know of. ``current``: its own; None: it may do
    everything, as every session may where members have no users."""

    users: tuple[User, ...] = ()
    current: User | None = None

    @property
    def listed(self) -> list[ListedRole]:
        return list(listed_roles(self.users))

    @property
    def current_oid(self) -> int:
        """Of the role of the session."""
        for role in self.listed:
            if self.current is not None and role.name == self.current.name:
                return role.oid
        return OWNER_OID


EVERYBODY_IS_THE_OWNER: Final = Roles()
