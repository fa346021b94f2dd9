"""A headless Chromium, driven by its DevTools protocol.

One page, blocking calls. Errors of the page's scripts, and violations of its policy for content,
are kept: ``close`` raises when there were any.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WAIT = 30.0
"""Seconds until something must have appeared."""
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--hide-scrollbars", "--disable-background-networking", "--disable-component-update",
    "--disable-default-apps", "--disable-extensions", "--disable-sync", "--mute-audio",
    "--no-proxy-server", "--force-color-profile=srgb", "--remote-debugging-port=0",
)  # fmt: skip


class Browser:
    def __init__(self, width: int = 1360, height: int = 860) -> None:
        assert CHROMIUM is not None
        self.problems: list[str] = []
        self._folder = tempfile.TemporaryDirectory(
            prefix="remuda-chromium-", ignore_cleanup_errors=True
        )
        size = f"--window-size={width},{height}"
        self._process = subprocess.Popen(
            [CHROMIUM, *_FLAGS, size, f"--user-data-dir={self._folder.name}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._do(self._attach(self._port()))
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def _port(self) -> int:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if "DevTools listening on" in line:
                threading.Thread(target=self._process.stderr.read, daemon=True).start()
                return int(line.split(":")[-1].split("/")[0])
        raise AssertionError("chromium has ended")

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(2 * WAIT)

    async def _attach(self, port: int) -> None:
        self._http = aiohttp.ClientSession()
        async with self._http.put(f"http://127.0.0.1:{port}/json/new?about:blank") as answer:
            page = await answer.json()
        self._socket = await self._http.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0)
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for message in self._socket:
            found = json.loads(message.data)
            if "id" in found:
                self._answers.pop(found["id"]).set_result(found)
            elif found["method"] == "Runtime.exceptionThrown":
                self.problems.append(json.dumps(found["params"]["exceptionDetails"])[:2000])
            elif found["method"] == "Log.entryAdded":
                entry = found["params"]["entry"]
                if entry["level"] == "error" and entry["source"] != "network":
                    self.problems.append(entry["text"])

    async def _send(self, method: str, params: dict[str, Any]) -> Any:
        number = next(self._numbers)
        self._answers[number] = answer = self._loop.create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        found = await answer
        assert "error" not in found, (method, found)
        return found["result"]

    def send(self, method: str, **params: Any) -> Any:
        return self._do(self._send(method, params))

    def open(self, url: str) -> None:
        self.send("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """The value of an expression, awaited when it is a promise."""
        found = self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition: str) -> Any:
        """Until the expression is true; its value. The page looks at each frame."""
        script = f"""new Promise((resolve, reject) => {{
            const end = performance.now() + {WAIT * 1000};
            const look = () => {{
                let found = false;
                try {{ found = ({condition}); }} catch {{ found = false; }}
                if (found) resolve(found);
                else if (performance.now() > end) reject(new Error("not seen: " + {condition!r}));
                else setTimeout(look, 16);
            }};
            look();
        }})"""
        return self.run(script)

    def text(self) -> str:
        return str(self.run("document.body.innerText"))

    def wait_text(self, *texts: str) -> None:
        for text in texts:
            self.wait(f"document.body.innerText.includes({json.dumps(text)})")

    def click(self, selector: str, text: str | None = None) -> None:
        """The first element that fits, by its place on the screen as a user does."""
        chosen = f"""[...document.querySelectorAll({json.dumps(selector)})].find(
            (e) => e.innerText.trim().startsWith({json.dumps(text or "")}))"""
        x, y = self.wait(f"""(() => {{
            const e = {chosen}; if (!e || e.disabled) return false;
            e.scrollIntoView({{block: "center"}});
            const r = e.getBoundingClientRect();
            return r.width && [r.x + r.width / 2, r.y + r.height / 2];
        }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def press(self, key: str, code: int, modifiers: int = 0) -> None:
        """``code`` is the key's number of old, ``modifiers`` 2 is Ctrl."""
        text = {"Enter": "\r"}.get(key, "") if not modifiers else ""
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def dark(self, on: bool = True) -> None:
        value = "dark" if on else "light"
        self.send(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": value}],
        )

    def size(self, width: int, height: int) -> None:
        """Of the window; a narrow one is that of a telephone."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def picture(self, path: Path) -> None:
        """A screenshot of the window."""
        data = self.send("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        async def end() -> None:
            self._reading.cancel()
            await self._socket.close()
            await self._http.close()

        self._do(end())
        self._process.terminate()
        self._process.wait(WAIT)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._folder.cleanup()
