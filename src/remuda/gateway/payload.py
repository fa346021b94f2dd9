"""The body of ``POST /query.json``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from remuda.errors import SqlSyntaxError
from remuda.gateway.failures import Refused
from remuda.sql.drill.words import pieces_of, without_blanks

SESSION_WORDS: Final = frozenset({"SET", "RESET", "DISCARD", "PREPARE", "EXECUTE", "DEALLOCATE"})
_LIMIT_MAX: Final = 2**62
_SCHEMAS: Final = ("", "public", "remuda", "remuda.public")


@dataclass(frozen=True, slots=True)
class Payload:
    """``limit``: no more rows than these are wanted; None: all."""

    query: str
    limit: int | None
    user: str | None


def read_payload(body: bytes) -> Payload:
    """Raises Refused, which says what is wrong."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as problem:
        raise Refused(400, f"the body is not JSON: {problem}") from None
    if not isinstance(found, dict):
        raise Refused(400, "the body is not a JSON object")
    kind = found.get("queryType", "SQL")
    if not isinstance(kind, str) or kind.upper() != "SQL":
        raise Refused(400, f"queries of type {kind!r} are not supported: send SQL")
    query = found.get("query")
    if not isinstance(query, str) or not query.strip():
        raise Refused(400, 'the field "query" is not a statement')
    if first_word(query) in SESSION_WORDS:
        raise Refused(400, "each request is a session of its own: it has no settings to change")
    if found.get("options"):
        raise Refused(400, 'session options (the field "options") are not supported')
    schema = found.get("defaultSchema") or ""
    if not isinstance(schema, str) or schema.replace("`", "").lower() not in _SCHEMAS:
        raise Refused(400, f'the default schema is "public", it cannot be {schema!r}')
    user = found.get("userName")
    if user is not None and not isinstance(user, str):
        raise Refused(400, 'the field "userName" is not a text')
    return Payload(query, _limit(found.get("autoLimit")), user or None)


def first_word(query: str) -> str:
    """In capitals; ALTER SESSION counts as SET. "" when there is none."""
    try:
        words = [piece.word for piece in without_blanks(pieces_of(query)) if piece.text != ";"]
    except SqlSyntaxError:
        return ""  # the member says what is wrong
    if words[:1] == ["ALTER"] and words[1:2] in (["SESSION"], ["SYSTEM"]):
        return "SET"
    return words[0] if words else ""


def _limit(value: Any) -> int | None:
    """Drill's own web page sends a text."""
    if value is None or value == "":
        return None
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Refused(400, 'the field "autoLimit" is not a number of rows')
    return min(value, _LIMIT_MAX) or None
