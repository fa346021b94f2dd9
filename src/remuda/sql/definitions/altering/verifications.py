"""Queries for rows that are there and break what ALTER TABLE demands of all rows from now on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from remuda.datatypes.identifiers import quoted_name, sql_name
from remuda.datatypes.index import IndexDefinition
from remuda.datatypes.schema import Check, ForeignKey, MapSchema
from remuda.datatypes.values import PhysicalValue
from remuda.errors import CheckViolation, ErrorSubject, NotNullViolation
from remuda.sql.definitions import foreign_keys
from remuda.sql.definitions.unique_constraints import verification
from remuda.sql.scope.statements import Verification


def verifications(
    schema: MapSchema,
    not_null: Sequence[str],
    checks: Sequence[Check],
    uniques: Sequence[IndexDefinition],
    parents: Sequence[tuple[ForeignKey, MapSchema]] = (),
) -> tuple[Verification, ...]:
    """For columns that become NOT NULL, new CHECK constraints, new unique indexes, and new foreign
    keys with their ``parents``."""
    some_row = f"SELECT 1 FROM {sql_name(schema)} WHERE "  # noqa: S608 (a quoted name)
    verify = [verification(schema, index) for index in uniques]
    verify += [
        Verification(
            some_row + f"{quoted_name(name)} IS NULL LIMIT 1",
            partial(_stored_null, schema.local, name),
        )
        for name in not_null
    ]
    verify += [
        Verification(
            some_row + f"({check.text}) IS FALSE LIMIT 1",
            partial(_stored_break, schema.local, check.name),
        )
        for check in checks
    ]
    verify += [foreign_keys.verification(schema, key, parent) for key, parent in parents]
    return tuple(verify)


def _stored_null(table: str, column: str, _: Sequence[PhysicalValue]) -> NotNullViolation:
    return NotNullViolation(
        f'column "{column}" of relation "{table}" contains null values',
        subject=ErrorSubject(table=table, column=column),
    )


def _stored_break(table: str, check: str, _: Sequence[PhysicalValue]) -> CheckViolation:
    return CheckViolation(
        f'check constraint "{check}" of relation "{table}" is violated by some row',
        subject=ErrorSubject(table=table, constraint=check),
    )
