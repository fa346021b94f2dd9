"""Snapshots and cuts: making, restoring, scheduling, and the archive of logs.

``making`` and ``cuts`` write pieces to a store, ``restoring`` and ``replay`` read them back,
``catalog`` lists them, ``offline`` reads them without a cluster.
"""
