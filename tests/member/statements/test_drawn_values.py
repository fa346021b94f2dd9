"""INSERT of one row that takes numbers of sequences or calls volatile functions: the initiator
draws the values, and the owner of the key carries out the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from remuda.errors import QueryCanceled, QueryTimeout, RemudaError, ViewChanged
from remuda.member.maps.keyed_writes import KeyedWrites
from remuda.member.sequences.states import Sequences
from remuda.member.statements import short_statements
from remuda.member.statements.statements import Statements
from remuda.member.statements.write_statements import KeyedStatements

InCluster = Callable[..., None]
DEFINITIONS = (
    "CREATE SEQUENCE other START 100 INCREMENT 10",
    (
        "CREATE TABLE t (id SMALLSERIAL PRIMARY KEY, name VARCHAR(5) NOT NULL, n BIGINT DEFAULT 7, "
        "made TIMESTAMPTZ DEFAULT now(), r DOUBLE DEFAULT random(), CHECK (n < 100 OR n > 900))"
    ),
    "CREATE TABLE own (id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n BIGINT)",
)
SCRIPT: list[tuple[str, tuple[object, ...]]] = [
    ("INSERT INTO t (name) VALUES (?)", ("a",)),
    ("INSERT INTO t (name) VALUES (?) RETURNING id, name, n, id * 2", ("b",)),
    ("INSERT INTO t (name) VALUES (?)", (None,)),
    ("INSERT INTO t (name, n) VALUES (?, ?)", ("c", 500)),
    ("INSERT INTO t (id, name) VALUES (?, 'd')", (9,)),
    ("INSERT INTO t (id, name) VALUES (?, 'd')", (7,)),
    ("INSERT INTO t (name) VALUES ('e') RETURNING id", ()),
    ("INSERT INTO t (name) VALUES ('f') RETURNING id", ()),
    ("INSERT INTO t (name) VALUES ('g') ON CONFLICT DO NOTHING RETURNING id", ()),
    ("INSERT INTO t (name) VALUES ('h') RETURNING id", ()),
    (
        (
            "INSERT INTO t (id, name, n) VALUES (nextval('t_id_seq') - 1, ?, 1) "
            "ON CONFLICT (id) DO UPDATE SET n = coalesce(t.n, 0) + excluded.n RETURNING id, n"
        ),
        ("i",),
    ),
    ("INSERT INTO t (name, n) VALUES ('j', nextval('other')) RETURNING id, n", ()),
    ("INSERT INTO t (name, n) VALUES ('k', nextval('other') + ?) RETURNING id, n", (1000,)),
    ("INSERT INTO t (name, n) VALUES ('k', currval('other')) RETURNING id, n", ()),
    ("INSERT INTO t (name, n) VALUES ('l', lastval()) RETURNING id, n", ()),
    (
        "INSERT INTO t (name, n) VALUES ('m', CASE WHEN ? THEN nextval('other') END) RETURNING n",
        (False,),
    ),
    ("SELECT setval('t_id_seq', 32767)", ()),
    ("INSERT INTO t (name) VALUES ('n')", ()),
    ("INSERT INTO own DEFAULT VALUES RETURNING id, n", ()),
    ("INSERT INTO own (n) VALUES (?) RETURNING id, n", (5,)),
    ("INSERT INTO own (id, n) VALUES (?, 1)", (5,)),
    ("INSERT INTO own (id, n) OVERRIDING SYSTEM VALUE VALUES (?, 1) RETURNING id", (4,)),
    ("INSERT INTO own (n) VALUES (currval('own_id_seq')) RETURNING id, n", ()),
    ("INSERT INTO own (n) VALUES ((random() * ?)::BIGINT) RETURNING id, n", (0,)),
    ("INSERT INTO own (n) VALUES (nextval('none'))", ()),
    ("INSERT INTO own (n) VALUES (1 / (nextval('other') - 150)) RETURNING id, n", ()),
]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No statement goes on in the general way because the machine is slow."""
    monkeypatch.setattr(short_statements, "LONG", 60.0)


async def outcomes(client: Any) -> list[object]:
    """Of each statement of the script, and what is there in the end. Errors tell random values."""
    found: list[object] = []
    session = b""
    for text, parameters in SCRIPT:
        try:
            result = await client.run(text, *parameters, session=session)
            session = result.session or session
            error = result.error
        except RemudaError as refused:  # in place of a handle
            error = refused
        if error is not None:
            found.append((text, error.sqlstate, error.message, error.subject))
        else:
            rows = result.rows if result.pages and result.columns else []
            found.append((text, result.tag, result.affected, rows))
    found.append(sorted(await client.sql("SELECT id, name, n, made <= now(), r < 1 FROM t")))
    found.append(sorted(await client.sql("SELECT * FROM own")))
    found.append(await client.sql("SELECT last_value, is_called FROM other"))
    return found


