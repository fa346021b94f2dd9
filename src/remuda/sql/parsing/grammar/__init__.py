"""Queries, changes of data and expressions.

Each module builds on the one before: ``types``, ``expressions``, ``calls``, ``relations``,
``queries``, ``changes``. ``changes.Grammar`` is the whole. ``cursor`` gives them the tokens.
"""
