"""SQL types and their values, in the forms of Python, Arrow, text and bytes.

``sql`` defines the types and ``schema`` the columns and key of a map. ``hashes`` hash keys to
partitions exactly as Spark does; ``timestamp`` and ``view`` are the values that every message
carries. All modules are pure, and nothing here knows queries, storage or the network.
"""
