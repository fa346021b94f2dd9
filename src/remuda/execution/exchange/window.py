"""The size of a stream's window: both ends compute it from the plan, so they agree."""

from __future__ import annotations

from collections.abc import Mapping

from remuda.limits import ENCODED_BATCH_SIZE_MAX, FRAGMENT_RECEIVE_BUDGET, STREAM_WINDOW_SIZE
from remuda.plan.physical import Fragment, Receive, inputs_of

WINDOW_MIN = 256 * 1024


def receives_of(fragment: Fragment) -> list[Receive]:
    """The Receive nodes of a fragment in pre-order."""
    found: list[Receive] = []
    nodes = [fragment.root]
    while nodes:
        node = nodes.pop()
        if isinstance(node, Receive):
            found.append(node)
        nodes.extend(reversed(inputs_of(node)))
    return found


def stream_window(receiver: Fragment, sites: Mapping[int, tuple[int, ...]]) -> int:
    """Bytes that each sender to ``receiver`` may have on its way: the full window, or a fair share
    of the fragment's receive budget when it has many senders."""
    senders = sum(len(sites[receive.sender_fragment]) for receive in receives_of(receiver))
    return max(WINDOW_MIN, min(STREAM_WINDOW_SIZE, FRAGMENT_RECEIVE_BUDGET // max(senders, 1)))


def batch_size_max(window: int) -> int:
    return min(ENCODED_BATCH_SIZE_MAX, window // 2)
