"""The version of the cluster: which members work together, and when it may rise (decision 0112).
Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from remuda.datatypes.view import MemberInfo, View
from remuda.errors import NotSupported, VersionMismatch, WrongState

HINT: Final = (
    "A release works together with the one before it and the one after it. Upgrade one release at"
    " a time (docs/upgrade.md)."
)


def works_in(info: MemberInfo) -> str:
    """The release of a member and its versions, in words."""
    return f"release {info.release or 'before 0.2.0'} ({info.versions})"


def require_fit(info: MemberInfo, view: View) -> None:
    """Raises VersionMismatch unless the process may be a member of the cluster with this view."""
    if view.version in info.versions:
        return
    text = f"the cluster works in version {view.version}, the process that asks to join has "
    hint = HINT
    if info.versions.highest < view.version:
        hint = (
            "The upgrade of the cluster was finished. Start the process with the release that the"
            " other members have (sys.members)."
        )
    raise VersionMismatch(text + works_in(info), hint=hint)


def require_version(view: View, version: int, what: str) -> None:
    """Raises NotSupported when ``what`` came with a version in which the cluster does not work yet:
    a member of the release before would not know it."""
    if view.version >= version:
        return
    raise NotSupported(
        f"{what} needs version {version} of the cluster, which works in version {view.version}",
        hint="Upgrade all members, then finish the upgrade: remuda upgrade --finish"
        " (docs/upgrade.md).",
    )


def require_common(members: Iterable[MemberInfo], least: int = 0) -> int:
    """The highest version in which all ``members`` work, for a view that they make together;
    ``least``: that of the view before. Raises VersionMismatch when there is none."""
    infos = list(members)
    common = min(info.versions.highest for info in infos)
    needed = max([least, *(info.versions.lowest for info in infos)])
    if common >= needed:
        return common
    older = min(infos, key=lambda info: info.versions.highest)
    raise VersionMismatch(
        f"no version suits all: {_place(older)} has {works_in(older)}, version {needed} is needed",
        hint=HINT,
    )


def to_follow(view: View) -> int:
    """The version that an operator who finishes an upgrade asks for: the highest that the members
    have; that of the view, when nobody has a higher one. Raises WrongState while some members do
    not have it."""
    wanted = max(member.versions.highest for member in view.members)
    older = [member for member in view.members if wanted not in member.versions]
    if wanted > view.version and older:
        raise WrongState(
            f"the upgrade to version {wanted} is not complete: {_listed(older)}",
            hint="Restart these members with the newer release first, one after the other.",
        )
    return max(wanted, view.version)


def _listed(members: Sequence[MemberInfo]) -> str:
    shown = [f"{_place(each)} has {works_in(each)}" for each in members[:3]]
    more = f", and {len(members) - 3} more" if len(members) > 3 else ""
    return ", ".join(shown) + more


def _place(info: MemberInfo) -> str:
    number = f"member {info.number}" if info.number else "the process"
    return f"{number} at {info.host}:{info.user_port}"
