"""The rows of maps on one member, their indexes, the log and snapshots.

``maps`` holds the row versions of maps, ``chunks`` their columns, ``indexes`` find rows by other
columns than the key, ``staging`` keeps rows until their commit. ``log`` and ``snapshot`` keep rows
on disk and in an object store, in the formats of ``format``.
"""
