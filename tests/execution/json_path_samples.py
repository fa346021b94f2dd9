"""Random jsonpath calls by a grammar, and what PostgreSQL answers: ``json_paths.golden``.

``python tests/execution/json_path_samples.py CONNECTION`` asks a PostgreSQL 15 with psql and writes
the file anew. A line of it is [function, document, path, variables or null, silent, answer]; the
answer is a text, null, or {"error": SQLSTATE}.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

GOLDEN = Path(__file__).with_name("json_paths.golden")
VARIABLES = '{"x": 2, "y": "ab", "s t": [1, {"z": {}}, {"q": {"r": 1}}]}'
FUNCTIONS = (
    *("jsonb_path_query_array",) * 5, "jsonb_path_exists", "jsonb_path_match",
    "jsonb_path_query_first", "jsonb_path_query_array_tz", "jsonb_path_match_tz",
    "jsonb_path_exists_tz", "jsonpath", "jsonpath", "@?", "@@",
)  # fmt: skip
_KEYS = ("a", "b", "c", "id", "key", "x y")
_SCALARS = (
    "1", "2", "-3", "0", "1.50", "2.5", "100", "1e2", "0.001", "true", "false", "null", '"a"',
    '"abc"', '"b.c"', '"1.5"', '"12:30:00"', '"2020-01-02"', '"2020-01-02 03:04:05"',
    '"2020-01-02 03:04:05+02"', '""', '"A\\\\b"', '"é"', "12345678901234567890", "-0.5",
)  # fmt: skip
_METHODS = (
    ".type()", ".size()", ".double()", ".ceiling()", ".floor()", ".abs()", ".keyvalue()",
    ".datetime()", ".keyvalue().id", ".keyvalue().value", ".keyvalue().key", ".datetime().type()",
)  # fmt: skip
_LEVELS = (".**", ".**{1}", ".**{0 to 1}", ".**{2 to last}", ".**{last}", ".**{1 to 2}", ".**{0}")
_OPERANDS = ("1", "2", "0", "3.5", "-1", '"a"', '"abc"', "true", "null", "1e2", ".5", "100")
_PATTERNS = (
    '"^a"', '"B" flag "i"', '"b.c" flag "q"', '"x.y"', '"x.y" flag "s"', '"^y" flag "m"', '"\\\\d"',
)  # fmt: skip
_PIECES = (
    "$", "@", "last", ".", ".a", "[", "]", "(", ")", "?", "==", "&&", "!", "exists(", "is unknown",
    "starts with", '"abc"', "like_regex", "flag", ".**", "{", "}", "to", "-", "*", "1.", ".5", "1e",
    "true", "TRUE", "strict", "$x", '$"y z"', "\\u0041", '"\\u{1F600}"', '"\\q"', "#", ".Abs()",
    "01",
)  # fmt: skip
_WHOLE = (
    "$.a == 1", "$.a[1 to last]", "$ ? (@.a > 1 && @.b < 2)", "($.a == 1) is unknown", "-$.a",
    "$.a + 1 * 2", "!($ == 1)", "$.**{1 to 2}", '$ like_regex "a" flag "i"', "(1 + 2).type()",
)  # fmt: skip


class Samples:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def _one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def _likely(self, part: float) -> bool:
        return self.random.random() < part

    def document(self, depth: int = 0) -> str:
        if depth > 3 or (depth and self._likely(0.45)):
            return self._one(*_SCALARS)
        size = range(self.random.randint(0, 4))
        if self._likely(0.5):
            return "[" + ", ".join(self.document(depth + 1) for _ in size) + "]"
        keys = self.random.sample(_KEYS, len(size))
        return "{" + ", ".join(f'"{key}": {self.document(depth + 1)}' for key in keys) + "}"

    def path(self) -> str:
        if self._likely(0.1):
            whole = self._one(*_WHOLE)
            cut = self.random.randint(0, len(whole))
            return whole[:cut] + self._one(*_PIECES) + whole[cut + self.random.randint(0, 2) :]
        mode = self._one("", "", "", "lax ", "strict ", "strict ")
        return mode + (self._expression(0) if self._likely(0.75) else self._condition(0))

    def _step(self, depth: int) -> str:
        kind = self.random.random()
        if kind < 0.3:
            key = self._one(*_KEYS)
            return f'."{key}"' if " " in key or self._likely(0.2) else f".{key}"
        if kind < 0.55:
            return self._one(".*", "[*]", "[*]")
        if kind < 0.66:
            places = [self._place(depth) for _ in range(self.random.randint(1, 2))]
            return "[" + ", ".join(places) + "]"
        if kind < 0.74:
            return self._one(*_LEVELS)
        return self._one(*_METHODS) if kind < 0.87 else f" ? ({self._condition(depth + 1, True)})"

    def _place(self, depth: int) -> str:
        def one() -> str:
            simple = ("0", "1", "2", "last", "last - 1", "-1", "1.7", '"a"', "$x", "null", "$.a")
            return self._one(*simple) if depth > 2 or self._likely(0.9) else self._expression(3)

        return one() + (f" to {one()}" if self._likely(0.3) else "")

    def _steps(self, operand: str, depth: int) -> str:
        count = self.random.choice((0, 1, 1, 2, 2, 3))
        return operand + "".join(self._step(depth + 1) for _ in range(count))

    def _operand(self, depth: int, current: bool) -> str:
        kind = self.random.random()
        if kind < 0.35 and current:
            return self._steps("@", depth)
        if kind < 0.7:
            return self._steps("$", depth)
        if kind < 0.9:
            return self._one(*_OPERANDS)
        return self._steps(self._one("$x", "$y", '$"s t"', "$nope"), depth)

    def _expression(self, depth: int, current: bool = False) -> str:
        kind = self.random.random()
        if depth > 3 or kind < 0.65:
            return self._operand(depth, current)
        inner = self._expression(depth + 1, current)
        if kind < 0.75:
            return self._one("-", "+") + f"({inner})"
        if kind < 0.95:
            other = self._expression(depth + 1, current)
            return f"{inner} {self._one(*'+-*/%')} {self._one(other, f'({other})')}"
        return self._steps(f"({inner})", depth)

    def _condition(self, depth: int, current: bool = False) -> str:
        kind = self.random.random() if depth < 4 else 1.0
        if kind < 0.2:
            sides = self._condition(depth + 1, current), self._condition(depth + 1, current)
            return self._one(" && ", " || ").join(sides)
        if kind < 0.37:
            inner = self._condition(depth + 1, current)
            return self._one(f"!({inner})", f"({inner}) is unknown")
        left = self._expression(depth + 1, current)
        if kind < 0.47:
            return f"exists({left})"
        if kind < 0.54:
            return f"{left} starts with " + self._one('"a"', '"ab"', '""', "$y", "$x")
        if kind < 0.61:
            return f"{left} like_regex {self._one(*_PATTERNS)}"
        sign = self._one("==", "!=", "<>", "<", "<=", ">", ">=")
        return f"{left} {sign} {self._expression(depth + 1, current)}"

    def call(self) -> tuple[str, str, str, str | None, bool]:
        function = self._one(*FUNCTIONS)
        given = function.startswith("jsonb") and self._likely(0.7)
        silent = given and self._likely(0.3)
        return function, self.document(), self.path(), VARIABLES if given else None, silent


def _sql(call: tuple[str, str, str, str | None, bool]) -> str:
    def text(value: str) -> str:
        return "'" + value.replace("'", "''") + "'"

    function, document, path, variables, silent = call
    if function == "jsonpath":
        return f"SELECT CAST({text(path)}::jsonpath AS text)"
    if not function.startswith("jsonb"):
        return f"SELECT CAST({text(document)}::jsonb {function} {text(path)} AS text)"
    more = "" if variables is None else f", {text(variables)}, {silent}"
    return f"SELECT CAST({function}({text(document)}, {text(path)}{more}) AS text)"


def _answers(connection: str, calls: list[tuple[str, str, str, str | None, bool]]) -> list[object]:
    script = "\\set VERBOSITY sqlstate\n\\pset tuples_only\n\\pset format unaligned\n"
    script += "\\pset null <NULL>\nSET timezone = 'UTC';\n"
    script += "".join(f"\\echo @@@\n{_sql(call)};\n" for call in calls)
    command = ["psql", "-X", "-q", connection]
    done = subprocess.run(
        command,
        input=script,
        text=True,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    answers: list[object] = []
    for shown in done.stdout.split("@@@\n")[1:]:
        error = re.match(r"ERROR: +([0-9A-Z]{5})", shown)
        text = shown.removesuffix("\n")
        answers.append({"error": error[1]} if error else None if text == "<NULL>" else text)
    return answers


def main() -> None:
    samples = Samples(seed=15)
    calls = [samples.call() for _ in range(900)]
    answers = _answers(sys.argv[1], calls)
    lines = [[*call, answer] for call, answer in zip(calls, answers, strict=True)]
    GOLDEN.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


if __name__ == "__main__":
    main()
