"""Use against what sentences give away, by mechanism and bits, on three embeddings; and the limit.

Mechanisms are made at equal bits a word: ε is in each mechanism's own way to spend it. The attacker
knows the law and a model of such texts, and names content words by exact posteriors (MADLIB has no
law: he learns it from draws). Classifiers learn from private texts and are used on private ones, by
the mean of the replacements' vectors or of the best receiver's: posterior means, output by output.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from experiments.data import Labelled, Source, builtin, first, sentences
from experiments.measures import Numbers, by_rank, cover, ids_of, narrowed, right, tem
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import Embedding, Mechanism, MultivariateLaplace, NeighborResponse
from fastdx.channel import Channel, NgramPrior
from fastdx.channel.features import means_of
from fastdx.lab.attacks import sentence_attack
from fastdx.lab.limit import vector_rate_distortion

WORDS = 3000
BITS = (1.0, 2.0, 3.0, 4.0)
UNCHANGED = (0.15, 0.3, 0.5)
"""MADLIB's bits cannot be computed: its ε is set by how many words come back as they were."""
DRAWS = 4
LEARNED = 3000
ATTACKED = 500
"""Texts that are attacked."""
SAMPLED = 50
"""Draws a word from which the attacker and the receiver learn MADLIB's law."""
HIGHEST = 64.0
SHARES = (1 / 3, 1 / 2)
KINDS = {
    "tem": "Tem",
    "rank": "Tem, base measure by rank",
    "k=20": "balanced cover, k = 20",
    "k=40": "balanced cover, k = 40",
    "response": "NeighborResponse, balanced k = 20",
    "madlib": "MADLIB",
}
EMBEDDINGS = {
    "builtin": "built in, 50 dimensions",
    "minilm": "MiniLM, 300 dimensions",
    "glove": "GloVe, 50 dimensions",
}
TASK = "trec"
PARTS = ("named", "raw vectors", "posterior means")


class Estimate(NamedTuple):
    """A share, and half of its 95% interval."""

    share: float
    half: float

    def __str__(self) -> str:
        return f"{self.share:.2f} ± {self.half:.2f}"


class Size(NamedTuple):
    """How much is measured."""

    words: int
    draws: int
    attacked: int


def _size(run: Run) -> Size:
    return run.of(Size(WORDS, DRAWS, ATTACKED), Size(300, 1, 10))


@cache
def _embedding(source: Source, name: str, count: int) -> Embedding:
    if name == "builtin":
        return builtin(count)
    return first(source.glove() if name == "glove" else source.minilm(300, count), count)


@cache
def task_texts(source: Source, name: str) -> tuple[Labelled, Labelled]:
    """Texts to learn from, and to test on: of MR a tenth that is always the same."""
    every, tested = sentences(source, name)
    if tested is not None:
        return every.some(LEARNED), tested
    order = np.random.default_rng(1).permutation(len(every.texts)).tolist()
    tenth = len(order) // 10
    return every.at(order[tenth:]).some(LEARNED), every.at(order[:tenth])


def _made(e: Embedding, kind: str, epsilon: float) -> Mechanism:
    if kind == "madlib":
        return MultivariateLaplace(e, epsilon)
    if kind == "response":
        return NeighborResponse(e, epsilon, cover=cover(e, 20))
    if kind == "rank":
        return tem(e, epsilon, language="rank")
    return tem(e, epsilon, None if kind == "tem" else int(kind.removeprefix("k=")))


def _at(value: Callable[[float], float], wanted: float) -> float | None:
    """The ε at which something that grows with it is as wanted, to 3%; none up to the highest."""
    if value(HIGHEST) < wanted:
        return None
    low, high = narrowed(lambda epsilon: value(epsilon) < wanted, 0.05, HIGHEST, 1.03)
    return (low * high) ** 0.5


def _at_bits(e: Embedding, kind: str, bits: float) -> float | None:
    """Chosen by an estimate from 300 words: the bits that are shown are those of all words."""
    sample = min(300, len(e) - 1)

    def value(epsilon: float) -> float:
        return float(Channel.of(_made(e, kind, epsilon)).bits(sample=sample))

    return _at(value, bits)


def _at_unchanged(e: Embedding, share: float) -> float | None:
    rng = np.random.default_rng(SEED)
    ids = rng.choice(len(e), 1000, p=by_rank(len(e))).astype(np.uint32)

    def value(epsilon: float) -> float:
        m = MultivariateLaplace(e, epsilon, seed=SEED)
        return float((m.privatize_ids(ids) == ids).mean())

    return _at(value, share)


@cache
def _bigrams(e: Embedding, source: Source) -> NgramPrior:
    """The attacker's model, of the same kind of texts and of film reviews."""
    public = task_texts(source, TASK)[0].texts + source.texts("imdb", "val").texts
    return NgramPrior.train(e, public, order=2)


def _named(m: Mechanism, channel: Channel | None, texts: list[str], prior: NgramPrior) -> Estimate:
    """The share of content words that exact posteriors name, of one release.

    Of noise the better of both attackers, where the law is learned from draws.
    """
    found = sentence_attack(m, texts, prior, channel=channel, bits=False, draws=SAMPLED)
    share = found.attack if channel is None else found.sentence
    return Estimate(share.mean, (share.high - share.low) / 2)


