"""Tem's public base measure: one for all words, and one behind what was released before."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastdx
from fastdx import Cover, Tem, from_spec
from fastdx.calibration import choose_epsilon, statistics
from fastdx.channel import Channel, NgramPrior
from fastdx.counts import Estimator
from fastdx.engines._recipe import Recipe
from fastdx.lab import audit
from fastdx.lab.attacks import LikelyInputs, drawn_bits, reidentification
from fastdx.lab.comparison import compare
from helpers.command import fails
from helpers.copies import assert_copies
from helpers.draws import ALARM, as_users_draw, assert_follows, p_value
from helpers.errors import refused
from helpers.laws import bits_of, distances_of, law_of, tem_law
from helpers.policies import made
from helpers.spaces import normal

pytestmark = pytest.mark.filterwarnings("ignore::fastdx.UnchangedWarning")

E = normal(4, 2, 1)
WORDS = list(E.words)
PUBLIC = ["w0 w1 w2 w1 w0. w3 w1 w2 zz w2", "w1 w2 w0 w0 w1 w2. zz w3 w1", "w2 w1 w0 w1 w3 w3"]


def trained_on(space: fastdx.Embedding) -> NgramPrior:
    return NgramPrior.train(space, PUBLIC, order=3)


PRIOR = trained_on(E)
EPSILON, GAMMA = 4.0, 1.5
TEXTS = list(itertools.product(WORDS, repeat=2))

Numbers = np.ndarray[Any, np.dtype[np.float64]]


class Public:
    """The same model as an object in Python, which notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str | None, ...]] = []

    def log_next(self, prefix: tuple[str | None, ...]) -> Numbers:
        self.asked.append(prefix)
        return np.log(PRIOR.next(["zz" if word is None else word for word in prefix]))


class Rare:
    """A model of the built-in words."""

    def log_next(self, prefix: tuple[str | None, ...]) -> Numbers:
        return np.linspace(-3.0, 0.0, 20_000)


def tem_of(language: Any, **more: Any) -> Tem:
    return Tem(E, EPSILON, gamma=GAMMA, language=language, **more)


def formula(word: str, history: list[str]) -> Numbers:
    """Pr[y|w,h] ∝ P(y|h)·exp(-(ε/2)·min(d(w,y), γ)), by numpy."""
    return tem_law(distances_of(E)[WORDS.index(word)], EPSILON, GAMMA, PRIOR.next(history))


def whole(a: str, b: str, *, lie: bool) -> Numbers:
    """The law of every release of a text of two words; a liar's history is the original word."""
    at = WORDS.index
    return np.array([formula(a, [])[at(x)] * formula(b, [a if lie else x])[at(y)]
                     for x, y in TEXTS])  # fmt: skip


# The same for n-grams, and the bound for all texts: tests/it/language.rs.
def test_texts_are_drawn_by_the_law() -> None:
    tem = tem_of(Public(), seed=4)
    # Its Q is that of a sentence's beginning, and keeps a thousandth of the mass.
    expected, liar = (whole("w0", "w2", lie=lie) for lie in (False, True))
    for drawing in (tem, as_users_draw(tem)):
        drawn = drawing.privatize(["w0 w2"] * 40_000)
        counts = [drawn.count(f"{x} {y}") for x, y in TEXTS]
        assert sum(counts) == len(drawn)
        assert_follows(counts, expected)
        tokens = [drawing.privatize_tokens(["w0", "w2"]) for _ in range(4000)]
        assert_follows([tokens.count([x, y]) for x, y in TEXTS], expected)
        assert p_value(counts, liar) < ALARM


