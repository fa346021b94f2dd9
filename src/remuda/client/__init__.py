"""The client library: maps, SQL, transactions, jobs and change streams.

The logic is coroutines in ``core`` and ``asynchronous``, written once. ``ports`` is the interface
to the network; ``driving`` runs the coroutines without an event loop for the blocking client
(``client``, ``map``, ``cursor``). ``embedded`` starts a cluster on this machine.
"""
