"""Dates, times, intervals and time zones, by the rules of PostgreSQL.

``datetimetext`` and ``intervaltext`` read text; ``calendar`` takes a moment apart over the whole
range of timestamps.
"""
