"""The options of COPY, in their old and their new syntax: read, checked, and with their defaults.

The checks, their order, their words and their SQLSTATEs are PostgreSQL's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from remuda.copying.encodings import known_encoding
from remuda.errors import InvalidParameterValue, NotSupported, Position, RemudaError, SqlSyntaxError


class Format(Enum):
    TEXT = "text"
    CSV = "csv"
    BINARY = "binary"


class Header(Enum):
    NONE = "none"
    LINE = "line"
    MATCH = "match"
    """The first line must have the names of the columns."""


class Everything(Enum):
    """``*`` in place of a list of columns."""

    COLUMNS = "*"


Value: TypeAlias = str | bool | tuple[str, ...] | Everything | None
"""Numbers are texts. None: the option stands alone."""


class Given(NamedTuple):
    """An option as it was written. ``names`` are the places of the columns that it lists."""

    name: str
    value: Value
    position: Position


Columns: TypeAlias = tuple[str, ...] | Everything


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """``null`` is the text that stands for NULL. ``encoding`` is a name of Python's codecs, "" for
    UTF-8."""

    format: Format = Format.TEXT
    header: Header = Header.NONE
    delimiter: str = "\t"
    null: str = "\\N"
    quote: str = '"'
    escape: str = '"'
    force_quote: Columns = ()
    force_not_null: Columns = ()
    force_null: Columns = ()
    encoding: str = ""
    ignores_errors: bool = False
    """ON_ERROR ignore: rows with values that their types do not have are left out."""
    verbose: bool = False
    """LOG_VERBOSITY verbose: each of these rows is told of."""


Found: TypeAlias = "Mapping[str, Value | Format | Header]"
_BOOLEANS: Final = {
    "true": True, "on": True, "1": True, "false": False, "off": False, "0": False,
}  # fmt: skip
_LISTS: Final = ("force_quote", "force_not_null", "force_null")
_TEXTS: Final = ("delimiter", "null", "quote", "escape", "encoding")
_KNOWN: Final = ("format", "freeze", "header", *_TEXTS, *_LISTS, "on_error", "log_verbosity")
_NO_DELIMITERS: Final = "\\.abcdefghijklmnopqrstuvwxyz0123456789"


def options_of(given: Sequence[Given], *, incoming: bool) -> CopyOptions:
    """``incoming``: of COPY FROM. Raises SqlSyntaxError, InvalidParameterValue, NotSupported."""
    found: dict[str, Value | Format | Header] = {}
    for option in given:
        if option.name not in _KNOWN:
            raise _at(SqlSyntaxError, f'option "{option.name}" not recognized', option)
        if option.name in found:
            raise _at(SqlSyntaxError, "conflicting or redundant options", option)
        found[option.name] = _read(option, incoming=incoming)
    form = found.get("format", Format.TEXT)
    assert isinstance(form, Format)
    is_csv = form is Format.CSV
    quote = _text(found, "quote") or '"'
    options = CopyOptions(
        format=form,
        header=_header(found.get("header", Header.NONE)),
        delimiter=_given(found, "delimiter", "," if is_csv else "\t"),
        null=_given(found, "null", "" if is_csv else "\\N"),
        quote=quote,
        escape=_given(found, "escape", quote),
        force_quote=_columns(found, "force_quote"),
        force_not_null=_columns(found, "force_not_null"),
        force_null=_columns(found, "force_null"),
        encoding=_text(found, "encoding") or "",
        ignores_errors=bool(found.get("on_error")),
        verbose=bool(found.get("log_verbosity")),
    )
    _check(options, found, incoming=incoming)
    return options


def _at(kind: type[RemudaError], message: str, option: Given) -> RemudaError:
    return kind(message, position=option.position)


# --- single options ----------------------------------------------------------------------------


def _read(option: Given, *, incoming: bool) -> Value | Format | Header:
    name, value = option.name, option.value
    if name in _LISTS:
        if isinstance(value, tuple) or (value is Everything.COLUMNS):
            return value
        raise _at(
            InvalidParameterValue,
            f'argument to option "{name}" must be a list of column names',
            option,
        )
    if name == "freeze":
        return _boolean(option)
    if name == "header":
        return _read_header(option, incoming=incoming)
    if name == "on_error":
        return _word(option, ("stop", "ignore"), "COPY ON_ERROR") == "ignore"
    if name == "log_verbosity":
        return _word(option, ("default", "verbose"), "COPY LOG_VERBOSITY") == "verbose"
    text = _string(option)
    if name == "format":
        return _format(text, option)
    if name == "encoding":
        encoding = known_encoding(text)
        if encoding is None:
            raise _at(
                InvalidParameterValue,
                'argument to option "encoding" must be a valid encoding name',
                option,
            )
        return encoding
    return text


def _string(option: Given) -> str:
    value = option.value
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is Everything.COLUMNS:
        return "*"
    if isinstance(value, tuple):
        return ", ".join(value)
    raise SqlSyntaxError(f"{option.name} requires a parameter")


def _word(option: Given, words: Sequence[str], what: str) -> str:
    text = _string(option).lower()
    if text not in words:
        raise _at(InvalidParameterValue, f'{what} "{_string(option)}" not recognized', option)
    return text


def _format(text: str, option: Given) -> Format:
    for form in Format:
        if form.value == text:
            return form
    raise _at(InvalidParameterValue, f'COPY format "{text}" not recognized', option)


def _boolean(option: Given) -> bool:
    if option.value is None:
        return True
    found = _BOOLEANS.get(_string(option).lower())
    if found is None:
        raise SqlSyntaxError(f"{option.name} requires a Boolean value")
    return found


def _read_header(option: Given, *, incoming: bool) -> Header:
    text = None if option.value is None else _string(option).lower()
    if text == "match":
        if not incoming:
            raise NotSupported(
                'cannot use "match" with HEADER in COPY TO', hint="Write HEADER, or HEADER true."
            )
        return Header.MATCH
    if text is not None and text not in _BOOLEANS:
        raise SqlSyntaxError(f'{option.name} requires a Boolean value or "match"')
    return Header.LINE if text is None or _BOOLEANS[text] else Header.NONE


def _header(value: object) -> Header:
    return value if isinstance(value, Header) else Header.NONE


def _text(found: Found, name: str) -> str | None:
    value = found.get(name)
    return value if isinstance(value, str) else None


def _given(found: Found, name: str, otherwise: str) -> str:
    value = _text(found, name)
    return otherwise if value is None else value


def _columns(found: Found, name: str) -> Columns:
    value = found.get(name)
    return value if isinstance(value, (tuple, Everything)) else ()


# --- together ----------------------------------------------------------------------------------


def _check(options: CopyOptions, found: Found, *, incoming: bool) -> None:
    if options.format is Format.BINARY:
        _check_binary(options, found)
    _check_delimiter(options)
    _check_csv(options, found)
    _check_lists(options, incoming=incoming)
    if options.delimiter in options.null:
        raise NotSupported(
            "COPY delimiter must not appear in the NULL specification",
            hint="Choose another DELIMITER or another NULL.",
        )
    if options.format is Format.CSV and options.quote in options.null:
        raise NotSupported(
            "CSV quote character must not appear in the NULL specification",
            hint="Choose another QUOTE or another NULL.",
        )
    if options.ignores_errors and options.format is Format.BINARY:
        raise SqlSyntaxError("only ON_ERROR STOP is allowed in BINARY mode")
    if not incoming and "on_error" in found:
        raise InvalidParameterValue("COPY ON_ERROR cannot be used with COPY TO")


def _check_binary(options: CopyOptions, found: Found) -> None:
    for name in ("delimiter", "null"):
        if name in found:
            raise SqlSyntaxError(f"cannot specify {name.upper()} in BINARY mode")
    if options.header is not Header.NONE:
        raise NotSupported(
            "cannot specify HEADER in BINARY mode", hint="Leave HEADER out: binary data has none."
        )


def _is_byte(text: str) -> bool:
    return len(text) == 1 and text.isascii()


def _check_delimiter(options: CopyOptions) -> None:
    delimiter = options.delimiter
    if not _is_byte(delimiter):
        raise NotSupported(
            "COPY delimiter must be a single one-byte character",
            hint="Write one ASCII character, or E'\\t' for a tab.",
        )
    if delimiter in "\r\n":
        raise InvalidParameterValue("COPY delimiter cannot be newline or carriage return")
    if "\r" in options.null or "\n" in options.null:
        raise InvalidParameterValue(
            "COPY null representation cannot use newline or carriage return"
        )
    if options.format is not Format.CSV and delimiter in _NO_DELIMITERS:
        raise InvalidParameterValue(f'COPY delimiter cannot be "{delimiter}"')


def _check_csv(options: CopyOptions, found: Found) -> None:
    is_csv = options.format is Format.CSV
    if not is_csv and "quote" in found:
        raise NotSupported(
            "COPY quote available only in CSV mode", hint="Write FORMAT csv, or leave QUOTE out."
        )
    if is_csv and (not _is_byte(options.quote) or found.get("quote") == ""):
        raise NotSupported(
            "COPY quote must be a single one-byte character", hint="Write one ASCII character."
        )
    if is_csv and options.delimiter == options.quote:
        raise InvalidParameterValue("COPY delimiter and quote must be different")
    if not is_csv and "escape" in found:
        raise NotSupported(
            "COPY escape available only in CSV mode", hint="Write FORMAT csv, or leave ESCAPE out."
        )
    if is_csv and not _is_byte(options.escape):
        raise NotSupported(
            "COPY escape must be a single one-byte character", hint="Write one ASCII character."
        )


def _check_lists(options: CopyOptions, *, incoming: bool) -> None:
    for columns, what, of_incoming in (
        (options.force_quote, "force quote", False),
        (options.force_not_null, "force not null", True),
        (options.force_null, "force null", True),
    ):
        if not columns:
            continue
        if options.format is not Format.CSV:
            raise NotSupported(f"COPY {what} available only in CSV mode", hint="Write FORMAT csv.")
        if incoming is not of_incoming:
            way = "COPY FROM" if of_incoming else "COPY TO"
            raise NotSupported(
                f"COPY {what} only available using {way}", hint=f"Leave {what.upper()} out."
            )
