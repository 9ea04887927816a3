"""ICDM'19, Feyisetan, Diethe, Drake: hyperbolic noise (figure 5, tables III, IV and VI)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache, partial
from itertools import chain, compress, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from experiments.data import (
    PAPERS,
    STAND_IN,
    STANDARD,
    SUBSET,
    Labelled,
    Source,
    sentences,
    space,
    split,
)
from experiments.measures import about, counted, right, spread, worst
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import Embedding, HyperbolicLaplace, Mechanism, MultivariateLaplace, calibration
from fastdx.bags import STOP_WORDS
from fastdx.channel import NgramPrior
from fastdx.lab.attacks import known_runs
from fastdx.lab.evaluation import (
    Attribution,
    ChosenAttribution,
    Interval,
    MeanVectors,
    choose_attribution,
    of_share,
    over_trials,
    vector_classifier,
)
from fastdx.lab.hyperbolic import clamp
from fastdx.lab.noise import hyperbolic_laplace
from fastdx.mechanisms import improbable

PUBLISHED_N = {0.125: (1.25, 134), 0.5: (1.62, 148), 1.0: (2.07, 172), 2.0: (3.92, 297),
               8.0: (140.67, 960)}  # fmt: skip
"""The expected and the worst N_w of hyperbolic noise."""
N_SOURCE = (
    "ICDM'19 table IV compares expected N_w at an equal worst one. At ε = 1 hyperbolic noise has a "
    "worst N_w of 172 in 1,000 and an expected one of 2.07; Euclidean noise, whose ε was "
    "calibrated to the same worst N_w, has an expected one of 48.8 to 53.8"
)
PUBLISHED_FOUND = {
    "small": {"original": "147", **dict.fromkeys(("0.5", "1", "2", "8"), "35 to 65")},
    "large": {"original": "259", "0.5": "72", "1": "73", "2": "78", "8": "116"},
}
FOUND_SOURCE = (
    "ICDM'19 table III: the mails that are attributed correctly, of the small set over all its ε"
)
PUBLISHED_MR = {"random words": 58.2, "0.125": 58.4, "1": 63.6, "8": 74.5, "original": 78.2}
MR_SOURCE = "ICDM'19 table VI, the row of bags of vectors on MR"
DRAWS = 1000


@cache
def nouns(data: Source, dim: int, epochs: int) -> Embedding:
    return data.hierarchy(dim, epochs)


def _nouns(run: Run) -> Embedding:
    """The paper's embedding has 100 dimensions."""
    return nouns(run.data, run.of(100, 10), run.of(50, 3))


# Figure 5 and table IV.


def _published_n(epsilon: float) -> str:
    return "{:g} / {}".format(*PUBLISHED_N[epsilon])


def table_4(run: Run) -> Table:
    epsilons = run.of([0.125, 0.5, 1.0, 2.0, 8.0], [1.0, 8.0])
    count = run.of(200, 40)
    table = Table(
        f"ICDM'19 figure 5 and table IV: expected and worst N_w in {DRAWS:,} draws",
        ["noise", "ε of the paper", "ε that is provable", "expected N_w ± 95%", "worst N_w [95%]",
         "published expected / worst N_w"],
        xlabel="ε of the paper, per unit of each space's own distance",
        ylabel=f"worst N_w in {DRAWS:,} draws", logarithmic=True, picture_alone=True,
    )  # fmt: skip
    glove, wide = run.data.glove(), run.data.minilm(300, run.of(40_000, 4000))
    spaces: dict[str, tuple[Embedding, Any]] = {
        "hyperbolic": (_nouns(run), HyperbolicLaplace.from_paper),
        "GloVe 50d": (glove, MultivariateLaplace),
        "MiniLM 300d": (wide, MultivariateLaplace),
    }
    for name, (e, kind) in spaces.items():
        words = spread(e, count)
        shown = f"{name} {e.dim}d" if name == "hyperbolic" else name
        for epsilon in epsilons:
            m = kind(e, epsilon, seed=SEED)
            f = run.step(partial(counted, m, words, DRAWS), "N_w", shown, epsilon, count)
            claim = _published_n(epsilon) if name == "hyperbolic" else "–"
            table.point(shown, epsilon, Interval(f["max_n"], f["low_n"], f["high_n"]))
            table.add(shown, f"{epsilon:g}", f"{m.epsilon:g}", about(f, "n", 1), worst(f), claim)
    table.published("published, hyperbolic", {x: most for x, (_, most) in PUBLISHED_N.items()})
    table.notes += [
        f"Published: {N_SOURCE}. So Euclidean rows have no published figure at their ε. The "
        "paper's Euclidean embeddings are GloVe in 100, 200 and 300 dimensions.",
        "The hyperbolic noise is the paper's own, drawn without its Markov chain; it costs ε + n "
        "per unit of hyperbolic distance. Rows of one nominal ε do not compare equal protection: "
        "distances differ in scale. The median distance to the nearest other word is "
        f"{_scale(spaces)}.",
    ]
    return table


