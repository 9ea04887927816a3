"""``fastdx convert`` and ``fastdx info`` convert and describe embedding files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fastdx import Tem
from fastdx.cli.messages import step
from fastdx.cli.options import Commands, load, shown_lists, words_options


def add(commands: Commands) -> None:
    """Add the commands."""
    p = commands.add_parser(
        "convert",
        description="Write an embedding in fastdx's own format, which opens in milliseconds.",
        examples="""
  fastdx convert glove.6B.300d.txt -o glove.fdx
  fastdx convert vectors.bin.gz --limit 100000 --storage int16 -o small.fdx
""",
    )
    p.add_argument("input", metavar="FILE")
    p.add_argument("-o", "--output", required=True, metavar="FILE")
    p.add_argument("--storage", choices=("float32", "int16"), default="float32")
    words_options(p)
    p.set_defaults(run=_convert)

    p = commands.add_parser(
        "info",
        description="Print the words, dimension, metric and lists of an embedding or index file.",
        examples="  fastdx info glove.fdx",
    )
    p.add_argument("input", metavar="FILE")
    words_options(p)
    p.set_defaults(run=_info)


def _convert(args: argparse.Namespace) -> None:
    with step("converting"):
        embedding = load(args, args.input)
        embedding.save(args.output, storage=args.storage)
    size = Path(args.output).stat().st_size
    print(f"{args.output}: {embedding!r}, {size:,} bytes", file=sys.stderr)


def _info(args: argparse.Namespace) -> None:
    with step("reading"):
        embedding = load(args, args.input)
    words = embedding.words
    print(f"words      {len(embedding):,}")
    print(f"dimension  {embedding.dim}")
    print(f"metric     {embedding.metric}")
    print(f"lists      {shown_lists(Tem(embedding, 1.0))}")
    print(f"file       {Path(args.input).stat().st_size:,} bytes")
    print(f"first      {' '.join(words[:10])}")
