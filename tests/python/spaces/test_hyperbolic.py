"""Hyperbolic space from Python: geometry against 60 digits, noise, the mechanism."""

import pickle
from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

import fastdx
from fastdx import Embedding, HyperbolicLaplace
from fastdx.lab import hyperbolic as h
from fastdx.lab import noise
from fastdx.lab.noise import hyperbolic_laplace, hyperbolic_metropolis, log_constant
from helpers import ROOT
from helpers.bounds import intervals
from helpers.draws import ALARM
from helpers.laws import distances_of
from helpers.spaces import numbered

getcontext().prec = 60

Vector = list[Decimal]


def exactly(x: np.ndarray) -> Vector:
    return [Decimal(float(v)) for v in x]


def dot(x: Vector, y: Vector) -> Decimal:
    return sum((a * b for a, b in zip(x, y, strict=True)), Decimal(0))


def exact_distance(x: Vector, y: Vector) -> Decimal:
    d = [a - b for a, b in zip(x, y, strict=True)]
    s = (dot(d, d) / ((1 - dot(x, x)) * (1 - dot(y, y)))).sqrt()
    return 2 * (s + (1 + s * s).sqrt()).ln()


def exact_sum(a: Vector, b: Vector) -> Vector:
    ab, a2, b2 = dot(a, b), dot(a, a), dot(b, b)
    below = 1 + 2 * ab + a2 * b2
    return [((1 + 2 * ab + b2) * x + (1 - a2) * y) / below for x, y in zip(a, b, strict=True)]


norms = st.sampled_from([0.0, 1e-9, 1e-3, 0.3, 0.9, 0.999, 0.99999])


