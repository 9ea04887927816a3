"""Writes beneath the examples of pages what they print, so that no output is typed by hand.

    python tools/page_outputs.py docs/PAGE.md …

Outputs that hold, also those with "...", stay as they are; random ones are drawn again.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from conftest import examples, outputs  # noqa: E402


def main() -> None:
    for path in map(Path, sys.argv[1:]):
        page = path.read_text("utf-8")
        for block, printed in reversed(list(outputs(examples(page), path))):
            if not block.holds(printed):
                start, end = block.place
                page = f"{page[:start]}{printed}{page[end:]}"
        path.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
