"""The Python Database API 2.0 (PEP 249) over Remuda's client.

    import remuda.dbapi

    with remuda.dbapi.connect("127.0.0.1:31010") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT carrier, delay FROM flights WHERE delay > ?", (30,))
        for row in cursor:
            print(row.carrier, row.delay)

Every statement commits by itself. ``paramstyle`` is the default; each connection may have another.
"""

from __future__ import annotations

from remuda.dbapi.connection import Connection, connect
from remuda.dbapi.cursor import Cursor
from remuda.dbapi.exceptions import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004  (PEP 249's name)
)
from remuda.dbapi.type_objects import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

apilevel = "2.0"
threadsafety = 2
"""Threads may share the module and connections."""
paramstyle = "qmark"

__all__ = [
    "BINARY", "DATETIME", "NUMBER", "ROWID", "STRING", "Binary", "Connection", "Cursor",
    "DataError", "DatabaseError", "Date", "DateFromTicks", "Error", "IntegrityError",
    "InterfaceError",
    "InternalError", "NotSupportedError", "OperationalError", "ProgrammingError", "Time",
    "TimeFromTicks", "Timestamp", "TimestampFromTicks", "Warning", "apilevel", "connect",
    "paramstyle", "threadsafety",
]  # fmt: skip