@settings(max_examples=150)
@given(st.integers(1, 12), norms, norms, st.integers(0, 2**32), st.sampled_from([0, 1, 2]))
def test_geometry_against_sixty_digits(n: int, a: float, b: float, seed: int, kind: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    x *= a / np.linalg.norm(x)
    y = rng.normal(size=n)
    y *= b / np.linalg.norm(y)
    if kind == 1:  # neighbours
        y = x * (1 - 1e-9) + 1e-12
        y *= min(1.0, 0.99999 / max(float(np.linalg.norm(y)), 1e-300))
    elif kind == 2:  # nearly opposite
        y = -x * 0.999
    d = exact_distance(exactly(x), exactly(y))
    assert abs(Decimal(float(h.distance([x], [y])[0])) - d) <= Decimal("1e-6") * d
    # A point that is off by δ has moved by 2δ/(1-‖x‖²).
    moved, true = h.mobius_add([x], [y])[0], exact_sum(exactly(x), exactly(y))
    off = [Decimal(float(m)) - t for m, t in zip(moved, true, strict=True)]
    room = 1 - dot(true, true)
    assert dot(off, off).sqrt() <= Decimal("1e-6") * room + Decimal("2e-15")
    zero = [Decimal(0)] * n
    t, *rest = h.to_lorentz([x])[0]
    x2 = dot(exactly(x), exactly(x))
    assert abs(Decimal(float(t)) / ((1 + x2) / (1 - x2)) - 1) < Decimal("1e-6")
    # Coordinates as large as t are rounded by t·2⁻⁵³ each: no distance of them is closer than that.
    u, v = (exactly(h.to_lorentz([z])[0]) for z in (x, y))
    c = ((1 + dot(u[1:], u[1:])) * (1 + dot(v[1:], v[1:]))).sqrt() - dot(u[1:], v[1:])
    apart = (c + max(c * c - 1, Decimal(0)).sqrt()).ln()
    found = float(h.lorentz_distance(h.to_lorentz([x]), h.to_lorentz([y]))[0])
    assert abs(Decimal(found) - apart) <= Decimal("1e-9") * apart + Decimal("1e-15") * max(
        u[0], v[0]
    )
    if kind == 0:
        assert abs(Decimal(found) - d) <= Decimal("1e-9") * d
    inner = Decimal(float(h.lorentz_inner(h.to_lorentz([x]), h.to_lorentz([y]))[0]))
    exactly_inner = dot(u[1:], v[1:]) - u[0] * v[0]
    assert abs(inner - exactly_inner) <= Decimal("1e-14") * u[0] * v[0]
    back = exactly(h.from_lorentz([[t, *rest]])[0])
    assert abs(exact_distance(back, zero) - exact_distance(exactly(x), zero)) < Decimal("1e-6")
    there = exactly(h.exp_map([x], h.log_map([x], [y]))[0])
    assert exact_distance(there, exactly(y)) <= Decimal("1e-4") * (1 + d)


def test_bad_points_are_named() -> None:
    with pytest.raises(fastdx.VectorError, match="y, row 1,"):
        h.distance([[0.1], [0.2]], [[0.3], [1.0]])
    with pytest.raises(fastdx.ShapeError, match="y has shape"):
        h.distance([[0.1]], [[0.3], [0.1]])
    clamped = h.clamp([[3.0, -4.0], [0.1, 0.2]])
    assert np.allclose(clamped, [[0.6 * (1 - 1e-5), -0.8 * (1 - 1e-5)], [0.1, 0.2]], rtol=1e-15)
    with pytest.raises(fastdx.ParameterError, match="lam"):
        h.clamp([[0.1]], 2.0)


def test_points_off_the_hyperboloid_are_named() -> None:
    on = h.to_lorentz([[0.1, 0.2], [0.3, 0.4]])
    for off in (1.1, -1.0, np.nan, np.inf):
        wrong = on.copy()
        wrong[1, 0] *= off
        with pytest.raises(fastdx.VectorError, match="y, row 1, is not on the hyperboloid"):
            h.lorentz_distance(on, wrong)
    # The inner product is one of any vectors.
    assert h.lorentz_inner([[2.0, 3.0, 4.0]], [[5.0, 6.0, 7.0]]).tolist() == [36.0]
    for x, y in (([[1.0]], [[1.0]]), (on, on[:1])):
        with pytest.raises(fastdx.ShapeError):
            h.lorentz_inner(x, y)
    with pytest.raises(fastdx.ShapeError, match="x has shape"):
        h.lorentz_distance([[1.0]], [[1.0]])


def test_noise_that_does_not_exist() -> None:
    with pytest.raises(fastdx.ParameterError, match="Tem on the Poincaré metric"):
        hyperbolic_laplace(5, 4.0, 1)
    for bad in ({"thin": 0}, {"chains": 0}, {"burn_in": 0}):
        with pytest.raises(fastdx.ParameterError):
            hyperbolic_metropolis(3, 1.0, 10, **bad)


@pytest.mark.parametrize(("base", "n", "epsilon"), [
    ("euclidean", 1, 0.3), ("euclidean", 7, 2.0), ("volume", 1, 0.4), ("volume", 5, 4.5),
    ("volume", 20, 60.0), ("ball", 1, 0.3), ("ball", 3, 0.5), ("ball", 4, 30.0), ("ball", 12, 2.0),
])  # fmt: skip
def test_densities_integrate_to_one_and_fit_the_noise(base: str, n: int, epsilon: float) -> None:
    flat = base == "euclidean"
    at = np.linspace(0, 60 * (n + 1) / epsilon if flat else 36, 100_001)
    r = at if flat else np.tanh(at / 2)
    sphere = np.sinh(at) if base == "volume" else r
    area = 2 * np.pi ** (n / 2) / special.gamma(n / 2) * sphere ** (n - 1)
    stretch = (1 - r**2) / 2 if base == "ball" else 1.0
    points = np.zeros((len(r), n))
    points[:, 0] = r
    density = np.exp(noise.log_density(points, epsilon, base=base))
    mass = integrate.cumulative_trapezoid(density * area * stretch, at, initial=0)
    assert mass[-1] == pytest.approx(1, abs=2e-4)
    for factor, wrong in ((1, False), (1.4, True)):  # noise of another ε is convicted
        z = (noise.multivariate_laplace(n, factor * epsilon, 5000, seed=4) if flat
             else hyperbolic_laplace(n, factor * epsilon, 5000, base=base, seed=4))  # fmt: skip
        assert z.shape == (5000, n)
        p = stats.kstest(np.linalg.norm(z, axis=1), lambda x: np.interp(x, r, mass)).pvalue
        assert (p < ALARM) == wrong


@pytest.mark.parametrize(("base", "n", "epsilon"), [
    ("ball", 2, 0.125), ("ball", 2, 8.0), ("ball", 20, 1.0), ("ball", 100, 20.0),
    ("volume", 3, 4.0),
])  # fmt: skip
def test_the_walk_has_the_law_of_the_density(base: str, n: int, epsilon: float) -> None:
    at = np.linspace(0, 36, 400_001)[1:]
    r = np.tanh(at / 2)
    log = (n - 1) * np.log(np.sinh(at) if base == "volume" else r) - epsilon * at
    log += np.log((1 - r) * (1 + r)) if base == "ball" else 0.0
    walk = hyperbolic_metropolis(n, epsilon, 4000, base=base, thin=50, chains=40, seed=4)
    assert walk.points.shape == (4000, n) and 0.3 < walk.acceptance < 0.6
    assert abs(walk.r_hat - 1) < 0.05 and walk.effective_size > 3000 and walk.scale > 0
    found = np.linalg.norm(walk.points, axis=1)
    for more, wrong in ((0, False), (2, True)):  # the law of another ε is told apart
        mass = np.cumsum(np.exp(log - more * at - log.max()))
        p = stats.kstest(found, lambda x, m=mass: np.interp(x, r, m / m[-1])).pvalue
        assert (p < ALARM) == wrong


def test_densities_on_the_plane_and_the_papers_constant() -> None:
    # In Cartesian coordinates, without the surface of a sphere.
    x, step = np.linspace(-1, 1, 1001, retstep=True)
    grid = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
    grid = grid[np.linalg.norm(grid, axis=1) < 1]
    flat, curved = (np.exp(noise.log_density(grid, epsilon, base=base))
                    for epsilon, base in ((3.0, "ball"), (9.0, "volume")))  # fmt: skip
    curved *= (2 / (1 - (grid**2).sum(axis=1))) ** 2
    assert flat.sum() * step**2 == pytest.approx(1, rel=1e-4)
    assert curved.sum() * step**2 == pytest.approx(1, rel=1e-4)
    for epsilon in (0.125, 1.0, 8.0):
        printed = (1 + epsilon) / 2 / special.hyp2f1(1, epsilon, 2 + epsilon, -1)
        assert np.exp(log_constant(1, epsilon, "ball")) == pytest.approx(printed, rel=1e-12)
    # Without noise's ε the whole ball is alike, and with much of it the ball is flat.
    assert log_constant(3, 1e-12, "ball") == pytest.approx(-np.log(4 * np.pi / 3), abs=1e-9)
    assert log_constant(300, 1e9, "ball") == pytest.approx(log_constant(300, 2e9), rel=1e-5)
    for z, epsilon, base, said in (
        ([[0.0] * 5], 4.0, "volume", "n - 1 = 4"), ([[0.1], [1.0]], 1.0, "ball", "row 1"),
        ([1.0], 1.0, "ball", "shape"), ([[0.0]], 0.0, "ball", "epsilon"),
        ([[0.0]], 1.0, "cube", "base"),
    ):  # fmt: skip
        with pytest.raises(fastdx.FastdxError, match=said):
            noise.log_density(z, epsilon, base=base)


@pytest.fixture(scope="module")
def tree() -> Embedding:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(40, 2))
    x *= (rng.uniform(0, 0.99, 40) / np.linalg.norm(x, axis=1))[:, None]
    return numbered(x, metric="poincare")


