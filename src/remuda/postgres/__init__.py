"""PostgreSQL's wire protocol, version 3, as the server speaks it. Pure: bytes come in, bytes and
effects go out, and ``member.postgres`` performs them.

``login`` is the state machine from the first packet to the open session, ``session`` the one of
queries, prepared statements and portals after it. ``messages`` and ``reader`` cut and build
messages; ``rows``, ``binary_values``, ``text_values`` and ``parameters`` turn values into bytes and
back.
"""