def _means_by_draws(m: Mechanism) -> Numbers:
    """Posterior means of a law that is known from draws."""
    e = m.space
    weights = by_rank(len(e))
    vectors = e.vectors.astype(np.float64)
    # As if every output had come once from a word at the mean: what was hardly seen says little.
    least = weights.min() / SAMPLED
    likely, sums = np.full(len(e), least), np.tile(least * (weights @ vectors), (len(e), 1))
    ids = np.arange(len(e), dtype=np.uint32)
    for _ in range(SAMPLED):
        out = m.privatize_ids(ids)
        np.add.at(likely, out, weights / SAMPLED)
        np.add.at(sums, out, vectors * (weights / SAMPLED)[:, None])
    return sums / likely[:, None]


def _accuracies(
    source: Source, e: Embedding, mechanisms: list[Mechanism | None], tables: list[Numbers]
) -> list[Estimate]:
    """Of classifiers on mean vectors from each table: one draw a mechanism, together."""
    learned, tested = task_texts(source, TASK)
    train, test = ids_of(learned.texts, e), ids_of(tested.texts, e)
    hits: list[list[NDArray[np.bool_]]] = [[] for _ in tables]
    for m in mechanisms:
        runs = [
            [m.privatize_ids(run) if m and len(run) else run for run in part]
            for part in (train, test)
        ]
        for table, found in zip(tables, hits, strict=True):
            judge = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
            judge.fit(means_of(table, runs[0]), learned.labels)
            found.append(right(judge.predict(means_of(table, runs[1])), tested.labels))
    rights = [np.mean(found, axis=0) for found in hits]
    return [Estimate(float(r.mean()), float(1.96 * r.std() / len(r) ** 0.5)) for r in rights]


def _measured(
    source: Source, name: str, kind: str, wanted: float, size: Size
) -> dict[str, Any] | None:
    """Everything about one mechanism at so many bits (MADLIB: at such a share unchanged)."""
    words, draws, attacked = size
    e = _embedding(source, name, words)
    noise = kind == "madlib"
    epsilon = _at_unchanged(e, wanted) if noise else _at_bits(e, kind, wanted)
    if epsilon is None:
        return None
    m = _made(e, kind, epsilon)
    channel = None if noise else Channel.of(m, cache_bytes=2**29)
    means = _means_by_draws(m) if channel is None else channel.posterior_means()
    bits = float(channel.bits()) if channel else float("nan")
    texts = task_texts(source, TASK)[1].texts[:attacked]
    named = _named(m, channel, texts, _bigrams(e, source))
    raw, best = _accuracies(source, e, [m] * draws, [e.vectors.astype(np.float64), means])
    return {"epsilon": epsilon, "bits": bits, "named": named, "raw": raw, "means": best}


def _clear(source: Source, name: str, words: int) -> dict[str, Any]:
    e = _embedding(source, name, words)
    (clear,) = _accuracies(source, e, [None], [e.vectors.astype(np.float64)])
    return {"clear": clear, "chance": task_texts(source, TASK)[1].commonest()}


def _on_embedding(run: Run, name: str) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """Clear text, and each mechanism along the bits, as `_measured` has it: steps of the run."""
    size = _size(run)
    clear = run.ask(_clear, name, size.words)
    found = {}
    for kind in KINDS:
        levels = UNCHANGED if kind == "madlib" else BITS
        steps = [run.ask(_measured, name, kind, wanted, size)
                 for wanted in run.of(levels, levels[1:2])]  # fmt: skip
        found[kind] = [step for step in steps if step]
    return clear, found


def _along(x: Numbers, y: Numbers, at: float) -> float:
    """y at an x, linear between points in the order of x; NaN beyond them."""
    order = np.argsort(x)
    return float(np.interp(at, x[order], y[order], left=np.nan, right=np.nan))


def _at_equal_use(points: list[dict[str, Any]], wanted: float) -> Estimate | None:
    """The share named where the accuracy by posterior means is as wanted.

    The interval has both errors: that of what is named, and that of the accuracy.
    """
    named, own = np.array([p["named"] for p in points]).T
    accuracy, half = np.array([p["means"] for p in points]).T
    accuracy = np.maximum.accumulate(accuracy)
    share = _along(accuracy, named, wanted)
    if np.isnan(share):
        return None
    low, high = (_along(accuracy, named, np.clip(wanted + side, accuracy[0], accuracy[-1]))
                 for side in (-half[0], half[0]))  # fmt: skip
    return Estimate(share, float(np.hypot(own.mean(), (high - low) / 2)))


