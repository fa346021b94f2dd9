"""The driver's end of the rendezvous: a thread that listens, and one for each task.

All decisions are ``rendezvous.Rendezvous``'s; here they are waited for, under one lock.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from typing import Any, Final

from remuda.client.embedded.ready import Ready
from remuda.client.network.address import format_address
from remuda.errors import ConnectionBroken, InputError, RemudaError
from remuda.rpc.tls import TlsFiles, server_context
from remuda.spark.hosting.rendezvous import Arrival, Place, Refusal, Rendezvous
from remuda.spark.hosting.rendezvous_line import Line, Message, accept

log = logging.getLogger(__name__)

STRANGERS_MAX: Final = 1024
"""Connections at a time that have not shown that they know the secret."""
CONNECT_PATIENCE: Final = 10.0
LOGS_TIMEOUT: Final = 20.0
WAITING_CHECK: Final = 0.5
"""Seconds between two looks whether a task that waits for its place is still there."""
UNTOLD: Final = "its task was killed, or its executor is gone"


class RendezvousServer:
    """Listens from its construction on. Raises InputError when it cannot."""

    def __init__(
        self,
        rendezvous: Rendezvous,
        *,
        host: str,
        port: int,
        secret: bytes,
        tls: TlsFiles | None,
    ) -> None:
        self._rendezvous = rendezvous
        self._secret = secret
        self._tls = tls
        self._changed = threading.Condition()
        self._lines: dict[Arrival, _TaskLine] = {}
        self._strangers = threading.BoundedSemaphore(STRANGERS_MAX)
        self._closing = False
        if tls is not None:
            server_context(tls, client_certificates=bool(tls.ca))  # wrong files: told here
        try:
            self._listening = socket.create_server(
                (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=512
            )
        except OSError as problem:
            raise InputError(
                f"the driver cannot listen for members at {format_address(host, port)}: {problem}",
                hint="Name an address and port of the driver's machine that the executors reach: "
                "rendezvous_host, rendezvous_port.",
            ) from problem
        self._listener = threading.Thread(
            target=self._listen, name="remuda rendezvous", daemon=True
        )
        self._listener.start()

    @property
    def port(self) -> int:
        return int(self._listening.getsockname()[1])

    # --- for the driver -------------------------------------------------------------------------

    def look(self, see: Callable[[Rendezvous], Any]) -> Any:
        """The finding of ``see``, while nothing changes."""
        with self._changed:
            return see(self._rendezvous)

    def wait(self, until: Callable[[Rendezvous], bool], timeout: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: until(self._rendezvous), timeout)

    def fail(self, reason: str) -> None:
        with self._changed:
            self._rendezvous.fail(reason)
            self._changed.notify_all()

    def logs(self, size: int) -> dict[int, str]:
        """The last ``size`` bytes of the log of every member that serves, by seat."""
        with self._changed:
            lines = {member.seat: self._line_of(member.seat) for member in self._rendezvous.members}
        found: dict[int, str] = {}
        for seat, line in lines.items():
            if line is not None:
                with suppress(ConnectionBroken):  # lost meanwhile: its loss is told elsewhere
                    found[seat] = line.log(size)
        return found

    def stop(self, timeout: float) -> bool:
        """Have all tasks stop their members and end; whether all have within ``timeout`` s."""
        with self._changed:
            self._closing = True
            self._rendezvous.fail("the cluster was stopped")
            lines = list(self._lines.values())
            self._changed.notify_all()
        for each in lines:
            with suppress(ConnectionBroken):
                each.line.send({"kind": "stop"})
        with self._changed:
            return self._changed.wait_for(lambda: not self._lines, timeout)

    def close(self) -> None:
        """No task is heard any more; those that are there see the end of their line."""
        self._closing = True
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        with self._changed:
            lines = list(self._lines.values())
        for each in lines:
            each.line.close()
        self._listener.join()

    def _line_of(self, seat: int) -> _TaskLine | None:
        for arrival, line in self._lines.items():
            if arrival.seat == seat and line.serves:
                return line
        return None

    # --- for the tasks --------------------------------------------------------------------------

    def _listen(self) -> None:
        while True:
            try:
                connection, address = self._listening.accept()
            except OSError:
                return  # closed
            if not self._strangers.acquire(blocking=False):
                connection.close()
                continue
            peer = f"a task on {address[0]}"
            threading.Thread(
                target=self._serve, args=(connection, peer), name=peer, daemon=True
            ).start()

    def _serve(self, connection: socket.socket, peer: str) -> None:
        try:
            try:
                line = accept(connection, peer, self._secret, self._tls)
            finally:
                self._strangers.release()
            with line:
                self._attend(line)
        except (RemudaError, OSError) as error:
            log.info("%s: %s", peer, error)

    def _attend(self, line: Line) -> None:
        said = line.receive(CONNECT_PATIENCE)
        arrival = _arrival(said["arrival"])
        line.peer = f"the task of seat {arrival.seat} on {arrival.host}"
        task = _TaskLine(line)
        reason: str | None = None
        with self._changed:
            self._lines[arrival] = task
        try:
            if said["kind"] == "back":
                self._welcome_back(arrival, task, said)
            elif not self._give_place(arrival, task):
                return
            reason = self._follow(arrival, task)
        except ConnectionBroken as error:
            log.info("%s", error)
        finally:
            with self._changed:
                if self._lines.get(arrival) is task:  # else it has come back on another line
                    del self._lines[arrival]
                    self._rendezvous.leave(
                        arrival, reason or UNTOLD, task.last_log, told=reason is not None
                    )
                    self._changed.notify_all()

    def _give_place(self, arrival: Arrival, task: _TaskLine) -> bool:
        """Answer when there is an answer; False: there is no place."""
        with self._changed:
            self._rendezvous.arrive(arrival)
            self._changed.notify_all()
        while True:
            with self._changed:
                answer = self._rendezvous.place(arrival)
                if answer is None:
                    self._changed.wait(WAITING_CHECK)
                else:
                    self._changed.notify_all()
            if answer is None:
                task.line.send({"kind": "wait"})  # breaks when the task is gone
            elif isinstance(answer, Refusal):
                task.line.send({"kind": "refused", "reason": answer.reason})
                return False
            else:
                assert isinstance(answer, Place)
                task.line.send({"kind": "place", "join": answer.join})
                return True

    def _welcome_back(self, arrival: Arrival, task: _TaskLine, said: Message) -> None:
        with self._changed:
            kept = self._rendezvous.back(arrival, Ready(**said["member"]), said["pid"])
            task.serves = kept
            self._changed.notify_all()
        if not kept:
            task.line.send({"kind": "stop"})

    def _follow(self, arrival: Arrival, task: _TaskLine) -> str:
        """Hear the task until it says why its member has ended."""
        while True:
            said = task.line.receive()
            match said.get("kind"):
                case "ready":
                    with self._changed:
                        self._rendezvous.ready(arrival, Ready(**said["member"]), said["pid"])
                        task.serves = True
                        self._changed.notify_all()
                case "log":
                    task.answered(str(said["text"]))
                case "ended":
                    task.last_log = str(said["log"])
                    return str(said["reason"])


class _TaskLine:
    """The server's knowledge of one task."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.serves = False
        self.last_log = ""
        self._asking = threading.Lock()
        self._answer: str | None = None
        self._arrived = threading.Event()

    def log(self, size: int) -> str:
        with self._asking:
            self._answer = None
            self._arrived.clear()
            self.line.send({"kind": "logs", "size": size})
            if not self._arrived.wait(LOGS_TIMEOUT):
                return f"{self.line.peer} has not sent its log within {LOGS_TIMEOUT:g} s"
            return self._answer or ""

    def answered(self, text: str) -> None:
        self._answer = text
        self._arrived.set()


def _arrival(values: Message) -> Arrival:
    known = {field.name for field in fields(Arrival)}
    return Arrival(**{name: value for name, value in values.items() if name in known})
