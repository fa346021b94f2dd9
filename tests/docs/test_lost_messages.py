"""``docs/messages-lost.md`` has every message between members, and the way in which the code sends
it: a new message without a row fails here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.syntax_trees import syntax_tree

from remuda.rpc.messages import control_pb2, data_pb2, user_pb2

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "messages-lost.md").read_text()
MEMBER = sorted((ROOT / "src" / "remuda" / "member").rglob("*.py"))
ONE_WAY = {"peers.send_control", "peers.send_membership", "peers.send_data"}
WAYS = {
    "one way": ONE_WAY,
    "told": {"peers.tell"},
    "asked again": {"peers.ask_again"},
}
OVER_ITS_OWN = {"RECOVER", "VIEW_INSTALL"}
"""Asked again over a connection that is made for it (``Forming._connected``), not by ``Peers``."""
ALSO_TOLD = {"ADVISORY_CLAIM", "COMMIT_FINISH", "COPY_BEGIN", "MOVES_PAUSE"}
"""Requests of which one form is told."""
NAMES = {*control_pb2.RpcType.keys(), *data_pb2.RpcType.keys()}
ANSWERS = {"ACK"}


def rows(heading: str) -> Iterator[tuple[str, list[str]]]:
    """Each name in the first column of the table under a heading, and the other cells."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        for name in re.findall(r"`([A-Z_]+)`", cells[0]) if line.startswith("| `") else ():
            yield name, cells[1:]


def rpc_types(node: ast.AST, constants: dict[str, str]) -> set[str]:
    """The kinds of message that an expression names."""
    found = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and part.attr in NAMES:
            found.add(part.attr)
        elif isinstance(part, ast.Name) and part.id in constants:
            found.add(constants[part.id])
    return found


def called(function: ast.expr) -> str:
    """A function of the module or of ``self`` by its name, one of ``Peers`` as "peers.tell"."""
    if isinstance(function, ast.Name):
        return function.id
    if isinstance(function, ast.Attribute):
        owner = function.value.attr if isinstance(function.value, ast.Attribute) else ""
        owner = function.value.id if isinstance(function.value, ast.Name) else owner
        if owner in {"peers", "_peers"}:
            return f"peers.{function.attr}"
        return function.attr if owner == "self" else ""
    return ""


def passed(call: ast.Call) -> str:
    """The function that is called, also by ``partial``."""
    name = called(call.func)
    return called(call.args[0]) if name == "partial" and call.args else name


def sent_by(senders: set[str], tree: ast.Module) -> tuple[set[str], list[int]]:
    """What a module sends by calling one of these functions, also through functions of its own that
    pass a kind on; and the lines where that cannot be seen."""
    constants = {
        target.id: value
        for statement in tree.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
        for value in rpc_types(statement.value, {})
    }
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    known, kinds, unseen = set(senders), set[str](), list[int]()
    looked = set[str]()
    while looked != known:
        new = known - looked
        looked |= new
        for function in functions:
            parameters = {argument.arg for argument in function.args.args}
            for call in ast.walk(function):
                if not isinstance(call, ast.Call) or passed(call) not in new:
                    continue
                here = rpc_types(call, constants)
                kinds |= here
                names = {part.id for part in ast.walk(call) if isinstance(part, ast.Name)}
                if "rpc_type" in parameters & names:
                    known.add(function.name)
                elif not here:
                    unseen.append(call.lineno)
    return kinds, unseen


def sent(way: str) -> set[str]:
    kinds = set[str]()
    for path in MEMBER:
        if path.name == "peers.py":  # defines them
            continue
        text = path.read_text()
        here, unseen = sent_by(WAYS[way], syntax_tree(text))
        assert not unseen, f"{path.name}, lines {unseen}: which message is sent?"
        kinds |= here
        if way == "asked again":
            tree = syntax_tree(text)
            kinds |= {
                kind
                for call in ast.walk(tree)
                if isinstance(call, ast.Call)
                and any(keyword.arg == "repeated" for keyword in call.keywords)
                for kind in rpc_types(call, {})
            }
    return kinds


MESSAGES = dict(rows("Control and data channel"))


def test_every_message_between_members_has_a_row() -> None:
    text = "".join(path.read_text() for path in MEMBER)
    users = set(user_pb2.RpcType.keys())
    used = {
        name
        for name in NAMES
        if re.search(rf"\b(?:Rpc|Control)Type\.{name}\b", text)
        and (name not in users or re.search(rf"\bControlType\.{name}\b", text))
    }
    assert used - ANSWERS - MESSAGES.keys() == set(), "without a row"
    assert MESSAGES.keys() - used - {"HANDSHAKE"} == set(), "not sent any more"
    for name, (way, what) in MESSAGES.items():
        assert way in {*WAYS, "asked"}, name
        assert what.endswith("."), name


@pytest.mark.parametrize("way", WAYS)
def test_the_page_says_how_each_is_sent(way: str) -> None:
    listed = {name for name, cells in MESSAGES.items() if cells[0] == way} - OVER_ITS_OWN
    assert sent(way) - (ALSO_TOLD if way == "told" else set()) == listed
    if way == "told":
        assert sent(way) >= ALSO_TOLD
        assert all("**told**" in MESSAGES[name][1] for name in ALSO_TOLD)


def test_a_message_that_is_new_in_the_code_is_seen() -> None:
    """Directly, by a constant, and through a function that passes the kind on."""
    module = syntax_tree(
        "_KIND = RpcType.WISH\n"
        "def one(self): self._peers.send_control(1, RpcType.PARTS, m)\n"
        "def two(self): self._peers.send_control(1, _KIND, m)\n"
        "def three(self): self._tell(1, RpcType.KEY_PROBE)\n"
        "def _tell(self, to, rpc_type): self._peers.send_control(to, rpc_type, m)\n"
        "def four(self): partial(self._peers.send_control, 1, RpcType.AGREE)\n"
        "def five(self, what): self._peers.send_control(1, what, m)\n"
    )
    kinds, unseen = sent_by(ONE_WAY, module)
    assert kinds == {"PARTS", "WISH", "KEY_PROBE", "AGREE"}
    assert unseen == [7]


@pytest.mark.parametrize(
    ("heading", "kinds"),
    [
        ("Parts of transactions", control_pb2.PartMessage.Kind.keys()),
        ("Agreement on views", control_pb2.Agreement.Kind.keys()),
    ],
)
def test_every_kind_that_a_message_carries_has_a_row(heading: str, kinds: list[str]) -> None:
    assert sorted(name for name, _ in rows(heading)) == sorted(kinds)
