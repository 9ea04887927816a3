"""Decoded texts as people read them, and the command that writes them."""

import inspect
import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import fastdx
from fastdx import Embedding, Tem
from fastdx.bags import STOP_WORDS
from fastdx.channel import Channel, NgramPrior, Posterior
from fastdx.channel.features import TextFeatures
from fastdx.channel.hierarchy import Hierarchy, nouns
from fastdx.cli import main
from helpers.command import Command

WORDS = ["the", "in", "flu", "cancer", "london", "paris", "and", "hotels", "restaurants", "he"]
PLACES = [0.0, 1.0, 9.0, 9.3, 20.0, 20.3, 2.0, 30.0, 30.2, 3.0]


@pytest.fixture
def space() -> Embedding:
    return Embedding(WORDS, np.array(PLACES)[:, None])


@pytest.fixture
def prior(space: Embedding) -> NgramPrior:
    rare = np.array([300.0, 200, 1, 1, 1, 1, 100, 1, 1, 100])
    return NgramPrior.of_frequencies(space, rare / rare.sum())


@pytest.fixture
def channel(space: Embedding) -> Channel:
    return Channel.of(Tem(space, 2.5, oov="error"))


@cache
def ancestors(word: str) -> frozenset[str]:
    found, ahead = set(), [word]
    while ahead:
        one = ahead.pop()
        found.add(one)
        ahead += nouns()[one][1]
    return frozenset(name for name in found if not nouns()[name][2])


def test_the_hierarchy_is_one() -> None:
    for word, (share, above, plural) in nouns().items():
        assert 0 <= share <= 1 and nouns().keys() >= set(above)
        assert not any(word in ancestors(name) for name in above)
        assert len(above) == 1 or not plural
    assert "disease" in ancestors("flu") and "building" in ancestors("restaurants")
    assert "city" in ancestors("london") and "person" in ancestors("einstein")
    # Verbs, letters and closed classes make no categories.
    assert not {"he", "in", "as", "be", "a", "can"} & {
        w for w, (share, _, _) in nouns().items() if share > 0
    }
    assert nouns()["play"][0] == 0.097 and nouns()["restaurant"][0] == 1.0


def test_masses_are_sums_over_all_descendants() -> None:
    words = Embedding.default().words[:3000]
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.full(len(words), 0.05))
    want: dict[str, float] = {}
    for word, mass in zip(words, p, strict=True):
        if word in nouns():
            for name in ancestors(word):
                want[name] = want.get(name, 0.0) + nouns()[word][0] * mass
    h = Hierarchy(words)
    got = dict(zip(h.names, h.masses(p), strict=True))
    assert set(got) == set(want)
    assert max(abs(got[name] - want[name]) for name in want) < 1e-12
    prior = np.full(len(words), 1 / len(words))
    base = dict(zip(h.names, h.masses(prior), strict=True))
    for at_least in (0.1, 0.2, 0.4):
        able = {n for n in want if want[n] >= at_least and base[n] <= 2.0**-4}
        found = h.most_specific(p, prior, at_least)
        if not able:
            assert found is None
            continue
        assert found is not None and found[1] >= at_least
        singular = next((n for n in able if n == found[0]), None)
        rarest = min(base[n] for n in able)
        assert singular is None or base[singular] == pytest.approx(rarest)


def test_categories_and_open_places(channel: Channel, prior: NgramPrior) -> None:
    posterior = channel.decode("flu in london and restaurants.", prior)
    view = posterior.text("certain", at_least=0.8)
    kinds = [piece.kind for piece in view.words]
    for i, piece in enumerate(view.words):
        p = posterior.marginals(i)
        if p.max() >= 0.8:
            assert piece.kind == "word" and piece.text == WORDS[int(p.argmax())]
        elif piece.kind == "category":
            mass = sum(nouns()[w][0] * p[j] for j, w in enumerate(WORDS)
                       if w in nouns() and nouns()[w][0]
                       and piece.text.strip("[]").rstrip("s") in
                       {n.rstrip("s") for n in ancestors(w)})  # fmt: skip
            assert piece.probability == pytest.approx(mass) and mass >= 0.8
    # Two hotels, or restaurants: the plural.
    assert kinds == ["category", "open", "category", "open", "category"]
    assert re.fullmatch(r"\[disease\] … \[(city|center)\] … \[buildings\]\.", view.text)
    everything = posterior.text("certain", at_least=1.0)
    assert everything.text == "….", everything
    assert np.isnan(everything.expected_right) and "nothing" in str(everything)


