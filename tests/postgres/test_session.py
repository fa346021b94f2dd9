"""The session machine, message by message: what it asks of the shell and tells the client."""

from __future__ import annotations

import struct

import pytest

from remuda.errors import (
    InvalidByteSequence,
    NoActiveTransaction,
    ProtocolError,
    QueryCanceled,
    UndefinedCursor,
    UndefinedMap,
)
from remuda.postgres import effects as fx
from remuda.postgres import session as ps
from remuda.postgres.messages import Field, read_bind, read_message, row_description
from remuda.postgres.prepared import Manner, Prepared
from remuda.postgres.reader import Reader

COLUMNS = (Field("a", 23, 4, -1),)


def message(kind, body=b""):
    return kind + struct.pack("!i", len(body) + 4) + body


def query(text):
    return message(b"Q", text.encode() + b"\0")


def parse(text="SELECT", name=b"", types=()):
    oids = struct.pack(f"!H{len(types)}I", len(types), *types)
    return message(b"P", name + b"\0" + text.encode() + b"\0" + oids)


def bind(portal=b"", statement=b"", values=(), formats=(), results=()):
    parts = [portal, b"\0", statement, b"\0"]
    parts.append(struct.pack(f"!H{len(formats)}h", len(formats), *formats))
    parts.append(struct.pack("!H", len(values)))
    parts += [struct.pack("!i", len(value)) + value for value in values]
    parts.append(struct.pack(f"!H{len(results)}h", len(results), *results))
    return message(b"B", b"".join(parts))


def execute(portal=b"", limit=0):
    return message(b"E", portal + b"\0" + struct.pack("!i", limit))


SYNC = message(b"S")


class Shell:
    """Answers as a member does, and notes what was asked of it."""

    def __init__(self, turns="take"):
        """``turns`` ("take" or "decline") answers reads that come in one piece."""
        self.turns = turns
        self.reader = Reader()
        self.reader.authenticated()
        self.machine = ps.Session()
        self.asked = []
        self.told = b""
        self.status = ps.IDLE
        self.manner = Manner.ROWS
        self.fails = {}
        """Errors by what is run."""

    def send(self, *data):
        self.reader.feed(b"".join(data))
        while True:
            turn = self.machine.turn(self.reader)
            if turn is not None:
                self.take(turn)
            effects = self.machine.step(self.reader)
            if effects is None:
                return self
            self.perform(effects)

    def take(self, turn):
        text = turn.prepared.text
        if self.turns == "decline":
            self.machine.declined(self.reader)
            return
        self.asked.append(f"run {text}")
        description = row_description(turn.prepared.fields, turn.formats)
        error = self.fails.get(text)
        if error is None:
            self.told += self.machine.turned(turn, description, [b""])
        else:
            self.told += self.machine.turn_failed(turn, description, error)

    def perform(self, effects):
        for effect in effects:
            match effect:
                case fx.Write(data):
                    self.told += data
                case fx.Ready(status):
                    self.told += message(b"Z", status)
                case fx.Prepare(text, types, _):
                    self.asked.append(f"prepare {text}")
                    oids = types or (23,) * text.count("$")
                    fields = COLUMNS if text.startswith("SELECT") else None
                    made = Prepared(text, self.manner, oids, fields, None, bool(fields))
                    self.answer(text, lambda made=made: self.machine.prepared(made))
                case fx.BindValues():
                    self.perform(self.machine.bound("token"))
                case fx.RunPortal(portal, limit):
                    self.asked.append(f"run {portal.prepared.text}")
                    if limit:
                        self.perform(self.machine.suspended())
                    else:
                        self.run(portal.prepared.text)
                case fx.Split(text):
                    pieces = [(text.index(s), s) for s in text.split(";") if s]
                    self.perform(self.machine.split(pieces))
                case fx.Look(text):
                    manner = Manner.OUTSIDE if text.startswith("CREATE") else self.manner
                    if text.startswith("BEGIN"):
                        manner = Manner.BEGIN
                    if text.startswith("SAVEPOINT"):
                        manner = Manner.BLOCK
                    self.perform(self.machine.looked(manner))
                case fx.RunText(text):
                    self.asked.append(f"run {text}")
                    self.run(text)
                case fx.Control(what):
                    self.asked.append(what)
                    self.run(what)
                case fx.UseCursor("declared"):
                    self.perform(self.machine.described(COLUMNS, False))
                case fx.UseCursor(name):
                    error = UndefinedCursor(f'portal "{name}" does not exist')
                    self.perform(self.machine.failed(error, self.status))
                case fx.CloseCursor():
                    self.perform(self.machine.closed())
                case fx.DropPortal(portal):
                    self.asked.append(f"drop {portal.name}")
                case fx.FailTransaction(error):
                    self.asked.append(f"fail {error.sqlstate}")
                    self.status = ps.FAILED
                case fx.End(error):
                    self.asked.append(f"end {error}")

    def run(self, text):
        word = text.split(" ")[0]
        if text not in self.fails:
            if word == "BEGIN":
                self.status = ps.IN_TRANSACTION
            elif word in ("COMMIT", "ROLLBACK"):
                self.status = ps.IDLE
        self.answer(text, lambda: self.machine.completed(word, 1, self.status))

    def answer(self, text, well):
        error = self.fails.get(text)
        effects = well() if error is None else self.machine.failed(error, self.status)
        self.perform(effects)

    @property
    def kinds(self):
        """The types of the messages to the client, in order; Z with its status."""
        found, at = [], 0
        while at < len(self.told):
            (size,) = struct.unpack_from("!i", self.told, at + 1)
            kind = self.told[at : at + 1].decode()
            if kind == "Z":
                kind += self.told[at + 5 : at + 6].decode()
            found.append(kind)
            at += size + 1
        return " ".join(found)


