"""Streams of changes from a map into Spark, and micro-batches from Spark into a map.

``offsets`` is the position of a reader in a checkpoint; ``commits`` makes each batch count exactly
once.
"""
