"""The parts on which every room of the member stands.

``core`` holds identity, clock, view, catalog and stores. ``peers`` connects to the other members,
``routes`` finds the handler of a message, ``forwarding`` passes requests on, and ``offload`` runs
work in threads.
"""
