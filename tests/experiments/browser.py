"""A headless Chromium that opens pages as a reader's does: their policy on, their console read."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--remote-debugging-pipe"),
)
PROBLEMS = (Path(__file__).parent / "problems.js").read_text("utf-8")
"""Gives the list of what is wrong with a page as it is laid out."""


def chromium_here() -> str:
    """A real browser; installed where the machine allows it."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    binary = next(filter(None, map(shutil.which, names)), None)
    if binary is None and shutil.which("apt-get") and os.geteuid() == 0:
        # tests run in parallel: one process installs, the others wait for its lock
        get = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"]
        subprocess.run([*get, "update"], capture_output=True)
        subprocess.run([*get, "install", "-y", "chromium"], capture_output=True)
        binary = shutil.which("chromium")
    if binary is None:
        pytest.skip("no Chromium here, and apt-get cannot install one: needs root and a mirror")
    return binary


class Browser:
    """The DevTools protocol over a pipe: JSON messages, each ended by a zero byte."""

    def __init__(self, to_it: int, from_it: int) -> None:
        self._to, self._from = os.fdopen(to_it, "wb"), os.fdopen(from_it, "rb")
        self._last_id = 0
        self._rest = b""
        self.events: list[dict[str, Any]] = []
        """Every event since the last page was opened."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session: str | None = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    _session = None

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of one command; events that come meanwhile are kept."""
        self._last_id += 1
        message: dict[str, Any] = {"id": self._last_id, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        self._to.flush()
        while (answer := self._read()).get("id") != self._last_id:
            self.events.append(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._from.fileno(), 1 << 20)
            assert more, "Chromium has closed its pipe"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def open(self, path: Path | str, width: int = 1280, scheme: str = "light") -> None:
        """A file or an address, loaded to its end in a window of this width."""
        url = path if isinstance(path, str) else path.as_uri()
        self.window(width, scheme)
        self.events.clear()
        navigated = self.call("Page.navigate", url=url)
        assert "errorText" not in navigated, f"{path}: {navigated}"
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._read())

    def window(self, width: int, scheme: str = "light") -> None:
        """Give the window a width, and its reader a taste."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            **{"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False},
        )
        prefers = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=prefers)

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page, awaited."""
        done = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def press(self, key: str, control: bool = False) -> None:
        """A key, pressed and let go: " ", "Enter", "ArrowDown", "q"."""
        codes = {"Enter": 13, "Escape": 27, " ": 32, "ArrowUp": 38, "ArrowDown": 40, "Tab": 9}
        code = codes.get(key, ord(key.upper()) if len(key) == 1 else 0)
        about = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 2 * control}
        typed = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        text = {"text": typed} if typed and not control else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **about, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def write(self, text: str) -> None:
        """Text where the focus is, as from a keyboard."""
        self.call("Input.insertText", text=text)

    def click(self, element: str) -> None:
        """The mouse on the middle of what an expression of the page is."""
        seen = f"({element}).scrollIntoView({{block: 'center', behavior: 'instant'}})"
        box = f"({seen}, ({element}).getBoundingClientRect())"
        x, y = self.evaluate(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({box})")
        for kind in ("mousePressed", "mouseReleased"):
            about = {"x": x, "y": y, "button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", type=kind, **about)

    def problems(self) -> list[str]:
        """Broken or clipped elements of the page, and all messages of console and network."""
        laid_out = self.evaluate(PROBLEMS)
        return [*laid_out, *self.console]

    @property
    def console(self) -> list[str]:
        """Messages, errors and refusals since the page was opened, and requests it made."""
        found = []
        for event in self.events:
            params = event.get("params", {})
            match event.get("method"):
                case "Log.entryAdded":
                    found.append(params["entry"]["text"])
                case "Runtime.consoleAPICalled":
                    found.append(" ".join(str(a.get("value")) for a in params["args"]))
                case "Runtime.exceptionThrown":
                    found.append(json.dumps(params["exceptionDetails"]))
                case "Network.requestWillBeSent":
                    url = params["request"]["url"]
                    if not url.startswith(("file:", "data:")):
                        found.append(f"asked for {url}")
        return found

    def screenshot(self, path: Path) -> None:
        """The whole page, below the window too."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A running browser with a profile of its own, ended with the context."""
    its_in, to_it = os.pipe()
    from_it, its_out = os.pipe()
    # it reads commands from descriptor 3 and answers on 4
    shell = f'exec "$0" "$@" 3<&{its_in} 4>&{its_out}'
    process = subprocess.Popen(
        ["bash", "-c", shell, chromium_here(), *FLAGS, f"--user-data-dir={profile}"],
        pass_fds=(its_in, its_out),
        stderr=subprocess.DEVNULL,
    )
    os.close(its_in)
    os.close(its_out)
    try:
        chromium = Browser(to_it, from_it)
        yield chromium
        chromium._session = None
        chromium.call("Browser.close")
    finally:
        process.terminate()
        process.wait()
