"""Text that people can read: a neural base measure beside words' frequencies and bigrams.

Perplexity is that of trigrams of other texts of the same kind, which no base has.
"""

from __future__ import annotations

from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from experiments.data import Labelled, builtin
from experiments.keeps import classifier
from experiments.measures import share
from experiments.releases import EPSILONS, KINDS, Kind, kind_of, released
from experiments.tables import Experiment, Run, Table
from fastdx import Embedding
from fastdx.channel import NgramPrior
from fastdx.lab.evaluation import MeanVectors

BASES = {"frequency": "frequencies", "english": "bigrams of English", "neural": "SmolLM2-135M"}
CHUNKS = 10
"""Steps of so many texts as `releases.CHUNK`: a run that was stopped goes on behind the last."""
EXAMPLES = 10
"""Of each kind: the first ones."""
USE = ("private → plain", "private → private", "perplexity", "similarity less chance")


def similarity(vectors: MeanVectors, texts: list[str], others: list[str]) -> float:
    """The mean cosine of texts' mean vectors, less that of texts and others' releases."""

    one, other = (normalize(vectors(of).astype(np.float64)) for of in (texts, others))
    return float((one * (other - np.roll(other, 1, axis=0))).sum(axis=1).mean())


def kept_use(kind: Kind, texts: list[str], space: Embedding) -> tuple[float, float]:
    """Learned from these texts: accuracy on plain ones, and on these in five parts."""
    labels = np.array(kind.private.labels[: len(texts)])
    tested = kind.public.some(1000)
    part, hits = np.arange(len(texts)) % 5, 0
    for fold in range(5):
        learned, asked = (np.flatnonzero(x).tolist() for x in (part != fold, part == fold))
        judge = classifier(Labelled([texts[i] for i in learned], labels[learned].tolist()), space)
        hits += int((judge.predict([texts[i] for i in asked]) == labels[asked]).sum())
    judge = classifier(Labelled(texts, labels.tolist()), space)
    return float(judge.score(tested.texts, tested.labels)), hits / len(texts)


class Measures:
    """All releases, each chunk a step of the run, shared by the tables."""

    def __init__(self, run: Run) -> None:
        self.run, self.words = run, run.of(len(Embedding.default()), 500)
        self.space = builtin(self.words)
        self.chunks, self.epsilons = run.of(CHUNKS, 1), run.of(EPSILONS, EPSILONS[1:2])

    def of(self, name: str, base: str, epsilon: float) -> dict[str, Any]:
        total: dict[str, Any] = {}
        for chunk in range(self.chunks):
            asked = name, base, epsilon, chunk, self.words
            done = self.run.ask(released, asked, code="releases")
            for key, value in done.items():
                total[key] = total[key] + value if chunk else value
        return total

    def kind(self, name: str) -> Kind:
        return kind_of(self.run.data, name, self.space)

    @cached_property
    def vectors(self) -> MeanVectors:
        return MeanVectors(self.run.data.large_glove(self.words))

    @cached_property
    def judges(self) -> dict[str, NgramPrior]:
        return {name: NgramPrior.train(self.space, self.kind(name).public.texts, 3)
                for name in KINDS}  # fmt: skip

    def judged(self, name: str, texts: list[str]) -> list[str]:
        """Return `USE` of the first texts of a kind in this form."""
        kind = self.kind(name)
        use = kept_use(kind, texts, self.space) if kind.public.labels else ()
        alike = similarity(self.vectors, kind.private.texts[: len(texts)], texts)
        return [*([f"{x:.2f}" for x in use] or ["–", "–"]),
                f"{self.judges[name].perplexity(texts):,.0f}", f"{alike:.3f}"]  # fmt: skip


def beside(run: Run) -> Table:
    """A table of what each base gives away and keeps."""
    m = Measures(run)
    table = Table(
        "A neural base measure beside others at equal ε",
        ["texts", "ε", "base", "content words named", *USE],
    )
    seconds = words = 0.0
    before = ""
    for name, epsilon, base in product(KINDS, m.epsilons, BASES):
        found = m.of(name, base, epsilon)
        texts = found["texts"]
        if name != before:
            plain_texts = m.kind(name).private.texts[: len(texts)]
            table.add(f"{len(texts):,} {KINDS[name]}", "–", "plain text", "–",
                      *m.judged(name, plain_texts))  # fmt: skip
        before = name
        named, content = (np.array(found[key], dtype=float) for key in ("named", "content"))
        table.add("", f"{epsilon:g}", BASES[base], share(named, content), *m.judged(name, texts))
        if base == "neural":
            seconds, words = seconds + found["seconds"], words + found["words"]
    model = "Trigrams take the place of the neural model."
    if not run.data.made_up:
        model = f"The neural model took {1000 * seconds / words:.0f} ms a word, beside other work."
    table.notes.append(
        "One draw; the first texts whose words are all built in, without offensive words in "
        "outputs. *Content words named*: by the exact posterior of bigrams of other texts of the "
        "same kind, with 95% intervals by the bootstrap over texts. *A → B*: learned from A, used "
        "on B; private → private in five parts. *Perplexity*: by trigrams of those other texts. "
        "*Similarity*: cosine of the mean vectors of GloVe 840B, less that with another text's "
        f"release. {model}"
    )
    return table


def examples(run: Run) -> Table:
    """The first texts, and what is released of them."""
    m = Measures(run)
    table = Table("The first ten texts of each kind", ["written", *(f"ε = {x:g}" for x in
                  m.epsilons)])  # fmt: skip
    for name in KINDS:
        made = [m.of(name, "neural", epsilon)["texts"] for epsilon in m.epsilons]
        for row in list(zip(m.kind(name).private.texts, *made, strict=False))[:EXAMPLES]:
            table.add(*row)
    return table


TABLES: dict[str, Experiment] = {"beside": beside, "examples": examples}
