"""The form of a whole result in one message: computed once per plan (QUERY_ANSWER)."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from remuda.datatypes.schema import Column
from remuda.datatypes.sql import SqlType
from remuda.rpc import codec, type_codec
from remuda.rpc.messages import user_pb2
from remuda.rpc.packing import packer


class AnswerForm:
    """``about`` is what a client must know to read the packed rows of an answer and to find the
    member that gives it, serialized; ``number`` stands for it towards a client that has it."""

    def __init__(
        self,
        columns: Sequence[Column],
        parameter_types: Sequence[SqlType],
        route: Sequence[int] | None,
    ) -> None:
        message = user_pb2.AnswerForm(columns=[codec.encode_column(column) for column in columns])
        if route is not None:
            message.route_parameters.extend(route)
            message.route_types.extend(type_codec.encode_type(parameter_types[i]) for i in route)
        self.about = message.SerializeToString()
        digest = blake2b(self.about, digest_size=8).digest()
        self.number = int.from_bytes(digest) or 1  # 0 is for a client that knows nothing
        self.columns = tuple(columns)
        self.rows = packer(tuple(column.type for column in columns))
