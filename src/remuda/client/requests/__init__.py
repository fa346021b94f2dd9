"""Requests of the user channel and their answers as plain values. Pure.

``requests`` is the largest part; ``result_stream`` and ``pages`` read results, ``feeds`` and
``change_batches`` read changes.
"""
