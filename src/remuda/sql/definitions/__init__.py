"""Binds CREATE, ALTER and DROP of maps, views, indexes and constraints.

``constraints`` also checks the rows that statements write.
"""
