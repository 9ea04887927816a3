"""The page of ``fastdx compare``: mechanisms beside each other, in numbers and in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from typing import Any

from fastdx import Embedding, Tem
from fastdx.channel import NgramPrior
from fastdx.exceptions import ParameterError
from fastdx.lab.comparison import FEWER, HEADER, MORE, compare, drawn, families
from fastdx.mechanisms import Mechanism

MEMORY_BYTES = 8 << 30
"""The most bytes of laws of all words."""
COPIES = 4
"""The most copies of the laws of all words in memory at once."""


def page(
    embedding: Embedding,
    names: list[str] | str,
    *,
    epsilon: float,
    named: float | None,
    bits: float | None,
    words: int,
    exclude: PathLike[str] | str | None,
    judge: Embedding | None,
    texts: tuple[list[str], list[str]] | None,
    sentences: Iterable[str],
    progress: Callable[..., object],
    tell: Callable[[str], object],
) -> Iterator[str]:
    """Yield the lines of the page, in Markdown.

    The mechanisms called `names` are compared on the first `words` of the embedding, all if 0,
    without those of `exclude`: at one ε, or else at `named` or `bits`. An attacker learns the
    language from the first of `texts`, and attacks the second.
    """
    few, which = _few(embedding, words, exclude)
    lost: list[tuple[str, str]] = []

    def left_out(name: str, why: str) -> None:
        tell(f"left out: {name}: {why}")
        lost.append((name, why))

    made = families(few, names, left_out=left_out)
    yield f"# {len(made)} mechanisms compared on {len(few):,} words\n"
    yield f"{which}; {few.metric} metric, {few.dim} dimensions.\n"
    if bits is None and named is None:
        yield (
            f"Each mechanism has ε = {epsilon:.4g} in its own unit. Equal numbers in "
            "different units are not equal protection: compare *bits a word*, *named* and the "
            "computed columns.\n"
        )
    else:
        bound = (
            f"a release tells no more than {bits:g} bits about a word"
            if named is None
            else f"the attacker names no more than {named:.1%} of the words"
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
    at: dict[str, Any] = {"epsilon": epsilon}
    if named is not None or bits is not None:
        at = {"named": named, "bits": bits}
    if texts is not None:
        known, attacked = texts
        at |= {"texts": attacked, "model": NgramPrior.train(few, known)}
    for line in compare(made, judge=judge or few, progress=progress, **at):
        yield "| " + " | ".join(line.cells()) + " |"
        if line.made is not None:
            drawing[line.name] = drawn(line.made)
        elif named is None and line.why not in (MORE, FEWER):
            left_out(line.name, line.why)
    yield ""
    for name, why in lost:
        yield f"Left out: {name}, {why}.\n"
    yield from _sentences(drawing, sentences)


def _few(e: Embedding, words: int, exclude: PathLike[str] | str | None) -> tuple[Embedding, str]:
    """Return the most frequent words, without excluded ones, and a phrase that describes them."""
    excluded: set[str] = set()
    if exclude is not None:
        excluded = set(Tem(e, 1.0, exclude=exclude).excluded)
    ids = [i for i, word in enumerate(e.words) if word not in excluded]
    words = words or len(ids)
    needed = COPIES * 8 * min(words, len(ids)) ** 2
    if needed > MEMORY_BYTES:
        most = int((MEMORY_BYTES / (8 * COPIES)) ** 0.5)
        raise ParameterError(
            f"the laws of {min(words, len(ids)):,} words need {needed:,} bytes, the limit is "
            f"{MEMORY_BYTES:,}: give --words {most} or less"
        )
    few = ids[:words]
    which = f"The first {len(few):,} of the embedding's {len(e):,} words"
    if excluded:
        which += f", without the {len(excluded)} that are never released"
    names = e.words
    return Embedding([names[i] for i in few], e.vectors[few], metric=e.metric), which


def _sentences(mechanisms: dict[str, Mechanism], sentences: Iterable[str]) -> Iterator[str]:
    for sentence in sentences:
        yield f"*{sentence}*\n"
        for name, mechanism in mechanisms.items():
            yield f"- {name}: {mechanism.privatize(sentence)}"
        yield ""
