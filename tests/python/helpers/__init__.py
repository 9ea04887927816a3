"""Parts that several tests share: paths here, one module for each subject.

pytest finds the package through `pythonpath` in pyproject.toml. A test never imports from another
test file.
"""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
"""The repository."""

SHARED = ROOT.parent / "shared" / "data"
"""Real embeddings and texts, which are no part of the repository. They may be absent."""

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
"""The folder that cargo builds into."""
