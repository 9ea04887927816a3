"""``fastdx compare`` compares mechanisms in numbers and in example sentences."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from fastdx import Embedding
from fastdx._shared.replace import open_output
from fastdx.cli import options
from fastdx.cli.messages import CommandError, step, tell
from fastdx.lab.compared import page
from fastdx.lab.comparison import description, family_names

SENTENCES = (
    "cancer treatment in Boston",
    "I would like to book a table for two at the restaurant near the station.",
    "My brother lost his job and cannot pay the rent this month.",
)

STANDARD_WORDS = 2000
"""The default number of words: computing the ε of a law takes V³ steps."""
STANDARD_NAMES = ["tem", "tem-cover", "tem-balanced", "laplace", "response"]
"""The mechanisms that are compared by default."""


def add(commands: options.Commands) -> None:
    """Add the command."""
    p = commands.add_parser(
        "compare",
        description="Compare mechanisms, also those of fastdx.lab.laws, at one ε, at equal bits "
        "per word, or at equal success of an attacker: the proved ε, the ε computed on these "
        "words, the success of attacks and the similarity of replacements. The prior is by rank. "
        "Writes a page of Markdown.",
        examples="""
  fastdx compare -o page.md
  fastdx compare --bits 1 --texts public.txt -o page.md
  fastdx compare --mechanisms tem,laplace,santext,custext:100,rank-based --named 5%
  fastdx compare --mechanisms all --words 500 --embedding glove.txt --judge other.txt -o page.md
""",
        short="mechanisms named bits texts epsilon words judge sentences embedding output quiet",
    )
    p.add_argument("--mechanisms", type=_names, metavar="NAMES", default=STANDARD_NAMES,
                   help="the mechanisms to compare, separated by commas: any of fastdx and "
                   "fastdx.lab.laws; some take a number after a colon (custext:100); 'all'; 'list' "
                   f"shows the names (default {','.join(STANDARD_NAMES)})")  # fmt: skip
    p.add_argument("--named", type=_share, metavar="SHARE", help="choose each ε so that the "
                   "attacker names this share of the words, 5%% or 0.05")  # fmt: skip
    p.add_argument("--bits", type=float, metavar="B", help="choose each ε so that a release tells "
                   "B bits about a word")  # fmt: skip
    p.add_argument("--texts", metavar="FILE", help="texts like yours, one per line; the strongest "
                   "attacker learns the language from every second one and attacks the "
                   "others")  # fmt: skip
    p.add_argument("--epsilon", type=float, default=2.5,
                   help="the ε of each mechanism in its own unit (default 2.5)")  # fmt: skip
    p.add_argument("--words", type=int, metavar="N", default=STANDARD_WORDS,
                   help="use the first N words, the most frequent ones (default %(default)s; 0: "
                   "all words, which takes longer)")  # fmt: skip
    p.add_argument("--judge", metavar="PATH", help="another embedding that measures similarity")
    p.add_argument("--sentences", metavar="FILE", help="sample sentences, one per line")
    p.add_argument("--exclude", metavar="FILE", default="offensive",
                   help="words that are left out of the vocabulary, as for privatize")  # fmt: skip
    p.add_argument("-o", "--output", metavar="FILE", help="by default standard output")
    options.add(p, "quiet", "embedding")
    p.set_defaults(run=_compare)


def _names(text: str) -> list[str] | str:
    """Return the names of a list separated by commas, or 'all' or 'list'."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    return names[0] if names in (["all"], ["list"]) else names


def _share(text: str) -> float:
    """Return a share given in percent or as a number."""
    share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    if not 0 < share < 1:
        raise ValueError(text)
    return share


def _compare(args: argparse.Namespace) -> None:
    if args.mechanisms == "list":
        for name in family_names():
            print(f"{name:22}{description(name)}")
        return
    if args.words < 0:
        raise CommandError(f"--words must be at least 0, got {args.words}")
    if args.bits is not None and args.named is not None:
        raise CommandError("--bits does not go with --named")
    with step("reading the words", quiet=args.quiet) as progress:
        e = Embedding.load(args.embedding) if args.embedding else Embedding.default()
        lines = page(
            e, args.mechanisms,
            epsilon=args.epsilon, named=args.named, bits=args.bits, words=args.words,
            exclude={"none": None, "offensive": "offensive"}.get(args.exclude, Path(args.exclude)),
            judge=Embedding.load(args.judge) if args.judge else None,
            texts=options.attacked_texts(args.texts) if args.texts else None,
            sentences=options.lines_of(args.sentences) if args.sentences else SENTENCES,
            progress=progress, tell=partial(tell, quiet=args.quiet),
        )  # fmt: skip
        text = "".join(f"{line}\n" for line in lines)
    with open_output(args.output, []) as out:
        out.write(text.encode())
