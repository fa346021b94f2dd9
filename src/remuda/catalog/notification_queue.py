"""The map of notifications: a hidden map in which each commit that notifies writes entries.

All of them are in one partition, so one member says what was committed in which order. Entries end
by themselves after a moment; readers find them in the changes of the map, which are kept longer.
"""

from __future__ import annotations

from typing import Final

from remuda.datatypes.map_options import MapOptions
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import BIGINT, BYTEA

QUEUE_NAME: Final = "\x01notifications"
"""No name in an SQL text or of a client's map begins so."""
ENTRY_TTL: Final = 1_000_000
"""Microseconds."""
KEPT: Final = 60_000_000
"""Microseconds for which a member can read what it has missed."""
KEPT_SIZE: Final = 256 * 1024 * 1024
QUEUE: Final = MapSchema(
    name=QUEUE_NAME,
    columns=(
        Column("queue", BIGINT, nullable=False),
        Column("tag", BIGINT, nullable=False),
        Column("place", BIGINT, nullable=False),
        Column("body", BYTEA, nullable=False),
    ),
    key=("queue", "tag", "place"),
    partition_by=("queue",),
    options=MapOptions(change_retention=KEPT, change_retention_bytes=KEPT_SIZE),
)


def is_queue(schema: MapSchema) -> bool:
    return schema.name == QUEUE_NAME
