"""Statements about SQL schemas, and the words that put a relation into another one.

::

    CREATE SCHEMA [IF NOT EXISTS] name [AUTHORIZATION user] [element ...]
    CREATE SCHEMA [IF NOT EXISTS] AUTHORIZATION user [element ...]
    ALTER SCHEMA name RENAME TO name  |  ALTER SCHEMA name OWNER TO user
    DROP SCHEMA [IF EXISTS] name, ... [CASCADE | RESTRICT]
    COMMENT ON SCHEMA name IS 'text' | NULL

Users have roles on maps and own nothing, so the words about owners are read and change nothing.
``schema_elements`` reads the elements.
"""

from __future__ import annotations

from remuda.errors import NotSupported
from remuda.sql.parsing.token_reader import TokenReader
from remuda.sql.trees.names import Name
from remuda.sql.trees.namespaces import AlterSchemaTree, CommentSchemaTree, DropSchemaTree
from remuda.sql.trees.syntax import CreateSchemaTree, SetOwner, SetSchema

USERS = ("role", "user", "group")
"""The words for users in CREATE, ALTER and DROP."""
OWN_USER = ("current_user", "current_role", "session_user")
"""The words for the user of the session."""


def read_create_schema(reader: TokenReader) -> CreateSchemaTree:
    """After CREATE SCHEMA."""
    if_not_exists = reader.accept("if", "not", "exists")
    name = None if reader.word() == "authorization" else _schema(reader)
    user, of_user = None, False
    if reader.accept("authorization"):
        of_user = reader.word() in OWN_USER
        user = reader.name()
    reader.end()
    if name is None:
        assert user is not None, "the words say at least one of both"
        return CreateSchemaTree(user, if_not_exists, of_user, None if of_user else user)
    return CreateSchemaTree(name, if_not_exists, user=None if of_user else user)


def read_drop_schema(reader: TokenReader) -> DropSchemaTree:
    """After DROP SCHEMA."""
    if_exists = reader.accept("if", "exists")
    names = reader.listed(lambda: _schema(reader))
    cascade = reader.accept("cascade")
    if not cascade:
        reader.accept("restrict")
    reader.end()
    return DropSchemaTree(names, if_exists, cascade)


def read_alter_schema(reader: TokenReader) -> AlterSchemaTree:
    """After ALTER SCHEMA."""
    name, new = _schema(reader), None
    if reader.accept("rename", "to"):
        new = reader.name()
    else:
        read_owner(reader)
    reader.end()
    return AlterSchemaTree(name, new)


def no_users(reader: TokenReader, verb: str, command: str) -> NotSupported:
    """The refusal of a statement about users: SQL does not change them."""
    return NotSupported(
        f"{verb} {reader.word().upper()} is not supported",
        position=reader.position(),
        hint=f"Users and their settings are in the users' file of the members: {command}.",
    )


def no_owners(reader: TokenReader, verb: str) -> NotSupported:
    """The refusal of a statement about all that a user owns. After its first word."""
    return NotSupported(
        f"{verb} OWNED is not supported",
        position=reader.position(),
        hint="Users own nothing: they have roles on maps, schemas and all maps, in the users' file "
        "of the members. remuda user revoke NAME ROLE takes one away.",
    )


def read_owner(reader: TokenReader) -> None:
    """``OWNER TO user``"""
    reader.expect("owner", "to")
    reader.name()


def read_comment_on_schema(reader: TokenReader) -> CommentSchemaTree:
    """After COMMENT ON SCHEMA."""
    name = _schema(reader)
    reader.expect("is")
    comment = "" if reader.accept("null") else reader.string("Write IS 'text' or IS NULL.").text
    reader.end()
    return CommentSchemaTree(name, comment)


def moved_or_owned(reader: TokenReader) -> SetSchema | SetOwner | None:
    """SET SCHEMA or OWNER TO of a map, a view or a sequence."""
    if reader.accept("set", "schema"):
        return SetSchema(reader.name())
    if reader.word() == "owner":
        read_owner(reader)
        return SetOwner()
    return None


def _schema(reader: TokenReader) -> Name:
    """``[database.]name``"""
    found = reader.map_name()
    return Name(found.text, found.position)