def test_neighbouring_open_places_merge(channel: Channel, prior: NgramPrior) -> None:
    def certain(text: str) -> str:
        return channel.decode(text, prior).text("certain", at_least=1.0).text

    assert certain("flu, in london") == "…"
    assert certain("flu in. london and") == "…. …"
    assert certain("(flu) in") == "(…"
    view = channel.decode(["flu", "in"], prior).text("certain", at_least=1.0)
    assert view.text == "…"


def test_likely_texts_and_their_expected_share(space: Embedding, channel: Channel) -> None:
    prior = NgramPrior.train(
        space, ["flu in london and paris", "the hotels and restaurants"], order=2
    )
    for release in ("flu the London".lower(), "restaurants and cancer, in paris"):
        posterior = channel.decode(release, prior)
        view = posterior.text()
        assert view.text == posterior.viterbi()
        ids = [WORDS.index(piece.text) for piece in view.words]
        want = np.mean([posterior.marginals(i)[id] for i, id in enumerate(ids)])
        assert view.expected_right == pytest.approx(want)
        best = posterior.text("marginals")
        assert best.expected_right == pytest.approx(posterior.expected_right)
        assert best.expected_right >= view.expected_right - 1e-12
        for one in (view, best):
            assert str(one).startswith("[reconstructed") and not one.text.startswith("[rec")
            assert f"{one.expected_right:.0%}" in str(one)


def test_what_is_said_is_right_as_often_as_said(space: Embedding, prior: NgramPrior) -> None:
    """Texts drawn from the prior: the number of right words, and categories, within six sigma."""
    m = Tem(space, 1.5, oov="error", seed=7)
    flat = NgramPrior.of_frequencies(space, np.full(10, 0.1))
    channel = Channel.of(m)
    rng = np.random.default_rng(7)
    said = {view: [0.0, 0.0] for view in ("likely", "certain")}
    for _ in range(60):
        text = [WORDS[i] for i in rng.integers(0, 10, 12)]
        released = m.privatize(" ".join(text)).split()
        posterior = channel.decode(released, flat)
        for view, total in said.items():
            made = posterior.text(view, at_least=0.45)
            for piece, true in zip(made.words, text, strict=True):
                if piece.kind == "word":
                    total[0] += (piece.text == true) - piece.probability
                    total[1] += piece.probability * (1 - piece.probability)
    for view, (difference, variance) in said.items():
        assert variance > 0 and abs(difference) < 6 * variance**0.5, view


def test_shown_words_are_shown(space: Embedding, prior: NgramPrior) -> None:
    skipping = Channel.of(Tem(space, 1.0, skip=["Weyland"], oov="error"))
    prior = NgramPrior.of_frequencies(space, prior.frequencies, unknown=0.05)
    posterior = skipping.decode("flu Weyland in", prior)
    view = posterior.text("certain", at_least=1.0)
    assert view.text == "… Weyland …" and [p.kind for p in view.words][1] == "shown"
    assert "Weyland" in posterior.text().text


def test_what_may_be_said(space: Embedding, channel: Channel, prior: NgramPrior) -> None:
    posterior = channel.decode("flu in london", prior)
    said = posterior.guarantee
    assert said.startswith(str(channel.mechanism.guarantee))
    right = [c for b, c in zip(posterior.best, posterior.certainty, strict=True)
             if WORDS[b] not in STOP_WORDS]  # fmt: skip
    assert right and posterior.expected_right_content == pytest.approx(np.mean(right))
    assert f"{np.mean(right):.0%} of its content words" in said
    for part in ("not more private", "not less", "invented", "order 1"):
        assert part in said
    again = NgramPrior.of_frequencies(space, prior.frequencies)
    other = NgramPrior.of_frequencies(space)
    marks = [re.findall(r"fingerprint (\w{16})", channel.decode("flu", p).guarantee)
             for p in (prior, again, other)]  # fmt: skip
    assert marks[0] == marks[1] != marks[2] and all(marks)


def test_nobody_can_give_it_the_original() -> None:
    """Of a text only the release goes in: no parameter takes another one."""
    takes = {
        (Channel.decode, "text prior"), (Channel.posterior, "output prior"),
        (TextFeatures.__call__, "texts"), (TextFeatures.__init__, "channel prior"),
        *((function, "view at_least m seed i k right") for name, function in vars(Posterior).items()
          if callable(function) and not name.startswith("_")),
    }  # fmt: skip
    assert len(takes) > 10
    for function, names in takes:
        assert inspect.signature(function).parameters.keys() <= {"self", *names.split()}, function


