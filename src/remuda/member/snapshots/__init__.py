"""Snapshots and cuts of running members: making, restoring, scheduling, and the archive of logs.

``making`` and ``cuts`` write pieces to a store, ``restoring`` and ``replay`` put them into maps.
The part that needs no member is ``remuda.snapshot``.
"""
