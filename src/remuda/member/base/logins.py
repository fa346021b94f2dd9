"""The users of a member, if it has any, and the check of their passwords."""

from __future__ import annotations

import asyncio

from remuda.member.base.core import Core
from remuda.member.base.loop_handoff import Hop
from remuda.member.base.offload import Offload
from remuda.member.base.passwords import Passwords
from remuda.member.security.users_file import UsersFile
from remuda.rpc.strangers import Verifier


def known_users(core: Core, checks: Offload) -> tuple[UsersFile | None, Verifier | None]:
    """The users' file, which is read again when it changes, and the check of passwords against it;
    None where the settings name no file. Raises InputError and ResourceError."""
    if not core.config.users_file:
        return None, None
    file = UsersFile(core.config.users_file, core.world)
    core.access.use(file)
    checks.start(Hop(asyncio.get_running_loop()))
    core.spawn(core.access.watch(), "watching users")
    return file, core.audit.logins(Passwords(file, checks, core.world).verify)
