"""Maps that RESTORE SNAPSHOT is filling: in the catalog, so that members store their rows and keep
copies of them, but under names that nobody sees. One edit of the catalog gives all of them their
real names, so a restore appears as a whole. Maps that an interrupted restore leaves are dropped by
their names.
"""

from __future__ import annotations

from typing import Final

from remuda.datatypes.schema import MapSchema

_MARK: Final = "\x01restore"
"""No name in an SQL text or of a client's map begins so."""


def staged_name(member: int, restore: str, number: int) -> str:
    """The name of the map ``number`` of a restore that ``member`` runs; ``restore`` is its id."""
    return f"{_MARK} {member} {restore} {number}"


def is_staged(schema: MapSchema) -> bool:
    return schema.name.startswith(_MARK)


def restore_of(schema: MapSchema) -> tuple[int, str]:
    """The member that runs the restore of a staged map, and the restore's id."""
    _, member, restore, _ = schema.name.split(" ")
    return int(member), restore
