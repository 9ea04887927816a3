"""Chromium without a window."""

import shutil
import subprocess
from pathlib import Path

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


def dom(url: str, profile: Path, *options: str) -> str:
    """The document as the browser leaves it."""
    assert BROWSER is not None
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", *options,
               f"--user-data-dir={profile}", url]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
