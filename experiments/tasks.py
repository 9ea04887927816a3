"""What classifiers learn from private text, and what an attacker recovers of it.

    python -m experiments.tasks [--words 6000] [--epsilon 2.6] [--reviews 3000] [--small]

TREC question classes, Snips intents and IMDB sentiment, trained and tested on private text: linear
support vector machines on the words of a text (bag) and on the mean of its words' vectors (mean).
Tem, Tem on balanced covers and the staircase on MiniLM in 50 dimensions; first at an equal
certified ε, then at an equal success of the attacker on sentences (`fastdx.attacks`: the better of
a frequency guess and Viterbi, on movie reviews). The same splits for all; accuracies are means of
two draws: right to about 2% on TREC and Snips, 1% on IMDB. Needs scikit-learn and ../shared.
"""

from __future__ import annotations

import argparse
import gzip
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fastdx import Cover, Embedding, Mechanism, NeighborResponse, Tem
from fastdx.attacks import BigramModel, sentence_attack
from fastdx.exceptions import FastdxWarning

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
DRAWS = 2

Task = tuple[list[str], list[str], list[str], list[str]]


def embedding(words: int) -> Embedding:
    """MiniLM in 50 dimensions: its most frequent words."""
    names = (SHARED / "embeddings" / "minilm-40k.vocab").read_text("utf-8").split("\n")[:words]
    return Embedding(names, np.load(SHARED / "embeddings" / "minilm-40k-50d.npy")[:words])


def reviews(part: str) -> list[dict[str, str]]:
    lines = gzip.decompress((SHARED / "text" / f"imdb.{part}.jsonl.gz").read_bytes()).splitlines()
    return [json.loads(line) for line in lines]


def tasks(count: int) -> dict[str, Task]:
    """Texts and labels to train and to test on."""
    text = SHARED / "text"
    # Training reviews are in order of their label.
    spread = [r[:: max(1, len(r) // count)][:count] for r in (reviews("train"), reviews("test"))]
    snips = [[json.loads(line) for line in (text / f"snips.{part}.jsonl").open(encoding="utf-8")]
             for part in ("train", "validate")]  # fmt: skip
    trec = [(text / f"trec.{part}.txt").read_text("utf-8", "replace").splitlines()
            for part in ("train", "test")]  # fmt: skip
    found: dict[str, Task] = {}
    found["TREC"] = (*_split(trec[0]), *_split(trec[1]))
    for name, label, (train, test) in (("Snips", "intent", snips), ("IMDB", "label", spread)):
        found[name] = ([r["text"] for r in train], [str(r[label]) for r in train],
                       [r["text"] for r in test], [str(r[label]) for r in test])  # fmt: skip
    return found


def _split(lines: list[str]) -> tuple[list[str], list[str]]:
    pairs = [line.split(" ", maxsplit=1) for line in lines]
    return [text for _, text in pairs], [label for label, _ in pairs]


def means(texts: Sequence[str], e: Embedding) -> NDArray[np.float32]:
    """The mean vector of each text's words."""
    places = {word: i for i, word in enumerate(e.words)}
    rows = []
    for text in texts:
        ids = [places[w] for w in text.lower().split() if w in places]
        rows.append(e.vectors[ids].mean(axis=0) if ids else np.zeros(e.dim, dtype=np.float32))
    return np.array(rows)


def accuracies(task: Task, e: Embedding, private: Callable[[list[str]], list[str]]) -> list[float]:
    """By the bag of words and by the mean vector."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    train, train_labels, test, test_labels = task
    train, test = private(train), private(test)
    count = CountVectorizer(binary=True, token_pattern=r"\S+")
    scale = StandardScaler()
    pairs = (
        (count.fit_transform(train), count.transform(test)),
        (scale.fit_transform(means(train, e)), scale.transform(means(test, e))),
    )
    return [float(LinearSVC(C=0.05).fit(x, train_labels).score(y, test_labels)) for x, y in pairs]


def at_attack(mechanism: Mechanism, texts: list[str], model: BigramModel, most: float) -> Mechanism:
    """The mechanism at the largest ε, up to 64, at which sentences lose no more words."""

    def keeps(epsilon: float) -> bool:
        return sentence_attack(mechanism.with_epsilon(epsilon), texts, model).attack <= most

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
    if not SHARED.is_dir():
        raise SystemExit(f"{SHARED} is not there: this experiment wants its embedding and texts")
    # Reviews hold signs of other encodings.
    warnings.simplefilter("ignore", FastdxWarning)
    e = embedding(args.words)
    every = tasks(args.reviews)
    model = BigramModel(e, [r["text"] for r in reviews("val")])
    unseen = [r["text"][:600] for r in reviews("test")[1::250]]

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
        most = sentence_attack(made[-2 if args.small else 4][1], unseen, model).attack
        print("\nAt an equal success of the attacker:\n" if equal else
              "\nAt an equal certified ε (the staircase: ε for any two words):\n")  # fmt: skip
        print(head + "\n|" + "---|" * head.count(":") + "---|---|---|")
        if not equal:
            show("original text", "–", "–", lambda texts: [t.lower() for t in texts])
        for name, mechanism, certified in made:
            m = at_attack(mechanism, unseen, model, most) if equal else mechanism
            attack = np.mean([sentence_attack(m, unseen, model).attack for _ in range(DRAWS)])
            shown = f"{m.epsilon:.2f}" + ("" if certified and not equal else " (not certified)")
            if not certified:
                shown = f"{m.epsilon:.2f} (any two words)"
            show(name, shown, f"{attack:.3f}", m.privatize)


if __name__ == "__main__":
    main()
