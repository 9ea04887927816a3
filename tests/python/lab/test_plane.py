"""The law of noise in one and two dimensions: by other quadratures, by draws, at its price."""

from itertools import pairwise
from math import atan2, cos, exp, inf, pi, sin

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import fastdx
from fastdx import Mahalanobis, MultivariateLaplace
from fastdx.lab import audit, laws
from fastdx.lab.comparison import compare, families
from helpers.draws import assert_draws
from helpers.spaces import numbered

RNG = np.random.default_rng(11)


def by_angle(points: np.ndarray, word: int, rate: float, to_round: np.ndarray) -> list[float]:
    """Every cell by what radii it has in each direction: ∫ (S(a) - S(b)) dθ/2π."""
    back = np.linalg.inv(to_round)
    found = []
    for y in range(len(points)):
        others = np.delete(np.arange(len(points)), y)
        normal = points[others] - points[y]
        room = ((points[others] ** 2).sum(1) - points[y] @ points[y]) / 2 - normal @ points[word]
        normal = normal @ back

        def radii(
            t: float, normal: np.ndarray = normal, room: np.ndarray = room
        ) -> tuple[float, float]:
            slope, low, high = normal @ np.array([cos(t), sin(t)]), 0.0, inf
            for s, c in zip(slope.tolist(), room.tolist(), strict=True):
                if s > 0:
                    high = min(high, c / s)
                elif s < 0:
                    low = max(low, c / s)
                elif c < 0:
                    return 1.0, 0.0
            return low, high

        def density(t: float) -> float:
            low, high = radii(t)
            if low >= high:
                return 0.0
            far = 0.0 if high == inf else (1 + rate * high) * exp(-rate * high)
            return ((1 + rate * low) * exp(-rate * low) - far) / (2 * pi)

        # Where the radii bend: corners, and directions along a border.
        cuts = {-pi, pi}
        for i in range(len(others)):
            around = atan2(normal[i, 1], normal[i, 0])
            cuts |= {around + pi / 2, around - pi / 2}
            for j in range(i):
                two = normal[[i, j]]
                if abs(np.linalg.det(two)) > 1e-12:
                    corner = np.linalg.solve(two, room[[i, j]])
                    cuts.add(atan2(corner[1], corner[0]))
        at = sorted({(c + pi) % (2 * pi) - pi for c in cuts} | {-pi, pi})
        found.append(sum(integrate.quad(density, a, b, epsabs=1e-14, epsrel=1e-12)[0]
                         for a, b in pairwise(at)))  # fmt: skip
    return found


def round_map(points: np.ndarray, mixing: float) -> np.ndarray:
    covariance = np.cov(points.T, bias=True)
    shape = mixing * covariance * 2 / np.trace(covariance) + (1 - mixing) * np.eye(2)
    # The symmetric root: any root of A⁻¹ makes the noise round.
    values, vectors = np.linalg.eigh(shape)
    return np.asarray(vectors @ np.diag(values**-0.5) @ vectors.T)


SPACES = {
    "points": numbered(RNG.normal(size=(7, 2))),
    "a grid": numbered([[x, y] for x in range(3) for y in range(3)]),
    "a line": numbered([[0.0, 0.0], [1.0, 0.0], [2.5, 0.0], [-1.0, 0.0]]),
    "two words": numbered([[0.3, 0.1], [-0.4, 1.0]]),
    "near ones": numbered([[0.0, 0.0], [1e-3, 1e-3], [1.0, 0.0], [0.0, 1.0]]),
}


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("epsilon", [0.4, 3.0])
def test_cells_are_those_of_another_quadrature(name: str, epsilon: float) -> None:
    e = SPACES[name]
    points = e.vectors.astype(float)
    kinds: list[tuple[MultivariateLaplace | Mahalanobis, np.ndarray, float]] = [
        (MultivariateLaplace(e, epsilon), np.eye(2), epsilon)
    ]
    elliptical = Mahalanobis(e, epsilon, mixing=0.7)
    kinds.append((elliptical, round_map(points, 0.7), elliptical.nominal))
    for m, to_round, rate in kinds:
        law = laws.of_noise(m)
        for word in (0, len(e) - 1):
            expected = by_angle(points, word, rate, to_round)
            assert sum(expected) == pytest.approx(1, abs=1e-8)
            np.testing.assert_allclose(law.row(word), expected, rtol=1e-7, atol=1e-9)
            assert law.errors is not None
            # Words that are near one line have corners far away, which rounding moves.
            assert law.errors(word).max() < 1e-5


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("kind", [MultivariateLaplace, Mahalanobis])
def test_a_million_draws_follow_the_law(
    kind: type[MultivariateLaplace | Mahalanobis], dim: int
) -> None:
    points = np.random.default_rng(3).normal(size=(30, dim)).round(1)
    # Two words at one place, and one that is never released.
    points[7] = points[3]
    m = kind(numbered(points), 2.5, seed=9, exclude=["w5"])
    law = laws.of_noise(m)
    assert law.row(2)[[5, 7]].tolist() == [0.0, 0.0]
    for word in (0, 5):
        assert_draws(m, f"w{word}", law.row(word), 1_000_000)


