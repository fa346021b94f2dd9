"""A plugin beside SQLAlchemy's own: definitions run outside of transactions, and no extension of
PostgreSQL is asked for."""

import importlib
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.testing import provision

importlib.import_module("sqlalchemy.dialects.postgresql.provision")  # it registers its own


@provision.post_configure_engine.for_db("postgresql")
def _no_extensions(*_: object) -> None:
    """hstore and citext concern none of the compliance tests."""


@event.listens_for(Engine, "do_execute")
def _define_outside_of_transactions(
    cursor: Any, statement: str, parameters: Any, context: Any
) -> bool | None:
    """Definitions take effect at once here, and are refused in a transaction. Those of temporary
    relations are part of it."""
    if context is None or not context.isddl or " TEMPORARY " in statement[:40]:
        return None
    connection = context.root_connection.connection.dbapi_connection
    before = connection.autocommit
    if not before:
        connection.commit()
        connection.autocommit = True
    try:
        cursor.execute(statement, parameters)
    finally:
        connection.autocommit = before
    return True
