"""Everything that is kept says the number of its format. A number that this release does not read
is refused in words, and told apart from damage."""

from __future__ import annotations

import hashlib
import json
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

import google_crc32c
import pytest
from log_runs import IDENTITY
from pyspark.sql.types import LongType, StructField, StructType
from sim_disk import SimulatedDisk

from remuda import formats
from remuda.catalog.users import Users, decode_users, encode_users
from remuda.client.requests.change_batches import position_document, stream_start
from remuda.client.requests.feeds import FeedPositions
from remuda.errors import (
    DataCorrupted,
    InputError,
    ProtocolError,
    RemudaError,
    UnknownFormat,
    VersionMismatch,
)
from remuda.formats import Format
from remuda.member.journal import folder as wal_folder
from remuda.member.journal import image as wal_image
from remuda.plan import codec
from remuda.spark.hosting.rendezvous_line import Line, _nonce
from remuda.spark.streams.offsets import Offset
from remuda.spark.transfer.tables import keeping_options, options_of
from remuda.storage.format import sealing, segment
from remuda.storage.format.headline import with_headline
from remuda.storage.format.manifest import Manifest, MapChanges, decode_manifest, encode_manifest
from remuda.storage.format.record_codec import decode_record
from remuda.storage.format.records import Closed
from remuda.storage.format.sealing import ObjectKey, unseal
from remuda.storage.log.files import open_log
from remuda.storage.log.writer import SyncMode
from remuda.storage.snapshot import archive
from remuda.storage.snapshot.cut_records import CutRecord, encode_record
from remuda.storage.snapshot.cut_records import decode_record as decode_cut

FUTURE = 77
HEAD = wal_image.ImageHead(1, 1, 1, 5, b"", False, {}, {})
KEY = ObjectKey(b"k" * 32, lambda: b"n" * sealing.NONCE_SIZE)
MANIFEST = Manifest(
    name="s", version=1, timestamp=2, created=3, cluster="0" * 32, view=1, catalog="{}", logs=()
)


@dataclass(frozen=True)
class Kept:
    """``data`` as this release writes it; ``later`` the same in format ``FUTURE``; ``read`` raises
    what a reader is told; ``damaged`` has one byte changed, and is refused as ``damage``."""

    data: bytes
    later: bytes
    read: Callable[[bytes], object]
    damaged: bytes = b""
    damage: type[RemudaError] = DataCorrupted


def of_headline(data: bytes, read: Callable[[bytes], object]) -> Kept:
    name, _, rest = data.split(b" ", 2)
    return Kept(data, b"%s %d %s" % (name, FUTURE, rest), read, data[:-3] + b"?" + data[-2:])


def of_segment() -> Kept:
    def encoded() -> bytes:
        return segment.SegmentHeader(segment.Identity(b"c" * 16, b"m" * 16), 1, 1, 0).encode()

    later = in_future(segment, "LOG_SEGMENT", encoded)
    return Kept(encoded(), later, segment.decode_header, b"x" + later[1:])


def of_folder() -> Kept:
    def later(number: int) -> bytes:
        body = {"format": number}
        checksum = google_crc32c.value(json.dumps(body, sort_keys=True).encode())
        return json.dumps({"state": body, "crc32c": checksum}).encode()

    def read(data: bytes) -> object:
        return wal_folder.decode_state(data, Path("member.json"))

    return Kept(b"", later(FUTURE), read, later(FUTURE).replace(b"77", b"78"))


def of_checkpoint() -> Kept:
    def read(data: bytes) -> object:
        disk, root = SimulatedDisk(), Path("image")
        disk.make_folder(root)
        disk.write(root / "checkpoint-0000000001.json", data)
        return wal_image.read_head(disk, root, 1)

    encoded = partial(wal_image._encode, HEAD, ())
    later = in_future(wal_image, "CHECKPOINT", encoded)
    return Kept(encoded(), later, read, later.replace(b'"clock": 5', b'"clock": 6'))


def of_sealed() -> Kept:
    data = KEY.seal("a/b", b"rows")
    later = data[:7] + bytes((FUTURE,)) + data[8:]
    return Kept(data, later, partial(unseal, KEY, "a/b"), data[:-1] + bytes((data[-1] ^ 1,)))


