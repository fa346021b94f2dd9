"""The end of a foreign key, behind REFERENCES.

::

    parent [(column, ...)] [MATCH SIMPLE | MATCH FULL] [ON DELETE action] [ON UPDATE action]
        [[NOT] DEFERRABLE] [INITIALLY IMMEDIATE | INITIALLY DEFERRED] [NOT VALID]
    action    NO ACTION | RESTRICT | CASCADE | SET NULL [columns] | SET DEFAULT [columns]
    columns   (column, ...)
"""

from __future__ import annotations

from typing import Final, NamedTuple

from remuda.datatypes.schema import KeyAction
from remuda.errors import NotSupported, Position, SqlSyntaxError
from remuda.sql.parsing.token_reader import TokenReader
from remuda.sql.trees.syntax import ForeignKeyDefinition, Name

_DEFERRABLE: Final = "DEFERRABLE/NOT DEFERRABLE"
_INITIALLY: Final = "INITIALLY IMMEDIATE/DEFERRED"
_SETS: Final = {KeyAction.SET_NULL, KeyAction.SET_DEFAULT}


def read_references(
    reader: TokenReader, constraint: Name | None, columns: tuple[Name, ...], *, of_column: bool
) -> ForeignKeyDefinition:
    """``columns`` are those of the child. ``of_column``: it stands behind its only column, where
    NOT VALID has no place."""
    parent = reader.map_name()
    parent_columns = reader.names() if reader.word() == "(" else ()
    full = _match(reader)
    actions: dict[str, KeyAction] = {}
    set_columns: tuple[Name, ...] = ()
    while reader.word() == "on":
        place = reader.position()
        reader.expect("on")
        event = reader.word()
        if event not in ("delete", "update"):
            reader.fail("Write ON DELETE or ON UPDATE.")
        if event in actions:
            raise SqlSyntaxError(
                f"ON {event.upper()} is given twice", position=place, hint="Leave one of them out."
            )
        reader.expect(event)
        actions[event] = _action(reader)
        if actions[event] in _SETS and reader.word() == "(":
            if event == "update":
                raise NotSupported(
                    f"a column list with {actions[event].value} is only supported for ON DELETE "
                    "actions",
                    position=reader.position(),
                    hint="Leave the columns out: ON UPDATE sets all columns of the foreign key.",
                )
            set_columns = reader.names()
    deferral = read_deferral(reader, of_column=of_column)
    return ForeignKeyDefinition(
        constraint,
        columns,
        parent,
        parent_columns,
        actions.get("delete", KeyAction.NO_ACTION),
        actions.get("update", KeyAction.NO_ACTION),
        set_columns,
        full,
        deferral.valid,
        deferral.deferrable,
        deferral.deferred,
    )


def _match(reader: TokenReader) -> bool:
    """Whether it is MATCH FULL."""
    place = reader.position()
    if not reader.accept("match") or reader.accept("simple"):
        return False
    if reader.accept("full"):
        return True
    if reader.word() != "partial":
        reader.fail("Write MATCH SIMPLE or MATCH FULL.")
    raise NotSupported(
        "MATCH PARTIAL not yet implemented",
        position=place,
        hint="MATCH SIMPLE checks a row if none of its columns is NULL; MATCH FULL refuses rows "
        "of which some columns are NULL.",
    )


def _action(reader: TokenReader) -> KeyAction:
    found = next((a for a in KeyAction if reader.accept(*a.value.lower().split())), None)
    if found is None:
        reader.fail(f"Actions: {', '.join(action.value for action in KeyAction)}.")
    return found


class Deferral(NamedTuple):
    """The time of the check: the statement or the commit. ``valid``: rows that are there are
    checked as well."""

    deferrable: bool
    deferred: bool
    valid: bool


def read_deferral(reader: TokenReader, *, of_column: bool) -> Deferral:
    """Raises SqlSyntaxError for clauses that contradict each other."""
    deferrable: bool | None = None
    deferred: bool | None = None
    valid = True
    while True:
        place = reader.position()
        if reader.accept("not", "deferrable"):
            _once(deferrable, False, place, of_column, _DEFERRABLE)
            deferrable = False
        elif reader.accept("deferrable"):
            _once(deferrable, True, place, of_column, _DEFERRABLE)
            deferrable = True
        elif reader.accept("initially", "immediate"):
            _once(deferred, False, place, of_column, _INITIALLY)
            deferred = False
        elif reader.accept("initially", "deferred"):
            _once(deferred, True, place, of_column, _INITIALLY)
            deferred = True
        elif not of_column and reader.accept("not", "valid"):
            valid = False
        else:
            return Deferral(bool(deferrable or deferred), bool(deferred), valid)
        if deferred and deferrable is False:
            raise SqlSyntaxError(
                "constraint declared INITIALLY DEFERRED must be DEFERRABLE", position=place
            )


def _once(known: bool | None, new: bool, place: Position, of_column: bool, what: str) -> None:
    if known is None or (known == new and not of_column):
        return
    problem = f"multiple {what} clauses not allowed"
    raise SqlSyntaxError(
        problem if of_column else "conflicting constraint properties", position=place
    )
