"""Operations on maps by key.

``maps`` routes them to the partition's primary; ``reads``, ``writes`` and ``changes`` are their
handlers. ``expiry`` and ``eviction`` remove entries, ``read_leases`` serve near caches.
"""
