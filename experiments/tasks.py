"""Measures what classifiers learn from private text, and what an attacker recovers of it.

    python -m experiments.tasks [--words 6000] [--epsilon 2.6] [--reviews 3000] [--small]

TREC question classes, Snips intents and IMDB sentiment, trained and tested on private text: linear
support vector machines on the words of a text (bag) and on the mean of its words' vectors (mean).
Tem, Tem on balanced covers and the staircase on MiniLM in 50 dimensions; at an equal certified ε,
at equal bits a word, and at an equal success of the strongest attacker on sentences
(`lab.attacks`: exact under bigrams, on movie reviews). The same splits for all; accuracies are
means of two draws: right to about 2% on TREC and Snips, 1% on IMDB. Needs scikit-learn and
../shared.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from experiments.data import Labelled, Shared, split
from experiments.measures import cover
from fastdx import Embedding, Mechanism, NeighborResponse, Tem
from fastdx.channel import Channel, NgramPrior
from fastdx.exceptions import FastdxWarning
from fastdx.lab.attacks import sentence_attack
from fastdx.lab.comparison import largest_epsilon
from fastdx.lab.evaluation import MeanVectors

DRAWS = 2

Task = tuple[Labelled, Labelled]


def tasks(source: Shared, count: int) -> dict[str, Task]:
    """Texts and labels to train and to test on."""
    # Training reviews are in order of their label.
    train, test = (
        r.at(range(0, len(r.texts), max(1, len(r.texts) // count))[:count])
        for r in split(source, "imdb")
    )
    return {"TREC": split(source, "trec"), "Snips": split(source, "snips"), "IMDB": (train, test)}


def accuracies(task: Task, e: Embedding, private: Callable[[list[str]], list[str]]) -> list[float]:
    """By the bag of words and by the mean vector."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler
    from sklearn.svm import LinearSVC

    (known, labels), (asked, truth) = task
    known, asked = private(known), private(asked)
    judges = (
        make_pipeline(CountVectorizer(binary=True, token_pattern=r"\S+"), LinearSVC(C=0.05)),
        make_pipeline(FunctionTransformer(MeanVectors(e)), StandardScaler(), LinearSVC(C=0.05)),
    )
    return [float(judge.fit(known, labels).score(asked, truth)) for judge in judges]


def told(mechanism: Mechanism) -> float:
    """Bits that a release tells of a word, words being written by their rank."""
    return float(Channel.of(mechanism).bits("rank"))


def mechanisms(
    e: Embedding, epsilon: float, ks: Sequence[int]
) -> Iterator[tuple[str, Mechanism, bool]]:
    """Names, mechanisms, and whether ε is certified."""
    yield "Tem (k = 1)", Tem.certified(e, epsilon), True
    for k in ks:
        yield f"balanced cover, k = {k}", Tem.certified(e, epsilon, cover=cover(e, k)), True
    yield "staircase, balanced k = 40", NeighborResponse(e, 7.0, cover=cover(e, 40)), False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", type=int, default=6000)
    parser.add_argument("--epsilon", type=float, default=2.6)
    parser.add_argument("--reviews", type=int, default=3000)
    parser.add_argument("--small", action="store_true", help="fewer mechanisms")
    args = parser.parse_args()
    source = Shared()
    # Reviews hold signs of other encodings.
    warnings.simplefilter("ignore", FastdxWarning)
    e = source.minilm(50, args.words)
    every = tasks(source, args.reviews)
    model = NgramPrior.train(e, source.imdb("val").texts)
    unseen = [t[:600] for t in source.imdb("test").texts[1::250]]

    def attacked(m: Mechanism) -> float:
        """The share of content words that the strongest attacker names in sentences."""
        return sentence_attack(m, unseen, model, bits=False).attack.mean

    def show(cells: list[str], private: Callable[..., list[str]], draws: int = DRAWS) -> None:
        for task in every.values():
            found = np.mean([accuracies(task, e, private) for _ in range(draws)], axis=0)
            cells.append(" / ".join(f"{x:.3f}" for x in found))
        print(f"| {' | '.join(cells)} |", flush=True)

    columns = ["mechanism", "ε", "bits a word", "named in sentences",
               *(f"{n}: bag / mean" for n in every)]  # fmt: skip
    made = list(mechanisms(e, args.epsilon, (40,) if args.small else (5, 10, 20, 40, 80, 160)))
    # All as the cover of 40 among them.
    pattern = made[-2 if args.small else 4][1]
    equals: dict[str, Callable[[Mechanism], float] | None] = {
        "an equal certified ε (the staircase: ε for any two words)": None,
        "equal bits a word": told,
        "an equal success of the attacker on sentences": attacked,
    }
    for title, consequence in equals.items():
        most = consequence(pattern) if consequence else 0.0
        print(f"\nAt {title}:\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
        if consequence is None:
            show(["original text", "–", "–", "–"], lambda texts: [t.lower() for t in texts], 1)
        for name, mechanism, certified in made:
            m = mechanism
            if consequence:
                between = (0.5, 64.0)
                own = largest_epsilon(m.with_epsilon, consequence, most, between, 0.03)
                m = m.with_epsilon(own or between[0])
            unit = "" if consequence is None else " (not certified)"
            if not certified:
                unit = " (any two words)"
            attack = np.mean([attacked(m) for _ in range(DRAWS)])
            show([name, f"{m.epsilon:.2f}{unit}", f"{told(m):.2f}", f"{attack:.3f}"], m.privatize)


if __name__ == "__main__":
    main()
