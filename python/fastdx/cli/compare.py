"""``fastdx compare`` compares mechanisms in numbers and in example sentences."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastdx import Cover, Embedding, MultivariateLaplace, Tem, WordGraph
from fastdx._shared.replace import open_output
from fastdx._shared.rounded import near
from fastdx.channel import Channel, NgramPrior
from fastdx.cli.messages import CommandError, tell
from fastdx.cli.options import (
    Commands,
    add_options,
    attacked_texts,
    lines_of,
    load,
    quiet_option,
    words_options,
)
from fastdx.lab.comparison import compare, families, family_names, frontier, largest_epsilon
from fastdx.lab.comparison.families import FEWER, HEADER, MORE, description
from fastdx.mechanisms import Mechanism
from fastdx.mechanisms.finite_law import drawn

SENTENCES = (
    "cancer treatment in Boston",
    "I would like to book a table for two at the restaurant near the station.",
    "My brother lost his job and cannot pay the rent this month.",
)

EXAMPLES = """
  fastdx compare --words 2000 -o page.md
  fastdx compare --epsilon 3 --cover 20 --sentences samples.txt
  fastdx compare --mechanisms tem,madlib,santext,custext:100,rank-based --named 5%
  fastdx compare --mechanisms tem,tem-balanced --bits 1 --texts public.txt -o page.md
  fastdx compare --mechanisms all --words 500 --embedding glove.txt --judge other.txt -o page.md
