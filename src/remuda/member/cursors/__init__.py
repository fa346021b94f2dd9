"""Cursors that have a name: their rows, their positions, and the cursors that a session has open.

A cursor runs its query as far as its client fetches. It knows nothing of statements.
"""
