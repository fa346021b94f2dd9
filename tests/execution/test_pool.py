"""Turns of the queries in the pool, and every interleaving of a delivery with a slice."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator

import pytest

from remuda.execution.batch import Batch
from remuda.execution.context import FragmentContext
from remuda.execution.contract import Operator, Progress
from remuda.execution.fragment import FragmentInstance
from remuda.execution.instances import Sites
from remuda.execution.pool import Pool, Rotation
from remuda.query.ids import QueryId


class Task:
    def __init__(self, query: str, name: str = "", run: Callable[[], None] = lambda: None) -> None:
        self.query, self.name, self.run = query, name, run

    def run_slice(self) -> None:
        self.run()


def drained(rotation: Rotation, count: int) -> str:
    return " ".join(rotation.take().name for _ in range(count))


def test_queries_take_turns_whatever_the_number_of_their_fragments():
    rotation = Rotation()
    for name in ("a1", "a2", "a3", "a4", "b1", "c1", "c2"):
        rotation.add(Task(name[0], name))
    assert drained(rotation, 4) == "a1 b1 c1 a2"
    rotation.add(Task("b", "b2"))
    assert drained(rotation, 4) == "c2 a3 b2 a4"
    rotation.add(Task("a", "a5"))
    assert drained(rotation, 1) == "a5"


@pytest.mark.parametrize("crowd", [1, 100])
def test_a_crowd_of_fragments_does_not_hold_up_a_short_query(crowd):
    """The short query needs five slices; the other always has ``crowd`` of them waiting."""
    later: list[Callable[[], None]] = []
    pool = Pool(0, None, later=later.append)
    slices = {"long": 0, "short": 0}

    def work(task: Task) -> None:
        slices[task.query] += 1
        if task.query == "long" or slices["short"] < 5:
            pool.submit(task)

    tasks = [Task("long") for _ in range(crowd)]
    tasks.append(Task("short"))
    for task in tasks:
        task.run = lambda task=task: work(task)
        pool.submit(task)
    while slices["short"] < 5:
        later.pop(0)()
    assert slices["long"] <= 6


def test_a_task_that_raises_does_not_end_the_thread(caplog):
    done = threading.Event()

    def fail() -> None:
        raise RuntimeError("oops")

    class Threads:
        def start_thread(self, target, name):
            thread = threading.Thread(target=target, name=name, daemon=True)
            thread.start()
            return thread

    pool = Pool(1, Threads())
    pool.submit(Task("a", run=fail))
    pool.submit(Task("b", run=done.set))
    assert done.wait(30)
    pool.close()
    assert "oops" in caplog.text


# --- every interleaving ---
# Threads run one at a time. Before each step on what they share (the instance's lock, its mailbox,
# the pool's queue) a thread hands over to the explorer, which decides who goes on. It goes through
# all decisions, depth first.


class Explorer:
    """One run under the decisions ``path``; beyond it the first runnable thread is taken."""

    def __init__(self, path: list[int]) -> None:
        self.path = path
        self.choices: list[int] = []  # how many threads could have gone on at each decision
        self.turn = threading.Semaphore(0)
        self.threads: list[Stepped] = []
        self.current: Stepped | None = None

    def point(self, blocked: Callable[[], bool] | None = None) -> None:
        """The thread that calls it stands before a step; not runnable while ``blocked()``."""
        me = self.current
        if me is None:
            return
        me.blocked = blocked
        self.turn.release()
        me.go.acquire()
        me.blocked = None

    def run(self, targets: list[Callable[[], None]]) -> None:
        self.threads = [Stepped(self, target) for target in targets]
        while True:
            alive = [t for t in self.threads if not t.over]
            runnable = [t for t in alive if t.blocked is None or not t.blocked()]
            if not runnable:
                break
            depth = len(self.choices)
            choice = self.path[depth] if depth < len(self.path) else 0
            self.choices.append(len(runnable))
            self.current = runnable[choice]
            self.current.go.release()
            self.turn.acquire()
            self.current = None
        for thread in self.threads:
            if not thread.over:
                thread.abandoned = True
                thread.go.release()
                thread.thread.join()


class Stepped:
    def __init__(self, explorer: Explorer, target: Callable[[], None]) -> None:
        self.go = threading.Semaphore(0)
        self.over = self.abandoned = False
        self.blocked: Callable[[], bool] | None = None

        def work() -> None:
            self.go.acquire()
            if not self.abandoned:
                target()
            self.over = True
            explorer.turn.release()

        self.thread = threading.Thread(target=work, daemon=True)
        self.thread.start()


class SteppedLock:
    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self.held = False

    def __enter__(self) -> None:
        self.explorer.point(lambda: self.held)
        assert not self.held
        self.held = True

    def __exit__(self, *_: object) -> None:
        self.held = False


class SteppedMailbox(deque):
    explorer: Explorer

    def append(self, message) -> None:
        self.explorer.point()
        super().append(message)

    def __len__(self) -> int:
        self.explorer.point()
        return super().__len__()


class SteppedPool:
    """A queue and one thread that runs what is in it, until nothing comes any more."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self.tasks: deque = deque()
        self.submitted = 0

    def submit(self, task, inline: bool = False) -> None:
        self.explorer.point()
        assert task not in self.tasks, "submitted twice"
        self.submitted += 1
        self.tasks.append(task)

    def work(self, slices: int) -> None:
        for _ in range(slices):
            self.explorer.point(lambda: not self.tasks)
            if not self.tasks:
                return  # abandoned: nothing came
            self.tasks.popleft().run_slice()


