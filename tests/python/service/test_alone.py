"""The static program, alone in an empty folder that is its root, as a user without rights."""

import http.client
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from helpers import TARGET

MOST_BYTES = 25e6
NOBODY = 65534


@pytest.fixture(scope="module")
def static() -> Path:
    built = TARGET / "x86_64-unknown-linux-musl" / "release" / "fastdx-serve"
    path = Path(os.environ.get("FASTDX_SERVE_STATIC", built))
    if not path.is_file():
        pytest.skip("there is no static program: make service-static")
    return path


def needs(program: Path) -> str:
    """What the system's loader finds for a program."""
    done = subprocess.run(["ldd", program], check=False, capture_output=True, text=True)
    return done.stdout + done.stderr


def test_it_is_small_and_needs_nothing(static: Path) -> None:
    assert static.stat().st_size <= MOST_BYTES
    assert "=>" not in needs(static)
    # A program of the system does need something: the test can tell.
    assert "=>" in needs(Path("/bin/sh"))


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot is for root")
def test_it_runs_alone(static: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    shutil.copy(static, root / "fastdx-serve")
    (root / "fastdx-serve").chmod(0o555)
    root.chmod(0o555)

    command = ["chroot", f"--userspec={NOBODY}:{NOBODY}", "--groups=", str(root),
               "/fastdx-serve", "--epsilon", "3", "--listen", "127.0.0.1:0"]  # fmt: skip
    service = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert service.stderr is not None
        # Warnings may stand before.
        listening = next(line for line in service.stderr if "listening on " in line)
        address = listening.split("listening on ")[1].strip()
        assert service.stderr.readline().strip().endswith(": ready")
        assert Path(f"/proc/{service.pid}/root").readlink() == root
        status = Path(f"/proc/{service.pid}/status").read_text()
        assert f"Uid:\t{NOBODY}\t{NOBODY}" in status
        connection = http.client.HTTPConnection(address)
        connection.request("POST", "/v1/privatize", json.dumps({"text": "a cup of hot tea"}))
        answer = json.load(connection.getresponse())
        assert answer["counts"]["replaced"] == 5 and len(answer["text"].split()) == 5
        for path in ("/readyz", "/v1/guarantee/default", "/metrics", "/openapi.json"):
            connection.request("GET", path)
            got = connection.getresponse()
            assert got.status == 200 and got.read()
    finally:
        service.terminate()
        assert service.wait() == 0
    assert [path.name for path in root.iterdir()] == ["fastdx-serve"]
