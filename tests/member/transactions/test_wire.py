"""Parts as messages, and back."""

from __future__ import annotations

import pytest

from remuda.member.state.transaction_sets import PartWork, Write
from remuda.member.transactions.wire import decode_alone, decode_work, fill_alone, fill_work
from remuda.rpc.messages import control_pb2
from remuda.transaction.states import BackupPrepare, TransactionId

WRITES = (Write(7, 2, (1,), (1, "one"), ttl=50), Write(7, 2, (2,), None, ttl=0))
OWNER = TransactionId(90, 3)


@pytest.mark.parametrize(
    "work",
    [
        PartWork(100, WRITES),
        PartWork(0, WRITES, owner=OWNER),
        PartWork(100, WRITES, ((7, (1,)), (8, ("k",))), owner=OWNER, since=(60, 100)),
        PartWork(100, reads=((7, (1,)),)),
    ],
)
def test_the_work_of_a_part_comes_back(work: PartWork) -> None:
    message = control_pb2.PartWork()
    fill_work(message, 5, work)
    assert decode_work(message) == work


def test_a_part_that_is_alone_comes_back() -> None:
    """With all fields of its work: a copy sends it on when it is promoted."""
    frame = control_pb2.PartMessages()
    work = PartWork(100, WRITES[:1])
    message = BackupPrepare(TransactionId(100, 2), 5, 100, (5,), work, one_phase=True)
    assert fill_alone(frame, message, 2, 3)
    (alone,) = frame.alone
    assert decode_alone(alone, 2) == message
    fill_work(control_pb2.PartWork(), 5, decode_alone(alone, 2).work)
