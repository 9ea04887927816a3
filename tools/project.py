"""The project's version and address, from their one home: `[workspace.package]` in Cargo.toml.

python tools/project.py version
python tools/project.py repository      nothing is printed until somebody has filled it in
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def field(name: str, root: Path = ROOT) -> str:
    """A string of `[workspace.package]`: tomllib is missing in Python 3.10."""
    table = re.search(
        r"^\[workspace\.package\]\n(.*?)^\[", (root / "Cargo.toml").read_text("utf-8"), re.M | re.S
    )
    found = table and re.search(rf'^{name} = "(.*)"$', table[1], re.M)
    if not found:
        raise SystemExit(f"Cargo.toml: [workspace.package] has no {name}")
    return found[1]


def faults(root: Path = ROOT) -> list[str]:
    """Return a sentence for each contradiction to Cargo.toml in files that cannot read it."""
    version, repository = field("version", root), field("repository", root)
    citation = (root / "CITATION.cff").read_text("utf-8")
    changelog = (root / "CHANGELOG.md").read_text("utf-8")
    newest = re.search(r"^## (\S+)", changelog, re.M)
    found = []
    if not re.search(rf"^version: {re.escape(version)}$", citation, re.M):
        found.append(f"CITATION.cff does not say version: {version}")
    if bool(repository) != bool(re.search(r"^repository-code: ", citation, re.M)) or (
        repository and f"\nrepository-code: {repository}\n" not in citation
    ):
        found.append("CITATION.cff: repository-code is not the repository of Cargo.toml")
    if newest is None or newest[1] != version:
        found.append(f"CHANGELOG.md does not begin with {version}")
    if not (root / "docs" / "release-notes.md").read_text("utf-8").count(f"## {version}\n"):
        found.append(f"docs/release-notes.md has no section {version}")
    return found


if __name__ == "__main__":
    print(field(sys.argv[1]))
