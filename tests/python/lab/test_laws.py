"""Laws of published mechanisms: against slow computations of their own, and at the price stated."""

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from examples import field
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

import fastdx
from fastdx import Cover, Embedding, Tem, WordGraph
from fastdx.lab import audit, laws
from fastdx.lab.laws import largest_loss
from fastdx.lab.noise import gumbel_draws
from helpers.draws import ALARM, assert_follows, p_value
from helpers.laws import distances_of, largest_ratio, law_of
from helpers.spaces import line, numbered


def embedding(count: int, dim: int, seed: int = 1) -> Embedding:
    return numbered(np.random.default_rng(seed).normal(size=(count, dim)).round(3))


def graph() -> WordGraph:
    return WordGraph([(f"w{i}", f"w{i // 2}") for i in range(1, 15)])


E, LINE, TREE = embedding(12, 3), embedding(9, 1, 4), graph()
TIES = Embedding(["a", "b", "c", "d", "e"], [[0.0], [0.0], [1.0], [2.0], [2.0]])
RATINGS = np.random.default_rng(2).random((12, 12))
PRIOR = np.arange(1, 13) ** 2.0


def test_the_largest_loss_is_the_slow_one() -> None:
    some = np.random.default_rng(3).dirichlet(np.full(12, 0.3), 12)
    # With and without outputs that some words cannot have.
    for matrix in (some, laws.custext(E, 1.0, 5, partition=False).matrix()):
        assert largest_loss(matrix) == pytest.approx(largest_ratio(matrix), rel=1e-12)
    for law in (laws.custext(embedding(130, 2), 2.0, 10), laws.santext_plus(E, 1.0, E.words[3:])):
        matrix, d, groups = law.matrix(), distances_of(law.space), law.proved.groups
        expected = largest_ratio(matrix, d, groups)
        assert largest_loss(matrix, d, groups) == pytest.approx(expected, rel=1e-9)
        assert largest_loss(matrix, d) == math.inf
    assert groups is not None and (groups == [-1] * 3 + [0] * 9).all()
    assert "NOT PROTECTED" in str(law.proved)
    # Words at one place that are told apart.
    alone = [[0.6, 0.4], [0.4, 0.6]], None, [-1, -1]
    assert largest_loss(*alone) == 0.0  # words that are compared with none
    assert largest_loss([[0.6, 0.4], [0.4, 0.6]], [[0.0, 0.0], [0.0, 0.0]]) == math.inf
    assert largest_loss([[0.6, 0.4], [0.6, 0.4]], [[0.0, 0.0], [0.0, 0.0]]) == 0.0


def test_santext_is_tem_without_a_radius() -> None:
    for space in (E, TREE):
        expected = law_of(Tem(space, 3.0, gamma=math.inf))
        np.testing.assert_allclose(laws.santext(space, 3.0).matrix(), expected, atol=1e-9)


def test_santext_plus_by_hand() -> None:
    law = laws.santext_plus(LINE, 1.5, ["w2", "w7"], replace=0.3)
    for i, w in enumerate(LINE.words):
        a, b = (math.exp(-0.75 * LINE.distance(w, y)) for y in ("w2", "w7"))
        expected = np.zeros(9)
        expected[[2, 7]] = np.array([a, b]) / (a + b) * (1.0 if w in ("w2", "w7") else 0.3)
        expected[i] += 0.0 if w in ("w2", "w7") else 0.7
        np.testing.assert_allclose(law.row(i), expected, rtol=1e-12)
    # A sensitive word against another one costs up to ln(1/p) more, at sensitive outputs alone.
    d = distances_of(LINE)
    matrix = law.matrix()
    extra = [math.log(matrix[2, y] / matrix[i, y]) - 1.5 * d[2, i]
             for i in range(9) for y in (2, 7) if i not in (2, 7)]  # fmt: skip
    assert 0 < max(extra) <= math.log(1 / 0.3)


def test_custext_by_hand() -> None:
    e = Embedding(list("abcdefg"), [[0.0], [5.0], [1.0], [6.0], [2.0], [9.0], [9.5]])
    law = laws.custext(e, 2.0, 3)
    # a with its nearest two, b with those left that are nearest, and the rest.
    sets = [[0, 2, 4], [1, 3, 5], [6]]
    for group in sets:
        for w in group:
            d = np.array([e.distance(e.words[w], e.words[y]) for y in group])
            spread = d.max() - d.min()
            weights = np.exp(-(d - d.min()) / spread) if spread else np.ones(1)
            expected = np.zeros(7)
            expected[group] = weights / weights.sum()
            np.testing.assert_allclose(law.row(w), expected, rtol=1e-12)
    groups = law.proved.groups
    assert groups is not None and groups.tolist() == [0, 1, 0, 1, 0, 1, 2]


