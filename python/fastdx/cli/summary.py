"""The closing lines of ``fastdx privatize``: counts, unprotected parts and the guarantee."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator

from fastdx._shared.replace import open_output
from fastdx._types import Unchanged
from fastdx.cli.formats import FORMATS
from fastdx.mechanisms import Mechanism

OOV = {"random": "drawn at random", "error": "refused", "drop": "left out", "mask": "masked",
       "keep": "RELEASED"}  # fmt: skip
"""The treatment of unknown words, as the closing line says it."""
FEW_WORDS = 10
"""With fewer words than this, unknown ones say nothing about the language of the texts."""


class Totals:
    """Totals over all outputs."""

    skipped = 0
    """The number of files that earlier runs finished."""
    no_card: str | None = None
    """The reason why outputs got no channel card, if they should have one."""

    def __init__(self, others: int) -> None:
        """Start with the number of files of other formats in folders."""
        self.others = others
        self.counts: Counter[str] = Counter()
        self.left: dict[str, None] = {}
        """Columns and fields that were released unchanged."""
        self.dropped: dict[str, None] = {}
        """Keys of metadata that were dropped."""
        self.files: list[dict[str, str]] = []
        self.charged: Counter[str] = Counter()


def report(args: argparse.Namespace, policy: str, word: Mechanism, total: Totals) -> None:
    """Print or write counts, warnings about unprotected parts, and the guarantee."""
    warned = list(_warnings(word, total, show_text=args.show_text))
    if args.report_file:
        report = {
            "counts": dict(total.counts),
            "spec": word.spec,
            "policy": policy,
            "guarantee": word.guarantee.with_bits().to_dict(),
            "files": total.files,
            "finished_before": total.skipped,
            "left_out": total.others,
            "charged": math.fsum(total.charged.values()),
            "accounts": len(total.charged),
            "warnings": warned,
            "no_channel_card": total.no_card,
        }
        with open_output(args.report_file) as out:
            out.write(f"{json.dumps(report, ensure_ascii=False)}\n".encode())
    if not args.quiet:
        print(f"fastdx: {_line(word, total)}.", file=sys.stderr)
    for warning in warned:
        print(f"fastdx: warning: {warning}", file=sys.stderr)
    if args.guarantee:
        print(word.guarantee.with_bits(), file=sys.stderr)


def _line(word: Mechanism, total: Totals) -> str:
    counts = total.counts
    common = "" if word._has_history else f"{word.unchanged.mean:.1%}"
    charged = math.fsum(total.charged.values())
    many = len(total.files) > 1 or total.skipped
    parts = {
        f"{counts['words']:,} words": True,
        f"{counts['unchanged']:,} came back unchanged": True,
        f"{counts['unknown']:,} were not in the vocabulary ({OOV[word.oov]})": True,
        f"{counts['skipped']:,} were skipped": counts["skipped"],
        f"{counts['numbers']:,} were numbers, drawn by their own law": counts["numbers"],
        f"{counts['dates']:,} were dates, drawn by their own law": counts["dates"],
        f"under this policy {common} of common words come back": common,
        f"{charged:g} charged to {len(total.charged):,} accounts": total.charged,
        f"{len(total.files):,} files written": many,
        f"{total.skipped:,} finished before": total.skipped,
        f"{total.others:,} files of other formats left out": total.others,
        f"no channel card: {total.no_card}": total.no_card,
    }
    return "; ".join(part for part, said in parts.items() if said)


def _warnings(word: Mechanism, total: Totals, *, show_text: bool) -> Iterator[str]:
    """Yield warnings about unprotected parts; ``-q`` does not hide them."""
    counts = total.counts
    unchanged = Unchanged(*word._unchanged())
    if (warning := unchanged.warning) is not None:
        yield f"without a history, {warning}" if word._has_history else warning
    if not word._has_history and (nearly := word._nearly_always_unchanged()):
        yield (
            f"{nearly:,} different words of these texts come back as they were nearly "
            "always: with a probability above 0.9"
        )
    if counts["words"] >= FEW_WORDS and 2 * counts["unknown"] > counts["words"]:
        yield (
            f"{counts['unknown'] / counts['words']:.0%} of the words are not in the vocabulary: is "
            "it of the language of these texts? (--embedding)"
        )
    if word.seed is not None:
        yield "SEEDED: the output is reproducible, hence NOT protected"
    if word.oov == "keep":
        yield f"{counts['unknown']:,} unknown words RELEASED AS THEY ARE (--oov keep)"
    if word.skip:
        yield f"{counts['skipped']:,} skipped words RELEASED AS THEY ARE (--skip)"
    content = any(FORMATS[file["format"]].names_are_content for file in total.files)
    if total.left and content and not show_text:
        yield f"{len(total.left)} other fields released as they were (--show-text names them)"
    elif total.left:
        yield f"released as they were: {', '.join(total.left)}"
    if total.dropped:
        yield f"metadata dropped from the schema: {', '.join(total.dropped)}"
    if counts["misdecoded"]:
        yield (
            f"{counts['misdecoded']:,} texts look like UTF-8 that was read as another encoding "
            "(Latin-1, Windows-1251, …): parts of their words stand as punctuation and were "
            "released as they are"
        )
