"""``remuda demo``: the whole of Remuda in three minutes, on real data, from nothing.

``demo`` runs the chapters; ``loss`` kills a member, ``durability`` loses all of them. ``screen``
prints.
"""
