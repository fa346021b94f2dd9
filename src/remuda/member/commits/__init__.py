"""The shell of ``remuda.transaction.staged_commit``: bulk writes and jobs.

``commits`` coordinates, ``participants`` stages rows and applies them, ``turn_shell`` and ``turns``
order commits per map, ``move_pauses`` stops moves of partitions while rows are staged.
"""
