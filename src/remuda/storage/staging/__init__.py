"""Rows that a job or a transaction has written and that no reader sees yet.

``staging`` keeps them until the commit, ``validation`` refuses conflicts, and ``precomputed`` does
the slow part of a large commit on another thread.
"""