"""

STANDARD_WORDS = 5000
"""The default number of words."""
STANDARD_LAWS = 2000
"""The default number of words with ``--mechanisms``: computing the ε of a law takes V³ steps."""
COVERS = (10, 40, 80)
"""The default sizes of covers."""
MEMORY_BYTES = 8 << 30
"""The most bytes of laws of all words."""
COPIES = 4
"""The most copies of the laws of all words in memory at once."""


def add(commands: Commands) -> None:
    """Add the command."""
    p = commands.add_parser(
        "compare",
        help="compare Tem, covers and noise in numbers and in example sentences",
        description="Compare Tem, Tem on covers, Tem on a word graph and multivariate Laplace "
        "noise, at an equal certified ε (on the graph: per step) and at equal bits per word. The "
        "prior is by rank. --mechanisms compares any mechanisms, also those of fastdx.lab.laws: "
        "the proved ε, the ε computed on these words, the success of attacks and the similarity of "
        "replacements. Writes a page of Markdown.",
        examples=EXAMPLES,
    )
    p.add_argument("--mechanisms", type=_names, metavar="NAMES", help="the mechanisms to compare, "
                   "separated by commas: any of fastdx and fastdx.lab.laws; some take a number "
                   "after a colon (custext:100); 'all'; 'list' shows the names")  # fmt: skip
    p.add_argument("--named", type=_share, metavar="SHARE", help="with --mechanisms: choose each ε "
                   "so that the attacker names this share of the words, 5%% or 0.05")  # fmt: skip
    p.add_argument("--bits", type=float, metavar="B", help="with --mechanisms: choose each ε so "
                   "that a release tells B bits about a word")  # fmt: skip
    p.add_argument("--texts", metavar="FILE", help="texts like yours, one per line; the strongest "
                   "attacker learns the language from every second one and attacks the "
                   "others")  # fmt: skip
    p.add_argument("--epsilon", type=float, default=2.5,
                   help="the certified ε per unit of distance; with --mechanisms the ε of each "
                   "mechanism in its own unit (default 2.5)")  # fmt: skip
    p.add_argument("--words", type=int, metavar="N", help="use the first N words, the most "
                   f"frequent ones (default {STANDARD_WORDS}, with --mechanisms {STANDARD_LAWS}; "
                   "0: all words, which takes longer)")  # fmt: skip
    p.add_argument("--cover", type=int, action="append", metavar="K", dest="covers",
                   help="a size of covers to try; repeatable (default 10, 40, 80)")  # fmt: skip
    p.add_argument("--balance", type=float, default=0.1, metavar="A", help="the weight by which "
                   "covers even out frequencies (default 0.1)")  # fmt: skip
    p.add_argument("--graph", metavar="EDGES", default="nouns", help="a word graph, as for "
                   "privatize; 'nouns' is the built-in Poincaré embedding of WordNet's nouns "
                   "(default); 'none'")  # fmt: skip
    add_options(p, "lengths", "min-count")
    p.add_argument("--judge", metavar="PATH", help="another embedding that measures similarity")
    p.add_argument("--sentences", metavar="FILE", help="sample sentences, one per line")
    p.add_argument("--exclude", metavar="FILE", default="offensive",
                   help="words that are never released, as for privatize; with --mechanisms they "
                   "are left out of the vocabulary")  # fmt: skip
    p.add_argument("-o", "--output", metavar="FILE", help="by default standard output")
    quiet_option(p)
    words_options(p, "embedding")
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


def _read(args: argparse.Namespace) -> None:
    """Refuse options that contradict each other, and read the files that they name."""
    if args.words is not None and args.words < 0:
        raise CommandError(f"--words must be at least 0, got {args.words}")
    third = args.lengths or args.min_count is not None
    if third and args.graph in ("nouns", "none"):
        raise CommandError("--lengths and --min-count go with a file as --graph")
    if args.named is not None and args.mechanisms is None:
        raise CommandError("--named goes with --mechanisms")
    if args.bits is not None and (args.mechanisms is None or args.named is not None):
        raise CommandError("--bits goes with --mechanisms, and not with --named")
    args.sentences = lines_of(args.sentences) if args.sentences else SENTENCES
    args.judge = Embedding.load(args.judge) if args.judge else None
    args.texts = attacked_texts(args.texts) if args.texts else None
    if args.exclude not in ("none", "offensive"):
        args.exclude = Path(args.exclude)
    elif args.exclude == "none":
        args.exclude = None
    args.tell = partial(tell, quiet=args.quiet)


def _compare(args: argparse.Namespace) -> None:
    if args.mechanisms == "list":
        for name in family_names():
            print(f"{name:22}{description(name)}")
        return
    _read(args)
    e = load(args, args.embedding) if args.embedding else Embedding.default()
    if args.mechanisms is None:
        if e.metric != "euclidean":
            raise CommandError(
                f"compare needs a euclidean embedding, for the noise, not {e.metric}; with "
                "--mechanisms it takes any metric"
            )
        words = STANDARD_WORDS if args.words is None else args.words
        if 0 < words < len(e):
            e = Embedding(e.words[:words], e.vectors[:words])
        lines = _page(args, e)
    else:
        lines = _named_page(args, args.mechanisms, e)
    page = "\n".join(lines) + "\n"
    with open_output(args.output, []) as out:
        out.write(page.encode())


def _few(options: argparse.Namespace, e: Embedding) -> tuple[Embedding, str]:
    """Return the most frequent words, without excluded ones, and a phrase that describes them."""
    excluded: set[str] = set()
    if options.exclude is not None:
        excluded = set(Tem(e, 1.0, exclude=options.exclude).excluded)
    ids = [i for i, word in enumerate(e.words) if word not in excluded]
    words = STANDARD_LAWS if options.words is None else options.words or len(ids)
    needed = COPIES * 8 * min(words, len(ids)) ** 2
    if needed > MEMORY_BYTES:
        most = int((MEMORY_BYTES / (8 * COPIES)) ** 0.5)
        raise CommandError(
            f"the laws of {min(words, len(ids)):,} words need {needed:,} bytes, the limit is "
            f"{MEMORY_BYTES:,}: give --words {most} or less"
        )
    few = ids[:words]
    which = f"The first {len(few):,} of the embedding's {len(e):,} words"
    if excluded:
        which += f", without the {len(excluded)} that are never released"
    names = e.words
    return Embedding([names[i] for i in few], e.vectors[few], metric=e.metric), which


def _named_page(options: argparse.Namespace, names: list[str] | str, e: Embedding) -> Iterator[str]:
    """Yield the page for mechanisms that were named."""
    judge = options.judge
    few, which = _few(options, e)
    options.tell(which)
    lost: list[tuple[str, str]] = []

    def left_out(name: str, why: str) -> None:
        options.tell(f"left out: {name}: {why}")
        lost.append((name, why))

    made = families(few, names, left_out=left_out)
    yield f"# {len(made)} mechanisms compared on {len(few):,} words\n"
    yield f"{which}; {few.metric} metric, {few.dim} dimensions.\n"
    if options.bits is not None:
        yield (
            "Each mechanism has the largest ε at which a release tells no more than "
            f"{options.bits:g} bits about a word. The row says so if there is no such ε, or if the "
            "law cannot be computed.\n"
        )
    elif options.named is None:
        yield (
            f"Each mechanism has ε = {near(options.epsilon)} in its own unit. Equal numbers in "
            "different units are not equal protection: compare *bits a word*, *named* and the "
            "computed columns.\n"
        )
    else:
        yield (
            "Each mechanism has the largest ε at which the attacker names no more than "
            f"{options.named:.1%} of the words. The row says so if there is no such ε.\n"
        )
    by = "another embedding"
    if judge is None:
        by = "the mechanisms' own embedding, which flatters those that use its distances (--judge)"
    yield (
        "- *bits a word*: the mutual information of a word and its replacement, if words are "
        "written with probability ∝ 1/(rank + 2.7). A release of n words tells any reader at most "
        "n times this about its text.\n"
        "- *named*: how often the best attacker names the written word from one output by itself. "
        "He knows the mechanism and these probabilities of words. *(draws)*: he learned the "
        "mechanism from draws, and names fewer words than possible. At equal success of this one "
        "guess, mechanisms may tell very different numbers of bits.\n"
        "- *named in sentences*: the share of content words that the strongest attacker names, "
        "with an interval over texts. He knows the mechanism and which words follow each other "
        "(--texts).\n"
        "- *ε proved*: the ε of the mechanism's proof, for any vocabulary. *ε computed*: the "
        "largest log-ratio over all pairs of these words and all outputs, per unit of the "
        "embedding's distance, and for any two words (the ε of local differential privacy). ∞: an "
        "output of one word is impossible for another. –: the law cannot be computed. A law is "
        "drawn from integers, none below 2⁻¹⁰⁰ of the largest of its row, so at a large ε the "
        "computed ε may be below the proved one.\n"
        f"- *similarity*: the mean cosine of word and replacement in {by}. *chance*: the mean "
        "cosine of words and replacements paired at random.\n"
    )
    yield from _head(HEADER)
    drawing: dict[str, Mechanism] = {}
    at: dict[str, Any] = {"epsilon": options.epsilon}
    if options.named is not None or options.bits is not None:
        at = {"named": options.named, "bits": options.bits}
    if options.texts is not None:
        known, attacked = options.texts
        at |= {"texts": attacked, "model": NgramPrior.train(few, known)}
    for line in compare(made, judge=judge or few, progress=options.tell, **at):
        yield "| " + " | ".join(line.cells()) + " |"
        if line.made is not None:
            drawing[line.name] = drawn(line.made)
        elif options.named is None and line.why not in (MORE, FEWER):
            left_out(line.name, line.why)
    yield ""
    for name, why in lost:
        yield f"Left out: {name}, {why}.\n"
    yield from _sentences(drawing, options.sentences)


def _page(options: argparse.Namespace, e: Embedding) -> Iterator[str]:
    tell, exclude, judge = options.tell, options.exclude, options.judge
    mechanisms: dict[str, Mechanism] = {}
    graph = _graph(options, e)
    tell("certifying Tem")
    mechanisms["Tem"] = Tem.certified(e, options.epsilon, exclude=exclude)
    for k in options.covers or COVERS:
        tell(f"certifying a cover of k = {k}")
        cover = (Cover.balanced(e, k, weight=options.balance, exclude=exclude) if options.balance
                 else Cover.nearest(e, k, exclude=exclude))  # fmt: skip
        mechanisms[f"Tem, cover k={k}"] = Tem.certified(e, options.epsilon, cover=cover)
    if graph is not None:
        tell("certifying the graph")
        mechanisms["Tem, word graph"] = Tem.certified(graph, options.epsilon, exclude=exclude)
    # Noise has no certificate: its ε is that of the theorem.
    mechanisms["MultivariateLaplace"] = MultivariateLaplace(e, options.epsilon, exclude=exclude)
    tell("attacking")
    yield f"# Mechanisms compared on {len(e):,} words\n"
    at = f"a certified ε of {near(options.epsilon)} per unit of distance (noise: by its theorem)"
    yield f"## At {at}\n"
    if graph is not None:
        yield (
            f"The graph has {len(graph):,} words; other words are replaced at random. Its ε is per "
            "unit of its own distance.\n"
        )
    yield from _table(mechanisms, judge, e, options.texts)
    yield from _sentences(mechanisms, options.sentences)
    covers = [name for name in mechanisms if "cover" in name]
    bits = float(Channel.of(mechanisms[covers[len(covers) // 2]]).bits())
    equal: dict[str, Mechanism] = {}
    for name, mechanism in mechanisms.items():
        tell(f"matching {name}")
        found = _matched(mechanism, bits, e)
        if found is not None:
            equal[name] = found
    yield f"## At equal bits a word, {bits:.2f}\n"
    yield (
        "Here ε is the nominal one, not certified. A mechanism is missing if it tells fewer bits "
        "at every ε, or if it is noise, whose law cannot be computed.\n"
    )
    yield from _table(equal, judge, e, options.texts)
    yield from _sentences(equal, options.sentences)


def _graph(options: argparse.Namespace, e: Embedding) -> Embedding | WordGraph | None:
    """Return the graph; the built-in hierarchy is limited to words of the embedding."""
    if options.graph == "none":
        return None
    if options.graph != "nouns":
        return WordGraph(options.graph, lengths=bool(options.lengths), min_count=options.min_count)
    nouns = Embedding.default("nouns")
    words = [word for word in nouns.words if word in e]
    if len(words) < 2:
        return None
    return Embedding(words, nouns.vectors[nouns.ids(words)], metric="poincare")


def _prior(mechanism: Mechanism, e: Embedding) -> NDArray[np.float64]:
    """Return how often the mechanism's words are written, by their rank in the embedding."""
    ranks = {word: rank for rank, word in enumerate(e.words)}
    # A word that the embedding lacks gets the rank after its last word.
    place = np.array([ranks.get(word, len(e)) for word in mechanism.space.words])
    prior: NDArray[np.float64] = 1 / (place + 3.7)
    return prior