WORST = 172
PUBLISHED_CALIBRATED = "48.8 to 53.8"
"""The expected N_w of Euclidean noise where the worst is 172: GloVe in 100, 200, 300 dimensions."""


def _calibrated(e: Embedding, words: list[str]) -> dict[str, float]:
    """The largest ε of Euclidean noise at which the worst word comes back so often, and its N_w."""
    found = calibration.choose_epsilon(
        MultivariateLaplace(e, 5.0, seed=SEED),
        max_unchanged=WORST / DRAWS,
        words=words,
        draws=DRAWS,
        tolerance=0.02,
    )
    return {"epsilon": found.epsilon, **counted(found.mechanism, words, DRAWS)}


def table_4_calibrated(run: Run) -> Table:
    """The paper's comparison: Euclidean noise at the worst N_w of hyperbolic noise at ε = 1."""
    count = run.of(100, 20)
    table = Table(
        f"ICDM'19 table IV: Euclidean noise with a worst N_w of {WORST} in {DRAWS:,} draws",
        ["embedding", "ε", "expected N_w ± 95%", "worst N_w [95%]", "published expected N_w"],
    )
    for name in (PAPERS, STAND_IN, STANDARD):
        e = space(run.data, name)
        f = run.step(partial(_calibrated, e, spread(e, count)), "calibrated", name, count)
        table.add(name, f"{f['epsilon']:.2f}", about(f, "n", 1), worst(f), PUBLISHED_CALIBRATED)
    table.notes.append(
        f"{count} words of each, spread over the vocabulary. *{PAPERS}*: {SUBSET}. Published: "
        "GloVe in 100, 200 and 300 dimensions, where hyperbolic noise with that worst N_w has "
        f"{PUBLISHED_N[1.0][0]}."
    )
    return table


def _added(e: Embedding, nominal: float, words: list[str], draws: int, sums: bool) -> list[int]:
    """How often each word comes back: noise carried by Möbius addition, or added as vectors."""
    ids = np.repeat(e.ids(words), draws)
    if not sums:
        m = HyperbolicLaplace.from_paper(e, nominal, seed=SEED)
        out = m.privatize_ids(ids)
    else:
        noise = hyperbolic_laplace(e.dim, nominal, len(ids), base="ball", seed=SEED)
        out = e.nearest(clamp(e.vectors[ids] + noise), k=1)[0][:, 0]
    return (out == ids).reshape(len(words), draws).sum(axis=1).tolist()


def table_4_added(run: Run) -> Table:
    """Why the published N_w is so small: noise that is added as vectors."""
    e, count, draws = _nouns(run), run.of(100, 20), run.of(300, 100)
    words = spread(e, count)
    table = Table(
        f"ICDM'19 table IV: how the noise is added, {e.dim} dimensions",
        ["ε of the paper", "noise added", "provable ε", "mean share unchanged [95%]",
         "worst share unchanged"],
    )  # fmt: skip
    for epsilon in run.of([1.0, 8.0], [1.0]):
        for shown, sums in (("by Möbius addition", False), ("as vectors, then clamped", True)):
            hits = run.step(partial(_added, e, epsilon, words, draws, sums), "added", epsilon, sums)
            proved = "none" if sums else f"{epsilon + e.dim:g}"
            share = of_share(sum(hits), draws * count)
            table.add(f"{epsilon:g}", shown, proved, str(share), f"{max(hits) / draws:.3f}")
    far = _median_noise(e.dim, 1.0)
    table.notes.append(
        f"At ε = 1 the noise moves a point by {far:.2f} (median). In many dimensions that is at a "
        "right angle to every other word, and in hyperbolic space such a step leads away from them "
        "by about its whole length: the word itself stays the nearest. Added as vectors the noise "
        f"pushes all points to the border of the ball. {count} words, {draws} draws each; "
        "intervals are over draws (Clopper-Pearson)."
    )
    return table