# --- the simple protocol -----------------------------------------------------------------------


def test_one_statement_runs_as_it_is():
    shell = Shell().send(query("SELECT 1"))
    assert shell.asked == ["run SELECT 1"]
    assert shell.kinds == "C ZI"


def test_an_empty_query_is_said_to_be_empty():
    assert Shell().send(query("")).kinds == "I ZI"


def test_several_statements_are_one_transaction():
    shell = Shell().send(query("INSERT 1;INSERT 2"))
    assert shell.asked == ["BEGIN", "run INSERT 1", "run INSERT 2", "COMMIT"]
    assert shell.kinds == "C C ZI"


def test_an_error_rolls_all_statements_of_a_query_back():
    shell = Shell()
    shell.fails["INSERT 2"] = UndefinedMap("no map")
    shell.send(query("INSERT 1;INSERT 2;INSERT 3"))
    assert shell.asked == ["BEGIN", "run INSERT 1", "run INSERT 2", "fail 42P01", "ROLLBACK"]
    assert shell.kinds == "C E ZI"


def test_a_commit_that_fails_is_told_before_the_session_is_ready():
    shell = Shell()
    shell.fails["COMMIT"] = UndefinedMap("no map")
    shell.send(query("INSERT 1;INSERT 2"))
    shell.status = ps.IDLE
    assert shell.kinds.startswith("C C E Z")


def test_a_definition_among_others_ends_the_implicit_transaction():
    shell = Shell().send(query("INSERT 1;CREATE 2;INSERT 3"))
    assert shell.asked == [
        "BEGIN",
        "run INSERT 1",
        "COMMIT",
        "run CREATE 2",
        "BEGIN",
        "run INSERT 3",
        "COMMIT",
    ]


def test_begin_takes_over_what_ran_before_it():
    shell = Shell().send(query("INSERT 1;BEGIN;INSERT 2"))
    assert shell.asked == ["BEGIN", "run INSERT 1", "run INSERT 2"]
    assert shell.kinds == "C C C ZT"


def test_a_savepoint_without_a_block_undoes_what_ran_before_it():
    shell = Shell()
    shell.fails["SAVEPOINT s"] = NoActiveTransaction("only in transaction blocks")
    shell.send(query("INSERT 1;SAVEPOINT s;INSERT 2"))
    assert shell.asked == ["BEGIN", "run INSERT 1", "ROLLBACK", "run SAVEPOINT s"]
    assert shell.kinds == "C E ZI"


# --- the extended protocol ---------------------------------------------------------------------


def test_a_lone_statement_has_no_transaction():
    shell = Shell().send(parse("SELECT"), bind(), execute(), SYNC)
    assert shell.asked == ["prepare SELECT", "run SELECT"]
    assert shell.kinds == "1 2 C ZI"


def test_a_pipeline_is_one_transaction_up_to_its_sync():
    one = (parse("SELECT"), bind(), execute())
    shell = Shell().send(*one, *one, SYNC, *one, SYNC)
    runs = [asked for asked in shell.asked if not asked.startswith("prepare")]
    assert runs == ["BEGIN", "run SELECT", "run SELECT", "COMMIT", "run SELECT"]
    assert shell.kinds == "1 2 C 1 2 C ZI 1 2 C ZI"


