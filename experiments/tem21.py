"""TEM'21, Carvalho, Vasiloudis, Feyisetan: use against membership inference on IMDB (figure 1)."""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments import measures
from experiments.data import PAPERS, STANDARD, SUBSET, Labelled, Source, space
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import Embedding, Mechanism, MultivariateLaplace, Tem
from fastdx.lab.evaluation import (
    Interval,
    membership_inference,
    over_trials,
    text_classifier,
    vector_classifier,
)

PUBLISHED = {"Tem": {2.0: 0.75}, "MADLIB": {2.0: 0.52}}
PUBLISHED_AUC = {2.0: 0.50}
SOURCE = "TEM'21 figure 1: at ε = 2 accuracies of 75% (Tem) and 52% (MADLIB), an AUC of 0.50"
HEART = 10.0
"""The classifier's inverse penalty: fastText has no penalty, and a classifier that learns nothing
by heart could not be attacked."""
EPSILONS = (2.0, 3.0, 5.0, 8.0)
KEYS = ("words, plain test", "words, private test", "vectors, plain test", "AUC")


def _parts(reviews: Labelled, trial: int, size: int) -> list[Labelled]:
    """TR1 and TE1 of the target, TR2 and TE2 of the shadow model; the same for all mechanisms."""
    order = np.random.default_rng([SEED, trial]).permutation(len(reviews.texts))
    return [reviews.at(order[size * i : size * (i + 1)].tolist()).lower() for i in range(4)]


def _trials(
    mechanism: Mechanism | None, source: Source, e: Embedding, trials: int, size: int
) -> dict[str, list[float]]:
    """Accuracies and the attacker's AUC, one a trial; without a mechanism of plain text."""
    found: dict[str, list[float]] = {key: [] for key in KEYS}
    reviews = source.texts("imdb", "train")
    for trial in range(trials):
        known, tested, shadow_known, shadow_tested = _parts(reviews, trial, size)
        learned = known.private(mechanism)
        target = text_classifier(*learned, strength=HEART)
        shadow = text_classifier(*shadow_known.private(mechanism), strength=HEART)
        vectors = vector_classifier(*learned, e)
        found["words, plain test"].append(float(target.score(*tested)))
        found["words, private test"].append(float(target.score(*tested.private(mechanism))))
        found["vectors, plain test"].append(float(vectors.score(*tested)))
        found["AUC"].append(membership_inference(
            target, known, tested, shadow=shadow, shadow_members=shadow_known,
            shadow_others=shadow_tested, seed=trial,
        ))  # fmt: skip
    return found


def figure_1(run: Run, name: str = STANDARD) -> Table:
    wide = name == PAPERS
    trials = run.of(3 if wide else 5, 2)
    size = run.of(400 if wide else 1000, 400 if not run.data.made_up else 100)
    e = space(run.data, name)
    table = Table(
        f"TEM'21 figure 1{f', {name}' * wide}: IMDB, trained on private reviews, and who was among "
        "them",
        ["mechanism", "ε", "mean N_w", *(f"accuracy: {k} [95%]" for k in KEYS[:3]),
         "membership AUC [95%]", "published accuracy", "published AUC"],
        ylabel="accuracy on plain reviews, trained on private ones",
    )  # fmt: skip

    words: dict[str, list[float]] = {}

    def measured(shown: str, m: Mechanism | None) -> dict[str, Interval]:
        found = run.step(partial(_trials, m, run.data, e, trials, size), "IMDB", name, shown,
                         trials, size)  # fmt: skip
        words[shown] = found[KEYS[0]]
        # As many texts are tested as are learned from, and the trials share them.
        return {key: over_trials(found[key], reused=1.0, within=(0.0, 1.0)) for key in KEYS}

    plain = measured("plain", None)
    table.add("none", "–", "1", *(str(plain[key]) for key in KEYS), "–", "–")
    for which, kind in (("Tem", Tem), ("MADLIB", MultivariateLaplace)):
        for epsilon in run.of(EPSILONS, (2.0, 8.0)):
            m: Mechanism = kind(e, epsilon, seed=None if wide and kind is Tem else SEED)
            found = measured(f"{which} {epsilon:g}", m)
            table.point(which, epsilon, found["words, plain test"])
            claim, auc = PUBLISHED[which].get(epsilon), PUBLISHED_AUC.get(epsilon)
            same = run.step(partial(measures.unchanged, m), "N_w", name, which, epsilon)
            table.add(which, f"{epsilon:g}", f"{same:.3f}", *(str(found[key]) for key in KEYS),
                      "–" if claim is None else f"{claim:.2f}",
                      "–" if auc is None else f"{auc:.2f}")  # fmt: skip
        table.published(f"published, {which}", PUBLISHED[which])
    # Both of a trial have the same reviews.
    ahead = over_trials([a - b for a, b in zip(words["Tem 2"], words["MADLIB 2"], strict=True)],
                        reused=1.0)  # fmt: skip
    both = PUBLISHED["Tem"][2.0] - PUBLISHED["MADLIB"][2.0]
    table.notes.append(f"Tem's advantage over MADLIB at ε = 2, by words on plain reviews: {ahead}; "
                       f"published {both:.2f}.")  # fmt: skip
    table.notes += [
        f"{trials} trials, each with parts of {size:,} reviews to learn from and to test on, and "
        "as many for the attacker's shadow model; the same for all mechanisms. Chance is 0.5 in "
        "every column. Intervals: Student's, widened because trials share reviews. ε is nominal, "
        f"per unit of Euclidean distance in {name}, for both: equal ε is not equal protection."
        + f" *{name}*: {SUBSET}. Seeded draws of Tem take long there, so it has no seed."
        * wide,
        "*words*: TF-IDF and logistic regression with hardly a penalty, as fastText learns "
        "(without its hashing of bigrams); *vectors*: the mean of GloVe's vectors. The attacker's "
        "network has two layers of 64 and is asked about reviews as they were written.",
        "*mean N_w*: the probability that a word comes back unchanged, the mean over 200 words "
        "spread over the vocabulary. It says how much noise an ε is in this embedding: rows of "
        "about equal N_w compare the mechanisms, rows of equal ε do not.",
        f"Published: {SOURCE}; on GloVe in 300 dimensions.",
    ]
    return table


TABLES: dict[str, Experiment] = {
    "fig1": figure_1,
    "fig1-300": partial(figure_1, name=PAPERS),
}
