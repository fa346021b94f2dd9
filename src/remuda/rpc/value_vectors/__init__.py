"""Rows as Drill's value vectors, for clients that do not read Arrow.

A batch is a tree of ``SerializedField`` messages, one per column, and one body: the buffers of the
tree's leaves, depth first. Everything is little-endian.

===========================  =============================================================
vector                       buffers
===========================  =============================================================
fixed width, required        the values; an INTERVAL is months, days, milliseconds and nothing, four
                             bytes each
BIT, required                one bit per value, the first one lowest
VARCHAR, VARBINARY,          child ``$offsets$`` (UINT4, n + 1 of them), then the bytes;
VARDECIMAL, required         a VARDECIMAL is a big-endian two's complement number, as short as it
                             can be
any of these, nullable       child ``$bits$`` (UINT1, 1 = there is a value), then the values in a
                             child of the same name and type; an INTERVAL is always nullable
a list (REPEATED)            child ``$offsets$``, child ``$data$`` (required)
a map                        its members, each nullable
a list of maps               child ``$offsets$``, then the members
===========================  =============================================================

A vector without values has no bytes at all, no offset either. Layout: Drill's Java client and its
C++ client, see the research on Drill's RPC.
"""
