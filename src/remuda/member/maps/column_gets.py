"""Gets of many keys as columns: keys come as an Arrow batch, and rows go as one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.values import arrays_to_rows
from remuda.errors import ProtocolError
from remuda.member.maps.open_map import OpenMap
from remuda.rpc import arrow_stream
from remuda.rpc.messages import user_pb2
from remuda.rpc.point_encoding import ROWS_CONTEXT, field
from remuda.storage.maps.batch_reads import read_batch

if TYPE_CHECKING:
    from remuda.member.base.call import Call
    from remuda.member.base.core import Core

PLACE = np.dtype("<u4")


def get_columns(core: Core, call: Call, message: user_pb2.KeysRequest, found: OpenMap) -> bool:
    """Answer a request with a ``key_batch``, if this member owns all of its keys and nothing of the
    map is undecided. False: nothing was answered, and ``with_keys`` is the way. Raises
    ProtocolError."""
    keys = _key_columns(message, found)
    if message.keys_only or message.newest or any(column.null_count for column in keys):
        return False
    if not found.schema.replicated:
        partitions = found.router.key_partitions(keys)
        if (np.asarray(core.view.owners)[partitions] != core.number).any():
            return False
        if core.readiness.holds:
            core.readiness.require_partitions(np.unique(partitions).tolist())
    store, at = found.store, message.read_timestamp
    if at:
        core.observe_read(at)
    else:
        at = core.timestamp()
    if store.pending_at_or_below(at):
        return False
    places, rows = read_batch(store, keys, at)
    asked, there = len(keys[0]), len(places)
    if not message.for_write:
        store.counters.get(asked, asked - there, at)
        if store.accesses is not None:
            used = [column.take(pa.array(places)) for column in keys]
            for key in arrays_to_rows(used, found.keys.types):
                store.accesses.touch(key, at)
    answer = user_pb2.RowsResponse()
    if there:
        answer.batch = bytes(arrow_stream.encode(rows.schema, [rows]))
        answer.places = places.astype(PLACE).tobytes()
    body = answer.SerializeToString() + field(ROWS_CONTEXT, core.encoded_context())
    call.reply(user_pb2.MAP_GET, body)
    return True


def with_keys(message: user_pb2.KeysRequest, found: OpenMap) -> user_pb2.KeysRequest:
    """The request with its keys one by one, in place of a ``key_batch``. Raises ProtocolError."""
    if message.HasField("key_batch"):
        pack = found.keys.pack
        keys = arrays_to_rows(_key_columns(message, found), found.keys.types)
        message.keys.extend(map(pack, keys))
        message.ClearField("key_batch")
    return message


def _key_columns(message: user_pb2.KeysRequest, found: OpenMap) -> list[pa.Array]:
    wanted = [engine_type(sql_type) for sql_type in found.keys.types]
    batches = arrow_stream.decode(message.key_batch)
    if len(batches) != 1 or batches[0].schema.types != wanted or not batches[0].num_rows:
        name = found.schema.name
        raise ProtocolError(f'a request does not have one batch of keys of map "{name}"')
    columns: list[pa.Array] = batches[0].columns
    return columns
