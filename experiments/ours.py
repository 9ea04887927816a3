"""Our own: the same tasks and attacks for the mechanisms of the field, at equal bits a word and at
an equal certified ε, never at an equal nominal one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from experiments.data import Labelled, Source
from experiments.measures import ids_of, narrowed, right
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import Embedding, FiniteLaw, Mechanism, from_spec
from fastdx.channel import Bits, Channel, NgramPrior
from fastdx.lab import audit
from fastdx.lab.attacks import drawn_bits, reidentification, sentence_attack
from fastdx.lab.comparison import Family, families
from fastdx.lab.evaluation import (
    Attribution,
    Interval,
    of_share,
    over_trials,
    text_classifier,
    vector_classifier,
)

NAMES = ("tem", "tem-cover:5", "tem-cover:40", "tem-balanced:5", "tem-balanced:40", "tem-remap",
         "laplace", "mahalanobis", "vickrey", "response", "rank-based", "custext", "diffractor",
         "diffractor-tem", "randomised-response", "syntf", "blahut-arimoto")  # fmt: skip
"""Of all that `fastdx compare` knows, without what is a law twice (SanText is Tem without γ), what
needs one dimension, and what no ε makes better (Words Blending Boxes)."""
HYPERBOLIC = "hyperbolic"
BITS = 1.5
"""A word, of the 2,000 here."""
EPSILON = 3.0
LARGEST = 64.0
"""No ε above this is looked for: covers do not get beyond their floor."""
DRAWS = 200
"""Of each word, from which an attacker learns what a noise does."""
ESTIMATED = 4000
"""Draws of each word, from which the bits of a noise are estimated."""
DIMENSIONS, EPOCHS = 10, 10
"""Of the hierarchy, and of its training."""
TOLERANCE = 0.02
"""How exactly the ε is looked for."""


class _Spaces(NamedTuple):
    """The same words, most frequent first, in two spaces; those with vectors in both."""

    plain: Embedding
    nouns: Embedding


@cache
def _spaces(source: Source, count: int) -> _Spaces:
    plain, nouns = source.minilm(50), source.hierarchy(DIMENSIONS, EPOCHS)
    words = [word for word in plain.words if word.isalpha() and word in nouns][:count]
    return _Spaces(*(Embedding(words, e.vectors[e.ids(words)], metric=e.metric)
                     for e in (plain, nouns)))  # fmt: skip


def _family(spaces: _Spaces, name: str) -> Family:
    return families(spaces.nouns if name == HYPERBOLIC else spaces.plain, [name])[name]


def _mechanism(spaces: _Spaces, name: str, epsilon: float) -> Mechanism:
    """With a seed, so that a table can be had again."""
    made = _family(spaces, name).make(epsilon)
    if not isinstance(made, Mechanism):
        return FiniteLaw(law=made, certify=False, seed=SEED)
    return from_spec({**made.spec, "seed": SEED}, made.space, remap=made.remap,
                     cover=getattr(made, "cover", None))  # fmt: skip


# At which ε a mechanism is measured.


def _bits(m: Mechanism, draws: int = ESTIMATED) -> Bits:
    """The bits that a release tells of a word; for noise an estimate with its interval."""
    return Channel.of(m).bits("rank") if m.has_law else drawn_bits(m, draws)


def _at_bits(spaces: _Spaces, name: str, bits: float, draws: int = ESTIMATED) -> float | None:
    """The largest ε of its own at which a release tells no more; None where it always does."""
    low, high = _family(spaces, name).epsilons
    if name.startswith("tem"):
        high = LARGEST
    return _last(lambda own: _bits(_mechanism(spaces, name, own), draws).high <= bits, low, high)


def certified(mechanism: Mechanism) -> float:
    """The ε per unit of distance: computed, or proved for noise, which has no law."""
    if not mechanism.has_law:
        return mechanism.epsilon
    return audit.certify(mechanism, metric=mechanism.space).epsilon


def _at_certified(spaces: _Spaces, name: str, epsilon: float) -> float | None:
    """The largest ε of its own at which it costs no more; None where it always does."""
    return _last(lambda own: certified(_mechanism(spaces, name, own)) <= epsilon,
                 *_family(spaces, name).epsilons)  # fmt: skip


def _last(keeps: Callable[[float], bool], low: float, high: float) -> float | None:
    """The largest ε between two that keeps a promise; None where the smallest does not."""
    if keeps(high):
        return high
    if not keeps(low):
        return None
    return narrowed(keeps, low, high, 1 + TOLERANCE)[0]


# Measurements at that ε.


class _Texts:
    """Texts as ids of words; what the vocabulary lacks is left out, of plain texts too."""

    def __init__(self, e: Embedding, part: Labelled) -> None:
        self.names = np.array(e.words, dtype=object)
        ids = ids_of((t.lower() for t in part.texts), e)
        self.labels = [label for row, label in zip(ids, part.labels, strict=True) if len(row)]
        self.ids = np.concatenate(ids)
        self.ends = np.cumsum([len(row) for row in ids if len(row)])[:-1]

    def texts(self, m: Mechanism | None) -> list[str]:
        """As they were written, or as a mechanism releases them."""
        ids = self.ids if m is None else m.privatize_ids(self.ids)
        return [" ".join(row) for row in np.split(self.names[ids], self.ends)]


class _Sizes(NamedTuple):
    words: int
    trials: int
    learned: int
    tested: int
    asked: int
    rounds: int
    attacked: int


@cache
def _reviews(source: Source, s: _Sizes) -> list[tuple[_Texts, _Texts]]:
    """Of every trial the reviews to learn from and to test on; no two trials share any."""
    e, parts = _spaces(source, s.words).plain, []
    for name, size in (("train", s.learned), ("test", s.tested)):
        every = source.texts("imdb", name)
        order = np.random.default_rng(SEED).permutation(len(every.texts)).tolist()
        parts.append([_Texts(e, every.at(order[size * i : size * (i + 1)]))
                      for i in range(s.trials)])  # fmt: skip
    return list(zip(*parts, strict=True))


@cache
def _authors(source: Source, s: _Sizes) -> dict[str, tuple[_Texts, _Texts]]:
    e = _spaces(source, s.words).plain
    return {shown: (_Texts(e, source.texts(name, "train")),
                    _Texts(e, source.texts(name, "test").some(s.asked)))
            for shown, name in (("Reuters", "news"), ("PAN11", "small"))}  # fmt: skip


@cache
def _language(source: Source, words: int) -> NgramPrior:
    return NgramPrior.train(_spaces(source, words).plain, source.texts("imdb", "val").texts)


def _measured(m: Mechanism | None, source: Source, s: _Sizes) -> dict[str, Any]:
    """Accuracies, one a trial; of attacks what they find; without a mechanism of plain text."""
    e = _spaces(source, s.words).plain
    found: dict[str, Any] = {"words": [], "vectors": []}
    for known, tested in _reviews(source, s):
        texts, plain = known.texts(m), tested.texts(None)
        for key, judge in (("words", text_classifier(texts, known.labels)),
                           ("vectors", vector_classifier(texts, known.labels, e))):  # fmt: skip
            found[key].append(float(judge.score(plain, tested.labels)))
    for name, (known, asked) in _authors(source, s).items():
        released = asked.texts(m)
        # One attacker knows texts as they were written, the other one makes them private first.
        hits = [
            int(right(Attribution(known.texts(way), known.labels, rounds=s.rounds, seed=SEED)
                      .attribute(released).authors, asked.labels).sum())
            for way in ((None,) if m is None else (None, m))
        ]  # fmt: skip
        found[name] = [max(hits), len(released)]
    if m is not None:
        found["named"] = reidentification(m, "rank", draws=DRAWS).success[1]
        bits = _bits(m)
        found["bits"] = [float(bits), bits.low, bits.high]
        found["certified"] = certified(m)
        if tuple(m.space.words) == tuple(e.words):
            texts = [t[:600] for t in source.texts("imdb", "test").some(s.attacked).texts]
            language = _language(source, s.words)
            if m.space is not e:
                language = NgramPrior.train(m.space, source.texts("imdb", "val").texts)
            found["sentences"] = sentence_attack(m, texts, language, bits=False).attack.mean
    return found


# The tables.


def _sizes(run: Run) -> _Sizes:
    return run.of(_Sizes(2000, 5, 2000, 1000, 500, 40, 100), _Sizes(300, 2, 150, 80, 60, 5, 10))


TASKS = {"words": "IMDB, words", "vectors": "IMDB, vectors"}
AUTHORS = ("Reuters", "PAN11")


def _table(
    run: Run,
    title: str,
    at: Callable[[_Spaces, str], float | None],
    asked: float,
    names: list[str],
    *,
    least: float = 0.0,
) -> Table:
    """A row for each mechanism that tells so many bits at the ε that is asked for."""
    s = _sizes(run)
    spaces = _spaces(run.data, s.words)
    table = Table(
        title,
        ["mechanism", "its ε", "ε certified, per distance", "bits a word", "words named",
         "named in sentences", *(f"{task} [95%]" for task in TASKS.values()),
         *(f"{a}: author found [95%]" for a in AUTHORS)],
    )  # fmt: skip
    rows: dict[str, dict[str, Any]] = {}
    out, little = [], []
    plain = run.step(partial(_measured, None, run.data, s), "plain", *s)
    for name in names:
        own = run.step(partial(at, spaces, name), "its ε", title, asked, name, s.words)
        if own is None:
            out.append(name)
            continue
        m = _mechanism(spaces, name, own)
        rows[name] = {
            "own": own,
            "law": m.has_law,
            **run.step(partial(_measured, m, run.data, s), "measured", name, own, *s),
        }
    for name, f in {"plain text": plain, **rows}.items():
        cells = ["–"] * 5
        if name in rows:
            if f["bits"][0] < least:
                little.append(name)
                continue
            unit = " hyperbolic" if name == HYPERBOLIC else ""
            cost = f"{'' if f['law'] else '≤ '}{f['certified']:.3g}{unit}".replace("inf", "∞")
            cells = [f"{f['own']:.3g}", cost, _told(f), f"{f['named']:.1%}",
                     f"{f['sentences']:.1%}"]  # fmt: skip
        table.add(name, *cells,
                  *(str(over_trials(f[key], within=(0.0, 1.0))) for key in TASKS),
                  *(str(of_share(*f[a])) for a in AUTHORS))  # fmt: skip
    table.notes += _verdict(rows)
    if little:
        table.notes.append(f"Not shown, since they tell less than {least:g} bits: "
                           f"{', '.join(little)}.")  # fmt: skip
    if out:
        table.notes.append(f"Left out, since no ε of theirs gives it: {', '.join(out)}.")
    return table


def _told(found: dict[str, Any]) -> str:
    value, low, high = found["bits"]
    return f"{value:.2f}" if found["law"] else f"{low:.2f} to {high:.2f}"


def _verdict(rows: dict[str, dict[str, Any]]) -> list[str]:
    """Who wins, as far as the numbers tell."""
    if not rows:
        return []
    notes, best = [], {}
    for key, shown in TASKS.items():
        first = max(rows, key=lambda name: np.mean(rows[name][key]))
        near = [name for name in rows if name == first or _apart(rows, key, first, name).low <= 0]
        best[key] = near
        others = [name for name in near if name != first]
        notes.append(f"{shown}: {first} is best, {np.mean(rows[first][key]):.3f}; "
                     + (f"not told apart from it: {', '.join(others)}" if others else
                        "all others are worse"))  # fmt: skip
    for a in AUTHORS:
        least = min(rows, key=lambda name: rows[name][a][0] / rows[name][a][1])
        high = of_share(*rows[least][a]).high
        near = [n for n in rows if n != least and rows[n][a][0] / rows[n][a][1] <= high]
        notes.append(f"authors of {a}: found least behind {least}, "
                     f"{rows[least][a][0] / rows[least][a][1]:.3f}; within its interval: "
                     f"{', '.join(near) or 'none'}")  # fmt: skip
        best[a] = [least, *near]
    wins = [name for name in rows if all(name in near for near in best.values())]
    notes.append("best, or not told apart from the best, in all four columns: "
                 + (", ".join(wins) or "none, so who wins depends on what is asked"))  # fmt: skip
    return ["; ".join(f"**{note}**" if note is notes[-1] else note for note in notes) + "."]


def _apart(rows: dict[str, dict[str, Any]], key: str, first: str, other: str) -> Interval:
    """By how much the first is better, on the same reviews."""
    return over_trials((np.array(rows[first][key]) - np.array(rows[other][key])).tolist())


def _notes(run: Run, s: _Sizes) -> list[str]:
    """How both tables were measured."""
    mails = Labelled([], _authors(run.data, s)["PAN11"][1].labels)
    count, most = len(mails.labels), mails.commonest()
    reuters = len(set(_authors(run.data, s)["Reuters"][0].labels))
    return [
        f"The {s.words:,} most frequent words that have MiniLM's vectors in 50 dimensions and a "
        "place among WordNet's nouns, where hyperbolic noise needs one; all other words are left "
        "out of all texts. Names are those of `fastdx compare --mechanisms all`.",
        "*ε certified*: the largest log-ratio per unit of distance over all words and outputs, "
        "computed from the law; ≤ where there is no law, and what is proved is given. *Bits "
        "a word*: the mutual information of a word, written by 1/(rank + 2.7), and its output; of "
        f"noise from {ESTIMATED:,} draws a word, whose upper end is held equal. *Words "
        "named*: by the best guess at each output, words being written by 1/(rank + 2.7); of noise "
        f"from {DRAWS} draws a word, which finds less than there is. *Named in sentences*: content "
        "words of "
        f"{s.attacked} reviews, by the likeliest word given the whole release under "
        "bigrams, exactly where there is a law.",
        f"*IMDB*: learned from {s.learned:,} private reviews, tested on {s.tested:,} plain ones; "
        f"{s.trials} trials that share no review; mechanisms are compared on the same reviews. "
        f"Chance is 0.5. *Author found*: of {count:,} mails and as many news, one draw each, "
        "by the better of two attributions: one knows the authors' plain texts, one makes them "
        f"private first. Chance: {1 / reuters:.3f} (Reuters), {most:.3f} (PAN11, always the "
        "commonest author).",
    ]


def equal_bits(run: Run) -> Table:
    bits = run.of(BITS, 1.0)
    names = run.of([*NAMES, HYPERBOLIC], ["tem", "tem-balanced:40", "laplace", HYPERBOLIC])
    table = _table(
        run, f"Ours: all mechanisms where a release tells {bits:g} bits of a word",
        partial(_at_bits, bits=bits, draws=run.of(ESTIMATED, 300)), bits, names,
    )  # fmt: skip
    table.notes += [
        *_notes(run, _sizes(run)),
        "A mechanism that tells fewer at every ε stands at the largest that was looked for (Tem's: "
        f"{LARGEST:g}).",
    ]
    return table


def equal_epsilon(run: Run) -> Table:
    names = run.of([*NAMES], ["tem", "laplace", "randomised-response", "custext"])
    table = _table(
        run, f"Ours: all mechanisms at a certified ε of {EPSILON:g} per unit of distance",
        partial(_at_certified, epsilon=EPSILON), EPSILON, names, least=run.of(0.5, 0.0),
    )  # fmt: skip
    table.notes.append("Measured as in the table above. Hyperbolic noise is not here: its ε is per "
                       "unit of another distance.")  # fmt: skip
    return table


TABLES: dict[str, Experiment] = {
    "equal-bits": equal_bits,
    "equal-epsilon": equal_epsilon,
}
