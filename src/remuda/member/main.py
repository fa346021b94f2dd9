"""The member process: arguments in, one line of JSON out when it serves, an end on request."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any

import uvloop

from remuda.config import MemberConfig, member_config
from remuda.errors import RemudaError
from remuda.limits import SWITCH_INTERVAL
from remuda.member.member import Member
from remuda.member.state.log import set_up
from remuda.world import system_world

log = logging.getLogger("remuda.member.main")

PARENT_CHECK_INTERVAL = 2.0
LEAVES = ("signal SIGTERM", DRAINED := "an operator has asked it to leave")
GC_THRESHOLDS = (50_000, 20, 100)
SHORT = {"data_dir": ("--data",)}
"""Further names of flags."""


def parser() -> argparse.ArgumentParser:
    """One flag per setting."""
    made = argparse.ArgumentParser(
        prog="remuda member", description="Run one member of a cluster in this process."
    )
    made.add_argument("--config", type=Path, metavar="FILE", help="settings as TOML, [member]")
    made.add_argument(
        "--label",
        action="append",
        metavar="NAME=VALUE",
        help="one of --labels, such as rack=a (may be repeated)",
    )
    for setting in dataclass_fields(MemberConfig):
        made.add_argument(
            *SHORT.get(setting.name, ()),
            f"--{setting.name.replace('_', '-')}",
            dest=setting.name,
            metavar="SIZE" if setting.metadata["size"] else type(setting.default).__name__.upper(),
            help=f"{setting.metadata['doc']} (default: {setting.default!r})".replace("%", "%%"),
        )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 after a graceful stop, 1 when the member could not start, or had to stop
    because the others counted it as lost."""
    flags = vars(parser().parse_args(arguments))
    file = flags.pop("config")
    single = flags.pop("label")
    if single:
        flags["labels"] = ",".join(filter(None, [flags["labels"], *single]))
    try:
        config = member_config(flags=flags, environment=os.environ, file=file)
    except RemudaError as error:
        _announce({"ready": False, "error": str(error)})
        return 1
    sys.setswitchinterval(SWITCH_INTERVAL)
    # What is there now stays; requests make acyclic garbage, which counting references frees. Full
    # collections over millions of row tuples would stop the loop for long.
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()
    return uvloop.run(run(config))


async def run(config: MemberConfig) -> int:
    """Serve until SIGTERM, SIGINT or the end of the parent."""
    identity = set_up(config.log_level, config.log_format, config.log_file)
    member = Member(config, system_world())
    end: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    given_up: list[str] = []
    member.on_given_up.append(given_up.append)
    _watch(config, end, member)
    starting = asyncio.ensure_future(member.start())
    both: list[asyncio.Future[Any]] = [starting, end]
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    try:
        if end.done():
            starting.cancel()
            with contextlib.suppress(asyncio.CancelledError, RemudaError):
                await starting
            return 1 if given_up else 0
        try:
            await starting
        except RemudaError as error:
            log.error("the member cannot start: %s", error)
            _announce({"ready": False, "error": str(error)})
            return 1
        identity.member = member.info.number
        _announce({"ready": True, "member": member.info.number, **member.addresses()})
        if await end in LEAVES:
            await member.leave()
        if given_up:
            await member.ended()
        return 1 if given_up else 0
    finally:
        await member.stop(end.result() if end.done() else "it could not start")


def _announce(message: dict[str, object]) -> None:
    """The launcher reads exactly one line."""
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(message), flush=True)


def _watch(config: MemberConfig, end: asyncio.Future[str], member: Member) -> None:
    """Complete ``end`` when the process should stop."""
    loop = asyncio.get_running_loop()

    def finish(reason: str) -> None:
        if end.done():
            member.donor.end()  # it was given up, and stays as a donor
        else:
            end.set_result(reason)

    member.on_given_up.append(finish)
    member.core.departure.on_drain.append(lambda: finish(DRAINED))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, finish, f"signal {signal.Signals(number).name}")
    if config.parent_pipe < 0:
        return
    os.set_blocking(config.parent_pipe, False)

    def readable() -> None:
        with contextlib.suppress(BlockingIOError):
            if not os.read(config.parent_pipe, 4096):
                loop.remove_reader(config.parent_pipe)
                finish("its parent has ended")

    loop.add_reader(config.parent_pipe, readable)
    parent = os.getppid()

    def check() -> None:
        if os.getppid() != parent:
            finish("its parent has ended")
        else:
            loop.call_later(PARENT_CHECK_INTERVAL, check)

    check()