class Counting(Operator):
    def __init__(self) -> None:
        self.seen = 0

    def advance(self) -> Progress:
        return Progress.WAIT

    def current_batch(self) -> Batch:
        return Batch([], 0)

    def close(self) -> None:
        pass


class Listener:
    def on_done(self, profile) -> None: ...

    def on_failed(self, fragment, error) -> None:
        raise error


def explored(kind: type[FragmentInstance], deliverers: int, limit: int) -> Iterator[int]:
    """How many messages were seen at the end of each run, over all interleavings."""
    path: list[int] = []
    for _ in range(limit):
        explorer = Explorer(path)
        pool = SteppedPool(explorer)
        root = Counting()
        context = FragmentContext(
            query=QueryId(1, 1), member=1, parameters=(), read_timestamp=1, owners=[1],
            sites=Sites({}), sources=None, exchange=None, clock=lambda: 0.0,
        )  # fmt: skip
        made = kind(
            fragment=0, root=root, inboxes={}, outbox=None, profiles=list, context=context,
            pool=pool, listener=Listener(), inline=False,
        )  # fmt: skip
        made._lock = SteppedLock(explorer)
        made._mailbox = SteppedMailbox()
        made._mailbox.explorer = explorer

        def see(root: Counting = root) -> None:
            root.seen += 1

        posts = [lambda made=made, see=see: made.post(see) for _ in range(deliverers)]
        explorer.run([*posts, lambda pool=pool: pool.work(2 * deliverers + 2)])
        yield root.seen
        path = explorer.path + [0] * (len(explorer.choices) - len(explorer.path))
        while path and path[-1] == explorer.choices[len(path) - 1] - 1:
            path.pop()
        if not path:
            return
        path[-1] += 1
    pytest.fail(f"more than {limit} interleavings")


def test_no_interleaving_of_two_deliveries_with_slices_loses_a_message():
    seen = list(explored(FragmentInstance, 2, 60_000))
    assert set(seen) == {2}
    assert len(seen) > 1000


class Forgetful(FragmentInstance):
    """Goes to sleep without asking whether something happened since it looked."""

    def run_slice(self) -> None:
        with self._lock:
            self._wanted = False
        self._work(1.0)
        with self._lock:
            self._queued = False


class Hasty(FragmentInstance):
    """Clears the mark after it has looked, so a message in between is not noticed."""

    def run_slice(self) -> None:
        self._work(1.0)
        with self._lock:
            self._wanted = False
        with self._lock:
            if not self._wanted:
                self._queued = False
                return
        self._pool.submit(self, self._inline)


@pytest.mark.parametrize("broken", [Forgetful, Hasty])
def test_the_explorer_finds_lost_wake_ups(broken):
    found = itertools.islice(explored(broken, 2, 60_000), 20_000)
    assert any(seen < 2 for seen in found)


class CountedWorkers:
    def __init__(self) -> None:
        self.started: list[str] = []

    def start_thread(self, target: Callable[[], None], name: str) -> threading.Thread:
        self.started.append(name)
        thread = threading.Thread(target=target, daemon=True)
        thread.start()
        return thread


def test_the_threads_start_with_the_first_slice_and_not_after_the_end():
    workers = CountedWorkers()
    pool = Pool(2, workers, "some")
    assert workers.started == []
    ran = threading.Event()
    pool.submit(Task("a", run=ran.set))
    assert ran.wait(30)
    pool.submit(Task("a"))
    pool.close()
    assert workers.started == ["some-0", "some-1"]

    unused = Pool(2, workers, "other")
    unused.close()
    unused.submit(Task("a"))
    assert workers.started == ["some-0", "some-1"]
