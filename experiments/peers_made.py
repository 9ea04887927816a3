"""The mechanisms of peers, each beside the law that it states and what its code does.

Peers are imported when they are made; `INSTALL` has the versions that were read and run.
"""

from __future__ import annotations

import importlib.metadata
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from experiments.data import builtin
from experiments.measures import Numbers
from experiments.tables import SEED
from fastdx import (
    Embedding,
    FiniteLaw,
    Mahalanobis,
    Mechanism,
    MultivariateLaplace,
    Tem,
    Vickrey,
    from_spec,
)
from fastdx.lab import laws

VERSIONS = {"mldp-text": "0.1.2", "pypantera": "1.0.2", "dp-diffractor": "0.2.1",
            "privfill": "0.1.0"}  # fmt: skip
INSTALL = ("pip install mldp-text==0.1.2 pypantera==1.0.2 dp-diffractor==0.2.1 mpmath; "
           "pip install --no-deps privfill==0.1.0")  # fmt: skip
"""PrivFill without torch and transformers, of which only its noise is run."""
EPSILON = 10.0
PLACES = 1.0
"""ε of 1-Diffractor, per place in its line: its default."""
HOLDS = "the paper's"
BETA = 0.05
"""Of PyPantera's TEM, so that ⊥ is drawn often enough to be seen; mldp-text fixes 0.001."""

Ids = NDArray[np.intp]
Sampler = Callable[[Ids, Generator], Ids]
Rule = Numbers | Sampler
"""How outputs are drawn: a law, one row a word, or a function of the words' ids."""


@dataclass(frozen=True)
class Peer:
    """A mechanism of a peer, beside what its paper states and what its code does."""

    package: str
    name: str
    epsilon: float
    draw: Callable[[list[str]], list[str]]
    """The peer itself: outputs of words."""
    stated: Rule | None
    """The law that the guarantee is proved for; None if it is unknown."""
    guarantee: str
    """ε per unit of distance where the code has no law: what is known of it."""
    coded: Rule | None = None
    """What the code does, written again with numpy; None if that is `stated`."""
    ours: Mechanism | None = None
    """The same mechanism of fastdx."""


# Statements of the papers, and the behaviour of their code.


def outputs(rule: Rule, ids: Ids, rng: Generator) -> Ids:
    """Outputs of words, drawn by a rule."""
    if callable(rule):
        return np.concatenate([rule(ids[i : i + 4000], rng) for i in range(0, len(ids), 4000)])
    found = np.empty(len(ids), np.intp)
    for word in np.unique(ids):
        sums = np.cumsum(rule[word])
        here = np.flatnonzero(ids == word)
        found[here] = np.searchsorted(sums, rng.random(len(here)) * sums[-1], side="right")
    return found


def ours(m: Mechanism) -> Rule:
    """The law of a mechanism, or its draws from a seed."""
    if m.has_law:
        return np.stack([m.probabilities(word) for word in m.space.words])
    seeded = from_spec({**m.spec, "seed": SEED}, m.space)
    return lambda ids, rng: seeded.privatize_ids(ids).astype(np.intp)


def distances(e: Embedding) -> Numbers:
    return np.stack([e.distances(word) for word in e.words]).astype(np.float64)


def noisy(
    e: Embedding, choose: Callable[[Numbers, Ids, Generator], Ids],
    root: Numbers | None = None, *, unit: bool = False,
) -> Rule:  # fmt: skip
    """Laplace noise, stretched by a root; `unit`: by its direction alone. Then a choice."""
    vectors = e.vectors.astype(np.float64)

    def draw(ids: Ids, rng: Generator) -> Ids:
        z = rng.standard_normal((len(ids), e.dim))
        z /= np.linalg.norm(z, axis=1, keepdims=True)
        z = z if root is None else z @ root
        z = z / np.linalg.norm(z, axis=1, keepdims=True) if unit else z
        return choose(vectors[ids] + z * rng.gamma(e.dim, 1 / EPSILON, (len(ids), 1)), ids, rng)

    return partial(outputs, draw)


def root_of(e: Embedding, mixing: float = 0.2) -> Numbers:
    """√(λΣ + (1-λ)I), Σ as mldp-text scales it: by the variance of all numbers."""
    v = e.vectors.astype(np.float64)
    values, axes = np.linalg.eigh(mixing * np.cov(v.T) / v.var() + (1 - mixing) * np.eye(e.dim))
    return np.asarray(axes * np.sqrt(values) @ axes.T)


def far_mass(e: Embedding, epsilon: float, gamma: float, size: int | None) -> Numbers:
    """TEM as coded: ⊥ weighs `size`/|L_w| words at γ; None: what ⊥ gets returns to the word."""
    d = distances(e)
    near = d <= gamma
    weights = np.exp(-epsilon / 2 * np.where(near, d, 0)) * near
    far = (~near).sum(axis=1)
    if size is None:
        weights[np.diag_indices(len(e))] += far * np.exp(-epsilon * gamma / 2)
    else:
        each = np.exp(-epsilon * gamma / 2) * size / near.sum(axis=1) / np.maximum(far, 1)
        weights += ~near * each[:, None]
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


