"""Commands: leave, help on statements, repeat."""

from __future__ import annotations

from remuda.cli.shell import statement_help
from remuda.cli.shell.commands.catalogue import Call, Command, Leave, Outcome
from remuda.cli.shell.session import verbose
from remuda.errors import InputError


def _quit(_call: Call) -> Outcome:
    return Leave()


def _statement_help(call: Call) -> Outcome:
    found = statement_help.text(call.words.whole().rstrip(";"))
    with call.session.paged() as out:
        out.write(found)
    return None


def _error(call: Call) -> Outcome:
    error = call.session.last_error
    call.session.stdout.write(
        "There is no previous error.\n" if error is None else verbose(error) + "\n"
    )
    return None


def _copyright(call: Call) -> Outcome:
    call.session.stdout.write("Remuda is free software under the Apache License 2.0.\n")
    return None


def _restrict(call: Call) -> Outcome:
    call.session.restrict(call.word("a key"))
    return None


def _unrestrict(call: Call) -> Outcome:
    if call.words.next() != call.session.restricted:
        raise InputError("\\unrestrict: wrong key")
    call.session.restrict("")
    return None


COMMANDS = (
    Command(("h", "help"), _statement_help, "[STATEMENT]", "how a statement is written; * for all"),
    Command(("errverbose",), _error, "", "the last error with all that is known about it"),
    Command(("q", "quit"), _quit, "", "leave (Ctrl-D does, too)"),
    Command(("copyright",), _copyright, "", "terms of use"),
    Command(("restrict",), _restrict, "KEY", "take no command until \\unrestrict KEY"),
    Command(("unrestrict",), _unrestrict, "KEY", "take commands again"),
)
