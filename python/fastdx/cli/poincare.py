"""``fastdx poincare`` trains Poincaré embeddings of a hierarchy."""

from __future__ import annotations

import argparse
import sys

from fastdx import poincare
from fastdx.cli.messages import step
from fastdx.cli.options import Commands, quiet_option


def add(commands: Commands) -> None:
    """Add the command."""
    hyperbolic = commands.add_parser(
        "poincare",
        help="Poincaré embeddings of a hierarchy",
        examples="  fastdx poincare train hypernyms.tsv --dim 10 -o nouns.fdx",
    )
    kinds = hyperbolic.add_subparsers(dest="poincare", required=True)
    p = kinds.add_parser(
        "train",
        help="train an embedding from word TAB hypernym lines",
        description="Train a Poincaré embedding from word TAB hypernym lines.",
        examples="""
  fastdx poincare train hypernyms.tsv --dim 10 -o nouns.fdx
  fastdx poincare train hypernyms.tsv --epochs 300 --checkpoint nouns.part -o nouns.fdx
""",
    )
    p.add_argument("edges", metavar="EDGES")
    p.add_argument("--min-count", type=int, metavar="N", help="the file has a third column, of "
                   "counts: leave out lines with a smaller one")  # fmt: skip
    p.add_argument("-o", "--output", required=True, metavar="FILE")
    p.add_argument("--dim", type=int, default=10, help="dimensions (default 10)")
    p.add_argument("--epochs", type=int, default=50)
    p.add_argument("--negatives", type=int, default=10)
    p.add_argument("--burn-in", type=int, default=10)
    p.add_argument("--lr", type=float, default=0.3)
    p.add_argument("--threads", type=int, help="default: all")
    p.add_argument("--seed", type=int, help="with --threads 1, one seed gives one embedding")
    p.add_argument("--checkpoint", metavar="FILE",
                   help="write this file after every epoch, and continue from it")  # fmt: skip
    quiet_option(p)
    p.set_defaults(run=_poincare_train)


def _poincare_train(args: argparse.Namespace) -> None:
    def progress(epoch: int, loss: float) -> None:
        if not args.quiet:
            end = "" if sys.stderr.isatty() else "\n"
            start = "\r\x1b[K" if sys.stderr.isatty() else ""
            print(f"{start}epoch {epoch} of {args.epochs}: loss {loss:.4f}", end=end,
                  file=sys.stderr, flush=True)  # fmt: skip

    embedding = poincare.train(
        args.edges, args.dim, epochs=args.epochs, negatives=args.negatives,
        burn_in=args.burn_in, lr=args.lr, seed=args.seed, threads=args.threads,
        callback=progress, checkpoint=args.checkpoint, min_count=args.min_count,
    )  # fmt: skip
    embedding.save(args.output)
    if not args.quiet:
        with step("measuring the reconstruction"):
            found = poincare.reconstruction(embedding, args.edges, min_count=args.min_count)
        print(f"\n{args.output}: {embedding!r}, mean rank {found.mean_rank:.2f}, MAP "
              f"{found.map:.3f}", file=sys.stderr)  # fmt: skip
