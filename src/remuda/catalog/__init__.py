"""The definitions of a cluster: maps, indexes, views, users and statistics. Pure values.

``catalog`` is an immutable value with a version, and every edit makes the next one (``edits``).
``statistics`` holds the estimates that the planner uses. ``pg_objects`` and its neighbours
describe the same definitions in PostgreSQL's terms.
"""
