"""The options of ``format("remuda")``, checked once and plain afterwards."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from remuda.client.login import NO_SECURITY, OPTIONS, Security, from_environment, of_options
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
    "user": "who reads or writes (REMUDA_USER)",
    "password": "the user's password (REMUDA_PASSWORD)",
    "tls": "true: encrypt; also when one of its files is named (REMUDA_TLS)",
    "ca": "PEM file of the CA to trust, on every machine of Spark (REMUDA_TLS_CA)",
    "certificate": "PEM file to show to members (REMUDA_TLS_CERTIFICATE)",
    "tls_key": "PEM file with the key of the certificate (REMUDA_TLS_KEY)",
    "server_name": "what the members' certificates name (REMUDA_TLS_SERVER_NAME)",
}
N = TypeVar("N", int, float)

SPARK_OWN: Final = frozenset({"path"})
"""Options that Spark adds by itself, beside some with a dot in their names."""


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
        if not values.get("address"):
            raise InputError('format remuda needs option "address": HOST:PORT of a member')
        return cls(
            address=values["address"],
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
            security=_security(values),
        )

    def reads(self) -> Options:
        """These options, after checking that they say what to read."""
        if (self.map is None) == (self.query is None):
            raise InputError('format remuda reads either option "map" or option "query"')
        if self.query is not None and self.where is not None:
            raise InputError('option "where" goes with "map"; put the condition into the query')
        if self.partitions_per_member < 1:
            raise InputError('option "partitions_per_member" must be at least 1')
        return self

    def writes(self) -> str:
        """The map to write to."""
        if self.map is None or self.query is not None:
            raise InputError('format remuda writes to option "map"')
        return self.map


def _security(values: Mapping[str, str]) -> Security:
    """Option "key" means key columns, so the key of the certificate is "tls_key"."""
    given = {name: values.get("tls_key" if name == "key" else name) for name in OPTIONS}
    return of_options(from_environment(given, os.environ))


def split_names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


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