@settings(max_examples=60)
@given(
    count=st.integers(1, 12),
    dim=st.integers(1, 2),
    epsilon=st.sampled_from([1e-6, 1e-2, 1.0, 7.0, 1e3]),
    scale=st.sampled_from([1e-3, 1.0, 40.0]),
    rounded=st.booleans(),
    mixing=st.sampled_from([None, 0.0, 0.9]),
    seed=st.integers(0, 2**32 - 1),
)
def test_laws_keep_their_price(
    count: int,
    dim: int,
    epsilon: float,
    scale: float,
    rounded: bool,
    mixing: float | None,
    seed: int,
) -> None:
    points = np.random.default_rng(seed).normal(size=(count, dim))
    e = numbered(scale * (points.round() if rounded else points))
    m = (MultivariateLaplace(e, epsilon) if mixing is None
         else Mahalanobis(e, epsilon, mixing=mixing))  # fmt: skip
    law = laws.of_noise(m)
    matrix = law.matrix()
    assert law.errors is not None and (matrix >= 0).all()
    errors = np.array([law.errors(i) for i in range(count)])
    # The errors allow the sum to miss 1 by this much.
    slack = (matrix * np.where(np.isfinite(errors), np.expm1(np.minimum(errors, 1)), 0)).sum(1)
    assert (np.abs(matrix.sum(axis=1) - 1) <= slack + 1e-12).all()
    found = audit.certify(m)
    assert isinstance(found, audit.LargestLoss)
    assert 0 <= found.epsilon_low <= found.epsilon <= m.epsilon * (1 + 1e-9)
    assert 0 <= found.local_low <= found.local
    # ε·d of all pairs, within the errors.
    for price in (law.proved, law.claimed):
        assert price.distances is not None
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(matrix)
            for a in range(count):
                lost = np.nan_to_num(logs[a] - logs, nan=0.0) - errors[a] - errors
                allowed = price.epsilon * price.distances(a)
                assert (lost.max(axis=1) <= allowed * (1 + 1e-9) + 1e-12).all()


def test_an_interval_for_the_epsilon_of_madlib() -> None:
    e = numbered(RNG.normal(size=(60, 2)))
    found = audit.certify(MultivariateLaplace(e, 3.0))
    assert isinstance(found, audit.LargestLoss)
    assert 2.9 < found.epsilon_low <= found.epsilon <= 3.0
    assert found.epsilon - found.epsilon_low < 1e-6 and found.local - found.local_low < 1e-6
    law = laws.of_noise(MultivariateLaplace(e, 3.0)).matrix()
    a, b, y = (int(w[1:]) for w in (*found.pair, found.output))
    ratio = np.log(law[a, y] / law[b, y]) / e.distance(*found.pair)
    assert found.epsilon_low <= ratio <= found.epsilon
    # Far apart the smallest probabilities are not computed: the proof is what is left.
    far = audit.certify(MultivariateLaplace(e, 3000.0))
    assert isinstance(far, audit.LargestLoss)
    assert far.epsilon_low < far.epsilon == 3000.0 and "at least" in str(far)
    # Against another metric the proof says nothing.
    other = audit.certify(MultivariateLaplace(e, 3000.0), metric=numbered(RNG.normal(size=(60, 2))))
    assert isinstance(other, audit.LargestLoss) and other.epsilon == inf > other.epsilon_low
    one = audit.certify(MultivariateLaplace(numbered([[1.0, 2.0]]), 1.0))
    assert isinstance(one, audit.LargestLoss) and (one.epsilon, one.local) == (0.0, 0.0)


def test_noise_in_the_plane_is_compared_by_its_law() -> None:
    e = numbered(RNG.normal(size=(15, 2)))
    m = Mahalanobis(e, 2.0, mixing=0.5)
    values, found = next(compare({"noise": m})).values, audit.certify(m)
    assert isinstance(found, audit.LargestLoss)
    assert (values["per_distance"], values["any_two"]) == (found.epsilon, found.local)
    line = next(compare(families(e, ["laplace"]), epsilon=2.0))
    assert line.values["per_distance"] <= 2.0 and "–" not in line.cells()[6:8]


def test_the_line_is_exact() -> None:
    """One dimension: against Laplace's distribution function."""
    x = np.array([-2.0, 0.0, 0.5, 3.0])
    law = laws.of_noise(MultivariateLaplace(numbered(x[:, None]), 1.7))
    middles = [-inf, *((x[1:] + x[:-1]) / 2), inf]
    for i in range(4):
        expected = np.diff(stats.laplace.cdf(np.array(middles), x[i], 1 / 1.7))
        np.testing.assert_allclose(law.row(i), expected, rtol=1e-12)


def test_what_has_no_such_law() -> None:
    e = numbered(RNG.normal(size=(5, 2)))
    with pytest.raises(fastdx.InputTypeError, match="MultivariateLaplace or a Mahalanobis"):
        laws.of_noise(fastdx.Tem(e, 1.0))  # type: ignore[arg-type]
    with pytest.raises(fastdx.ParameterError, match="one or two dimensions, this one has 3"):
        laws.of_noise(MultivariateLaplace(numbered(np.eye(3)), 1.0))
    with pytest.raises(fastdx.ParameterError, match="remap"):
        laws.of_noise(MultivariateLaplace(e, 1.0, remap=2))
    with pytest.raises(fastdx.TooLargeError, match="2000 words"):
        laws.of_noise(MultivariateLaplace(numbered(RNG.normal(size=(2001, 2))), 1.0))
