"""``fastdx calibrate`` chooses ε from its consequences and writes a page."""

from __future__ import annotations

import argparse
from typing import Any

from fastdx import from_spec
from fastdx.calibration.choice import MOST_UNCHANGED
from fastdx.calibration.measures import SAMPLE
from fastdx.channel import NgramPrior
from fastdx.cli import options
from fastdx.cli.messages import CommandError, step
from fastdx.lab import report
from fastdx.mechanisms import MECHANISMS

ANY = 1e6
"""An ε that every noise mechanism accepts."""


def add(commands: options.Commands) -> None:
    """Add the command."""
    p = commands.add_parser(
        "calibrate",
        description="Measure what each ε does to words, choose the largest ε within the bounds "
        "that you give, and write a page with a slider.",
        examples="""
  fastdx calibrate -o report.html
  fastdx calibrate --max-bits 0.2 -o report.html
  fastdx calibrate --max-named 0.1 --texts public.txt -o report.html
  fastdx calibrate --mechanism laplace --max-unchanged 0.5 --min-outputs 300 -o report.html
""",
        short="mechanism max_unchanged max_bits max_named texts sentence embedding output quiet",
    )
    p.add_argument("--mechanism", choices=tuple(MECHANISMS),
                   help="by default the law of the recommended policy, or tem on other "
                   "words")  # fmt: skip
    p.add_argument("--max-unchanged", type=float, metavar="P",
                   help="a word comes back unchanged with probability at most P (default "
                   f"{MOST_UNCHANGED:g}, if there is no other promise)")  # fmt: skip
    p.add_argument("--min-outputs", type=int, metavar="N",
                   help="every measured word has at least N distinct outputs in the draws of "
                   "--draws, counted or (with a law) expected")  # fmt: skip
    p.add_argument("--max-reidentified", type=float, metavar="P", help="an attacker who knows the "
                   "mechanism names a word with probability at most P")  # fmt: skip
    p.add_argument("--max-posterior", type=float, metavar="P", help="no output makes that attacker "
                   "more certain of a word than P")  # fmt: skip
    p.add_argument("--max-bits", type=float, metavar="B", help="a release tells at most B bits per "
                   "word, under the prior by rank")  # fmt: skip
    p.add_argument("--max-named", type=float, metavar="P", help="the strongest attacker names at "
                   "most the share P of the content words of --texts in their sentences; the "
                   "upper end of the interval counts")  # fmt: skip
    p.add_argument("--min-deniable", type=int, metavar="K", help="every output is within a factor "
                   "2 of its largest probability for at least K words")  # fmt: skip
    p.add_argument("--texts", metavar="FILE", help="for --max-named: texts like yours, one per "
                   "line; the attacker learns the language from every second one and attacks the "
                   "others")  # fmt: skip
    p.add_argument("--by-rank", action="store_true", help="the attacker knows how often words are "
                   "written, by the order of the vocabulary; without it all words are equally "
                   "likely")  # fmt: skip
    p.add_argument("--sample", type=int, metavar="N", help="the number of words measured, spread "
                   f"over the vocabulary (default 1000, or {SAMPLE} for mechanisms measured by "
                   "draws; 0: all)")  # fmt: skip
    p.add_argument("--draws", type=int, default=1000, help="draws per word (default 1000)")
    p.add_argument("--example", action="append", metavar="WORD",
                   help="show replacements of this word; repeatable")  # fmt: skip
    p.add_argument("--sentence", metavar="TEXT", help="show releases of this sentence at every ε; "
                   "it must be public, because the page shows it (default: an English "
                   "one)")  # fmt: skip
    options.add(p, *options.LAW, *options.COVER, "embedding", "graph")
    p.add_argument("-o", "--output", required=True, metavar="FILE", help="the HTML page")
    options.add(p, "quiet")
    p.set_defaults(run=_calibrate)


def _calibrate(args: argparse.Namespace) -> None:
    if (args.max_named is None) != (args.texts is None):
        raise CommandError("--max-named and --texts go together")
    # The search replaces this ε, but some noise mechanisms need one above a bound.
    spec = {"mechanism": args.mechanism or "tem", **options.spec_of(args), "epsilon": ANY}
    if args.mechanism is None and "index" not in spec:
        spec = options.RECOMMENDED | spec
    with step("making the mechanism", quiet=args.quiet) as progress:
        mechanism = from_spec(spec)
        words = list(mechanism.space.words)
        usual = 1000 if mechanism.has_law else SAMPLE
        sample = usual if args.sample is None else args.sample
        if 0 < sample < len(words):
            words = [words[i * len(words) // sample] for i in range(sample)]
        attacked: dict[str, Any] = {}
        if args.texts is not None:
            known, texts = options.attacked_texts(args.texts)
            attacked = {"texts": texts, "model": NgramPrior.train(mechanism.space, known)}
        choice = report.write(
            args.output, mechanism, max_unchanged=args.max_unchanged, min_outputs=args.min_outputs,
            words=words, examples=args.example, sentence=args.sentence, draws=args.draws,
            max_reidentified=args.max_reidentified, max_posterior=args.max_posterior,
            prior="rank" if args.by_rank else None, max_bits=args.max_bits, progress=progress,
            max_named=args.max_named, min_deniable=args.min_deniable, **attacked,
        )  # fmt: skip
    print(choice)
