"""The version of the cluster: who may join, when it rises, and that it never falls."""

from __future__ import annotations

from dataclasses import replace

import pytest

from remuda.cluster import agreement as ag
from remuda.cluster.assignment import first_view
from remuda.cluster.joining import Founding
from remuda.cluster.membership import (
    JoinAsked,
    LeaveAsked,
    Membership,
    Met,
    PassOn,
    Times,
    VersionAsked,
)
from remuda.cluster.next_view import next_view
from remuda.cluster.versions import require_common, require_fit, require_version, to_follow
from remuda.datatypes.view import MemberInfo, View
from remuda.errors import NotSupported, VersionMismatch, WrongState
from remuda.release import Versions

OLD, NEW, NEWER = Versions(2, 2), Versions(2, 3), Versions(3, 4)
TIMES = Times(interval=1.0, timeout=10.0, lease=3.0, retry=0.5)


def member(number: int, versions: Versions) -> MemberInfo:
    release = f"0.{versions.highest}.0"
    return MemberInfo(
        number, f"u{number}", "h", 1, number or 9, 3, release=release, versions=versions
    )


def view_of(*versions: Versions) -> View:
    return first_view(tuple(member(n, each) for n, each in enumerate(versions, 1)), 1)


def machine(view: View, me: int = 1) -> Membership:
    return Membership(me, view, now=0.0, times=TIMES, next_view=next_view)


def proposed(machine: Membership, effects: list[object]) -> View:
    """Votes of all members for the view that ``machine`` begins to propose."""
    for _ in range(10):
        sent = [each for each in effects if isinstance(each, ag.Send)]
        effects = []
        for send in sent:
            match send.message:
                case ag.Prepare(view, ballot):
                    promise = ag.Promise(view, ballot, None)
                    effects += machine.step(0.0, ag.Received(send.to, promise))
                case ag.Accept(_, _, value):
                    return value
    raise AssertionError("no view was proposed")


def test_a_new_cluster_works_in_the_highest_version_that_all_have() -> None:
    assert view_of(NEW, OLD, NEW).version == 2
    assert view_of(NEW, NEWER).version == 3
    assert view_of(NEW, NEW).version == 3
    founding = Founding("c", 2, member(1, OLD))
    with pytest.raises(VersionMismatch, match=r"the process at h:1 .*|member 1 at h:1 has release"):
        founding.join("c", member(0, NEWER))
    founding.join("c", member(0, NEW))
    assert founding.view().version == 2


def test_members_without_a_common_version_make_no_view() -> None:
    with pytest.raises(VersionMismatch, match=r"version 3 is needed") as caught:
        require_common([member(1, OLD), member(2, NEWER)])
    assert "member 1 at h:1 has release 0.2.0 (version 2)" in caught.value.message
    assert require_common([member(1, NEW), member(2, NEWER)]) == 3
    with pytest.raises(VersionMismatch):  # the folders of the others say that it was finished
        require_common([member(1, OLD)], 3)


def test_the_version_rises_when_it_is_asked_for_and_all_members_have_it() -> None:
    view = view_of(NEW, NEW, NEW)
    view = replace(view, version=2)
    first = machine(view)
    assert to_follow(view) == 3
    after = proposed(first, first.step(0.0, VersionAsked(3)))
    assert (after.version, after.number) == (3, 2)
    assert after.replicas == view.replicas
    second = machine(view, 2)
    assert second.step(0.0, VersionAsked(3)) == [PassOn(1, VersionAsked(3))]


def test_the_version_does_not_rise_by_itself() -> None:
    view = replace(view_of(NEW, NEW, NEW), version=2)
    first = machine(view)
    assert proposed(first, first.step(0.0, LeaveAsked(3))).version == 2


def test_a_member_of_the_release_before_keeps_the_version() -> None:
    view = view_of(NEW, OLD, NEW)
    first = machine(view)
    assert not [each for each in first.step(0.0, VersionAsked(3)) if isinstance(each, ag.Send)]
    with pytest.raises(WrongState, match="version 3 is not complete: member 2 at h:1 has release"):
        to_follow(view)
    # The wish is not kept until the member leaves.
    assert proposed(first, first.step(0.0, LeaveAsked(2))).version == 2


def test_the_version_does_not_fall_and_an_older_release_does_not_join() -> None:
    view = view_of(NEW, NEW, NEW)
    first = machine(view)
    for asked in (2, 3):
        assert not first.step(0.0, VersionAsked(asked))
    assert to_follow(view) == 3
    old = member(0, OLD)
    with pytest.raises(VersionMismatch, match=r"works in version 3, .* release 0.2.0") as caught:
        require_fit(old, view)
    assert "was finished" in caught.value.hint
    with pytest.raises(VersionMismatch) as caught:
        require_fit(member(0, Versions(4, 5)), view)
    assert "one release at a time" in caught.value.hint.replace("\n", " ")
    require_fit(member(0, NEWER), view)


@pytest.mark.parametrize(("versions", "joins"), [(OLD, False), (NEW, True), (NEWER, True)])
def test_the_next_view_names_only_those_that_work_in_its_version(
    versions: Versions, joins: bool
) -> None:
    view = view_of(NEW, NEW, NEW)
    first = machine(view)
    info = member(0, versions)
    effects = list(first.step(0.0, JoinAsked(info)))
    for number in (1, 2, 3):
        effects += first.step(0.0, Met(number, info))
    asked = any(isinstance(each, ag.Send) for each in effects)
    assert asked is joins
    if joins:
        assert proposed(first, effects).by_number[4] == replace(info, number=4)


def test_what_came_later_is_refused_until_the_version_rises() -> None:
    view = replace(view_of(NEW, NEW), version=2)
    with pytest.raises(NotSupported, match=r"GRAPHS needs version 3 .* works in version 2"):
        require_version(view, 3, "GRAPHS")
    require_version(replace(view, version=3), 3, "GRAPHS")