def test_a_line_is_greedy_and_exact() -> None:
    for space in (embedding(300, 4), graph(), TIES, embedding(100, 1)):
        d = distances_of(space)
        order, free = [0], set(range(1, len(space)))
        while free:
            order.append(min(free, key=lambda y: (d[order[-1], y], y)))
            free.remove(order[-1])
        assert laws.greedy_order(space).tolist() == order


def test_one_diffractor_by_hand() -> None:
    a, count = math.exp(-0.7), 12
    line = laws.greedy_order(E)
    law = laws.one_diffractor(E, 0.7)
    reach = np.arange(-400, 401)
    noise = (1 - a) / (1 + a) * a ** np.abs(reach)
    for i in range(count):
        expected = np.zeros(count)
        np.add.at(expected, line[np.clip(i + reach, 0, count - 1)], noise)
        np.testing.assert_allclose(law.row(int(line[i])), expected, rtol=1e-12)
    # The other kind is Tem on the places; ⊥ stands for each place beyond γ alike.
    places = Embedding([E.words[i] for i in line], np.arange(count)[:, None])
    tem = Tem(places, 0.7, gamma=3.0)
    other = laws.one_diffractor(E, 0.7, method="tem", gamma=3)
    for word in E.words:
        expected = tem.probabilities(word)
        np.testing.assert_allclose(other.row(int(E.ids([word])[0]))[line], expected, atol=1e-9)
    alone = laws.one_diffractor(Embedding(["a"], [[1.0]]), 1.0)
    assert alone.row(0).tolist() == [1.0]


def test_one_diffractor_in_the_embedding() -> None:
    """Per place ε holds; two words 0.1 apart lie at the two ends of the line."""
    e = Embedding(list("abcd"), [[0.0], [-0.1], [0.05], [0.3]])
    assert laws.greedy_order(e).tolist() == [0, 2, 1, 3]
    law = laws.one_diffractor(e, 1.0)
    assert law.proved.distances is not None
    places = np.array([law.proved.distances(i) for i in range(4)])
    assert largest_loss(law.matrix(), places) == pytest.approx(1.0, rel=1e-9)
    assert largest_loss(law.matrix(), distances_of(e)) > 10


def test_randomized_response_is_tight() -> None:
    for epsilon in (1e-3, 2.0, 700.0):
        law = laws.randomized_response(E, epsilon)
        assert largest_loss(law.matrix()) == pytest.approx(epsilon, rel=1e-9)


def test_ranks_by_hand_and_their_price() -> None:
    law = laws.rank_based(E, 3.0)
    for w, p in zip(E.words, law.matrix(), strict=True):
        order = sorted(E.words, key=lambda y: (y != w, E.distance(w, y), int(y[1:])))
        weights = np.exp(-3.0 * np.arange(12) / 11)
        by_word = dict(zip(order, weights / weights.sum(), strict=True))
        np.testing.assert_allclose(p, [by_word[y] for y in E.words], rtol=1e-12)
    # Half the textbook's price: a word at one end that is first for one word and last for another.
    assert largest_loss(laws.rank_based(LINE, 3.0).matrix()) == pytest.approx(3.0, rel=1e-9)
    assert law.claimed.epsilon == 6.0
    assert laws.rank_based(Embedding(["a"], [[0.0]]), 1.0).row(0).tolist() == [1.0]


def test_neighbours_are_post_processing() -> None:
    plain = laws.santext(E, 2.0)
    law = laws.with_neighbors(plain, 0.3)
    kernel = np.empty((12, 12))
    for x, word in enumerate(E.words):
        ranks = {y: r for r, y in enumerate(sorted(E.words, key=lambda y: E.distance(word, y)))}
        kernel[x] = [math.exp(-0.3 * ranks[y]) for y in E.words]
    kernel /= kernel.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(law.matrix(), plain.matrix() @ kernel, rtol=1e-12)
    d = distances_of(E)
    assert largest_loss(law.matrix(), d) <= largest_loss(plain.matrix(), d)


