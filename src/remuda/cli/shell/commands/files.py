r"""Commands of input and output: files, ``\copy``, ``\echo``."""

from __future__ import annotations

from pathlib import Path

from remuda.cli.shell import copying
from remuda.cli.shell.commands.catalogue import Call, Command, Include, Outcome, Sent
from remuda.cli.shell.output import open_output
from remuda.cli.shell.sources import file_source


def _copy(call: Call) -> Outcome:
    copy = copying.parse_command(call.words.whole())
    return Sent(call.session.copy(copy, call.source.data))


def _include(call: Call) -> Outcome:
    """``\\i``, and ``\\ir``, which starts at the folder of the file that it stands in."""
    path = Path(call.word("a file")).expanduser()
    if call.name in ("ir", "include_relative") and call.source.name:
        path = Path(call.source.name).parent / path
    return Include(file_source(path))


def _output(call: Call) -> Outcome:
    place = call.words.place()
    if place is None:
        call.session.end_output()
    else:
        call.session.send_results_to(*open_output(place))
    return None


def _echo(call: Call) -> Outcome:
    session = call.session
    streams = {"echo": session.stdout, "qecho": session.out, "warn": session.errors}
    words = call.words.all()
    bare = words[:1] == ["-n"]
    streams[call.name].write(" ".join(words[bare:]) + ("" if bare else "\n"))
    streams[call.name].flush()
    return None


def _history(call: Call) -> Outcome:
    """Print the statements of the history, oldest first, or write them to a file."""
    session = call.session
    place = call.words.place()
    text = "".join(f"{statement}\n" for statement in session.history())
    if place is None:
        with session.paged() as out:
            out.write(text)
        return None
    out, close = open_output(place)
    try:
        out.write(text)
    finally:
        close()
    session.say(f'Wrote history to file "{place}".')
    return None


COMMANDS = (
    Command(
        ("copy",),
        _copy,
        "TABLE|(QUERY) FROM|TO 'FILE'|STDIN|STDOUT|PROGRAM 'COMMAND' [OPTIONS]",
        "COPY with a file or program of this machine",
    ),
    Command(("i", "include"), _include, "FILE", "run the statements of a file"),
    Command(("ir", "include_relative"), _include, "FILE", "as \\i, beside the file it stands in"),
    Command(("s",), _history, "[FILE]", "the history of statements, shown or into a file"),
    Command(("o", "out"), _output, "[FILE]", "results go to a file or |command"),
    Command(("echo",), _echo, "[-n] [TEXT]", "write to standard output", raw=True),
    Command(("qecho",), _echo, "[-n] [TEXT]", "write to where \\o leads", raw=True),
    Command(("warn",), _echo, "[-n] [TEXT]", "write to standard error", raw=True),
)
