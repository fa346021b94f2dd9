"""Tables that were there before, in the transaction that has altered them (decision 0109).

Others have the table in its old form until the COMMIT. When the transaction reads its rows in a new
form, or writes rows that must fulfil other conditions, a new map takes the place of the table. Its
rows are writes of the transaction, and the commit validates that nobody else has written the table
since they were read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from remuda.datatypes.schema import MapSchema
from remuda.errors import LimitExceeded
from remuda.member.base.core import Core
from remuda.member.sessions.open_transaction import OpenTransaction, own_form
from remuda.member.sessions.transaction_definitions import TransactionDefinitions
from remuda.member.statements.checks.stored_rows import StoredRows
from remuda.storage.chunks.layout import Layout
from remuda.transaction.own_writes import Key, Row, canonical_key, size_of


class AlteredTables:
    def __init__(self, core: Core, stored: StoredRows, definitions: TransactionDefinitions) -> None:
        self._core = core
        self._stored = stored
        self._definitions = definitions

    async def rewrite(
        self, transaction: OpenTransaction, map_ids: Collection[int], at: int
    ) -> None:
        """Put new maps in the place of these, with their rows at ``at`` and those that the
        transaction has written. Raises LimitExceeded for more rows than a transaction writes,
        ActiveTransaction for a pessimistic one, which cannot keep others from writing a table,
        SerializationFailure, SchemaChanged and the errors of queries."""
        for map_id in sorted(map_ids):
            own = transaction.definitions
            assert own is not None
            schema = own.over(self._core.catalog).find_id(map_id)
            assert schema is not None, "a map that was altered is there"
            if transaction.pessimistic:
                raise own_form(schema)
            rows = await self._rows(transaction, schema, at)
            await self._definitions.rewrite(transaction, schema, rows)

    async def _rows(
        self, transaction: OpenTransaction, schema: MapSchema, at: int
    ) -> dict[Key, Row]:
        stored = self._core.store(schema.map_id, 0).schema
        transaction.note_table(stored, at)
        layout, places = Layout(stored, schema), stored.key_positions
        written = transaction.writes.of(schema.map_id)
        room = self._core.config.transaction_memory - transaction.writes.bytes
        found = {key: layout.row(each.row) for key, each in written.items() if each.row is not None}
        room -= sum(size_of(key, row) for key, row in found.items())
        names = [column.name for column in stored.columns]
        rows_ = self._stored.rows(stored, names, "", (), (), at, "the rows in their new form")
        async with contextlib.aclosing(rows_) as rows:
            async for row in rows:
                key = canonical_key(tuple([row[place] for place in places]))
                if key in written:
                    continue
                found[key] = layout.row(row)
                room -= size_of(key, found[key])
                if room < 0:
                    raise self._too_many(schema)
        return found

    def _too_many(self, schema: MapSchema) -> LimitExceeded:
        return LimitExceeded(
            f'the transaction has altered table "{schema.local}", and its rows take more than '
            f"{self._core.config.transaction_memory} bytes in their new form",
            hint="COMMIT before its rows are read or written, or raise transaction_memory of the "
            "members.",
        )
