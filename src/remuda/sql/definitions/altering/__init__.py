"""Binds ALTER: one module per kind of change to a table, and ``alter`` that puts them in order."""
