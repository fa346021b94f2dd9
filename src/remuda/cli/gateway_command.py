"""``remuda gateway``: a REST interface for Apache Drill's Python clients, in the foreground.

And the same beside the members of ``remuda start --http-port``.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from remuda.cli.connecting import add_connect, connection_options
from remuda.config import split_address
from remuda.gateway.server import HTTP_PORT, Gateway, GatewaySettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connect(parser)
    parser.add_argument(
        "--listen",
        default=f"127.0.0.1:{HTTP_PORT}",
        metavar="HOST:PORT",
        help=f"where to listen (127.0.0.1:{HTTP_PORT}); port 0 is any free one",
    )
    parser.add_argument(
        "--allow-remote",
        action="store_true",
        help="listen where other machines reach it, although HTTP is not encrypted",
    )


def run(options: argparse.Namespace) -> int:
    host, port = split_address(options.listen, "--listen")
    found: dict[str, Any] = dict(connection_options(options))
    if "tls" in found:
        found["tls"] = found["tls"].lower() in ("true", "yes")
    settings = GatewaySettings(
        connect=options.connect, host=host, port=port, remote=options.allow_remote, options=found
    )
    asyncio.run(_serve(settings))
    return 0


async def _serve(settings: GatewaySettings) -> None:
    gateway = Gateway(settings)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await gateway.start()
    try:
        print(f"ready: http://{gateway.address}   (Ctrl-C stops)", flush=True)
        await stop.wait()
        print("stopping", flush=True)
    finally:
        await gateway.stop()


@contextmanager
def beside(connect: str, port: int, **options: Any) -> Iterator[str]:
    """A gateway to ``connect`` (``options`` as for ``remuda.connect``) on this machine's loopback,
    in a thread of its own, for the block; its address. Raises InputError and ConnectionRefused."""
    settings = GatewaySettings(connect=connect, port=port, options=options)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="gateway", daemon=True)
    thread.start()

    def on_loop(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    async def made() -> Gateway:
        return Gateway(settings)

    try:
        gateway: Gateway = on_loop(made())
        on_loop(gateway.start())
        try:
            yield gateway.address
        finally:
            on_loop(gateway.stop())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