def test_bad_arguments(channel: Channel, prior: NgramPrior) -> None:
    posterior = channel.decode("flu", prior)
    for at_least in (0.0, 1.5, float("nan")):
        with pytest.raises(fastdx.ParameterError, match="at_least"):
            posterior.text("certain", at_least=at_least)
    with pytest.raises(fastdx.ParameterError, match="view"):
        posterior.text("poem")


class TestCommand:
    """`fastdx decode`."""

    @pytest.fixture
    def files(self, tmp_path: Path, space: Embedding, prior: NgramPrior) -> list[str]:
        space.save(tmp_path / "e.fdx")
        prior.save(tmp_path / "prior")
        (tmp_path / "card.json").write_text(Channel.of(Tem(space, 2.5, oov="error")).card())
        (tmp_path / "a.txt").write_text("flu in london.\n")
        (tmp_path / "a.jsonl").write_text('{"t": "flu in"}\n\n{"t": "restaurants"}\n')
        return ["--embedding", str(tmp_path / "e.fdx"), "--prior", str(tmp_path / "prior"),
                "--card", str(tmp_path / "card.json")]  # fmt: skip

    def test_text_and_jsonl(
        self, tmp_path: Path, files: list[str], channel: Channel, prior: NgramPrior,
        command: Command,
    ) -> None:  # fmt: skip
        want = channel.decode("flu in london.", prior)
        out, err = command("decode", tmp_path / "a.txt", *files, "-q")
        assert out == f"{want.text()}\n" and err.strip() == want.guarantee
        args = ["decode", str(tmp_path / "a.jsonl"), "--column", "t", *files, "--view", "certain"]
        assert main([*args, "--to", "jsonl", "-o", str(tmp_path / "out")]) == 0
        records = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
        views = [channel.decode(t, prior).text("certain") for t in ("flu in", "restaurants")]
        assert [r["reconstructed"] for r in records] == [v.text for v in views]
        assert [len(r["words"]) for r in records] == [2, 1]

    def test_a_card_lies_beside_its_release(
        self, tmp_path: Path, files: list[str], command: Command
    ) -> None:
        (tmp_path / "card.json").rename(tmp_path / "a.txt.channel.json")
        beside = command("decode", tmp_path / "a.txt", *files[:4], "-q").out
        assert beside.endswith("\n") and beside.startswith("[reconstructed")
        err = command("decode", *files[:4], "-q", code=1).err
        assert "standard input needs --card" in err

    @pytest.mark.parametrize(
        ("more", "text", "said"),
        [
            (["--at-least", "0"], "flu", "--at-least"),
            ([], "secretword", "word 0"),
            (["--column", "t"], '{"u": "secretword"}', "1: none of its 1 fields is called 't'"),
            (["--column", "t"], "secretword", "line 1: not JSON"),
        ],
    )
    def test_errors_say_where_and_never_what(
        self, tmp_path: Path, files: list[str], more: list[str], text: str, said: str,
        command: Command,
    ) -> None:  # fmt: skip
        (tmp_path / "b").write_text(text)
        err = command("decode", tmp_path / "b", *files, *more, code=1).err
        assert said in err and "secretword" not in err


def test_a_likely_text_that_says_less_than_one_word_everywhere_says_nothing() -> None:
    """A model that repeats "ha" would else make "ha ha ha …" of whatever is released."""
    words = ["the", "ha", *(f"w{i}" for i in range(200))]
    space = Embedding(words, np.arange(len(words))[:, None])
    lines = ["the the " + " the ".join(words[2:])] * 20 + ["ha " * 40]
    prior = NgramPrior.train(space, lines, order=2)
    private = "w1 w2 w3 w4 w5 w6 w7 w8"
    for epsilon, says in ((0.01, False), (40.0, True)):
        posterior = Channel.of(Tem(space, epsilon, oov="error")).decode(private, prior)
        view = posterior.text("likely")
        right = [posterior.marginals(i)[id] for i, id in enumerate(posterior._core.likeliest())]
        assert (np.mean(right) >= prior.frequencies.max()) == says
        assert (view.text == posterior.viterbi()) == says
        if not says:
            assert set(view.text) <= {"…", " "} and "says nothing" in str(view)
