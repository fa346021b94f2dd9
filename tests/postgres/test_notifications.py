"""LISTEN and NOTIFY of psycopg's connections to several members, beside PostgreSQL's answers."""

from __future__ import annotations

import subprocess

import pytest
from psycopg import errors

from remuda.errors import NotSupported

PATIENCE = 20.0


def heard(connection, count=1):
    """The next notifications; fewer if no more come."""
    found = connection.notifies(timeout=PATIENCE, stop_after=count)
    return [(each.channel, each.payload, each.pid) for each in found]


def told(connection, count=1):
    return [(channel, payload) for channel, payload, _ in heard(connection, count)]


def nothing_more(connection, sender, channel):
    """A further notification is the next that the connection hears."""
    sender.execute(f"NOTIFY {channel}, 'the end'")
    return told(connection) == [(channel, "the end")]


@pytest.fixture
def trio(connect):
    return connect(0), connect(1), connect(2)


def test_sessions_of_all_members_hear_a_notification(trio):
    for connection in trio:
        assert connection.execute("LISTEN news").statusmessage == "LISTEN"
    assert trio[0].execute("NOTIFY news, 'one'").statusmessage == "NOTIFY"
    pid = trio[0].info.backend_pid
    for connection in trio:
        assert heard(connection) == [("news", "one", pid)]
    trio[1].execute("SELECT pg_notify('news', %s)", ["two"])
    trio[2].execute("NOTIFY news")
    for connection in trio:
        assert told(connection, 2) == [("news", "two"), ("news", "")]


def test_an_idle_client_is_told_by_psql_as_by_postgresql(cluster):
    host, port = cluster.members[0].postgres.split(":")
    found = subprocess.run(
        ["psql", "-XAt", "-h", host, "-p", port, "-U", "bob", "-d", "shop", "-c", "LISTEN own",
         "-c", "NOTIFY own, 'at once'"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = found.stdout.splitlines()
    assert lines[:2] == ["LISTEN", "NOTIFY"]
    assert lines[2].startswith(
        'Asynchronous notification "own" with payload "at once" received from server process'
    )


def test_notifications_leave_with_the_commit(trio):
    listener, sender, third = trio
    for connection in trio:
        connection.execute("LISTEN late")
    with sender.transaction():
        sender.execute("NOTIFY late, 'second'")
        sender.execute("NOTIFY late, 'second'")
        sender.execute("NOTIFY late, 'third'")
        third.execute("NOTIFY late, 'first'")
    assert told(listener, 3) == [("late", "first"), ("late", "second"), ("late", "third")]
    assert told(third, 3) == [("late", "first"), ("late", "second"), ("late", "third")]


def test_a_rollback_sends_nothing(trio):
    listener, sender, _ = trio
    listener.execute("LISTEN undone")
    with sender.transaction(force_rollback=True):
        sender.execute("NOTIFY undone, 'rolled back'")
    with sender.transaction():
        sender.execute("NOTIFY undone, 'kept'")
        with sender.transaction(force_rollback=True):
            sender.execute("NOTIFY undone, 'to a savepoint'")
            sender.execute("NOTIFY undone, 'kept'")
        with sender.transaction():
            sender.execute("SELECT pg_notify('undone', 'released')")
    with pytest.raises(errors.DivisionByZero), sender.transaction():
        sender.execute("NOTIFY undone, 'failed'")
        sender.execute("SELECT 1 / 0")
    assert told(listener, 2) == [("undone", "kept"), ("undone", "released")]
    assert nothing_more(listener, sender, "undone")


def test_a_transaction_is_told_when_it_ends(trio):
    listener, sender, _ = trio
    listener.execute("LISTEN busy")
    listener.execute("BEGIN")
    sender.execute("NOTIFY busy, 'waits'")
    sender.execute("LISTEN busy")
    sender.execute("NOTIFY busy, 'too'")
    assert told(sender) == [("busy", "too")]
    assert list(listener.notifies(timeout=0)) == []
    listener.execute("SELECT 1")
    assert list(listener.notifies(timeout=0)) == []
    listener.execute("COMMIT")
    assert told(listener, 2) == [("busy", "waits"), ("busy", "too")]


def test_listen_counts_with_the_commit(trio):
    listener, sender, _ = trio
    listener.execute("NOTIFY later, 'before'")
    with listener.transaction(force_rollback=True):
        listener.execute("LISTEN later")
    sender.execute("NOTIFY later, 'to nobody'")
    with listener.transaction():
        listener.execute("LISTEN later")
        listener.execute("NOTIFY later, 'from within'")
    assert told(listener) == [("later", "from within")]
    with listener.transaction():
        listener.execute("UNLISTEN later")
        sender.execute("NOTIFY later, 'still'")
        listener.execute("LISTEN later")
    assert told(listener) == [("later", "still")]
    with listener.transaction():
        listener.execute("UNLISTEN later")
        listener.execute("LISTEN other")
        sender.execute("NOTIFY later, 'no more'")
    assert nothing_more(listener, sender, "other")


def test_the_listening_channels(trio):
    listener, _, _ = trio

    def channels():
        return [row for (row,) in listener.execute("SELECT pg_listening_channels()").fetchall()]

    assert channels() == []
    listener.execute("LISTEN a")
    listener.execute('LISTEN "B c"')
    listener.execute("LISTEN a")
    assert sorted(channels()) == ["B c", "a"]
    listener.execute("UNLISTEN a")
    listener.execute("UNLISTEN never")
    assert listener.execute("SELECT * FROM pg_listening_channels()").fetchall() == [("B c",)]
    assert listener.execute("SELECT pg_notification_queue_usage()").fetchone() == (0.0,)
    listener.execute("LISTEN d")
    listener.execute("UNLISTEN *")
    assert channels() == []
    listener.execute("LISTEN e")
    listener.execute("DISCARD ALL")
    assert channels() == []


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT pg_notify('', 'x')", "channel name cannot be empty"),
        ("SELECT pg_notify(NULL, 'x')", "channel name cannot be empty"),
        (f"SELECT pg_notify('{'c' * 64}', 'x')", "channel name too long"),
        (f"SELECT pg_notify('c', '{'x' * 8000}')", "payload string too long"),
        (f"NOTIFY c, '{'ä' * 4000}'", "payload string too long"),
    ],
)
def test_limits_of_names_and_payloads(connection, statement, message):
    with pytest.raises(errors.InvalidParameterValue) as caught:
        connection.execute(statement)
    assert caught.value.diag.message_primary == message