def test_after_an_error_everything_is_skipped_up_to_sync():
    shell = Shell()
    shell.fails["SELECT wrong"] = UndefinedMap("no map")
    shell.send(parse("SELECT wrong"), bind(), execute(), parse("SELECT"), SYNC, parse("SELECT"))
    assert shell.asked == ["prepare SELECT wrong", "prepare SELECT"]
    assert shell.kinds == "E ZI 1"


def test_any_error_fails_an_open_transaction():
    shell = Shell().send(query("BEGIN"), bind(b"", b"missing"), SYNC)
    assert shell.asked == ["run BEGIN", "fail 26000"]
    assert shell.kinds == "C ZT E ZE"


def test_an_error_in_a_pipeline_rolls_it_back_at_its_sync():
    shell = Shell()
    shell.fails["SELECT 2"] = QueryCanceled("stop")
    shell.send(parse("SELECT 1"), bind(), execute(), parse("SELECT 2"), bind(), execute(), SYNC)
    assert "ROLLBACK" in shell.asked
    assert "COMMIT" not in shell.asked
    assert shell.kinds == "1 2 C E ZI" or shell.kinds == "1 2 C 1 2 E ZI"


def test_statements_and_portals_are_described():
    shell = Shell().send(
        parse("SELECT $", b"s"),
        message(b"D", b"Ss\0"),
        bind(b"p", b"s", [b"1"], results=[1]),
        message(b"D", b"Pp\0"),
        parse("INSERT", b"i"),
        message(b"D", b"Si\0"),
        SYNC,
    )
    assert shell.kinds == "1 t T 2 T 1 t n ZI"


def test_a_suspended_portal_goes_on_within_a_transaction_and_ends_with_it():
    shell = Shell().send(query("BEGIN"), parse("SELECT"), bind(b"c"), execute(b"c", 5), SYNC)
    shell.send(execute(b"c", 5), SYNC)
    assert shell.kinds == "C ZT 1 2 s ZT s ZT"
    assert shell.asked == ["run BEGIN", "prepare SELECT", "run SELECT", "run SELECT"]
    shell.send(query("COMMIT"))
    assert shell.asked[-1] == "drop c"
    shell.send(execute(b"c"), SYNC)
    assert shell.kinds.endswith("E ZI")


def test_without_a_transaction_a_portal_ends_at_its_sync():
    shell = Shell("decline").send(parse("SELECT"), bind(), execute(limit=2), SYNC)
    assert shell.asked[-1] == "drop "


DESCRIBE = message(b"D", b"P\0")


def read(statement=b"s", values=(b"7",), *between, limit=0, **bound):
    """The messages of drivers for a prepared read, in one piece."""
    return b"".join((bind(b"", statement, values, **bound), *between, execute(limit=limit), SYNC))


@pytest.mark.parametrize(
    ("data", "kinds"),
    [
        (read(), "2 C ZI"),
        (read(b"s", [b"7"], DESCRIBE), "2 T C ZI"),
        (read(b"s", [b"7"], DESCRIBE, results=[1]), "2 T C ZI"),
        (read(limit=1), "2 s ZI"),
        (read(formats=[1], results=[1]), "2 C ZI"),
        (read(b"fails"), "2 E ZI"),
        (read(b"fails", [b"7"], DESCRIBE), "2 T E ZI"),
        (read(b"unknown"), "E ZI"),
        (read(b"s", []), "E ZI"),
        (read(b"s", [b"7"], results=[0, 0]), "E ZI"),
        (read(b"s", [b"7"], results=[7]), "E ZI"),
        (read(b"s", [b"7"], formats=[0, 0, 0]), "E ZI"),
        (read(b"insert", []), "2 C ZI"),
        (read()[:-5], "2 C"),
        (read() + read(), "2 C ZI 2 C ZI"),
        (bind(b"p", b"s", [b"7"]) + DESCRIBE + execute() + SYNC, "2 E ZI"),
    ],
)
def test_a_read_in_one_piece_is_answered_as_its_messages_are(data, kinds):
    told = {}
    for turns in ("take", "decline"):
        shell = Shell(turns)
        shell.send(
            parse("SELECT $", b"s"), parse("SELECT $ fails", b"fails"), parse("INSERT", b"insert")
        )
        shell.send(SYNC)
        shell.fails["SELECT $ fails"] = UndefinedMap("no map")
        shell.told = b""
        shell.send(data)
        assert shell.kinds == kinds
        told[turns] = shell.told
        shell.send(SYNC, read())
        assert shell.kinds.endswith("ZI 2 C ZI")
    assert told["take"] == told["decline"]