def test_the_law_after_what_was_released() -> None:
    tem = tem_of(Public())
    histories = [[], ["w1"], ["w0", "w1"], ["w2", "zz"], ["w3", "w3", "w3"]]
    for word, history in itertools.product(WORDS, histories):
        law = tem.probabilities(word, after=history)
        assert law.sum() == pytest.approx(1, abs=1e-12) and (law > 0).all()
        np.testing.assert_allclose(law, formula(word, history), rtol=5e-3)
        assert (law == tem.probabilities(word, " ".join(history))).all()
        # A sentence begins.
        begun = tem.probabilities(word, f"{' '.join(history)}. ")
        assert (begun == tem.probabilities(word, after=[])).all() or not history
    bound = tem.guarantee.bound("w0 w1", "w2 w1")
    assert bound == pytest.approx(EPSILON * E.distance("w0", "w2"), rel=1e-9)
    assert tem.guarantee.price("w0 w1") == Tem(E, EPSILON, gamma=GAMMA).guarantee.price("w0 w1")
    # A model of single words is the measure of their frequencies, after everything.
    single = NgramPrior.train(E, PUBLIC, order=1)
    alike = tem_of(single), tem_of(single.frequencies)
    assert alike[0].base is not None and (alike[0].base == alike[1].base).all()
    for word in WORDS:
        law = alike[0].probabilities(word, after="w1 w2")
        assert (law == alike[1].probabilities(word)).all()
    # A law that does not go by it is the same after everything.
    plain = Tem(E, EPSILON)
    assert (plain.probabilities("w1", after="w2 w3") == plain.probabilities("w1")).all()


@pytest.mark.parametrize(
    ("epsilon", "word", "before"), [(2.25, "tea", "of the"), (5.0, "the", "it is a")]
)
def test_english_is_drawn_by_the_law(epsilon: float, word: str, before: str) -> None:
    tem = as_users_draw(Tem(epsilon=epsilon, language="english", skip=before.split(), seed=3))
    drawn = tem.privatize([f"{before} {word}"] * 100_000)
    counts = np.bincount(tem.space.ids([text.split()[-1] for text in drawn]), minlength=20_000)
    assert_follows(counts, tem.probabilities(word, after=before))


def test_an_object_is_asked_for_what_was_released_and_once() -> None:
    model = Public()
    tem = tem_of(model, oov="mask", skip=["kept"], threads=1)  # two might ask at the same time
    assert model.asked == [()]
    tem.privatize(["w0 unknown w1. w2"] * 50)
    asked = set(model.asked[1:])
    assert len(asked) == len(model.asked) - 1 <= 1 + 4 + 4
    assert all(len(prefix) in (0, 2) for prefix in asked)
    assert all(prefix[1] is None and prefix[0] in WORDS for prefix in asked if prefix)
    tem.privatize_spans("w3 w0 w1", [(3, 5)])
    assert model.asked[-1] == ("w3",)
    drawn = tem.privatize_tokens(["w2", "w1", "w0", "w3"], select={"w0"})
    assert model.asked[-1] == ("w2", "w1") and (drawn[:2], drawn[3]) == (["w2", "w1"], "w3")


def test_what_an_object_raises_is_raised() -> None:
    class Wrong:
        def __init__(self, later: Any) -> None:
            self.later = later

        def log_next(self, prefix: tuple[str | None, ...]) -> Any:
            if prefix:
                return self.later() if callable(self.later) else self.later
            return np.zeros(4)

    def failing() -> None:
        raise LookupError("no weights")

    for later, kind in ((failing, LookupError), ([0.0] * 3, fastdx.ParameterError),
                        ([0.0, 0.0, 0.0, np.nan], fastdx.ParameterError),
                        ([0.0, 0.0, 0.0, np.inf], fastdx.ParameterError),
                        ([-np.inf] * 4, fastdx.ParameterError),
                        (np.zeros((4, 1)), fastdx.ShapeError),
                        ("x", fastdx.InputTypeError)):  # fmt: skip
        tem = tem_of(Wrong(later))
        tem.privatize("w1")
        for call in (lambda t=tem: t.privatize("w1 w2"), lambda t=tem: t.privatize(["w1 w2"] * 90),
                     lambda t=tem: t.probabilities("w1", after="w2")):  # fmt: skip
            with pytest.raises(kind, match="no weights" if later is failing else "language"):
                call()
    # Words that it holds for impossible keep some weight.
    assert (tem_of(Wrong([0.0, 0.0, -np.inf, -1e9])).probabilities("w1", "w0") > 0).all()
    with pytest.raises(fastdx.ParameterError, match="language must be a model whose log_next"):
        Tem(normal(5, 2, 1), 1.0, language=Wrong(None))


