"""A page of the console, as far as the server sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import requests


class Visitor:
    """A page, as far as the server sees it: it has a cookie and a token."""

    def __init__(self, http: str) -> None:
        self.base = f"http://{http}"
        self.session = requests.Session()
        self.described = self.get("/console/session").json()
        self.token = self.described["token"]

    def get(self, path: str, **options: Any) -> requests.Response:
        return self.session.get(self.base + path, timeout=60, **options)

    def post(self, path: str, body: Any, token: str | None = None) -> requests.Response:
        headers = {"X-Remuda-Token": self.token if token is None else token}
        return self.session.post(self.base + path, json=body, headers=headers, timeout=60)

    def run(self, text: str, **fields: Any) -> list[dict[str, Any]]:
        """The lines of the answer."""
        response = self.post("/console/statements", {"text": text, **fields})
        assert response.status_code == 200, response.text
        return [json.loads(line) for line in response.text.splitlines()]

    def login(self, user: str, password: str) -> requests.Response:
        response = self.post("/console/login", {"user": user, "password": password})
        if response.status_code == 200:
            self.token = response.json()["token"]
        return response

    @contextmanager
    def events(self, *topics: str) -> Iterator[Iterator[dict[str, Any]]]:
        query = "&".join(f"topic={topic}" for topic in topics)
        with self.get(f"/console/events?{query}", stream=True) as response:
            assert response.status_code == 200, response.text
            assert response.headers["Content-Type"] == "text/event-stream"
            lines = response.iter_lines(chunk_size=1)
            yield (json.loads(line[6:]) for line in lines if line.startswith(b"data: "))
