"""The formats of everything that one process writes and another one, perhaps of another release,
reads: files, objects of a store, documents that users keep, and messages without a handshake.

Each has a number. A change of its bytes, or of what they mean, gives it the next one, also where
Protobuf or JSON would let an older reader pass over the change. A reader checks the number before
it relies on anything else, and refuses a number that it does not know with ``UnknownFormat``, which
is not damage. ``docs/formats.md`` has the same table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from remuda.errors import RemudaError, UnknownFormat, VersionMismatch


@dataclass(frozen=True, slots=True)
class Format:
    """``what`` is read, in words, with its article. This release writes the format ``number`` and
    reads those from ``oldest`` to ``number``. ``message``: it is sent, and kept nowhere."""

    what: str
    number: int
    oldest: int = 1
    message: bool = False

    def check(self, found: object, where: str = "") -> int:
        """The number that was found. ``where``: the file or object. Raises UnknownFormat, or
        VersionMismatch for a message, unless this release reads it."""
        if isinstance(found, int) and not isinstance(found, bool):
            if self.oldest <= found <= self.number:
                return found
            shown = str(found)
        else:  # its number is no number: a later release may write versions in another form
            shown = repr(found)[:20]
        raise self._refusal(shown, found, where)

    @property
    def known(self) -> str:
        """The formats that this release reads, in words."""
        if self.oldest == self.number:
            return f"format {self.number}"
        return f"formats {self.oldest} to {self.number}"

    def _refusal(self, shown: str, found: object, where: str) -> RemudaError:
        place = f"{where}: " if where else ""
        text = f"{place}{self.what} has format {shown}; this release of Remuda reads {self.known}"
        if self.message:
            return VersionMismatch(text, hint="Run the same release of Remuda on both sides.")
        age = "An older" if isinstance(found, int) and found < self.oldest else "A newer"
        return UnknownFormat(
            text,
            hint=f"{age} release of Remuda wrote it, or its number is damaged. Read it with the"
            " release that wrote it; it is left as it is.",
        )


LOG_SEGMENT: Final = Format("the segment of a log", 1)
FOLDER_STATE: Final = Format("the state of a member's folder", 1)
CHECKPOINT: Final = Format("the head of a checkpoint", 1)
MANIFEST: Final = Format("the manifest of a snapshot", 2)
CUT_RECORD: Final = Format("the record of a cut", 1)
ARCHIVE_NOTE: Final = Format("the note of a log archive", 1)
SEALED_OBJECT: Final = Format("the encrypted object", 1)
USERS_FILE: Final = Format("the users file", 2)
STREAM_POSITION: Final = Format("the position of a change stream", 1)
SPARK_OFFSET: Final = Format("the offset of a Spark stream", 1)
SPARK_TABLE: Final = Format("the table in Spark's catalog", 1)
HOSTING_LINE: Final = Format("a message between Spark's driver and its tasks", 1, message=True)
PLAN: Final = Format("a plan", 1, message=True)
