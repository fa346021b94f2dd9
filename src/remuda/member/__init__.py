"""The member process: the shells around the pure state machines, and their wiring.

``main`` reads the settings and starts ``member``, which connects the rooms. Each folder is a room,
and a room imports from rooms on lower floors only; the contract is in ``pyproject.toml`` and the
table of rooms in docs/decisions/0067.
"""