def _median_noise(dim: int, epsilon: float) -> float:
    """The median hyperbolic length of the paper's noise."""
    noise = hyperbolic_laplace(dim, epsilon, 2000, base="ball", seed=SEED)
    lengths = np.linalg.norm(noise, axis=1)
    return float(np.median(2 * np.arctanh(np.minimum(lengths, 1 - 1e-12))))


def table_4_dimensions(run: Run) -> Table:
    """Why our N_w is the contrary of the published one: it depends on the embedding."""
    count, epsilon = run.of(200, 30), 1.0
    table = Table(
        f"ICDM'19 table IV: N_w at ε = {epsilon:g} against the dimensions and the training",
        ["dimensions", "epochs of training", "nearest other word, median distance",
         "length of the noise, median", "expected N_w ± 95%", "worst N_w [95%]",
         "published expected / worst N_w"],
    )  # fmt: skip
    settings = [(5, 10), (10, 10), (20, 10), (50, 10), (100, 10), (100, 3), (100, 1)]
    for dim, epochs in run.of(settings, [(5, 1), (10, 1)]):
        e = nouns(run.data, dim, epochs)
        m = HyperbolicLaplace.from_paper(e, epsilon, seed=SEED)
        make = partial(counted, m, spread(e, count), DRAWS)
        f = run.step(make, "N_w", dim, epochs, epsilon, count)
        table.add(e.dim, epochs, f"{_nearest(e):.2f}", f"{_median_noise(e.dim, epsilon):.2f}",
                  about(f, "n", 1), worst(f), _published_n(epsilon))  # fmt: skip
    table.notes.append(
        f"WordNet's nouns, trained alike but for the two numbers; {count} words, {DRAWS:,} draws "
        "each. The paper does not say how far its words lie from each other."
    )
    return table


def _nearest(e: Embedding) -> float:
    """The median distance of 100 words to the nearest other one."""
    return float(np.median([np.partition(e.distances(w), 1)[1] for w in spread(e, 100)]))


def _scale(spaces: dict[str, tuple[Embedding, Any]]) -> str:
    return ", ".join(f"{_nearest(e):.2f} ({name})" for name, (e, _) in spaces.items())


# Table III.

HIDDEN = ("0.5", "2")
"""Rows that the picture alone has."""


def _attacked(
    attack: Attribution[str], least: float, m: Mechanism | None, mails: Labelled, trials: int = 1
) -> list[dict[str, int]]:
    """How many authors are found in each draw; answers are sure from that share of rounds on."""
    drawn = []
    for _ in range(trials):
        found = attack.attribute(mails.private(m).texts)
        hits, sure = right(found.authors, mails.labels), found.shares >= least
        kinds = {"right": hits, "sure": sure, "sure_right": hits & sure}
        drawn.append({kind: int(which.sum()) for kind, which in kinds.items()})
    return drawn


