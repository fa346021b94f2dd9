"""Makes docs/protocol.md from the .proto files, docs/protocol_operations.py and the limits.

./run test tests/docs/test_protocol_page.py --rewrite
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor

import remuda.rpc.messages
from remuda import limits
from remuda.rpc.handshake import PROTOCOLS, ChannelKind
from remuda.rpc.transport import HANDSHAKE_SIZE_MAX

sys.path.insert(0, str(Path(__file__).parent))
from protocol_fields import meaning
from protocol_operations import ANSWER, ONE_WAY, OPERATIONS, REQUEST, UNUSED, Operation
from protocol_text import HEAD, VERSIONS

MESSAGES: Final = Path(remuda.rpc.messages.__file__).parent
REWRITE: Final = "./run test tests/docs/test_protocol_page.py --rewrite"
TITLES: Final = {
    "user": "User channel",
    "control": "Control channel",
    "data": "Data channel",
    "common": "Parts of messages",
}
_COMMENT = re.compile(
    r"^(?:Remuda: )?(?P<message>\w+(?: \+ [^-,:]+?)?)(?: -> (?P<answer>\w+)|(?P<one_way>, one-way))"
    r"(?::? \(?(?P<meaning>.*?)\)?)?$"
)
_TYPES: Final = {
    value: name.removeprefix("TYPE_").lower()
    for name, value in vars(FieldDescriptor).items()
    if name.startswith("TYPE_")
}


class Undescribed(AssertionError):
    """The .proto files have something that the page has no words for."""


def proto_files() -> dict[str, FileDescriptor]:
    names = sorted(path.stem for path in MESSAGES.glob("*.proto"))
    order = [*(name for name in TITLES if name in names), *(n for n in names if n not in TITLES)]
    return {
        name: importlib.import_module(f"remuda.rpc.messages.{name}_pb2").DESCRIPTOR
        for name in order
    }


class Comments:
    """What the lines of a .proto file say behind and above its declarations."""

    def __init__(self, text: str) -> None:
        self.of: dict[tuple[str, ...], str] = {}
        scope: list[str] = []
        above: list[str] = []
        for raw in text.splitlines():
            line = raw.strip()
            if line.startswith("//"):
                remark = line.removeprefix("//").strip()
                above += [remark] if remark != "Remuda:" else []
                continue
            code, _, behind = (part.strip() for part in line.partition("//"))
            if match := re.match(r"(?:message|enum|oneof) (\w+) \{", code):
                scope.append(match[1])
                self.of[tuple(scope)] = behind or " ".join(above)
            elif match := re.match(r"(?:[\w.]+ +)*?(\w+) = -?\d+", code):
                self.of[(*scope, match[1])] = behind or " ".join(above)
            if code.endswith("}") and scope:
                scope.pop()
            above = []


def operations(channel: str) -> list[tuple[int, str, Operation]]:
    """Number, name and description of each. Raises Undescribed, naming those without words."""
    descriptor = proto_files()[channel].enum_types_by_name["RpcType"]
    comments = Comments((MESSAGES / f"{channel}.proto").read_text(encoding="utf-8"))
    found, missing = [], []
    for value in sorted(descriptor.values, key=lambda v: v.number):
        known = OPERATIONS[channel].get(value.name)
        known = known or _commented(comments.of.get(("RpcType", value.name), ""))
        if known is None:
            missing.append(f"{value.name} ({value.number})")
        else:
            found.append((value.number, value.name, known))
    if missing:
        raise Undescribed(
            f"the {channel} channel has operations without a description: {', '.join(missing)}.\n"
            f"Add each to docs/protocol_operations.py, or comment it in {channel}.proto as "
            "'Request -> Response: meaning' or 'Message, one-way: meaning'; then run\n    "
            + REWRITE
        )
    return found


def _commented(comment: str) -> Operation | None:
    match = _COMMENT.match(comment)
    if match is None:
        return None
    mode = ONE_WAY if match["one_way"] else REQUEST
    return Operation(mode, match["message"], match["answer"] or "", match["meaning"] or "")


def _operation_table(channel: str) -> Iterator[str]:
    yield "| number | operation | mode | message | answer | meaning |"
    yield "|---|---|---|---|---|---|"
    for number, name, operation in operations(channel):
        mode = {ANSWER: "(answer)", UNUSED: "(not used)"}.get(operation.mode, operation.mode)
        message, answer = (_code(part) for part in (operation.message, operation.answer))
        yield f"| {number} | `{name}` | {mode} | {message} | {answer} | {operation.meaning} |"


def _code(text: str) -> str:
    return re.sub(r"\b[A-Z]\w*[a-z_]\w*\b|\b[A-Z_]{3,}\b", _quoted, text)


def _quoted(name: re.Match[str]) -> str:
    return name[0] if name[0] == "Arrow" else f"`{name[0]}`"


def _type(field: FieldDescriptor) -> str:
    if field.message_type is not None:
        kind = field.message_type.name
    elif field.enum_type is not None:
        kind = field.enum_type.name
    else:
        kind = _TYPES[field.type]
    return f"repeated {kind}" if field.is_repeated else kind


def _message(message: Descriptor, comments: Comments, scope: tuple[str, ...]) -> Iterator[str]:
    here = (*scope, message.name)
    yield f"#### {'.'.join(here)}"
    yield ""
    if about := comments.of.get(here, "").removeprefix("---- ").removesuffix(" ----"):
        yield f"{_escaped(about)}"
        yield ""
    if message.fields:
        yield "| field | name | type | meaning |"
        yield "|---|---|---|---|"
    for field in sorted(message.fields, key=lambda f: f.number):
        owner = (field.containing_oneof.name,) if field.containing_oneof else ()
        text = comments.of.get((*here, *owner, field.name), "") or meaning(message.name, field.name)
        if not text:
            raise Undescribed(
                f"nobody says what {'.'.join(here)}.{field.name} means: comment it in its .proto "
                f"file, or name it in docs/protocol_fields.py; then run\n    {REWRITE}"
            )
        yield f"| {field.number} | `{field.name}` | {_type(field)} | {_escaped(text)} |"
    if not message.fields:
        yield "No fields."
    yield ""
    for enum in message.enum_types:
        yield _enum(enum, ".".join(here))
        yield ""
    for inner in message.nested_types:
        yield from _message(inner, comments, here)


def _enum(enum: object, scope: str = "") -> str:
    values = ", ".join(f"{v.number} {v.name}" for v in enum.values)  # type: ignore[attr-defined]
    name = f"{scope}.{enum.name}" if scope else enum.name  # type: ignore[attr-defined]
    return f"`{name}`: {values}."


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("``", "`")


def _file(name: str, descriptor: FileDescriptor) -> Iterator[str]:
    comments = Comments((MESSAGES / f"{name}.proto").read_text(encoding="utf-8"))
    yield f"## {TITLES.get(name, f'Messages of {name}.proto')}"
    yield ""
    if name in OPERATIONS:
        yield from _operation_table(name)
        yield ""
        yield f"### Messages of {name}.proto"
        yield ""
    for enum in descriptor.enum_types_by_name.values():
        if enum.name != "RpcType":
            yield _enum(enum)
            yield ""
    for message in descriptor.message_types_by_name.values():
        yield from _message(message, comments, ())


def _limits() -> str:
    source = Path(limits.__file__).read_text(encoding="utf-8")
    shown = {
        "FRAME_SIZE_MAX": "bytes of a frame",
        "ROW_SIZE_MAX": "bytes of a row",
        "ENCODED_BATCH_SIZE_MAX": "bytes of a batch between members",
        "STREAM_WINDOW_SIZE": "bytes of a stream's window",
        "FRAGMENT_RECEIVE_BUDGET": "bytes of all windows of a fragment",
        "EARLY_BATCHES_SIZE_MAX": "bytes kept for queries that have not started",
        "PAGE_ROWS": "rows of a page to a client",
        "PAGES_IN_FLIGHT": "pages that a client has not acknowledged",
        "ACTIVE_QUERIES_MAX": "queries that one member initiates at a time",
        "MEMBERS_MAX": "members",
        "PARTITIONS": "partitions",
        "CLOCK_SKEW_MAX": "seconds that a member's clock may be ahead",
        "CLIENT_CLOCK_AHEAD_MAX": "seconds that a client's clock may be ahead",
        "HEARTBEAT_INTERVAL": "seconds between heartbeats",
        "HEARTBEAT_TIMEOUT": "seconds of silence after which a member is lost",
    }
    assert all(name in source for name in shown)
    rows = [f"| `{name}` | {getattr(limits, name):,} | {what} |" for name, what in shown.items()]
    return "\n".join(["| limit | value | of |", "|---|---|---|", *rows])


def page() -> str:
    """The whole page. Raises Undescribed."""
    user, control, data = (PROTOCOLS[kind] for kind in ChannelKind)
    head = HEAD.format(
        user_port=limits.USER_PORT,
        control_port=limits.CONTROL_PORT,
        data_port=limits.DATA_PORT,
        user_versions=user.versions,
        control_versions=control.versions,
        data_versions=data.versions,
        user_silence=user.heartbeat_timeout,
        member_silence=control.heartbeat_timeout,
        handshake=limits.HANDSHAKE_TIMEOUT,
        hello_max=f"{HANDSHAKE_SIZE_MAX:,}",
        frame_max=limits.FRAME_SIZE_MAX // limits.MIB,
        early_max=limits.EARLY_BATCHES_SIZE_MAX // limits.MIB,
        ended_kept=f"{limits.ENDED_QUERY_IDS_KEPT:,}",
        surrogate=limits.CANCELLED_SURROGATE_TTL,
        suspect=limits.QUERY_SUSPECT_AFTER,
        gap=limits.STREAM_GAP_TIMEOUT,
        check=limits.QUERY_CHECK_INTERVAL,
        window=limits.STREAM_WINDOW_SIZE // limits.MIB,
        batch_max=limits.ENCODED_BATCH_SIZE_MAX // limits.MIB,
        pages=limits.PAGES_IN_FLIGHT,
        limits=_limits(),
    )
    body = [line for name, file in proto_files().items() for line in _file(name, file)]
    return head + "\n".join(body) + "\n" + VERSIONS
