"""``fastdx compare``: mechanisms beside each other, in numbers and in words."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastdx import Cover, Embedding, MultivariateLaplace, Tem, WordGraph
from fastdx._replace import open_output
from fastdx.calibration import frontier, reidentification
from fastdx.calibration.comparison import largest_named
from fastdx.cli.messages import CommandError
from fastdx.cli.options import embedding_options, examples, excluded_words, load
from fastdx.mechanisms import Mechanism

if TYPE_CHECKING:
    from fastdx.cli.options import _Commands

SENTENCES = (
    "cancer treatment in Boston",
    "I would like to book a table for two at the restaurant near the station.",
    "My brother lost his job and cannot pay the rent this month.",
)

EXAMPLES = """
  fastdx compare --words 2000 -o page.md
  fastdx compare --epsilon 3 --cover 20 --sentences samples.txt
"""


def add(commands: _Commands) -> None:
    """Add the command."""
    p = commands.add_parser(
        "compare",
        help="Tem, covers and noise beside each other, in numbers and in words",
        description="Compare Tem, Tem on covers, Tem on a word graph and multivariate Laplace "
        "noise: at an equal certified ε (on the graph: per step), and at an equal success of an "
        "attacker who knows the mechanism and how often words are written (by their rank). Writes "
        "a page of Markdown.",
        **examples(EXAMPLES),
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
    p.add_argument("--graph", metavar="EDGES", default="nouns", help="a word graph, as for "
                   "privatize; 'nouns': WordNet's hierarchy as it is built in, a Poincaré "
                   "embedding (default); 'none'")  # fmt: skip
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
    graph = _graph(args, e)
    tell("certifying Tem")
    mechanisms["Tem"] = Tem.certified(e, args.epsilon, exclude=exclude)
    for k in args.covers or (10, 40, 80):
        tell(f"certifying a cover of k = {k}")
        cover = (Cover.balanced(e, k, weight=args.balance, exclude=exclude) if args.balance
                 else Cover.nearest(e, k, exclude=exclude))  # fmt: skip
        mechanisms[f"Tem, cover k={k}"] = Tem.certified(e, args.epsilon, cover=cover)
    if graph is not None:
        tell("certifying the graph")
        mechanisms["Tem, word graph"] = Tem.certified(graph, args.epsilon, exclude=exclude)
    # Its proof is the theorem's: nothing is certified of noise.
    mechanisms["MultivariateLaplace"] = MultivariateLaplace(e, args.epsilon, exclude=exclude)
    tell("attacking")
    yield f"# Mechanisms compared on {len(e):,} words\n"
    yield f"## At a certified ε of {args.epsilon:g} per unit of distance (noise: by its theorem)\n"
    if graph is not None:
        yield (
            f"The graph has {len(graph):,} words, others are replaced at random; its ε is per unit "
            "of its own distance.\n"
        )
    yield from _table(mechanisms, judge, e)
    yield from _sentences(mechanisms, sentences)
    covers = [name for name in mechanisms if "cover" in name]
    named = reidentification(mechanisms[covers[len(covers) // 2]], "rank").success[1]
    equal: dict[str, Mechanism] = {}
    for name, mechanism in mechanisms.items():
        tell(f"matching {name}")
        found = _matched(mechanism, named, e)
        if found is not None:
            equal[name] = found
    yield f"## At an equal success of the attacker, {named:.3f}\n"
    yield (
        "ε is here what each mechanism was made with, not certified. What is missing stays below "
        "that success at every ε.\n"
    )
    yield from _table(equal, judge, e)
    yield from _sentences(equal, sentences)


def _graph(args: argparse.Namespace, e: Embedding) -> Embedding | WordGraph | None:
    """The graph; of the built-in hierarchy only words that the embedding has."""
    if args.graph == "none":
        return None
    if args.graph != "nouns":
        return WordGraph(args.graph)
    nouns = Embedding.default("nouns")
    kept = [i for i, word in enumerate(nouns.words) if word in e]
    if len(kept) < 2:
        return None
    words = [nouns.words[i] for i in kept]
    return Embedding(words, nouns.vectors[kept], metric="poincare")


def _prior(mechanism: Mechanism, e: Embedding) -> NDArray[np.float64]:
    """How often the mechanism's words are written, by their rank in the embedding."""
    ranks = {word: rank for rank, word in enumerate(e.words)}
    # Words that the embedding does not have are as rare as its last.
    place = np.array([ranks.get(word, len(e)) for word in mechanism.space.words])
    prior: NDArray[np.float64] = 1 / (place + 3.7)
    return prior


def _matched(mechanism: Mechanism, named: float, e: Embedding) -> Mechanism | None:
    """The mechanism at the largest ε at which the attacker names no more, if there is one."""
    between = (0.01, 1000.0)
    prior = _prior(mechanism, e)
    epsilon = largest_named(mechanism, named, prior, between, 0.03, draws=20)
    if epsilon is None or epsilon == between[1]:
        return None
    return mechanism.with_epsilon(epsilon)


def _table(
    mechanisms: dict[str, Mechanism], judge: Embedding | None, e: Embedding
) -> Iterator[str]:
    shown = False
    for name, mechanism in mechanisms.items():
        table = frontier({name: mechanism}, judge=judge, prior=_prior(mechanism, e))
        if not shown:
            yield "| " + " | ".join(table.columns) + " |"
            yield "|" + "---|" * len(table.columns)
            shown = True
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