def _authorship(run: Run, size: str) -> Table:
    epsilons = run.of([0.5, 1.0, 2.0, 8.0], [1.0, 8.0])
    trials = run.of(5 if size == "small" else 2, 2)
    known, mails = run.data.texts(size, "train"), run.data.texts(size, "test")
    if run.quick:
        known, mails = known.some(1000), mails.some(120)
    count = len(mails.texts)
    chosen = run.step(
        lambda: asdict(choose_attribution(*known, rounds=run.of(20, 5), seed=SEED)),
        "chosen", size,
    )  # fmt: skip
    choice = ChosenAttribution(**chosen)
    attack = Attribution(*known, rounds=run.of(100, 20), seed=SEED, **choice.settings)
    table = Table(
        f"ICDM'19 table III, PAN11 {size}: mails whose author Koppel's attribution finds",
        ["noise", "unknown words", "ε of the paper", "right, of all mails [95%]",
         f"right, of {count:,} mails", f"sure (≥ {choice.threshold:.0%} of the rounds)",
         "sure and right",
         "published"],
        ylabel="share of the mails attributed correctly", logarithmic=True,
        picture_alone=size == "large",
    )  # fmt: skip
    claims = PUBLISHED_FOUND[size]

    def show(
        name: str, oov: str, epsilon: str, found: list[dict[str, Any]], claim: str
    ) -> Interval:
        mean = {key: float(np.mean([f[key] for f in found])) for key in found[0]}
        interval = of_share(round(mean["right"]), count)
        draws = sorted(f["right"] for f in found)
        spread = f" ({draws[0]} to {draws[-1]})" if len(draws) > 1 else ""
        if epsilon not in HIDDEN:
            table.add(name, oov, epsilon, str(interval), f"{mean['right']:.0f}{spread}",
                      f"{mean['sure']:.0f}", f"{mean['sure_right']:.0f}", claim)  # fmt: skip
        return interval

    attacked = partial(_attacked, attack, choice.threshold)
    plain = run.step(partial(attacked, None, mails), "mails", size, "plain")
    show("original", "–", "–", plain, claims["original"])
    for shown, e, kind in (("hyperbolic", _nouns(run), HyperbolicLaplace.from_paper),
                           ("GloVe 50d", run.data.glove(), MultivariateLaplace)):  # fmt: skip
        for oov in ("keep", "random"):
            fate = "kept" if oov == "keep" else oov
            for epsilon in epsilons:
                make: Any = kind
                m = make(e, epsilon, seed=SEED, oov=oov, skip=sorted(STOP_WORDS))
                found = run.step(partial(attacked, m, mails, trials), "mails", size, shown, oov,
                                 epsilon, trials)  # fmt: skip
                claim = claims[f"{epsilon:g}"] if shown == "hyperbolic" else "–"
                interval = show(shown, fate, f"{epsilon:g}", found, claim)
                table.point(f"{shown}, unknown words {fate}", epsilon, interval)
    commonest = max(sorted(set(known.labels)), key=known.labels.count)
    guess = mails.labels.count(commonest) / count
    table.notes += [
        f"{len(set(known.labels))} authors. Always naming the author of most known mails is right "
        f"for {guess:.3f}, the best constant answer for "
        f"{mails.commonest():.3f}; any author at random for {1 / len(set(known.labels)):.3f}. "
        f"Private mails: the mean of {trials} draws.",
        f"The attack is chosen on a part of the training mails that is set aside. {choice}",
    ]
    if size == "small":
        table.notes += [
            "The attack is the same on plain and on private mails; of private ones it knows their "
            "authors' plain ones. In brackets: the smallest and largest draw. Intervals are over "
            "mails (Clopper-Pearson). Stop words are released as they are, as in the paper. "
            "*kept*: words that the vocabulary lacks are released too; *random* replaces them.",
            f"Published: {FOUND_SOURCE}.",
        ]
    return table


FEW = (3, 8, 14)
"""Candidates, as in the tasks A, C and I of PAN12."""
JOINED = 5
"""Mails that make one text."""
PROFILE = {"known": "mean", "weights": "log-idf"}
"""The settings that are chosen on the known mails of both sets."""


def _joined(mails: Labelled, authors: Sequence[str]) -> Labelled:
    """Long texts of these authors, each of some of the mails of one."""
    texts, labels = [], []
    for author in authors:
        own = [t for t, label in zip(*mails, strict=True) if label == author]
        for i in range(0, len(own) - JOINED + 1, JOINED):
            texts.append("\n".join(own[i : i + JOINED]))
            labels.append(author)
    return Labelled(texts, labels)


