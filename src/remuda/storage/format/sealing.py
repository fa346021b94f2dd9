"""Objects encrypted one by one, with AES-256-GCM::

    7 magic · 1 format · 4 first bytes of the key's SHA-256 · 12 nonce
    ciphertext · 16 tag

The byte of format 1 is an S, for historical reasons; that of a later format is its number.

The object's own key in the store is authenticated with it, so that two objects cannot be exchanged.
A nonce must never be used twice with one key; 96 bits of chance serve for some billions of objects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from remuda.errors import DataCorrupted, InputError, NotSupported
from remuda.formats import SEALED_OBJECT

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAGIC: Final = b"REMUDAE"
_FIRST: Final = b"S"
"""The byte of format 1."""
_HEAD: Final = MAGIC + _FIRST
KEY_SIZE: Final = 32
NONCE_SIZE: Final = 12
_ID_SIZE: Final = 4
_TEXT_AT: Final = len(_HEAD) + _ID_SIZE + NONCE_SIZE


@dataclass(frozen=True)
class ObjectKey:
    """``nonces`` gives another ``NONCE_SIZE`` bytes of chance each time."""

    secret: bytes = field(repr=False)
    nonces: Callable[[], bytes] = field(repr=False)

    @property
    def id(self) -> str:
        """Tells keys apart, and nothing about them."""
        return self._id.hex()

    @property
    def _id(self) -> bytes:
        return hashlib.sha256(b"remuda object key" + self.secret).digest()[:_ID_SIZE]

    def seal(self, name: str, data: bytes) -> bytes:
        nonce = self.nonces()
        assert len(nonce) == NONCE_SIZE
        return _HEAD + self._id + nonce + self._cipher().encrypt(nonce, data, name.encode())

    def open(self, name: str, data: bytes) -> bytes:
        """Raises ``DataCorrupted``, ``UnknownFormat``, and ``InputError`` for another key."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 (an extra)

        if not data.startswith(MAGIC) or len(data) < _TEXT_AT:
            raise DataCorrupted(
                f"object {name} is not encrypted, and should be",
                hint="If its snapshot was made without a key, read it with members that have no "
                "snapshot_key_file.",
            )
        _check_format(name, data)
        found = data[len(_HEAD) : len(_HEAD) + _ID_SIZE]
        if found != self._id:
            raise InputError(
                f"object {name} is encrypted with key {found.hex()}; this is key {self.id}",
                hint="Give the key file that the snapshot was made with.",
            )
        nonce = data[_TEXT_AT - NONCE_SIZE : _TEXT_AT]
        try:
            return self._cipher().decrypt(nonce, data[_TEXT_AT:], name.encode())
        except InvalidTag as problem:
            raise DataCorrupted(f"object {name} is damaged: its tag is wrong") from problem

    def _cipher(self) -> AESGCM:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import (  # noqa: PLC0415 (an extra)
                AESGCM,
            )
        except ImportError as problem:
            raise NotSupported(
                "encrypted snapshots need the package cryptography",
                hint="Install it: pip install remuda[encryption]",
            ) from problem
        return AESGCM(self.secret)


def parse_key(content: bytes) -> bytes:
    """The key in a key file: 32 bytes, or 64 hexadecimal digits. Raises ``InputError``."""
    if len(content) == KEY_SIZE:
        return content
    try:
        secret = bytes.fromhex(content.decode("ascii").strip())
    except (UnicodeDecodeError, ValueError):
        secret = b""
    if len(secret) != KEY_SIZE:
        raise InputError(
            f"the key file has no key: {len(content)} bytes instead of {KEY_SIZE}, or of"
            f" {2 * KEY_SIZE} hexadecimal digits",
            hint="Make one: openssl rand -hex 32 > snapshot.key",
        )
    return secret


def seal(key: ObjectKey | None, name: str, data: bytes) -> bytes:
    return data if key is None else key.seal(name, data)


def unseal(key: ObjectKey | None, name: str, data: bytes) -> bytes:
    """Raises ``InputError`` for an encrypted object without a key."""
    if key is not None:
        return key.open(name, data)
    if data.startswith(MAGIC):
        _check_format(name, data)
        raise InputError(
            f"object {name} is encrypted", hint="Give the key file that the snapshot was made with."
        )
    return data


def _check_format(name: str, data: bytes) -> None:
    byte = data[len(MAGIC) : len(_HEAD)]
    SEALED_OBJECT.check(1 if byte == _FIRST else int.from_bytes(byte), name)
