"""Snapshots in an object store: bases, increments between cuts, verification, retention."""
