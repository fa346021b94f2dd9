"""Hashes of keys, equal to those of Spark, and byte strings that compare as values do.

``keyhash`` decides the partition of a row: a change of its results would lose stored rows.
"""
