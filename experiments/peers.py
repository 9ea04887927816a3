"""What people can install beside fastdx: laws, what is named, use, speed, and faults.

Every peer runs on the same words, vectors and ε; `experiments.peers_made` has the versions, and
`experiments.peers_faults` the lines where a guarantee fails. A peer that is not installed has a
row that says how to install it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from timeit import Timer
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from experiments.data import Source, builtin
from experiments.measures import Numbers, by_rank, ids_of
from experiments.peers_faults import FAULTS, UNKNOWN
from experiments.peers_made import (
    BETA,
    INSTALL,
    MAKERS,
    PLACES,
    VERSIONS,
    Ids,
    Peer,
    Rule,
    missing,
    ours,
    outputs,
    peers_of,
)
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import Embedding, FiniteLaw, Tem
from fastdx.channel import Channel, NgramPrior
from fastdx.lab import audit
from fastdx.lab.evaluation import of_share, text_classifier

LEAST = 10.0
"""Outcomes expected fewer times are rare: χ² does not take them one by one."""
WORDS = 40
"""Of each text that is attacked, the first."""
POOL = 200
"""Outputs of each word: texts are released from them, and an attacker learns from the first half
where there is no law."""
OWN = (2.6, 5.0, 7.0)
"""ε of Tem with ranks as its base measure, at which fastdx stands beside them; recommended: 2.6."""


# Does a peer draw from a law?


def follows(counts: ArrayLike, law: ArrayLike) -> float:
    """The p-value of how often each outcome was drawn, by its probability.

    χ² of the frequent outcomes, an exact test of how many rare ones there are; Bonferroni's.
    """
    counts, law = np.asarray(counts, float), np.asarray(law, float)
    expected = law / law.sum() * counts.sum()
    if counts[expected == 0].any():  # what is impossible was drawn
        return 0.0
    rare, total = expected < LEAST, int(counts.sum())
    share = min(float(expected[rare].sum()) / total, 1.0)
    p = [float(stats.binomtest(int(counts[rare].sum()), total, share).pvalue)]
    if (~rare).sum() > 1 and counts[~rare].any():
        scale = counts[~rare].sum() / expected[~rare].sum()
        p.append(float(stats.chisquare(counts[~rare], expected[~rare] * scale).pvalue))
    return min(1.0, len(p) * min(p))


def alike(one: ArrayLike, other: ArrayLike) -> float:
    """The p-value of χ²: how often each outcome was drawn in two samples of one law."""
    table = np.array([one, other], float)
    shares = table.sum(axis=1) / table.sum()
    rare = table.sum(axis=0) * shares.min() < LEAST
    table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    table = table[:, table.any(axis=0)]
    return float(stats.chi2_contingency(table).pvalue) if table.shape[1] > 1 else 1.0


def p_value(drawn: Ids, rule: Rule, word: int, count: int, sample: int) -> float:
    """Whether outputs of a word follow a rule; one without a law is drawn `sample` times."""
    seen = np.bincount(drawn, minlength=count)
    if not callable(rule):
        return follows(seen, rule[word])
    others = outputs(rule, np.full(sample, word), np.random.default_rng([SEED, word]))
    return alike(seen, np.bincount(others, minlength=count))


def compared(peer: Peer, words: list[str], tested: list[int], draws: int, sample: int) -> Any:
    """The p-value of all tested words for both rules; Bonferroni's, so at most 1."""
    places = {word: i for i, word in enumerate(words)}
    np.random.seed(SEED)
    found: dict[str, list[float]] = {"stated": [], "coded": []}
    for word in tested:
        drawn = np.array([places[y] for y in peer.draw([words[word]] * draws)])
        for name, rule in (("stated", peer.stated), ("coded", peer.coded)):
            if rule is not None:
                found[name].append(p_value(drawn, rule, word, len(words), sample))
    return {name: min(1.0, min(p) * len(p)) if p else None for name, p in found.items()}