def _matched(mechanism: Mechanism, bits: float, e: Embedding) -> Mechanism | None:
    """Return the mechanism at the largest ε at which it tells at most `bits`, if there is one."""
    if not mechanism.has_law:
        return None
    between = (0.01, 1000.0)
    prior = _prior(mechanism, e)
    epsilon = largest_epsilon(
        mechanism.with_epsilon, lambda m: Channel.of(m).bits(prior), bits, between, 0.03
    )
    if epsilon is None or epsilon == between[1]:
        return None
    return mechanism.with_epsilon(epsilon)


def _table(
    mechanisms: dict[str, Mechanism],
    judge: Embedding | None,
    e: Embedding,
    texts: tuple[list[str], list[str]] | None,
) -> Iterator[str]:
    shown = False
    for name, mechanism in mechanisms.items():
        attacked: dict[str, Any] = {}
        if texts is not None:
            known, unknown = texts
            attacked = {"texts": unknown, "model": NgramPrior.train(mechanism.space, known)}
        table = frontier({name: mechanism}, judge=judge, prior=_prior(mechanism, e), **attacked)
        if not shown:
            yield from _head(table.columns)
            shown = True
        for row in table:
            cells = (f"{x:.3f}" if isinstance(x, float) else str(x) for x in row.values())
            yield "| " + " | ".join(cells) + " |"
    yield ""


def _head(columns: Sequence[str]) -> list[str]:
    return ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]


def _sentences(mechanisms: dict[str, Mechanism], sentences: list[str]) -> Iterator[str]:
    for sentence in sentences:
        yield f"*{sentence}*\n"
        for name, mechanism in mechanisms.items():
            yield f"- {name}: {mechanism.privatize(sentence)}"
        yield ""
