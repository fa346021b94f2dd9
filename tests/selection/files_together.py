"""The order of test files, and their processes, in a run with several processes."""

from __future__ import annotations

from typing import Any

from file_costs import LONG, file_of, read_costs
from xdist.scheduler import LoadScopeScheduling

ONE_PROCESS = ("tests/spark/",)
"""Folders whose tests share one Java process and its cluster for the session."""


class FilesTogether(LoadScopeScheduling):
    """The tests of a file run in one process, in order: their clusters are started once. The file
    that takes longest starts first, so that at the end no process works on alone.

    The parent class looks for each test in the list of all tests, and counts all finished tests
    after each test. With thousands of tests that takes a core from the processes that run them.
    """

    def __init__(self, config: Any, log: Any = None) -> None:
        super().__init__(config, log)
        self._positions: dict[str, int] = {}

    def _split_scope(self, nodeid: str) -> str:
        file = file_of(nodeid)
        return next((folder for folder in ONE_PROCESS if file.startswith(folder)), file)

    def _check_nodes_have_same_collection(self) -> bool:
        """The parent asks once, before it fills the queue."""
        same = bool(super()._check_nodes_have_same_collection())
        if same:
            self._prepare()
        return same

    def _prepare(self) -> None:
        """Fill the queue, the longest first: the parent keeps the order of entries it finds."""
        collected = next(iter(self.registered_collections.values()))
        self._positions = {nodeid: position for position, nodeid in enumerate(collected)}
        files: dict[str, set[str]] = {}
        for nodeid in collected:
            files.setdefault(self._split_scope(nodeid), set()).add(file_of(nodeid))
        costs = read_costs()
        seconds = {
            scope: sum(costs.get(name, LONG) for name in names) for scope, names in files.items()
        }
        for scope in sorted(files, key=lambda scope: -seconds[scope]):
            self.workqueue[scope] = {}

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        nodeid = self.registered_collections[node][item_index]
        scope = self._split_scope(nodeid)
        units = self.assigned_work[node]
        del units[scope][nodeid]
        if not units[scope]:
            del units[scope]
        self._reschedule(node)

    def remove_node(self, node: Any) -> str | None:
        """The test that ran when the process ended, or None. The others that the process had left
        are next for the others; the parent class would run that test again, and lose the next
        process by it."""
        units = self.assigned_work.pop(node)
        crashed = next((nodeid for unit in units.values() for nodeid in unit), None)
        if crashed is None:
            return None
        del units[self._split_scope(crashed)][crashed]
        for scope in reversed(units):
            if units[scope]:
                self.workqueue[scope] = units[scope]
                self.workqueue.move_to_end(scope, last=False)
        for other in self.assigned_work:
            self._reschedule(other)
        return crashed

    def _assign_work_unit(self, node: Any) -> None:
        scope, unit = self.workqueue.popitem(last=False)
        self.assigned_work[node].setdefault(scope, {}).update(unit)
        node.send_runtest_some([self._positions[nodeid] for nodeid in unit])
