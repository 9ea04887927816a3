"""What classifiers learn from private text, and what an attacker recovers of it.

    python -m experiments.tasks [--words 6000] [--epsilon 2.6] [--reviews 3000] [--small]

TREC question classes, Snips intents and IMDB sentiment, trained and tested on private text: linear
support vector machines on the words of a text (bag) and on the mean of its words' vectors (mean).
Tem, Tem on balanced covers and the staircase on MiniLM in 50 dimensions; first at an equal
certified ε, then at an equal success of the attacker on sentences (`fastdx.attacks`: exact
under bigrams, on movie reviews). The same splits for all; accuracies are means of
two draws: right to about 2% on TREC and Snips, 1% on IMDB. Needs scikit-learn and ../shared.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from experiments.data import Shared
from fastdx import Cover, Embedding, Mechanism, NeighborResponse, Tem
from fastdx.attacks import sentence_attack
from fastdx.channel import NgramPrior
from fastdx.evaluation import MeanVectors
from fastdx.exceptions import FastdxWarning

DRAWS = 2

Task = tuple[list[str], list[str], list[str], list[str]]


def tasks(source: Shared, count: int) -> dict[str, Task]:
    """Texts and labels to train and to test on."""
    found: dict[str, Task] = {}
    trec = source.sentences("trec")
    assert trec[1] is not None
    found["TREC"] = (*trec[0], *trec[1])
    found["Snips"] = (*source.snips("train"), *source.snips("validate"))
    # Training reviews are in order of their label.
    train, test = (
        r.at(range(0, len(r.texts), max(1, len(r.texts) // count))[:count])
        for r in (source.imdb("train"), source.imdb("test"))
    )
    found["IMDB"] = (*train, *test)
    return found


def accuracies(task: Task, e: Embedding, private: Callable[[list[str]], list[str]]) -> list[float]:
    """By the bag of words and by the mean vector."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    train, train_labels, test, test_labels = task
    train, test = private(train), private(test)
    count = CountVectorizer(binary=True, token_pattern=r"\S+")
    scale, means = StandardScaler(), MeanVectors(e)
    pairs = (
        (count.fit_transform(train), count.transform(test)),
        (scale.fit_transform(means(train)), scale.transform(means(test))),
    )
    return [float(LinearSVC(C=0.05).fit(x, train_labels).score(y, test_labels)) for x, y in pairs]


def named(mechanism: Mechanism, texts: list[str], model: NgramPrior) -> float:
    """The share of content words that the strongest attacker names in sentences."""
    return sentence_attack(mechanism, texts, model, bits=False).attack.mean


def at_attack(mechanism: Mechanism, texts: list[str], model: NgramPrior, most: float) -> Mechanism:
    """The mechanism at the largest ε, up to 64, at which sentences lose no more words."""

    def keeps(epsilon: float) -> bool:
        return named(mechanism.with_epsilon(epsilon), texts, model) <= most

    low, high = 0.5, 64.0
    if keeps(high):
        return mechanism.with_epsilon(high)
    while high / low > 1.03:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return mechanism.with_epsilon(low)


def mechanisms(
    e: Embedding, epsilon: float, ks: Sequence[int]
) -> Iterator[tuple[str, Mechanism, bool]]:
    """Names, mechanisms, and whether ε is certified."""
    yield "Tem (k = 1)", Tem.certified(e, epsilon), True
    for k in ks:
        cover = Cover.balanced(e, k)
        yield f"balanced cover, k = {k}", Tem.certified(e, epsilon, cover=cover), True
    yield "staircase, balanced k = 40", NeighborResponse(e, 7.0, cover=Cover.balanced(e, 40)), False


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

    def show(name: str, epsilon: str, attack: str, private: Callable[..., list[str]]) -> None:
        draws = DRAWS if attack != "–" else 1
        cells = []
        for task in every.values():
            found = np.mean([accuracies(task, e, private) for _ in range(draws)], axis=0)
            cells.append(" / ".join(f"{x:.3f}" for x in found))
        print(f"| {name} | {epsilon} | {attack} | {' | '.join(cells)} |", flush=True)

    head = "| mechanism | ε | attack | " + " | ".join(f"{n}: bag / mean" for n in every) + " |"
    made = list(mechanisms(e, args.epsilon, (40,) if args.small else (5, 10, 20, 40, 80, 160)))
    for equal in (False, True):
        most = named(made[-2 if args.small else 4][1], unseen, model)
        print("\nAt an equal success of the attacker:\n" if equal else
              "\nAt an equal certified ε (the staircase: ε for any two words):\n")  # fmt: skip
        print(head + "\n|" + "---|" * head.count(":") + "---|---|---|")
        if not equal:
            show("original text", "–", "–", lambda texts: [t.lower() for t in texts])
        for name, mechanism, certified in made:
            m = at_attack(mechanism, unseen, model, most) if equal else mechanism
            attack = np.mean([named(m, unseen, model) for _ in range(DRAWS)])
            shown = f"{m.epsilon:.2f}" + ("" if certified and not equal else " (not certified)")
            if not certified:
                shown = f"{m.epsilon:.2f} (any two words)"
            show(name, shown, f"{attack:.3f}", m.privatize)


if __name__ == "__main__":
    main()