def table_3_few(run: Run) -> Table:
    """Few authors, of whom much is known: what PAN12 has, of mails."""
    known, mails = run.data.texts("large", "train"), run.data.texts("large", "test")
    names = [name for name, _ in Counter(mails.labels).most_common(FEW[-1])]
    spaces: list[tuple[str, Embedding, Any, list[float]]] = [
        ("hyperbolic", _nouns(run), HyperbolicLaplace.from_paper, [1.0]),
        (STANDARD, space(run.data, STANDARD), MultivariateLaplace, [1.0, 8.0]),
        (PAPERS, space(run.data, PAPERS), MultivariateLaplace, [5.0, 15.0]),
    ]
    noises: dict[tuple[str, str], Mechanism | None] = {("original", "–"): None} | {
        (shown, f"{x:g}"): kind(e, x, seed=SEED, oov="random", skip=sorted(STOP_WORDS))
        for shown, e, kind, epsilons in spaces for x in epsilons
    }  # fmt: skip
    rows: dict[tuple[str, str], list[str]] = {row: [] for row in noises}
    sizes, chances = [], []
    for few in run.of(FEW, FEW[:2]):
        learned, asked = (_joined(part, names[:few]) for part in (known, mails))
        attack = Attribution(*learned, rounds=run.of(100, 20), seed=SEED, **PROFILE)
        sizes.append(f"{len(asked.texts)} texts of {few}")
        chances.append(f"{asked.commonest():.3f}")
        for row, m in noises.items():
            (found,) = run.step(partial(_attacked, attack, 1.0, m, asked), "few", few, *row)
            rows[row].append(str(of_share(found["right"], len(asked.texts))))
    table = Table(
        f"ICDM'19 table III, few authors: texts of {JOINED} mails whose author is found",
        ["noise", "ε of the paper", *(f"{size} authors [95%]" for size in sizes)],
    )
    for row, cells in rows.items():
        table.add(*row, *cells)
    table.notes.append(
        f"The corpus PAN12 is not here: {', '.join(map(str, FEW))} authors as in its tasks A, C, I "
        "are those of most test mails in PAN11's large set, and long texts are their mails, "
        f"{JOINED} joined. Koppel's attribution, chosen as above. Unknown words are replaced by "
        "random ones, stop words stay. Always naming the author of most texts is right for "
        f"{', '.join(chances)}. *{PAPERS}*: {SUBSET}. Intervals are over texts (Clopper-Pearson)."
    )
    return table


# Table VI.

TASKS = ("mr", "cr", "mpqa", "sst5", "trec")


def _replaced(
    mechanism: Mechanism | None, texts: list[list[str]], slots: list[list[int]], rng: Any
) -> list[str]:
    """The texts with other words in their slots: the mechanism's, or any words where None."""
    words = [text[i] for text, at in zip(texts, slots, strict=True) for i in at]
    if mechanism is None:
        pool = sorted({w for text in texts for w in text})
        new = iter([pool[i] for i in rng.integers(len(pool), size=len(words))])
    else:
        new = iter(mechanism.privatize_tokens(words))
    return [" ".join(next(new) if i in at else word for i, word in enumerate(text))
            for text, at in zip(texts, map(set, slots), strict=True)]  # fmt: skip


def _accuracies(
    mechanism: Mechanism | None,
    task: tuple[Labelled, Labelled | None],
    slots: tuple[list[list[str]], list[list[int]]] | None,
    e: Embedding,
    folds: int,
) -> list[float]:
    """Of trials: fold i of ten, or the given split; each with draws of its own."""
    every, test = task
    rng = np.random.default_rng(SEED)
    fold = np.random.default_rng(SEED).permutation(len(every.texts)) % 10
    found: list[float] = []
    both = every.texts + (test.texts if test else [])
    labels = np.array(every.labels + (test.labels if test else []))
    for trial in range(folds):
        tested = (np.arange(len(both)) >= len(every.texts)) if test else fold == trial
        texts = both if slots is None else _replaced(mechanism, *slots, rng)
        (x, y), asked = ((list(compress(texts, part)), labels[part]) for part in (~tested, tested))
        found.append(float(vector_classifier(x, y, e).score(*asked)))
    return found