def test_words_blending_boxes() -> None:
    law = laws.words_blending_boxes(E, 1.0, safe=3, candidates=4)
    for w, p in zip(E.words, law.matrix(), strict=True):
        order = sorted(E.words, key=lambda y: E.distance(w, y))
        d = np.array([E.distance(w, y) for y in order[3:7]])
        weights = np.exp(0.5 / (1 + np.exp((d - d.mean()) / d.std())))
        by_word = dict(zip(order[3:7], weights / weights.sum(), strict=True))
        np.testing.assert_allclose(p, [by_word.get(y, 0.0) for y in E.words], rtol=1e-9)
    # Two words: each always becomes the other.
    two = laws.words_blending_boxes(Embedding(["a", "b"], [[0.0], [1.0]]), 1.0, safe=1)
    assert two.matrix().tolist() == [[0, 1], [1, 0]] and largest_loss(two.matrix()) == math.inf


def laplace(z: float, center: float, epsilon: float) -> float:
    return epsilon / 2 * math.exp(-epsilon * abs(z - center))


@pytest.mark.parametrize(
    ("space", "epsilon", "t"),
    [(LINE, 1.3, 0.4), (TIES, 6.0, 0.9), (LINE, 0.05, 1.0), (LINE, 20.0, 0.0)],
)
def test_vickrey_by_quadrature(space: Embedding, epsilon: float, t: float) -> None:
    x = space.vectors[:, 0].astype(float)
    middles = [(a + b) / 2 for a in x for b in x]
    law = laws.vickrey(space, epsilon, t).matrix()
    places = np.unique(x)

    def released(z: float) -> dict[float, float]:
        u, v = sorted(places, key=lambda p: abs(p - z))[:2]
        far, near = (1 - t) * abs(z - v), t * abs(z - u)
        return {u: far / (near + far), v: near / (near + far)}

    for word in range(len(space)):
        cuts = np.unique([*x, *middles])
        ends = [cuts[0] - 40 / epsilon, *cuts, cuts[-1] + 40 / epsilon]
        for place in places:

            def part(z: float, place: float = place, center: float = x[word]) -> float:
                return laplace(z, center, epsilon) * released(z).get(place, 0.0)

            mass = sum(integrate.quad(part, a, b, epsabs=1e-14, limit=200)[0]
                       for a, b in pairwise(ends))  # fmt: skip
            assert law[word, int(np.argmax(x == place))] == pytest.approx(mass, abs=1e-9)
        # Of words at one place the one of smaller id is the output.
        assert law[word].sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("delta", [0.01, 1e-4])
def test_vickrey_that_leaves_the_word_itself_out(delta: float) -> None:
    """Public code does this: the candidates are the nearest words other than the one written.

    Three words, two of them near each other: at δ → 0 the log-ratio does not shrink, so no ε per
    unit of distance holds. The law as published stays within ε·δ.
    """
    epsilon, x = 10.0, np.array([0.0, delta, 5.0])
    law = field.vickrey_without_the_word(x, epsilon)
    rng = np.random.default_rng(1)
    for word in range(3):
        z = x[word] + rng.laplace(scale=1 / epsilon, size=400_000)
        away = np.abs(z[:, None] - x)
        # The nearest two, without the word where it is the nearest.
        away[away.argmin(axis=1) == word, word] = np.inf
        two = np.argsort(away, axis=1)[:, :2]
        near = np.abs(z - x[two[:, 0]])
        drawn = np.where(rng.random(len(z)) < 1 / (1 + np.exp(near)), two[:, 0], two[:, 1])
        share = np.bincount(drawn, minlength=3) / len(z)
        assert law[word] == pytest.approx(share, abs=5.5 * math.sqrt(0.25 / len(z)))
    assert np.abs(np.log(law[0]) - np.log(law[1])).max() > 0.5 > epsilon * delta
    kept = laws.vickrey(Embedding(list("abc"), x[:, None]), epsilon, 0.5).matrix()
    assert np.abs(np.log(kept[0]) - np.log(kept[1])).max() <= epsilon * delta * (1 + 1e-6)


