"""What a client remembers of the answers to statements that it ran as text."""

from __future__ import annotations

from typing import Final

from remuda.client.requests.pages import Header

_KEPT: Final = 256


class KnownHeaders:
    """Headers of statements that read by key, by text: a statement that comes again goes straight
    to the member that owns its key, and its answer need not say the columns again. A header that
    is no longer right costs a hop, nothing more: the answer brings the new one. Thread-safe.
    """

    def __init__(self) -> None:
        self._headers: dict[str, Header] = {}

    def get(self, text: str) -> Header | None:
        return self._headers.get(text)

    def learn(self, text: str, header: Header | None) -> None:
        """Keep the header of an answer that has a form; others may be large and are read anyway."""
        if header is None or header.form == 0 or self._headers.get(text) is header:
            return
        self._headers[text] = header
        if len(self._headers) > _KEPT:
            self._headers.pop(next(iter(list(self._headers))), None)