def _frontier(name: str, run: Run) -> Table:
    clear, found = _on_embedding(run, name)
    words, draws, attacked = _size(run)
    table = Table(
        f"Use and sentences, {EMBEDDINGS[name]}",
        ["mechanism", "ε", "bits a word",
         *(f"TREC: {part}" for part in PARTS)],
        xlabel="content words of questions (TREC) named in sentences",
        ylabel="accuracy of question classes, posterior means",
        picture_alone=True,
    )  # fmt: skip
    for kind, shown in KINDS.items():
        for p in found[kind]:
            bits = "–" if np.isnan(p["bits"]) else f"{p['bits']:.2f}"
            shares = (Estimate(*p[part]) for part in ("named", "raw", "means"))
            table.add(shown, f"{p['epsilon']:.2f}", bits, *shares)
        for x, y in sorted((p["named"][0], p["means"][0]) for p in found[kind]):
            table.point(shown, x, y)
    table.notes.append(
        f"The {words:,} most frequent words. Accuracy on clear text: TREC "
        f"{Estimate(*clear['clear'])} (always the commonest: {clear['chance']:.2f}). "
        f"± is half of a 95% interval; draws of each text: {draws}. *Named*: content "
        f"words of at most {attacked} test texts of each task. Draws are not seeded."
    )
    return table


def equal(run: Run) -> Table:
    """The share that each mechanism gives away at equal use."""
    table = Table(
        "Content words named in sentences, at equal accuracy by posterior means",
        ["embedding", "task", "accuracy", *KINDS.values()],
    )
    for name, shown in EMBEDDINGS.items():
        clear, found = _on_embedding(run, name)
        chance = clear["chance"]
        for share in SHARES:
            wanted = chance + share * (clear["clear"][0] - chance)
            cells = [_at_equal_use(points, wanted) if points else None
                     for points in found.values()]  # fmt: skip
            table.add(shown, "TREC", f"{wanted:.2f}", *(str(c) if c else "–" for c in cells))
    table.notes.append(
        "The accuracy is that of always saying the commonest label, plus a third or a half of what "
        "clear text adds to it. Linear between the mechanism's points; – where they do not reach."
    )
    return table


LIMIT_KINDS = {"tem": "Tem", "rank": KINDS["rank"], "k=10": "balanced cover, k = 10",
               "k=20": KINDS["k=20"], "k=40": KINDS["k=40"],
               "response": KINDS["response"]}  # fmt: skip


def _place(source: Source, kind: str, bits: float, words: int) -> tuple[float, ...] | None:
    e = _embedding(source, "builtin", words)
    epsilon = _at_bits(e, kind, bits)
    if epsilon is None:
        return None
    channel = Channel.of(_made(e, kind, epsilon))
    return epsilon, float(channel.bits()), channel.distortion()


def _limit(source: Source, words: int, slopes: list[float]) -> dict[str, Any]:
    curve = vector_rate_distortion(_embedding(source, "builtin", words).vectors, slopes=slopes)
    return {"bits": curve.bits.tolist(), "distortion": curve.distortion.tolist(),
            "lower": curve.lower.tolist(), "slopes": curve.slopes.tolist(),
            "most": curve.most}  # fmt: skip


def limit(run: Run) -> Table:
    """Bits and explained variance beside the rate-distortion function."""
    words = run.of(WORDS, 300)
    # From nearly everything to nearly nothing, in units of the variance.
    slopes = run.of([2.5, 2.0, 1.6, 1.3, 1.1, 0.95, 0.83, 0.72, 0.62], [1.0])
    found = run.ask(_limit, words, slopes)
    bits, lower, slope = (np.array(found[x]) for x in ("bits", "lower", "slopes"))
    explained = 1 - np.array(found["distortion"]) / found["most"]
    table = Table(
        f"Bits a word and what they are good for, built in, {words:,} words",
        ["mechanism", "ε", "bits a word", "explained variance", "no mechanism has it below (bits)",
         "times as many", "most that as many bits can explain"],
        xlabel="bits a word",
        ylabel="variance of the word's vector that the best receiver explains",
        picture_alone=True,
    )  # fmt: skip
    for x, y in sorted([(0.0, 0.0), *zip(bits.tolist(), explained.tolist(), strict=True)]):
        table.point("the limit", x, y)
    for kind, shown in LIMIT_KINDS.items():
        for wanted in run.of(BITS, (2.0,)):
            place = run.ask(_place, kind, wanted, words)
            if place is None:
                continue
            epsilon, own, distortion = place
            least = max(float((lower - slope * distortion).max()), 0.0)
            share = 1 - distortion / found["most"]
            # From the other side: the lines that no mechanism is below, at this many bits.
            best = 1 - max(float(((lower - own) / slope).max()), 0.0) / found["most"]
            times = f"{own / least:.1f}" if least > 0.01 else "–"
            table.add(shown, f"{epsilon:.2f}", f"{own:.2f}", f"{share:.3f}", f"{least:.2f}", times,
                      f"{best:.3f}")  # fmt: skip
            table.point(shown, own, share)
    gap = bits + slope * np.array(found["distortion"]) - lower
    table.notes.append(
        f"Words written by 1/(rank + 2.7). The limit's line is of channels that were found; each "
        f"is at most {gap.max():.2f} bits above what is bounded (for answers that are words, and "
        "for others as far as climbing finds the maxima). They are chosen without regard to ε."
    )
    return table


TABLES: dict[str, Experiment] = {
    "limit": limit,
    **{name: partial(_frontier, name) for name in EMBEDDINGS},
    "equal": equal,
}