def test_truncated_laplace_by_quadrature_and_what_it_costs() -> None:
    x = LINE.vectors[:, 0].astype(float)
    epsilon, span = 0.4, float(np.ptp(x))
    bound = -span / epsilon * math.log(1 - 2 * epsilon)
    for most in (bound, 0.3 * span):
        law = laws.truncated_laplace(LINE, epsilon, most).matrix()
        total = -math.expm1(-epsilon / span * most)
        order = np.argsort(x)
        middle = [-math.inf, *((x[order][1:] + x[order][:-1]) / 2), math.inf]
        for word in range(9):
            for i, y in enumerate(order):
                a, b = (min(max(m, x[word] - most), x[word] + most) for m in middle[i : i + 2])
                mass = integrate.quad(laplace, a, b, args=(x[word], epsilon / span),
                                      points=[x[word]] if a < x[word] < b else None)[0]  # fmt: skip
                assert law[word, y] == pytest.approx(mass / total, abs=1e-9)
    # Two words are enough to break the claim, by the code's bound and by the paper's as remembered.
    two = Embedding(["a", "b"], [[0.0], [1.0]])
    for rest in (1 - 2 * 0.1, 1 - 0.1 / 2):
        law = laws.truncated_laplace(two, 0.1, -math.log(rest) / 0.1).matrix()
        high = 0.1 / 2
        far = (math.exp(-high) - rest) / (2 * (1 - rest))
        assert law[0, 1] == pytest.approx(far, rel=1e-9)
        assert largest_loss(law) == pytest.approx(math.log((1 - far) / far), rel=1e-9)
        assert largest_loss(law) > 4 * 0.1
    # Three are enough for an output that one of them never has.
    three = Embedding(["a", "b", "c"], [[0.0], [0.5], [1.0]])
    law = laws.truncated_laplace(three, 0.1, -math.log(1 - 0.1 / 2) / 0.1).matrix()
    assert law[0, 2] == 0 < law[2, 2] and largest_loss(law) == math.inf


@pytest.mark.parametrize("finding", field.broken(), ids=lambda f: f.mechanism)
def test_what_the_originals_do_wrong(finding: field.Finding) -> None:
    assert np.abs(finding.matrix.sum(axis=1) - 1).max() < 1e-9 and (finding.matrix >= 0).all()
    assert finding.ratios().max() > 1.5 * finding.allowed


def test_public_code_by_hand() -> None:
    # Noise of a scale of its own: the log-ratio at a far output does not shrink with the distance.
    for delta in (0.1, 1e-5):
        law = field.scaled_noise(np.array([0.0, delta, 5.0]), np.array([1.0, 2.0, 1.0]))
        far = [0.5 * math.exp(-r * ((5 + delta) / 2 - x)) for r, x in ((1.0, 0.0), (2.0, delta))]
        assert law[:2, 2] == pytest.approx(far, rel=1e-9) and math.log(far[0] / far[1]) > 2
    # Truncated Gumbel noise, by draws of the code's own kind.
    rng, x, draws = np.random.default_rng(7), np.array([0.0, 1.0, 3.0]), 400_000
    k = rng.poisson(math.log(2), 4 * draws)
    k = k[k <= 2][:draws]
    noise = rng.gumbel(size=8 * draws)
    noise = noise[np.abs(noise) <= 3][: 2 * draws].reshape(2, -1)
    law = field.truncated_gumbel(x, 1.0)
    for word, d in enumerate((1.0, 1.0, 2.0)):
        other = float(np.mean((k == 2) & (d + noise[1] < noise[0])))
        assert 1 - law[word, word] == pytest.approx(other, abs=5.5 * math.sqrt(0.25 / draws))
    # A radius of its own for every draw.
    changed = integrate.quad(lambda r: math.exp(-r) / (1 + math.exp(0.5 / r)), 1, math.inf)[0]
    assert field.random_adjacency(1.0)[0, 1] == pytest.approx(changed, rel=1e-9)
    # A factor before normalising is none.
    places = np.array([0.0, 1.0, 2.5, 4.0])
    same = [field.blending_boxes_as_coded(places, epsilon) for epsilon in (1e-3, 1e3)]
    np.testing.assert_allclose(*same, rtol=1e-12)


def test_syntf_by_hand() -> None:
    law = laws.syntf(E, 1.2, RATINGS)
    delta = max(max(column) - min(column) for column in RATINGS.T.tolist())
    weights = np.exp(1.2 * RATINGS / (2 * delta))
    np.testing.assert_allclose(
        law.matrix(), weights / weights.sum(axis=1, keepdims=True), rtol=1e-12
    )
    # A document's output is a mixture: n of them cost n·ε for any two documents of any words.
    documents = np.random.default_rng(5).dirichlet(np.full(12, 0.1), 200) @ law.matrix()
    assert np.ptp(np.log(documents), axis=0).max() <= 1.2
    assert largest_loss(laws.syntf(E, 1.2, np.tile(RATINGS[0], (12, 1))).matrix()) == 0


