"""The catalog as it would be after some edits, for binding views against it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from remuda.catalog.edits import (
    DropMap,
    DropNamespace,
    DropType,
    DropView,
    Edit,
    PutMap,
    PutNamespace,
    PutType,
    PutView,
)
from remuda.catalog.enums import Retyping
from remuda.datatypes.schema import MapSchema, Namespace, ViewDefinition
from remuda.datatypes.sql import EnumType
from remuda.sql.scope.statements import CatalogReader


class Overlay:
    """A ``CatalogReader``. It tells everything: nobody sees hints of what is bound against it."""

    def __init__(self, below: CatalogReader, edits: Iterable[Edit]) -> None:
        self._below = below
        self._maps = {name: below.find(name) for name in below.names()}
        self._views = {name: below.find_view(name) for name in below.view_names()}
        self.version = below.version
        self.namespaces: Sequence[Namespace] = below.namespaces
        self.types: Sequence[EnumType] = below.types
        for edit in edits:
            self._apply(edit)
        if self.types is not below.types:
            self._retype(below.types)

    def _apply(self, edit: Edit) -> None:
        match edit:
            case DropMap(name=name):
                self._maps.pop(name, None)
            case DropView(name=name):
                self._views.pop(name, None)
            case PutMap(schema=schema):
                if schema.map_id:
                    self._maps = {
                        name: known
                        for name, known in self._maps.items()
                        if known is not None and known.map_id != schema.map_id
                    }
                self._maps[schema.name] = schema
            case PutView(view=view):
                if view.view_id:
                    self._views = {
                        name: known
                        for name, known in self._views.items()
                        if known is not None and known.view_id != view.view_id
                    }
                self._views[view.name] = view
            case PutNamespace(namespace=namespace):
                kept = [each for each in self.namespaces if each.oid != namespace.oid]
                self.namespaces = (*kept, namespace)
            case DropNamespace(name=name):
                self.namespaces = [each for each in self.namespaces if each.name != name]
            case PutType(enum=enum):
                others = [each for each in self.types if not enum.oid or each.oid != enum.oid]
                self.types = (*others, enum)
            case DropType(oid=oid):
                self.types = [each for each in self.types if each.oid != oid]

    def _retype(self, before: Sequence[EnumType]) -> None:
        """As the catalog does, columns get the new definitions of their types."""
        retyping = Retyping(before, self.types)
        self._maps = {
            name: known and retyping.map(known, known=False) for name, known in self._maps.items()
        }
        self._views = {name: known and retyping.view(known) for name, known in self._views.items()}

    def find(self, name: str) -> MapSchema | None:
        return self._maps.get(name)

    def find_view(self, name: str) -> ViewDefinition | None:
        return self._views.get(name)

    def names(self) -> Sequence[str]:
        return list(self._maps)

    def view_names(self) -> Sequence[str]:
        return list(self._views)
