"""Facts that Spark's scheduler knows and no public API of PySpark tells: slots, and why tasks
failed. Classic sessions only; all of it goes through the gateway to Java."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

TASKS_READ: Final = 10_000


@dataclass(frozen=True, slots=True)
class Slots:
    """Tasks that may run at a time, and how many do now."""

    total: int
    busy: int


def stopped(context: Any) -> bool:
    """Whether a SparkContext can run nothing any more."""
    return context._jsc is None or bool(_scala(context).isStopped())  # noqa: SLF001


def slots_of(context: Any) -> Slots:
    """Of the default resource profile, as far as executors have registered."""
    scala = _scala(context)
    tracker = context.statusTracker()
    busy = 0
    for stage in tracker.getActiveStageIds():
        info = tracker.getStageInfo(stage)
        busy += 0 if info is None else int(info.numActiveTasks)
    profile = scala.resourceProfileManager().defaultResourceProfile()
    return Slots(int(scala.maxNumConcurrentTasks(profile)), busy)


def failures_of_group(context: Any, group: str) -> list[str]:
    """The error texts of the failed tasks of a job group, in order."""
    tracker = context.statusTracker()
    store = _scala(context).statusStore()
    found: list[str] = []
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in () if info is None else info.stageIds:
            seen = tracker.getStageInfo(stage)
            if seen is None or not seen.numFailedTasks:
                continue
            tasks = store.taskList(stage, seen.currentAttemptId, TASKS_READ)
            for index in range(tasks.size()):
                message = tasks.apply(index).errorMessage()
                if message.isDefined():
                    found.append(str(message.get()))
    return found


def _scala(context: Any) -> Any:
    return context._jsc.sc()  # noqa: SLF001
