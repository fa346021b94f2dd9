"""Stored passwords: SCRAM's keys (RFC 5802, SHA-256), in the form that PostgreSQL writes.

``SCRAM-SHA-256$iterations:salt$stored key:server key``, salt and keys in base64. A reader
can neither log in with it nor compute the password from it, only guess; the iterations make that
slow.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import unicodedata
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import Final

from remuda.errors import InputError

ITERATIONS: Final = 100_000
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 10_000_000
SALT_SIZE: Final = 16
PASSWORD_SIZE_MAX: Final = 1024
_SCHEME: Final = "SCRAM-SHA-256"
_KEY_SIZE: Final = 32


@dataclass(frozen=True, slots=True)
class PasswordHash:
    iterations: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    def matches(self, password: str) -> bool:
        """Takes as long as the iterations say (about 40 ms), for every password."""
        stored, _ = _keys(password, self.salt, self.iterations)
        return hmac.compare_digest(stored, self.stored_key)

    def text(self) -> str:
        salt, stored, server = (
            b64encode(part).decode() for part in (self.salt, self.stored_key, self.server_key)
        )
        return f"{_SCHEME}${self.iterations}:{salt}${stored}:{server}"


def hashed(password: str, salt: bytes, iterations: int = ITERATIONS) -> PasswordHash:
    """``salt``: SALT_SIZE random bytes. Raises InputError for what cannot be a password."""
    if not password:
        raise InputError("the password is empty")
    if len(password.encode("utf-8", "surrogatepass")) > PASSWORD_SIZE_MAX:
        raise InputError(f"a password has at most {PASSWORD_SIZE_MAX} bytes")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in password):
        raise InputError("a password cannot hold control characters")
    return PasswordHash(iterations, salt, *_keys(password, salt, iterations))


def parse_hash(text: str) -> PasswordHash:
    """Raises InputError."""
    try:
        scheme, first, second = text.split("$")
        iterations, salt = first.split(":")
        stored, server = second.split(":")
        found = PasswordHash(
            int(iterations),
            *(b64decode(part, validate=True) for part in (salt, stored, server)),
        )
    except (ValueError, binascii.Error):
        raise InputError("a password hash that is none") from None
    sizes = len(found.stored_key), len(found.server_key)
    if scheme != _SCHEME or not found.salt or sizes != (_KEY_SIZE, _KEY_SIZE):
        raise InputError(f"a password hash that is not of the form {_SCHEME}$...")
    if not ITERATIONS_MIN <= found.iterations <= ITERATIONS_MAX:
        raise InputError(f"a password hash has {ITERATIONS_MIN} to {ITERATIONS_MAX} iterations")
    return found


def _keys(password: str, salt: bytes, iterations: int) -> tuple[bytes, bytes]:
    """Stored key and server key. A password is the same however its characters are composed."""
    prepared = unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")
    salted = hashlib.pbkdf2_hmac("sha256", prepared, salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return hashlib.sha256(client_key).digest(), hmac.digest(salted, b"Server Key", "sha256")
