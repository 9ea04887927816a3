"""The noise that the mechanisms use or that the papers print, and its densities."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx import Tem
from fastdx._core import hyperbolic_laplace, multivariate_laplace
from fastdx._shared.checks import check_type, counted, one_of, positive
from fastdx.exceptions import ParameterError, ShapeError, VectorError
from fastdx.lab.hyperbolic import clamp

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


@dataclass(frozen=True, eq=False)
class MetropolisSample:
    """Points and diagnostics of a Metropolis-Hastings walk on the hyperboloid."""

    points: NDArray[np.float64] = field(repr=False)
    """Points of the ball, shape (size, n), clamped to 1 - 1e-5."""
    acceptance: float
    """Share of proposals accepted after burn-in."""
    effective_size: float
    """Effective number of independent draws of the distance, over all chains (Geyer's initial
    positive sequence)."""
    r_hat: float
    """Split R̂ of the distance (Gelman et al., Bayesian Data Analysis 3, §11.4): near 1 if the
    chains agree, NaN with fewer than 4 draws a chain."""
    scale: float
    """The tuned scale of a proposal, averaged over the chains."""


def hyperbolic_metropolis(
    n: int,
    epsilon: float,
    size: int,
    *,
    base: str = "ball",
    burn_in: int = 2000,
    thin: int = 500,
    chains: int = 8,
    seed: int | None = None,
) -> MetropolisSample:
    """Draw as ICDM'19's Algorithm 2 does, but with the correct stationary law: by a Markov chain.

    The state is a point's n spatial coordinates x on the hyperboloid, with ‖x‖ = sinh ρ; they have
    no boundary. With respect to dx the laws have densities e^(-ερ)/cosh ρ (volume) and
    e^(-ερ)(1 + cosh ρ)^(-n)/cosh ρ (ball). The second factor and the last come from the Jacobian of
    r = tanh(ρ/2), which the paper omits. The tail of ‖x‖ is as heavy as s^(-2-ε), in which steps of
    one size get stuck (at n = 300 such chains did not agree). So a step makes two proposals in
    turn. The first adds a normal vector of standard deviation scale·cosh ρ, which turns the point.
    The second multiplies ‖x‖ by a log-normal factor. Each is accepted or rejected, and Hastings'
    ratio corrects for both.

    Parameters
    ----------
    n, epsilon, size, base, seed
        As for `hyperbolic_laplace`.
    burn_in : int, optional
        Steps before the first draw, in which alone the proposals are tuned.
    thin : int, optional
        Steps from one draw to the next.
    chains : int, optional
        Independent chains.

    Returns
    -------
    MetropolisSample
        Points, acceptance rate, effective sample size, R̂.
    """
    one_of("base", base, ("ball", "volume"))
    size, burn_in = counted("size", size, 0, 10**9), counted("burn_in", burn_in, 1, 10**9)
    thin, chains = counted("thin", thin, 1, 10**9), counted("chains", chains, 1, 10**6)
    # Each starts at a typical distance, in a random direction.
    start = hyperbolic_laplace(n, epsilon, chains, base=base, seed=seed)
    rng = np.random.default_rng(seed)
    radius = np.linalg.norm(start, axis=1)
    distance = 2 * np.arctanh(np.minimum(radius, 1 - 1e-12))
    x = start * (np.sinh(distance) / radius)[:, None]

    def log_density(norm2: NDArray[np.float64]) -> NDArray[np.float64]:
        cosh = np.sqrt(1 + norm2)
        ball = n * np.log1p(cosh) if base == "ball" else 0.0
        return np.asarray(-epsilon * np.arcsinh(np.sqrt(norm2)) - ball - np.log(cosh))

    norm2 = (x * x).sum(axis=1)
    density = log_density(norm2)

    def step(scales: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Make both proposals in every chain; return which were accepted."""
        nonlocal x, norm2, density
        normal = rng.standard_normal((chains, n))
        turned = x + (scales[0] * np.sqrt(1 + norm2))[:, None] * normal
        length2 = (turned * turned).sum(axis=1)
        # ln of the proposal density backwards over that forwards.
        ratio = (1 + norm2) / (1 + length2)
        back = (n * np.log(ratio) + (normal * normal).sum(axis=1) * (1 - ratio)) / 2
        there = log_density(length2)
        turn = -rng.standard_exponential(chains) <= there - density + back
        x = np.where(turn[:, None], turned, x)
        norm2, density = np.where(turn, length2, norm2), np.where(turn, there, density)

        log = scales[1] * rng.standard_normal(chains)
        length2 = norm2 * np.exp(2 * log)
        there = log_density(length2)
        # The factor stretches the volume.
        stretch = -rng.standard_exponential(chains) <= there - density + n * log
        stretch &= (length2 >= np.finfo(float).tiny) & np.isfinite(length2)
        x = np.where(stretch[:, None], x * np.exp(log)[:, None], x)
        norm2, density = np.where(stretch, length2, norm2), np.where(stretch, there, density)
        return np.stack([turn, stretch])

    each = -(-size // chains)
    points, distances = np.empty((chains, each, n)), np.empty((chains, each))
    with np.errstate(over="ignore", invalid="ignore"):
        scales = np.repeat([[n**-0.75], [1.0]], chains, axis=1)
        for i in range(burn_in):  # Robbins and Monro, towards an acceptance of 0.4
            scales *= np.exp(4 / (10 + i) ** 0.6 * (step(scales) - 0.4))
        accepted = 0
        for i in range(each):
            accepted += sum(int(step(scales).sum()) for _ in range(thin))
            sinh = np.sqrt(norm2)
            distances[:, i] = np.arcsinh(sinh)
            points[:, i] = clamp(x / (1 + np.hypot(sinh, 1))[:, None])  # r/‖x‖ = 1/(1 + cosh ρ)
    return MetropolisSample(
        points.reshape(-1, n)[:size],
        accepted / max(1, 2 * thin * each * chains),
        sum(map(_effective_size, distances)),
        _r_hat(distances),
        float(scales[0].mean()),
    )


def _effective_size(x: NDArray[np.float64]) -> float:
    """Return n / (1 + 2 Σ autocorrelations), over pairs of lags while their sum is positive."""
    apart = x - x.mean() if len(x) else x
    covariances = np.correlate(apart, apart, "full")[len(x) - 1 :] if len(x) > 1 else np.zeros(1)
    if covariances[0] <= 0:
        return float(len(x))
    pairs = covariances[: len(x) // 2 * 2].reshape(-1, 2).sum(axis=1) / covariances[0]
    positive_pairs = pairs[: len(pairs) if (pairs > 0).all() else int(np.argmax(pairs <= 0))]
    return float(len(x) / max(2 * positive_pairs.sum() - 1, 1 / len(x)))


def _r_hat(chains: NDArray[np.float64]) -> float:
    """Return split R̂: every chain in two halves."""
    half = chains.shape[1] // 2
    if half < 2:
        return math.nan
    halves = chains[:, : 2 * half].reshape(-1, half)
    within, between = halves.var(axis=1, ddof=1).mean(), halves.mean(axis=1).var(ddof=1)
    return float(np.sqrt((half - 1) / half + between / within))


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
