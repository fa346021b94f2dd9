"""Names as SQL writes them."""

from __future__ import annotations

import re
from typing import Final, Protocol

from remuda.errors import InvalidName, SqlSyntaxError

_PLAIN: Final = re.compile(r"[a-z_][a-z0-9_$]*\Z")
_KEYWORDS: Final = frozenset(
    """
    all analyse analyze and any array as asc asymmetric authorization between bigint binary
    bit boolean both case cast char character check coalesce collate collation column
    concurrently constraint create cross current_catalog current_date current_role
    current_schema current_time current_timestamp current_user dec decimal default deferrable
    desc distinct do else end except exists extract false fetch float for foreign freeze from
    full grant greatest group grouping having ilike in initially inner inout int integer
    intersect interval into is isnull join lateral leading least left like limit localtime
    localtimestamp national natural nchar none normalize not notnull null nullif numeric
    offset on only or order out outer overlaps overlay placing position precision primary real
    references returning right row select session_user setof similar smallint some substring
    symmetric tablesample table then time timestamp to trailing treat trim true union unique
    user using values varchar variadic verbose when where window with xmlattributes xmlconcat
    xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable
    """.split()  # noqa: SIM905 (151 lines otherwise)
)
"""Those that PostgreSQL does not take everywhere as names."""


def reserved_words() -> frozenset[str]:
    """Words that are not names without quotes, in lower case."""
    return _KEYWORDS


def quoted_name(name: str) -> str:
    """A name as an identifier of SQL, in quotes where it needs them: PostgreSQL's quote_ident."""
    if _PLAIN.match(name) and name not in _KEYWORDS:
        return name
    return in_quotes(name)


def in_quotes(name: str) -> str:
    """A name as an identifier in quotes."""
    return '"' + name.replace('"', '""') + '"'


class Qualified(Protocol):
    """Something in an SQL schema."""

    @property
    def namespace(self) -> str: ...

    @property
    def local(self) -> str: ...


def sql_name(relation: Qualified) -> str:
    """A relation as SQL texts name it, wherever the default search path holds."""
    name = quoted_name(relation.local)
    if relation.namespace == "public":
        return name
    return f"{quoted_name(relation.namespace)}.{name}"


def name_parts(text: str) -> tuple[str, ...]:
    """Schema and name as they are written -> as the catalog has them. Raises InvalidName."""
    parts: list[str] = []
    at = 0
    while (found := _PART.match(text, at)) is not None:
        quoted, plain = found.groups()
        parts.append(plain.lower() if quoted is None else quoted.replace('""', '"'))
        at = found.end()
        if at == len(text):
            return tuple(parts)
        if text[at] != ".":
            break
        at += 1
    raise InvalidName("invalid name syntax")


_PART: Final = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^\s".][^\s.]*))\s*')


def relation_parts(text: str) -> tuple[str, ...]:
    """``[[database.]schema.]name`` in its parts. Raises InvalidName, SqlSyntaxError."""
    parts = name_parts(text)
    if len(parts) > 3:
        raise SqlSyntaxError(
            f"improper relation name (too many dotted names): {'.'.join(parts)}",
            hint="Write schema.name.",
        )
    return parts


def written_parts(parts: tuple[str, ...]) -> str:
    """The one way to write schema and name in which every part is quoted."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)