# The peers.


def missing(package: str) -> str | None:
    """How to install it, if it is not."""
    version = VERSIONS[package]
    try:
        found = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return f"not installed: pip install {package}=={version}"
    return None if found == version else f"version {found}: pip install {package}=={version}"


def key_vectors(words: Sequence[str], vectors: ArrayLike) -> Any:
    """Words and vectors as gensim has them."""
    from gensim.models import KeyedVectors

    v = np.asarray(vectors, np.float32)
    kv = KeyedVectors(v.shape[1])
    kv.add_vectors(list(words), v)
    return kv


@contextmanager
def vectors_of(e: Embedding, header: bool = False) -> Iterator[str]:
    """A file of words and vectors."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "vectors.txt")
        rows = (f"{w} {' '.join(map(repr, v.tolist()))}" for w, v in
                zip(e.words, e.vectors, strict=True))  # fmt: skip
        path.write_text("\n".join([f"{len(e)} {e.dim}"] * header + [*rows]) + "\n", "utf-8")
        yield str(path)


def mldp(e: Embedding) -> list[Peer]:
    import faiss
    from mldp_text import get_mechanism, utils

    faiss.omp_set_num_threads(1)
    d = distances(e)
    bounds = {"max_inter_dist": d.max(), "min_inter_dist": d[d > 0].min()}
    kv = key_vectors(e.words, e.vectors)
    made = {
        name: get_mechanism(name, epsilon=EPSILON, embedding_matrix=kv, dim=e.dim, **more)
        for name, more in (
            ("multivariate_calibrated", {}),
            ("mahalanobis", {}),
            ("vickrey", {}),
            ("tem", {}),
            ("truncated_gumbel", bounds),
        )
    }
    for name, m in made.items():
        if name != "tem":  # IVF of 100 lists, 50 searched
            m.index.nprobe = utils.faiss_num_probe

    def found(name: str, points: Numbers, k: int = 1) -> tuple[Numbers, Ids]:
        d, ids = made[name].index.search(points.astype(np.float32), k)
        return d, ids

    def vickrey(points: Numbers, ids: Ids, rng: Generator, left_out: bool) -> Ids:
        d, near = found("vickrey", points, 3)
        shift = (near[:, 0] == ids if left_out else np.zeros(len(ids), bool)).astype(int)
        rows = np.arange(len(ids))
        second = rng.random(len(ids)) < 1 / (1 + np.exp(-d[rows, shift]))
        return np.asarray(near[rows, shift + second])

    def gumbel(ids: Ids, rng: Generator) -> Ids:
        m, most = made["truncated_gumbel"], 64
        k = rng.poisson(np.log(len(e) - 1), len(ids))
        while (none := k == 0).any():
            k[none] = rng.poisson(np.log(len(e) - 1), none.sum())
        d, near = found("truncated_gumbel", e.vectors[ids], most)
        g = rng.gumbel(0, m.b, d.shape)
        while (out := np.abs(g) > m.max_inter_dist).any():
            g[out] = rng.gumbel(0, m.b, out.sum())
        best = np.where(np.arange(most) < k[:, None], d + g, np.inf).argmin(axis=1)
        return np.asarray(near[np.arange(len(ids)), best])

    gamma = round(2 / EPSILON * np.log(0.999 * len(e) / 0.001), 1)
    laplace, elliptic = MultivariateLaplace(e, EPSILON), Mahalanobis.from_paper(e, EPSILON)
    tem = Tem(e, EPSILON, gamma=gamma)
    rules: dict[str, tuple[str, Rule | None, str, Rule | None, Mechanism | None]] = {
        "multivariate_calibrated": ("MultivariateCalibrated", ours(laplace), HOLDS, noisy(
            e, lambda z, i, r: found("multivariate_calibrated", z)[1][:, 0]), laplace),
        "mahalanobis": ("Mahalanobis", ours(elliptic), HOLDS, noisy(
            e, lambda z, i, r: found("mahalanobis", z)[1][:, 0], root_of(e)), elliptic),
        "vickrey": ("VickreyMechanism", noisy(e, partial(vickrey, left_out=False)), "none",
                    noisy(e, partial(vickrey, left_out=True)), None),
        "tem": ("TEM", ours(tem), "", far_mass(e, EPSILON, gamma, len(utils.VOCAB)), tem),
        "truncated_gumbel": ("TruncatedGumbel", None, "none", partial(outputs, gumbel), None),
    }  # fmt: skip

    def replaced(name: str, word: str) -> str:
        while True:
            try:
                return str(made[name].replace_word(word))
            except AssertionError:  # TruncatedGumbel, of a list of 0: see peers_faults.none_listed
                pass

    def draw(name: str, words: list[str]) -> list[str]:
        return [replaced(name, w) for w in words]

    return [Peer("mldp-text", shown, EPSILON, partial(draw, name), *rest)
            for name, (shown, *rest) in rules.items()]  # fmt: skip


def pantera(e: Embedding) -> list[Peer]:
    from src.EmbeddingPerturbationMechanism import cmp, mahalanobis, vickrey
    from src.SamplingPerturbationMechanism import custext, santext, tem

    v = e.vectors.astype(np.float64)

    def nearest(z: Numbers, ids: Ids, rng: Generator) -> Ids:
        return np.asarray(((v**2).sum(axis=1) - 2 * z @ v.T).argmin(axis=1))

    def pair(z: Numbers, ids: Ids, rng: Generator, t: float = 0.75) -> Ids:
        d = np.sqrt((z**2).sum(axis=1)[:, None] + (v**2).sum(axis=1) - 2 * z @ v.T)
        two = np.argpartition(d, 2, axis=1)[:, :2]  # in no order
        a, b = np.take_along_axis(d, two, 1).T
        second = rng.random(len(ids)) >= (1 - t) * b / (t * a + (1 - t) * b)
        return np.asarray(two[np.arange(len(ids)), second.astype(int)])

    with vectors_of(e) as path:
        given = {"embPath": path, "epsilon": EPSILON}
        made = [cmp.CMP(given), mahalanobis.Mahalanobis({**given, "lam": 0.2}),
                vickrey.VickreyCMP({**given, "t": 0.75}), santext.SanText(given),
                custext.CusText({**given, "k": 20, "distance": "euclidean"}),
                tem.TEM({**given, "beta": BETA})]  # fmt: skip
    if any(list(m._word2index) != list(e.words) for m in made):
        raise RuntimeError("PyPantera lost a word of the file: see peers_faults.lost_words")
    gamma = float(made[-1].gamma)
    sets = [FiniteLaw(law=laws.custext(e, EPSILON, k=20, partition=p), certify=False)
            for p in (True, False)]  # fmt: skip
    same: list[Mechanism] = [
        MultivariateLaplace(e, EPSILON), Mahalanobis.from_paper(e, EPSILON),
        Vickrey(e, EPSILON, tuning=0.75), Tem(e, EPSILON, gamma=np.inf),
        sets[0], Tem(e, EPSILON, gamma=gamma)]  # fmt: skip
    coded: list[Rule | None] = [
        noisy(e, nearest), noisy(e, nearest, root_of(e), unit=True), noisy(e, pair), None,
        ours(sets[1]), far_mass(e, EPSILON, gamma, None)]  # fmt: skip

    def draw(m: Any, words: list[str]) -> list[str]:
        found = []
        for i in range(0, len(words), 100):
            part = words[i : i + 100]
            found += m.processText(m.noisyEmb(part) if hasattr(m, "noisyEmb") else part).split(" ")
        return found

    kept = [HOLDS, "unknown", HOLDS, "", "", ""]
    return [Peer("pypantera", type(m).__name__, EPSILON, partial(draw, m), ours(s), k, c, s)
            for m, s, k, c in zip(made, same, kept, coded, strict=True)]  # fmt: skip


def diffractor(e: Embedding) -> list[Peer]:
    from diffractor import DiffractorConfig, core
    from diffractor.utils import EmbeddingManager

    with vectors_of(e, header=True) as path:
        lines = EmbeddingManager([path])
    places = {word: i for i, word in enumerate(e.words)}
    order = np.array([places[w] for w in lines.lists[0]])

    def draw(method: str, words: list[str]) -> list[str]:
        # The state of a worker of its pool, whose generator comes from the global seed.
        core._RESOURCES = {
            "list": lines.lists[0], "mapping": lines.word_to_idx[0],
            "config": DiffractorConfig(method=method, replace_stopwords=True),
            "rng": np.random.default_rng(np.random.randint(2**31)),
        }  # fmt: skip
        return [core.apply_privacy_mechanism(w, PLACES) for w in words]

    found = []
    for method, name in (("geometric", "1-Diffractor, geometric"), ("TEM", "1-Diffractor, TEM")):
        law = laws.one_diffractor(e, PLACES, orders=[order], method=method.lower())
        m, drawn = FiniteLaw(law=law, certify=False), partial(draw, method)
        found.append(Peer("dp-diffractor", name, PLACES, drawn, ours(m), "", None, m))
    return found


MAKERS = {"mldp-text": mldp, "pypantera": pantera, "dp-diffractor": diffractor}


@cache
def peers_of(package: str, count: int) -> list[Peer]:
    with redirect_stdout(sys.stderr):
        np.random.seed(SEED)
        return MAKERS[package](builtin(count))
