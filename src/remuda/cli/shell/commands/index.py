r"""All backslash commands, by name and as the list that ``\?`` prints."""

from __future__ import annotations

from remuda.cli.shell.commands import (
    buffer,
    conditional,
    connection,
    crosstab,
    describing,
    files,
    formatting,
    general,
    lists,
    settings,
    system,
)
from remuda.cli.shell.commands.catalogue import Call, Command, Outcome, Section
from remuda.errors import InputError


def _help(call: Call) -> Outcome:
    with call.session.paged() as out:
        out.write(text())
    return None


SECTIONS = (
    Section(
        "General",
        (*general.COMMANDS, Command(("?",), _help, "", "this list")),
    ),
    Section("Query buffer", (*buffer.COMMANDS, *crosstab.COMMANDS)),
    Section("Input and output", files.COMMANDS),
    Section("Conditions", conditional.COMMANDS),
    Section(
        "Maps and other objects (S: system objects, +: more)",
        (*describing.COMMANDS, *lists.COMMANDS),
    ),
    Section("Format of results", formatting.COMMANDS),
    Section("Connection", connection.COMMANDS),
    Section("System", system.COMMANDS),
    Section("Variables", settings.COMMANDS),
)
_BY_NAME = {
    name: command for section in SECTIONS for command in section.commands for name in command.names
}


def find(word: str) -> tuple[Command, str]:
    """The command of a name, and the flags behind it. Raises InputError."""
    if word in _BY_NAME:
        return _BY_NAME[word], ""
    for end in range(len(word) - 1, 0, -1):
        command = _BY_NAME.get(word[:end])
        if command is not None and set(word[end:]) <= set(command.flags):
            return command, word[end:]
    raise InputError(f"unknown command \\{word}", hint="\\? lists the commands.")


def names() -> list[str]:
    """With the backslash, for completion."""
    return [f"\\{name}" for name in _BY_NAME]


def text() -> str:
    """The list of ``\\?``."""
    lines = ["Statements end with a semicolon, or with one of the commands \\g... .\n"]
    for section in SECTIONS:
        lines.append(f"\n{section.title}\n")
        for command in section.commands:
            usage = f"  {command.usage}"
            joint = "  " if len(usage) < 26 else "\n" + " " * 26
            lines.append(f"{usage.ljust(24)}{joint}{command.about}\n")
    return "".join(lines)
