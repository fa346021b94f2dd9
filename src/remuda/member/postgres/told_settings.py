"""Settings of a session that its client hears of (ParameterStatus)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from remuda.postgres.messages import parameter_status
from remuda.session.client_session import ClientSession
from remuda.session.settings import SETTINGS

REPORTED: Final = (
    "server_version",
    "server_encoding",
    "client_encoding",
    "application_name",
    "default_transaction_read_only",
    "DateStyle",
    "IntervalStyle",
    "TimeZone",
    "integer_datetimes",
    "standard_conforming_strings",
)
"""Settings that clients are told of, when they connect and when they change."""


class ToldSettings:
    def __init__(self, speaks: Callable[[str], None]) -> None:
        """``speaks`` hears of the encoding of the client."""
        self._speaks = speaks
        self._values: dict[str, str] = {}
        self._session: ClientSession | None = None
        """All reported settings of this one have been told."""

    def changes(self, session: ClientSession) -> list[bytes]:
        """A message for each setting that the client has not been told of."""
        if session is self._session:
            return []
        self._session = session
        parts: list[bytes] = []
        for name in REPORTED:
            value = session.value(SETTINGS[name.lower()])
            if self._values.get(name) != value:
                self._values[name] = value
                if name == "client_encoding":
                    self._speaks(value)
                parts.append(parameter_status(name, value))
        return parts
