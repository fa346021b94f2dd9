"""Runs statements in DuckDB, which has attached the database of the arguments as ``grid``: a line
of the input is a statement as JSON, a line of the output its rows or its error."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb
import duckdb_extension_postgres_scanner as scanner

(extension,) = Path(scanner.__path__[0]).glob("extensions/*/postgres_scanner.duckdb_extension")
connection = duckdb.connect()
connection.execute(f"LOAD '{extension}'")
connection.execute(f"ATTACH '{sys.argv[1]}' AS grid (TYPE postgres)")
for line in sys.stdin:
    try:
        done = connection.execute(json.loads(line))
        answer = {"rows": done.fetchall() if done.description else []}
    except duckdb.Error as error:
        answer = {"error": str(error)}
    print(json.dumps(answer, default=str), flush=True)
