"""Options of a map as statements set them: ``(ttl = '10 s', eviction = LRU, ...)``.

::

    CREATE TABLE ... WITH (option = value, ...)
    ALTER TABLE name SET (option = value, ...)  |  RESET (option, ...)
    value     'text'  |  number  |  word  |  DEFAULT

Names and values are those of ``datatypes.map_options``. Other options that PostgreSQL's programs
write are skipped where they say nothing new: storage parameters, tablespaces, collations.
"""

from __future__ import annotations

from typing import Final

from remuda.datatypes.map_options import (
    OPTIONS,
    unknown_option,
)
from remuda.errors import InvalidDefinition, UndefinedObject
from remuda.sql.parsing.token_reader import TokenReader
from remuda.sql.text.lexemes import TokenKind
from remuda.sql.trees.syntax import OptionSetting

COLLATIONS: Final = frozenset({"default", "c", "posix", "ucs_basic", "c.utf-8"})
"""Those that order texts by the numbers of their characters, as they are ordered here; in lower
case."""


def option_value(reader: TokenReader) -> str | int | bool | None:
    """The value that comes next; None for DEFAULT."""
    token = reader.peek()
    if token is not None and token.kind is TokenKind.STRING:
        reader.index += 1
        return token.text
    if token is not None and token.kind is TokenKind.NUMBER:
        reader.index += 1
        return int(token.text) if token.text.isdecimal() else token.text
    word = reader.word()
    if not word.replace("_", "a").isalnum():
        reader.fail("Write a value: 'text', a number, true, false or DEFAULT.")
    reader.index += 1
    if word in ("true", "false"):
        return word == "true"
    return None if word == "default" else word


STORAGE: Final = frozenset(
    {
        "buffering", "deduplicate_items", "fastupdate", "fillfactor", "log_autovacuum_min_duration",
        "parallel_workers", "toast_tuple_target", "user_catalog_table", "vacuum_index_cleanup",
        "vacuum_truncate",
    }
)  # fmt: skip


def skip_storage(reader: TokenReader) -> bool:
    """Reads a storage parameter of PostgreSQL with its value, if one comes next. It tells where
    PostgreSQL puts rows and when it cleans up, which members decide for themselves."""
    first = reader.index
    toast = reader.accept("toast", ".")
    word = reader.word()
    if not toast and word not in STORAGE and not word.startswith("autovacuum_"):
        return False
    name = reader.name()
    if toast and name.text not in STORAGE and not name.text.startswith("autovacuum_"):
        reader.index = first
        return False
    if reader.accept("="):
        reader.accept("-")
        option_value(reader)
    return True


def skip_tablespace(reader: TokenReader) -> None:
    """``USING heap``, ``TABLESPACE name``: the ones that every database of PostgreSQL has."""
    if not reader.accept("tablespace"):
        return
    name = reader.name()
    if name.text != "pg_default":
        raise UndefinedObject(
            f'tablespace "{name.text}" does not exist',
            position=name.position,
            hint="Leave the clause out: maps are in no tablespace.",
        )


def read_settings(reader: TokenReader, *, with_values: bool) -> tuple[OptionSetting, ...]:
    """``(option = value, ...)`` after SET, ``(option, ...)`` after RESET."""
    reader.expect("(")
    found: list[OptionSetting] = []
    while True:
        if skip_storage(reader):
            if not reader.accept(","):
                break
            continue
        name = reader.name()
        if name.text not in OPTIONS:
            raise unknown_option(name.text).at(name.position, None)
        if any(name.text == other.name.text for other in found):
            raise InvalidDefinition(f'option "{name.text}" is given twice', position=name.position)
        if with_values:
            reader.expect("=")
        found.append(OptionSetting(name, option_value(reader) if with_values else None))
        if not reader.accept(","):
            break
    reader.expect(")")
    return tuple(found)


def skip_collation(reader: TokenReader) -> bool:
    """Whether COLLATE came next. Raises UndefinedObject for a collation with another order."""
    if not reader.accept("collate"):
        return False
    name = reader.map_name()
    if name.schema not in ("", "pg_catalog") or name.text.lower() not in COLLATIONS:
        raise UndefinedObject(
            f'collation "{name.shown}" for encoding "UTF8" does not exist',
            position=name.position,
            hint="Texts are compared by the numbers of their characters: leave COLLATE out, or "
            'write COLLATE "C".',
        )
    return True