def of_users() -> Kept:
    data = encode_users(Users())
    later = data.replace(b'"format": 1', b'"format": %d' % FUTURE)
    read = partial(decode_users, source="users.json")
    return Kept(data, later, read, data[:-3], InputError)


def of_position() -> Kept:
    document = position_document(7, FeedPositions(3), None)

    def read(data: bytes) -> object:
        return stream_start(json.loads(data))

    later = json.dumps({**document, "format": FUTURE}).encode()
    damaged = json.dumps({**document, "map_id": "x"}).encode()
    return Kept(json.dumps(document).encode(), later, read, damaged, InputError)


def of_offset() -> Kept:
    document = Offset.first(7, 3, snapshot=True).document()

    def read(data: bytes) -> object:
        return Offset.parse(json.loads(data))

    later = json.dumps({**document, "format": FUTURE}).encode()
    damaged = json.dumps({**document, "map_id": "x"}).encode()
    return Kept(json.dumps(document).encode(), later, read, damaged, InputError)


def of_table() -> Kept:
    columns = StructType([StructField("a", LongType())])
    kept = keeping_options(columns, {"provider": "remuda", "map": "t"})

    def read(data: bytes) -> object:
        assert options_of(StructType.fromJson(json.loads(data)), {}) == {"map": "t"}

    later = kept.json().replace('"remuda.format":1', f'"remuda.format":{FUTURE}')
    return Kept(kept.json().encode(), later.encode(), read)


def of_line() -> Kept:
    def message(number: int) -> bytes:
        return json.dumps({"format": number, "nonce": "ab" * 32}).encode()

    def read(data: bytes) -> object:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.sendall(len(data).to_bytes(4, "big") + data)
            return _nonce(Line(ours, "the driver"))

    return Kept(message(1), message(FUTURE), read, message(1).replace(b"ab", b"zz"), ProtocolError)


def of_plan() -> Kept:
    data = codec.encode((1, 2))
    return Kept(data, b"[77" + data[2:], codec.decode, data[:-2], ProtocolError)


def in_future(module: object, name: str, encoded: Callable[[], bytes]) -> bytes:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, replace(getattr(module, name), number=FUTURE))
        return encoded()


SAMPLES: dict[str, Callable[[], Kept]] = {
    "LOG_SEGMENT": of_segment,
    "FOLDER_STATE": of_folder,
    "CHECKPOINT": of_checkpoint,
    "MANIFEST": lambda: of_headline(encode_manifest(MANIFEST), decode_manifest),
    "CUT_RECORD": lambda: of_headline(encode_record(CutRecord(1, "a" * 64, 3)), decode_cut),
    "ARCHIVE_NOTE": lambda: of_headline(
        archive.encode_note(archive.ArchivedCatalog(1, 2, "{}")), archive.decode_catalog
    ),
    "SEALED_OBJECT": of_sealed,
    "USERS_FILE": of_users,
    "STREAM_POSITION": of_position,
    "SPARK_OFFSET": of_offset,
    "SPARK_TABLE": of_table,
    "HOSTING_LINE": of_line,
    "PLAN": of_plan,
}
FORMATS = {name: each for name, each in vars(formats).items() if isinstance(each, Format)}


def test_every_format_has_a_sample_and_a_row_in_the_page() -> None:
    assert SAMPLES.keys() == FORMATS.keys()
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|.*\| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    known = {name: (str(each.number), str(each.oldest)) for name, each in FORMATS.items()}
    assert {name: (number, oldest) for name, number, oldest in rows} == known


@pytest.mark.parametrize("name", SAMPLES)
def test_an_unknown_format_is_refused_in_words(name: str) -> None:
    kept, kind = SAMPLES[name](), FORMATS[name]
    wanted = VersionMismatch if kind.message else UnknownFormat
    with pytest.raises(wanted) as found:
        kept.read(kept.later)
    reads = f"{kind.what} has format {FUTURE}; this release of Remuda reads {kind.known}"
    assert reads in found.value.message
    assert "same release" in found.value.hint or "A newer release" in found.value.hint
    assert not isinstance(found.value, DataCorrupted)
    assert not found.value.retryable


