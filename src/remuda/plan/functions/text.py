"""Functions of text and binary strings: types of arguments and results."""

from __future__ import annotations

from typing import Final

from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    INTEGER,
    VARCHAR,
    Kind,
    array,
)
from remuda.plan.functions import arrays as function_arrays
from remuda.plan.functions import json as function_json
from remuda.plan.functions.signatures import (
    NullRule,
    ScalarFunction,
    Signature,
    Types,
    fixed,
    overloads,
    unknown,
)

_TEXT_1 = fixed(VARCHAR, VARCHAR)


def _concatenation(types: Types) -> Signature | None:
    """text || anything -> text; bytea || bytea -> bytea."""
    if len(types) != 2:
        return None
    left, right = types
    if BYTEA in types:
        fits = all(t == BYTEA or unknown(t) for t in types)
        return Signature((BYTEA, BYTEA), BYTEA) if fits else None
    if not any(t.is_text or unknown(t) for t in types):
        return None
    return Signature(tuple(t if t.is_text else VARCHAR for t in (left, right)), VARCHAR)


def _octets(types: Types) -> Signature | None:
    return overloads(fixed(INTEGER, VARCHAR), fixed(INTEGER, BYTEA))(types)


def _texts(types: Types) -> Signature | None:
    """Anything, each as its text: BOOLEAN keeps its type, whose text is ``t`` or ``f`` here."""
    if any(t.kind is Kind.BYTEA for t in types):
        return None
    return Signature(tuple(t if t.is_text or t == BOOLEAN else VARCHAR for t in types), VARCHAR)


def _concat(types: Types) -> Signature | None:
    return _texts(types) if types else None


def _joined(types: Types) -> Signature | None:
    """``concat_ws(separator, ...)``"""
    if len(types) < 2 or not (types[0].is_text or unknown(types[0])):
        return None
    return _texts(types)


def _template(types: Types) -> Signature | None:
    return _joined(types) or (fixed(VARCHAR, VARCHAR)(types) if len(types) == 1 else None)


def _quoted(types: Types) -> Signature | None:
    return _texts(types) if len(types) == 1 else None


def _regexp_replace(types: Types) -> Signature | None:
    """(text, pattern, replacement [, flags]) or (..., start [, n [, flags]])"""
    three = (VARCHAR, VARCHAR, VARCHAR)
    return overloads(
        fixed(VARCHAR, *three, VARCHAR, optional=1),
        fixed(VARCHAR, *three, INTEGER, INTEGER, VARCHAR, optional=2),
    )(types)


_TEXT_OR_BYTES_2 = overloads(
    fixed(VARCHAR, VARCHAR, VARCHAR, optional=1), fixed(BYTEA, BYTEA, BYTEA)
)