def test_binds_are_read_alike_on_both_ways():
    names = [b"", b"s", "sägen".encode(), b"\xff"]
    kinds = [(), (0,), (1,), (1, 1), (7,)]
    values = [[], [b""], [b"1", b"22"], [b"x" * 300]]
    bodies = [
        bind(portal, name, given, formats, results)[5:]
        for portal in (b"", b"p")
        for name in names
        for given in values
        for formats in kinds
        for results in kinds
    ]
    bodies += [b"", b"\0", b"\0\0", b"\0s\0\0\1\0\0", b"\0s\0\0\1\0\1\0\1\0\0"]
    bodies += [body[:-1] for body in bodies] + [body + b"\0" for body in bodies]
    bodies += [b"\0s\0\0\1\0\1\0\1" + size + b"ab\0\1\0\1" for size in (
        b"\xff\xff\xff\xff", b"\0\0\0\x02", b"\0\0\0\x03", b"\x7f\xff\xff\xff")]  # fmt: skip
    outcomes = set()
    for body in bodies:
        found = []
        for read_one in (read_bind, lambda body: read_message(ord("B"), body)):
            try:
                found.append(read_one(body))
            except (ProtocolError, InvalidByteSequence) as error:
                found.append(error.message)
        assert found[0] == found[1], body
        outcomes.add(type(found[0]))
    assert len(outcomes) == 2


@pytest.mark.parametrize("before", [b"", bind(b"", b"s", [b"1"]), bind(b"c", b"s", [b"1"])])
def test_a_read_in_an_open_transaction_or_beside_portals_takes_no_short_way(before):
    shell = Shell().send(parse("SELECT $", b"s"), SYNC, query("BEGIN"), before)
    assert shell.machine.turn(shell.reader) is None
    shell.reader.feed(read())
    assert shell.machine.turn(shell.reader) is None
    assert shell.send().kinds.endswith("2 C ZT")


def test_while_a_read_in_one_piece_is_not_answered_nothing_else_is_taken():
    shell = Shell().send(parse("SELECT $", b"s"), SYNC)
    shell.reader.feed(read())
    turn = shell.machine.turn(shell.reader)
    assert turn.message.values == (b"7",)
    shell.reader.feed(read())
    assert shell.machine.turn(shell.reader) is None
    assert shell.machine.step(shell.reader) is None
    shell.told += shell.machine.turned(turn, b"", [])
    assert shell.send().kinds == "1 ZI 2 C ZI 2 C ZI"


def test_names_are_unique_until_they_are_closed():
    shell = Shell().send(parse(name=b"s"), parse(name=b"s"), SYNC)
    assert shell.kinds == "1 E ZI"
    shell.send(message(b"C", b"Ss\0"), parse(name=b"s"), SYNC)
    assert shell.kinds.endswith("3 1 ZI")
    shell.machine.deallocated(["s"])
    shell.send(bind(b"", b"s"), SYNC)
    assert shell.kinds.endswith("E ZI")


def test_a_cursor_of_sql_is_described_as_a_portal():
    shell = Shell().send(message(b"D", b"Pdeclared\0"), SYNC)
    assert shell.kinds == "T ZI"


@pytest.mark.parametrize(
    "data",
    [
        bind(b"", b"s"),
        bind(b"", b"s", [b"1", b"2"]),
        bind(b"", b"s", [b"1"], formats=[0, 1]),
        bind(b"", b"s", [b"1"], formats=[2]),
        bind(b"", b"s", [b"1"], results=[0, 0, 0]),
        execute(b"missing"),
        message(b"D", b"Pmissing\0"),
        message(b"D", b"Xs\0"),
        message(b"B", b"cut"),
        message(b"E", b"cut"),
        message(b"P", b"\xff\0\0\0\0"),
    ],
)
def test_a_wrong_message_is_an_error_until_sync(data):
    shell = Shell().send(parse("SELECT $", b"s"), data, execute(), SYNC)
    assert shell.kinds.endswith("E ZI")
    assert shell.send(query("SELECT 1")).kinds.endswith("C ZI")


def test_a_message_of_no_known_type_ends_the_connection():
    shell = Shell().send(message(b"?"))
    assert shell.kinds == "E"
    assert shell.asked[0].startswith("end invalid frontend message type")
    assert shell.send(query("SELECT 1")).kinds == "E"


def test_function_calls_are_refused_and_answered():
    assert Shell().send(message(b"F", b"")).kinds == "E ZI"


def test_copy_messages_after_a_refused_copy_mean_nothing():
    assert Shell().send(message(b"d", b"x"), message(b"c"), query("SELECT 1")).kinds == "C ZI"
