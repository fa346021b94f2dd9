"""The numbers of sequences that one member has taken and not given out yet. Pure.

::

    statement          this member                     owner of the sequence's state
    Take(5) ─────────► queue                                     │
                         │ Ask(5) ──────────────────────────────►│ state + 5, on all copies
                         │◄──────────────────── Granted(1 .. 5) ─│
      ◄── Give(1 .. 5)

The owner answers when all copies have the state without the block, so no block is granted twice
although members are lost. A member has one question open for each sequence, and statements that
come meanwhile share the next one. Numbers that a grant leaves over (CACHE) serve the next
statements.

``setval`` and ALTER SEQUENCE raise the generation of the state. They are done when every member has
taken note (``Void``): from then on no member gives out numbers of an older generation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from remuda.datatypes.sequences import NumberBlock
from remuda.errors import RemudaError

# --- events ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Take:
    """``request`` needs ``wanted`` numbers of ``sequence``. ``cache``: a question asks for no
    fewer. ``leased``: whether numbers that are left over may be given out."""

    sequence: int
    request: int
    wanted: int
    cache: int
    leased: bool


@dataclass(frozen=True, slots=True)
class Withdraw:
    """``request`` is not wanted any more."""

    sequence: int
    request: int


@dataclass(frozen=True, slots=True)
class Granted:
    sequence: int
    block: NumberBlock


@dataclass(frozen=True, slots=True)
class Failed:
    """The question of a sequence ended without a block."""

    sequence: int
    error: RemudaError


@dataclass(frozen=True, slots=True)
class Void:
    """Numbers of generations before ``generation`` are void."""

    sequence: int
    generation: int


@dataclass(frozen=True, slots=True)
class Forget:
    """The sequence was dropped."""

    sequence: int


Event: TypeAlias = Take | Withdraw | Granted | Failed | Void | Forget


# --- effects -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the owner of the state for at most ``count`` numbers."""

    sequence: int
    count: int


@dataclass(frozen=True, slots=True)
class Give:
    request: int
    blocks: tuple[NumberBlock, ...]


@dataclass(frozen=True, slots=True)
class Refuse:
    request: int
    error: RemudaError


Effect: TypeAlias = Ask | Give | Refuse


@dataclass(slots=True)
class _Demand:
    request: int
    wanted: int
    blocks: list[NumberBlock] = field(default_factory=list)

    @property
    def left(self) -> int:
        return self.wanted - sum(block.count for block in self.blocks)


@dataclass(slots=True)
class _Sequence:
    queue: deque[_Demand] = field(default_factory=deque)
    kept: deque[NumberBlock] = field(default_factory=deque)
    cache: int = 1
    asking: bool = False
    generation: int = 0
    """The least one that is not void."""


class NumberBlocks:
    """Of one member. Requests get the numbers of a sequence in the order in which they came."""

    def __init__(self) -> None:
        self._sequences: dict[int, _Sequence] = {}

    def kept(self, sequence: int) -> int:
        """How many numbers are left over."""
        found = self._sequences.get(sequence)
        return 0 if found is None else sum(block.count for block in found.kept)

    def step(self, event: Event) -> list[Effect]:
        found = self._sequences.get(event.sequence)
        if found is None:
            found = self._sequences[event.sequence] = _Sequence()
        match event:
            case Take(request=request, wanted=wanted, cache=cache, leased=leased):
                found.cache = cache
                if not leased:
                    found.kept.clear()
                found.queue.append(_Demand(request, wanted))
            case Withdraw(request=request):
                found.queue = deque(each for each in found.queue if each.request != request)
            case Granted(block=block):
                found.asking = False
                if block.generation >= found.generation:
                    found.kept.append(block)
            case Failed(error=error):
                found.asking = False
                refused = [Refuse(demand.request, error) for demand in found.queue]
                found.queue.clear()
                return [*refused]
            case Void(generation=generation):
                self._void(found, generation)
            case Forget(sequence=sequence):
                del self._sequences[sequence]
                return []
        return list(self._served(event.sequence, found))

    def _void(self, found: _Sequence, generation: int) -> None:
        found.generation = max(found.generation, generation)
        found.kept = _valid(found.kept, found.generation)
        for demand in found.queue:
            demand.blocks = list(_valid(demand.blocks, found.generation))

    def _served(self, sequence: int, found: _Sequence) -> Iterator[Effect]:
        while found.queue:
            demand = found.queue[0]
            while found.kept and demand.left:
                given, rest = found.kept.popleft().divided(demand.left)
                demand.blocks.append(given)
                if rest is not None:
                    found.kept.appendleft(rest)
            if demand.left:
                break
            found.queue.popleft()
            yield Give(demand.request, tuple(demand.blocks))
        if found.queue and not found.asking:
            found.asking = True
            yield Ask(sequence, max(found.cache, sum(demand.left for demand in found.queue)))
        elif not found.queue and found.cache == 1:
            # Nobody waits: what a withdrawn request leaves is skipped, so that the next statement,
            # of whatever member, gets a higher number.
            found.kept.clear()


class StatementNumbers:
    """The numbers that one statement has taken. An attempt that was undone leaves them to the next
    one: a statement takes as many numbers as if it had run once."""

    def __init__(self) -> None:
        self._taken: dict[int, list[NumberBlock]] = {}
        self._left: dict[int, deque[NumberBlock]] = {}

    def again(self) -> None:
        """Another attempt begins."""
        self._left = {sequence: deque(blocks) for sequence, blocks in self._taken.items()}

    def left(self, sequence: int, wanted: int) -> list[NumberBlock]:
        """At most so many of the numbers that an earlier attempt has left, in their order."""
        found: list[NumberBlock] = []
        blocks = self._left.get(sequence)
        while blocks and wanted:
            block, rest = blocks.popleft().divided(wanted)
            if rest is not None:
                blocks.appendleft(rest)
            found.append(block)
            wanted -= block.count
        return found

    def take(self, sequence: int, blocks: Iterable[NumberBlock]) -> None:
        self._taken.setdefault(sequence, []).extend(blocks)


def _valid(blocks: deque[NumberBlock] | list[NumberBlock], generation: int) -> deque[NumberBlock]:
    return deque(block for block in blocks if block.generation >= generation)
