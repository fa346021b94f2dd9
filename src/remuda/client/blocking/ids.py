"""Unique numbers of a sequence, for threads."""

from __future__ import annotations

import threading
from collections import deque

from remuda.client.asynchronous.ids import Blocks
from remuda.client.network.driving import finish


class Ids:
    """Unique numbers for keys, from ``client.ids``::

        ids = client.ids("orders")
        orders.put(ids.next(), order)

    Every client of the cluster gets other numbers, also after members were lost. The numbers of a
    block are used in ascending order; those that are left when the program ends are skipped.
    Threads may share it. It is an iterator without an end, too.
    """

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._left: deque[int] = deque()
        self._taking = threading.Lock()

    def next(self) -> int:
        """The next number; one of ``block`` calls asks the cluster. Raises UndefinedMap,
        WrongObjectType without a sequence, SequenceExhausted at its end,
        InsufficientPrivilege, and the errors of statements."""
        with self._taking:
            if not self._left:
                self._left.extend(finish(self._blocks.take()))
            return self._left.popleft()

    def __iter__(self) -> Ids:
        return self

    def __next__(self) -> int:
        return self.next()
