r"""Commands of the format of results: ``\pset`` and its short forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from remuda.cli.results.options import FORMATS, SAME_FORMATS, PrintOptions
from remuda.cli.shell.commands.catalogue import Call, Command, Outcome
from remuda.cli.shell.variables import truth
from remuda.errors import InputError


def changed(options: PrintOptions, name: str, value: str | None) -> PrintOptions:
    """The options with one changed; ``value`` None: switched on or off, or back to its default.
    Raises InputError."""
    name = _NAMES.get(name, name)
    if name not in _VALUES:
        raise InputError(
            f"\\pset: unknown option: {name}", hint=f"Options are: {', '.join(sorted(_VALUES))}."
        )
    field, read = _VALUES[name]
    return replace(options, **{field: read(options, name, value)})


_NAMES = {"x": "expanded", "vertical": "expanded", "t": "tuples_only"}


def _switch(field: str) -> Callable[[PrintOptions, str, str | None], bool]:
    def read(options: PrintOptions, name: str, value: str | None) -> bool:
        return not getattr(options, field) if value is None else truth(value, name)

    return read


def _number(_options: PrintOptions, name: str, value: str | None) -> int:
    if value is None or not value.isdecimal():
        raise InputError(f'\\pset: {name} must be a number, not "{value or ""}"')
    return min(int(value), 2) if name == "border" else int(value)


def _text(_options: PrintOptions, _name: str, value: str | None) -> str:
    return value or ""


def _null(_options: PrintOptions, _name: str, value: str | None) -> str:
    return value or ""


def _format(options: PrintOptions, _name: str, value: str | None) -> str:
    if value is None:
        return options.format
    found = SAME_FORMATS.get(value, value)
    fitting = [name for name in FORMATS if name.startswith(found)]
    if found not in FORMATS and len(fitting) != 1:
        raise InputError(
            f"\\pset: allowed formats are {', '.join(FORMATS)}", detail=f'"{value}" is none.'
        )
    return found if found in FORMATS else fitting[0]


def _expanded(options: PrintOptions, name: str, value: str | None) -> str:
    if value is None:
        return "off" if options.expanded == "on" else "on"
    if value == "auto":
        return value
    return "on" if truth(value, name) else "off"


def _pager(options: PrintOptions, name: str, value: str | None) -> str:
    if value is None:
        return "off" if options.pager == "on" else "on"
    return value if value == "always" else "on" if truth(value, name) else "off"


def _style(_options: PrintOptions, _name: str, value: str | None) -> str:
    if value not in ("ascii", "unicode"):
        raise InputError("\\pset: allowed line styles are ascii, unicode")
    return value


def _separator(_options: PrintOptions, _name: str, value: str | None) -> str:
    if value is None or len(value) != 1 or value in '"\n\r':
        raise InputError("\\pset: csv_fieldsep must be a single character, no quote or line end")
    return value


def _zero(_options: PrintOptions, _name: str, _value: str | None) -> str:
    return "\0"


_VALUES: dict[str, tuple[str, Callable[[PrintOptions, str, str | None], Any]]] = {
    "border": ("border", _number),
    "columns": ("columns", _number),
    "csv_fieldsep": ("csv_fieldsep", _separator),
    "expanded": ("expanded", _expanded),
    "fieldsep": ("fieldsep", _text),
    "fieldsep_zero": ("fieldsep", _zero),
    "footer": ("footer", _switch("footer")),
    "format": ("format", _format),
    "linestyle": ("linestyle", _style),
    "null": ("null", _null),
    "numericlocale": ("numericlocale", _switch("numericlocale")),
    "pager": ("pager", _pager),
    "pager_min_lines": ("pager_min_lines", _number),
    "recordsep": ("recordsep", _text),
    "recordsep_zero": ("recordsep", _zero),
    "tableattr": ("tableattr", _text),
    "title": ("title", _text),
    "tuples_only": ("tuples_only", _switch("tuples_only")),
}


OPTIONS = tuple(_VALUES)
"""Names of the options."""
_SIGNS = {"\0": "zero byte", "\n": "<newline>"}
_PAGER = {
    "on": "Pager is used for long output.",
    "always": "Pager is always used.",
    "off": "Pager usage is off.",
}
_SHOWN: dict[str, Callable[[Any], str]] = {
    "border": lambda value: f"Border style is {value}.",
    "columns": lambda value: f"Target width is {value or 'unset'}.",
    "csv_fieldsep": lambda value: f'Field separator for CSV is "{value}".',
    "expanded": lambda value: (
        f"Expanded display is {'used automatically' if value == 'auto' else value}."
    ),
    "fieldsep": lambda value: f"Field separator is {_SIGNS.get(value, _quoted(value))}.",
    "footer": lambda value: f"Default footer is {_on(value)}.",
    "format": lambda value: f"Output format is {value}.",
    "linestyle": lambda value: f"Line style is {value}.",
    "null": lambda value: f"Null display is {_quoted(value or '')}.",
    "numericlocale": lambda value: f"Locale-adjusted numeric output is {_on(value)}.",
    "pager": lambda value: _PAGER[value],
    "pager_min_lines": lambda value: (
        f"Pager won't be used for less than {value} line{'' if value == 1 else 's'}."
    ),
    "recordsep": lambda value: f"Record separator is {_SIGNS.get(value, _quoted(value))}.",
    "tableattr": lambda value: (
        f"Table attributes are {_quoted(value)}." if value else "Table attributes unset."
    ),
    "title": lambda value: f"Title is {_quoted(value)}." if value else "Title is unset.",
    "tuples_only": lambda value: f"Tuples only is {_on(value)}.",
}


def _shown(options: PrintOptions, name: str) -> str:
    field = _VALUES[name][0]
    return _SHOWN[field](getattr(options, field))


def _quoted(value: str) -> str:
    return f'"{value}"'


def _on(value: bool) -> str:
    return "on" if value else "off"


def _change(call: Call, name: str, value: str | None) -> None:
    session = call.session
    options = changed(session.printing, name, value)
    field = _VALUES[_NAMES.get(name, name)][0]
    session.print_with(**{field: getattr(options, field)})
    session.say(_shown(options, _NAMES.get(name, name)))


def _pset(call: Call) -> Outcome:
    name = call.words.next()
    if name is None:
        for found in _VALUES:
            if not found.endswith("_zero"):
                value = getattr(call.session.printing, found)
                shown = _on(value) if isinstance(value, bool) else value
                shown = repr(value or "") if isinstance(value, str | None) else shown
                call.session.stdout.write(f"{found.ljust(16)} {shown}\n")
        return None
    _change(call, name, call.words.next())
    return None


_SHORT = {"C": "title", "f": "fieldsep", "T": "tableattr", "t": "tuples_only", "x": "expanded"}


def _short(call: Call) -> Outcome:
    name = _SHORT[call.name]
    value = call.words.next()
    if call.name == "f" and value is None:
        call.session.say(_shown(call.session.printing, name))
    else:
        _change(call, name, value)
    return None


def _align(call: Call) -> Outcome:
    """Between aligned and unaligned, or to HTML and back."""
    other = "unaligned" if call.name == "a" else "html"
    _change(call, "format", "aligned" if call.session.printing.format == other else other)
    return None


COMMANDS = (
    Command(("pset",), _pset, "[OPTION [VALUE]]", "set an option of the format, or list all"),
    Command(("x",), _short, "[on|off|auto]", "one column per line"),
    Command(("a",), _align, "", "between aligned and unaligned"),
    Command(("t",), _short, "[on|off]", "rows only, without names and counts"),
    Command(("f",), _short, "[TEXT]", "the separator of unaligned fields"),
    Command(("C",), _short, "[TEXT]", "the title of tables"),
    Command(("H",), _align, "", "between HTML and aligned"),
    Command(("T",), _short, "[TEXT]", "attributes of HTML's tables"),
)
