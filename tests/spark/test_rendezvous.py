"""Who founds and who joins: the driver's decisions, and the line on which tasks hear of them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark")

from remuda.client.embedded.ready import Ready
from remuda.errors import (
    AuthenticationFailed,
    ConnectionBroken,
    ProtocolError,
    RemudaError,
    TlsFailed,
)
from remuda.rpc.tls import TlsFiles
from remuda.spark.hosting.rendezvous import Arrival, Place, Refusal, Rendezvous
from remuda.spark.hosting.rendezvous_line import Line, accept, dial
from remuda.spark.hosting.rendezvous_server import RendezvousServer

SECRET = b"0123456789abcdef0123456789abcdef"


def arrival(seat: int, attempt: int = 0, **more: object) -> Arrival:
    values = {"control": f"h{seat}:{attempt}", "host": f"h{seat}", "version": "1"} | more
    return Arrival(seat=seat, attempt=attempt, **values)  # type: ignore[arg-type]


def ready(number: int) -> Ready:
    return Ready(number, f"u:{number}", f"c:{number}", f"d:{number}")


def formed(count: int = 3) -> tuple[Rendezvous, list[Arrival]]:
    made = Rendezvous(count, "1")
    arrivals = [arrival(seat) for seat in range(count)]
    for each in arrivals:
        made.arrive(each)
    for seat, each in enumerate(arrivals):
        assert made.place(each) is not None
        made.ready(each, ready(seat + 1), 100 + seat)
    assert made.formed
    return made, arrivals


def test_nobody_is_answered_before_all_are_there() -> None:
    made = Rendezvous(2, "1")
    made.arrive(arrival(1))
    assert made.place(arrival(1)) is None
    made.arrive(arrival(0))
    assert made.place(arrival(1)) == Place("h0:0")
    assert made.place(arrival(0)) == Place("")


def test_a_seat_with_a_log_founds() -> None:
    made = Rendezvous(3, "1")
    arrivals = [arrival(0), arrival(1, has_log=True), arrival(2, has_log=True)]
    for each in arrivals:
        made.arrive(each)
    assert [made.place(each) for each in arrivals] == [Place("h1:0"), Place(""), Place("h1:0")]


def test_a_lost_member_is_replaced_alone() -> None:
    made, arrivals = formed()
    made.leave(arrivals[0], "killed", "its log")
    assert [member.seat for member in made.members] == [1, 2]
    again = arrival(0, attempt=7)
    made.arrive(again)
    assert made.place(again) == Place("c:2")
    made.ready(again, ready(4), 200)
    assert [member.number for member in made.members] == [4, 2, 3]
    assert [str(loss) for loss in made.losses] == ["seat 0, attempt 0: killed"]
    assert made.losses[0].log == "its log"
    assert not made.failure


def test_a_second_attempt_waits_until_the_seat_is_empty() -> None:
    made, arrivals = formed()
    again = arrival(1, attempt=5)
    made.arrive(again)
    assert made.place(again) is None
    made.leave(again, "it gave up waiting")  # which is no loss
    assert len(made.members) == 3
    assert not made.losses
    made.arrive(again)
    made.leave(arrivals[1], "killed")
    assert made.place(again) == Place("c:1")
    assert made.place(arrivals[1]) == Refusal("a later attempt of this task has its seat")


def test_a_task_comes_back_on_another_line() -> None:
    made, arrivals = formed()
    made.leave(arrivals[2], "its line broke")
    assert made.back(arrivals[2], ready(3), 102)
    assert len(made.members) == 3
    made.leave(arrivals[2], "its line broke")
    again = arrival(2, attempt=1)
    made.arrive(again)
    assert made.place(again) is not None
    assert not made.back(arrivals[2], ready(3), 102)


def test_a_member_that_ends_before_the_cluster_is_formed_ends_the_start() -> None:
    made = Rendezvous(2, "1")
    arrivals = [arrival(0), arrival(1)]
    for each in arrivals:
        made.arrive(each)
    made.leave(arrivals[1], "it ended with status 1", "the log", told=True)
    assert made.failure == "the member in seat 1 on h1: it ended with status 1"
    assert made.failure_log == "the log"
    assert made.place(arrivals[0]) == Refusal(made.failure)


def test_a_task_that_is_lost_before_anybody_was_answered_comes_again() -> None:
    made = Rendezvous(2, "1")
    made.arrive(arrival(1))
    made.leave(arrival(1), "its executor is gone")
    assert not made.failure
    made.arrive(arrival(0))
    assert made.place(arrival(0)) is None, "the other one is waited for"
    again = arrival(1, attempt=2)
    made.arrive(again)
    assert made.place(arrival(0)) == Place("")
    assert made.place(again) == Place("h0:0")


@pytest.mark.parametrize("told", [False, True])
def test_only_a_start_that_broke_off_may_begin_anew(told: bool) -> None:
    """A member that ends by itself would do so the next time, too."""
    made = Rendezvous(2, "1")
    arrivals = [arrival(0), arrival(1)]
    for each in arrivals:
        made.arrive(each)
    assert [made.place(each) for each in arrivals] == [Place(""), Place("h0:0")]
    made.ready(arrivals[0], ready(1), 100)
    made.leave(arrivals[1], "gone", told=told)
    assert made.failure
    assert made.broke_off is not told


def test_the_loss_of_all_members_is_the_end() -> None:
    made, arrivals = formed(2)
    made.leave(arrivals[0], "killed")
    assert not made.failure
    made.leave(arrivals[1], "killed, too")
    assert made.failure == "the last member is lost (seat 1: killed, too)"


def test_another_version_on_an_executor_is_told() -> None:
    made = Rendezvous(2, "1")
    made.arrive(arrival(0, version="2"))
    assert made.failure.startswith("h0 has remuda 2, the driver 1")


# --- the line ---------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[RendezvousServer]:
    made = RendezvousServer(Rendezvous(1, "1"), host="127.0.0.1", port=0, secret=SECRET, tls=None)
    yield made
    made.close()


def test_a_task_is_led_from_hello_to_its_end(server: RendezvousServer) -> None:
    with dial("127.0.0.1", server.port, SECRET, None) as line:
        said = {"seat": 0, "attempt": 3, "control": "c", "host": "h", "version": "1"}
        line.send({"kind": "hello", "arrival": said})
        assert line.receive(10) == {"kind": "place", "join": ""}
        member = {"number": 1, "user": "u:1", "control": "c", "data": "d"}
        line.send({"kind": "ready", "member": member, "pid": 42})
        assert server.wait(lambda seen: seen.formed, 10)
        logs: list[dict[int, str]] = []
        asking = threading.Thread(target=lambda: logs.append(server.logs(100)))
        asking.start()
        assert line.receive(10) == {"kind": "logs", "size": 100}
        line.send({"kind": "log", "text": "a line\n"})
        asking.join(10)
        assert logs == [{0: "a line\n"}]
        stopped: list[bool] = []
        stopping = threading.Thread(target=lambda: stopped.append(server.stop(10)))
        stopping.start()
        assert line.receive(10) == {"kind": "stop"}
        line.send({"kind": "ended", "reason": "it was stopped", "log": ""})
        stopping.join(10)
        assert stopped == [True]


def test_with_tls_both_sides_show_certificates(certificates: Any) -> None:
    certificate, key = certificates.issue("rendezvous")
    files = TlsFiles(ca=certificates.ca, certificate=certificate, key=key)
    server = RendezvousServer(
        Rendezvous(1, "1"), host="127.0.0.1", port=0, secret=SECRET, tls=files
    )
    try:
        with pytest.raises((ConnectionBroken, TlsFailed, ProtocolError)):
            dial("127.0.0.1", server.port, SECRET, None)
        with pytest.raises((ConnectionBroken, TlsFailed)):  # told when it is first read from
            dial("127.0.0.1", server.port, SECRET, TlsFiles(ca=files.ca))
        with dial("127.0.0.1", server.port, SECRET, files) as line:
            assert not line.look(), "what TLS itself has sent is nothing for us"
            said = {"seat": 0, "attempt": 3, "control": "c", "host": "h", "version": "1"}
            line.send({"kind": "hello", "arrival": said})
            assert line.receive(10) == {"kind": "place", "join": ""}
    finally:
        server.close()


def test_a_broken_line_is_a_loss(server: RendezvousServer) -> None:
    line = dial("127.0.0.1", server.port, SECRET, None)
    said = {"seat": 0, "attempt": 3, "control": "c", "host": "h", "version": "1"}
    line.send({"kind": "hello", "arrival": said})
    assert line.receive(10)["kind"] == "place"
    line.close()
    assert server.wait(lambda seen: bool(seen.failure), 10)
    assert "its task was killed" in server.look(lambda seen: seen.failure)


def test_a_stranger_is_told_nothing(server: RendezvousServer) -> None:
    with pytest.raises((AuthenticationFailed, ConnectionBroken)):
        dial("127.0.0.1", server.port, b"another secret of the same size!", None)
    assert server.look(lambda seen: seen.arrived) == 0


def test_who_does_not_know_the_secret_is_no_driver() -> None:
    """Both sides show it: a task gives its member's place to nobody else."""
    ours, theirs = socket.socketpair()
    raised: list[RemudaError] = []

    def pretend() -> None:
        line = Line(theirs, "nobody")
        line.receive(10)
        line.send({"format": 1, "nonce": "00" * 32})
        line.receive(10)
        line.send({"proof": "00" * 32})

    pretender = threading.Thread(target=pretend)
    pretender.start()
    from remuda.spark.hosting.rendezvous_line import _show  # noqa: PLC0415 (one side alone)

    try:
        _show(Line(ours, "nobody"), SECRET)
    except RemudaError as error:
        raised.append(error)
    pretender.join(10)
    ours.close()
    theirs.close()
    assert [type(error) for error in raised] == [AuthenticationFailed]


@pytest.mark.parametrize(
    "data", [b"\xff\xff\xff\xff", b"\0\0\0\x02[]", b"\0\0\0\x02{}", b"GET / HT"]
)
def test_what_is_no_message_ends_the_line(data: bytes) -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(data)
    theirs.close()
    with pytest.raises((ProtocolError, ConnectionBroken)):
        accept(ours, "somebody", SECRET, None)
    assert ours.fileno() == -1
