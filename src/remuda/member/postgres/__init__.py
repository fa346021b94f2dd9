"""The door for PostgreSQL's clients: the shell of ``remuda.postgres`` on the member's loop.

``wing`` listens and knows all connections, ``connection`` is one of them until it is closed,
``backend`` performs what the session machine of one asks for, with the same statements, sessions
and transactions as the other channels. ``preparing`` plans and describes statements, ``portals``
sends results.
"""