def _tested(count: int) -> list[int]:
    """The most frequent word, a middle one, and the one whose nearest word is farthest."""
    e = builtin(count)
    nearest = [np.partition(e.distances(word), 1)[1] for word in e.words]
    return [0, count // 2, int(np.argmax(nearest))]


def _each(table: Table, count: int) -> Iterator[Peer]:
    """The peers that are installed; a row for those that are not."""
    for package in MAKERS:
        if (wanted := missing(package)) is None:
            yield from peers_of(package, count)
        else:
            table.add(package, wanted, *["–"] * (len(table.header) - 2))


def epsilon_of(rule: Rule, e: Embedding) -> float | None:
    """The ε per unit of distance that a law has; None where there is no law."""
    if callable(rule):
        return None
    return float(audit.certify(FiniteLaw(e, rule, certify=False), metric=e).epsilon)


def _measured(
    run: Run, table: Table, count: int, measure: Callable[[Peer], Any], *asked: object
) -> Iterator[tuple[Peer, Any]]:
    """What is measured of each peer; a row for the error that it raises."""
    for peer in _each(table, count):

        def told(peer: Peer = peer) -> Any:
            try:
                return measure(peer)
            except ValueError as e:  # PyPantera's CusText with numpy 2
                return {"error": f"raises ValueError: {e}"}

        found = run.step(told, peer.package, VERSIONS[peer.package], peer.name, count, *asked,
                         np.__version__)  # fmt: skip
        if "error" in found:
            table.add(peer.package, f"{peer.name}: {found['error']}",
                      *["–"] * (len(table.header) - 2))  # fmt: skip
        else:
            yield peer, found


def _shown(p: float | None) -> str:
    return "–" if p is None else "< 1e-12" if p < 1e-12 else f"{p:.2g}"


def law_table(run: Run) -> Table:
    count, draws, sample = run.of(2000, 200), run.of(3000, 300), run.of(40_000, 2000)
    table = Table(
        "Peers: do they draw from the law that their papers state?",
        ["package", "mechanism", "ε", "p, the paper's law", "p, the code's", "ε in truth"],
    )  # fmt: skip
    tested = run.step(partial(_tested, count), "words", count)
    words = list(builtin(count).words)
    measure = partial(compared, words=words, tested=tested, draws=draws, sample=sample)
    for peer, found in _measured(run, table, count, measure, "laws", draws):
        rule = peer.stated if peer.coded is None else peer.coded
        truth = run.step(
            partial(epsilon_of, rule, builtin(count)), "ε", peer.package, peer.name, count
        )
        table.add(peer.package, peer.name, f"{peer.epsilon:g}", _shown(found["stated"]),
                  _shown(found["coded"]), peer.guarantee if truth is None else f"{truth:.3g}"
                  .replace("inf", "none"))  # fmt: skip
    shown = ", ".join(f"*{words[i]}*" for i in tested)
    table.notes += [
        f"The {count:,} most frequent built-in words, 50 dimensions. χ² on {draws:,} outputs of "
        f"each of {shown}; p of the three together (Bonferroni). A p near 0 says: another law. "
        f"*The paper's*: fastdx's exact law, or {sample:,} draws of fastdx where it has none; for "
        "mldp-text's Vickrey its own softmax without the exclusion. *The code's*: what we read, "
        "written again; – where that is the paper's.",
        "*ε in truth*: the largest log-ratio per unit of Euclidean distance over all words and "
        "outputs of the code's law, or *the paper's*, that of the noise. *None*: an output of one "
        "word is impossible for another; mldp-text's Vickrey: see its fault. "
        f"1-Diffractor's ε = {PLACES:g} is per place in its line, CusText's for two words of one "
        f"set. PyPantera's TEM with β = {BETA}, so that ⊥ is seen.",
        f"`{INSTALL}`",
    ]
    return table


# The share of words that an attacker names, and the use that is left.


def _pool(rule: Rule, count: int) -> Ids:
    ids = np.repeat(np.arange(count), POOL)
    return outputs(rule, ids, np.random.default_rng(SEED)).reshape(count, POOL)


def _law_of(rule: Rule, pool: Ids) -> Numbers:
    """The law, or Good and Turing's estimate from the first half of the outputs."""
    if not callable(rule):
        return rule
    count, draws = len(pool), POOL // 2
    seen = np.zeros((count, count))
    np.add.at(seen, (np.arange(count)[:, None], pool[:, :draws]), 1)
    new = (seen == 1).sum(axis=1, keepdims=True) / draws
    return np.asarray((1 - new) * seen / draws + new / count)


def _named(law: Numbers, pool: Ids) -> float:
    """Words named by the best guess at each output, words being written by rank."""
    prior = by_rank(len(law))
    guess = (prior[:, None] * law).argmax(axis=0)
    hit = guess[pool[:, POOL // 2 :]] == np.arange(len(law))[:, None]
    return float(prior @ hit.mean(axis=1))


def _named_in_texts(law: Numbers, texts: list[Ids], released: list[Ids], prior: NgramPrior) -> Any:
    """The words that are named by the exact posterior of each text, and all words: counts."""
    e = prior.space
    channel = Channel.of(FiniteLaw(e, law, certify=False))
    hits = [(channel.decode([e.words[y] for y in release], prior).best == text).sum()
            for text, release in zip(texts, released, strict=True)]  # fmt: skip
    return [int(sum(hits)), sum(map(len, texts))]


def _used(rule: Rule | None, source: Source, count: int, sizes: tuple[int, int, int]) -> Any:
    e = builtin(count)
    names = np.array(e.words, dtype=object)
    rng = np.random.default_rng(SEED)
    pool = None if rule is None else _pool(rule, count)
    learned, tested, attacked = sizes

    def ids(part: str, size: int) -> tuple[list[Ids], list[str]]:
        some = source.texts("imdb", part).some(size)
        return [i.astype(np.intp) for i in ids_of((t.lower() for t in some.texts), e)], some.labels

    def released(texts: list[Ids]) -> list[Ids]:
        if pool is None:
            return texts
        return [pool[text, rng.integers(POOL // 2, POOL, len(text))] for text in texts]

    def written(texts: list[Ids]) -> list[str]:
        return [" ".join(names[text]) for text in texts]

    (known, said), (plain, labels) = ids("train", learned), ids("test", tested)
    judge = text_classifier(written(released(known)), said)
    right = round(float(judge.score(written(plain), labels)) * len(labels))
    found: dict[str, Any] = {"right": [right, len(labels)]}
    if rule is not None and pool is not None:
        law = _law_of(rule, pool)
        found["named"] = _named(law, pool)
        texts = [text[:WORDS] for text in plain[:attacked] if len(text)]
        prior = NgramPrior.train(e, written(known), order=2)
        found["in texts"] = _named_in_texts(law, texts, released(texts), prior)
        found["same"] = float(by_rank(count) @ (pool == np.arange(count)[:, None]).mean(axis=1))
    return found


def use_table(run: Run) -> Table:
    count = run.of(2000, 200)
    sizes = learned, tested, attacked = run.of((2000, 2000, 200), (100, 60, 10))
    table = Table(
        "Peers: what is named, and use",
        ["package", "mechanism", "ε", "unchanged", "words named", "named in texts", "IMDB [95%]"],
    )
    plain = run.step(partial(_used, None, run.data, count, sizes), "plain", count, sizes)
    table.add("–", "plain text", "–", "100%", "100%", "100%", str(of_share(*plain["right"])))

    def row(package: str, name: str, epsilon: float, rule: Rule, version: str) -> None:
        found = run.step(partial(_used, rule, run.data, count, sizes), "use", package, version,
                         name, epsilon, count, sizes)  # fmt: skip
        hits, words = found["in texts"]
        table.add(package, name, f"{epsilon:g}", f"{found['same']:.1%}", f"{found['named']:.1%}",
                  f"{hits / words:.1%}", str(of_share(*found["right"])))  # fmt: skip

    for peer in _each(table, count):
        rule = peer.stated if peer.coded is None else peer.coded
        row(peer.package, peer.name, peer.epsilon, rule, VERSIONS[peer.package])
    for epsilon in OWN:
        m = Tem(builtin(count), epsilon, language="rank")
        row("fastdx", "Tem, language=rank", epsilon, ours(m), "")
    table.notes += [
        "By what each code does, written again and found alike above. *Words named*: by the best "
        "guess at each output, words being written by 1/(rank + 2.7). *Named in texts*: by the "
        "exact posterior of all words of a text under bigrams of the reviews that are learned "
        f"from, {WORDS} words of each of {attacked:,} other reviews. Both know the law; where "
        f"there is none, an estimate from {POOL // 2} outputs a word, which finds less than there "
        f"is. *IMDB*: learned from {learned:,} private reviews, tested on {tested:,} plain ones. "
        "Equal ε is not equal protection: compare rows in which about equally much is named.",
    ]
    return table


# Speed.


def _seconds(call: Callable[[], object]) -> float:
    """Of one of so many calls as take 0.2 seconds together."""
    call()
    runs, took = Timer(call).autorange()
    return took / runs


def _speed(peer: Peer, source: Source, count: int, tokens: int) -> dict[str, float | None]:
    e = builtin(count)
    texts = [t.lower() for t in source.texts("imdb", "test").some(50).texts]
    ids = np.concatenate(ids_of(texts, e))[:tokens]
    words = [e.words[i] for i in ids]
    own = peer.ours
    return {
        "peer": len(ids) / _seconds(lambda: peer.draw(words)),
        "ours": None if own is None else len(ids) / _seconds(lambda: own.privatize_ids(ids)),
    }


def speed_table(run: Run) -> Table:
    count, tokens = run.of((2000, 500), (200, 20))
    table = Table("Peers: words a second",
                  ["package", "mechanism", "words/s", "fastdx, words/s", "ratio"])  # fmt: skip
    run.step(lambda: None, "speed")
    measure = partial(_speed, source=run.data, count=count, tokens=tokens)
    for peer, found in _measured(run, table, count, measure, "speed", tokens):
        own = found["ours"]
        table.add(peer.package, peer.name, f"{found['peer']:,.0f}", f"{own:,.0f}" if own else "–",
                  f"{own / found['peer']:,.0f} ×" if own else "–")  # fmt: skip
    table.notes.append(
        f"The same {tokens:,} words of IMDB for all, {count:,} words × 50, both loaded and warm, "
        "in one run, fastdx without a seed. 1-Diffractor without its pool of processes."
    )
    return table


# Faults.


def fault_table(run: Run) -> Table:
    table = Table("Peers: where a guarantee fails as printed",
                  ["package", "file and line", "what the code does", "seen"])  # fmt: skip
    run.step(lambda: None, "faults")
    for package, where, claim, show in FAULTS:
        wanted = missing(package)
        seen = wanted or run.step(show, "fault", package, VERSIONS[package], where)
        table.add(package, where, claim.replace("|", "\\|"), seen)
    table.notes.append(
        f"Each is a function of `experiments/peers_faults.py`. {UNKNOWN!r} is a word of no "
        "vocabulary; log-ratios are lower bounds of 99.99% confidence."
    )
    return table


TABLES: dict[str, Experiment] = {
    "laws": law_table, "use": use_table, "speed": speed_table, "faults": fault_table,
}  # fmt: skip
