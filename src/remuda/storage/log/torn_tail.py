"""Whether a crash can have left the bytes behind the last good frame of a log, or whether somebody
has changed a record that was whole.

Segments begin empty, grow, and are filled with zeros ahead of their records (``log.ahead``). So a
crash leaves a file that ends too early, or sectors that were never written, which are zero (file
systems that show old content of the disk instead, such as ext4 with ``data=writeback``, are not for
logs). Zeros up to the end of the file are no record. A bad frame of which nothing is missing in
this way was written whole, and its bytes are not those that were written: damage, whether or not a
later record says that it was on the disk.

Damage that cannot be told from a torn tail: a file that was cut off, and sectors that somebody has
filled with zeros. There the ``durable`` of later frames alone decides.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from remuda.limits import LOG_RECORD_SIZE_MAX
from remuda.storage.format.segment import (
    FRAME_MAGIC,
    FRAME_OVERHEAD,
    is_frame_of_size,
    read_front,
)

ZEROS_MAX: Final = 64
"""A payload may end with zeros. So many of them are told from those behind it, where its size is
damaged."""
_PIECE: Final = 1 << 16


def changed(
    data: bytes, offset: int, following: int | None, sequence: int, *, salt: int, sector: int
) -> str:
    """Why the bytes from ``offset`` on, where the frame of ``sequence`` should be and none is, were
    changed after they were written; "" = a crash can have left them. ``following``: where the next
    good frame begins, if there is one. ``sector``: how many bytes a disk writes as a whole."""
    front = read_front(data, offset)
    end = len(data) if following is None else following
    in_front = _has_hole(data, offset, offset + FRAME_OVERHEAD, sector)
    if following is None and not in_front and _is_whole_but_for_its_size(data, offset, salt):
        return "all of its bytes are there, and its size is not the one that was written"
    if following is None and front is not None and front.size <= LOG_RECORD_SIZE_MAX:
        end = min(end, offset + front.whole)
    if _has_hole(data, offset, end, sector):
        return ""
    if not data.startswith(FRAME_MAGIC[: end - offset], offset):
        return "no record begins with these bytes"
    if front is None:
        return ""  # the file ends before the record has really begun
    if front.sequence != sequence:
        return f"record {front.sequence} is there"
    if front.durable >= sequence:
        return f"it says that record {front.durable} was on the disk"
    if following is None and offset + front.whole > len(data):
        return ""  # the file ends in it
    return "all of its bytes are there, and they are not those that were written"


def end_of_bytes(data: bytes) -> int:
    """Where the zeros at the end of the file begin."""
    end = len(data)
    while end > 0:
        start = max(end - _PIECE, 0)
        piece = data[start:end].rstrip(b"\0")
        if piece:
            return start + len(piece)
        end = start
    return 0


def _is_whole_but_for_its_size(data: bytes, offset: int, salt: int) -> bool:
    """Whether the last bytes that are not zero are a frame which says a wrong size of itself. It
    would reach into sectors that are zero, or end behind the file, and look torn."""
    if not data.startswith(FRAME_MAGIC, offset):
        return False
    first = max(end_of_bytes(data), offset + FRAME_OVERHEAD)
    last = min(first + ZEROS_MAX, len(data))
    ends = {*range(first, last + 1), max(first, len(data))}
    return any(is_frame_of_size(data, offset, end, salt) for end in ends if end <= len(data))


def _has_hole(data: bytes, start: int, end: int, sector: int) -> bool:
    """Whether a sector, as far as it lies between the two, may not have been written."""
    edges = [start, *range(start - start % sector + sector, end, sector), end]
    return any(not data[one:other].strip(b"\0") for one, other in pairwise(edges))
