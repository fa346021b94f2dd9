"""The client library: maps, SQL, transactions, jobs and change streams.

The logic is coroutines in ``core``, ``operations`` and ``asynchronous``, written once. ``network``
has the ports to the members; ``blocking`` runs the coroutines without an event loop. ``embedded``
starts a cluster on this machine.
"""
