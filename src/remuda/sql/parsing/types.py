"""Statements about types as they are written.

::

    CREATE TYPE name AS ENUM (['label', ...])
    ALTER TYPE name ADD VALUE [IF NOT EXISTS] 'label' [BEFORE | AFTER 'label']
    ALTER TYPE name RENAME VALUE 'label' TO 'label'  |  RENAME TO name  |  SET SCHEMA name
    DROP TYPE [IF EXISTS] name, ... [CASCADE | RESTRICT]
    COMMENT ON TYPE name IS 'text' | NULL
"""

from __future__ import annotations

from remuda.sql.parsing.token_reader import TokenReader
from remuda.sql.trees.names import Name
from remuda.sql.trees.types import (
    AddValue,
    AlterTypeTree,
    CommentTypeTree,
    CreateTypeTree,
    DropTypeTree,
    MoveType,
    RenameType,
    RenameValue,
)


def _label(reader: TokenReader) -> Name:
    position = reader.position()
    return Name(reader.string("Write a label as a string: 'new'.").text, position)


def read_create_type(reader: TokenReader) -> CreateTypeTree:
    """After CREATE TYPE."""
    name = reader.map_name()
    if not reader.accept("as", "enum"):
        reader.unsupported("this form of CREATE TYPE", "CREATE TYPE name AS ENUM ('label', ...)")
    reader.expect("(")
    labels: list[Name] = []
    if not reader.accept(")"):
        labels.append(_label(reader))
        while reader.accept(","):
            labels.append(_label(reader))
        reader.expect(")")
    reader.end()
    return CreateTypeTree(name, tuple(labels))


def read_alter_type(reader: TokenReader) -> AlterTypeTree:
    """After ALTER TYPE."""
    name = reader.map_name()
    action: AddValue | RenameValue | RenameType | MoveType
    if reader.accept("add", "value"):
        if_not_exists = reader.accept("if", "not", "exists")
        label = _label(reader)
        before = reader.accept("before")
        beside = _label(reader) if before or reader.accept("after") else None
        action = AddValue(label, if_not_exists, before, beside)
    elif reader.accept("rename", "value"):
        old = _label(reader)
        reader.expect("to")
        action = RenameValue(old, _label(reader))
    elif reader.accept("rename", "to"):
        action = RenameType(reader.name())
    elif reader.accept("set", "schema"):
        action = MoveType(reader.name())
    elif reader.accept("owner", "to"):
        reader.name()
        action = MoveType(None)
    else:
        reader.unsupported(
            "this form of ALTER TYPE", "ADD VALUE, RENAME VALUE, RENAME TO, SET SCHEMA, OWNER TO"
        )
    reader.end()
    return AlterTypeTree(name, action)


def read_drop_type(reader: TokenReader) -> DropTypeTree:
    """After DROP TYPE."""
    if_exists = reader.accept("if", "exists")
    names = reader.listed(reader.map_name)
    cascade = reader.accept("cascade")
    if not cascade:
        reader.accept("restrict")
    reader.end()
    return DropTypeTree(names, if_exists, cascade)


def read_comment_on_type(reader: TokenReader) -> CommentTypeTree:
    """After COMMENT ON TYPE."""
    name = reader.map_name()
    reader.expect("is")
    comment = "" if reader.accept("null") else reader.string("Write IS 'text' or IS NULL.").text
    reader.end()
    return CommentTypeTree(name, comment)
