"""Compares what published word mechanisms claim with what their laws really cost.

    python examples/field.py broken       # the smallest vocabularies on which a claim fails
    python examples/field.py kept         # every law of fastdx.lab.laws on 150 words

`broken` has the laws of papers and of public code written down once more, as they are there.
"""

from __future__ import annotations

import argparse
from itertools import pairwise, product
from math import exp, inf, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import gumbel_r, poisson

from fastdx import Embedding
from fastdx.lab import laws
from fastdx.lab.laws import largest_loss

Matrix = NDArray[np.float64]


class Finding(NamedTuple):
    """Two words of a vocabulary whose law tells them apart further than a claim allows."""

    mechanism: str
    vocabulary: str
    claimed: str
    covered: bool
    """Whether the claim is about such words; else it says nothing about them."""
    matrix: Matrix
    pair: tuple[int, int]
    allowed: float
    """The largest log-ratio that the claim allows, or would allow if it were about them."""

    def ratios(self) -> Matrix:
        """Return the log-ratio of the pair at every output; 0 where neither has it."""
        a, b = self.matrix[list(self.pair)]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(a + b > 0, np.abs(np.log(a) - np.log(b)), 0.0)


def line(*positions: float) -> Embedding:
    """Words a, b, … in one dimension."""
    return Embedding(list("abcdefgh")[: len(positions)], np.array(positions)[:, None])


def vickrey_without_the_word(x: Matrix, epsilon: float) -> Matrix:
    """Laplace noise, then one of the two nearest words *other than the one written*.

    sjmeis/MLDP, class VickreyMechanism, k = 2, t = [1, 0]: softmax(-t·distance).
    """
    law = np.zeros((len(x), len(x)))
    reach = 40 / epsilon
    # Between these both words are fixed, and all densities are smooth.
    cuts = np.unique([*((x[:, None] + x) / 2).ravel(), x.min() - reach, x.max() + reach])
    for word, (a, b) in product(range(len(x)), pairwise(cuts)):
        order = np.argsort(np.abs(x - (a + b) / 2)).tolist()
        chosen = [y for y in order if y != word][:2] if order[0] == word else order[:2]

        def noise(z: float, center: float = x[word]) -> float:
            return epsilon / 2 * exp(-epsilon * abs(z - center))

        def first(z: float, near: float = x[chosen[0]]) -> float:
            return noise(z) / (1 + exp(abs(z - near)))

        mass, part = (quad(f, a, b)[0] for f in (noise, first))
        law[word, chosen] += [part, mass - part]
    return law / law.sum(axis=1, keepdims=True)


def truncated_gumbel(x: Matrix, scale: float) -> Matrix:
    """Of the k nearest words (the word itself among them) the one of the least noisy distance.

    sjmeis/MLDP, class TruncatedGumbel: k from a Poisson law of mean ln(V - 1), conditioned on
    k ≤ V - 1; k = 0 returns the word; Gumbel noise conditioned on at most the largest distance.
    Written down for three words, where k ≤ 2.
    """
    two = float(poisson.pmf(2, log(len(x) - 1)) / poisson.cdf(2, log(len(x) - 1)))
    d = np.abs(x[:, None] - x)
    most, noise = float(d.max()), gumbel_r(scale=scale)
    low, high = noise.cdf([-most, most])
    law = np.zeros((3, 3))
    for word in range(3):
        other = int(np.argsort(d[word])[1])
        shift = d[word, other]
        # The other one wins where d + noise < noise of the word itself.
        wins = quad(lambda g, shift=shift: noise.pdf(g) * (noise.cdf(g - shift) - low),
                    shift - most, most)[0] / (high - low) ** 2  # fmt: skip
        law[word, word], law[word, other] = 1 - two * wins, two * wins
    return law


def scaled_noise(x: Matrix, rates: Matrix) -> Matrix:
    """Laplace noise whose rate is the word's own, then the nearest word."""
    middle = (x[1:] + x[:-1]) / 2
    offsets = middle - x[:, None]
    tails = np.exp(-rates[:, None] * np.abs(offsets)) / 2
    below = np.where(offsets < 0, tails, 1 - tails)
    law = np.diff(below, prepend=0, append=1)
    # The last one by its own tail: 1 less the rest would lose its digits.
    law[:, -1] = np.where(offsets[:, -1] > 0, tails[:, -1], 1 - tails[:, -1])
    return law


