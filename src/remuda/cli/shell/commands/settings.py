"""Commands of variables."""

from __future__ import annotations

from remuda.cli.shell.commands.catalogue import Call, Command, Outcome


def _set(call: Call) -> Outcome:
    name = call.words.next()
    if name is None:
        for found, value in call.session.variables:
            call.session.stdout.write(f"{found} = '{value}'\n")
        return None
    call.session.variables.set(name, "".join(call.words.all()))
    return None


def _unset(call: Call) -> Outcome:
    call.session.variables.unset(call.word("the name of a variable"))
    return None


COMMANDS = (
    Command(("set",), _set, "[NAME [VALUE]]", "set a variable, or list all"),
    Command(("unset",), _unset, "NAME", "forget a variable"),
)
