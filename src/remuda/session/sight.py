"""The catalog as one user's statement may see it: names of maps without any role stay unknown.

A map that is named is found all the same, so that what lacks is a role and not the map, as
PostgreSQL has it. But nothing lists, suggests or describes it: code that goes through the names of
all maps (hints, ``to_regclass``, ``pg_get_viewdef``, comments) gets those that the user sees, and
an error of a statement that names another one says of that one only that a role lacks.
"""

from __future__ import annotations

from collections.abc import Sequence

from remuda.catalog.catalog import Catalog
from remuda.catalog.roles import Roles
from remuda.catalog.users import Role, User, lacking
from remuda.datatypes.schema import MapSchema, Namespace, ViewDefinition
from remuda.datatypes.sql import EnumType, SqlType
from remuda.errors import RemudaError
from remuda.session.planning import bound
from remuda.session.privileges import needs_of
from remuda.session.settings import PLAIN, Meaning
from remuda.sql.scope.statements import BoundStatement


class Sight:
    """A ``CatalogReader`` for one statement. ``user`` None: may see everything.

    Code that goes through all maps to find those that depend on another one (dropping it, say) must
    find all of them; from then on it is not known which of them the statement names.
    """

    def __init__(
        self,
        whole: Catalog,
        seen: Catalog,
        user: User | None,
        users: Sequence[User] = (),
    ) -> None:
        """``users``: those that the user may know of."""
        self._whole = whole
        self._seen = seen
        self._user = user
        self._users = users
        self._unseen: list[str] = []
        """Maps and views that the statement names and the user may not know."""
        self._recording = True
        self.listed = False
        """The statement depends on what the user sees: its plan is not for others."""

    @property
    def version(self) -> int:
        return self._whole.version

    @property
    def namespaces(self) -> Sequence[Namespace]:
        return self._whole.namespaces

    @property
    def types(self) -> Sequence[EnumType]:
        return self._whole.types

    def find(self, name: str) -> MapSchema | None:
        found = self._whole.find(name)
        if self._recording and found is not None and self._seen.find(name) is None:
            self._unseen.append(name)
        return found

    def find_view(self, name: str) -> ViewDefinition | None:
        found = self._whole.find_view(name)
        if self._recording and found is not None and self._seen.find_view(name) is None:
            self._unseen.append(name)
        return found

    def names(self) -> Sequence[str]:
        self._recording = False
        return self._whole.names()

    def view_names(self) -> Sequence[str]:
        self._recording = False
        return self._whole.view_names()

    def told(self) -> Catalog:
        self.listed = True
        return self._seen

    def whole(self) -> Catalog:
        self.listed = True
        return self._whole

    def roles(self) -> Roles:
        self.listed = True
        return Roles(tuple(self._users), self._user)

    def bound(
        self, text: str, types: Sequence[SqlType | None] | None, meaning: Meaning = PLAIN
    ) -> BoundStatement:
        """Raises what ``planning.bound`` raises, and InsufficientPrivilege where that, or the
        statement itself, would tell of a map that the user may not know."""
        try:
            statement = bound(text, types, self, meaning)
        except RemudaError:
            self._refuse()
            raise
        if self._unseen and self._user is not None:
            needed = (need.name for need in needs_of(statement, self._whole))
            if all(map(self._user.sees, needed)):
                self._refuse()  # else the check of roles says it, and which one
        return statement

    def _refuse(self) -> None:
        if self._unseen and self._user is not None:
            raise lacking(self._user.name, Role.READ, self._unseen[0]) from None
