"""Errors of statements that run on Spark."""

from __future__ import annotations

from remuda.errors import NotSupported, TransientError


class NotOnSpark(NotSupported):
    """Spark does not give the same answer to this statement: it runs on the grid only."""


class SparkServiceMissing(TransientError):
    """No service with a Spark session serves this member."""

    sqlstate = "57P03"
    may_have_run = False


class SparkServiceLost(TransientError):
    """The service that ran the statement on Spark is gone."""

    sqlstate = "08006"


class SparkFailed(TransientError):
    """Spark could not run a statement, for a reason that is no error of the statement."""

    sqlstate = "58000"
