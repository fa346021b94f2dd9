"""Golden scripts of the query registry: commands, ``---``, the effects they cause.

A name such as ``q@1`` is a query that member 1 began. Event orders in file names: E start
(execute), B batch, C cancel, L a member leaves.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from remuda.errors import MemberUnavailable, TransientError
from remuda.query import events as on
from remuda.query.events import Event
from remuda.query.ids import QueryId
from remuda.query.registry import QueryRegistry

SCRIPTS = Path(__file__).parent.parent / "golden" / "query"


class Script:
    """One registry, driven by commands."""

    def __init__(self) -> None:
        self.registry: QueryRegistry
        self.now = 0.0
        self.names: dict[str, QueryId] = {}

    def query(self, name: str) -> QueryId:
        if name not in self.names:
            number = len(self.names) + 1
            self.names[name] = QueryId(number, int(name.split("@")[1]) << 48 | number)
        return self.names[name]

    def show(self, text: str) -> str:
        for name, query in self.names.items():
            text = text.replace(str(query), name)
        return text

    def run(self, line: str) -> list[str]:
        command, *words = shlex.split(line)
        options = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        if command == "member":
            early = int(options.get("early_max", 1000))
            active = int(options.get("active_max", 10))
            self.registry = QueryRegistry(int(plain[0]), early_size_max=early, active_max=active)
            members = numbers(options["of"])
            return self.step(on.ViewInstalled(int(options.get("view", 1)), members))
        if command == "at":
            self.now = float(plain[0])
            return []
        if command == "print":
            return [*str(self.registry).splitlines(), f"early {self.registry.early_size} bytes"]
        return self.step(self.event(command, plain, options))

    def step(self, event: Event) -> list[str]:
        return [str(effect) for effect in self.registry.step(self.now, event)]

    def event(self, command: str, plain: list[str], options: dict[str, str]) -> Event:
        sender = int(options.get("from", 0))
        if command in ("check", "check_response"):
            queries = tuple(self.query(name) for name in plain)
            if command == "check":
                return on.CheckReceived(sender, queries)
            return on.CheckResponseReceived(sender, queries)
        if command == "left":
            error = MemberUnavailable(f"member {plain[0]} left: connection reset", member=plain[0])
            return on.MemberLeft(int(plain[0]), error)
        if command == "view":
            return on.ViewInstalled(int(plain[0]), numbers(options["of"]))
        if command == "tick":
            return on.Tick()
        query = self.query(plain[0])
        match command:
            case "begin":
                timeout = options.get("timeout")
                return on.Begin(
                    query,
                    numbers(options["participants"]),
                    numbers(options.get("fragments", "0,1")),
                    root=0,
                    start="start",
                    timeout=None if timeout is None else float(timeout),
                    profiled="reports" in options,
                    owed={2: int(options.get("owed", 1))},
                    instances=counts(options),
                )
            case "start":
                return on.StartReceived(
                    query,
                    sender,
                    int(options.get("view", 1)),
                    (1, 2, 3),
                    numbers(options.get("fragments", "1")),
                    "start",
                    counts(options),
                )
            case "batch":
                return on.BatchReceived(query, sender, int(options.get("size", 100)), plain[1])
            case "flow":
                return on.FlowControlReceived(query, sender, plain[1])
            case "cancel":
                by = int(options.get("by", sender))
                error = TransientError(options.get("message", "stop"), member=str(by))
                return on.CancelReceived(query, sender, by, error)
            case "finished":
                return on.FragmentFinished(query, *instance(plain[1]))
            case "done":
                return on.FragmentDoneReceived(query, sender, *instance(plain[1]))
            case "failed":
                return on.QueryFailed(query, TransientError(options.get("message", "broken")))
            case "progressed":
                return on.Progressed(query)
            case "expired":
                return on.Expired(query)
        raise ValueError(f"unknown command {command}")


def counts(options: dict[str, str]) -> dict[int, int]:
    """``instances=1:2,3:4``: how many of which fragment."""
    pairs = (part.split(":") for part in options.get("instances", "").split(",") if part)
    return {int(fragment): int(count) for fragment, count in pairs}


def instance(text: str) -> tuple[int, None, int]:
    """``1.2`` is instance 2 of fragment 1, ``1`` its instance 0; without a profile."""
    fragment, _, number = text.partition(".")
    return int(fragment), None, int(number or 0)


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def replay(text: str) -> str:
    """The script with the output of each block written anew."""
    script = Script()
    out: list[str] = []
    reading = True
    pending: list[str] = []
    for line in text.splitlines():
        if line.startswith("#"):
            out.append(line)
        elif reading and line == "---":
            effects = [effect for command in pending for effect in script.run(command)]
            out += [*pending, "---", *map(script.show, effects or ["nothing"]), ""]
            pending, reading = [], False
        elif not line:
            reading = True
            if out and out[-1].startswith("#"):
                out.append("")
        elif reading:
            pending.append(line)
    assert not pending, f"commands without '---': {pending}"
    return "\n".join(out)


@pytest.mark.parametrize("name", sorted(path.stem for path in SCRIPTS.glob("*.golden")))
def test_script(name, golden):
    path = SCRIPTS / f"{name}.golden"
    golden.check(f"query/{name}.golden", replay(path.read_text(encoding="utf-8")))