@pytest.mark.usefixtures("patient")
def test_both_ways_draw_the_same_numbers(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, began = KeyedWrites.run, 0

    def counted(self: KeyedWrites, *arguments: Any) -> int:
        nonlocal began
        began += 1
        return run(self, *arguments)

    async def define(client: Any) -> None:
        for name in ("TABLE IF EXISTS t", "TABLE IF EXISTS own", "SEQUENCE IF EXISTS other"):
            await client.sql(f"DROP {name}")
        for text in DEFINITIONS:
            await client.sql(text)

    async def scenario(cluster: Any) -> None:
        client = await cluster.client(2)
        await define(client)
        monkeypatch.setattr(KeyedWrites, "run", counted)
        keyed = await outcomes(client)
        assert began > 15
        monkeypatch.setattr(KeyedStatements, "takes", lambda *_: False)
        before = began
        await define(client)
        general = await outcomes(client)
        assert began == before
        for one, other in zip(keyed, general, strict=True):
            assert one == other
        await cluster.idle()

    in_cluster(scenario, members=3, backups=1)


async def connect(cluster: Any, member: int = 1) -> psycopg.AsyncConnection[Any]:
    """Every statement is prepared when it comes for the first time."""
    host, port = cluster.member(member).postgres.address.split(":")
    made = await psycopg.AsyncConnection.connect(
        host=host, port=int(port), user="bob", dbname="shop", autocommit=True
    )
    made.prepare_threshold = 0
    return made


async def one(connection: psycopg.AsyncConnection[Any], text: str, *values: Any) -> Any:
    return await (await connection.execute(text, values)).fetchone()


@pytest.mark.usefixtures("patient")
def test_the_door_answers_without_a_task_and_keeps_the_numbers(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []
    run = Statements.run

    async def noted(self: Statements, statement: Any, *, local: bool = False) -> None:
        texts.append(statement.text)
        await run(self, statement, local=local)

    async def scenario(cluster: Any) -> None:
        connection = await connect(cluster)
        for text in DEFINITIONS:
            await connection.execute(text)
        insert = "INSERT INTO t (name) VALUES (%s) RETURNING id, name"
        assert await one(connection, insert, "a") == (1, "a")
        monkeypatch.setattr(Statements, "run", noted)
        for number in (2, 3):
            assert await one(connection, insert, f"a{number}") == (number, f"a{number}")
        with pytest.raises(psycopg.errors.NotNullViolation):
            await connection.execute(insert, (None,))
        with pytest.raises(psycopg.errors.StringDataRightTruncation):
            await connection.execute(insert, ("too long",))
        assert texts == []
        found = await one(connection, "SELECT currval('t_id_seq'), lastval()")
        assert found == (5, 5), "each INSERT that failed has drawn, too"
        defaults = "INSERT INTO own DEFAULT VALUES RETURNING id"
        assert await one(connection, defaults) == (1,)
        del texts[:]
        assert await one(connection, defaults) == (2,)
        assert await one(connection, insert, "b") == (6, "b")
        assert texts == []
        other = await connect(cluster)
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            await one(other, "SELECT lastval()")
        await cluster.idle()

    in_cluster(scenario, members=2, backups=1)


@pytest.mark.usefixtures("patient")
def test_a_statement_that_runs_again_takes_no_second_number(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, refused = KeyedWrites.run, 0

    def refusing(self: KeyedWrites, *arguments: Any) -> int:
        nonlocal refused
        refused += 1
        if refused % 2:
            raise ViewChanged("another view")
        return run(self, *arguments)

    async def scenario(cluster: Any) -> None:
        connection, client = await connect(cluster), await cluster.client(2)
        for text in DEFINITIONS:
            await client.sql(text)
        insert = "INSERT INTO t (name) VALUES (%s) RETURNING id"
        await connection.execute(insert, ("a",))
        monkeypatch.setattr(KeyedWrites, "run", refusing)
        assert await one(connection, insert, "b") == (2,)
        assert await one(connection, insert, "c") == (3,)
        assert await client.sql("INSERT INTO t (name) VALUES (?) RETURNING id", "d") == [(4,)]
        assert refused == 6

    in_cluster(scenario, members=2, backups=1)


@pytest.mark.parametrize("short", [False, True])
def test_a_statement_that_waits_for_its_number_is_cancelled_and_ends_in_time(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch, short: bool
) -> None:
    asked = asyncio.Event()

    async def silent(self: Sequences, sequence: int, wanted: int) -> None:
        asked.set()

    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        for text in DEFINITIONS:
            await client.sql(text)
        client.short = short
        insert = "INSERT INTO t (name) VALUES (?)"
        for _ in range(2):  # its plan is known
            await client.run(insert, "a")
        monkeypatch.setattr(Sequences, "_ask", silent)
        waiting = await client.start(insert, "b")
        await asked.wait()
        await client.cancel(waiting)
        await waiting.done.wait()
        assert isinstance(waiting.error, QueryCanceled)
        assert not waiting.error.may_have_run
        late = await client.run(insert, "c", timeout=0.05)
        assert isinstance(late.error, QueryTimeout)
        assert not cluster.member(1).statements.sequences._waiting
        await cluster.idle()

    in_cluster(scenario, members=1, backups=0)