def blending_boxes_as_coded(x: Matrix, epsilon: float) -> Matrix:
    """Scores times ε/2, then normalised: Kekkodf/WBB-QueryObfuscation, get_k_closest_terms."""
    d = np.abs(x[:, None] - x)
    law = np.zeros_like(d)
    for word in range(len(x)):
        chosen = np.argsort(d[word])[1:4]
        z = (d[word, chosen] - d[word, chosen].mean()) / d[word, chosen].std()
        scores = 1 / (1 + np.exp(z)) * epsilon / 2
        law[word, chosen] = scores / scores.sum()
    return law


def random_adjacency(epsilon: float) -> Matrix:
    """Of the words nearer than a random radius ∝ exp((ε/2)·(1 - distance/radius)).

    mengtong0110/InferDPT, perturb_sentence, ε < 2, on two words at 0 and 1: the radius is the
    length of Laplace noise of the scale (range of the coordinate)/ε.
    """

    def other(radius: float) -> float:
        near = exp(epsilon / 2 * (1 - 1 / radius))
        return epsilon * exp(-epsilon * radius) * near / (near + exp(epsilon / 2))

    changed = quad(other, 1, inf)[0]
    return np.array([[1 - changed, changed], [changed, 1 - changed]])


def synonyms(epsilon: float) -> Matrix:
    """The exponential mechanism on a word's synonyms, scores 0: sjmeis/MLDP, class SynTF."""
    scores = np.zeros((3, 3))
    sets = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]]) * np.exp(epsilon / 2 * scores)
    return np.asarray(sets / sets.sum(axis=1, keepdims=True))


