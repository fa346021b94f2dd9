r"""Commands: ``\if`` and its kind."""

from __future__ import annotations

from remuda.cli.shell.commands.catalogue import Call, Command, Outcome
from remuda.cli.shell.variables import truth
from remuda.errors import InputError


def _holds(call: Call) -> bool:
    """A condition that is no truth value is reported and does not hold."""
    try:
        return truth(" ".join(call.words.all()), f"\\{call.name} expression")
    except InputError as error:
        call.session.report(error)
        return False


def _if(call: Call) -> Outcome:
    conditions = call.conditions
    if conditions.active:
        conditions.begin(_holds(call), call.scanner.mark())
    else:
        call.words.skip()
        conditions.begin(False, call.scanner.mark())
    return None


def _elif(call: Call) -> Outcome:
    holds = False
    if call.conditions.evaluates:
        holds = _holds(call)
    else:
        call.words.skip()
    call.scanner.restore(call.conditions.other(holds, call.scanner.mark()))
    return None


def _else(call: Call) -> Outcome:
    call.scanner.restore(call.conditions.otherwise(call.scanner.mark()))
    return None


def _endif(call: Call) -> Outcome:
    call.scanner.restore(call.conditions.end(call.scanner.mark()))
    return None


COMMANDS = (
    Command(("if",), _if, "EXPRESSION", "carry out what follows if it is true"),
    Command(("elif",), _elif, "EXPRESSION", "the next alternative"),
    Command(("else",), _else, "", "the last alternative"),
    Command(("endif",), _endif, "", "the end of the alternatives"),
)
