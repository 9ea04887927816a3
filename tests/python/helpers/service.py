"""The program of the service, as it was built."""

import os
from pathlib import Path

import pytest

from helpers import ROOT, TARGET

PLACES = [TARGET / kind / "fastdx-serve" for kind in ("release", "debug")]


def built() -> Path:
    """Return the program that was built last, or FASTDX_SERVE; skip the test if it is old."""
    given = os.environ.get("FASTDX_SERVE")
    if given:
        return Path(given)
    found = [p for p in PLACES if p.is_file()]
    if not found:
        pytest.skip("the service has not been built: make test-service")
    last = max(found, key=lambda path: path.stat().st_mtime)
    sources = (ROOT / "service" / "src").iterdir()
    if any(source.stat().st_mtime > last.stat().st_mtime for source in sources):
        pytest.skip("the service was built before its source was changed: make test-service")
    return last
