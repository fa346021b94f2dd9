"""Clients whose texts are in another encoding than UTF-8."""

from __future__ import annotations

import io
import struct

import psycopg
import psycopg2
import pytest

from remuda.postgres.transcoding import Transcoder

WORDS = {
    "LATIN1": "müß", "LATIN9": "€", "WIN1252": "“ß”", "WIN1251": "Жук", "KOI8R": "Жук",
    "EUC_JP": "日本", "SJIS": "日本", "EUC_KR": "한국", "BIG5": "中文", "GBK": "中文",
    "ISO_8859_5": "Жук", "WIN866": "Жук",
}  # fmt: skip
DATA, READY = b"D", b"Z"


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def row(*values: bytes | None) -> bytes:
    sizes = [struct.pack("!i", -1) if v is None else struct.pack("!i", len(v)) + v for v in values]
    return message(DATA, struct.pack("!H", len(values)) + b"".join(sizes))


@pytest.mark.parametrize("encoding", WORDS)
def test_texts_go_and_come_in_the_encoding_of_the_client(connect, encoding):
    word = WORDS[encoding]
    connection = connect(client_encoding=encoding)
    assert connection.info.parameter_status("client_encoding") == encoding
    ask = f"SELECT %s::text AS \"{word}\", '{word}', octet_length(%s::text), %s::int, NULL"
    cursor = connection.execute(ask, (word, word, 5))
    assert cursor.fetchall() == [(word, word, len(word.encode()), 5, None)]
    assert cursor.description[0].name == word
    for prepared in (False, True, True):
        found = connection.execute("SELECT %s::text, length(%s)", (word, word), prepare=prepared)
        assert found.fetchall() == [(word, len(word))]
    with connection.cursor(binary=True) as binary:  # told as text, and read as such
        assert binary.execute("SELECT %s::text, 7", (word,)).fetchall() == [(word, 7)]
    with pytest.raises(psycopg.errors.UndefinedTable, match=word):
        connection.execute(f'SELECT * FROM "{word}"')


def test_a_letter_that_the_client_cannot_have_is_an_error_of_the_statement(connect):
    connection = connect(client_encoding="latin1")
    text = (
        'character with byte sequence 0xe2 0x82 0xac in encoding "UTF8" has no equivalent in '
        'encoding "LATIN1"'
    )
    with pytest.raises(psycopg.errors.UntranslatableCharacter, match=text):
        connection.execute(
            "SELECT CASE n WHEN 3 THEN U&'\\20AC' ELSE 'x' END FROM generate_series(1, 5000) n"
        )
    assert connection.execute("SELECT 'é'").fetchone() == ("é",)
    connection.execute("SET client_encoding = 'UTF8'")
    assert connection.execute("SELECT U&'\\20AC'").fetchone() == ("€",)


def test_copy_has_the_encoding_of_the_client_unless_it_names_one(door):
    connection = psycopg2.connect(**door)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE encoded (id INT PRIMARY KEY, word TEXT)")
        try:
            connection.set_client_encoding("WIN1252")
            cursor.copy_expert("COPY encoded FROM STDIN", io.StringIO("1\tñ€\n2\tplain\n"))
            into = io.BytesIO()
            cursor.copy_expert("COPY encoded TO STDOUT", into)
            assert into.getvalue() == "1\tñ€\n2\tplain\n".encode("cp1252")
            into = io.BytesIO()
            cursor.copy_expert("COPY encoded TO STDOUT (FORMAT csv, ENCODING 'LATIN9')", into)
            assert into.getvalue() == "1,ñ€\n2,plain\n".encode("iso8859-15")
            cursor.execute("SELECT pg_client_encoding(), word FROM encoded WHERE id = 1")
            assert cursor.fetchall() == [("WIN1252", "ñ€")]
            connection.set_client_encoding("UTF8")
            cursor.execute("SELECT word, octet_length(word) FROM encoded WHERE id = 1")
            assert cursor.fetchall() == [("ñ€", 5)]
        finally:
            cursor.execute("DROP TABLE encoded")
    connection.close()


def test_messages_are_converted_whatever_pieces_they_are_written_in():
    whole = row("é".encode(), None, b"x") + message(READY, b"I")
    expected = row(b"\xe9", None, b"x") + message(READY, b"I")
    for cut in range(len(whole)):
        transcoder = Transcoder("LATIN1", "iso8859-1")
        assert transcoder.written(whole[:cut]) + transcoder.written(whole[cut:]) == expected


def test_nothing_follows_a_row_that_cannot_be_sent_before_the_session_is_ready():
    transcoder = Transcoder("LATIN1", "iso8859-1")
    sent = transcoder.written(
        row(b"a") + row("€".encode()) + row(b"b") + message(b"C", b"SELECT 3\0")
    )
    assert sent.startswith(row(b"a") + b"E")
    assert row(b"b") not in sent and b"SELECT 3" not in sent
    after = message(READY, b"I") + row(b"c")
    assert transcoder.written(after) == after


def test_a_message_that_is_wrong_is_left_to_its_reader():
    transcoder = Transcoder("EUC_JP", "euc_jp")
    for body in (b"\xff\xff\0", b"", b"\0"):
        assert transcoder.read(ord("Q"), body) == body
    for body in (b"", b"\0", b"\0\0", b"\0\0\0\1", b"\0\0\0\0\0\5"):
        assert transcoder.read(ord("B"), body) == body
