"""The law of the smallest expected loss, by a linear programme."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx._shared.checks import positive
from fastdx.channel.law import by_rank
from fastdx.exceptions import FastdxError, InputTypeError, ParameterError, TooLargeError
from fastdx.lab.laws.base import (
    LOWEST,
    Law,
    Price,
    Space,
    check_space,
    distance_matrix,
    distance_rows,
)
from fastdx.lab.laws.formulas import finite_matrix
from fastdx.lab.laws.loss import largest_loss

LARGEST = 300
"""The most words for a linear programme."""
TOLERANCE = 1e-9
"""The most by which the solver may violate a constraint."""
VIOLATED = 1e-8
"""A constraint that is violated by more than this is added to the programme."""
START = 2.5
"""The dilation of the spanner whose constraints the programme starts with."""
FAR = 20.0
"""Half the largest log-ratio of a constraint; e^-40 is below the solver's accuracy."""
ROUNDS = 50
"""The most rounds in which constraints are added."""
ROUNDING = 1e-9
"""The share of ε that is reserved for the rounding of probabilities."""
SPARE = 1e-7
"""Extra probability mass of one output, against which rounding errors are small."""
GAP = 1e-3
"""The default of `gap`: the law's excess loss over the optimum, as a share of it."""


def _spanner(d: NDArray[np.float64], dilation: float) -> NDArray[np.intp]:
    """Return the greedy spanner: few pairs whose paths stretch no distance by more than a factor.

    Goes through the pairs by distance, nearest first, and takes those for which the paths through
    earlier pairs are longer than `dilation` times their distance. Returns shape (m, 2).
    """
    first, second = np.triu_indices(len(d), 1)
    paths = np.where(np.eye(len(d)), 0.0, np.inf)
    taken = []
    for pair in np.argsort(d[first, second], kind="stable"):
        i, j = first[pair], second[pair]
        # Sums of distances along a straight line differ from the distance by rounding.
        if paths[i, j] > dilation * d[i, j] * (1 + 1e-12):
            taken.append((i, j))
            through = np.minimum(
                paths[:, [i]] + d[i, j] + paths[[j], :], paths[:, [j]] + d[i, j] + paths[[i], :]
            )
            paths = np.minimum(paths, through)
    return np.array(taken, np.intp).reshape(-1, 2)


def optimal(
    space: Space,
    epsilon: float,
    loss: ArrayLike | None = None,
    prior: ArrayLike | None = None,
    *,
    gap: float = GAP,
) -> Law:
    """Return the ε·d-private law of the smallest expected loss (Bordenabe et al. 2014).

    On a small vocabulary, compare other laws with this one: no ε·d-private law has less loss. HiGHS
    solves the linear programme, through scipy. It starts with the constraints of near pairs, and
    violated ones are added. At the end the solution is changed slightly so that all V³ constraints
    hold, and all pairs are checked: ε per unit of distance is claimed and proved.

    Parameters
    ----------
    space, epsilon
        As for all laws; at most 300 words, else `TooLargeError`.
    loss : array_like of float, shape (V, V), optional
        The loss if w becomes y, in row w; by default the distance.
    prior : array_like of float, shape (V,), optional
        How often each word is written, which must be public; by default all words are equally
        likely.
    gap : float, optional
        Constraints are added until the loss of the law exceeds that of the programme, a lower
        bound, by at most this share of it.

    Raises
    ------
    FastdxError
        The solver fails.
    """
    check_space(space)
    epsilon, count = positive("epsilon", epsilon), len(space)
    if count > LARGEST:
        raise TooLargeError(f"optimal takes at most {LARGEST} words, the space has {count}")
    distances = distance_matrix(space)
    costs = distances if loss is None else finite_matrix("loss", loss, count)
    weights = by_rank(np.ones(count) if prior is None else prior, count)
    if not (np.isfinite(gap) and gap >= 0):
        raise ParameterError(f"gap must be finite and at least 0, got {gap}")
    matrix = np.ones((1, 1))
    if count > 1:
        # A small part of ε is reserved for rounding.
        made = epsilon * (1 - ROUNDING)
        matrix = _programme(distances, weights[:, None] * costs, made, gap)
        if largest_loss(matrix, distances) > epsilon * (1 + ROUNDING):
            raise FastdxError("the linear programme was not solved accurately enough")
    matrix.flags.writeable = False
    why = "All pairs of words and all outputs were checked."
    price = Price(epsilon, why, distance_rows(space), space.metric)
    return Law("optimal", space, lambda word: matrix[word].copy(), price, price)


