"""Covers, exclusion, the staircase: as a Python user meets them."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import fastdx
from fastdx import (
    BagOfWords,
    Cover,
    Embedding,
    FiniteLaw,
    Mahalanobis,
    Mechanism,
    MultivariateLaplace,
    NeighborResponse,
    Tem,
    from_spec,
)
from fastdx.cli import main
from fastdx.lab import audit
from helpers.command import Command
from helpers.copies import assert_copies
from helpers.draws import as_users_draw, assert_follows
from helpers.errors import refused
from helpers.laws import distances_to_sets, tem_law
from helpers.policies import made
from helpers.spaces import line, numbered

RNG = np.random.default_rng(5)
E = numbered(RNG.normal(size=(200, 4)))
ENGLISH = Embedding.default()


# The sets themselves: tests/it/covers.rs.
def test_sets_and_outputs_are_each_others() -> None:
    cover = Cover.nearest(E, 7, least=4)
    assert cover.k == 7 and cover.floor == 1 / 7 and len(cover) == 200 and cover.space is E
    assert all(word in cover.sets(y) for word in E.words[:50] for y in cover.outputs(word))
    assert cover == Cover.nearest(E, 7, least=4) != Cover.nearest(E, 7)
    assert hash(cover) == hash(pickle.loads(pickle.dumps(cover)))


@pytest.mark.parametrize("certified", [False, True])
def test_tem_on_a_cover(certified: bool, tmp_path: Path) -> None:
    cover = Cover.balanced(E, 10, frequencies=np.arange(200, 0, -1.0), exclude=["w3", "w4", "zzz"])
    tem = Tem(E, 3.0, cover=cover, certified=certified)
    assert (tem.nominal > 3.0) == certified and tem.cover == cover
    assert cover.excluded == ["w3", "w4"] == tem.excluded
    expected = tem_law(distances_to_sets(cover), tem.nominal, tem.gamma)[0]
    np.testing.assert_allclose(tem.probabilities("w0"), expected, rtol=1e-6, atol=1e-12)
    assert expected.max() <= cover.floor and expected[3] == expected[4] == 0
    assert_copies(tem)
    assert (tem.with_epsilon(tem.nominal).probabilities("w0") == tem.probabilities("w0")).all()
    path = tmp_path / "index"
    tem.build_lists(20).save(path)
    back = Tem.load(path, tem.nominal)
    assert back.cover == cover and back.epsilon == tem.epsilon and back.lists_k == 20
    assert "1/" not in back.guarantee.outputs and "0.1" in back.guarantee.outputs
    assert "2 of the 200 words" in str(back.guarantee)
    # One rule: without `cover` that of the file, however the space was opened.
    assert Cover.load(E, path) == cover == Tem(back.space, 2.0).cover
    assert NeighborResponse(back.space, 2.0).cover == cover
    assert_copies(back, from_spec(back.spec))
    if certified:
        assert back.guarantee.certificate.cover == cover.fingerprint
        # Another cover is another mechanism: nothing is claimed of it.
        other = Tem.load(path, tem.nominal, cover=Cover.nearest(E, 10))
        assert other.guarantee.certificate is None and other.epsilon == tem.nominal
        plain = Tem.load(path, tem.nominal, cover="none")
        assert plain.guarantee.certificate is None
        plain.save(tmp_path / "plain")
        assert Tem.load(tmp_path / "plain", 2.0).cover is None
        assert main(["index", "check", str(path)]) == 0
        looked = audit.certify(Tem(E, tem.nominal, gamma=tem.gamma, cover=cover))
        assert looked.epsilon == pytest.approx(tem.epsilon, rel=1e-9)


def test_what_is_excluded_is_never_released(mechanism: type[Mechanism], tmp_path: Path) -> None:
    e = Embedding(E.words[:20], E.vectors[:20])
    out = ["w0", "w1", "w2", "w3", "w4"]
    (tmp_path / "out.txt").write_text("W0\nw1\n\n w2\nw3\nw4\nzzz\n", "utf-8")
    for exclude in (out, tmp_path / "out.txt", str(tmp_path / "out.txt")):
        m = mechanism(e, 3.0, exclude=exclude)
        assert m.excluded == out
        drawn = m.privatize_ids(np.zeros(5000, dtype=np.uint32))
        assert drawn.min() >= 5
        # A word that is never released does not stand for an unknown word either.
        unknown = m.privatize_tokens(["zzz"] * 2000)
        assert not set(unknown) & set(out) and len(set(unknown)) == 15
        assert "5 of the 20 words" in str(m.guarantee) and "protected as inputs" in str(m.guarantee)
        again = pickle.loads(pickle.dumps(m))
        assert again.excluded == out and m.with_epsilon(4.0).excluded == out
        assert np.isfinite(m.guarantee.bound(["w0"], ["w7"]))
    with pytest.raises(fastdx.ParameterError):
        mechanism(e, 3.0, exclude=e.words)


def test_noise_goes_to_the_nearest_that_is_allowed() -> None:
    e = line(0, 1, 10)
    m = MultivariateLaplace(e, 1e6, exclude=["a"])
    assert set(m.privatize_tokens(["a"] * 100)) == {"b"}
    approximate = Embedding(E.words, E.vectors).build_hnsw(seed=1)
    near = MultivariateLaplace(approximate, 1e6, search="hnsw", exclude=["w0"])
    d = E.distances("w0")
    d[0] = np.inf
    assert near.privatize_tokens(["w0"] * 20) == [E.words[int(d.argmin())]] * 20


def test_the_offensive_list() -> None:
    tem = Tem(ENGLISH, 3.0, exclude="offensive")
    assert {"fuck", "whores", "nigger"} <= set(tem.excluded) and len(tem.excluded) < 200
    assert not {"gay", "virgin", "hiv", "womb", "kill"} & set(tem.excluded)
    assert tem.guarantee.price("a damn good book") == Tem(ENGLISH, 3.0).guarantee.price("a b c d")


def test_covers_that_are_tem_a_measure_or_uniform() -> None:
    plain, identity = Tem(E, 4.0), Cover.identity(E)
    one = Cover.nearest(E, 1, least=1)
    assert identity == one and (one.k, one.floor, one.excluded) == (1, 1.0, [])
    weights = 1 / (np.arange(200) * 7919 % 200 + 1.0)
    measured = Tem(E, 4.0, language=weights, exclude=["w3"])
    weighted = Tem(E, 4.0, cover=Cover.identity(E, exclude=["w3"]).weighted(weights))
    covered = Tem(E, 4.0, cover=one)
    for word in E.words:
        assert (plain.probabilities(word) == covered.probabilities(word)).all()
        assert (measured.probabilities(word) == weighted.probabilities(word)).all()
    uniform = Tem(E, 4.0, cover=Cover.nearest(E, 200, least=0)).probabilities("w3")
    assert np.abs(uniform - 1 / 200).max() < 1e-12
    for k in (0, 201):
        with pytest.raises(fastdx.ParameterError, match="k must be"):
            Cover.nearest(E, k, least=0)


def test_unknown_words_become_what_is_released() -> None:
    e = numbered(RNG.normal(size=(50, 2)))
    weights = np.where(np.arange(50) == 10, 900.0, 1.0)
    cover = Cover.identity(e, exclude=e.words[:4]).weighted(weights)
    drawn = as_users_draw(Tem(e, 2.0, cover=cover, seed=7)).privatize_tokens(["zzz"] * 200_000)
    weights[:4] = 0
    assert_follows(np.bincount(e.ids(drawn), minlength=50), weights / weights.sum())


# Its draws and its price: test_every_law.py.
def test_the_staircase() -> None:
    m = NeighborResponse(E, 3.0, cover=5)
    likely = list(E.ids(m.cover.outputs("w0")))
    assert len(likely) == 5 and m._details["score"] == pytest.approx(3.0)
    expected = np.ones(200)
    expected[likely] = np.exp(3.0)
    np.testing.assert_allclose(m.probabilities("w0"), expected / expected.sum(), rtol=1e-9)
    assert m.guarantee.bound(["w0"], ["w9"]) == 3.0 == m.guarantee.bound(["w0"], ["zzz"])
    assert m.guarantee.bound("w0 w1", "w2 w3") == 6.0


@pytest.mark.parametrize("epsilon", [1e-15, 1e-13, 1e-12])
def test_the_staircase_costs_a_small_epsilon_exactly(epsilon: float) -> None:
    # Of 100 outputs 90 stand for one word and 1 for each other: to the first order the normalisers
    # differ by 89/100 of the score.
    e = Embedding(E.words[:100], E.vectors[:100])
    sets = {w: [w, *(["w0"] if i < 90 else [])] for i, w in enumerate(e.words)}
    score = NeighborResponse(e, epsilon, cover=Cover.from_sets(e, sets))._details["score"]
    cost = score * (1 + 0.89)
    assert epsilon * (1 - 1e-9) < cost <= epsilon * (1 + 1e-11)


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    other = Embedding(E.words, E.vectors + 1)
    cover = Cover.nearest(other, 3)
    E.save(tmp_path / "words")
    refused(
        *((fastdx.ParameterError, "", make) for make in (
            lambda: Tem(E, 1.0, cover=cover),
            lambda: NeighborResponse(E, 1.0, cover=cover),
            lambda: NeighborResponse(other, 1.0, cover=cover.weighted(np.arange(1.0, 201.0))),
            lambda: cover.weighted(np.ones(3)),
            lambda: cover.weighted(-np.ones(200)),
            lambda: Cover.balanced(E, 3, weight=-1),
            lambda: Cover.balanced(E, 3, frequencies=np.ones(3)),
            lambda: Cover.from_sets(E, {"w0": []}),
            lambda: Tem(E, 1.0, remap=Cover.from_sets(E, {"w0": ["w0"]})),
        )),
        (fastdx.InputTypeError, "", lambda: Tem(E, 1.0, cover="40")),  # type: ignore[arg-type]
        (fastdx.InputTypeError, "",
         lambda: Cover.from_sets(E, [("w0", ["w1"])])),  # type: ignore[arg-type]
        (fastdx.CorruptFileError, "", lambda: Cover.load(E, tmp_path / "words")),
        (fastdx.UnknownWordError, "", lambda: Cover.from_sets(E, {"w0": ["nope"]})),
        (FileNotFoundError, "", lambda: Tem(E, 1.0, exclude=tmp_path / "none")),
    )  # fmt: skip


def test_the_command(tmp_path: Path, command: Command) -> None:
    words = Embedding(ENGLISH.words[:500], ENGLISH.vectors[:500])
    file, index = tmp_path / "words.fdx", tmp_path / "index"
    words.save(file)
    base = ("privatize", "--epsilon", 3, "--embedding", file)
    plain = ("--exclude", "none")
    assert made(*base) == Tem(words, 3.0, exclude="offensive")
    assert made(*base, "--cover", 40, *plain) == Tem(words, 3.0, cover=40)
    response = made(*base, *plain, "--mechanism", "response", "--cover", 10)
    assert response == NeighborResponse(words, 3.0, cover=10)
    balanced = made(*base, *plain, "--cover", 40, "--balance", 0.1)
    assert balanced.cover == Cover.balanced(words, 40, weight=0.1)
    command("index", "build", "--k", "30", "--cover", "20", "-q", "-o", index, "--embedding", file)
    assert made("privatize", "--epsilon", 3, "--embedding", index, *plain).cover.k == 20


@pytest.mark.parametrize("kind", [Tem, MultivariateLaplace])
def test_outputs_are_remapped(kind: type[Mechanism]) -> None:
    e = Embedding(E.words[:30], E.vectors[:30])
    plain = kind(e, 5.0)
    m = kind(e, 5.0, remap=4, exclude=["w2"])
    cover = Cover.nearest(e, 4, least=0, exclude=["w2"])
    assert m.remap == cover and m.excluded == ["w2"] and plain.remap is None
    # Tem does not draw what is excluded either; noise may, before it is remapped.
    before = (kind(e, 5.0, exclude=["w2"]).probabilities("w1") if kind is Tem
              else np.bincount(plain.sample("w1", 300_000), minlength=30) / 300_000)  # fmt: skip
    expected = np.zeros(30)
    for y, p in zip(e.words, before, strict=True):
        expected[e.ids(cover.outputs(y))] += p / 4
    counts = np.bincount(m.sample("w1", 300_000), minlength=30)
    assert counts[2] == 0 and np.abs(counts / 300_000 - expected).max() < 0.01
    if kind is Tem:
        assert m.gamma == plain.gamma
        np.testing.assert_allclose(m.probabilities("w1"), expected, rtol=1e-9)
    assert m.guarantee.bound(["w1"], ["w9"]) == plain.guarantee.bound(["w1"], ["w9"])
    assert "post-processing" in str(m.guarantee) and "1 of the 30 words" in str(m.guarantee)
    assert "w2" not in m.privatize_tokens(["zzz"] * 2000)


def test_a_copy_draws_what_a_remapped_mechanism_draws() -> None:
    """The mechanism releases words that its remapping never releases."""
    e = Embedding(E.words[:20], E.vectors[:20])
    half = Cover.from_sets(e, {y: e.words for y in e.words[::2]})
    weighted = half.weighted([1.0 + (word == "w4") for word in e.words])
    matrix = np.random.default_rng(3).dirichlet(np.ones(20), size=20)
    certified = Tem(e, 1.5, remap=half, certified=True)
    assert certified.epsilon < certified.nominal
    for m in (
        certified,
        Tem(e, 3.0, remap=half, exclude=["w0", "w1"]),
        Tem(e, 3.0, cover=weighted, remap=Cover.nearest(e, 3)),
        Tem(e, 3.0, remap=3, exclude=["w1"]),
        Tem(e, 3.0, remap=half).with_epsilon(2.0),
        Tem(e, 3.0, remap=half, exclude=["w0"]).build_lists(5),
        NeighborResponse(e, 2.0, cover=4, remap=half),
        FiniteLaw(e, matrix, remap=half, exclude=["w3"]),
        Mahalanobis(e, 5.0, remap=half),
        MultivariateLaplace(e, 5.0, remap=half, exclude=["w2"]),
    ):
        assert_copies(m)
        assert pickle.loads(pickle.dumps(m)).excluded == m.excluded
    # Noise has no law to compare: a copy draws what its original would have drawn first.
    ids = np.arange(20).repeat(50)
    for kind in (Mahalanobis, MultivariateLaplace):
        original = kind(e, 5.0, remap=half, seed=4)
        again = pickle.loads(pickle.dumps(original))
        assert (again.privatize_ids(ids) == original.privatize_ids(ids)).all()


def test_a_word_that_no_output_stands_for_has_no_floor() -> None:
    e = Embedding(E.words[:4], E.vectors[:4])
    weights = [1.0, 2.0, 1.0, 1.0]
    some = Cover.from_sets(e, {"w0": ["w0", "w1"], "w1": ["w2"]})
    for cover in (some.weighted(weights), Cover.identity(e, exclude=["w3"]).weighted(weights)):
        tem = Tem(e, 2.0, cover=cover)
        assert cover.k == 0 and cover.floor == 1.0 and "probability above" not in str(tem.guarantee)
        assert max(tem.probabilities(w).max() for w in e.words) <= cover.floor
    sure = Cover.from_sets(e, {y: e.words for y in e.words[:3]}).weighted(weights)
    assert sure.floor == pytest.approx(0.5, rel=1e-9) and "above 0.5000" in str(
        Tem(e, 2.0, cover=sure).guarantee
    )


def test_bags_under_the_staircase_pay_for_every_word_that_differs() -> None:
    e = line(0, 0.001, 5)
    bags = BagOfWords(NeighborResponse(e, 2.0, cover=1))
    assert bags.bound({"a": 2, "c": 1}, {"b": 2, "c": 1}) == pytest.approx(4.0)
    assert bags.bound({"a": 1, "b": 1}, {"b": 1, "c": 1}) == pytest.approx(2.0)
    assert bags.bound(["a", "b"], ["b", "a"]) == 0.0
    assert bags.bound(["a"], ["a", "b"]) == np.inf
    assert bags.bound(["a"], ["b"]) > BagOfWords(Tem(e, 2.0)).bound(["a"], ["b"])
    # The true loss of a bag of one word, from the law.
    laws = [bags.mechanism.probabilities(w) for w in ("a", "b")]
    assert np.log(laws[0] / laws[1]).max() <= bags.bound(["a"], ["b"])


def test_balanced_covers_of_the_built_in_words_stay_what_they_are() -> None:
    # A certificate, a ledger and a release record name a cover by its fingerprint.
    some = Embedding(ENGLISH.words[:3000], ENGLISH.vectors[:3000])
    made = Cover.balanced(some, 40, exclude="offensive")
    assert made.excluded and made.fingerprint == "818077ce539b962a"
    assert Cover.balanced(some, 10, weight=0.05).fingerprint == "d96981335139e12a"


def test_near_losses_are_those_of_the_laws() -> None:
    for mechanism in (Tem(E, 2.0), Tem(E, 2.0, cover=6), NeighborResponse(E, 4.0, cover=6)):
        found = audit.near_losses(mechanism, E.words[:9], 5)
        for word, loss in zip(E.words[:9], found, strict=True):
            near = np.argsort(E.distances(word), kind="stable")[1:6]
            own = np.log(mechanism.probabilities(word))
            others = [np.log(mechanism.probabilities(E.words[i])) for i in near]
            assert loss == pytest.approx(max(np.abs(own - other).max() for other in others))
