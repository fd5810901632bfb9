"""Control a headless Chromium by the DevTools protocol through a pair of pipes, without a port or another package."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars"),
    *("--remote-debugging-pipe", "--force-color-profile=srgb"),
)
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39, " ": 32}


class Browser:
    """A tab of the browser, with the errors, messages of the console and requests that it has reported."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = os.fdopen(to_browser, "wb"), os.fdopen(from_browser, "rb")
        self._number, self._rest, self._session = 0, b"", ""
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._events: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: object) -> Any:
        """Send a command and return its result; collect the events that arrive before it."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        self._to.flush()
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def _receive(self) -> Any:
        while b"\0" not in self._rest:
            read = os.read(self._from.fileno(), 1 << 20)
            assert read, "the browser ended"
            self._rest += read
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def _note(self, event: Any) -> None:
        method, about = event.get("method", ""), event.get("params", {})
        self._events.append(method)
        if method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(about["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.problems.append(json.dumps(about["args"]))
        elif method == "Log.entryAdded":
            self.problems.append(about["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not about["request"]["url"].startswith("data:"):
            self.requests.append(about["request"]["url"])

    def open(self, page: Path) -> None:
        """Open a file and wait until it has loaded."""
        self._events.clear()
        self.call("Page.navigate", url=page.as_uri())
        while "Page.loadEventFired" not in self._events:
            self._note(self._receive())

    def run(self, script: str) -> Any:
        """Return the JSON value of a script, awaited if it is a promise."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def settle(self) -> None:
        """Wait until the page has drawn two frames, so that observers and redraws are done."""
        self.run(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))))"
        )

    def wait_for(self, condition: str) -> None:
        """Wait until a script returns true."""
        while not self.run(f"Boolean({condition})"):
            self.settle()

    def press(self, key: str, shift: bool = False) -> None:
        """Press and release a key on the focused element."""
        about = {"key": key, "windowsVirtualKeyCode": KEYS.get(key, ord(key[0])), "modifiers": 8 * shift}
        text = {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **about, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)
        self.settle()

    def mouse(self, kind: str, x: float, y: float) -> None:
        """Send a mouse event of the left button: mousePressed, mouseMoved or mouseReleased."""
        button = {"button": "left", "buttons": 1, "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)
        self.settle()

    def show_as(self, width: int, height: int = 900, scheme: str = "light", media: str = "") -> None:
        """Set the size of the window, the preferred colours, and the medium."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)
        self.settle()

    def pdf(self) -> bytes:
        """Return the page as a PDF of size A4."""
        done = self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=False)
        return base64.b64decode(done["data"])

    def screenshot(self) -> bytes:
        """Return a screenshot of the window as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def close(self) -> None:
        """End the browser."""
        self._session = ""
        self.call("Browser.close")
        self._to.close()
        self._from.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser with a profile of its own, and end it."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    with TemporaryDirectory(prefix="samovar-browser-") as home:
        # The browser reads commands from descriptor 3 and writes answers to 4.
        script = f'exec chromium "$@" 3<&{to_read} 4>&{from_write}'
        command = ["bash", "-c", script, "chromium", *OPTIONS, f"--user-data-dir={home}"]
        with subprocess.Popen(
            command, pass_fds=(to_read, from_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            os.close(to_read)
            os.close(from_write)
            browser = Browser(to_write, from_read)
            try:
                yield browser
                browser.close()
                process.wait(30)
            finally:
                process.kill()
