"""Prints which of our modules a program loads, and which module loaded each of them first.

    python tests/architecture/why_loaded.py "import remuda; remuda.connect"
    python tests/architecture/why_loaded.py "import remuda; remuda.connect" remuda.rpc.tls

The second form prints the chain of imports that leads to one module.
"""

from __future__ import annotations

import subprocess
import sys

OURS = ("remuda", "pyspark_remuda")
PROGRAM = "the program"
_RECORDER = """
import sys

class Recorder:
    def find_spec(self, name, path=None, target=None):
        frame = sys._getframe(1)
        skipped = ("importlib._bootstrap", "importlib", "remuda.first_use")
        while frame.f_globals["__name__"] in skipped:
            frame = frame.f_back
        loaded.setdefault(name, frame.f_globals["__name__"])
        return None

loaded = {}
sys.meta_path.insert(0, Recorder())
"""


def loaded_by(program: str) -> dict[str, str]:
    """Our modules that ``program`` loads, in this order; each with the one that loaded it first."""
    told = "for pair in loaded.items():\n    if pair[0] in sys.modules: print(*pair)"
    command = [sys.executable, "-c", f"{_RECORDER}\n{program}\n{told}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    pairs = [line.split() for line in done.stdout.splitlines()]
    return {name: by for name, by in pairs if name.split(".", 1)[0] in OURS}


def chain(loaded: dict[str, str], name: str) -> list[str]:
    """From ``name`` to the program."""
    found = [name]
    while (name := loaded.get(name, PROGRAM)) not in (PROGRAM, "__main__"):
        found.append(name)
    return [*found, PROGRAM]


def main() -> None:
    loaded = loaded_by(sys.argv[1])
    if len(sys.argv) > 2:
        for name in sys.argv[2:]:
            missing = f"{name} is not loaded"
            print(" <- ".join(chain(loaded, name)) if name in loaded else missing)
        return
    for name, by in loaded.items():
        print(f"{name} <- {PROGRAM if by == '__main__' else by}")
    print(f"{len(loaded)} modules")


if __name__ == "__main__":
    main()