def _slots(
    run: Run, task: tuple[Labelled, Labelled | None], vectors: Embedding
) -> tuple[tuple[Labelled, Labelled | None], list[list[str]], list[list[int]]]:
    """A task, its texts as words, and which of them are made private."""
    every, test = task
    if run.quick:
        every, test = every.some(800), test.some(300) if test else None
    texts = [t.lower().split() for t in every.texts + (test.texts if test else [])]
    # Known words of the texts without their labels: which words are replaced is decided before
    # anything is learned. The slots are below the median of what follows what.
    model = NgramPrior.train(vectors, every.texts)
    least = _score(model, texts[: len(every.texts)])
    slots = improbable(model, below=least)
    places = [[i for i in slots.places(text) if text[i] in model.space] for text in texts]
    return (every, test), texts, places


def table_6(run: Run) -> Table:
    settings = [None, *run.of([0.125, 1.0, 8.0], [1.0])]
    trials = run.of(5, 2)
    hyperbolic, vectors = _nouns(run), run.data.minilm(300, run.of(40_000, 4000))
    table = Table(
        "ICDM'19 table VI: accuracy (%) with improbable words made private, in training and test",
        ["words in the slots", *(t.upper() for t in TASKS), "published MR"],
        ylabel="accuracy on MR, vectors", logarithmic=True,
    )  # fmt: skip
    cells: dict[str, list[str]] = {}
    majority, shares = [], []
    for name in TASKS:
        task, texts, slots = _slots(run, sentences(run.data, name), vectors)
        every, test = task
        shares.append(sum(map(len, slots)) / sum(map(len, texts)))
        majority.append((test or every).commonest())
        rows: list[tuple[str, Mechanism | None, bool]] = [("random words", None, True)]
        rows += [(f"{x:g}", HyperbolicLaplace.from_paper(hyperbolic, x, seed=SEED), True)
                 for x in settings if x is not None]  # fmt: skip
        rows.append(("original", None, False))
        for shown, mechanism, private in rows:
            found = run.step(
                partial(_accuracies, mechanism, task, (texts, slots) if private else None, vectors,
                        trials if private or test is None else 1),
                "accuracy", name, shown, trials,
            )  # fmt: skip
            number = (100 * np.array(found)).tolist()
            interval = Interval(number[0], number[0], number[0])
            if len(number) > 1:
                interval = over_trials(number, reused=1 / 9 if test is None else 0.0)
            half = interval.high - interval.mean
            cells.setdefault(shown, []).append(
                f"{interval.mean:.1f}" + (f" ± {half:.1f}" if half else ""))  # fmt: skip
            if name == "mr" and mechanism is not None:
                table.point("measured", float(shown), interval)
    for shown, row in cells.items():
        named = f"ε = {shown}" if shown[0].isdigit() else shown
        table.add(named, *row, f"{PUBLISHED_MR[shown]}" if shown in PUBLISHED_MR else "–")
    table.add("majority", *(f"{100 * m:.1f}" for m in majority), "–")
    table.published("published", {float(k): v for k, v in PUBLISHED_MR.items() if k[0].isdigit()})
    table.notes += [
        "Slots: words whose probability after the word before, by bigrams of the texts (of SST-5 "
        "and TREC the training texts; labels are not looked at), is below the median; of all words "
        + ", ".join(f"{s:.0%} ({t.upper()})" for s, t in zip(shares, TASKS, strict=True))
        + ". Words that WordNet's nouns lack are drawn at random at every ε.",
        "By the mean of MiniLM's 300 dimensions and logistic regression. Nothing is tuned. "
        f"Intervals: 95% over {trials} trials, folds of ten for MR, CR, MPQA (widened for shared "
        "texts), draws on the given split for SST-5 and TREC.",
        f"Published: {MR_SOURCE}; its vectors are another embedding's.",
    ]
    return table


def _pairs(labels: list[str], count: int, rng: Any) -> NDArray[np.int64]:
    """Pairs of texts, in turn of one label and of two; shape (count, 2)."""
    known = np.array(labels)
    first = rng.integers(len(known), size=count)
    second = []
    for place, i in enumerate(first):
        alike = known == known[i] if place % 2 == 0 else known != known[i]
        alike[i] = False
        second.append(rng.choice(np.flatnonzero(alike)))
    return np.column_stack([first, second])


