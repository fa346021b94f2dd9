"""The options of ``format("remuda")``, checked once and plain afterwards."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeVar, cast, get_args

from remuda.client.network.login import NO_SECURITY, OPTIONS, Security, from_environment, of_options
from remuda.errors import InputError

KNOWN: Final = {
    "address": "HOST:PORT of any member, or several with commas",
    "map": "the map to read or write",
    "query": "a SELECT that the grid runs; its result is read",
    "columns": "names with commas: read only these columns",
    "where": "an SQL condition that the grid applies",
    "key": "key columns with commas: makes the map on writing when it is unknown",
    "partition_by": "key columns that decide the partition of a map made on writing",
    "replicated": "true: a map made on writing has a full copy on each member",
    "partitions_per_member": "Spark partitions per member on reading (1)",
    "at": "the timestamp to read at; by default the newest",
    "timeout": "seconds for one statement of the grid",
    "lease": "seconds that versions are kept for a read behind its last sign of life (60)",
    "snapshot": "read this snapshot from its store instead of the maps of a running cluster",
    "cut": "which cut of the snapshot; by default the last one",
    "store": "where snapshots are: a folder or a URL (REMUDA_SNAPSHOT_STORE)",
    "key_file": "the key of encrypted snapshots (REMUDA_SNAPSHOT_KEY_FILE)",
    "write": "upsert (the default), insert (keys must be new), delete (by key), or changes",
    "operation": "of write = changes: the column that says insert, update, upsert or delete",
    "startingfrom": "of readStream: where it begins: snapshot, latest, earliest, or a moment",
    "maxrowspertrigger": "of readStream: rows of one batch at most, about",
    "images": "of readStream: both (the default), or after: without the column _before",
    "of_stream": "of a write inside foreachBatch: a name for it; then each batch counts once",
    "user": "who reads or writes (REMUDA_USER)",
    "password": "the user's password (REMUDA_PASSWORD)",
    "tls": "true: encrypt; also when one of its files is named (REMUDA_TLS)",
    "ca": "PEM file of the CA to trust, on every machine of Spark (REMUDA_TLS_CA)",
    "certificate": "PEM file to show to members (REMUDA_TLS_CERTIFICATE)",
    "tls_key": "PEM file with the key of the certificate (REMUDA_TLS_KEY)",
    "server_name": "what the members' certificates name (REMUDA_TLS_SERVER_NAME)",
}
N = TypeVar("N", int, float)

WriteMode = Literal["upsert", "insert", "delete", "changes"]
LEASE_SECONDS: Final = 60
_LEASE_MAX: Final = 3600
_OF_A_CUT: Final = ("snapshot", "cut")

SPARK_OWN: Final = frozenset(
    {
        "path",
        "provider",
        "checkpointlocation",
        "queryname",
        "owner",
        "location",
        "external",
        "is_managed_location",
        "comment",
        "collation",
        "table_type",
    }
)
"""Options that Spark adds by itself, for tables of its catalog too, beside some with a dot in their
names."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a read or a write; see ``KNOWN``."""

    address: str
    map: str | None = None
    query: str | None = None
    columns: tuple[str, ...] = ()
    where: str | None = None
    key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    replicated: bool | None = None
    partitions_per_member: int = 1
    at: int | None = None
    timeout: float | None = None
    lease: int = LEASE_SECONDS
    snapshot: str | None = None
    cut: int | None = None
    store: str | None = None
    key_file: str | None = None
    write: WriteMode = "upsert"
    operation: str | None = None
    starting_from: str | None = None
    max_rows_per_trigger: int | None = None
    images: str = "both"
    of_stream: str | None = None
    security: Security = NO_SECURITY

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Options:
        """Raises ``InputError`` for an unknown option, a wrong value, or one that is missing."""
        # Spark gives names in lower case or as written, depending on the path taken.
        values = {name.lower(): value for name, value in given.items()}
        for name in values:
            if name not in KNOWN and name not in SPARK_OWN and "." not in name:
                raise InputError(
                    f"format remuda has no option {name}",
                    hint="options are " + ", ".join(sorted(KNOWN)),
                )
        of_a_cut = any(values.get(name) for name in _OF_A_CUT)
        if not values.get("address") and not of_a_cut:
            raise InputError('format remuda needs option "address": HOST:PORT of a member')
        return cls(
            address=values.get("address", ""),
            map=values.get("map") or values.get("path"),
            query=values.get("query"),
            columns=split_names(values.get("columns", "")),
            where=values.get("where"),
            key=split_names(values.get("key", "")),
            partition_by=split_names(values.get("partition_by", "")),
            replicated=_boolean("replicated", values.get("replicated")),
            partitions_per_member=_number("partitions_per_member", values, int) or 1,
            at=_number("at", values, int),
            timeout=_number("timeout", values, float),
            lease=_lease(values),
            snapshot=values.get("snapshot") or None,
            cut=_number("cut", values, int),
            store=values.get("store") or os.environ.get("REMUDA_SNAPSHOT_STORE"),
            key_file=values.get("key_file") or os.environ.get("REMUDA_SNAPSHOT_KEY_FILE"),
            write=_write_mode(values.get("write")),
            operation=values.get("operation") or None,
            starting_from=values.get("startingfrom") or None,
            max_rows_per_trigger=_at_least_one("maxRowsPerTrigger", values),
            of_stream=values.get("of_stream") or None,
            images=_images(values.get("images")),
            security=_security(values),
        )

    @property
    def of_a_cut(self) -> bool:
        """The read is from a snapshot."""
        return self.snapshot is not None or self.cut is not None

    def reads(self) -> Options:
        """These options, after checking that they say what to read."""
        if self.of_a_cut:
            return self._reads_cut()
        if (self.map is None) == (self.query is None):
            raise InputError('format remuda reads either option "map" or option "query"')
        if self.query is not None and self.where is not None:
            raise InputError('option "where" goes with "map"; put the condition into the query')
        if self.partitions_per_member < 1:
            raise InputError('option "partitions_per_member" must be at least 1')
        return self

    def streams(self) -> str:
        """The map whose changes are read."""
        if self.map is None or self.query is not None or self.where is not None:
            raise InputError(
                'a stream of remuda reads the changes of option "map"',
                hint="Filter the DataFrame instead of naming a query or a condition.",
            )
        if self.of_a_cut or self.at is not None:
            raise InputError("a stream has no options of a cut, and no timestamp to read at")
        return self.map

    def _reads_cut(self) -> Options:
        if self.map is None or self.query is not None:
            raise InputError('a cut is read map by map: name it with option "map"')
        for name in ("where", "at"):
            if getattr(self, name) is not None:
                raise InputError(
                    f'option "{name}" needs a running cluster, and a cut is read without one',
                    hint="Filter the DataFrame instead." if name == "where" else "",
                )
        return self

    def writes(self) -> str:
        """The map to write to."""
        if self.map is None or self.query is not None:
            raise InputError('format remuda writes to option "map"')
        if self.of_a_cut:
            raise InputError("a cut of a snapshot cannot be written to")
        if (self.write == "changes") != (self.operation is not None):
            raise InputError(
                'option "operation" names the column of option "write" = changes, and both go '
                "together"
            )
        return self.map


