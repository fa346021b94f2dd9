"""``remuda gateway``: the console and a REST interface for Apache Drill's Python clients, in the
foreground.

And the same beside the members of ``remuda start``.
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
from remuda.errors import InputError
from remuda.gateway.server import Gateway, GatewaySettings
from remuda.limits import HTTP_PORT
from remuda.rpc.tls import TlsFiles


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
        help="listen where other machines reach it",
    )
    parser.add_argument(
        "--no-console", action="store_true", help="serve the REST interface only, no web page"
    )
    parser.add_argument(
        "--https-certificate", metavar="FILE", help="PEM file to show: speak HTTPS, not HTTP"
    )
    parser.add_argument("--https-key", metavar="FILE", help="PEM file with its key")


def run(options: argparse.Namespace) -> int:
    host, port = split_address(options.listen, "--listen")
    found: dict[str, Any] = dict(connection_options(options))
    if "tls" in found:
        found["tls"] = found["tls"].lower() in ("true", "yes")
    settings = GatewaySettings(
        connect=options.connect,
        host=host,
        port=port,
        remote=options.allow_remote,
        options=found,
        https=_https(options),
        console=not options.no_console,
    )
    asyncio.run(_serve(settings))
    return 0


def _https(options: argparse.Namespace) -> TlsFiles | None:
    certificate, key = options.https_certificate, options.https_key
    if certificate is None:
        if key is not None:
            raise InputError(
                "a key for HTTPS without its certificate", hint="Give --https-certificate as well."
            )
        return None
    return TlsFiles(certificate=certificate, key=key or "", minimum="1.2")


async def _serve(settings: GatewaySettings) -> None:
    gateway = Gateway(settings)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await gateway.start()
    try:
        print(f"ready: {gateway.url}   (Ctrl-C stops)", flush=True)
        await stop.wait()
        print("stopping", flush=True)
    finally:
        await gateway.stop()


@contextmanager
def beside(
    connect: str,
    port: int,
    https: TlsFiles | None = None,
    *,
    console: bool = True,
    **options: Any,
) -> Iterator[str]:
    """A gateway to ``connect`` (``options`` as for ``remuda.connect``) on this machine's loopback,
    in a thread of its own, for the block; its address. Raises InputError and ConnectionRefused."""
    settings = GatewaySettings(
        connect=connect, port=port, options=options, https=https, console=console
    )
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
