"""Every order of E, B1, B2, C, L as the initiator and a participant see it.

E: the query starts (``Begin`` on its initiator, QUERY_START on a participant). B1, B2: the two
batches of a stream from member 3, the second one marked last. C: cancel (asked for by member 3;
told by the initiator). L: a member leaves (member 3 on the initiator, the initiator on a
participant). One line per order: what each event causes, what came out of the stream, what is left.
"""

from __future__ import annotations

from itertools import permutations

import pytest

from remuda.errors import MemberUnavailable, TransientError
from remuda.query import effects as do
from remuda.query import events as on
from remuda.query.ids import QueryId
from remuda.query.registry import QueryRegistry
from remuda.query.stream import ReceiverStream

SENDER = 3
BATCHES = {"B1": (0, False), "B2": (1, True)}


class Trial:
    """A registry, and one fragment that receives one stream."""

    def __init__(self, role: str, *, ordered: bool) -> None:
        self.me = 1 if role == "initiator" else 2
        self.query = QueryId(1, 1 << 48 | 1)
        self.registry = QueryRegistry(self.me)
        self.ordered = ordered
        self.stream: ReceiverStream[str] | None = None
        self.rows: list[str] = []
        self.step(on.ViewInstalled(1, (1, 2, 3)))

    def step(self, event: on.Event) -> str:
        told = [self.perform(effect) for effect in self.registry.step(0.0, event)]
        return "+".join(dict.fromkeys(told)) or "-"

    def perform(self, effect: do.Effect) -> str:
        match effect:
            case do.StartFragments():
                self.stream = ReceiverStream(1000, self.ordered, 0.0)
                return "run"
            case do.DeliverBatch(_, name):
                assert self.stream is not None, "a batch for a fragment that does not run"
                got = self.stream.receive(BATCHES[name][0], 100, BATCHES[name][1], name, 0.0)
                self.rows += got
                return "deliver"
            case do.CancelFragments():
                self.stream = None
                return "stop"
            case do.Forget():
                return "forget"
            case do.SendStart():
                return "send-start"
            case do.SendCancel():
                return "send-cancel"
            case do.FailQuery():
                return "fail"
            case do.Discard():
                return "drop"
        raise AssertionError(effect)

    def event(self, name: str) -> on.Event:
        query, start = self.query, "start"
        stop = TransientError("stop", member="3")
        match name:
            case "E" if self.me == 1:
                return on.Begin(query, (1, 2, 3), (0,), root=0, start=start)
            case "E":
                return on.StartReceived(query, 1, 1, (1, 2, 3), (1,), start)
            case "B1" | "B2":
                return on.BatchReceived(query, SENDER, 100, name)
            case "C":
                return on.CancelReceived(query, SENDER if self.me == 1 else 1, SENDER, stop)
            case "L":
                left = 3 if self.me == 1 else 1
                return on.MemberLeft(left, MemberUnavailable("left", member=str(left)))
        raise AssertionError(name)

    def left(self) -> str:
        state = self.registry
        what = "nothing" if not len(state) else str(state).split(" ", 1)[1]
        if self.stream is not None:
            what += ", a stream" + (" that has ended" if self.stream.ended else "")
        return what


@pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "unordered"])
@pytest.mark.parametrize("role", ["initiator", "participant"])
def test_every_order(role, ordered, golden):
    kind = "ordered" if ordered else "unordered"
    lines = [f"# {role}, {kind} stream: events | rows handed out | what is left"]
    for order in permutations(("E", "B1", "B2", "C", "L")):
        trial = Trial(role, ordered=ordered)
        steps = [f"{name} {trial.step(trial.event(name))}" for name in order]
        lines.append(f"{'; '.join(steps)} | {' '.join(trial.rows) or 'none'} | {trial.left()}")
        assert trial.registry.early_size == 0, lines[-1]
        assert trial.left() == "nothing", lines[-1]
    golden.check(f"query_orders/{role}_{kind}.golden", "\n".join(lines))
