"""The errors of transactions of several statements, with PostgreSQL's codes. The others that they
meet are in ``errors``: SerializationFailure, SnapshotTooOld, NoActiveTransaction, LimitExceeded.
"""

from __future__ import annotations

from remuda.errors import InputError, TransientError


class ActiveTransaction(InputError):
    """What cannot be done inside a transaction."""

    sqlstate = "25001"


class ReadOnlyTransaction(InputError):
    """A write in a transaction that only reads."""

    sqlstate = "25006"


class FailedTransaction(InputError):
    """An earlier statement failed: only a rollback is possible."""

    sqlstate = "25P02"


class UndefinedSavepoint(InputError):
    sqlstate = "3B001"


class UndefinedTransaction(TransientError):
    """The transaction has ended, or this member never knew it."""

    sqlstate = "25P01"
    may_have_run = False


class TransactionTimeout(TransientError):
    """It took longer than it may, and was rolled back."""

    sqlstate = "25P04"
    may_have_run = False


class TransactionSuspended(InputError):
    """It must be resumed before it is used."""

    sqlstate = "55000"


class DeadlockDetected(TransientError):
    """Transactions wait for each other in a circle; this one was chosen to give way."""

    sqlstate = "40P01"
    may_have_run = False


class LockNotAvailable(TransientError):
    """Another transaction holds the lock for longer than the request may wait."""

    sqlstate = "55P03"
    may_have_run = False
