"""Ways to break the rules about who may be in the next view; registered with those of
``sim_mutations``.
"""

from __future__ import annotations

from sim_mutations import Patch, mutation

import remuda.cluster.joiners as joiners_module
import remuda.member.base.peers as peers_module
from remuda.cluster.joiners import Joiners
from remuda.cluster.membership import Membership
from remuda.datatypes.view import MemberInfo
from remuda.errors import RemudaError
from remuda.member.membership.meeting import Meetings

NOT_THERE = "processes_that_are_not_there_do_not_join"


@mutation
def nobody_meets_a_joiner(patch: Patch) -> str:
    async def met(self: Meetings, info: MemberInfo, **_: object) -> None:
        return None

    patch.setattr(Meetings, "meet", met)
    return NOT_THERE


@mutation
def a_joiner_is_met_by_its_address(patch: Patch) -> str:
    async def difference(self: Meetings, info: MemberInfo) -> str:
        there = await self._handshake(info)
        return there.message if isinstance(there, RemudaError) else ""

    patch.setattr(Meetings, "_difference", difference)
    return NOT_THERE


@mutation
def one_member_meets_for_all(patch: Patch) -> str:
    patch.setattr(joiners_module, "majority", lambda _voters: 1)
    return "a_majority_meets_a_process_before_it_joins"


@mutation
def all_members_must_meet_a_joiner(patch: Patch) -> str:
    patch.setattr(joiners_module, "majority", lambda voters: voters)
    return "a_majority_suffices_to_meet_a_process"


@mutation
def a_meeting_of_an_older_incarnation_counts(patch: Patch) -> str:
    lately, asked = Meetings._lately, Joiners.asked

    def by_address(self: Meetings, info: MemberInfo) -> bool:
        known = {met.control_port for met in self._met}
        return lately(self, info) or info.control_port in known

    def with_meetings(self: Joiners, now: float, info: MemberInfo) -> bool:
        taken = asked(self, now, info)
        for known, joiner in self._joiners.items():
            if taken and known.control_port == info.control_port:
                self._joiners[info].met |= joiner.met
        return taken

    patch.setattr(Meetings, "_lately", by_address)
    patch.setattr(Joiners, "asked", with_meetings)
    return "a_meeting_is_with_one_incarnation"


@mutation
def any_number_joins_at_once(patch: Patch) -> str:
    patch.setattr(Membership, "_room", lambda self, without: 99)
    return "processes_that_end_before_the_vote_do_not_stop_the_cluster"


@mutation
def joiners_need_not_be_heard_before_others_join(patch: Patch) -> str:
    room = Membership._room

    def further(self: Membership, without: frozenset[int]) -> int:
        self._newcomers = frozenset()
        return room(self, without)

    patch.setattr(Membership, "_room", further)
    return "processes_that_end_before_the_vote_do_not_stop_the_cluster"


@mutation
def a_handshake_is_sent_once(patch: Patch) -> str:
    patch.setattr(peers_module, "ATTEMPTS", 1)
    return "a_lost_handshake_costs_no_member"
