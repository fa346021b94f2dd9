"""Statements with thousands of parameters, as drivers write them for many rows: no step of the loop
grows with the rows."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from decimal import Decimal

import psycopg

from remuda.member.postgres import preparing
from remuda.member.postgres.preparing import MANY_VALUES


def insert(rows):
    cells = ", ".join(["(%s, %s, %s, DEFAULT)"] * rows)
    return f"INSERT INTO many (id, name, price, born) VALUES {cells}"


def values(rows, start=0):
    for row in range(start, start + rows):
        yield from (row, f"n{row}", Decimal(row) / 4)


async def connect(cluster):
    host, port = cluster.member(1).postgres.address.split(":")
    return await psycopg.AsyncConnection.connect(
        host=host, port=int(port), user="bob", dbname="shop", autocommit=True
    )


def test_many_parameters_are_read_off_the_loop(in_cluster, monkeypatch):
    threads: Counter[bool] = Counter()
    read = preparing.decode

    def noted(*arguments):
        threads[threading.current_thread() is threading.main_thread()] += 1
        return read(*arguments)

    monkeypatch.setattr(preparing, "decode", noted)

    async def scenario(cluster):
        connection = await connect(cluster)
        await connection.execute(
            "CREATE TABLE many (id BIGINT PRIMARY KEY, name VARCHAR, price NUMERIC(12, 2),"
            " born TIMESTAMPTZ DEFAULT now())"
        )
        rows = MANY_VALUES // 3 + 1
        await connection.execute(insert(rows), tuple(values(rows)))
        assert threads == {False: 3 * rows}
        found = await connection.execute("SELECT count(*), sum(price), count(born) FROM many")
        assert await found.fetchone() == (rows, sum(list(values(rows))[2::3]), rows)
        try:
            await connection.execute(insert(rows), (*tuple(values(rows, rows))[:-1], "x"))
        except psycopg.errors.InvalidTextRepresentation as error:
            assert 'invalid input syntax for type numeric: "x"' in str(error)
        else:
            raise AssertionError("x is no number")
        await connection.close()

    in_cluster(scenario)


def test_calls_of_the_loop_that_follow_the_plan_do_not_grow_with_the_rows(in_cluster):
    """Operators are built on the loop. Their calls are counted by the modules of the engine."""
    counts: Counter[int] = Counter()

    async def scenario(cluster):
        connection = await connect(cluster)
        await connection.execute(
            "CREATE TABLE many (id BIGINT PRIMARY KEY, name VARCHAR, price NUMERIC(12, 2),"
            " born TIMESTAMPTZ DEFAULT now())"
        )
        for rows in (40, 80, 320):

            def seen(frame, event, _, rows=rows):
                if event == "call" and "/execution/build" in frame.f_code.co_filename:
                    counts[rows] += 1

            sys.setprofile(seen)
            try:
                await connection.execute(insert(rows), tuple(values(rows, rows)))
            finally:
                sys.setprofile(None)
            await connection.execute("DELETE FROM many")
        await connection.close()

    in_cluster(scenario)
    assert counts[40] == counts[80] == counts[320] > 0