def test_the_mechanism(tree: Embedding) -> None:
    m = HyperbolicLaplace(tree, 2.0)
    assert (m.epsilon, m.nominal, m.spec["base"]) == (2.0, 2.0, "volume")
    paper = HyperbolicLaplace.from_paper(tree, 0.5)
    assert (paper.epsilon, paper.nominal) == (2.5, 0.5)
    assert paper.guarantee.epsilon == 2.5 and "does not hold" in str(paper.guarantee)
    assert "nominal=0.5, base='ball'" in repr(paper)
    other = paper.with_epsilon(3.0)  # the same noise, whatever becomes of the parameters
    assert pickle.loads(pickle.dumps(other)).spec["base"] == other.spec["base"] == "ball"
    assert abs(m.guarantee.bound("w1", "w2") - 2.0 * tree.distance("w1", "w2")) < 1e-9
    assert HyperbolicLaplace(tree, 2.1, base="ball").epsilon == 2.1
    for bad, match in (
        ({"epsilon": 1.0}, "Tem"), ({"epsilon": 2.0, "base": "ball"}, "Tem"),
        ({"epsilon": np.nan}, "epsilon"), ({"epsilon": 2.0, "base": "cube"}, "'ball'"),
    ):  # fmt: skip
        with pytest.raises(fastdx.ParameterError, match=match):
            HyperbolicLaplace(tree, **bad)
    with pytest.raises(fastdx.ParameterError, match="poincare"):
        HyperbolicLaplace(numbered(tree.vectors), 3.0)


