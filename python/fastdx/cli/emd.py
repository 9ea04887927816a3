"""``fastdx emd`` computes the Earth Mover's distance of two texts."""

from __future__ import annotations

import argparse
from pathlib import Path

from fastdx import Embedding, earth_movers_distance
from fastdx.bags import STOP_WORDS, bag_words
from fastdx.cli.messages import step
from fastdx.cli.options import Commands, known_words, load, show_text, words_options


def add(commands: Commands) -> None:
    """Add the command."""
    p = commands.add_parser(
        "emd",
        help="compute the exact Earth Mover's distance of two texts",
        description="Print the Earth Mover's distance of the words of two texts.",
        examples="""
  fastdx emd letter.txt other.txt
  fastdx emd --all --embedding glove.fdx letter.txt other.txt
""",
    )
    p.add_argument("a", metavar="A")
    p.add_argument("b", metavar="B")
    p.add_argument("--all", action="store_true", help="include stop words")
    words_options(p, "embedding")
    show_text(p)
    p.set_defaults(run=_emd)


def _emd(args: argparse.Namespace) -> None:
    with step("loading the words"):
        space = load(args, args.embedding) if args.embedding else Embedding.default()
    bags = []
    for name in (args.a, args.b):
        stop_words = () if args.all else STOP_WORDS
        words = bag_words(Path(name).read_text("utf-8"), stop_words=stop_words, space=space)
        bags.append(known_words(name, words, space))
    with step("solving"):
        distance = earth_movers_distance(bags[0], bags[1], space)
    print(distance)
