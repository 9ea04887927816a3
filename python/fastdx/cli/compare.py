"""``fastdx compare``: mechanisms beside each other, in numbers and in words."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fastdx import Cover, Embedding, MultivariateLaplace, Tem
from fastdx._replace import open_output
from fastdx.calibration import Table, frontier, reidentification
from fastdx.calibration.comparison import largest_named
from fastdx.cli.messages import CommandError
from fastdx.cli.options import embedding_options, excluded_words, load
from fastdx.mechanisms import Mechanism

if TYPE_CHECKING:
    from fastdx.cli.options import _Commands

SENTENCES = (
    "cancer treatment in Boston",
    "I would like to book a table for two at the restaurant near the station.",
    "My brother lost his job and cannot pay the rent this month.",
)


def add(commands: _Commands) -> None:
    """Add the command."""
    p = commands.add_parser(
        "compare",
        help="Tem, covers and noise beside each other, in numbers and in words",
        description="Compare Tem, Tem on covers and multivariate Laplace noise: at an equal "
        "certified ε, and at an equal success of an attacker who knows the mechanism and how often "
        "words are written (by their rank). Writes a page of Markdown.",
    )
    p.add_argument("--epsilon", type=float, default=2.5,
                   help="the certified ε per unit of distance (default 2.5)")  # fmt: skip
    p.add_argument("--embedding", metavar="PATH", help="default: 20,000 English words × 50")
    p.add_argument("--words", type=int, default=5000, metavar="N",
                   help="only the first N words (default 5000; 0: all, minutes)")  # fmt: skip
    p.add_argument("--cover", type=int, action="append", metavar="K", dest="covers",
                   help="sizes of covers to try (default 10, 40, 80); repeatable")  # fmt: skip
    p.add_argument("--balance", type=float, default=0.1, metavar="A",
                   help="how much covers even out frequencies (default 0.1)")  # fmt: skip
    p.add_argument("--judge", metavar="PATH", help="another embedding, which measures similarity")
    p.add_argument("--sentences", metavar="FILE", help="sample sentences, one a line")
    p.add_argument("--exclude", metavar="FILE", default="offensive",
                   help="words that are never released, as for privatize")  # fmt: skip
    p.add_argument("-o", "--output", metavar="FILE", help="by default standard output")
    p.add_argument("-q", "--quiet", action="store_true", help="no progress")
    embedding_options(p)
    p.set_defaults(run=_compare)


def _compare(args: argparse.Namespace) -> None:
    if args.words < 0:
        raise CommandError(f"--words must be at least 0, got {args.words}")
    e = load(args, args.embedding) if args.embedding else Embedding.default()
    if e.metric != "euclidean":
        raise CommandError(f"compare wants a euclidean embedding, for the noise, not {e.metric}")
    if 0 < args.words < len(e):
        e = Embedding(e.words[: args.words], e.vectors[: args.words])
    judge = Embedding.load(args.judge) if args.judge else None
    sentences = list(SENTENCES)
    if args.sentences:
        lines = Path(args.sentences).read_text("utf-8").split("\n")
        sentences = [line for line in lines if line.strip()]
    page = "\n".join(_page(args, e, judge, sentences)) + "\n"
    with open_output(args.output, []) as out:
        out.write(page.encode())


def _page(
    args: argparse.Namespace, e: Embedding, judge: Embedding | None, sentences: list[str]
) -> Iterator[str]:
    def tell(line: str) -> None:
        if not args.quiet:
            print(f"fastdx: {line}", file=sys.stderr)

    exclude = excluded_words(args)
    mechanisms: dict[str, Mechanism] = {}
    tell("certifying Tem")
    mechanisms["Tem"] = Tem.certified(e, args.epsilon, exclude=exclude)
    for k in args.covers or (10, 40, 80):
        tell(f"certifying a cover of k = {k}")
        cover = (Cover.balanced(e, k, weight=args.balance, exclude=exclude) if args.balance
                 else Cover.nearest(e, k, exclude=exclude))  # fmt: skip
        mechanisms[f"Tem, cover k={k}"] = Tem.certified(e, args.epsilon, cover=cover)
    # Its proof is the theorem's: nothing is certified of noise.
    mechanisms["MultivariateLaplace"] = MultivariateLaplace(e, args.epsilon, exclude=exclude)
    tell("attacking")
    yield f"# Mechanisms compared on {len(e):,} words\n"
    yield f"## At a certified ε of {args.epsilon:g} per unit of distance (noise: by its theorem)\n"
    yield from _table(frontier(mechanisms, judge=judge, prior="rank"))
    yield from _sentences(mechanisms, sentences)
    covers = [name for name in mechanisms if "cover" in name]
    named = reidentification(mechanisms[covers[len(covers) // 2]], "rank").success[1]
    equal: dict[str, Mechanism] = {}
    for name, mechanism in mechanisms.items():
        tell(f"matching {name}")
        found = _matched(mechanism, named)
        if found is not None:
            equal[name] = found
    yield f"## At an equal success of the attacker, {named:.3f}\n"
    yield (
        "ε is here what each mechanism was made with, not certified. What is missing stays below "
        "that success at every ε.\n"
    )
    yield from _table(frontier(equal, judge=judge, prior="rank"))
    yield from _sentences(equal, sentences)


def _matched(mechanism: Mechanism, named: float) -> Mechanism | None:
    """The mechanism at the largest ε at which the attacker names no more, if there is one."""
    between = (0.01, 1000.0)
    epsilon = largest_named(mechanism, named, "rank", between, 0.03, draws=20)
    if epsilon is None or epsilon == between[1]:
        return None
    return mechanism.with_epsilon(epsilon)


def _table(table: Table) -> Iterator[str]:
    yield "| " + " | ".join(table.columns) + " |"
    yield "|" + "---|" * len(table.columns)
    for row in table:
        cells = (f"{x:.3f}" if isinstance(x, float) else str(x) for x in row.values())
        yield "| " + " | ".join(cells) + " |"
    yield ""


def _sentences(mechanisms: dict[str, Mechanism], sentences: list[str]) -> Iterator[str]:
    for sentence in sentences:
        yield f"*{sentence}*\n"
        for name, mechanism in mechanisms.items():
            yield f"- {name}: {mechanism.privatize(sentence)}"
        yield ""
