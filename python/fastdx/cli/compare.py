"""``fastdx compare`` compares mechanisms in numbers and in example sentences."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastdx import Embedding, Tem
from fastdx._shared.replace import open_output
from fastdx.channel import NgramPrior
from fastdx.cli.messages import CommandError, step, tell
from fastdx.cli.options import (
    Commands,
    add_options,
    attacked_texts,
    lines_of,
    load,
    quiet_option,
)
from fastdx.lab.comparison import (
    FEWER,
    HEADER,
    MORE,
    compare,
    description,
    families,
    family_names,
)
from fastdx.mechanisms import Mechanism
from fastdx.mechanisms.finite_law import drawn

SENTENCES = (
    "cancer treatment in Boston",
    "I would like to book a table for two at the restaurant near the station.",
    "My brother lost his job and cannot pay the rent this month.",
)

EXAMPLES = """
  fastdx compare -o page.md
  fastdx compare --bits 1 --texts public.txt -o page.md
  fastdx compare --mechanisms tem,laplace,santext,custext:100,rank-based --named 5%
  fastdx compare --mechanisms all --words 500 --embedding glove.txt --judge other.txt -o page.md
"""

STANDARD_WORDS = 2000
"""The default number of words: computing the ε of a law takes V³ steps."""
STANDARD_NAMES = ["tem", "tem-cover", "tem-balanced", "laplace", "response"]
"""The mechanisms that are compared by default."""
MEMORY_BYTES = 8 << 30
"""The most bytes of laws of all words."""
COPIES = 4
"""The most copies of the laws of all words in memory at once."""


def add(commands: Commands) -> None:
    """Add the command."""
    p = commands.add_parser(
        "compare",
        description="Compare mechanisms, also those of fastdx.lab.laws, at one ε, at equal bits "
        "per word, or at equal success of an attacker: the proved ε, the ε computed on these "
        "words, the success of attacks and the similarity of replacements. The prior is by rank. "
        "Writes a page of Markdown.",
        examples=EXAMPLES,
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
    quiet_option(p)
    add_options(p, "embedding")
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
    if args.words < 0:
        raise CommandError(f"--words must be at least 0, got {args.words}")
    if args.bits is not None and args.named is not None:
        raise CommandError("--bits does not go with --named")
    args.sentences = lines_of(args.sentences) if args.sentences else SENTENCES
    args.judge = Embedding.load(args.judge) if args.judge else None
    args.texts = attacked_texts(args.texts) if args.texts else None
    words = {"none": None, "offensive": "offensive"}
    args.exclude = words.get(args.exclude, Path(args.exclude))


def _compare(args: argparse.Namespace) -> None:
    if args.mechanisms == "list":
        for name in family_names():
            print(f"{name:22}{description(name)}")
        return
    with step("reading the words", quiet=args.quiet) as args.progress:
        _read(args)
        e = load(args.embedding) if args.embedding else Embedding.default()
        page = "\n".join(_page(args, args.mechanisms, e)) + "\n"
    with open_output(args.output, []) as out:
        out.write(page.encode())


def _few(options: argparse.Namespace, e: Embedding) -> tuple[Embedding, str]:
    """Return the most frequent words, without excluded ones, and a phrase that describes them."""
    excluded: set[str] = set()
    if options.exclude is not None:
        excluded = set(Tem(e, 1.0, exclude=options.exclude).excluded)
    ids = [i for i, word in enumerate(e.words) if word not in excluded]
    words = options.words or len(ids)
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


def _page(options: argparse.Namespace, names: list[str] | str, e: Embedding) -> Iterator[str]:
    """Yield the lines of the page."""
    judge = options.judge
    few, which = _few(options, e)
    lost: list[tuple[str, str]] = []

    def left_out(name: str, why: str) -> None:
        tell(f"left out: {name}: {why}", quiet=options.quiet)
        lost.append((name, why))

    made = families(few, names, left_out=left_out)
    yield f"# {len(made)} mechanisms compared on {len(few):,} words\n"
    yield f"{which}; {few.metric} metric, {few.dim} dimensions.\n"
    if options.bits is None and options.named is None:
        yield (
            f"Each mechanism has ε = {options.epsilon:.4g} in its own unit. Equal numbers in "
            "different units are not equal protection: compare *bits a word*, *named* and the "
            "computed columns.\n"
        )
    else:
        bound = (
            f"a release tells no more than {options.bits:g} bits about a word"
            if options.named is None
            else f"the attacker names no more than {options.named:.1%} of the words"
        )
        yield f"Each mechanism has the largest ε at which {bound}. The row says if it has none.\n"
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
    yield "| " + " | ".join(HEADER) + " |"
    yield "|" + "---|" * len(HEADER)
    drawing: dict[str, Mechanism] = {}
    at: dict[str, Any] = {"epsilon": options.epsilon}
    if options.named is not None or options.bits is not None:
        at = {"named": options.named, "bits": options.bits}
    if options.texts is not None:
        known, attacked = options.texts
        at |= {"texts": attacked, "model": NgramPrior.train(few, known)}
    for line in compare(made, judge=judge or few, progress=options.progress, **at):
        yield "| " + " | ".join(line.cells()) + " |"
        if line.made is not None:
            drawing[line.name] = drawn(line.made)
        elif options.named is None and line.why not in (MORE, FEWER):
            left_out(line.name, line.why)
    yield ""
    for name, why in lost:
        yield f"Left out: {name}, {why}.\n"
    yield from _sentences(drawing, options.sentences)


def _sentences(mechanisms: dict[str, Mechanism], sentences: list[str]) -> Iterator[str]:
    for sentence in sentences:
        yield f"*{sentence}*\n"
        for name, mechanism in mechanisms.items():
            yield f"- {name}: {mechanism.privatize(sentence)}"
        yield ""
