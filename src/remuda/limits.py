"""Every bound of the system, with the relations between them asserted.

Sizes are bytes unless the name says otherwise; times are seconds.
"""

from __future__ import annotations

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

# --- data ---
PARTITIONS: Final = 271
KEY_HASH_SEED: Final = 42
CHUNK_ROWS: Final = 64 * 1024
"""Rows of a sealed chunk made by single puts; bulk loads may seal larger chunks."""
TAIL_PIECE_ROWS: Final = 4 * 1024
"""A tail is sealed in pieces of this size, so that the loop is never held for long."""
ROW_SIZE_MAX: Final = 16 * MIB
MEMBERS_MAX: Final = 1024

# --- execution ---
BATCH_ROWS: Final = 64 * 1024
TUPLE_BATCH_ROWS: Final = 256
AGGREGATE_BUFFER_ROWS: Final = 1024 * 1024
ENCODED_BATCH_SIZE_MAX: Final = 4 * MIB + 64 * KIB
"""The columns of a chunk are often 4 MiB; the bytes that Arrow writes around them must not split
them."""
STREAM_WINDOW_SIZE: Final = 4 * ENCODED_BATCH_SIZE_MAX
"""Several of the largest batches: with two, the sender waits for each grant."""
FRAGMENT_RECEIVE_BUDGET: Final = 64 * MIB
EARLY_BATCHES_SIZE_MAX: Final = 64 * MIB
"""Batches kept for a query that has not started here yet (design rule 3)."""
ADVANCE_TIME_SLICE: Final = 0.005
SWITCH_INTERVAL: Final = 0.0005
STATEMENT_LENGTH_MAX: Final = 4 * MIB
ENTRY_CHANGE_LENGTH_MAX: Final = 8 * 1024
"""Characters of an expression that changes one entry: it is read on the loop, as a get is."""
EXPRESSION_DEPTH_MAX: Final = 400
PLAN_CACHE_ENTRIES: Final = 10_000
PLAN_CACHE_SIZE_MAX: Final = 64 * MIB

# --- cursors ---
PAGE_ROWS: Final = 4096
PAGES_IN_FLIGHT: Final = 3
RETURNING_SIZE_MAX: Final = 256 * MIB
"""Bytes that RETURNING of one statement may give: they are kept until the statement is
committed."""

# --- wire ---
FRAME_SIZE_MAX: Final = 64 * MIB
HANDSHAKE_TIMEOUT: Final = 10.0
"""For the handshake and, where one is asked for, the password or secret after it; TLS below has as
long again."""
STRANGERS_MAX: Final = 2048
"""Connections of one port whose other side has not shown who it is; beyond, the oldest goes."""
AUTHENTICATION_PENALTY: Final = 1.0
"""How long the answer to a wrong password or secret is held back."""
CONNECT_TIMEOUT: Final = 30.0
USER_HEARTBEAT_TIMEOUT: Final = 30.0
CLIENT_SILENCE_MAX: Final = 10.0
"""How long a client that waits bears a member from which nothing comes, no answer to a ping either:
as long as the other members do."""
MEMBER_HEARTBEAT_TIMEOUT: Final = 300.0
USER_PORT: Final = 31010
CONTROL_PORT: Final = 31011
DATA_PORT: Final = 31012
METRICS_PORT: Final = 31014
POSTGRES_PORT: Final = 31432
HTTP_PORT: Final = 8047

# --- queries ---
QUERY_CHECK_INTERVAL: Final = 1.0
QUERY_SUSPECT_AFTER: Final = 5.0
STREAM_GAP_TIMEOUT: Final = 10.0
CANCELLED_SURROGATE_TTL: Final = 60.0
FINISHED_QUERIES_KEPT: Final = 200
FINISHED_QUERIES_SIZE_MAX: Final = 16 * MIB
"""Statements that have ended of which a member keeps profiles, and the bytes that these may
take."""
ACTIVE_QUERIES_MAX: Final = 1000
"""Queries that one member initiates at a time."""
QUEUED_QUERIES_MAX: Final = 1000
"""Queries of one initiator that wait for memory."""
PARALLEL_ROWS: Final = 1_000_000
"""A fragment runs one instance on a member for each so many rows that it reads there, up to the
member's workers."""
ENDED_QUERY_IDS_KEPT: Final = 4096
"""Ids remembered per member, so that late messages of ended queries are dropped at once."""

# --- membership ---
HEARTBEAT_INTERVAL: Final = 1.0
HEARTBEAT_TIMEOUT: Final = 10.0
BACKUPS_MAX: Final = 6
CLOCK_SKEW_MAX: Final = 60.0
"""How far the clock of another member may be ahead."""
CLOCK_DRIFT: Final = 0.01
"""The share by which the clocks of two machines may run at different speeds."""
CLIENT_CLOCK_AHEAD_MAX: Final = 20.0
"""How far a clock or a read timestamp of a client may be ahead of its member's wall clock: far less
than between members, so that no client can push a member out of its cluster. Promoted members set
their clocks ahead by a lease, and clients carry that to others."""
JOB_IDLE_TIMEOUT: Final = 600.0
"""A staged job without traffic for this long is aborted and its rows freed."""

# --- changes of maps ---
LISTENER_EVENTS: Final = 10_000
"""Events that wait for a slow listener, unless told otherwise; the client asks its members for more
when there is room again."""
SUBSCRIPTIONS_MAX: Final = 1000
"""Listeners, continuous queries and near caches that one member serves."""
SUBSCRIPTION_IDLE_TIMEOUT: Final = 60.0
"""A subscription whose client has not asked for so long is forgotten; it may ask again."""
CHANGES_WAIT_MAX: Final = 5.0
"""So long a member lets a client wait that asks for changes; then it says that there are none."""
CHANGES_PAGE_ROWS: Final = 2048
"""Changes that one answer brings."""
CHANGES_STREAM_ROWS: Final = 65_536
"""The same for change streams, which read batches."""

# --- log and snapshots ---
LOG_SEGMENT_SIZE: Final = 64 * MIB
LOG_RECORD_SIZE_MAX: Final = 64 * MIB
"""A record above the size of a segment gets one of its own."""
LOG_GROUP_SIZE: Final = 8 * MIB
"""Bytes that one write of the log takes along at most, apart from one record."""

assert TAIL_PIECE_ROWS <= CHUNK_ROWS
assert ENCODED_BATCH_SIZE_MAX <= STREAM_WINDOW_SIZE // 2, "a batch is at most half its window"
assert ROW_SIZE_MAX <= FRAME_SIZE_MAX // 2
assert ENCODED_BATCH_SIZE_MAX < FRAME_SIZE_MAX
assert HEARTBEAT_INTERVAL * 3 <= HEARTBEAT_TIMEOUT
assert CLIENT_SILENCE_MAX <= HEARTBEAT_TIMEOUT <= USER_HEARTBEAT_TIMEOUT
assert CLIENT_CLOCK_AHEAD_MAX * 2 <= CLOCK_SKEW_MAX
assert TUPLE_BATCH_ROWS <= PAGE_ROWS <= BATCH_ROWS
assert FRAME_SIZE_MAX <= LOG_RECORD_SIZE_MAX, "what comes in a frame can be logged"
