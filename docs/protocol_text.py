"""The prose of docs/protocol.md; ``{name}`` stands for a number of the code."""
# ruff: noqa: E501  (lines of a table in Markdown cannot be broken)

from __future__ import annotations

from typing import Final

HEAD: Final = """\
# The protocol

This page describes the wire: to write a client, to read a packet dump, or to change it. Framing, modes,
handshakes, and the operations of the user channel are Apache Drill's, byte for byte. Numbers from
100 on, and the messages between members, are Remuda's own. This page is made
from `src/remuda/rpc/messages/*.proto` and `docs/protocol_*.py` (change those, not the page);
`tests/docs/test_protocol_page.py` keeps it true.

## Connections

A member listens on three ports. A client opens **user** connections. Members open one **control**
and one **data** connection to each other when they first need them; each carries requests one way
and their answers the other way. Nothing relies on the order of messages across connections.

| channel | port | hello -> welcome | versions | silence until it is closed |
|---|---|---|---|---|
| user | {user_port} | `UserToBitHandshake` -> `BitToUserHandshake` | {user_versions} | {user_silence:g} s |
| control | {control_port} | `ControlHandshake` -> `ControlHandshake` | {control_versions} | {member_silence:g} s |
| data | {data_port} | `BitClientHandshake` -> `BitServerHandshake` | {data_versions} | {member_silence:g} s |

The side that connects speaks first: its hello is a request of type 0 with its protocol version
(`rpc_version`) and the oldest that it also speaks (`rpc_version_min`; absent: only the one). When
the ranges do not overlap, when the port belongs to another channel, or when somebody may not enter,
the welcome carries a typed `refusal` (and, on the user channel, Drill's `status`, `errorId` and
`errorMessage`), and the connection is closed after the peer could read it. Hands must be shaken
within {handshake:g} s, and until then a frame may have {hello_max} bytes at most.

The connecting side sends PING after half the time of silence; the other side answers PONG. Either
closes when the whole time has passed. Members notice each other's loss much sooner, by HEARTBEAT.

## Frames

    varint     length of everything below
    0A varint  header:  08 mode  10 coordination id  18 operation (zeros are written)
    12 varint  pbody: a protobuf message, may be empty, is always there
    1A varint  dbody: raw bytes to the end of the frame; absent when empty

| mode | is | coordination id |
|---|---|---|
| 0 | REQUEST | chosen by the sender, answered once with the same id; 0: one-way, never answered |
| 1 | RESPONSE | that of the request |
| 2 | RESPONSE_FAILURE | that of the request; the pbody is a `PBError` |
| 3, 4 | PING, PONG | 0 |

A frame has {frame_max} MiB at most. A larger one, or bytes that are no frame, close the connection
(a request that is too large is answered with a failure first). A body that cannot be read is
answered with a failure; of a one-way message it is logged. Errors travel as `PBError` with class,
SQLSTATE, detail, hint, the member to blame, and the place in the statement.

Every message between members carries a `Context`: the sender's clock, its view, its number. A
message from another view, or from a member that the receiver counts as lost, is refused: the sender
learns so that it has been given up, and stops.

## Life of a query

The member to which the client is connected is the **initiator**. Its number is part of the query's id,
so the id tells every holder which member to ask. The members that run fragments are the **participants**.

1. The initiator registers the query, and only then sends QUERY_START to the other participants. A
   participant starts at once; nobody waits for the others.
2. Instances exchange batches and flow control (next section). Batches between instances of
   the same member are not sent.
3. An instance that has ended well is reported to the initiator by FRAGMENT_DONE. A participant
   forgets the query when all its instances have ended. When the root has ended on the initiator,
   the query is complete, and the initiator cancels fragments that still run (a LIMIT was reached).
4. On every failure or cancel, a participant stops its own fragments and sends QUERY_CANCEL to
   the initiator, once. The initiator stops its own fragments and sends QUERY_CANCEL to every
   participant, once, with the member where the cancel began and its error. These are at most 2N
   messages, however many members begin. If the initiator is gone, participants cancel by themselves
   and send nothing.

Messages can be overtaken, and with a broken connection they can be lost. How each race ends:

| what happens | how it ends |
|---|---|
| a batch or flow control before its QUERY_START | kept, up to {early_max} MiB per member, and delivered when the query starts; above that the query fails |
| a batch or flow control after the end | dropped: ids of the last {ended_kept} queries are remembered |
| either, for an unknown query of the member's own | dropped: an initiator registers before it sends |
| QUERY_CANCEL before its QUERY_START | a surrogate swallows the start and the batches; it ends with the start, with a QUERY_CHECK_RESPONSE, or after {surrogate:g} s |
| QUERY_CANCEL from a member that is not the initiator, to a participant | dropped |
| QUERY_START twice, FRAGMENT_DONE twice, a batch twice | dropped; a batch is not counted again |
| QUERY_START from another view | refused by QUERY_CANCEL; if the client was told nothing, the statement is planned again, at a new timestamp, for up to 5 s. So the client gets no page before all participants have said that they run their part, or a second is over |
| a QUERY_START is lost | the initiator asks ({suspect:g} s without progress) by QUERY_CHECK; the participant does not know the query; it fails |
| a QUERY_CANCEL or the end is lost | the participant asks by QUERY_CHECK; the initiator does not know the query; it is freed |
| a batch is lost | its ordinal is missing for {gap:g} s: the query fails |
| the last batch of a stream is lost | the receiver asks by QUERY_CHECK; the initiator tells who has sent everything; from then on it is missing as above |
| a grant is lost | the next one says more; without consumption it is repeated every {suspect:g} s (which counts as no progress) |
| a FRAGMENT_DONE is lost | the initiator asks the members that owe one; they send it again |
| a data connection breaks | the queries that exchange batches over it fail, also those whose part at the sender ended less than {gap:g} s ago |
| a participant is lost | the initiator ends the query everywhere |
| the initiator is lost | participants free everything and tell nobody |
| the client is gone, or the timeout has passed | the initiator cancels |

QUERY_CHECK goes out at most every {check:g} s, for all suspected queries of one initiator together.
`tests/golden/query_orders` has every order of start, two batches, cancel and loss, for initiator and
participant; `tests/simulation` plays them in whole clusters.

## Streams and credit

A stream is (query, edge, instance that sends, instance that receives). Ordinals, credit, and the end
belong to a stream. One frame may address several instances of a member: its rows are encoded once
and charged to each of the streams.

- Batches bear ordinals from 0. An ordered stream is handed out in their order, an unordered one as
  they come. An ordinal that was seen is dropped.
- The batch marked last has ordinal n; the stream is over when n + 1 batches were handed out.
- Credit is counted in bytes of the dbody. The window ({window} MiB, less for a fragment with many
  senders) is granted from the start, and both ends compute it from the plan. A grant is cumulative
  ("you may have sent up to X bytes in all"), so that an old or repeated one does no harm.
- A grant is sent after every third batch or a quarter of a window that an operator has consumed.
- A batch has at most half a window, and {batch_max} MiB and 64 KiB. One row that is larger may pass
  when more than half a window is free. More than was granted is a ProtocolError.
- `receiver_finished` (a LIMIT): the sender frees what it holds and answers with an empty last batch.
- `ok = false`: data is not accepted downstream, because the receiving instance failed. The sender
  stops and frees what it holds; the member that failed tells the initiator the cause. If no cancel
  has come two checks later, the sender asks for it itself.
- Between client and member the window is {pages} pages: QUERY_DATA that is not acknowledged. A
  client that does not read stops the root, its inbox, and so every sender, each within its window.

## Limits

{limits}

"""

VERSIONS: Final = """\
## Compatibility

Fields are added, never renumbered; readers skip what they do not know. A change that a peer of an
older version would misread raises `rpc_version` of its channel, and also `rpc_version_min` when the
members no longer speak the older one. Fields from 100 on in messages that Drill knows, and operations from
100 on, are Remuda's own.
"""
