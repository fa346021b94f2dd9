"""The messages of ``cluster.agreement`` and ``cluster.membership`` as protobuf, and back."""

from __future__ import annotations

from remuda.cluster import agreement as ag
from remuda.cluster import membership as ms
from remuda.cluster.decree import Ballot, Vote
from remuda.cluster.next_view import Placement
from remuda.errors import ProtocolError
from remuda.rpc import codec
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.storage.format.records import HeardLog

_Kind = control_pb2.Agreement


def encode_log_end(log: HeardLog) -> control_pb2.LogEnd:
    return control_pb2.LogEnd(member=log.member, identity=log.identity, sequence=log.sequence)


def decode_log_end(message: control_pb2.LogEnd) -> HeardLog:
    return HeardLog(message.member, message.identity, message.sequence)


def encode_agreement(
    message: ag.Message, context: common_pb2.Context, reason: str = ""
) -> control_pb2.Agreement:
    """``reason``: why a decided view does not have the receiver."""
    made = control_pb2.Agreement(context=context)
    match message:
        case ag.Prepare(view, ballot):
            _fill(made, _Kind.PREPARE, view, ballot)
        case ag.Promise(view, ballot, vote):
            _fill(made, _Kind.PROMISE, view, ballot)
            if vote is not None:
                _fill_ballot(made.accepted, vote.ballot)
                made.value.CopyFrom(codec.encode_view(vote.value))
        case ag.Accept(view, ballot, value):
            _fill(made, _Kind.ACCEPT, view, ballot)
            made.value.CopyFrom(codec.encode_view(value))
        case ag.Accepted(view, ballot, quiet):
            _fill(made, _Kind.ACCEPTED, view, ballot)
            _fill_quiet(made, quiet)
        case ag.Refused(view, ballot, promised):
            _fill(made, _Kind.REFUSED, view, ballot)
            _fill_ballot(made.promised, promised)
        case ag.Ask(view):
            _fill(made, _Kind.ASK, view)
        case ag.Decided(value, quiet):
            _fill(made, _Kind.DECIDED, value.number)
            _fill_quiet(made, quiet)
            made.value.CopyFrom(codec.encode_view(value))
            made.reason = reason
        case ag.Installed(view):
            _fill(made, _Kind.INSTALLED, view)
    return made


def _fill(
    made: control_pb2.Agreement,
    kind: control_pb2.Agreement.Kind,
    view: int,
    ballot: Ballot | None = None,
) -> None:
    made.kind = kind
    made.view = view
    if ballot is not None:
        _fill_ballot(made.ballot, ballot)


def _fill_ballot(made: control_pb2.Ballot, ballot: Ballot) -> None:
    made.round, made.proposer = ballot.round, ballot.proposer


def _fill_quiet(made: control_pb2.Agreement, quiet: ag.Quiet) -> None:
    for number, seconds in quiet:
        made.quiet.add(member=number, seconds=seconds)


def _quiet(message: control_pb2.Agreement) -> ag.Quiet:
    return tuple((each.member, each.seconds) for each in message.quiet)


def _ballot(message: control_pb2.Ballot) -> Ballot:
    return Ballot(message.round, message.proposer)


def decode_agreement(message: control_pb2.Agreement) -> ag.Message:
    """Raises ProtocolError for a kind that this version does not know."""
    view, ballot = message.view, _ballot(message.ballot)
    match message.kind:
        case _Kind.PREPARE:
            return ag.Prepare(view, ballot)
        case _Kind.PROMISE:
            vote = None
            if message.HasField("value"):
                vote = Vote(_ballot(message.accepted), codec.decode_view(message.value))
            return ag.Promise(view, ballot, vote)
        case _Kind.ACCEPT:
            return ag.Accept(view, ballot, codec.decode_view(message.value))
        case _Kind.ACCEPTED:
            return ag.Accepted(view, ballot, _quiet(message))
        case _Kind.REFUSED:
            return ag.Refused(view, ballot, _ballot(message.promised))
        case _Kind.ASK:
            return ag.Ask(view)
        case _Kind.DECIDED:
            return ag.Decided(codec.decode_view(message.value), _quiet(message))
        case _Kind.INSTALLED:
            return ag.Installed(view)
    raise ProtocolError(f"there is no message {message.kind} about views")


def encode_wish(wish: ms.Asked, context: common_pb2.Context) -> control_pb2.MembershipWish:
    made = control_pb2.MembershipWish(context=context)
    match wish:
        case ms.JoinAsked(info):
            made.join.CopyFrom(codec.encode_member(info))
        case ms.LeaveAsked(member, until):
            made.leave, made.until = member, until
        case ms.VersionAsked(version):
            made.version = version
        case ms.PlaceAsked(places):
            for place in places:
                made.places.add(
                    partition=place.partition,
                    before=place.before,
                    after=place.after,
                    generation=place.generation,
                    donor=place.donor,
                )
    return made


def decode_wish(message: control_pb2.MembershipWish) -> ms.Asked:
    if message.HasField("join"):
        return ms.JoinAsked(codec.decode_member(message.join))
    if message.HasField("leave"):
        return ms.LeaveAsked(message.leave, message.until)
    if message.HasField("version"):
        return ms.VersionAsked(message.version)
    return ms.PlaceAsked(
        tuple(
            Placement(
                place.partition,
                tuple(place.before),
                tuple(place.after),
                place.generation,
                place.donor,
            )
            for place in message.places
        )
    )
