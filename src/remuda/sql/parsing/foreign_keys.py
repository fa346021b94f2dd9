"""The end of a foreign key, behind REFERENCES.

::

    parent [(column, ...)] [MATCH SIMPLE] [ON DELETE action] [ON UPDATE action]
        [NOT DEFERRABLE] [INITIALLY IMMEDIATE]
    action    NO ACTION | RESTRICT | CASCADE | SET NULL [columns] | SET DEFAULT [columns]
    columns   (column, ...)
"""

from __future__ import annotations

from typing import Final

from remuda.datatypes.schema import KeyAction
from remuda.errors import NotSupported, SqlSyntaxError
from remuda.sql.parsing.token_reader import TokenReader
from remuda.sql.trees.syntax import ForeignKeyDefinition, Name

_SETS: Final = {KeyAction.SET_NULL, KeyAction.SET_DEFAULT}


def read_references(
    reader: TokenReader, constraint: Name | None, columns: tuple[Name, ...]
) -> ForeignKeyDefinition:
    """``columns`` are those of the child."""
    parent = reader.map_name()
    parent_columns = reader.names() if reader.word() == "(" else ()
    _match(reader)
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
    _at_once(reader)
    return ForeignKeyDefinition(
        constraint,
        columns,
        parent,
        parent_columns,
        actions.get("delete", KeyAction.NO_ACTION),
        actions.get("update", KeyAction.NO_ACTION),
        set_columns,
    )


def _match(reader: TokenReader) -> None:
    place = reader.position()
    if not reader.accept("match") or reader.accept("simple"):
        return
    if reader.word() not in ("full", "partial"):
        reader.fail("Write MATCH SIMPLE.")
    raise NotSupported(
        f"MATCH {reader.word().upper()} is not supported",
        position=place,
        hint="MATCH SIMPLE, which is meant without the clause, checks a row if none of its columns "
        "is NULL. A CHECK constraint can refuse rows of which some columns are NULL.",
    )


def _action(reader: TokenReader) -> KeyAction:
    found = next((a for a in KeyAction if reader.accept(*a.value.lower().split())), None)
    if found is None:
        reader.fail(f"Actions: {', '.join(action.value for action in KeyAction)}.")
    return found


def _at_once(reader: TokenReader) -> None:
    """The clauses that say when rows are checked, and NOT VALID."""
    while True:
        place = reader.position()
        if reader.accept("not", "deferrable") or reader.accept("initially", "immediate"):
            continue
        what = ""
        if reader.accept("deferrable"):
            what = "DEFERRABLE"
        elif reader.accept("initially", "deferred"):
            what = "INITIALLY DEFERRED"
        elif reader.accept("not", "valid"):
            what = "NOT VALID"
        if not what:
            return
        raise NotSupported(
            f"a foreign key that is {what} is not supported",
            position=place,
            hint="Leave the clause out: each statement checks its rows, and ADD CONSTRAINT those "
            "that are there.",
        )
