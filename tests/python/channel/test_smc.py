"""Sequential Monte Carlo over the words behind a release, against exact sums."""

import numpy as np
import pytest
from experiments.smc import LookAhead, Model, Numbers, Particles, choice, decode, ngrams, resample

from fastdx import Embedding, Tem
from fastdx.channel import Channel, NgramPrior
from fastdx.exceptions import ParameterError
from helpers.laws import behind

WORDS = list("abcdef")
SPACE = Embedding(WORDS, np.random.default_rng(1).normal(size=(6, 2)))
CHANNEL = Channel.of(Tem(SPACE, 1.5))
RELEASE = list("cabfd")
RUNS = 3000


def prior(order: int) -> NgramPrior:
    """One that learned from sentences whose words are tied to one or two before them."""
    rng = np.random.default_rng(order)
    made = []
    for _ in range(300):
        sentence = [int(rng.integers(6)), int(rng.integers(6))]
        for _ in range(6):
            by_two = (sentence[-1] + 2 * sentence[-2] + 1) % 6
            by_one = (sentence[-1] + 1) % 6
            ways = [by_one, by_two, int(rng.integers(6))]
            sentence.append(ways[int(rng.choice(3, p=[0.5, 0.3, 0.2]))])
        made.append(" ".join(WORDS[w] for w in sentence) + ".")
    return NgramPrior.train(SPACE, made, order)


def columns(release: list[str] = RELEASE) -> Numbers:
    return np.array([CHANNEL.likelihood(y) for y in release])


def written_out(model: NgramPrior, likelihoods: Numbers) -> tuple[float, Numbers]:
    """The evidence and all marginals, by all texts."""
    sums = behind(model, likelihoods, known=False)
    return float(sums[0].sum()), sums / sums[0].sum()


def decoded(
    model: Model, likelihoods: Numbers, ahead: Numbers, count: int, rng: np.random.Generator
) -> Particles:
    """By a model beside itself."""
    return decode(model, model, likelihoods, ahead, count=count, rng=rng)


def within(found: Numbers, truth: Numbers | float, sigmas: float = 6.5) -> None:
    """Means of runs lie within so many standard errors: a false alarm in 10⁷."""
    error = found.std(axis=0, ddof=1) / len(found) ** 0.5
    assert (np.abs(found.mean(axis=0) - truth) <= sigmas * error + 1e-12).all()


def test_what_is_kept_has_its_weight_in_expectation() -> None:
    rng = np.random.default_rng(0)
    weights = rng.gamma(0.3, size=40)
    weights[::7] = 0.0
    count, runs = 9, 20_000
    total = np.zeros((runs, 40))
    for row in total:
        kept, new = resample(weights, count, rng)
        assert len(kept) == count == len(set(kept.tolist())) and (weights[kept] > 0).all()
        assert new.sum() == pytest.approx(weights.sum(), rel=1e-12)
        row[kept] = new
    # A thing is lost, or has the threshold: Bernoulli, so its variance is known.
    threshold = total[total > 0].min()
    above = weights >= threshold
    assert np.allclose(total[:, above], weights[above], rtol=1e-12) and 0 < above.sum() < count
    error = np.sqrt(weights * np.maximum(threshold - weights, 0) / runs)
    assert (np.abs(total.mean(axis=0) - weights) <= 6.5 * error + 1e-12).all()


@pytest.mark.parametrize("order", [1, 2])
def test_messages_are_those_of_the_whole_table(order: int) -> None:
    model, likelihoods = prior(order), columns()
    table = np.array([model.next([u]) for u in WORDS])
    made = LookAhead(model).messages(likelihoods)
    expected = np.ones(6)
    for i in range(len(RELEASE) - 2, -1, -1):
        expected = table @ (likelihoods[i + 1] * expected)
        assert np.allclose(made[i], expected / expected.max(), rtol=1e-9)
    assert (made[-1] == 1).all()
    with pytest.raises(ParameterError, match="order"):
        LookAhead(prior(3))


def test_exact_look_ahead_leaves_no_chance() -> None:
    model, likelihoods = prior(2), columns()
    ahead = LookAhead(model).messages(likelihoods)
    evidence, _ = written_out(model, likelihoods)
    for seed in range(20):
        found = decoded(ngrams(model), likelihoods, ahead, 4, np.random.default_rng(seed))
        assert found.log_evidence == pytest.approx(np.log(evidence), abs=1e-9)
        assert len(found.paths) == 4 and found.weights.sum() == pytest.approx(1)