def _alike(
    texts: tuple[list[str], list[str]], labels: tuple[list[str], list[str]], e: Embedding,
    count: int, rng: Any,
) -> tuple[float, float]:  # fmt: skip
    """Whether two texts have one label: a classifier's accuracy; Pearson's r of their cosine."""
    features, truth = [], []
    for part, own in zip(texts, labels, strict=True):
        rows, pairs = normalize(MeanVectors(e)(part)), _pairs(own, count, rng)
        u, v = rows[pairs[:, 0]], rows[pairs[:, 1]]
        features.append(np.hstack([np.abs(u - v), u * v]))
        truth.append(np.arange(count) % 2 == 0)
    judge = LogisticRegression(max_iter=1000).fit(features[0], truth[0])
    cosines = features[1][:, e.dim :].sum(axis=1)
    return (float(judge.score(features[1], truth[1])),
            float(np.corrcoef(cosines, truth[1])[0, 1]))  # fmt: skip


def table_6_pairs(run: Run) -> Table:
    """Pairs of sentences, as in SICK-E, MRPC and STS14."""
    vectors, trials, count = space(run.data, PAPERS), run.of(5, 2), run.of(2000, 200)
    (every, test), texts, slots = _slots(run, split(run.data, "snips"), vectors)
    assert test is not None
    own, hyperbolic = (every.labels, test.labels), _nouns(run)
    rows: dict[str, Mechanism | None] = {"random words": None} | {
        f"hyperbolic, ε = {x:g}": HyperbolicLaplace.from_paper(hyperbolic, x, seed=SEED)
        for x in run.of([0.125, 8.0], [1.0])
    } | {f"{PAPERS}, ε = {x:g}": MultivariateLaplace(vectors, x, seed=SEED)
         for x in run.of([5.0, 10.0, 15.0], [15.0])} | {"original": None}  # fmt: skip
    table = Table(
        "ICDM'19 table VI, pairs: do two sentences mean the same, improbable words made private",
        ["words in the slots", "accuracy [95%]", "Pearson's r of the cosine [95%]"],
    )

    def measured(shown: str, m: Mechanism | None) -> list[tuple[float, float]]:
        found = []
        for trial in range(trials):
            rng = np.random.default_rng([SEED, trial])
            made = ([" ".join(t) for t in texts] if shown == "original"
                    else _replaced(m, texts, slots, rng))  # fmt: skip
            cut = len(every.texts)
            found.append(_alike((made[:cut], made[cut:]), own, vectors, count, rng))
        return found

    for shown, m in rows.items():
        found = run.step(partial(measured, shown, m), "pairs", shown, trials, count)
        table.add(shown, *(str(over_trials([f[i] for f in found])) for i in range(2)))
    table.notes.append(
        "SICK-E, MRPC and STS14 are not here: sentences of Snips stand for them, two of one intent "
        f"mean the same. {count:,} pairs to learn from and as many of other sentences to test on, "
        f"half of one intent (chance 0.5 and 0); {trials} trials, each with pairs and draws of "
        f"their own (Student's intervals). Slots as in table VI. *{PAPERS}*, the vectors and one "
        f"of the noises: {SUBSET}."
    )
    return table


def _score(model: NgramPrior, texts: list[list[str]]) -> float:
    """The median probability of a word after the one before."""
    runs = known_runs(model.space, (" ".join(text) for text in texts))
    pairs = chain.from_iterable(map(pairwise, runs))
    return float(np.median([model.behind([before], [here])[0, 0] for before, here in pairs]))


TABLES: dict[str, Experiment] = {
    "table4": table_4,
    "table4-calibrated": table_4_calibrated,
    "table4-added": table_4_added,
    "table4-dimensions": table_4_dimensions,
    "table3-small": partial(_authorship, size="small"),
    "table3-large": partial(_authorship, size="large"),
    "table3-few": table_3_few,
    "table6": table_6,
    "table6-pairs": table_6_pairs,
}
