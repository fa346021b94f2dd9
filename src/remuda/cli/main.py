"""The command line: ``remuda COMMAND ...``."""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

import remuda
from remuda.cli.arguments import Parser
from remuda.cli.results.table import harmless
from remuda.errors import NotSupported, RemudaError

EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

_COMMANDS = {
    "start": ("remuda.cli.start_command", "start a cluster on this machine"),
    "sql": ("remuda.cli.sql_command", "run SQL, or an interactive shell"),
    "status": ("remuda.cli.status_command", "members and maps of a cluster"),
    "user": ("remuda.cli.user_command", "users and their roles"),
    "queries": ("remuda.cli.queries_command", "show what runs, and cancel it"),
    "cluster": ("remuda.cli.cluster_command", "accept the loss of partitions"),
    "upgrade": ("remuda.cli.upgrade_command", "show, or finish, the upgrade to a newer release"),
    "drain": ("remuda.cli.drain_command", "have a member leave in order"),
    "log-level": ("remuda.cli.log_level_command", "show or change the level of members' logs"),
    "snapshot": ("remuda.cli.snapshot_command", "make, verify and restore snapshots"),
}
"""The module of each command and its line in the list of commands. The module is imported when its
command is run, so that no command waits for the imports of another one. It has
``add_to(commands)``."""

_EXTRAS = {
    "load": ("remuda.cli.load", "load files into a map, by Spark"),
    "pipeline": ("remuda.cli.pipeline_command", "run a pipeline from a file, by Spark"),
    "demo": ("remuda.cli.demo.demo", "everything from nothing, in three minutes"),
    "spark-service": (
        "remuda.cli.spark_service_command",
        "a Spark session that runs statements with ENGINE(spark)",
    ),
    "gateway": ("remuda.cli.gateway_command", "a REST interface for Apache Drill's clients"),
    "member": ("remuda.member.main", "one member of a larger cluster"),
}
"""Commands that may need packages of an extra, which not everybody has. Their modules have
``add_arguments(parser)`` and ``run(options)``; ``member`` has ``main(arguments)``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status. Errors are one message on standard error, no traceback."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _repair_streams()
    try:
        status = _run(words)
        sys.stdout.flush()  # a full disk is told here, not when the interpreter ends
        return status
    except RemudaError as error:
        print(f"remuda: {harmless(str(error))}", file=sys.stderr)
        return EXIT_ERROR
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of our output, like head, has seen enough
        _silence_output()
        return 128 + signal.SIGPIPE
    except OSError as error:  # the disk is full, a file cannot be opened: no bug of ours
        place = f"{error.filename}: " if error.filename else ""
        print(f"remuda: {place}{error.strerror or error}", file=sys.stderr)
        _silence_output()
        return EXIT_ERROR
    except Exception as error:
        if os.environ.get("REMUDA_TRACEBACK"):
            raise
        first_line, *_ = str(error).splitlines() or [""]
        print(
            f"remuda: internal error: {type(error).__name__}: {first_line}\n"
            "HINT: This is a bug. REMUDA_TRACEBACK=1 shows where it happens.",
            file=sys.stderr,
        )
        return EXIT_ERROR


def _run(words: list[str]) -> int:
    if words and words[0] in _EXTRAS:
        return _run_extra(words[0], words[1:])
    parser = _parser(words[0] if words else "")
    options = parser.parse_args(words)
    run: Callable[[argparse.Namespace], int] | None = options.run
    if run is None:
        parser.print_help(sys.stderr)
        return EXIT_USAGE
    return run(options)


def _run_extra(command: str, rest: list[str]) -> int:
    name, text = _EXTRAS[command]
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package == "remuda":
            raise
        raise NotSupported(
            f"remuda {command} needs the package {package}, which is not installed",
            hint=f'Install "remuda[{"spark" if package in ("pyspark", "yaml") else command}]".',
        ) from error
    if command == "member":
        status: int | None = module.main(rest)
        return status or 0
    about = f"{text[0].upper()}{text[1:]}."
    parser = Parser(prog=f"remuda {command}", description=about)
    module.add_arguments(parser)
    status = module.run(parser.parse_args(rest))
    return status or 0


def _parser(command: str) -> argparse.ArgumentParser:
    """The options of ``command``, and the names of all others."""
    parser = Parser(prog="remuda", description="An in-memory data grid with distributed SQL.")
    parser.add_argument("--version", action="version", version=f"remuda {remuda.__version__}")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, (module, text) in (_COMMANDS | _EXTRAS).items():
        if name == command:
            import_module(module).add_to(commands)
        else:
            commands.add_parser(name, help=text, add_help=False)
    return parser


def _repair_streams() -> None:
    """Replace standard streams that the caller closed by empty ones, and print characters that the
    terminal's encoding lacks as escapes."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115  (for the life of the process)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _silence_output() -> None:
    """Let the interpreter flush standard output into nothing when it ends."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


if __name__ == "__main__":
    sys.exit(main())
