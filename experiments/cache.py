"""Results of expensive steps, kept under a fingerprint of all that they come from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import fastdx

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".papers"


@cache
def _code() -> bytes:
    """The fingerprint of fastdx and of the experiments."""
    library = Path(fastdx.__file__).parent
    files = [f for f in library.rglob("*") if f.suffix in (".py", ".so", ".pyd")]
    # The command and the pages take no part.
    apart = {"cli", "report.py", "page.py", "run.py", "plots.py"}
    total = hashlib.sha256()
    for path in sorted(f for f in files if not apart & set(f.relative_to(library).parts)):
        total.update(hashlib.sha256(path.read_bytes()).digest())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        total.update(path.read_bytes())
    return total.digest()


def fingerprint(*parts: Any) -> str:
    """A short name of the code and of what was asked of it."""
    asked = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(_code() + asked.encode()).hexdigest()[:20]


def kept(folder: Path | None, make: Callable[[], Any], *parts: Any) -> Any:
    """Return the result of `make` as JSON has it, from the folder if the same was made before.

    Without a folder nothing is kept.
    """
    if folder is None:
        return json.loads(json.dumps(make()))
    path = folder / f"{fingerprint(*parts)}.json"
    if path.exists():
        return json.loads(path.read_text("utf-8"))
    made = json.dumps(make())
    folder.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".tmp")
    beside.write_text(made, "utf-8")
    beside.replace(path)
    return json.loads(made)
