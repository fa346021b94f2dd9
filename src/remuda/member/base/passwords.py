"""The check of passwords: the identity of a client.

A check takes tens of milliseconds on purpose, so it has a thread of its own. A password that was
right is remembered (as a keyed hash that is worth nothing to anybody else), so that the connections
of a pool do not wait for it.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Final

from remuda.catalog.passwords import PASSWORD_SIZE_MAX, hashed
from remuda.errors import AuthenticationFailed, MemberUnavailable, RemudaError, WrongPassword
from remuda.limits import AUTHENTICATION_PENALTY
from remuda.member.base.offload import Offload
from remuda.member.security.users_file import UsersFile
from remuda.member.state.log import fields
from remuda.rpc.sasl import Credentials
from remuda.world import World

log = logging.getLogger(__name__)

KNOWN_MAX: Final = 10_000
FAILURES_MAX: Final = 8
"""Wrong passwords of one address that may wait for their answer; beyond, none is looked at."""
CHECKS_MAX: Final = 200
"""Passwords that wait to be checked."""

Told = Callable[[str | RemudaError], None]


class Passwords:
    """``verify`` is the ``Verifier`` of the user channel."""

    def __init__(self, file: UsersFile, offload: Offload, world: World) -> None:
        self._file = file
        self._offload = offload
        self._key = world.chance.bits(256).to_bytes(32)
        self._known: OrderedDict[str, bytes] = OrderedDict()
        self._failures: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._checks = 0
        # Whoever does not exist is checked as well, so that nobody can tell from the time.
        self._nobody = hashed("nobody", bytes(16))

    def verify(self, credentials: Credentials, host: str, told: Told) -> None:
        self._file.look()
        user = self._file.users.find(credentials.user)
        mark = b"" if user is None else self._mark(credentials, user.password.stored_key)
        if user is not None and self._is_known(user.name, mark):
            self._known.move_to_end(user.name)
            told(user.name)
            return
        if self._failures[host] >= FAILURES_MAX:
            told(_too_many(host))
            return
        if self._checks >= CHECKS_MAX:
            told(MemberUnavailable("the member checks too many passwords already; try again"))
            return
        password = self._nobody if user is None else user.password
        self._checks += 1

        def work() -> Callable[[], None]:
            # Those that waited in front of it may have settled it.
            if mark and self._is_known(credentials.user, mark):
                return lambda: self._right(credentials.user, mark, told)
            if self._failures[host] >= FAILURES_MAX:
                return lambda: told(_too_many(host))
            short = len(credentials.password) <= PASSWORD_SIZE_MAX
            if password.matches(credentials.password if short else "") and short and mark:
                return lambda: self._right(credentials.user, mark, told)
            self._count(host, 1)
            return lambda: self._wrong(credentials.user, host, told)

        def done() -> None:
            self._checks -= 1

        self._offload(work, done)

    def _is_known(self, user: str, mark: bytes) -> bool:
        return hmac.compare_digest(self._known.get(user, b""), mark)

    def _right(self, user: str, mark: bytes, told: Told) -> None:
        self._known[user] = mark
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)
        told(user)

    def _wrong(self, user: str, host: str, told: Told) -> None:
        log.warning("wrong password", extra=fields(user=user, peer=host))
        asyncio.get_running_loop().call_later(AUTHENTICATION_PENALTY, self._forgive, host)
        told(WrongPassword(f'user "{user}" and this password do not belong together'))

    def _forgive(self, host: str) -> None:
        self._count(host, -1)

    def _count(self, host: str, change: int) -> None:
        """Both threads do: a check that waits behind a wrong password must see it."""
        with self._lock:
            self._failures[host] += change
            if self._failures[host] <= 0:
                del self._failures[host]

    def _mark(self, credentials: Credentials, stored_key: bytes) -> bytes:
        """Another one for another password, also after the user's has been changed."""
        text = credentials.password.encode("utf-8", "surrogatepass")
        return hmac.digest(self._key, stored_key + text, "sha256")


def _too_many(host: str) -> AuthenticationFailed:
    return AuthenticationFailed(f"too many wrong passwords from {host}; try again later")
