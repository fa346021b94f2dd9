"""Keywords that are no names everywhere, as in PostgreSQL's appendix C."""

from __future__ import annotations

from typing import Final

RESERVED: Final = frozenset((
    "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric", "both",
    "case", "cast", "check", "collate", "column", "constraint", "create", "current_catalog",
    "current_date", "current_time", "current_timestamp", "current_user", "default",
    "deferrable", "desc", "distinct", "do", "else", "end", "except", "false", "fetch", "for",
    "foreign", "from", "grant", "group", "having", "in", "initially", "intersect", "into",
    "lateral", "leading", "limit", "localtime", "localtimestamp", "not", "null", "offset", "on",
    "only", "or", "order", "placing", "primary", "references", "returning", "select",
    "session_user", "some", "symmetric", "table", "then", "to", "trailing", "true", "union",
    "unique", "using", "variadic", "when", "where", "window", "with",
))  # fmt: skip
"""No names of columns or relations. USER and CURRENT_ROLE are missing: they are columns where there
are such."""
FUNCTION_WORDS: Final = frozenset((
    "authorization", "binary", "collation", "concurrently", "cross", "current_schema", "freeze",
    "full", "ilike", "inner", "is", "isnull", "join", "left", "like", "natural", "notnull",
    "outer", "overlaps", "right", "similar", "tablesample", "verbose",
))  # fmt: skip
"""Names of functions and types, not of columns or relations."""
NOT_COLUMNS: Final = RESERVED | FUNCTION_WORDS
NOT_LABELS: Final = frozenset((
    "array", "as", "create", "except", "fetch", "filter", "for", "from", "grant", "group",
    "having", "intersect", "into", "isnull", "limit", "notnull", "offset", "on", "order",
    "over", "overlaps", "returning", "to", "union", "where", "window", "with", "within",
    "without",
))  # fmt: skip
"""They name an item of a SELECT only behind AS."""
NOT_ALIASES: Final = NOT_COLUMNS | {"set"}
"""No names of relations without AS."""
KEYWORDS: Final = NOT_COLUMNS | frozenset((
    "alter", "between", "by", "commit", "copy", "delete", "drop", "escape", "exists", "explain",
    "filter", "first", "following", "insert", "last", "matched", "materialized", "merge",
    "next", "nothing", "nulls", "over", "overriding", "partition", "preceding", "range",
    "recursive", "replace", "rollback", "row", "rows", "set", "sets", "show", "sink",
    "truncate", "unbounded", "update", "vacuum", "values", "within", "without",
))  # fmt: skip
"""Words of the grammar, which are not shown as names."""
