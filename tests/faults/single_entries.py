"""Whether statements on one entry could have happened one after the other, with the answers that
their users got.

A search for an order (J. M. Wing, C. Gong, Testing and Verifying Concurrent Objects, 1993): any
call that began before the first end among the rest may come next, if the entry gives it the answer
that was heard. States that were reached before are not searched again (G. Lowe, 2017). Entries are
judged one by one, since a history of calls on single objects is linearizable when that of each
object is.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

STEPS_MAX = 2_000_000
"""A search that takes more has no verdict, which is an error of the test."""


@dataclass(frozen=True)
class Call:
    """``change`` takes the value of the entry (None: there is none), and gives the next one and the
    answer. ``answer`` is that of the user; ``known`` is False for a call whose outcome nobody
    knows: it may take effect at any time after it began, or never. Times in seconds."""

    key: Hashable
    text: str
    change: Callable[[Any], tuple[Any, Hashable]]
    began: float
    ended: float = math.inf
    answer: Hashable = None
    known: bool = True

    def __str__(self) -> str:
        end = f"{self.ended:.4f}" if self.known else "..."
        return f"{self.began:.4f}-{end} {self.text} -> {self.answer if self.known else 'unknown'}"


def violations(calls: Iterable[Call]) -> list[str]:
    """One text for each key whose calls have no order."""
    by_key: dict[Hashable, list[Call]] = defaultdict(list)
    for call in calls:
        by_key[call.key].append(call)
    return [text for found in by_key.values() if (text := violation(found))]


def violation(calls: Sequence[Call]) -> str:
    """ "": there is an order that begins without an entry."""
    calls = sorted(calls, key=lambda call: call.began)
    needed = sum(1 << place for place, call in enumerate(calls) if call.known)
    seen = {(0, None)}
    front: list[tuple[int, Any]] = [(0, None)]
    furthest, stuck = 0, None
    while front:
        done, value = front.pop()
        if done & needed == needed:
            return ""
        if len(seen) > STEPS_MAX:
            raise AssertionError(f"no verdict about {len(calls)} calls of key {calls[0].key}")
        if (done & needed).bit_count() >= furthest:
            furthest, stuck = (done & needed).bit_count(), (done, value)
        for place in reversed(_next(calls, done)):
            call = calls[place]
            after, answer = call.change(value)
            if answer != call.answer if call.known else after == value:
                continue
            reached = (done | 1 << place, after)
            if reached not in seen:
                seen.add(reached)
                front.append(reached)
    assert stuck is not None
    done, value = stuck
    rest = [calls[place] for place in _next(calls, done)]
    before = [call for place, call in enumerate(calls) if done >> place & 1][-6:]
    lines = [f"key {calls[0].key!r}: no order of {len(calls)} calls gives these answers"]
    lines += [f"  {call}" for call in before]
    lines += [f"  the entry would be {value!r}, and then one of"]
    return "\n".join([*lines, *(f"  {call}" for call in rest[:8])])


def _next(calls: Sequence[Call], done: int) -> list[int]:
    """The calls that may come next: those that began before all of the rest had ended."""
    found, first_end = [], math.inf
    for place, call in enumerate(calls):
        if call.began > first_end:
            break
        if not done >> place & 1:
            found.append(place)
            first_end = min(first_end, call.ended)
    return found
