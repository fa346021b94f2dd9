"""The users of a cluster, from a file of each member that is read again when it changes."""

from __future__ import annotations

import logging
from pathlib import Path

from remuda.catalog.users import Users, decode_users
from remuda.errors import InputError, RemudaError
from remuda.member.security.defences import warn_if_open
from remuda.member.state.log import fields
from remuda.session.user_settings import check_user_settings
from remuda.world import World

log = logging.getLogger(__name__)


class UsersFile:
    """The users as the file has them now. A file that has become unreadable changes nothing."""

    def __init__(self, path: str, world: World) -> None:
        """Raises InputError and ResourceError: a member does not start without its users."""
        self._path = Path(path)
        self._world = world
        self._stamp = world.disk.facts(self._path).stamp
        self._missing = False
        self.users = self._read()
        self.generation = 0
        """Grows with every change."""
        warn_if_open(world, path, "users file", "guess passwords, or make themselves users")

    def _read(self) -> Users:
        source = str(self._path)
        users = decode_users(self._world.disk.read(self._path), source)
        for name, user in users.by_name.items():
            try:
                check_user_settings(user.settings)
            except RemudaError as error:
                raise InputError(
                    f'{source}, user "{name}": {error.message}', hint=error.hint
                ) from None
        return users

    def look(self) -> None:
        """Read it again if it has changed."""
        try:
            stamp = self._world.disk.facts(self._path).stamp
        except RemudaError as error:
            if not self._missing:
                log.error("users file is gone", extra=fields(error=error.message))
            self._missing = True
            return
        self._missing = False
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self.users = self._read()
        except RemudaError as error:
            log.error("users file not read again", extra=fields(error=error.message))
            return
        self.generation += 1
        log.info("users read again", extra=fields(users=len(self.users.by_name)))
