"""A client that stands in for a grid of three members: it records what it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, Self

import pyarrow as pa

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.view import MemberInfo, View
from remuda.errors import MemberUnavailable, UndefinedMap

VIEW = View(
    number=1,
    members=tuple(MemberInfo(n, f"uuid{n}", "host", 100 + n, 200 + n, 300 + n) for n in (1, 2, 3)),
    replicas=tuple((1 + p % 3,) for p in range(271)),
)


class FakeWriter:
    def __init__(self, client: FakeClient, task: str) -> None:
        self.client, self.task, self.rows = client, task, 0

    def write(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        self.client.written.append(batch)

    def remove(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        self.client.removed.append(batch)

    def finish(self) -> Any:
        return (self.task, self.rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class FakeClient:
    def __init__(self, *schemas: MapSchema, batches: Sequence[pa.RecordBatch] = ()) -> None:
        self.schemas = {schema.name: schema for schema in schemas}
        self.batches = list(batches)
        self.asked: list[Any] = []
        self.written: list[pa.RecordBatch] = []
        self.removed: list[pa.RecordBatch] = []
        self.leases: dict[tuple[int | None, str], int] = {}
        self.lost: list[Exception] = []
        """What the next queries raise, and after how many batches."""
        self.view = VIEW
        self.size = 0
        self.address = ""
        self.gone: set[int | None] = set()

    def connect(self, address: str) -> FakeClient:
        self.address = address
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def cluster_info(self, member: int | None = None) -> Any:
        return SimpleNamespace(
            view=self.view, clock=1000 + (member or 0) * 7 % 20, member=member or 1
        )

    def describe(self, name: str) -> MapSchema:
        if name not in self.schemas:
            raise UndefinedMap(f'map "{name}" does not exist')
        return self.schemas[name]

    def describe_map(self, name: str) -> Any:
        return SimpleNamespace(schema=self.describe(name), bytes=self.size)

    def close(self) -> None:
        pass

    @property
    def _core(self) -> Any:
        return SimpleNamespace(call=self._leased)

    async def _leased(self, member: int | None, call: Any) -> int | None:
        """The answer to READ_LEASE, the only request that Spark makes by itself."""
        if member in self.gone:
            raise MemberUnavailable(f"member {member} is lost")
        asked = call.body
        if asked.HasField("at"):
            self.leases.setdefault((member, asked.run), asked.at)
        return self.leases.get((member, asked.run))

    def create_map(self, schema: MapSchema) -> MapSchema:
        self.asked.append(("create", schema.name))
        self.schemas[schema.name] = schema
        return schema

    def drop_map(self, name: str, if_exists: bool = False) -> None:
        self.asked.append(("drop", name))
        del self.schemas[name]

    def map(self, name: str) -> Any:
        return SimpleNamespace(size=lambda: 0)

    def query(self, text: str, parameters: Sequence[Any] = (), **choices: Any) -> Any:
        self.asked.append((self.address, text, tuple(parameters), choices))

        def batches() -> Iterator[pa.RecordBatch]:
            for index, batch in enumerate(self.batches):
                if index and self.lost:
                    raise self.lost.pop()
                yield batch

        return SimpleNamespace(batches=batches)

    def begin_job(
        self, name: str, overwrite: bool = False, label: str = "", *, insert_only: bool = False
    ) -> Any:
        self.asked.append(("begin", name, overwrite, *(["insert"] if insert_only else [])))
        target = SimpleNamespace(view=self.view, writer=lambda task: FakeWriter(self, task))
        return SimpleNamespace(id="1-job", schema=self.schemas[name], target=target)

    def commit_job(self, job: str, tasks: Sequence[Any]) -> int:
        self.asked.append(("commit", job, list(tasks)))
        return sum(rows for _, rows in tasks)

    def abort_job(self, job: str) -> None:
        self.asked.append(("abort", job))