def _solver() -> tuple[Any, Any]:
    """Return scipy's solver and its sparse matrices."""
    try:
        from scipy import optimize, sparse
    except ModuleNotFoundError as e:  # pragma: no cover
        raise InputTypeError("optimal needs scipy: pip install 'fastdx[optimal]'") from e
    return optimize, sparse


def _programme(
    distances: NDArray[np.float64],
    costs: NDArray[np.float64],
    epsilon: float,
    gap: float,
) -> NDArray[np.float64]:
    """Minimise the loss: first under the constraints of a spanner's edges, then of broken ones."""
    optimize, sparse = _solver()
    count = len(distances)
    edges = _spanner(distances, START)
    ordered = np.concatenate([edges, edges[:, ::-1]])
    # One row per constraint: word, other word, output.
    triples = np.column_stack(
        [np.repeat(ordered, count, axis=0), np.tile(np.arange(count), len(ordered))]
    ).astype(np.intp)
    sums = sparse.kron(sparse.identity(count), np.ones((1, count)), format="csr")
    half = np.exp(np.minimum(epsilon * distances / 2, FAR))
    # Constraints below the solver's accuracy are left out; `_feasible` makes them hold.
    triples = triples[half[triples[:, 0], triples[:, 1]] < np.exp(FAR)]
    for _ in range(ROUNDS):
        word, other, output = triples.T
        rows = np.arange(len(triples))
        # Written as Pr[y|w]·e^(-εd/2) ≤ Pr[y|w']·e^(εd/2), the coefficients have similar sizes.
        values = np.concatenate([1 / half[word, other], -half[word, other]])
        columns = np.concatenate([word * count + output, other * count + output])
        bounds = sparse.csr_matrix(
            (values, (np.concatenate([rows, rows]), columns)), shape=(len(rows), count * count)
        )
        result = optimize.linprog(
            costs.ravel(), A_ub=bounds, b_ub=np.zeros(len(rows)), A_eq=sums, b_eq=np.ones(count),
            bounds=(0, None), method="highs-ipm",
            options={"primal_feasibility_tolerance": TOLERANCE},
        )  # fmt: skip
        if result.status != 0:
            raise FastdxError(f"the linear programme was not solved: HiGHS status {result.status}")
        solved = np.asarray(result.x).reshape(count, count)
        law = _feasible(solved, distances, epsilon)
        found = _violated(solved, half, 4 * count * count)
        near = float((law * costs).sum()) - result.fun <= gap * abs(result.fun)
        if near or not len(found):
            return law
        triples = np.concatenate([triples, found])
    raise FastdxError("the linear programme was not solved: constraints kept being broken")


def _violated(law: NDArray[np.float64], half: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Return the most violated constraints, the worst first; adding them often repairs others."""
    broken: list[NDArray[np.intp]] = []
    excess: list[NDArray[np.float64]] = []
    for w in range(len(law)):
        over = law[w] / half[w][:, None] - law * half[w][:, None]
        pairs = np.argwhere(over > VIOLATED)
        broken.append(np.column_stack([np.full(len(pairs), w), pairs]).astype(np.intp))
        excess.append(over[tuple(pairs.T)])
    found = np.concatenate(broken)
    return found[np.argsort(-np.concatenate(excess))[:most]]


def _feasible(
    law: NDArray[np.float64],
    distances: NDArray[np.float64],
    epsilon: float,
) -> NDArray[np.float64]:
    """Return an ε·d-private law near the given one.

    C(y|w) = max over w' of Pr[y|w']·e^(-ε·d(w, w')) is at least Pr[y|w]. It is ε·d-private by the
    triangle inequality, but its sums Z(w) are above 1. Adding S - Z(w) to one output makes all sums
    S. The result stays ε·d-private if S - Z(w) is at least every
    (Z(w') - Z(w))/(e^(ε·d(w, w')) - 1).
    """
    # Truncated at 650, which is still a metric, so that no output is lost to underflow.
    scaled = np.minimum(epsilon * distances, -LOWEST)
    # An output that the solver gives to no word stays impossible for all words.
    positive_part, factor = np.maximum(law, 0.0), np.exp(-scaled)
    closed = np.stack([(factor[w][:, None] * positive_part).max(axis=0) for w in range(len(law))])
    sums = closed.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = (sums[None, :] - sums[:, None]) / np.expm1(scaled)
    # Words at one place have one law and one sum, so they need nothing.
    least = float(np.nanmax(np.where(scaled > 0, needed, 0.0)))
    total = float(sums.max()) + max(least, 0.0) + SPARE
    # The output that is likely for every word gets the rest; rounding is a small part of it.
    closed[:, int(np.argmax(closed.min(axis=0)))] += total - sums
    return np.asarray(closed / closed.sum(axis=1, keepdims=True))
