"""The cost of an open page of the console for the members: ``./run bench console``.

Three member processes hold maps that nobody uses, and a gateway serves the console. For each page
its stream of events is open as in a browser, for its topics. Shown: the processor time of a member
with the page and without, as a share of one core.
"""

from __future__ import annotations

import argparse
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import requests

import remuda
from idle import MAPS, SETTLED, _used
from remuda.cli.gateway_command import beside
from remuda.gateway.console.console import PAGE

_TOPICS = re.compile(r"\btopics = \[(.*)\]")


def pages() -> dict[str, list[str]]:
    """The topics of each page, as its script names them; every page follows the members."""
    found = {}
    for path in sorted(PAGE.glob("*.js")):
        match = _TOPICS.search(path.read_text(encoding="utf-8"))
        if match is not None:
            found[path.stem] = ["members", *re.findall(r'"(\w+)"', match.group(1))]
    return found | {"statements": ["members", "queries", "history"]}


@contextmanager
def followed(http: str, topics: list[str]) -> Iterator[None]:
    """An open page."""
    session = requests.Session()
    session.get(f"http://{http}/console/session", timeout=60)
    query = "&".join(f"topic={topic}" for topic in topics)
    response = session.get(f"http://{http}/console/events?{query}", stream=True, timeout=60)
    response.raise_for_status()

    def read() -> None:
        try:
            for _ in response.iter_lines(chunk_size=1):
                pass
        except (requests.RequestException, OSError, AttributeError, ValueError):
            return  # the page was closed

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        yield
    finally:
        response.close()
        session.close()


def share(pids: list[int], seconds: float) -> float:
    """Processor time of one member in percent of a core, on average."""
    before = sum(_used(pid)[0] for pid in pids)
    time.sleep(seconds)
    return 100 * (sum(_used(pid)[0] for pid in pids) - before) / seconds / len(pids)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    seconds = parser.parse_args().seconds
    with remuda.start(members=3) as cluster, cluster.connect() as client:
        for number in range(MAPS):
            client.map(f"m{number}").put_all({key: {"v": key} for key in range(1000)})
        addresses = ",".join(member.user for member in cluster.members)
        with beside(addresses, 0) as http:
            time.sleep(SETTLED)
            print(f"{'no page':12} {share(cluster.pids, seconds):5.2f} % of a core per member")
            for page, topics in pages().items():
                alone = share(cluster.pids, seconds / 2)
                with followed(http, topics):
                    time.sleep(3.0)
                    found = share(cluster.pids, seconds)
                print(f"{page:12} {found:5.2f} %, {found - alone:+.2f} by the page", flush=True)


if __name__ == "__main__":
    main()