def lazy_optimum(space: Embedding, epsilon: float, costs: np.ndarray) -> float:
    """The programme with every constraint written down."""
    from scipy.optimize import linprog

    d, count = distances_of(space), len(space)
    rows = []
    for w in range(count):
        for v in range(count):
            for y in range(count):
                if v != w:
                    row = np.zeros((count, count))
                    row[w, y] = math.exp(-epsilon * d[w, v] / 2)
                    row[v, y] = -math.exp(epsilon * d[w, v] / 2)
                    rows.append(row.ravel())
    sums = np.kron(np.eye(count), np.ones(count))
    found = linprog(costs.ravel(), A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=sums,
                    b_eq=np.ones(count), method="highs-ds")  # fmt: skip
    assert found.status == 0
    return float(found.fun)


@settings(max_examples=12)
@given(epsilon=st.floats(0.2, 4), dim=st.sampled_from([1, 2, 10]), seed=st.integers(0, 9))
def test_the_optimum_is_the_optimum(epsilon: float, dim: int, seed: int) -> None:
    e = embedding(8, dim, seed)
    d, prior = distances_of(e), np.random.default_rng(seed).dirichlet(np.ones(8))
    costs = prior[:, None] * np.minimum(d, 1.5)
    law = laws.optimal(e, epsilon, np.minimum(d, 1.5), prior, gap=0)
    found = float((law.matrix() * costs).sum())
    assert largest_loss(law.matrix(), d) <= epsilon
    # The solver keeps each of 8·8·7 constraints to 1e-7.
    assert found == pytest.approx(lazy_optimum(e, epsilon, costs), rel=1e-4, abs=1e-6)
    # Nothing that keeps ε·d does better.
    assert (laws.santext(e, epsilon).matrix() * costs).sum() >= found * (1 - 1e-6)


def test_what_the_solver_leaves_broken_is_repaired() -> None:
    """A gap that stops after the first round: the law keeps ε·d all the same."""
    e = embedding(20, 3)
    d = distances_of(e)
    best, first = (laws.optimal(e, 2.0, gap=gap).matrix() for gap in (0.0, 1e9))
    assert largest_loss(first, d) <= 2.0 * (1 + 1e-9)
    assert (best * d).sum() * 1.001 < (first * d).sum()
    near = laws.optimal(e, 2.0, gap=0.01).matrix()
    assert (best * d).sum() <= (near * d).sum() * (1 + 1e-6) <= (best * d).sum() * 1.011


def test_optimal_on_a_line_is_the_geometric_mechanism() -> None:
    """On places of a line, under a uniform prior and |i - j|, truncated geometric noise loses more
    or the same (Ghosh, Roughgarden, Sundararajan 2009: a remap of it is optimal).
    """
    e = numbered(np.arange(10))
    d = distances_of(e)
    geometric = (laws.one_diffractor(e, 0.8).matrix() * d).sum()
    best = laws.optimal(e, 0.8, gap=0)
    assert (best.matrix() * d).sum() <= geometric * (1 + 1e-5)
    assert largest_loss(best.matrix(), d) == pytest.approx(0.8, rel=1e-4)
    # Words at one place get one law; one word alone stays.
    twins = laws.optimal(TIES, 1.0).matrix()
    assert np.array_equal(twins[0], twins[1]) and np.array_equal(twins[3], twins[4])
    assert laws.optimal(Embedding(["a"], [[0.0]]), 1.0).matrix().tolist() == [[1.0]]


def test_blahut_arimoto_by_hand() -> None:
    d, prior = distances_of(E), PRIOR / PRIOR.sum()
    for rounds in (0, 1, 7):
        law = np.full((12, 12), 1 / 12)
        for _ in range(rounds + 1):
            weights = (prior @ law) * np.exp(-1.5 * d)
            law = weights / weights.sum(axis=1, keepdims=True)
        found = laws.blahut_arimoto(E, 3.0, PRIOR, iterations=rounds).matrix()
        np.testing.assert_allclose(found, law, rtol=1e-9)


# Other parameters of every law are refused in test_every_law.py.
BAD: list[tuple[Callable[[], object], type, str]] = [
    (lambda: laws.vickrey(E, 1.0), fastdx.ParameterError, "dimension"),
    (lambda: laws.vickrey(TREE, 1.0), fastdx.InputTypeError, "space"),  # type: ignore[arg-type]
    (lambda: laws.vickrey(Embedding(["a"], [[0.0]]), 1.0), fastdx.ParameterError, "distance"),
    (lambda: laws.optimal(embedding(301, 2), 1.0), fastdx.TooLargeError, "300"),
    (lambda: largest_loss([0.5, 0.5]), fastdx.ParameterError, "matrix"),
    *((partial(largest_loss, [[1.0, 0.0], [wrong, 1.0]], 1 - np.eye(2)), fastdx.ParameterError,
       "matrix") for wrong in (np.nan, -0.5)),
    *((partial(largest_loss, np.full((2, 2), 0.5), wrong * (1 - np.eye(2))),
       fastdx.ParameterError, "distances") for wrong in (np.nan, -0.5)),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "names"), BAD)