def test_a_payload_of_full_length(connection):
    connection.execute("LISTEN long")
    connection.execute(f"NOTIFY long, '{'x' * 7999}'")
    assert told(connection) == [("long", "x" * 7999)]
    assert told_of_null(connection) == [("long", "")]


def told_of_null(connection):
    connection.execute("SELECT pg_notify('long', NULL)")
    return told(connection)


def test_many_notifications_keep_their_order(trio):
    listener, sender, _ = trio
    listener.execute("LISTEN many")
    sender.execute(
        "SELECT pg_notify('many', x || repeat('.', 1000)) FROM generate_series(1, 500) t(x)"
    )
    found = [payload.rstrip(".") for _, payload in told(listener, 500)]
    assert found == [str(x) for x in range(1, 501)]


def test_too_many_notifications_of_a_transaction(connection):
    with pytest.raises(errors.ProgramLimitExceeded, match="too many notifications"):
        connection.execute(
            "SELECT pg_notify('many', x || repeat('.', 7000)) FROM generate_series(1, 3000) t(x)"
        )


def test_remudas_clients_notify_and_are_told_that_they_cannot_listen(connection, cluster):
    connection.execute("LISTEN ours")
    with cluster.connect() as client:
        client.sql("NOTIFY ours, 'autocommitted'")
        with client.transaction() as transaction:
            transaction.sql("NOTIFY ours, 'committed'")
        with pytest.raises(NotSupported, match="no session that could listen"):
            client.sql("LISTEN ours")
    assert told(connection, 2) == [("ours", "autocommitted"), ("ours", "committed")]