@pytest.mark.parametrize("name", SAMPLES)
def test_what_this_release_writes_is_read_and_damage_is_no_unknown_format(name: str) -> None:
    kept = SAMPLES[name]()
    if kept.data:
        kept.read(kept.data)
    if kept.damaged:
        with pytest.raises(kept.damage) as found:
            kept.read(kept.damaged)
        assert not isinstance(found.value, UnknownFormat | VersionMismatch)


@pytest.mark.parametrize("found", [0, -1, True, None, "2", 1.0])
def test_what_is_no_number_is_unknown(found: object) -> None:
    with pytest.raises(UnknownFormat, match="reads format 1"):
        Format("the file", 1).check(found, "f")


def test_older_formats_are_read_as_far_as_they_are_known() -> None:
    kind = Format("the file", 3, oldest=2)
    assert [kind.check(each) for each in (2, 3)] == [2, 3]
    with pytest.raises(
        UnknownFormat, match=r"f: the file has format 1; .* reads formats 2 to 3"
    ) as found:
        kind.check(1, "f")
    assert found.value.hint.startswith("An older release")


def test_a_text_object_of_another_kind_is_damage() -> None:
    with pytest.raises(DataCorrupted, match="it is not the manifest of a snapshot"):
        decode_manifest(with_headline("something-else", formats.MANIFEST, b"{}"))


def test_files_without_a_number_have_the_first_format() -> None:
    """Users write their files by hand; the first checkpoints and positions had no number."""
    assert decode_users(b'{"users": {}}', "users.json") == Users()
    assert stream_start({"map_id": 7, "snapshot": 3}).snapshot == 3
    body = json.loads(wal_image._encode(HEAD, ()))["checkpoint"]
    del body["format"]
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    of_checkpoint().read(json.dumps({"checkpoint": body, "sha256": digest}).encode())


def test_a_record_of_a_later_kind() -> None:
    with pytest.raises(UnknownFormat, match="a record of the log is of kind 200") as found:
        decode_record(200, b"")
    assert "A newer release" in found.value.hint


def test_a_log_with_a_segment_of_a_later_release_is_refused_and_left() -> None:
    disk, folder = SimulatedDisk(Random(1)), Path("log")
    opened = open_log(disk, folder, IDENTITY, SyncMode.FSYNC)
    opened.writer.append(Closed(1))
    flush = opened.writer.step()
    assert flush is not None
    opened.files.carry_out(flush)
    path = folder / "0000000001.segment"
    data = bytearray(disk.read(path))
    data[8:12] = FUTURE.to_bytes(4, "little")
    end = segment.HEADER_SIZE - 4
    data[end : end + 4] = google_crc32c.value(bytes(data[:end])).to_bytes(4, "little")
    for kept in (data, data[: segment.HEADER_SIZE]):  # the second is what an unborn one looks like
        disk.names_now[path].content[:] = kept
        with pytest.raises(UnknownFormat, match=r"0000000001.segment: the segment .* format 77"):
            open_log(disk, folder, IDENTITY, SyncMode.FSYNC)
        assert disk.read(path) == kept


@pytest.mark.parametrize("kind", ["base", "increment"])
def test_a_manifest_of_format_1_is_read(kind: str) -> None:
    """As the release wrote it that knew no other; it has no counts of an increment's rows."""
    data = (Path(__file__).parent / f"format_1_{kind}.manifest").read_bytes()
    read = decode_manifest(data)
    assert read.changes is None
    assert (read.is_base, len(read.maps), len(read.objects)) == (kind == "base", kind == "base", 1)
    assert encode_manifest(read, 1) == data
    assert decode_manifest(encode_manifest(read)) == read
    counted = replace(read, changes=(MapChanges(3, "m", 5, 2),))
    assert decode_manifest(encode_manifest(counted)) == counted
    head, _, body = encode_manifest(counted).partition(b"\n")
    with pytest.raises(DataCorrupted, match="fields that this version does not know"):
        decode_manifest(head.replace(b" 2 ", b" 1 ") + b"\n" + body)
    head, _, body = data.partition(b"\n")
    with pytest.raises(DataCorrupted, match="fields that this version does not know"):
        decode_manifest(head.replace(b" 1 ", b" 2 ") + b"\n" + body)
