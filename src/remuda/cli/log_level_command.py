"""``remuda log-level [LEVEL [PART]]`` shows and changes the levels of the logs of members."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from remuda.cli.connecting import add_connect, client_of
from remuda.cli.results.table import Alignment, text_table
from remuda.client.operations.activity import LEVELS


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "log-level",
        help="show or change the level of members' logs",
        description="Without words, the parts of the logs that have a level of their own. A "
        "change holds until the process of a member ends. Users need the role admin on everything.",
    )
    parser.add_argument("level", nargs="?", choices=LEVELS, help="default takes a change back")
    parser.add_argument(
        "part",
        nargs="?",
        default="",
        help="as the log names it, such as member.membership; without it, all parts",
    )
    parser.add_argument("--member", type=int, metavar="NUMBER", help="only this one, of all")
    add_connect(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with client_of(options, "remuda log-level") as client:
        if options.level is not None:
            client.activity.set_log_level(options.level, options.part, options.member)
        rows = [tuple(map(str, row)) for row in client.activity.log_levels() if row.level]
    right, left = Alignment.RIGHT, Alignment.LEFT
    sys.stdout.write(text_table(("member", "part", "level"), rows, (right, left, left)))
    return 0
