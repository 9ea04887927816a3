"""Published laws that have a formula: of distances, of sets, of ranks and of places in a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx._core import Embedding
from fastdx._shared.checks import between, counted, one_of, positive
from fastdx.channel.law import by_rank
from fastdx.exceptions import ParameterError
from fastdx.lab.laws.base import (
    LOWEST,
    Law,
    Price,
    Space,
    check_space,
    distance_matrix,
    distance_rows,
    nearest_words,
    ranked,
    softmax,
    stacked,
)

MAX_EPSILON = 700.0
"""The largest ε of the computed law of randomised response: e^-709 is no normal 64-bit number."""
NEIGHBORS = 64
"""The number of nearest words of each word that `greedy_order` looks up in advance."""
BATCH = 1024
"""The number of words per look-up of nearest words."""
HALVES = "Weights and normaliser each change by a factor of at most "
"""The proof of the exponential mechanism, up to the factor."""


def santext(space: Space, epsilon: float) -> Law:
    """Return the law of SanText (Yue et al. 2021): Pr[y|w] ∝ exp(-(ε/2)·d(w, y)).

    Claimed and proved: ε per unit of distance. ``Tem(space, epsilon, gamma=math.inf)`` has the same
    law and draws it without V² memory.
    """
    epsilon, distances = positive("epsilon", epsilon), distance_rows(space)
    price = Price(epsilon, f"{HALVES}e^((ε/2)·d).", distances, space.metric)
    return Law("SanText", space, lambda w: softmax(-epsilon / 2 * distances(w)), price, price)


def santext_plus(
    space: Space, epsilon: float, sensitive: Iterable[str], *, replace: float = 0.2
) -> Law:
    """Return the law of SanText+, which replaces sensitive words always and others sometimes.

    A sensitive word becomes a sensitive word y with probability ∝ exp(-(ε/2)·d(w, y)). Another word
    is replaced in this way with probability `replace` (the authors' p), and is otherwise RELEASED
    UNCHANGED. Proved is ε per unit of distance among the sensitive words only, unless `replace` is
    1. An output that is not sensitive proves that the word is not sensitive.

    The list `sensitive` must be public. Never choose the rare words of the texts to be protected,
    as the authors' code does (Yue et al. 2021).
    """
    epsilon, distances = positive("epsilon", epsilon), distance_rows(space)
    replace = between("replace", replace, 0.0, 1.0)
    ids = np.unique(space.ids(sensitive)).astype(np.intp)
    counted("the number of sensitive words", len(ids), 1, len(space))
    groups = np.full(len(space), -1, np.intp)
    groups[ids] = 0

    def row(word: int) -> NDArray[np.float64]:
        law = np.zeros(len(space))
        law[ids] = softmax(-epsilon / 2 * distances(word)[ids])
        if groups[word] < 0:
            law *= replace
            law[word] += 1 - replace
        return law

    claimed = Price(
        epsilon, "Utility-optimised metric LDP: for outputs that are sensitive words the log-ratio "
        "of any two words is at most ε·d + ln(1/p), p being the share of other words that are "
        "replaced.", distances, space.metric, groups,
    )  # fmt: skip
    proved = Price(
        epsilon, "Sensitive words have the exponential mechanism's law on one set of outputs.",
        distances, space.metric, None if replace == 1 else groups,
    )  # fmt: skip
    return Law("SanText+", space, row, claimed, proved)


def blahut_arimoto(
    space: Space, epsilon: float, prior: ArrayLike | None = None, *, iterations: int = 100
) -> Law:
    """Return the law of the Blahut-Arimoto algorithm, which weights outputs by their use.

    The algorithm (PRIVIC, Biswas and Palamidessi 2024) alternates
    Pr[y|w] ∝ c(y)·exp(-(ε/2)·d(w, y)) and c(y) = Σ_w prior(w)·Pr[y|w], starting from a uniform c.
    Among laws of the same expected distance, its limit has the least mutual information between
    word and output. ε, twice the paper's β, is claimed and proved per unit of distance, after any
    number of rounds; with 0 `iterations` the law is SanText.

    `prior`, of shape (V,), says how often each word is written, and must be public; by default all
    words are equally likely. Raises `TooLargeError` for distances of more than 8 GiB.
    """
    epsilon, distances = positive("epsilon", epsilon), distance_rows(space)
    iterations = counted("iterations", iterations, 0, max(iterations, 0))
    weights = by_rank(np.ones(len(space)) if prior is None else prior, len(space))
    scores = -epsilon / 2 * distance_matrix(space)
    logs = np.zeros(len(space))
    for _ in range(iterations):
        # The weights of rarely used outputs shrink; the floor keeps their logarithms finite.
        logs = np.log(np.maximum(weights @ softmax(scores + logs), 1e-280))

    def row(word: int) -> NDArray[np.float64]:
        return softmax(-epsilon / 2 * distances(word) + logs)

    why = "A distance score and a weight c(y) that is the same for every word: the exponential " \
          "mechanism's proof."  # fmt: skip
    price = Price(epsilon, why, distances, space.metric)
    return Law("Blahut-Arimoto", space, row, price, price)


def syntf(space: Space, epsilon: float, ratings: ArrayLike) -> Law:
    """Return the law of one draw of SynTF: Pr[y|w] ∝ exp(ε·rating(w, y)/(2Δ)).

    Δ, the sensitivity, is the largest difference of an output's rating between two words; the
    function computes it. SynTF (Weggenmann and Kerschbaum 2018) makes a synthetic bag of n words.
    It draws n times a word of the document by its frequency, and a substitute for it by this law.
    So an output has the law ``counts @ law.matrix() / counts.sum()``, and n outputs have n·ε for
    *any* two documents. This is ordinary differential privacy of the bag, for a fixed n. Claimed
    and proved: ε for any two words; the true ε is smaller if normalisers are alike.

    `ratings`, of shape (V, V), has the rating of y as a substitute of w in row w. The authors' own
    (similarity of words, combined with overlap in bigrams) were not available to us.
    """
    check_space(space)
    epsilon = positive("epsilon", epsilon)
    table = finite_matrix("ratings", ratings, len(space))
    sensitivity = float((table.max(axis=0) - table.min(axis=0)).max())

    def row(word: int) -> NDArray[np.float64]:
        # With sensitivity 0 all words have one law, so no scale is needed.
        return softmax(epsilon / 2 * (table[word] / sensitivity if sensitivity else table[word]))

    price = Price(epsilon, f"{HALVES}e^(ε/2).")
    return Law("SynTF", space, row, price, price)


def finite_matrix(name: str, given: ArrayLike, count: int) -> NDArray[np.float64]:
    """Return finite numbers of all pairs of words; refuse others."""
    table = np.asarray(given, float)
    if table.shape != (count, count) or not np.isfinite(table).all():
        raise ParameterError(
            f"{name} must be finite numbers of the shape ({count}, {count}), got {table.shape}"
        )
    return table


def randomized_response(space: Space, epsilon: float) -> Law:
    """Return the law of randomised response: the word itself is e^ε times as likely as any other.

    Claimed and proved (Warner 1965; Kairouz, Oh and Viswanath 2014): ε for any two words. Up to
    ε = 700 no smaller ε holds.
    """
    check_space(space)
    epsilon, count = positive("epsilon", epsilon), len(space)
    # Computed from e^-ε: a large ε then neither overflows nor makes an output impossible.
    odds = np.exp(-min(epsilon, MAX_EPSILON))
    other = odds / (1 + (count - 1) * odds)

    def row(word: int) -> NDArray[np.float64]:
        law = np.full(count, other)
        law[word] = 1 - (count - 1) * other
        return law

    price = Price(epsilon, "Every output has one of two probabilities, and their ratio is e^ε.")
    return Law("randomised response", space, row, price, price)


def custext(space: Space, epsilon: float, k: int = 20, *, partition: bool = True) -> Law:
    """Return the law of CusText: the exponential mechanism on a set of k outputs for every word.

    Pr[y|w] ∝ exp((ε/2)·u(w, y)) on the set of w, and 0 elsewhere (Chen et al. 2023). The score u is
    0 for the nearest word of the set and -1 for the farthest, and linear in the distance from w.
    With a partition ε holds for any two words of one set, and nothing between sets.

    Parameters
    ----------
    space, epsilon
        As for all laws; ε for any two words of one set.
    k : int, optional
        The number of words in a set, from 1 to V.
    partition : bool, optional
        True: the sets partition the words ("conservative" in the authors' code). The most frequent
        word without a set forms one with the k - 1 nearest words that have none, and so on.
        False: every word has its own k nearest words ("aggressive" in that code), which protects
        nothing.
    """
    check_space(space)
    epsilon, count = positive("epsilon", epsilon), len(space)
    k = counted("k", k, 1, count)
    sets = partition_words(space, k) if partition else None
    distances = distance_rows(space)

    def row(word: int) -> NDArray[np.float64]:
        law, far = np.zeros(count), distances(word)
        near = nearest_words(far, word, k) if sets is None else np.flatnonzero(sets == sets[word])
        scores = far[near].min() - far[near]
        law[near] = softmax(epsilon / 2 * scores / (-scores.min() or 1.0))
        return law

    claimed = Price(
        epsilon, "Called ε-differential privacy; the definition compares only words that share "
        "their set of outputs.",
    )  # fmt: skip
    if sets is None and k < count:
        proved = Price(
            np.inf, "An output of one word's set and not of another's tells them apart for sure.",
        )  # fmt: skip
    else:
        groups = np.zeros(count, np.intp) if sets is None else sets
        why = f"Within a set the scores lie in [-1, 0]: {HALVES.lower()}e^(ε/2)."
        proved = Price(epsilon, why, groups=groups)
    return Law("CusText", space, row, claimed, proved)


def partition_words(space: Space, k: int) -> NDArray[np.intp]:
    """Return the number of every word's set, in a partition into sets of k near words.

    The first word without a set makes one with the k - 1 nearest words that have none, and so on.
    """
    sets, distances, number = np.full(len(space), -1), distance_rows(space), 0
    for word in range(len(space)):
        if sets[word] < 0:
            free = np.where(sets < 0, distances(word), np.inf)
            near = nearest_words(free, word, k)
            sets[near[sets[near] < 0]] = number
            number += 1
    return sets


def rank_based(space: Space, epsilon: float) -> Law:
    """Return the exponential mechanism on ranks: Pr[y|w] ∝ exp(-ε·rank(w, y)/(V - 1)).

    rank(w, y) is 0 for w itself, 1 for its nearest word, and so on, ties by id. The textbook proof
    of the exponential mechanism (McSherry and Talwar 2007) gives twice the range of the exponent,
    one half of it for the normaliser: 2ε for any two words is claimed. Here the normaliser is the
    same for every word, because the ranks are always 0, …, V - 1: ε is proved.
    """
    check_space(space)
    epsilon, count = positive("epsilon", epsilon), len(space)
    row = ranked(space, softmax(-epsilon * np.arange(count) / max(count - 1, 1)))
    claimed = Price(2 * epsilon, "The exponential mechanism with a score of sensitivity 1.")
    proved = Price(epsilon, "The normaliser is the same for every word, so only weights change.")
    return Law("rank-based", space, row, claimed, proved)


def words_blending_boxes(
    space: Space, epsilon: float, *, safe: int = 4, candidates: int = 20
) -> Law:
    """Return the law of Words Blending Boxes: a word never becomes itself or one of its nearest.

    The `safe` nearest words of w, from 1 to V - 1 (w itself is the first; the authors' k), are left
    out. From the next `candidates` words (the authors' n; in a small vocabulary all remaining ones)
    y is drawn with probability ∝ exp((ε/2)·u), u = 1/(1 + exp(z)). Here z is the distance from w,
    minus the candidates' mean, divided by their standard deviation. Claimed: ε for any two words.
    Proved: nothing.

    The published code (De Faveri et al. 2024) multiplies the scores by ε/2 and then normalises
    them, so ε has no effect. This function has ε in the exponent, as their description says.
    """
    epsilon, distances = positive("epsilon", epsilon), distance_rows(space)
    count = len(space)
    safe = counted("safe", safe, 1, count - 1)
    candidates = min(counted("candidates", candidates, 1, max(count, candidates)), count - safe)

    def row(word: int) -> NDArray[np.float64]:
        far = distances(word)
        chosen = nearest_words(far, word, safe + candidates)[safe:]
        d = far[chosen]
        z = (d - d.mean()) / (d.std() or 1.0)
        law = np.zeros(count)
        law[chosen] = softmax(epsilon / 2 / (1 + np.exp(z)))
        return law

    claimed = Price(epsilon, "The exponential mechanism with a score of sensitivity 1.")
    proved = Price(np.inf, "A word that is never its own output is told apart from every word "
                   "whose output it can be.")  # fmt: skip
    return Law("Words Blending Boxes", space, row, claimed, proved)


def with_neighbors(law: Law, rate: float) -> Law:
    """Return a law whose outputs are then replaced by neighbours; post-processing costs no privacy.

    An output x becomes y with probability ∝ exp(-rate·rank(x, y)), rate positive. rank(x, y) is 0
    for x itself, 1 for its nearest word, and so on, ties by id. Asghar et al. (2026) propose this
    against noise that returns either the word itself or an unrelated one. Their rate is c·ε, with
    c = 0.04 in their figures. To draw y, draw a rank (a truncated geometric variate) and take the
    word of that rank. Raises `TooLargeError` for weights of more than 8 GiB.
    """
    count = len(law.space)
    weights = softmax(-positive("rate", rate) * np.arange(count))
    kernel = stacked(ranked(law.space, weights), count)

    def row(word: int) -> NDArray[np.float64]:
        return np.asarray(law.row(word) @ kernel)

    return Law(f"{law.name}, then neighbours", law.space, row, law.claimed, law.proved)


def greedy_order(space: Space) -> NDArray[np.intp]:
    """Return a line of all words: each word is followed by the nearest one not yet in the line.

    Returns the ids in their order, shape (V,), the first word first. The line is exact; ties go to
    the smaller id. Most neighbours in the line are near each other. But words near each other can
    be far apart in the line, because skipped words come at its end.
    """
    check_space(space)
    count = len(space)
    word, words = 0, space.words
    near: NDArray[np.uint32] | None = None
    if isinstance(space, Embedding) and count > NEIGHBORS:
        vectors = space.vectors
        parts = [
            space.nearest(vectors[first : first + BATCH], NEIGHBORS)[0]
            for first in range(0, count, BATCH)
        ]
        near = np.concatenate(parts)
    free = np.ones(count, bool)
    order = np.empty(count, np.intp)
    for place in range(count):
        order[place] = word
        free[word] = False
        left = [] if near is None else near[word][free[near[word]]]
        if len(left):
            word = int(left[0])
        elif place + 1 < count:
            word = int(np.argmin(np.where(free, space.distances(words[word]), np.inf)))
    return order


def one_diffractor(
    space: Space,
    epsilon: float,
    *,
    orders: Sequence[ArrayLike] | None = None,
    method: str = "geometric",
    gamma: int = 5,
) -> Law:
    """Return the law of 1-Diffractor: noise on the word's place in a line of all words.

    With several lines (Meisenbacher et al. 2024), one of them is first drawn uniformly. ε is per
    place in the line; with several lines the largest distance of two words counts. In the metric of
    `space` nothing is proved, because near words can be many places apart.

    Parameters
    ----------
    space, epsilon
        As for all laws.
    orders : sequence of array_like of int, shape (V,), optional
        The lines, each a permutation of the ids; by default ``[greedy_order(space)]``. The authors
        use one line for each of several embeddings.
    method : str, optional
        'geometric': Pr[place j | place i] ∝ exp(-ε·|i - j|); places beyond an end become the end.
        'tem': ∝ exp(-(ε/2)·min(|i - j|, `gamma`)); words farther than `gamma` places are as likely
        as words at `gamma`.
    gamma : int, optional
        The number of places beyond which all words are equally likely, for 'tem'; at least 0.
    """
    check_space(space)
    epsilon, count = positive("epsilon", epsilon), len(space)
    one_of("method", method, ("geometric", "tem"))
    gamma = counted("gamma", gamma, 0, max(count, gamma))
    lines = [np.asarray(o) for o in ([greedy_order(space)] if orders is None else orders)]
    if not lines:
        raise ParameterError("orders must hold at least one order")
    for number, line in enumerate(lines):
        if not np.array_equal(np.sort(line), np.arange(count)):
            raise ParameterError(f"orders[{number}] must be a permutation of the {count} ids")
    places = np.argsort(lines, axis=1)

    far = np.arange(count)
    exponents = -epsilon / 2 * np.minimum(far, gamma) if method == "tem" else -epsilon * far
    # Two-sided geometric: (1 - a)/(1 + a)·a^|i - j| inside, a^|i - j|/(1 + a) at an end.
    end = 1.0 if method == "tem" else 1 / (1 - np.exp(-epsilon))
    weights = np.exp(np.maximum(exponents, LOWEST))

    def row(word: int) -> NDArray[np.float64]:
        each = weights[np.abs(places - places[:, word, None])]
        if count > 1:
            each[(places == 0) | (places == count - 1)] *= end
        return np.asarray((each / each.sum(axis=1, keepdims=True)).mean(axis=0))

    def apart(word: int) -> NDArray[np.float64]:
        return np.asarray(np.abs(places - places[:, word, None]).max(axis=0), np.float64)

    ends = "with the normaliser" if method == "tem" else "and ends are post-processing"
    why = f"Log-weights change by at most ε for each place, {ends}. Several lines are a mixture: " \
          "the largest of their bounds holds."  # fmt: skip
    price = Price(epsilon, why, apart, "place-in-line")
    return Law(f"1-Diffractor, {method}", space, row, price, price)
