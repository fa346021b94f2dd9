"""Things that must not go on in a child process after ``fork``: sockets that the parent reads from,
and locks that another thread of the parent held."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class _Forgets(Protocol):
    def after_fork(self) -> None:
        """In the child: give up everything that the parent still uses, without touching it."""
        ...


_known: weakref.WeakSet[_Forgets] = weakref.WeakSet()


def forget_in_children(owner: _Forgets) -> None:
    """Call ``owner.after_fork`` in every process that is forked from this one."""
    _known.add(owner)


def _forget() -> None:
    for owner in list(_known):
        owner.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
