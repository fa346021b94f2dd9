"""Whether a crash can have left the bytes behind the last good frame of a log, or whether somebody
has changed a record that was whole.

Segments only grow, and their files begin empty. So a crash leaves a file that ends too early, or
sectors that were never written, which are zero (file systems that show old content of the disk
instead, such as ext4 with ``data=writeback``, are not for logs). A bad frame of which nothing is
missing in this way was written whole, and its bytes are not those that were written: damage,
whether or not a later record says that it was on the disk.

What cannot be told from a torn tail: a file that was cut off, and sectors that somebody has filled
with zeros. There the ``durable`` of later frames alone decides.
"""

from __future__ import annotations

from itertools import pairwise

from remuda.limits import LOG_RECORD_SIZE_MAX
from remuda.storage.format.segment import FRAME_MAGIC, is_frame_of_size, read_front


def changed(
    data: bytes, offset: int, following: int | None, sequence: int, *, salt: int, sector: int
) -> str:
    """Why the bytes from ``offset`` on, where the frame of ``sequence`` should be and none is, were
    changed after they were written; "" = a crash can have left them. ``following``: where the next
    good frame begins, if there is one. ``sector``: how many bytes a disk writes as a whole."""
    front = read_front(data, offset)
    end = len(data) if following is None else following
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
    ends_early = following is None and offset + front.whole > len(data)
    if ends_early and not is_frame_of_size(data, offset, end, salt):
        return ""
    return "all of its bytes are there, and they are not those that were written"


def _has_hole(data: bytes, start: int, end: int, sector: int) -> bool:
    """Whether a sector, as far as it lies between the two, may not have been written."""
    edges = [start, *range(start - start % sector + sector, end, sector), end]
    return any(not data[one:other].strip(b"\0") for one, other in pairwise(edges))
