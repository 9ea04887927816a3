"""``fastdx emd`` computes the Earth Mover's distance of two texts."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fastdx import Embedding, earth_movers_distance
from fastdx.bags import STOP_WORDS, bag_words
from fastdx.cli.messages import CommandError, step
from fastdx.cli.options import embedding_options, examples, load, show_text

if TYPE_CHECKING:
    from fastdx.cli.options import _Commands


def add(commands: _Commands) -> None:
    """Add the command."""
    p = commands.add_parser(
        "emd",
        help="compute the exact Earth Mover's distance of two texts",
        description="Print the Earth Mover's distance of the words of two texts.",
        **examples(
            """
  fastdx emd letter.txt other.txt
  fastdx emd --all --embedding glove.fdx letter.txt other.txt
"""
        ),
    )
    p.add_argument("a", metavar="A")
    p.add_argument("b", metavar="B")
    p.add_argument("--embedding", metavar="PATH", help="default: 20,000 English words × 50")
    p.add_argument("--all", action="store_true", help="include stop words")
    embedding_options(p)
    show_text(p)
    p.set_defaults(run=_emd)


def _emd(args: argparse.Namespace) -> None:
    with step("loading the words"):
        space = load(args, args.embedding) if args.embedding else Embedding.default()
    bags = []
    for name in (args.a, args.b):
        stop_words = () if args.all else STOP_WORDS
        words = bag_words(Path(name).read_text("utf-8"), stop_words=stop_words, space=space)
        known = [word for word in words if word in space]
        if not known:
            raise CommandError(f"{name}: no word of it is in the vocabulary")
        if len(known) < len(words):
            print(f"{name}: {len(words) - len(known):,} of {len(words):,} words are not in the "
                  "vocabulary and left out", file=sys.stderr)  # fmt: skip
        bags.append(known)
    with step("solving"):
        distance = earth_movers_distance(bags[0], bags[1], space)
    print(distance)
