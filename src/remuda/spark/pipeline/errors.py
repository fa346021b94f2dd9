"""Errors of pipelines."""

from __future__ import annotations

from remuda.errors import DataError, InputError


class PipelineInvalid(InputError):
    """The file says something that pipelines do not have: the message names the line."""

    sqlstate = "F0000"  # config_file_error, as PostgreSQL has it


class ExpectationFailed(DataError):
    """Rows broke an expectation whose action is ``fail``: nothing was written by this run."""

    sqlstate = "23514"