def tem_as_packaged(places: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """Return the law of PyPantera 1.0.2's TEM, β = 0.001.

    The element that stands for the words beyond γ is to be replaced by one of them. The code draws
    that from a list of vectors, which numpy refuses, and then releases the written word itself.
    """
    gamma = 2 / epsilon * np.log(0.999 * (len(places) - 1) / 0.001)
    away = np.abs(places[:, None] - places)
    weights = np.where(away <= gamma, np.exp(-epsilon / 2 * away), 0.0)
    beyond = (away > gamma).sum(axis=1) * np.exp(-epsilon / 2 * gamma)
    weights[np.diag_indices(len(places))] += beyond
    return weights / weights.sum(axis=1, keepdims=True)


def broken() -> list[Finding]:
    """Return every claim that fails, or does not reach far, on the smallest vocabulary known."""
    tiny, near = 1e-4, np.array([0.0, 1e-4, 5.0])
    two, four = line(0.0, 1.0), np.array([0.0, 1.0, 2.5, 4.0])
    rest = -np.log(1 - 2 * 0.1) / 0.1
    early = line(0.0, -0.1, 0.05, 0.3)
    return [
        Finding("Vickrey, public code that skips the written word", "0, 0.0001, 5", "ε·d, ε = 10",
                True, vickrey_without_the_word(near, 10.0), (0, 1), 10 * tiny),
        Finding("truncated Laplace (TrLaplace), the authors' bound", "0, 1",
                "ε = 0.1 for any two words", True,
                laws.truncated_laplace(two, 0.1, rest).matrix(), (0, 1), 0.1),
        Finding("truncated Gumbel, public code", "0, 1, 3", "ε·d, ε = 10", True,
                truncated_gumbel(np.array([0.0, 1.0, 3.0]), 1.0), (0, 2), 30.0),
        Finding("TEM, as in PyPantera 1.0.2", "0, 2", "ε·d, ε = 10", True,
                tem_as_packaged(np.array([0.0, 2.0]), 10.0), (0, 1), 20.0),
        Finding("Laplace noise of a scale that follows the word", "0, 0.0001, 5; rates 1, 2, 1",
                "nothing (2·d, were the larger rate the price)", False,
                scaled_noise(near, np.array([1.0, 2.0, 1.0])), (0, 1), 2 * tiny),
        Finding("Words Blending Boxes", "0, 1; k = n = 1", "ε = 1 for any two words", True,
                laws.words_blending_boxes(two, 1.0, safe=1, candidates=1).matrix(), (0, 1), 1.0),
        Finding("Words Blending Boxes, the authors' code", "0, 1, 2.5, 4; k = 1, n = 3",
                "ε = 0.001 for any two words", True, blending_boxes_as_coded(four, 1e-3), (0, 1),
                1e-3),
        Finding("SynTF, public code on synonyms", "a, b, c; a and c no synonyms",
                "ε = 0.1 for any two words", True, synonyms(0.1), (0, 2), 0.1),
        Finding("RANTEXT, the authors' code", "0, 1", "ε = 1 for any two words", True,
                random_adjacency(1.0), (0, 1), 1.0),
        Finding("CusText, every word its own set", "0, 1, 3; k = 2", "ε = 1 for words of one set",
                False, laws.custext(line(0.0, 1.0, 3.0), 1.0, 2, partition=False).matrix(),
                (0, 2), 1.0),
        Finding("CusText, sets that are a partition", "0, 1; k = 1", "ε = 1 for words of one set",
                False, laws.custext(two, 1.0, 1).matrix(), (0, 1), 1.0),
        Finding("SanText+", "0, 1; the second one sensitive", "ε·d + ln(1/p) for outputs that are "
                "sensitive, ε = 1", False, laws.santext_plus(two, 1.0, ["b"]).matrix(), (0, 1),
                1 - np.log(0.2)),
        Finding("1-Diffractor, in the embedding's metric", "0, -0.1, 0.05, 0.3", "ε per place in "
                "the line, ε = 1", False, laws.one_diffractor(early, 1.0).matrix(), (0, 1), 0.1),
    ]  # fmt: skip


def kept(count: int) -> None:
    """Print what every law of `laws` costs on the first words of the built-in vocabulary."""
    default = Embedding.default()
    e = Embedding(default.words[:count], default.vectors[:count])
    flat = Embedding(e.words, default.vectors[:count, :1])
    few = Embedding(e.words[:40], default.vectors[:40])
    epsilon = 2.0
    table = [
        laws.santext(e, epsilon),
        laws.with_neighbors(laws.santext(e, epsilon), 0.04 * epsilon),
        laws.blahut_arimoto(e, epsilon),
        laws.vickrey(flat, epsilon),
        laws.one_diffractor(e, epsilon),
        laws.one_diffractor(e, epsilon, method="tem"),
        laws.santext_plus(e, epsilon, e.words[count // 2 :]),
        laws.custext(e, epsilon, 20),
        laws.randomized_response(e, epsilon),
        laws.rank_based(e, epsilon),
        laws.syntf(e, epsilon, -np.array([e.distances(w) for w in e.words])),
        laws.santext(few, epsilon),
        laws.optimal(few, epsilon),
    ]
    print(f"Each at ε = {epsilon:g} in its own unit, on the {count} most frequent words of the "
          f"built-in vocabulary in {e.dim} dimensions; Vickrey in the first dimension alone, the "
          "optimum, and SanText beside it once more, on 40 words.\n")  # fmt: skip
    print("| law | ε proved, unit | computed, the same unit | computed, per distance | "
          "computed, any two words | unchanged | mean distance |\n|---|---|---|---|---|---|---|"
          )  # fmt: skip
    for law in table:
        matrix, words = law.matrix(), range(len(law.space))
        d = np.array([law.space.distances(w) for w in law.space.words])
        own = None
        if law.proved.distances is not None:
            own = np.array([law.proved.distances(w) for w in words])
        same = largest_loss(matrix, own, law.proved.groups)
        name = law.name + (" (40 words)" if law.space is few else "")
        numbers = [f"{x:.3g}" for x in (same, largest_loss(matrix, d), largest_loss(matrix))]
        numbers += [f"{np.diag(matrix).mean():.2f}", f"{(matrix * d).sum() / len(d):.2f}"]
        shown = " | ".join(n.replace("inf", "∞") for n in numbers)
        print(f"| {name} | {law.proved.epsilon:g}, {law.proved.unit} | {shown} |")


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=("broken", "kept"))
    args = parser.parse_args()
    if args.table == "kept":
        kept(150)
        return
    print("| mechanism | places of a, b, … | claimed | log-ratio allowed | log-ratio, true | by | "
          "the claim |\n|---|---|---|---|---|---|---|")  # fmt: skip
    for f in broken():
        ratios = f.ratios()
        a, b, y = ("abcdefgh"[i] for i in (*f.pair, int(np.argmax(ratios))))
        loss = "∞" if np.isinf(ratios.max()) else f"{ratios.max():.3g}"
        verdict = "fails" if f.covered else "says nothing of them"
        print(f"| {f.mechanism} | {f.vocabulary} | {f.claimed} | {f.allowed:.3g} | {loss} | "
              f"{a} against {b}, output {y} | {verdict} |")  # fmt: skip


if __name__ == "__main__":
    main()
