"""Names in Drill's dialect: found without regard to case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from remuda.catalog.catalog import Catalog
from remuda.catalog.system_relations import PUBLIC, SYSTEM, all_system_relations
from remuda.datatypes.identifiers import in_quotes, quoted_name
from remuda.datatypes.schema import MapSchema, ViewDefinition
from remuda.sql.drill.words import Piece


class Names:
    """Of one statement. A name that the statement gives itself (AS x) stays as it is written."""

    def __init__(self, catalog: Catalog, pieces: Sequence[Piece], capitals: frozenset[str]) -> None:
        self._known = _spellings(_names(catalog))
        self._capitals = capitals
        self._inside = _in_schemas(catalog)
        self._own = set(_given(pieces))

    def quoted(self, piece: Piece, before: str = "") -> str:
        """In PostgreSQL's quotes, as the catalog spells it; as written, when it does not know it or
        knows several. ``before``: the name in front of its dot, perhaps that of a schema."""
        name = piece.name or ""
        inside = self._inside.get(before.lower())
        if inside is not None:
            spelled = inside.get(name.lower(), frozenset())
            if name not in spelled and len(spelled) == 1:
                name = next(iter(spelled))
            return in_quotes(name)
        if name in self._own:
            return in_quotes(name)
        if name.upper() in self._capitals:
            return quoted_name(name.upper())
        spellings = self._known.get(name.lower(), ())
        if name not in spellings and len(spellings) == 1:
            name = next(iter(spellings))
        return in_quotes(name)


def _given(pieces: Sequence[Piece]) -> Iterator[str]:
    before = ""
    for piece in pieces:
        if piece.kind == "blank":
            continue
        if before == "AS" and piece.kind == "ticked" and piece.name is not None:
            yield piece.name
        before = piece.word


def _spellings(names: Iterable[str]) -> dict[str, frozenset[str]]:
    """By what they are in lower case."""
    found: dict[str, set[str]] = {}
    for name in names:
        found.setdefault(name.lower(), set()).add(name)
    return {lower: frozenset(spellings) for lower, spellings in found.items()}


def _in_schemas(catalog: Catalog) -> dict[str, dict[str, frozenset[str]]]:
    """The relations of each schema that was created, by its name in lower case."""
    found: dict[str, list[str]] = {each.name.lower(): [] for each in catalog.namespaces}
    relations: list[MapSchema | ViewDefinition] = [*catalog.maps, *catalog.views]
    for relation in relations:
        if relation.namespace.lower() in found:
            found[relation.namespace.lower()].append(relation.local)
    return {schema: _spellings(names) for schema, names in found.items()}


def _names(catalog: Catalog) -> Iterator[str]:
    yield from _SYSTEM
    relations: list[MapSchema | ViewDefinition] = [*catalog.maps, *catalog.views]
    yield from (namespace.name for namespace in catalog.namespaces)
    for relation in relations:
        yield relation.local
        yield from (column.name for column in relation.columns)


_SYSTEM: Final = frozenset(
    [PUBLIC, *SYSTEM]
    + [relation.name for relation in all_system_relations()]
    + [column.name for relation in all_system_relations() for column in relation.columns]
)
