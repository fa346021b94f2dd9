"""As much of S3's interface as object stores of snapshots use, over HTTP on this machine: objects,
uploads in parts, listings, and its errors. It knows one bucket and one access key."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET, KEY, SECRET = "bucket", "key", "secret"
PAGE = 5
"""Objects in one answer to a listing."""


class FakeS3(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.lock = threading.Lock()
        self.lost = False
        """Connections end without an answer."""
        self.uploaded_in_parts = 0

    def url(self, path: str, *, key: str = KEY, bucket: str = BUCKET) -> str:
        port = self.server_address[1]
        place = f"s3://{key}:{SECRET}@{bucket}/{path}"
        return f"{place}?region=us-east-1&scheme=http&endpoint_override=127.0.0.1:{port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    server: FakeS3

    def log_message(self, *_: Any) -> None:
        """Nothing is told."""

    def handle_expect_100(self) -> bool:
        found = super().handle_expect_100()
        self.wfile.flush()
        return found

    def _any(self) -> None:
        body = self._body()
        if self.server.lost:
            self.close_connection = True
            return
        parts = urlsplit(self.path)
        asked = dict(parse_qsl(parts.query, keep_blank_values=True))
        bucket, _, name = unquote(parts.path).lstrip("/").partition("/")
        if f"Credential={KEY}/" not in self.headers.get("Authorization", ""):
            self._error(403, "InvalidAccessKeyId", "The access key does not exist in our records.")
        elif bucket != BUCKET:
            self._error(404, "NoSuchBucket", "The specified bucket does not exist")
        else:
            with self.server.lock:
                self._serve(name, asked, body)

    def _serve(self, name: str, asked: dict[str, str], body: bytes) -> None:
        objects, uploads = self.server.objects, self.server.uploads
        match self.command:
            case "PUT" if "uploadId" in asked:
                uploads[asked["uploadId"]][int(asked["partNumber"])] = body
                self._answer(200, headers={"ETag": '"part"'})
            case "PUT":
                objects[name] = body
                self._answer(200, headers={"ETag": '"whole"'})
            case "POST" if "uploads" in asked:
                upload = f"upload-{len(uploads)}"
                uploads[upload] = {}
                self._xml(f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId>"
                          "</InitiateMultipartUploadResult>")  # fmt: skip
            case "POST":
                parts = uploads[asked["uploadId"]]
                objects[name] = b"".join(parts[number] for number in sorted(parts))
                self.server.uploaded_in_parts += 1
                self._xml("<CompleteMultipartUploadResult><ETag>whole</ETag>"
                          "</CompleteMultipartUploadResult>")  # fmt: skip
            case "DELETE":
                objects.pop(name, None)
                self._answer(204)
            case "HEAD" if not name:
                self._answer(200)
            case "GET" if not name:
                self._list(asked)
            case _ if name not in objects:
                self._error(404, "NoSuchKey", "The specified key does not exist.")
            case _:
                self._object(objects[name])

    def _object(self, data: bytes) -> None:
        wanted = self.headers.get("Range")
        if wanted is None:
            self._answer(200, data, {"Last-Modified": "Sat, 01 Jan 2000 00:00:00 GMT"})
            return
        first, last = wanted.removeprefix("bytes=").split("-")
        part = data[int(first) : int(last) + 1]
        self._answer(206, part, {"Content-Range": f"bytes {first}-{last}/{len(data)}"})

    def _list(self, asked: dict[str, str]) -> None:
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
        after = asked.get("continuation-token", "")
        entries: dict[str, str] = {}
        for key in sorted(self.server.objects):
            if not key.startswith(prefix):
                continue
            inner = key.removeprefix(prefix)
            if delimiter and delimiter in inner:
                folder = prefix + inner.partition(delimiter)[0] + delimiter
                entries[folder] = (
                    f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
                )
            else:
                size = len(self.server.objects[key])
                entries[key] = (
                    f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size>"
                    "<LastModified>2000-01-01T00:00:00.000Z</LastModified></Contents>"
                )
        left = [key for key in sorted(entries) if key > after]
        page = left[: min(PAGE, int(asked.get("max-keys", PAGE)))]
        more = len(left) > len(page)
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        self._xml(
            f"<ListBucketResult><Name>{BUCKET}</Name><IsTruncated>{str(more).lower()}"
            f"</IsTruncated>{token}{''.join(entries[key] for key in page)}</ListBucketResult>"
        )

    # --- HTTP ---

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            parts = []
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            data = b"".join(parts)
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "aws-chunked" not in self.headers.get("Content-Encoding", ""):
            return data
        found, place = [], 0
        while True:
            start = data.index(b"\r\n", place) + 2
            size = int(data[place:start].partition(b";")[0], 16)
            if not size:
                return b"".join(found)
            found.append(data[start : start + size])
            place = start + size + 2

    def _xml(self, text: str) -> None:
        self._answer(200, b'<?xml version="1.0" encoding="UTF-8"?>' + text.encode())

    def _error(self, status: int, code: str, text: str) -> None:
        self._answer(
            status, f"<Error><Code>{code}</Code><Message>{text}</Message></Error>".encode()
        )

    def _answer(
        self, status: int, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


for _verb in ("GET", "HEAD", "PUT", "POST", "DELETE"):
    setattr(Handler, f"do_{_verb}", Handler._any)


@contextmanager
def fake_s3() -> Iterator[FakeS3]:
    server = FakeS3()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