AXIS = [0.0, 0.5, -0.5, 0.97, -0.97, 0.999, -0.999]


def certain_loss(m: HyperbolicLaplace, draws: int) -> float:
    """A lower bound on the true ε, wrong with a probability below 1e-8."""
    words, d = m.space.words, distances_of(m.space)
    counts = np.array([np.bincount(m.sample(w, draws), minlength=len(words)) for w in words])
    low, high = intervals(counts, draws)
    with np.errstate(divide="ignore"):
        certain = np.log(low[:, None] / high).max(axis=2)
    return float((certain / np.where(d > 0, d, np.inf)).max())


@pytest.mark.parametrize(("n", "base", "epsilon", "draws"), [
    (2, "volume", 1.1, 100_000), (2, "volume", 3.0, 100_000), (2, "ball", 2.5, 100_000),
    (2, "ball", 6.0, 100_000), (5, "volume", 4.1, 100_000), (5, "ball", 5.5, 100_000),
    (20, "volume", 19.1, 30_000), (20, "ball", 20.5, 30_000),
])  # fmt: skip
def test_the_proved_epsilon_holds_on_adversarial_words(
    n: int, base: str, epsilon: float, draws: int
) -> None:
    e = numbered(np.outer(AXIS, np.eye(n)[0]), metric="poincare")
    m = HyperbolicLaplace(e, epsilon, base=base, seed=5)
    assert m.epsilon == pytest.approx(epsilon, abs=1e-12) and certain_loss(m, draws) <= epsilon


@pytest.mark.parametrize(("n", "nominal", "least"), [(2, 0.5, 1.5), (5, 1.0, 2.5), (20, 1.0, 1.5)])
def test_the_papers_nominal_epsilon_is_broken_by_the_papers_noise(
    n: int, nominal: float, least: float
) -> None:
    """The field states ε·d; no one may "correct" the proved ε back to that."""
    e = numbered(np.outer(AXIS[:5], np.eye(n)[0]), metric="poincare")
    m = HyperbolicLaplace.from_paper(e, nominal, seed=6)
    assert (m.epsilon, m.nominal) == (nominal + n, nominal)
    assert max(least, nominal) < certain_loss(m, 100_000) <= m.epsilon


@pytest.mark.parametrize(("name", "file", "shape", "metric", "most", "words"), [
    ("english", "default", (20_000, 50), "euclidean", 2_500_000, ("coffee", "tea", "parliament")),
    ("nouns", "nouns", (10_498, 10), "poincare", 1_500_000, ("dog", "animal", "furniture")),
])  # fmt: skip
def test_the_built_in_words(
    name: str, file: str, shape: tuple[int, int], metric: str, most: int, words: tuple[str, ...]
) -> None:
    e = Embedding.default(name)
    assert (e.vectors.shape, e.metric) == (shape, metric)
    assert (ROOT / "data" / f"{file}.fdx").stat().st_size <= most
    word, near, far = words
    assert e.distance(word, near) < e.distance(word, far)
    if metric == "poincare":  # they keep their hierarchy
        norms = np.linalg.norm(e.vectors[e.ids([near, word])], axis=1)
        assert norms[0] < norms[1]
    with pytest.raises(fastdx.ParameterError, match="'nouns'"):
        Embedding.default("verbs")
