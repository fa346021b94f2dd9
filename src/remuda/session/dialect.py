"""Statements of clients that write another dialect."""

from __future__ import annotations

from typing import Final

from remuda.catalog.catalog import Catalog
from remuda.session.client_session import ClientSession
from remuda.sql.drill.dialect import in_postgres

STOCK_SESSION: Final = ClientSession({"sql_dialect": "drill"})
"""The session with which Drill's own clients begin."""


def postgres_text(text: str, session: ClientSession, catalog: Catalog) -> str:
    """Raises SqlSyntaxError, NotSupported, UndefinedMap, UndefinedSchema for what Drill has and
    Remuda has not."""
    return in_postgres(text, catalog, session.meaning.path) if session.drill else text
