"""Snapshots without a member: a process that reaches the store can read, compact and export them.

``pieces`` and ``export`` divide the work into pieces, ``replay`` makes the rows of an increment
from a log (by ``log_replay``, as a member does at its start), ``rows`` and ``catalog`` read
objects. ``offline`` is the entry for tools.
"""
