"""Commands of the system: programs, folders, the environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from remuda.cli.shell.commands.catalogue import Call, Command, Outcome
from remuda.cli.shell.variables import truth
from remuda.errors import InputError


def _run(call: Call) -> Outcome:
    command = call.words.whole() or os.environ.get("SHELL", "/bin/sh")
    call.session.stdout.flush()
    code = subprocess.run(command, shell=True, check=False).returncode  # noqa: S602 (its user has typed the command)
    call.session.variables.set("SHELL_ERROR", "true" if code else "false")
    call.session.variables.set("SHELL_EXIT_CODE", str(code))
    return None


def _folder(call: Call) -> Outcome:
    path = Path(call.words.next() or "~").expanduser()
    try:
        os.chdir(path)
    except OSError as error:
        raise InputError(f"\\cd: could not change directory to {path}: {error.strerror}") from error
    return None


def _set_environment(call: Call) -> Outcome:
    name = call.word("the name of an environment variable")
    if "=" in name:
        raise InputError('\\setenv: environment variable name must not contain "="')
    value = call.words.next()
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
    return None


def _get_environment(call: Call) -> Outcome:
    variable = call.word("the name of a variable, and then that of an environment variable")
    name = call.word("the name of an environment variable")
    if name in os.environ:
        call.session.variables.set(variable, os.environ[name])
    return None


def _timing(call: Call) -> Outcome:
    word = call.words.next()
    call.session.switch_timing(not call.session.timing if word is None else truth(word, "\\timing"))
    call.session.say(f"Timing is {'on' if call.session.timing else 'off'}.")
    return None


def _prompt(call: Call) -> Outcome:
    """Ask the user for the value of a variable."""
    first = call.word("a text to ask with, and the name of a variable")
    second = call.words.next()
    text, name = ("", first) if second is None else (first, second)
    if text:
        sys.stderr.write(text)
        sys.stderr.flush()
    call.session.variables.set(name, call.session.stdin().rstrip("\n"))
    return None


COMMANDS = (
    Command(("!",), _run, "[COMMAND]", "run a command of the system, or a shell", raw=True),
    Command(("cd",), _folder, "[FOLDER]", "change the working folder"),
    Command(("getenv",), _get_environment, "NAME ENVNAME", "an environment variable as a variable"),
    Command(("setenv",), _set_environment, "NAME [VALUE]", "set or remove an environment variable"),
    Command(("timing",), _timing, "[on|off]", "print how long statements take"),
    Command(("prompt",), _prompt, "[TEXT] NAME", "ask for the value of a variable"),
)
