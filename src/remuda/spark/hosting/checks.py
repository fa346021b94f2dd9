"""Conditions before members are hosted: the session, its slots, how often tasks are retried,
and the members' settings. Everything is told here, on the driver, before a task runs."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pyspark import SparkContext

from remuda.config import MemberConfig, check_exposure, member_config
from remuda.errors import InputError, NotSupported, ResourceError
from remuda.limits import MEMBERS_MAX
from remuda.rpc.tls import TlsFiles
from remuda.spark.hosting.scheduler import slots_of, stopped

OURS: Final = frozenset(
    [
        "cluster_size",
        "host",
        "user_port",
        "control_port",
        "data_port",
        "join",
        "control_fd",
        "parent_pipe",
        "log_file",
        "data_dir",
    ]
)
"""Settings that hosting decides."""
_LOCAL: Final = re.compile(r"local(?:\[(?:\*|\d+)(?:\s*,\s*(\d+))?\])?")
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)
_UNITS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SLOTS_PAUSE: Final = 0.25


def context_of(spark: Any) -> SparkContext:
    """The running SparkContext of a classic session. Raises NotSupported, InputError."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise NotSupported(
            "members are hosted from a classic Spark session only; this one is Spark Connect's",
            hint="Start them from a program that runs as the Spark driver (spark-submit, or a "
            "session with a master), and connect to them from anywhere.",
        )
    context = spark if isinstance(spark, SparkContext) else getattr(spark, "sparkContext", None)
    if not isinstance(context, SparkContext):
        raise InputError(f"start_cluster needs a SparkSession, not {type(spark).__name__}")
    if stopped(context):
        raise InputError(
            "the SparkContext is stopped: no executor can host members",
            hint="Make a new session.",
        )
    return context


def check_count(members: int) -> None:
    if isinstance(members, bool) or not isinstance(members, int) or not 1 <= members <= MEMBERS_MAX:
        raise InputError(f"a cluster has 1 to {MEMBERS_MAX} members, not {members!r}")


def check_retries(context: SparkContext, replacements: int) -> None:
    """Each task must be allowed to fail ``replacements`` times: a lost member is a failed task,
    and the task that has failed too often ends the whole job, with all members."""
    if replacements < 0:
        raise InputError(f"replacements must be at least 0, not {replacements}")
    allowed, setting = task_failures(context)
    if allowed <= replacements:
        value, _, rest = setting.partition("|")
        raise InputError(
            f"Spark ends the job of the members when one task has failed {allowed} times ({value})",
            detail=f"so a member could be replaced {allowed - 1} times at most, not "
            f"{replacements}; then all members would end",
            hint=f"{rest} Or say replacements={allowed - 1}, and accept that.",
        )


def task_failures(context: SparkContext) -> tuple[int, str]:
    """How often a task may fail, and "where that is set|what to do"."""
    found = _LOCAL.fullmatch(str(context.master))
    if found:
        return int(found[1] or 1), f'master {context.master}|Use a master such as "local[8,1000]".'
    value = int(context.getConf().get("spark.task.maxFailures", "4") or 4)
    return value, (
        f"spark.task.maxFailures = {value}"
        '|Set "spark.task.maxFailures" to 1000 when the session is made.'
    )


def await_slots(context: SparkContext, members: int, spare: int, timeout: float) -> None:
    """Wait until there are enough free task slots: executors may still be starting, other jobs
    ending. Raises ResourceError."""
    if spare < 0:
        raise InputError(f"spare_slots must be at least 0, not {spare}")
    deadline = time.monotonic() + timeout
    wanted = members + spare
    while True:
        slots = slots_of(context)
        if slots.total - slots.busy >= wanted or grows(context):
            return
        never = slots.total < wanted and _LOCAL.fullmatch(str(context.master)) is not None
        if never or time.monotonic() >= deadline:
            break
        time.sleep(_SLOTS_PAUSE)
    if not slots.total:
        raise ResourceError(
            "Spark has no executor that is ready",
            hint="Executors on other machines need spark.driver.host to be an address of this one, "
            f"which is {context.getConf().get('spark.driver.host', '')} for them.",
        )
    raise ResourceError(
        f"Spark has {slots.total} task slots, {slots.busy} of them busy: {members} members need "
        f"{members}, and {spare} shall stay free for other jobs",
        hint="Each member keeps a slot for as long as it lives. Give the application more cores "
        "or executors, or ask for fewer members; spare_slots=0 gives them all to members, and then "
        "no other job runs beside them.",
    )


def grows(context: SparkContext) -> bool:
    """Whether executors come when there are tasks for them."""
    value = context.getConf().get("spark.dynamicAllocation.enabled", "false") or "false"
    return value.lower() == "true"


def settings_of_members(
    *,
    config: Path | None,
    settings: Mapping[str, object],
    members: int,
    host: str,
    data_dir: str,
) -> tuple[MemberConfig, dict[str, str]]:
    """The settings of every member, checked as far as the driver can, and those that were given,
    as text. ``host``: the name of the driver's machine among them; members on loopback need no
    protection. Raises InputError."""
    given: dict[str, object] = {}
    if config is not None:
        member_config(file=config)
        given |= _table(config)
    given |= {name.replace("-", "_"): value for name, value in settings.items()}
    for name in sorted(OURS & given.keys()):
        raise InputError(
            f"the setting {name} has no place here: members in Spark get theirs by themselves",
            hint="data_dir=, host= and members= are arguments of start_cluster.",
        )
    merged = member_config(
        flags=given | {"cluster_size": members, "host": host, "data_dir": data_dir}
    )
    check_exposure(merged)
    return merged, {name: str(value) for name, value in given.items()}


def tls_of(merged: MemberConfig) -> TlsFiles | None:
    """The protection of the line between tasks and driver: the members' own files, which the driver
    needs at the same places."""
    if not merged.tls_certificate:
        return None
    return TlsFiles(
        ca=merged.tls_ca,
        certificate=merged.tls_certificate,
        key=merged.tls_key,
        server_name=merged.tls_server_name,
        minimum=merged.tls_minimum,
    )


def client_tls(merged: MemberConfig) -> dict[str, str]:
    """With which options the driver connects as a client."""
    if not merged.tls_certificate:
        return {}
    options = {"ca": merged.tls_ca, "server_name": merged.tls_server_name}
    if merged.tls_client_certificates == "all":
        options |= {"certificate": merged.tls_certificate, "key": merged.tls_key}
    return options


def size_in_bytes(value: int | str, what: str) -> int:
    """1073741824, "1g", "512 MiB". Raises InputError."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    found = _SIZE.fullmatch(str(value).strip()) if isinstance(value, str) else None
    if found is None or not float(found[1]):
        raise InputError(
            f"{what} must be a number of bytes, not {value!r}", hint='Such as "4g" or 4294967296.'
        )
    return int(float(found[1]) * 1024 ** _UNITS[found[2].lower()])


def _table(file: Path) -> dict[str, object]:
    import tomllib  # noqa: PLC0415 (only here)

    found = tomllib.loads(file.read_text(encoding="utf-8")).get("member", {})
    assert isinstance(found, dict)
    return found
