"""The catalog as it would be after some edits, for binding views against it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from remuda.catalog.edits import (
    DropMap,
    DropNamespace,
    DropView,
    Edit,
    PutMap,
    PutNamespace,
    PutView,
)
from remuda.datatypes.schema import MapSchema, Namespace, ViewDefinition
from remuda.sql.scope.statements import CatalogReader


class Overlay:
    """A ``CatalogReader``. It tells everything: nobody sees hints of what is bound against it."""

    def __init__(self, below: CatalogReader, edits: Iterable[Edit]) -> None:
        self._below = below
        self._maps = {name: below.find(name) for name in below.names()}
        self._views = {name: below.find_view(name) for name in below.view_names()}
        self.version = below.version
        self.namespaces: Sequence[Namespace] = below.namespaces
        for edit in edits:
            self._apply(edit)

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

    def find(self, name: str) -> MapSchema | None:
        return self._maps.get(name)

    def find_view(self, name: str) -> ViewDefinition | None:
        return self._views.get(name)

    def names(self) -> Sequence[str]:
        return list(self._maps)

    def view_names(self) -> Sequence[str]:
        return list(self._views)
