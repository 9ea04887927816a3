"""``fastdx convert``, ``info`` and ``index``: files of embeddings and of neighbour lists."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fastdx import Embedding, Tem, from_spec
from fastdx._core import check_index
from fastdx.cli import options
from fastdx.cli.messages import CommandError, step


def add(commands: options.Commands) -> None:
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
    p.add_argument("--format", help="by default recognised by the content",
                   choices=("fastdx", "glove", "word2vec-text", "fasttext", "word2vec-binary",
                            "npy"))  # fmt: skip
    p.add_argument("--metric", help="by default the file's own, or euclidean",
                   choices=("euclidean", "manhattan", "chebyshev", "angular",
                            "poincare"))  # fmt: skip
    p.add_argument("--limit", type=int, metavar="N", help="read only the first N words")
    p.add_argument("--vocabulary", metavar="FILE", help="for .npy: the words, one per line")
    p.set_defaults(run=_convert)

    p = commands.add_parser(
        "info",
        description="Print the words, dimension, metric and lists of an embedding or index file.",
        examples="  fastdx info glove.fdx",
    )
    p.add_argument("input", metavar="FILE")
    p.set_defaults(run=_info)

    index = commands.add_parser(
        "index",
        description="Build and check index files. An index file stores neighbour lists "
        "for Tem with the embedding; all workers share its memory.",
        examples="""
  fastdx index build --embedding glove.fdx -o glove.index
  fastdx index check glove.index
""",
    )
    kinds = index.add_subparsers(dest="index", required=True)
    p = kinds.add_parser(
        "build",
        help="build the exact lists of every word's nearest neighbours",
        description="Build the exact lists of every word's nearest neighbours.",
        examples="""
  fastdx index build -o english.index
  fastdx index build --embedding glove.fdx --k 512 --cover 40 -o glove.index
""",
    )
    p.add_argument("--k", type=int, help="neighbours per word (default √V, between 256 and 1024)")
    p.add_argument("--memory", type=int, help="the most bytes for the lists (default 8 GiB)")
    p.add_argument("-o", "--output", required=True, metavar="FILE")
    options.add(p, "quiet", *options.COVER, "embedding")
    p.set_defaults(run=_index_build, exclude="none")
    p = kinds.add_parser(
        "check",
        help="compute the lists and certificates of an index file again",
        description="Compute the lists of some random words (or of all) and every certificate of a "
        "file again. Use this for files from others: checksums find damage, not forgery.",
        examples="""
  fastdx index check glove.index
  fastdx index check --words 400000 glove.index
""",
    )
    p.add_argument("input", metavar="FILE")
    p.add_argument("--words", type=int, default=1000, metavar="N",
                   help="the most lists to compute again (default 1000)")  # fmt: skip
    p.set_defaults(run=_index_check)


def _convert(args: argparse.Namespace) -> None:
    with step("converting"):
        embedding = Embedding.load(args.input, format=args.format, metric=args.metric,
                                   limit=args.limit, vocabulary=args.vocabulary)  # fmt: skip
        embedding.save(args.output, storage=args.storage)
    size = Path(args.output).stat().st_size
    print(f"{args.output}: {embedding!r}, {size:,} bytes", file=sys.stderr)


def _info(args: argparse.Namespace) -> None:
    with step("reading"):
        embedding = Embedding.load(args.input)
    words = embedding.words
    print(f"words      {len(embedding):,}")
    print(f"dimension  {embedding.dim}")
    print(f"metric     {embedding.metric}")
    print(f"lists      {_lists(Tem(embedding, 1.0))}")
    print(f"file       {Path(args.input).stat().st_size:,} bytes")
    print(f"first      {' '.join(words[:10])}")


def _lists(tem: Tem) -> str:
    return "none" if tem.lists_k is None else f"{tem.lists_k} neighbours a word"


def _index_build(args: argparse.Namespace) -> None:
    # Lists and cover are the same at every ε.
    with step("making the cover", quiet=args.quiet):
        tem = from_spec({"epsilon": 1.0, **options.spec_of(args)})
    assert isinstance(tem, Tem)
    words = len(tem.space)
    with step(f"building the lists of {words:,} words", words, quiet=args.quiet) as progress:
        tem = tem.build_lists(args.k, memory=args.memory, progress=progress)
    tem.save(args.output)
    if not args.quiet:
        size = Path(args.output).stat().st_size
        print(f"{args.output}: {tem.space!r}, {_lists(tem)}, {size:,} bytes",
              file=sys.stderr)  # fmt: skip


def _index_check(args: argparse.Namespace) -> None:
    if args.words < 1:
        raise CommandError(f"--words must be at least 1, got {args.words}")
    with step("computing again") as progress:
        words, lists, certificates = check_index(args.input, args.words, progress)
    print(f"{args.input}: {words:,} words found by the index, {lists:,} lists and {certificates} "
          "certificates computed again: all true")  # fmt: skip
