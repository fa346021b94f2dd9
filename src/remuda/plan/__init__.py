"""The values in which ``sql``, ``planner`` and ``execution`` meet.

``logical`` is relational algebra, ``physical`` the operators of a finished plan, and ``expression``
their scalar expressions. ``functions`` lists every function with its types, ``codec`` encodes plans
for the wire, ``explain`` prints them.
"""
