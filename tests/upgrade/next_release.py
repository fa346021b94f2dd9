"""The code under test as a release that follows it would be, until there is one.

``python next_release.py member FLAGS``, or ``python next_release.py PROGRAM ARGUMENTS`` for a
client. The release has one version more than this one. Of that version are a kind of message
between members, and comments that begin with ``next:``. Both obey the rule of decision 0112: nobody
sends or keeps them before the version has risen. A field that older members may pass over is in
every heartbeat.
"""

from __future__ import annotations

import runpy
import sys
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool

from remuda import release

OLD: Final = release.VERSIONS.highest
release.__version__ = "0.99.0"  # type: ignore[misc]
release.VERSIONS = release.Versions(OLD, OLD + 1)  # type: ignore[misc]
KIND: Final = 999
"""Of the message that came with the version."""
FIELD: Final = 999


class _Pool:
    """The pool of messages, which adds a field to ``Heartbeat`` when the module is imported."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def AddSerializedFile(self, data: bytes) -> Any:  # noqa: N802 (protobuf's name)
        file = descriptor_pb2.FileDescriptorProto.FromString(data)
        for message in file.message_type:
            if (file.package, message.name) == ("remuda.control", "Heartbeat"):
                kind = descriptor_pb2.FieldDescriptorProto
                message.field.add(
                    name="later", number=FIELD, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL
                )
        return self._pool.AddSerializedFile(file.SerializeToString())


def _with_field() -> None:
    default = descriptor_pool.Default
    descriptor_pool.Default = lambda: _Pool(default())
    try:
        from remuda.rpc.messages import control_pb2  # noqa: F401, PLC0415 (its field is added now)
    finally:
        descriptor_pool.Default = default


def _with_features() -> None:
    from remuda.cluster import membership as ms  # noqa: PLC0415 (all see the release above)
    from remuda.cluster.versions import require_version  # noqa: PLC0415
    from remuda.member.membership import catalog_service, membership  # noqa: PLC0415

    shell, service = membership.Membership, catalog_service.CatalogService
    beat, routes, perform, edit = shell._heartbeat, shell.routes, shell._perform, service.edit

    def _heartbeat(self: Any) -> Any:
        made = beat(self)
        made.later = "a field that came later"
        return made

    def all_routes(self: Any) -> Any:
        found = routes(self)
        found.forming[KIND] = lambda request: membership.log.info("a message that came later")
        return found

    def _perform(self: Any, effect: Any) -> None:
        perform(self, effect)
        if isinstance(effect, ms.SendBeat) and self._core.view.version > OLD:
            self._peers.send_membership(effect.to, KIND, _heartbeat(self))

    async def guarded_edit(self: Any, edits: Any, version: int) -> None:
        if "'next:" in repr(edits):
            require_version(self._core.view, OLD + 1, "a comment on what follows")
        await edit(self, edits, version)

    shell._heartbeat, shell.routes, shell._perform = _heartbeat, all_routes, _perform
    service.edit = guarded_edit


def main() -> None:
    program, sys.argv = sys.argv[1], sys.argv[1:]
    _with_field()
    if program == "member":
        _with_features()
        from remuda.member.main import main as member  # noqa: PLC0415

        sys.exit(member(sys.argv[1:]))
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
