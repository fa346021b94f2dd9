"""The rows of maps on one member, their indexes, the log and snapshots.

``map_store`` holds the row versions of one map, ``scan`` reads them at a timestamp, ``key_index``
and ``secondary_index`` find them, ``upkeep`` removes old ones. ``log`` and ``snapshot`` keep rows
on disk and in an object store, in the formats of ``format``.
"""
