"""Open transactions of clients, and the parts of one statement of a client.

``session`` holds a transaction between its requests, ``service`` handles these requests, ``reads``
and ``keys`` serve it from its own writes first.
"""
