"""What is kept says the version of its format, and one that is not known is refused in words."""

from __future__ import annotations

import json
from pathlib import Path

import google_crc32c
import pytest

from remuda.errors import DataCorrupted
from remuda.member.wal_folder import decode_state
from remuda.storage.format import segment
from remuda.storage.format.manifest import Manifest, decode_manifest, encode_manifest
from remuda.storage.snapshot import archive
from remuda.storage.snapshot.cut_records import CutRecord, decode_record, encode_record

MANIFEST = Manifest(
    name="s", version=1, timestamp=2, created=3, cluster="0" * 32, view=1, catalog="{}", logs=()
)
CATALOG = archive.ArchivedCatalog(1, 2, "{}")


@pytest.mark.parametrize(
    ("data", "decode", "what"),
    [
        (encode_manifest(MANIFEST), decode_manifest, "manifest of a snapshot"),
        (encode_record(CutRecord(1, "a" * 64, 3)), decode_record, "record of a cut"),
        (archive.encode_note(CATALOG), archive.decode_catalog, "note of the log archive"),
    ],
)
def test_objects_of_a_store(data, decode, what) -> None:
    decode(data)
    name, _, rest = data.split(b" ", 2)
    with pytest.raises(DataCorrupted, match=f"{what} has format version 2; .* understands 1") as e:
        decode(name + b" 2 " + rest)
    assert "Another release of Remuda wrote it" in e.value.hint
    with pytest.raises(DataCorrupted, match=f"{what} is damaged: its digest"):
        decode(data[:-3] + b"?" + data[-2:])
    with pytest.raises(DataCorrupted, match=f"it is no {what}"):
        decode(b"something-else 1 " + rest)


def test_a_segment_of_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    header = segment.SegmentHeader(segment.Identity(b"c" * 16, b"m" * 16), 1, 1, 0)
    monkeypatch.setattr(segment, "FORMAT_VERSION", segment.FORMAT_VERSION + 1)
    data = header.encode()
    assert segment.decode_header(data) == header
    monkeypatch.undo()
    with pytest.raises(DataCorrupted, match="the segment has format version 2; this is 1") as found:
        segment.decode_header(data)
    assert "another version of Remuda" in found.value.hint


def test_the_state_of_a_folder() -> None:
    body = {"format": 2}
    checksum = google_crc32c.value(json.dumps(body, sort_keys=True).encode())
    data = json.dumps({"state": body, "crc32c": checksum}).encode()
    with pytest.raises(DataCorrupted, match="format 2, this version knows 1"):
        decode_state(data, Path("state"))