def test_bad_parameters(call: Callable[[], object], kind: type, names: str) -> None:
    with pytest.raises(kind, match=names):
        call()


def test_laws_that_tem_draws() -> None:
    """SanText+ on sensitive words is Tem with excluded words, Blahut-Arimoto's law weighted Tem."""
    tem = Tem(E, 2.0, gamma=math.inf, exclude=E.words[:3])
    plus = laws.santext_plus(E, 2.0, E.words[3:])
    for i in range(3, 12):
        np.testing.assert_allclose(tem.probabilities(f"w{i}"), plus.row(i), atol=1e-9)
    law = laws.blahut_arimoto(E, 2.0, PRIOR, iterations=5).matrix()
    c = PRIOR / PRIOR.sum() @ laws.blahut_arimoto(E, 2.0, PRIOR, iterations=4).matrix()
    weighted = Tem(E, 2.0, gamma=math.inf, cover=Cover.identity(E).weighted(c))
    for i, word in enumerate(E.words):
        np.testing.assert_allclose(weighted.probabilities(word), law[i], atol=1e-8)


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e4, 1e30])
def test_vickrey_on_a_line_at_any_epsilon(scale: float) -> None:
    places = np.array([0.0, 0.3, 0.45, 1.0, 1.1])[:, None]
    e = numbered((places * scale).astype("float32"))
    make = partial(laws.vickrey, e)
    for times in (1e-3, 1.0, 1e2, 1e4, 1e7):
        law = make(times / scale)
        matrix = law.matrix()
        assert (matrix > 0).all() and np.abs(matrix.sum(axis=1) - 1).max() < 1e-12
        found = audit.certify(law).epsilon
        assert found <= law.proved.epsilon * (1 + 1e-6)
        if times >= 1e4:
            # The nearest two, and the second of them in the share of 1/(ε·distance) on average.
            assert (matrix.argmax(axis=1) == np.arange(5)).all()
            assert 0.5 < matrix[0, 1] * 0.3 * times < 2
    for epsilon in (1e9 / scale, 1e300):
        with pytest.raises(fastdx.ParameterError, match="epsilon must be at most") as refused:
            make(epsilon)
        most = float(str(refused.value).split("at most ")[1].split(" ")[0])
        assert make(most).matrix().shape == (5, 5)


# The noise that TEM's paper prints has the law that Tem draws by integers.
@pytest.mark.parametrize("gamma", [0.5, 1.3, 100.0])
def test_gumbel_noise_has_the_law_of_tem(gamma: float) -> None:
    vectors = np.random.default_rng(4).normal(size=(40, 3))
    vectors[1] = vectors[0]
    tem = Tem(numbered(vectors), 3.0, gamma=gamma)

    def counts(tem: Tem) -> np.ndarray:
        return np.bincount(gumbel_draws(tem, "w0", 400_000, seed=5), minlength=40)

    assert_follows(counts(tem), tem.probabilities("w0"))
    liar = tem.with_epsilon(3.5)
    assert p_value(counts(liar), tem.probabilities("w0")) < ALARM


def test_what_gumbel_noise_does_not_draw() -> None:
    space = line(0, 1, 9)
    assert gumbel_draws(Tem(space, 1.0), "a", 0).shape == (0,)
    assert (gumbel_draws(Tem(space, 1e6, gamma=10.0), "b", 100) == 1).all()
    assert len(set(gumbel_draws(Tem(space, 1e-6, gamma=1.0), "b", 1000, seed=1).tolist())) == 3
    for tem in (
        Tem(space, 1.0, cover=Cover.nearest(space, 2)),
        Tem(space, 1.0, language=[3, 2, 1]),
        Tem(space, 1.0, remap=2),
    ):
        with pytest.raises(fastdx.ParameterError, match="tem must have neither"):
            gumbel_draws(tem, "a", 1)
    with pytest.raises(fastdx.UnknownWordError):
        gumbel_draws(Tem(space, 1.0), "zebra", 1)
