"""``fastdx calibrate``: ε chosen from its consequences, on a page."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from fastdx import report
from fastdx.calibration.measures import SAMPLE
from fastdx.channel import NgramPrior
from fastdx.cli.messages import CommandError
from fastdx.cli.options import (
    attacked_texts,
    cover_of,
    cover_options,
    embedding_options,
    examples,
    graph_option,
    index_of,
    made,
    number_options,
    numbers_of,
    without_none,
)
from fastdx.mechanisms import MECHANISMS

if TYPE_CHECKING:
    from fastdx.cli.options import _Commands

ANY = 1e6
"""An ε that every noise takes."""
EXAMPLES = """
  fastdx calibrate -o report.html
  fastdx calibrate --max-unchanged 0.2 --cover 40 --balance 0.1 -o report.html
  fastdx calibrate --max-bits 2 --cover 40 --balance 0.1 -o report.html
  fastdx calibrate --max-named 0.1 --texts public.txt --min-outputs 20 --cover 40 -o report.html
"""


def add(commands: _Commands) -> None:
    """Add the command."""
    p = commands.add_parser(
        "calibrate",
        help="choose ε from its consequences, on a page to look at",
        description="Measure what each ε does to words, choose the largest that keeps what you "
        "ask for, and write a page with a slider.",
        **examples(EXAMPLES),
    )
    p.add_argument("--mechanism", choices=tuple(MECHANISMS), default="tem")
    p.add_argument("--embedding", metavar="PATH", help="default: 20,000 English words × 50")
    graph_option(p)
    p.add_argument("--max-unchanged", type=float, default=0.5, metavar="P",
                   help="no word comes back unchanged more often (default 0.5)")  # fmt: skip
    p.add_argument("--min-outputs", type=int, default=300, metavar="N",
                   help="every word has so many distinct outputs (default 300)")  # fmt: skip
    p.add_argument("--max-reidentified", type=float, metavar="P", help="an attacker who knows the "
                   "mechanism names a word with no larger probability")  # fmt: skip
    p.add_argument("--max-posterior", type=float, metavar="P", help="no output makes that attacker "
                   "more certain of a word")  # fmt: skip
    p.add_argument("--max-bits", type=float, metavar="B", help="a release tells no more bits a "
                   "word, words being written by their rank")  # fmt: skip
    p.add_argument("--max-named", type=float, metavar="P", help="the strongest attacker names no "
                   "larger share of the content words of --texts in their sentences; the upper "
                   "end of the interval counts")  # fmt: skip
    p.add_argument("--texts", metavar="FILE", help="for --max-named: texts like yours, one a line; "
                   "every second one is attacked, from the others the attacker has learned the "
                   "language")  # fmt: skip
    p.add_argument("--by-rank", action="store_true", help="the attacker knows how often words are "
                   "written, the vocabulary being in order of it; else all are alike")  # fmt: skip
    p.add_argument("--sample", type=int, metavar="N", help="words measured, spread out (default "
                   f"1000, or {SAMPLE} where draws measure them; 0: all)")  # fmt: skip
    p.add_argument("--draws", type=int, default=1000, help="draws a word (default 1000)")
    p.add_argument("--example", action="append", metavar="WORD", help="show its replacements")
    p.add_argument("--sentence", metavar="TEXT", help="show releases of it at every ε: a public "
                   "one, for it stands on the page (default one in English)")  # fmt: skip
    number_options(p)
    cover_options(p)
    p.add_argument("-o", "--output", required=True, metavar="FILE", help="an HTML page")
    p.add_argument("-q", "--quiet", action="store_true", help="no progress")
    embedding_options(p)
    p.set_defaults(run=_calibrate)


def _calibrate(args: argparse.Namespace) -> None:
    # Its own ε does not matter, but some noises need one above a bound.
    spec = {"mechanism": args.mechanism, "epsilon": ANY, **numbers_of(args),
            "index": index_of(args), **cover_of(args)}  # fmt: skip
    mechanism = made(without_none(spec))
    space = mechanism.space
    sample = args.sample
    if sample is None:
        sample = 1000 if mechanism.has_law else SAMPLE
    if (args.max_named is None) != (args.texts is None):
        raise CommandError("--max-named and --texts go together")
    attacked: dict[str, Any] = {}
    if args.texts is not None:
        known, texts = attacked_texts(args.texts)
        attacked = {"texts": texts, "model": NgramPrior.train(space, known)}
    words = list(space.words)
    if 0 < sample < len(words):
        step = len(words) / sample
        words = [words[int(i * step)] for i in range(sample)]

    def progress(line: str) -> None:
        if not args.quiet:
            print(f"fastdx: {line}", file=sys.stderr)

    choice = report.write(
        args.output, mechanism, max_unchanged=args.max_unchanged, min_outputs=args.min_outputs,
        words=words, examples=args.example, sentence=args.sentence, draws=args.draws,
        progress=progress,
        max_reidentified=args.max_reidentified, max_posterior=args.max_posterior,
        prior="rank" if args.by_rank else None, max_bits=args.max_bits,
        max_named=args.max_named, **attacked,
    )  # fmt: skip
    print(choice)
