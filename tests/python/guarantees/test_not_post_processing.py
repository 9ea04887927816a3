"""Counterexamples of docs/research/not-post-processing.md, written out in full."""

from itertools import product
from math import exp, inf, log

import numpy as np
import pytest
from examples import not_post_processing as page

FINDINGS = page.findings()


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda f: f.release)
def test_reading_the_original_breaks_the_claim(finding: page.Finding) -> None:
    for law in (*finding.laws, *finding.blind):
        assert sum(law.values()) == pytest.approx(1.0, abs=1e-12)
        assert min(law.values()) > 0
    true, release = page.loss(*finding.laws)
    assert true > finding.allowed + 0.5
    p, q = (law.get(release, 0.0) for law in finding.laws)
    assert true == (inf if not (p and q) else pytest.approx(abs(log(p) - log(q)), abs=1e-12))


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda f: f.release)
def test_the_same_without_the_original_keeps_it(finding: page.Finding) -> None:
    assert page.loss(*finding.blind)[0] <= finding.allowed + 1e-12


def weights(places: dict[str, float], word: str, epsilon: float) -> dict[str, float]:
    """The law of a word, from its definition."""
    found = {y: exp(-epsilon / 2 * abs(places[word] - p)) for y, p in places.items()}
    return {y: p / sum(found.values()) for y, p in found.items()}


def test_draws_are_those_of_the_definition() -> None:
    places = {"pill": 0.0, "drug": 0.1, "home": 3.0, "work": 5.0}
    first, second = (weights(places, w, e) for w, e in (("drug", 3.2), ("home", 0.8)))
    law = page.with_shares_of(4, ("drug", "home"))
    assert law == pytest.approx({(a, b): first[a] * second[b] for a, b in product(places, places)})


def test_shares_tell_by_the_word_that_is_equal_in_both_texts() -> None:
    places = {"pill": 0.0, "drug": 0.1, "home": 3.0, "work": 5.0}
    there = [weights(places, "home", e)["home"] for e in (2.0, 0.8)]
    of_it = [weights(places, w, e)["work"] for w, e in (("pill", 2.0), ("drug", 3.2))]
    finding = next(f for f in FINDINGS if "shared out" in f.release)
    expected = abs(log(there[0] / there[1]) + log(of_it[0] / of_it[1]))
    assert page.loss(*finding.laws) == (pytest.approx(expected), ("work", "home"))


def test_the_nearer_of_two_draws() -> None:
    places = {"ice": -1.0, "cool": 0.0, "mild": 0.1, "hot": 1.05}
    law = weights(places, "cool", 1)
    # "ice" is nearer to "cool" than "hot" is, and farther than the others.
    expected = law["ice"] ** 2 + 2 * law["ice"] * law["hot"]
    # Vectors are kept in 32 bits.
    assert page.nearest_of(2, "cool", "cool", 1)[("ice",)] == pytest.approx(expected, rel=1e-7)


def test_a_release_that_reads_nothing_is_never_convicted() -> None:
    rng = np.random.default_rng(5)
    space = page.CARE
    for _ in range(50):
        first, second = ((str(a), str(b)) for a, b in rng.choice(space.words, (2, 2)))
        table = {y: tuple(map(str, rng.choice(space.words, 2)))
                 for y in product(space.words, space.words)}  # fmt: skip
        laws = [page.decoded(page.drawn(space, t, [2, 2]), table.__getitem__)
                for t in (first, second)]  # fmt: skip
        assert page.loss(*laws)[0] <= 2 * page.distance(space, first, second) + 1e-12


def test_unknown_words_are_within_what_is_claimed_for_any_two() -> None:
    laws = [page.drawn_if_unknown((w,), 0.2) for w in (*page.CARE.words, "zebra")]
    assert max(page.loss(p, q)[0] for p, q in product(laws, laws)) <= 1 + 1e-6
