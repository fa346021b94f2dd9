"""Actions of ALTER that say where and how PostgreSQL keeps rows: they change nothing here, and are
read so that dumps and migrations run.

::

    table     SET LOGGED | SET UNLOGGED | SET WITHOUT CLUSTER | SET WITHOUT OIDS
              | SET TABLESPACE pg_default  |  CLUSTER ON index
              | REPLICA IDENTITY DEFAULT | FULL | NOTHING | USING INDEX index
              | ENABLE | DISABLE TRIGGER ALL | USER  |  DISABLE | NO FORCE ROW LEVEL SECURITY
    column    SET STATISTICS n | SET STORAGE word | SET COMPRESSION word
              | SET (n_distinct = value, ...) | RESET (n_distinct, ...)
    index     SET (parameter = value, ...) | RESET (parameter, ...) | SET TABLESPACE pg_default
              | ALTER [COLUMN] n SET STATISTICS n
"""

from __future__ import annotations

from typing import Final

from remuda.errors import InvalidParameterValue, Position, UndefinedObject
from remuda.sql.parsing.option_settings import option_value, skip_storage, skip_tablespace
from remuda.sql.parsing.token_reader import TokenReader
from remuda.sql.text.lexemes import TokenKind
from remuda.sql.trees.names import Name
from remuda.sql.trees.syntax import ChangeOptions

_STORAGES: Final = frozenset({"plain", "external", "extended", "main", "default"})
_ATTRIBUTES: Final = frozenset({"n_distinct", "n_distinct_inherited"})
_IDENTITIES: Final = frozenset({"default", "full", "nothing"})


def read_of_table(reader: TokenReader) -> ChangeOptions | None:
    """None: an action of another kind comes next."""
    for words in (
        ("set", "logged"),
        ("set", "unlogged"),
        ("set", "without", "cluster"),
        ("set", "without", "oids"),
        ("disable", "row", "level", "security"),
        ("no", "force", "row", "level", "security"),
    ):
        if reader.accept(*words):
            return ChangeOptions(())
    if _tablespace(reader):
        return ChangeOptions(())
    if reader.accept("cluster", "on"):
        return ChangeOptions((), index=reader.name())
    if reader.accept("replica", "identity"):
        return _replica_identity(reader)
    if reader.accept("enable", "trigger"):
        return _trigger(reader, None)
    position = reader.position()
    if reader.accept("disable", "trigger"):
        return _trigger(reader, position)
    return None


def read_of_column(reader: TokenReader, column: Name) -> ChangeOptions | None:
    """After the name of the column. None: an action of another kind comes next."""
    if reader.accept("set", "statistics"):
        _number(reader)
    elif reader.accept("set", "storage"):
        position = reader.position()
        word = reader.name().text
        if word.lower() not in _STORAGES:
            raise InvalidParameterValue(
                f'invalid storage type "{word}"',
                position=position,
                hint="Storage types: " + ", ".join(sorted(_STORAGES)).upper() + ".",
            )
    elif reader.accept("set", "compression"):
        reader.name()
    elif reader.accept("set", "(") or reader.accept("reset", "("):
        _attributes(reader)
    else:
        return None
    return ChangeOptions((), column=column)


def read_of_index(reader: TokenReader) -> ChangeOptions | None:
    """None: an action of another kind comes next."""
    if reader.accept("set", "(") or reader.accept("reset", "("):
        while skip_storage(reader) and reader.accept(","):
            pass
        reader.expect(")")
    elif reader.accept("alter"):
        reader.accept("column")
        _number(reader)
        reader.expect("set", "statistics")
        _number(reader)
    elif not _tablespace(reader):
        return None
    return ChangeOptions(())


def _tablespace(reader: TokenReader) -> bool:
    if not reader.accept("set", "tablespace"):
        return False
    reader.index -= 1
    skip_tablespace(reader)
    reader.accept("nowait")
    return True


def _replica_identity(reader: TokenReader) -> ChangeOptions:
    if reader.accept("using", "index"):
        return ChangeOptions((), index=reader.name())
    if reader.word() not in _IDENTITIES:
        reader.fail("Write DEFAULT, FULL, NOTHING or USING INDEX name.")
    reader.index += 1
    return ChangeOptions(())


def _trigger(reader: TokenReader, disabled: Position | None) -> ChangeOptions:
    if reader.accept("all"):  # triggers of PostgreSQL check foreign keys
        return ChangeOptions((), unchecked=disabled)
    if not reader.accept("user"):
        name = reader.name()
        raise UndefinedObject(
            f'trigger "{name.text}" does not exist',
            position=name.position,
            hint="There are no triggers: leave the statement out.",
        )
    return ChangeOptions(())


def _number(reader: TokenReader) -> None:
    reader.accept("-")
    token = reader.peek()
    if token is None or token.kind is not TokenKind.NUMBER:
        reader.fail("Write a number.")
    reader.index += 1


def _attributes(reader: TokenReader) -> None:
    while True:
        name = reader.name()
        if name.text not in _ATTRIBUTES:
            raise InvalidParameterValue(
                f'unrecognized parameter "{name.text}"',
                position=name.position,
                hint="Known ones: " + ", ".join(sorted(_ATTRIBUTES)) + ".",
            )
        if reader.accept("="):
            reader.accept("-")
            option_value(reader)
        if not reader.accept(","):
            break
    reader.expect(")")
