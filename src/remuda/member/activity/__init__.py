"""Relations that show operators the work on a cluster, and requests that end it.

``clients`` describes connections, ``lock_rows`` locks; ``report`` asks all members for both in one
round, and ``relations`` makes system relations of the answers. ``control`` is the shell of
``query.ending`` and ``cluster.draining``: it ends statements, transactions and connections, on this
member and on others, and has members leave.
"""