FUNCTIONS: Final = (
    ScalarFunction("||", overloads(function_arrays.joined, function_json.joined, _concatenation),
                   summary="concatenation"),
    ScalarFunction(
        "like", fixed(BOOLEAN, VARCHAR, VARCHAR, VARCHAR, optional=1), summary="pattern, escape"
    ),
    ScalarFunction(
        "ilike", fixed(BOOLEAN, VARCHAR, VARCHAR, VARCHAR, optional=1), summary="like, any case"
    ),
    ScalarFunction("upper", _TEXT_1),
    ScalarFunction("lower", _TEXT_1),
    ScalarFunction("length", overloads(fixed(INTEGER, VARCHAR), fixed(INTEGER, BYTEA)),
                   summary="characters (of BYTEA: bytes)"),
    ScalarFunction("octet_length", _octets, summary="bytes"),
    ScalarFunction("substring", overloads(
                       fixed(VARCHAR, VARCHAR, INTEGER, INTEGER, optional=1),
                       fixed(BYTEA, BYTEA, INTEGER, INTEGER, optional=1)),
                   summary="text, start (from 1), length", raises=True),
    ScalarFunction("overlay", overloads(
                       fixed(VARCHAR, VARCHAR, VARCHAR, INTEGER, INTEGER, optional=1),
                       fixed(BYTEA, BYTEA, BYTEA, INTEGER, INTEGER, optional=1)),
                   summary="text, replacement, start, length", raises=True),
    ScalarFunction("trim", _TEXT_OR_BYTES_2, summary="characters"),
    ScalarFunction("ltrim", _TEXT_OR_BYTES_2),
    ScalarFunction("rtrim", _TEXT_OR_BYTES_2),
    ScalarFunction("replace", fixed(VARCHAR, VARCHAR, VARCHAR, VARCHAR)),
    ScalarFunction("translate", fixed(VARCHAR, VARCHAR, VARCHAR, VARCHAR),
                   summary="characters of the second to those of the third"),
    ScalarFunction("concat", _concat, NullRule.NEVER, "all as text; NULLs are skipped"),
    ScalarFunction("concat_ws", _joined, NullRule.OWN, "separator, values; NULLs are skipped"),
    ScalarFunction("format", _template, NullRule.OWN, "%s, %I, %L and %% in a template",
                   raises=True),
    ScalarFunction("quote_ident", fixed(VARCHAR, VARCHAR), summary="as an identifier in SQL"),
    ScalarFunction("quote_literal", _quoted, summary="as a literal in SQL"),
    ScalarFunction("quote_nullable", _quoted, NullRule.NEVER, "quote_literal; NULL as a word"),
    ScalarFunction("left", fixed(VARCHAR, VARCHAR, INTEGER)),
    ScalarFunction("right", fixed(VARCHAR, VARCHAR, INTEGER)),
    ScalarFunction("position", overloads(fixed(INTEGER, VARCHAR, VARCHAR),
                                         fixed(INTEGER, BYTEA, BYTEA)),
                   summary="(part, text): where part begins in text, from 1; 0 if nowhere"),
    ScalarFunction("starts_with", fixed(BOOLEAN, VARCHAR, VARCHAR), summary="text, prefix"),
    ScalarFunction("lpad", fixed(VARCHAR, VARCHAR, INTEGER, VARCHAR, optional=1)),
    ScalarFunction("rpad", fixed(VARCHAR, VARCHAR, INTEGER, VARCHAR, optional=1)),
    ScalarFunction("reverse", _TEXT_1),
    ScalarFunction("repeat", fixed(VARCHAR, VARCHAR, INTEGER), raises=True),
    ScalarFunction("initcap", _TEXT_1),
    ScalarFunction("split_part", fixed(VARCHAR, VARCHAR, VARCHAR, INTEGER), raises=True),
    ScalarFunction("ascii", fixed(INTEGER, VARCHAR), summary="code point of the first character"),
    ScalarFunction("chr", fixed(VARCHAR, INTEGER), summary="the character", raises=True),
    ScalarFunction("unistr", _TEXT_1, summary="with Unicode escapes", raises=True),
    ScalarFunction("pg_size_bytes", fixed(BIGINT, VARCHAR), summary="of a size such as 1.5 GB",
                   raises=True),
    ScalarFunction("bit_length", overloads(fixed(INTEGER, VARCHAR), fixed(INTEGER, BYTEA))),
    ScalarFunction("to_hex", overloads(fixed(VARCHAR, INTEGER), fixed(VARCHAR, BIGINT)),
                   summary="two's complement"),
    ScalarFunction("md5", overloads(fixed(VARCHAR, VARCHAR), fixed(VARCHAR, BYTEA)),
                   summary="32 hexadecimal digits"),
    *(ScalarFunction(name, fixed(BYTEA, BYTEA), summary="of bytes")
      for name in ("sha224", "sha256", "sha384", "sha512")),
    ScalarFunction("encode", fixed(VARCHAR, BYTEA, VARCHAR), summary="base64, hex or escape",
                   raises=True),
    ScalarFunction("decode", fixed(BYTEA, VARCHAR, VARCHAR), summary="base64, hex or escape",
                   raises=True),
    ScalarFunction("get_byte", fixed(INTEGER, BYTEA, INTEGER), summary="from 0", raises=True),
    ScalarFunction("set_byte", fixed(BYTEA, BYTEA, INTEGER, INTEGER), summary="at, to",
                   raises=True),
    ScalarFunction("convert_to", fixed(BYTEA, VARCHAR, VARCHAR), summary="text, encoding",
                   raises=True),
    ScalarFunction("convert_from", fixed(VARCHAR, BYTEA, VARCHAR), summary="bytes, encoding",
                   raises=True),
    ScalarFunction("~", fixed(BOOLEAN, VARCHAR, VARCHAR), summary="matches", raises=True),
    ScalarFunction("~*", fixed(BOOLEAN, VARCHAR, VARCHAR), summary="matches in any case",
                   raises=True),
    ScalarFunction("similar_to", fixed(BOOLEAN, VARCHAR, VARCHAR, VARCHAR, optional=1),
                   summary="an SQL pattern", raises=True),
    ScalarFunction("regexp_like", fixed(BOOLEAN, VARCHAR, VARCHAR, VARCHAR, optional=1),
                   summary="text, pattern, flags", raises=True),
    ScalarFunction("regexp_replace", _regexp_replace,
                   summary="text, pattern, replacement, flags (or start, n, flags)", raises=True),
    ScalarFunction("regexp_count", fixed(INTEGER, VARCHAR, VARCHAR, INTEGER, VARCHAR, optional=2),
                   summary="text, pattern, start, flags", raises=True),
    ScalarFunction("regexp_instr", fixed(INTEGER, VARCHAR, VARCHAR, INTEGER, INTEGER, INTEGER,
                                         VARCHAR, INTEGER, optional=5),
                   summary="text, pattern, start, n, 1 for the end, flags, group", raises=True),
    ScalarFunction("regexp_substr", fixed(VARCHAR, VARCHAR, VARCHAR, INTEGER, INTEGER, VARCHAR,
                                          INTEGER, optional=4),
                   summary="text, pattern, start, n, flags, group", raises=True),
    ScalarFunction("regexp_match", fixed(array(VARCHAR), VARCHAR, VARCHAR, VARCHAR, optional=1),
                   summary="text, pattern, flags: the groups of the first match", raises=True),
    ScalarFunction("regexp_split_to_array",
                   fixed(array(VARCHAR), VARCHAR, VARCHAR, VARCHAR, optional=1),
                   summary="text, pattern, flags", raises=True),
    ScalarFunction("substring_regex", fixed(VARCHAR, VARCHAR, VARCHAR), raises=True),
    ScalarFunction("substring_similar", fixed(VARCHAR, VARCHAR, VARCHAR, VARCHAR), raises=True),
    ScalarFunction("check_length", fixed(VARCHAR, VARCHAR, INTEGER), summary="text, at most",
                   raises=True),
)  # fmt: skip

ALIASES: Final[dict[str, str]] = {
    "substr": "substring",
    "btrim": "trim",
    "char_length": "length",
    "character_length": "length",
    "len": "length",
    "ucase": "upper",
    "lcase": "lower",
}
