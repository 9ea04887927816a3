"""The noise that the mechanisms use or that the papers print, and its densities."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx import Tem
from fastdx._core import (
    MetropolisSample,
    hyperbolic_laplace,
    hyperbolic_metropolis,
    multivariate_laplace,
)
from fastdx._shared.checks import check_type, counted, positive
from fastdx.exceptions import ParameterError, ShapeError, VectorError

__all__ = [
    "MetropolisSample",
    "gumbel_draws",
    "hyperbolic_laplace",
    "hyperbolic_metropolis",
    "log_constant",
    "log_density",
    "multivariate_laplace",
]


def gumbel_draws(tem: Tem, word: str, size: int, *, seed: int | None = None) -> NDArray[np.int64]:
    """Draw replacements of a word as TEM'21 prints it (Algorithm 3): by Gumbel noise.

    Each word of the list L within γ scores -d(w,y), and ⊥, which stands for all others,
    -γ + (2/ε)·ln|W∖L|. All get Gumbel noise of scale 2/ε, and the largest is released; for ⊥, one
    of the words beyond γ, each as likely. It is the law of `Tem`, which draws it by integers.
    Noise in floating point proves nothing: its tails end, and numpy's generator is not
    cryptographic.

    Parameters
    ----------
    tem : Tem
        One without cover, base measure, history or remapping.
    word : str
        A word of its space.
    size : int
        Number of draws.
    seed : int, optional
        Makes the draws reproducible.

    Returns
    -------
    numpy.ndarray of int64, shape (size,)
        Ids of words.

    Raises
    ------
    ParameterError
        The Tem has a cover, a base measure, a history or a remapping, or `size` is out of range.
    UnknownWordError
        The word is not in the space.

    Examples
    --------
    >>> from fastdx import Embedding, Tem
    >>> from fastdx.lab.noise import gumbel_draws
    >>> space = Embedding(["a", "b", "c"], [[0.0], [1.0], [9.0]])
    >>> drawn = gumbel_draws(Tem(space, epsilon=4.0), "a", 1000, seed=1)
    >>> [space.words[i] for i in np.unique(drawn)]
    ['a', 'b']
    """
    check_type("tem", tem, Tem)
    size = counted("size", size, 0, 10**9)
    if tem.cover is not None or tem.base is not None or tem.remap:
        raise ParameterError("tem must have neither a cover nor a base measure nor a remapping")
    rng = np.random.default_rng(seed)
    distances, scale = tem.space.distances(word), 2 / tem.nominal
    (near,), (far,) = (np.nonzero(part) for part in (distances <= tem.gamma, distances > tem.gamma))
    scores = -distances[near]
    if len(far):
        scores = np.append(scores, scale * math.log(len(far)) - tem.gamma)
    drawn = np.empty(size, np.int64)
    for start in range(0, size, step := max(1, 2**22 // len(distances))):
        some = drawn[start : start + step]
        noise = rng.gumbel(0.0, scale, (len(some), len(scores)))
        best = (noise + scores).argmax(axis=1)
        beyond = best == len(near)  # ⊥ stands last, if there is one
        some[~beyond] = near[best[~beyond]]
        if beyond.any():
            some[beyond] = rng.choice(far, beyond.sum())
    return drawn


def log_constant(n: int, epsilon: float, base: str = "euclidean") -> float:
    """Return ln c_n: c_n·exp(-ε·d(z, 0)) integrates to 1 over n dimensions.

    With S = 2·π^(n/2)/Γ(n/2), the surface of the unit sphere, 1/c_n is

    - 'euclidean': S·Γ(n)/ε^n (WSDM'20 §2.6; POST'19, the n-dimensional Laplace);
    - 'volume': S·2^(-n)·B((ε-n+1)/2, n);
    - 'ball': S·B(n, ε+1)·₂F₁(ε, n; n+ε+1; -1). In one dimension this is
      2·₂F₁(1, ε; 2+ε; -1)/(1+ε) (ICDM'19, equation 7).

    n is from 1 to 1,000,000, ε positive, and more than n - 1 for 'volume', where below no such
    density exists. `base` says the distance d and the measure: Euclidean with Lebesgue's;
    hyperbolic on the Poincaré ball with hyperbolic volume, or with Lebesgue's measure as in
    ICDM'19. A `ParameterError` names what lies outside its domain.

    Examples
    --------
    >>> from math import exp, pi
    >>> from fastdx.lab.noise import log_constant
    >>> round(exp(log_constant(2, 3.0)) * 2 * pi, 9)
    9.0
    """
    n, epsilon = counted("n", n, 1, 10**6), positive("epsilon", epsilon)

    def log_beta(a: float, b: float) -> float:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

    if base == "euclidean":
        radial = math.lgamma(n) - n * math.log(epsilon)
    elif base == "volume":
        if not epsilon > n - 1:
            raise ParameterError(f"epsilon must be more than n - 1 = {n - 1}, got {epsilon}")
        radial = log_beta((epsilon - n + 1) / 2, n) - n * math.log(2)
    elif base == "ball":
        # ₂F₁ = 2^(-a)·₂F₁(a, a+1; n+ε+1; ½) by Pfaff, whose terms are positive. From the term 2a on
        # each is less than 0.6 of the one before.
        a = min(n, epsilon)
        k = np.arange(math.ceil(2 * a) + 100)
        ratios = (a + k) / (n + epsilon + 1 + k) * (a + 1 + k) / (k + 1) / 2
        terms = np.concatenate([[0.0], np.log(ratios).cumsum()])
        radial = log_beta(n, epsilon + 1) + float(np.logaddexp.reduce(terms)) - a * math.log(2)
    else:
        raise ParameterError(f"base must be 'euclidean', 'volume' or 'ball', got {base!r}")
    return math.lgamma(n / 2) - math.log(2) - n / 2 * math.log(math.pi) - radial


def log_density(z: ArrayLike, epsilon: float, *, base: str = "euclidean") -> NDArray[np.float64]:
    """Return the log-density of centred noise at points: ln c_n - ε·d(z, 0), float64, shape (m,).

    Densities themselves leave the range of floating point in many dimensions.

    Around a word w it is that of z - w, or for 'volume' that of ``mobius_add(-w, z)``. For 'ball'
    it is not: translations of the ball change Lebesgue's measure, so that noise costs ε + n.

    z has the shape (m, n), for 'volume' and 'ball' with norms below 1; a `ShapeError` or a
    `VectorError` names the row that is wrong.

    Examples
    --------
    >>> from fastdx.lab.noise import log_density
    >>> center, away = log_density([[0.0, 0.0], [0.5, 0.0]], 3.0, base="volume")
    >>> round(float(center - away), 6)  # ε times the distance, 2·artanh(0.5)
    3.295837
    """
    points = np.asarray(z, dtype=np.float64)
    if points.ndim != 2 or not points.shape[1]:
        raise ShapeError(f"z has shape {points.shape}, expected (m, n) with n at least 1")
    constant = log_constant(points.shape[1], epsilon, base)
    distance: NDArray[np.float64] = np.linalg.norm(points, axis=1)
    wrong = ~(distance < (np.inf if base == "euclidean" else 1))
    if wrong.any():
        raise VectorError(f"z, row {int(wrong.argmax())}, is not finite or not in the unit ball")
    return constant - epsilon * (distance if base == "euclidean" else 2 * np.arctanh(distance))
