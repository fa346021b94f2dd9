"""PostgreSQL's names of encodings, and Python's codecs for them."""

from __future__ import annotations

import re
from typing import Final

_CODECS: Final = {
    "utf8": "", "unicode": "", "sqlascii": "",
    "latin1": "iso8859-1", "iso88591": "iso8859-1",
    "latin2": "iso8859-2", "iso88592": "iso8859-2",
    "latin3": "iso8859-3", "iso88593": "iso8859-3",
    "latin4": "iso8859-4", "iso88594": "iso8859-4",
    "latin5": "iso8859-9", "iso88599": "iso8859-9",
    "latin6": "iso8859-10", "iso885910": "iso8859-10",
    "latin7": "iso8859-13", "iso885913": "iso8859-13",
    "latin8": "iso8859-14", "iso885914": "iso8859-14",
    "latin9": "iso8859-15", "iso885915": "iso8859-15",
    "latin10": "iso8859-16", "iso885916": "iso8859-16",
    "iso88595": "iso8859-5", "iso88596": "iso8859-6",
    "iso88597": "iso8859-7", "iso88598": "iso8859-8",
    "win1250": "cp1250", "windows1250": "cp1250",
    "win1251": "cp1251", "windows1251": "cp1251", "win": "cp1251",
    "win1252": "cp1252", "windows1252": "cp1252",
    "win1253": "cp1253", "windows1253": "cp1253",
    "win1254": "cp1254", "windows1254": "cp1254",
    "win1255": "cp1255", "windows1255": "cp1255",
    "win1256": "cp1256", "windows1256": "cp1256",
    "win1257": "cp1257", "windows1257": "cp1257",
    "win1258": "cp1258", "windows1258": "cp1258",
    "win866": "cp866", "windows866": "cp866", "alt": "cp866",
    "win874": "cp874", "windows874": "cp874",
    "koi8": "koi8-r", "koi8r": "koi8-r", "koi8u": "koi8-u",
    "eucjp": "euc_jp", "euckr": "euc_kr", "euccn": "gb2312",
    "sjis": "shift_jis", "shiftjis": "shift_jis", "mskanji": "shift_jis", "win932": "cp932",
    "windows932": "cp932", "big5": "big5", "win950": "big5", "windows950": "big5",
    "gbk": "gbk", "win936": "gbk", "windows936": "gbk", "gb18030": "gb18030",
    "uhc": "cp949", "win949": "cp949", "windows949": "cp949", "johab": "johab",
}  # fmt: skip


ENCODINGS: Final = {
    **{f"LATIN{n}": f"latin{n}" for n in range(1, 11)},
    **{f"ISO_8859_{n}": f"iso8859{n}" for n in range(5, 9)},
    **{f"WIN{n}": f"win{n}" for n in (866, 874, *range(1250, 1259))},
    "KOI8R": "koi8r", "KOI8U": "koi8u", "EUC_JP": "eucjp", "EUC_KR": "euckr", "EUC_CN": "euccn",
    "SJIS": "sjis", "BIG5": "big5", "GBK": "gbk", "GB18030": "gb18030", "UHC": "uhc",
    "JOHAB": "johab",
}  # fmt: skip
"""PostgreSQL's names of the encodings that a client may have besides UTF8, each with one of those
that ``known_encoding`` takes."""


def canonical(name: str) -> str | None:
    """PostgreSQL's own name of an encoding that it knows by several; None for an unknown one."""
    word = re.sub(r"[^a-z0-9]", "", name.lower())
    codec = _CODECS.get(word)
    if not codec:
        return {"utf8": "UTF8", "unicode": "UTF8", "sqlascii": "SQL_ASCII"}.get(word)
    return next((own for own, known in ENCODINGS.items() if _CODECS[known] == codec), None)


def known_encoding(name: str) -> str | None:
    """The codec of an encoding, as Python calls it; "" for UTF-8, None for an unknown name. Only
    letters and digits of a name count. SQL_ASCII is read as UTF-8, in which the database is."""
    return _CODECS.get(re.sub(r"[^a-z0-9]", "", name.lower()))