def test_it_is_kept_where_mechanisms_go(tmp_path: Path) -> None:
    file = tmp_path / "of-any-name"
    PRIOR.save(file)
    stored, held, english = tem_of(file), tem_of(PRIOR), Tem(epsilon=3.0, language="english")
    assert stored.spec["language"]["file"] == str(file)
    assert stored == held and hash(stored) == hash(held) and held != Tem(E, EPSILON, gamma=GAMMA)
    assert held != tem_of(NgramPrior.train(E, PUBLIC[:2], order=3))
    assert english.spec["language"] == "english"
    assert_copies(english, from_spec(english.spec))
    others = ({"cover": 2}, {"exclude": ["w1"]}, {"cover": Cover.nearest(E, 2)})
    for tem in (stored, held, english, *(tem_of(PRIOR, **more) for more in others)):
        assert_copies(tem, tem.with_epsilon(9.0).with_epsilon(tem.epsilon))
    assert stored.build_lists(2) == stored
    assert "bigrams of English, given what was released" in repr(english)
    assert from_spec(held.spec, E, language=PRIOR) == held
    other = NgramPrior.train(E, PUBLIC, order=2)
    refused(
        (fastdx.ParameterError, "its fingerprint alone is known", lambda: from_spec(held.spec, E)),
        (fastdx.ParameterError, "language must be the one with",
         lambda: from_spec(held.spec, E, language=other)),
    )  # fmt: skip
    model = Public()
    tem = tem_of(model)
    assert tem == from_spec(tem.spec, E, language=model) and tem == tem.with_epsilon(EPSILON)
    assert tem != tem_of(Public())
    assert "Public in Python" in repr(tem) and "Public in Python" in str(tem.guarantee)
    for recipe in (Recipe.of(3.0, language=NgramPrior.english()), Recipe.of(3.0, language=Rare())):
        made = recipe.mechanism()
        assert made._has_history and made.probabilities("tea", "a cup of").sum() > 0.99
    tem.save(tmp_path / "words.fdx")
    assert Tem.load(tmp_path / "words.fdx", EPSILON, gamma=GAMMA, language=PRIOR) == held


def test_it_is_described() -> None:
    tem = tem_of(PRIOR, exclude=["w1"])
    assert "adaptive composition" in str(tem.guarantee)
    assert tem.guarantee.to_dict()["unchanged"] is None
    assert tem.guarantee.with_bits().to_dict()["bits"]["value"] is None
    record = " ".join(tem.guarantee.describe("reviewer").split())
    assert "leaves out what was released before" in record
    assert tem.base is not None and tem.cover is not None
    with pytest.warns(fastdx.UnchangedWarning, match="without a history"):
        Tem(epsilon=30.0, language="english").privatize("the coffee was cold")


def test_what_needs_one_law_is_refused() -> None:
    tem = tem_of(PRIOR)
    channel = Channel.of(tem)
    # Other refusals of a channel: src/channel/tests/behind.rs.
    calls: list[Callable[[], object]] = [
        lambda: tem.probabilities("w1"), lambda: tem.sample("w1", 3), lambda: tem.unchanged,
        channel.bits, channel.posterior_means, lambda: Estimator(channel).add(["w1 w2"]),
        lambda: drawn_bits(tem, 10), lambda: audit.certify(tem),
        lambda: audit.largest_loss(tem), lambda: statistics(tem), lambda: choose_epsilon(tem),
        lambda: LikelyInputs.of(tem), lambda: reidentification(tem),
    ]  # fmt: skip
    needs_one = 'language must be "frequency"'
    refused(
        *((fastdx.ParameterError, needs_one, call) for call in calls),
        (fastdx.ParameterError, '"frequency"', tem.bits),
        (fastdx.ParameterError, "^remap must be", lambda: tem_of(PRIOR, remap=2)),
        (fastdx.ParameterError, "^certified must be",
         lambda: Tem(E, 1.0, language=PRIOR, certified=True)),
        (fastdx.ParameterError, "^language must be", lambda: tem_of("english")),
        (fastdx.ParameterError, "^language must be", lambda: tem_of(NgramPrior.english())),
        (fastdx.ParameterError, "^language must be",
         lambda: tem_of(PRIOR, cover=Cover.identity(E).weighted([1, 2, 3, 4]))),
    )  # fmt: skip


