"""How the command line refuses what it does not understand."""

from __future__ import annotations

import argparse
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """An error is what is wrong and where to look, not a list of all options."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\nHINT: {self.prog} --help lists what there is.\n")
