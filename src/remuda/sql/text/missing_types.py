"""PostgreSQL's own types that do not exist here, and which others hold their values."""

from __future__ import annotations

from typing import Final

from remuda.errors import NotSupported, Position

_RANGES: Final = ("int4", "int8", "num", "ts", "tstz", "date")
_REASONS: Final = (
    (
        [f"{name}{kind}" for name in _RANGES for kind in ("range", "multirange")],
        "Use two columns, one for each bound.",
    ),
    (("inet", "cidr", "macaddr", "macaddr8"), "Use VARCHAR; it sorts addresses as texts."),
    (("timetz", "time with time zone"), "Use TIME, or TIMESTAMP WITH TIME ZONE."),
    (("money",), "Use NUMERIC(19, 2)."),
    (("bit", "varbit", "bit varying"), "Use BYTEA, or an integer with the operators &, | and #."),
    (("xml", "jsonpath"), "Use VARCHAR."),
    (("tsvector", "tsquery"), "Use VARCHAR, and search by LIKE or ~."),
    (
        ("point", "line", "lseg", "box", "path", "polygon", "circle"),
        "Use columns of DOUBLE PRECISION, or JSON.",
    ),
    (("hstore",), "Use JSON."),
    (("citext",), "Use VARCHAR, and compare lower(column)."),
    (("record", "void", "cstring"), "It is the type of results alone."),
    (
        ("tid", "xid8", "pg_lsn", "pg_snapshot", "txid_snapshot", "pg_node_tree", "aclitem"),
        "Its values name parts of PostgreSQL's storage; here a key names a row.",
    ),
)
_INSTEAD: Final = {name: hint for names, hint in _REASONS for name in names}


def missing_type(name: str, position: Position | None) -> NotSupported | None:
    """The refusal of a type of PostgreSQL (lower case); None: it has none of this name."""
    hint = _INSTEAD.get(name)
    if hint is None:
        return None
    return NotSupported(f'type "{name}" is not supported', position=position, hint=hint)
