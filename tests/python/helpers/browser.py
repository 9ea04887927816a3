"""Chromium without a window, driven by its debugging protocol over two pipes."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


def dom(url: str, profile: Path, *options: str) -> str:
    """The document as the browser leaves it."""
    assert BROWSER is not None
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", *options,
               f"--user-data-dir={profile}", url]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout


class Browser:
    """One tab. Of the network it reaches this machine alone."""

    def __init__(self, profile: Path) -> None:
        assert BROWSER is not None
        self._reads, theirs_out = os.pipe()
        theirs_in, self._writes = os.pipe()
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu",
                   "--remote-debugging-pipe",
                   "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                   f"--user-data-dir={profile}", "about:blank"]  # fmt: skip
        # The protocol is spoken at descriptors 3 and 4, ended by zero bytes. Copies above these, so
        # that neither is overwritten before it was taken.
        copies = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_in, theirs_out)]
        null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
        pipes = [(os.POSIX_SPAWN_DUP2, fd, at) for at, fd in enumerate(copies, 3)]
        self._process = os.posix_spawn(BROWSER, command, os.environ, file_actions=[*null, *pipes])
        for fd in copies:
            os.close(fd)
        os.close(theirs_in)
        os.close(theirs_out)
        self._rest = b""
        self._numbers = itertools.count(1)
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        """The page's own requests, exceptions and console messages."""
        pages = self("Target.getTargets")["targetInfos"]
        page = next(p["targetId"] for p in pages if p["type"] == "page")
        self._session = self("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self(f"{domain}.enable")

    def __call__(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask for something, and wait for the answer."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._writes, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = os.read(self._reads, 1 << 16)
            assert piece, "the browser has ended"
            self._rest += piece
        line, self._rest = self._rest.split(b"\0", 1)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def run(self, script: str) -> Any:
        """Return what a script gives."""
        answer = self("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition: str, seconds: float = 60.0) -> None:
        """Wait until a script gives what counts as true."""
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, (condition, self.run("document.body.innerText"))
            time.sleep(0.05)

    def open(self, url: str) -> None:
        """Load a page."""
        self("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def press(self, key: str, *, text: str = "", modifiers: int = 0) -> None:
        """Press a key and let it go."""
        codes = {"Tab": 9, "Enter": 13}
        more = {"key": key, "code": key, "windowsVirtualKeyCode": codes.get(key, 0)}
        down = {"text": text} if text else {}
        self("Input.dispatchKeyEvent", type="keyDown", modifiers=modifiers, **more, **down)
        self("Input.dispatchKeyEvent", type="keyUp", modifiers=modifiers, **more)

    def tree(self) -> list[tuple[str, str]]:
        """Return roles and names as a screen reader gets them."""
        nodes = self("Accessibility.getFullAXTree")["nodes"]
        seen = [node for node in nodes if not node["ignored"]]
        return [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in seen]

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(self._reads)
        os.close(self._writes)