def test_a_file_without_a_model_is_refused(tmp_path: Path) -> None:
    E.save(tmp_path / "words.fdx")
    with pytest.raises(fastdx.CorruptFileError, match="no language model"):
        tem_of(tmp_path / "words.fdx")
    NgramPrior.train(normal(5, 2, 1), PUBLIC).save(tmp_path / "other")
    with pytest.raises(fastdx.ParameterError, match="language must be"):
        tem_of(tmp_path / "other")


MANY = normal(60, 3, 1)
Q = 1.0 / (np.random.default_rng(2).permutation(60) + 1.0)


# The law, its draws and the bound for every measure: tests/it/covers.rs.
def test_where_a_measure_comes_from(tmp_path: Path) -> None:
    english = Tem(epsilon=3.0, language="frequency")
    assert english.spec["language"] == "frequency" and "in English" in repr(english)
    assert "in English" in str(english.guarantee) and "costs nothing" in str(english.guarantee)
    assert english.base is not None
    expected = NgramPrior.english().frequencies
    np.testing.assert_allclose(
        english.base / english.base.max(), expected / expected.max(), rtol=1e-4
    )
    ranks = Tem(MANY, 3.0, language="rank")
    assert ranks.spec["language"] == "rank" and ranks != english.with_epsilon(3.0)
    assert (ranks.base == Tem(MANY, 3.0, language="frequency").base).all()
    assert "rank" in repr(ranks) and ranks.base is not None and ranks.base.dtype == np.uint32
    np.testing.assert_allclose(ranks.base / ranks.base[0], 3.7 / (np.arange(60) + 3.7), rtol=1e-8)
    counts = tmp_path / "counts.tsv"
    counts.write_text("w0\t100\nw1 7.5\nunknown 3\n\nw1 2.5\n", "utf-8")
    counted = Tem(MANY, 3.0, language=counts)
    assert counted.base is not None
    assert Channel.load(Channel.of(counted).card(), MANY, language=counts).mechanism == counted
    assert (counted.base / counted.base[0]).round(4).tolist() == [1.0, 0.1] + [0.05] * 58
    spec = counted.spec["language"]
    assert spec["file"] == str(counts) and len(spec["fingerprint"]) == 16
    assert (
        Tem(MANY, 3.0, language="uniform") == Tem(MANY, 3.0)
        and "language" not in Tem(MANY, 3.0).spec
    )
    assert Tem(MANY, 3.0, language=np.full(60, 0.5)) == Tem(MANY, 3.0)
    counts.write_text("w0\t99\n", "utf-8")
    with pytest.raises(fastdx.ParameterError, match="language must be the one with"):
        from_spec(counted.spec, MANY)


def test_a_measure_is_kept_where_mechanisms_go() -> None:
    for tem in (
        Tem(MANY, 3.0, language=Q, exclude=["w1"]),
        Tem(epsilon=3.0, language="frequency"),
        Tem(MANY, 3.0, language=Q, remap=Cover.nearest(MANY, 3)),
        Tem(MANY, 2.0, language=Q, certified=True),
    ):
        assert_copies(tem)
        assert tem.with_epsilon(4.0).with_epsilon(3.0) == tem or tem.epsilon < tem.nominal
    tem = Tem(MANY, 3.0, language=Q)
    assert tem != Tem(MANY, 3.0) and tem != Tem(MANY, 3.0, language=Q**2)
    spec = json.loads(json.dumps(tem.spec))
    refused(
        (fastdx.ParameterError, "its fingerprint alone is known", lambda: from_spec(spec, MANY)),
        (fastdx.ParameterError, "language must be the one with",
         lambda: from_spec(spec, MANY, language=Q**2)),
    )  # fmt: skip
    assert from_spec(spec, MANY, language=Q) == tem
    received = Channel.load(Channel.of(tem).card(), MANY, language=Q)
    assert (received.likelihood("w3") == Channel.of(tem).likelihood("w3")).all()