def _security(values: Mapping[str, str]) -> Security:
    """Option "key" means key columns, so the key of the certificate is "tls_key"."""
    given = {name: values.get("tls_key" if name == "key" else name) for name in OPTIONS}
    return of_options(from_environment(given, os.environ))


def split_names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _lease(values: Mapping[str, str]) -> int:
    seconds = _number("lease", values, int)
    if seconds is None:
        return LEASE_SECONDS
    if not 1 <= seconds <= _LEASE_MAX:
        raise InputError(f'option "lease" must be 1 to {_LEASE_MAX} seconds, not {seconds}')
    return seconds


def _at_least_one(name: str, values: Mapping[str, str]) -> int | None:
    found = _number(name.lower(), values, int)
    if found is not None and found < 1:
        raise InputError(f'option "{name}" must be at least 1, not {found}')
    return found


def _images(value: str | None) -> str:
    images = (value or "both").lower()
    if images not in ("both", "after"):
        raise InputError(f'option "images" must be both or after, not {value!r}')
    return images


def _write_mode(value: str | None) -> WriteMode:
    mode = (value or "upsert").lower()
    if mode not in get_args(WriteMode):
        raise InputError(
            f'option "write" must be one of {", ".join(get_args(WriteMode))}, not {value!r}'
        )
    return cast("WriteMode", mode)


def _boolean(name: str, value: str | None) -> bool | None:
    if value is None:
        return None
    if value.lower() not in ("true", "false"):
        raise InputError(f'option "{name}" must be true or false, not {value!r}')
    return value.lower() == "true"


def _number(name: str, values: Mapping[str, str], kind: type[N]) -> N | None:
    value = values.get(name)
    if value is None:
        return None
    try:
        return kind(value)
    except ValueError:
        raise InputError(f'option "{name}" must be a number, not {value!r}') from None
