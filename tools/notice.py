"""Writes into NOTICE which crates the wheels hold, under which licences, and whose they are.

    python tools/notice.py           rewrites the part of NOTICE behind its mark
    python tools/notice.py --check   fails where that part is not what Cargo.lock gives

Of the licences that a crate offers, the first of CHOSEN holds. LICENSE-MIT and LICENSE-APACHE have
the texts of MIT and Apache-2.0. So copyright lines are enough under MIT, and a NOTICE file, where
there is one, under Apache-2.0. The texts of other licences follow whole.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTICE = ROOT / "NOTICE"
MARK = "Crates: python tools/notice.py writes the rest of this file.\n"
CHOSEN = ("MIT", "Apache-2.0", "Zlib", "BSL-1.0", "ISC", "BSD-2-Clause", "BSD-3-Clause")
# Parts of the project whose programs are published, with the features that they are built with.
PUBLISHED = (("fastdx", "python"), ("fastdx-serve", ""))
LICENCE = re.compile(r"LICEN[CS]E|COPYING|COPYRIGHT|NOTICE|UNLICENSE", re.I)
COPYRIGHT = re.compile(r"^\W*(copyright\s+(?:\(c\)|©|\d|the |by )[^\[{<]*?)\W*$", re.I | re.M)


def cargo(*arguments: str) -> str:
    return subprocess.run(
        ["cargo", *arguments, "--locked"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def compiled_in() -> set[tuple[str, str]]:
    """Name and version of each crate of others that a published program holds, on any platform."""
    found = set()
    for package, features in PUBLISHED:
        tree = cargo(
            "tree", "-p", package, "--features", features, "-e", "normal,no-proc-macro",
            "--target", "all", "--prefix", "none", "--format", "{p}",
        )  # fmt: skip
        for line in tree.splitlines():
            name, version = line.split()[:2]
            if not name.startswith("fastdx"):
                found.add((name, version.removeprefix("v")))
    return found


def licences(expression: str) -> list[str]:
    """The licences that a crate is used under: one of each OR, all of an AND."""
    parts = re.split(r" AND ", expression.replace("/", " OR "))
    found = []
    for part in parts:
        offered = [name.strip(" ()") for name in part.split(" OR ")]
        known = [name for name in CHOSEN if name in offered]
        found.append((known or offered)[0])
    return found


def described(package: dict[str, Any]) -> str:
    """A crate's entry: name, version, licences, and what these want to be said."""
    used = licences(package["license"])
    lines = [f"{package['name']} {package['version']}: {' and '.join(used)}"]
    folder = Path(package["manifest_path"]).parent
    texts = {
        path.name: path.read_text("utf-8", errors="replace").replace("\r\n", "\n")
        for path in sorted(folder.iterdir())
        if path.is_file() and LICENCE.match(path.name)
    }
    if "MIT" in used:
        found = dict.fromkeys(
            " ".join(line.split())
            for name, text in texts.items()
            if "apache" not in name.lower()
            for line in COPYRIGHT.findall(text)
        )
        lines += [f"  {line}" for line in found] or [f"  by {', '.join(package['authors'])}"]
    whole = {"MIT", "Apache-2.0", "Zlib", "BSL-1.0"}
    for name, text in texts.items():
        upper = name.upper()
        notice = "Apache-2.0" in used and upper.startswith("NOTICE")
        other = set(used) - whole and not re.search("MIT|APACHE|ZLIB|BOOST|UNLICENSE", upper)
        if notice or other:
            lines += [f"  {line}".rstrip() for line in text.strip().splitlines()]
    return "\n".join(line for line in lines if line.strip() != "by")


def part() -> str:
    packages = json.loads(cargo("metadata", "--all-features", "--format-version", "1"))["packages"]
    by_name = {(package["name"], package["version"]): package for package in packages}
    return "\n".join(described(by_name[crate]) + "\n" for crate in sorted(compiled_in()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    given = parser.parse_args()
    old = NOTICE.read_text("utf-8")
    new = old.split(MARK)[0] + MARK + "\n" + part()
    if given.check and new != old:
        print("NOTICE is not what Cargo.lock gives: python tools/notice.py", file=sys.stderr)
        return 1
    if new != old:
        NOTICE.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
