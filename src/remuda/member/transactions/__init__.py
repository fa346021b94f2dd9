"""The shell of ``remuda.transaction.parts``: transactions of few keys over members.

``shell`` steps the pure state machine and performs its effects. ``validation``, ``apply`` and
``key_locks`` are the sides of a participant, ``small_writes`` is the way of single writes.
"""
