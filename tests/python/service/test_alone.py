"""The static program, alone in an empty folder that is its root, as a user without rights."""

import http.client
import json
import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from helpers import TARGET

MOST_BYTES = 25e6
NOBODY = 65534
DYNAMIC, INTERPRETER = 2, 3
NEEDED = 1


@pytest.fixture(scope="module")
def static() -> Path:
    built = TARGET / "x86_64-unknown-linux-musl" / "release" / "fastdx-serve"
    path = Path(os.environ.get("FASTDX_SERVE_STATIC", built))
    if not path.is_file():
        pytest.skip("there is no static program: make service-static")
    return path


def segments(program: bytes) -> list[tuple[int, bytes]]:
    """Kinds and contents of the segments of an ELF file of 64 bits."""
    assert program[:6] == b"\x7fELF\x02\x01"
    (start,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    found = []
    for at in range(start, start + size * count, size):
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", program, at)
        found.append((kind, program[offset : offset + length]))
    return found


def needs(program: bytes) -> list[str]:
    """The libraries that a program asks the system's loader for."""
    found = ["a loader" for kind, _ in segments(program) if kind == INTERPRETER]
    for kind, content in segments(program):
        if kind == DYNAMIC:
            entries = struct.iter_unpack("<qQ", content[: len(content) // 16 * 16])
            found += ["a library" for tag, _ in entries if tag == NEEDED]
    return found


def test_it_is_small_and_needs_nothing(static: Path) -> None:
    assert static.stat().st_size <= MOST_BYTES
    assert needs(static.read_bytes()) == []
    # A program of the system does need something: the test can tell.
    shell = Path("/bin/sh").read_bytes()
    assert "a loader" in needs(shell) and "a library" in needs(shell)


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