def test_it_is_the_channels_posterior() -> None:
    model, likelihoods = prior(3), columns()
    exact = CHANNEL.decode(RELEASE, model)
    assert exact.unknown.max() < 1e-9 or exact.exact
    evidence, marginals = written_out(model, likelihoods)
    known = np.array([exact.marginals(i) / (1 - exact.unknown[i]) for i in range(len(RELEASE))])
    assert np.abs(known - marginals).max() < 0.02  # an unknown word is hardly likely
    ahead = LookAhead(prior(2)).messages(likelihoods)
    every = decoded(ngrams(model), likelihoods, ahead, 6**5, np.random.default_rng(0))
    assert every.log_evidence == pytest.approx(np.log(evidence), abs=1e-9)
    assert np.allclose(every.marginals(), marginals, atol=1e-9)


@pytest.mark.parametrize("look", [False, True])
def test_few_particles_are_right_on_average(look: bool) -> None:
    model, likelihoods = prior(3), columns()
    evidence, marginals = written_out(model, likelihoods)
    ahead = np.ones_like(likelihoods)
    if look:
        ahead = LookAhead(prior(2)).messages(likelihoods)
    rng = np.random.default_rng(7)
    estimates, weighted = np.empty(RUNS), np.empty((RUNS, *likelihoods.shape))
    words = ngrams(model)
    for r in range(RUNS):
        found = decoded(words, likelihoods, ahead, 5, rng)
        estimates[r] = np.exp(found.log_evidence) / evidence
        weighted[r] = estimates[r] * found.marginals()
    within(estimates, 1.0)
    # Estimates of a ratio are biased; numerator and denominator are not.
    within(weighted.reshape(RUNS, -1), marginals.ravel())
    assert estimates.std() > 0.01


def test_bad_input_is_named() -> None:
    model, likelihoods = ngrams(prior(2)), columns()
    rng = np.random.default_rng(0)
    with pytest.raises(ParameterError, match="ahead"):
        decoded(model, likelihoods, np.full_like(likelihoods, 0.5), 5, rng)
    with pytest.raises(ParameterError, match="likelihoods"):
        decoded(model, np.zeros_like(likelihoods), np.ones_like(likelihoods), 5, rng)


def test_gains_are_what_the_model_adds() -> None:
    model, shorter, likelihoods = prior(2), prior(1), columns()
    ahead = LookAhead(shorter).messages(likelihoods)
    rng = np.random.default_rng(0)
    found = decode(ngrams(model), ngrams(shorter), likelihoods, ahead, count=6**5, rng=rng)
    # All prefixes are particles: the gain before a word is that of the first words' exact sums.
    weights = np.ones(1)
    paths = [()]
    for i in range(len(RELEASE)):
        rows = np.array([model.next([WORDS[u] for u in p]) for p in paths])
        plain = np.array([shorter.next([WORDS[u] for u in p]) for p in paths])
        ratio = (weights @ rows) / (weights @ plain)
        gain = found.gains.before[i] - np.log(ratio)
        assert np.allclose(gain, gain[0], atol=1e-9)
        if i:
            factors = likelihoods[i] * ahead[i]
            sums = [np.bincount([p[-1] for p in paths], weights * (x @ factors), 6)
                    for x in (rows, plain)]  # fmt: skip
            expected = np.log(sums[0] / sums[1]) - np.log(sums[0].sum() / sums[1].sum())
            assert np.allclose(found.gains.behind[i - 1], expected, atol=1e-9)
        weights = (weights[:, None] * rows * likelihoods[i]).ravel()
        paths = [(*p, w) for p in paths for w in range(6)]
    assert np.allclose(found.gains.behind[-1], 0, atol=1e-9)


def test_a_model_adds_nothing_to_itself() -> None:
    model, likelihoods = prior(3), columns()
    ahead = LookAhead(prior(2)).messages(likelihoods)
    found = decoded(ngrams(model), likelihoods, ahead, 5, np.random.default_rng(0))
    assert np.allclose(found.gains.before, 0) and np.allclose(found.gains.behind, 0)


def test_weights_of_a_choice() -> None:
    rng, true = np.random.default_rng(5), np.array([0.7, 1.5])
    parts = [rng.normal(size=(2, 8)) for _ in range(4000)]
    truths = [int((true @ p + rng.gumbel(size=8)).argmax()) for p in parts]
    assert np.allclose(choice(parts, truths), true, atol=0.12)
    # Where data say nothing, the first part alone counts.
    assert np.allclose(choice([np.zeros((2, 4))], [1]), [1, 0])
