"""The service as it was built: `make test-service`, or FASTDX_SERVE names its program."""

import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from helpers.service import built


@pytest.fixture(scope="session")
def program() -> Path:
    """The program that was built last."""
    return built()


@pytest.fixture
def start(program: Path) -> Iterator[Callable[..., str]]:
    """Start a service on a free port and wait until it is ready: its address."""
    running: list[subprocess.Popen[str]] = []

    def begin(*flags: str) -> str:
        command = [str(program), "--listen", "127.0.0.1:0", *flags]
        service = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        running.append(service)
        assert service.stderr is not None
        address, log = "", ""
        for line in service.stderr:
            log += line
            if "listening on " in line:
                address = line.split("listening on ")[1].strip()
            if line.strip().endswith(": ready"):
                break
        else:
            pytest.fail(log)
        # Nobody reads the rest: it must not fill the pipe.
        threading.Thread(target=service.stderr.read, daemon=True).start()
        return address

    yield begin
    for service in running:
        service.kill()
        service.wait()
