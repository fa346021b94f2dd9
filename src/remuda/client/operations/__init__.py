"""The logic of maps, jobs and transactions for both faces, as coroutines over ``core``.

``binding`` sends operations by key to their owners, ``commit`` and ``row_writer`` are staged jobs,
``transaction_core`` stands in place of ``core`` in a transaction.
"""
