"""The ports to the members: addresses, login, deadlines and connections.

``ports`` is the interface. ``connections`` implements it with blocking sockets,
``loop_connections`` on an event loop; ``driving`` runs coroutines without a loop.
"""
