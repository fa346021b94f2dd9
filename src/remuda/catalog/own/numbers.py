"""The numbers of a temporary sequence, which one session takes."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.datatypes.schema import SequenceOptions
from remuda.datatypes.sequences import NumberBlock, SequenceState, taken


class OwnNumbers:
    """The state of one sequence. ``take`` and ``set`` change it at once. A rollback gives no number
    back, as with other sequences."""

    def __init__(self, state: SequenceState) -> None:
        self.state = state

    def take(self, options: SequenceOptions, wanted: int) -> Sequence[NumberBlock]:
        """So many numbers, in order; fewer if the sequence ends."""
        blocks: list[NumberBlock] = []
        while wanted:
            found = taken(options, self.state, wanted)
            if found is None:
                break
            self.state, block = found
            blocks.append(block)
            wanted -= block.count
        return blocks

    def set(self, last_value: int, *, is_called: bool) -> None:
        self.state = SequenceState(last_value, is_called, self.state.generation + 1)
