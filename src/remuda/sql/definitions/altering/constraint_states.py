"""ALTER TABLE of constraints that are there: VALIDATE CONSTRAINT looks at the rows that NOT VALID
has passed over; ALTER CONSTRAINT says when a foreign key is checked."""

from __future__ import annotations

from dataclasses import replace

from remuda.datatypes.schema import MapSchema
from remuda.errors import UndefinedObject, WrongObjectType
from remuda.sql.definitions.altering.alteration import Alteration
from remuda.sql.definitions.foreign_keys import constraint_names
from remuda.sql.queries.views import placed
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees.syntax import AlterConstraint, Name, ValidateConstraint


def change_constraint(work: Alteration, action: ValidateConstraint | AlterConstraint) -> None:
    """Raises UndefinedObject, and WrongObjectType for a constraint of another kind."""
    if isinstance(action, ValidateConstraint):
        _validate(work, action)
    else:
        _alter_deferral(work, action)


def _validate(work: Alteration, action: ValidateConstraint) -> None:
    """The rows that are there are to be looked at, unless they were."""
    schema, name = work.schema, action.name.text
    check = next((each for each in schema.checks if each.name == name), None)
    key = next((each for each in schema.foreign_keys if each.name == name), None)
    if check is None and key is None:
        raise placed(work.context, _other(schema, action.name, "foreign key or check"), action.name)
    if check is not None and not check.valid:
        checks = [replace(each, valid=True) if each is check else each for each in schema.checks]
        work.schema = replace(schema, checks=tuple(checks))
        work.checks.append(name)
    if key is not None and not key.valid:
        keys = [replace(each, valid=True) if each is key else each for each in schema.foreign_keys]
        work.schema = replace(schema, foreign_keys=tuple(keys))
        work.foreign_keys.append(name)


def _alter_deferral(work: Alteration, action: AlterConstraint) -> None:
    schema, name = work.schema, action.name.text
    key = next((each for each in schema.foreign_keys if each.name == name), None)
    if key is None:
        raise placed(work.context, _other(schema, action.name, "foreign key"), action.name)
    changed = replace(key, deferrable=action.deferrable, deferred=action.deferred)
    keys = [changed if each is key else each for each in schema.foreign_keys]
    work.schema = replace(schema, foreign_keys=tuple(keys))


def _other(schema: MapSchema, name: Name, wanted: str) -> UndefinedObject | WrongObjectType:
    known = constraint_names(schema)
    what = f'constraint "{name.text}" of relation "{schema.local}"'
    if name.text in known:
        return WrongObjectType(f"{what} is not a {wanted} constraint")
    return UndefinedObject(f"{what} does not exist", hint=did_you_mean(name.text, sorted(known)))
