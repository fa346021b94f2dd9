"""The size of a stream's window: both ends compute it from the plan, so they agree."""

from __future__ import annotations

from remuda.execution.instances import Sites
from remuda.limits import ENCODED_BATCH_SIZE_MAX, FRAGMENT_RECEIVE_BUDGET, STREAM_WINDOW_SIZE
from remuda.plan.physical import Fragment, Receive

WINDOW_MIN = 256 * 1024


def receives_of(fragment: Fragment) -> list[Receive]:
    """The Receive nodes of a fragment in pre-order."""
    return [node for node in fragment.nodes if isinstance(node, Receive)]


def stream_window(receiver: Fragment, sites: Sites) -> int:
    """Bytes that each sender to ``receiver`` may have on its way: the full window, or a fair share
    of the receive budget that the instances of the fragment on one member have together."""
    senders = sum([len(sites.endpoints(r.sender_fragment)) for r in receives_of(receiver)])
    streams = max(senders * sites.instances(receiver.id), 1)
    return max(WINDOW_MIN, min(STREAM_WINDOW_SIZE, FRAGMENT_RECEIVE_BUDGET // streams))


def batch_size_max(window: int) -> int:
    return min(ENCODED_BATCH_SIZE_MAX, window // 2)