def test_what_is_no_measure_is_refused(tmp_path: Path) -> None:
    bad = tmp_path / "bad.tsv"
    wrong_files = {"w0 1\nw1 -3\n": "line 2", "w0\n": "line 1", "w0 nan\n": "line 1",
                   "x 3\n": "none of the words"}  # fmt: skip
    for text, why in wrong_files.items():
        bad.write_text(text, "utf-8")
        with pytest.raises(fastdx.FormatError, match=why):
            Tem(MANY, 3.0, language=bad)
    with pytest.raises(fastdx.MissingFileError):
        Tem(MANY, 3.0, language=tmp_path / "missing")
    for wrong in (Q[:5], -Q, np.full((60, 2), 0.5), [*Q[:59], math.nan], [*Q[:59], 1e-12], 3.0):
        for more in ({}, {"cover": Cover.identity(MANY, exclude=["w1"])}):
            with pytest.raises((fastdx.ParameterError, fastdx.ShapeError, fastdx.InputTypeError)):
                Tem(MANY, 3.0, language=wrong, **more)
    with pytest.raises(fastdx.ParameterError, match="language must be"):
        Tem(MANY, 3.0, language=Q, cover=Cover.identity(MANY).weighted(Q))


def test_receivers_know_it() -> None:
    tem = Tem(MANY, 3.0, language=Q, oov="mask", seed=1)
    channel = Channel.of(Tem(MANY, 3.0, language=Q, oov="mask"))
    law, prior = law_of(tem), np.random.default_rng(4).dirichlet(np.ones(60))
    assert float(channel.bits(prior)) == pytest.approx(bits_of(prior, law), rel=1e-9)
    np.testing.assert_allclose(channel.likelihood("w7"), law[:, 7], rtol=1e-9)
    posterior = prior * law[:, 7] / (prior * law[:, 7]).sum()
    np.testing.assert_allclose(channel.posterior("w7", prior), posterior, rtol=1e-9)
    assert float(channel.capacity) == pytest.approx(np.log2(law.max(axis=0).sum()), rel=1e-9)
    assert tem.unchanged.mean == pytest.approx(np.diag(law).mean(), rel=1e-6)
    assert tem.unchanged.worst == pytest.approx(np.diag(law).max(), rel=1e-6)
    # A quarter of the words are w0.
    private = tem.privatize(["w0 w5", "w9 w17"] * 3000)
    found = Estimator(channel).add(private).share(["w0"])
    assert found.low < 0.25 < found.high and found.high - found.low < 0.4


def test_epsilon_is_chosen_for_it() -> None:
    chosen = choose_epsilon(Tem(MANY, 3.0, language=Q), max_unchanged=0.3, min_outputs=1)
    found = Tem(MANY, chosen.epsilon, language=Q)
    assert np.diag(law_of(found)).max() <= 0.3
    assert np.diag(law_of(found.with_epsilon(chosen.epsilon * 1.01))).max() > 0.3
    # The uniform measure keeps this promise at another ε.
    assert (
        chosen.epsilon != choose_epsilon(Tem(MANY, 3.0), max_unchanged=0.3, min_outputs=1).epsilon
    )
    for row in compare({"based": found, "uniform": Tem(MANY, 3.0)}, prior=None):
        named = law_of(row.made).max(axis=0).sum() / 60
        assert row.values["R"] == pytest.approx(named, rel=1e-6)


# Options that exclude --language: refused_by_name in tests/it/spec.rs.
def test_the_command_takes_it(tmp_path: Path) -> None:
    e, counts, grams = (tmp_path / name for name in ("e.fdx", "uniform", "grams"))
    MANY.save(e)
    # A file of this name is one if its path says so.
    counts.write_text("".join(f"w{i} {q}\n" for i, q in enumerate(Q)), "utf-8")
    NgramPrior.train(MANY, ["w1 w2 w3."], order=3).save(grams)
    base = ("privatize", "--embedding", e, "--exclude", "none", "--epsilon", 3, "--language")
    for language in (counts, "frequency", grams):
        assert made(*base, language) == Tem(MANY, 3.0, language=language)
    spoken = ("privatize", "--language", "english", "--epsilon")
    assert made(*spoken, 3).spec["language"] == "english"
    fails("without a history", *spoken, "30", stdin="a cup of coffee\n")
    policies = tmp_path / "policies.toml"
    policies.write_text(
        f'[policies.counted]\nepsilon = 3.0\nindex = "{e}"\nlanguage = {{ file = "uniform" }}\n'
    )
    counted = made("privatize", "--policy", f"{policies}:counted")
    assert counted.spec["language"]["file"] == str(counts)
