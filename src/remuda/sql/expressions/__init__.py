"""Binds scalar expressions, calls and aggregates: resolves types and inserts conversions.

``expressions`` dispatches on the kind of tree; the other modules register a function per kind.
"""
