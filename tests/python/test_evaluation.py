"""Every attack convicts a planted leak, and is at chance on uniformly random output."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fastdx
from fastdx import Embedding, MultivariateLaplace, Tem
from fastdx.cli import main
from fastdx.evaluation import (
    Attribution,
    Evaluation,
    Interval,
    choose_attribution,
    evaluate,
    frequency_attack,
    membership_inference,
    of_share,
    over_trials,
    text_classifier,
    vector_classifier,
)

WORDS = [f"w{i}" for i in range(300)]
E = Embedding(WORDS, np.random.default_rng(3).normal(size=(300, 8)))
LEAK = Tem(E, 200.0, gamma=100.0, seed=1)
"""Releases every word as it is."""
UNIFORM = Tem(E, 1e-9, seed=1)
"""Releases any word, whatever was written."""


def texts_of(count: int, kinds: int, seed: int, length: int = 30) -> tuple[list[str], list[str]]:
    """Texts of several kinds, each with twenty words of its own among others."""
    rng = np.random.default_rng(seed)
    kind = np.arange(count) % kinds
    texts = []
    for k in kind:
        own, any_word = 20 * k + rng.integers(0, 20, length), rng.integers(0, 300, length)
        chosen = np.where(rng.random(length) < 0.4, own, any_word)
        texts.append(" ".join(WORDS[i] for i in chosen))
    return texts, [f"kind {k}" for k in kind]


def test_the_leaks_are_what_they_are_called() -> None:
    ids = np.arange(300, dtype=np.uint32)
    assert (LEAK.privatize_ids(ids) == ids).all()
    law = UNIFORM.probabilities("w0")
    assert np.allclose(law, 1 / 300, rtol=1e-6)


def test_counting_repeats() -> None:
    assert frequency_attack(LEAK, WORDS, 3).all()
    # 300 tries at 1/300 each: more than 12 hits have a probability below 1e-7.
    assert frequency_attack(UNIFORM, WORDS, 50).sum() <= 12
    consistent = Tem(E, 2.0, seed=1, consistent=True)
    independent = Tem(E, 2.0, seed=1)
    once = frequency_attack(consistent, WORDS, 1).mean()
    often = frequency_attack(consistent, WORDS, 100).mean()
    assert (
        abs(once - often) < 0.25 and frequency_attack(independent, WORDS, 100).mean() > often + 0.2
    )
    with pytest.raises(fastdx.ParameterError, match="times"):
        frequency_attack(LEAK, WORDS, 0)


def test_authorship() -> None:
    known, authors = texts_of(80, 8, 1)
    texts, truth = texts_of(80, 8, 2)
    attack = Attribution(known, authors, rounds=20)

    def right(mechanism: Tem) -> int:
        found = attack.attribute(mechanism.privatize(texts)).authors
        return sum(a == b for a, b in zip(found, truth, strict=True))

    assert right(LEAK) > 70
    # 80 tries at 1/8: 28 hits or more have a probability below 1e-6.
    assert right(UNIFORM) < 28


@pytest.mark.parametrize("weights", ["log", "log-idf", "counts"])
@pytest.mark.parametrize("known", ["together", "mean", "each"])
def test_every_attribution_finds_what_is_there_and_nothing_else(known: str, weights: str) -> None:
    learned, authors = texts_of(80, 8, 1)
    texts, truth = texts_of(80, 8, 2)
    attack = Attribution(learned, authors, rounds=10, known=known, weights=weights, lower=True)

    def right(mechanism: Tem) -> int:
        found = attack.attribute(t.upper() for t in mechanism.privatize(texts)).authors
        return sum(a == b for a, b in zip(found, truth, strict=True))

    # 80 tries at 1/8: 28 hits or more have a probability below 1e-6.
    assert right(LEAK) > 50 and right(UNIFORM) < 28


def test_settings_are_chosen_on_known_texts() -> None:
    texts, who = texts_of(400, 4, 11, length=6)
    syllables = ["ba", "co", "du", "fe", "gi", "ho", "ja", "ke", "li", "mo"]
    letters = str.maketrans(dict(zip("0123456789", syllables, strict=True)))
    rng = np.random.default_rng(1)
    # Capitals mean nothing.
    wild = ["".join(c.upper() if rng.random() < 0.5 else c for c in t.translate(letters))
            for t in texts]  # fmt: skip
    chosen = choose_attribution(wild, who, rounds=5, seed=1)
    assert chosen.settings["lower"] and chosen.asked == 80
    shares = [share for _, share in chosen.tried]
    assert chosen.tried[int(np.argmax(shares))][0] == chosen.settings
    assert str(chosen).startswith("known = ") and f"{max(shares):.3f}" in str(chosen)
    assert choose_attribution(wild, who, rounds=5, seed=1) == chosen
    # Where capitals are all that tells authors apart, they stay.
    shout = [t.upper() if i % 2 else t for i, t in enumerate(texts_of(80, 1, 12)[0])]
    loud = choose_attribution(shout, [i % 2 for i in range(80)], rounds=5)
    assert not loud.settings["lower"] and loud.tried[0][1] > 0.9


def test_what_is_wrong_with_an_attribution_is_named() -> None:
    texts, authors = texts_of(20, 2, 1)
    for arguments in ({"rounds": 0}, {"grams": 0}, {"features": 0}, {"fraction": 0.0},
                      {"known": "one"}, {"weights": "tf"}):  # fmt: skip
        with pytest.raises(fastdx.ParameterError, match=next(iter(arguments))):
            Attribution(texts, authors, **arguments)
    for arguments, match in (({"held": 1.0}, "held"), ({"sure": 0.0}, "sure"),
                             ({"held": 0.01}, "texts")):  # fmt: skip
        with pytest.raises(fastdx.ParameterError, match=match):
            choose_attribution(texts, authors, **arguments)
    with pytest.raises(fastdx.ParameterError, match="authors"):
        choose_attribution(texts, authors[:3])


class Memory:
    """A classifier that knows the texts of its training by heart, or nothing."""

    def __init__(self, texts: list[str], *, leaks: bool) -> None:
        self.texts = set(texts) if leaks else set()
        self.classes_ = np.array(["kind 0", "kind 1"])

    def predict_proba(self, texts: list[str]) -> np.ndarray:
        rng = np.random.default_rng([ord(c) for c in texts[0]])
        p = rng.random((len(texts), 1))
        sure = np.array([[t in self.texts] for t in texts])
        return np.hstack([np.where(sure, 1.0, p), np.where(sure, 0.0, 1 - p)])


@pytest.mark.parametrize("leaks", [True, False])
def test_membership(leaks: bool) -> None:
    parts = [texts_of(400, 2, seed) for seed in range(4)]
    target, shadow = (Memory(parts[i][0], leaks=leaks) for i in (0, 2))
    auc = membership_inference(target, parts[0], parts[1], shadow=shadow, shadow_members=parts[2],
                               shadow_others=parts[3])  # fmt: skip
    if leaks:
        assert auc > 0.7
    else:
        # The standard deviation of an AUC of 400 against 400 is 0.0204.
        assert abs(auc - 0.5) < 5.5 * 0.0204


def test_membership_of_a_classifier_that_learns_by_heart() -> None:
    rng = np.random.default_rng(1)

    def part() -> tuple[list[str], list[str]]:
        texts, _ = texts_of(200, 2, int(rng.integers(1 << 30)))
        return texts, [
            f"kind {k}" for k in rng.integers(0, 2, 200)
        ]  # nothing to learn but by heart

    parts = [part() for _ in range(4)]

    def auc(mechanism: Tem) -> float:
        target, shadow = (
            text_classifier(mechanism.privatize(parts[i][0]), parts[i][1], strength=10.0)
            for i in (0, 2)
        )
        return membership_inference(target, parts[0], parts[1], shadow=shadow,
                                    shadow_members=parts[2], shadow_others=parts[3])  # fmt: skip

    assert auc(LEAK) > 0.7  # seven standard deviations
    assert abs(auc(UNIFORM) - 0.5) < 5.5 * 0.029
    empty: tuple[list[str], list[str]] = ([], [])
    target = text_classifier(*parts[0])
    with pytest.raises(fastdx.ParameterError, match="others"):
        membership_inference(target, parts[0], empty, shadow=target, shadow_members=parts[2],
                             shadow_others=parts[3])  # fmt: skip


def by_name(found: Evaluation) -> dict[str, Interval]:
    return {m.name: m.private for m in found.measures}


def test_all_of_them_on_a_leak_and_on_noise() -> None:
    texts, labels = texts_of(240, 4, 5)
    leak = evaluate(LEAK, texts, labels=labels, authors=labels, trials=3)
    noise = evaluate(UNIFORM, texts, labels=labels, authors=labels, trials=3)
    assert len(leak.measures) == 10 and not leak.notes and leak.seeded
    for m in leak.measures:
        if "AUC" not in m.name:
            assert m.private.mean > max(0.8, m.chance + 0.3), m.name
        if m.plain is not None:
            assert abs(m.private.mean - m.plain.mean) < 0.05, m.name
    for m in noise.measures:
        # Three times 120 texts or 100 words: five standard deviations and some.
        assert abs(m.private.mean - m.chance) < 0.16, m.name
    assert by_name(noise).keys() == by_name(leak).keys()
    # Exact: always the commonest word is the best that can be done.
    word = noise.measures[0]
    assert word.private.mean == pytest.approx(word.chance, rel=1e-6)


def test_mechanisms_without_a_law_and_texts_alone() -> None:
    texts, _ = texts_of(60, 2, 6)
    found = evaluate(MultivariateLaplace(E, 2.0, seed=1), texts, trials=2, attacked=10)
    assert [m.kind for m in found.measures] == ["attack"] * 5
    assert len(found.notes) == 2
    assert found.measures[0].private.low < found.measures[0].private.high


def test_the_page_and_its_data(tmp_path: Path) -> None:
    texts, labels = texts_of(80, 2, 7)
    texts = [f"{t} <script>secret" for t in texts]
    found = evaluate(LEAK, texts, labels=labels, trials=2, attacked=10, command="fastdx <evaluate>")
    found.write(tmp_path / "page.html")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["page.html", "page.json"]
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "{{" not in page and "secret" not in page and "<script" not in page
    assert "NOT" in page and "fastdx &lt;evaluate&gt;" in page
    assert page.count("<svg") == len(found.measures)
    data = json.loads((tmp_path / "page.json").read_text("utf-8"))
    assert data["measures"][0]["private"]["mean"] == found.measures[0].private.mean
    assert data["versions"]["fastdx"] == fastdx.__version__
    assert found.guarantee == str(LEAK.guarantee)
    with pytest.raises(fastdx.ParameterError, match="path"):
        found.write(tmp_path / "page.json")


def test_intervals_hold_what_they_say() -> None:
    rng = np.random.default_rng(1)
    inside = sum(
        i.low <= 0.3 <= i.high
        for i in (over_trials(rng.normal(0.3, 1.0, 5)) for _ in range(2000))
    )  # fmt: skip
    # Binomial, 2,000 at 0.95: five standard deviations are 49.
    assert abs(inside - 1900) < 49
    wide = over_trials([0.1, 0.2, 0.3], reused=1.0)
    narrow = over_trials([0.1, 0.2, 0.3])
    assert (wide.high - wide.mean) == pytest.approx(2 * (narrow.high - narrow.mean))
    assert over_trials([0.0, 1.0], within=(0, 1)).high == 1
    assert of_share(0, 10).low == 0 and of_share(10, 10).high == 1
    for wrong in ([0.5], []):
        with pytest.raises(fastdx.ParameterError, match="trials"):
            over_trials(wrong)
    with pytest.raises(fastdx.ParameterError, match="hits"):
        of_share(11, 10)


def test_vectors_learn_too() -> None:
    texts, labels = texts_of(200, 2, 8)
    learned = vector_classifier(texts[:100], labels[:100], E)
    assert learned.score(texts[100:], labels[100:]) > 0.7


def test_what_is_wrong_is_named() -> None:
    texts, labels = texts_of(60, 2, 9)
    for arguments, match in (
        ({"texts": texts[:10]}, "texts"),
        ({"labels": labels[:5]}, "labels"),
        ({"labels": ["x"] * 60}, "labels"),
        ({"authors": ["x"] * 60}, "authors"),
        ({"trials": 1}, "trials"),
    ):
        with pytest.raises(fastdx.ParameterError, match=match):
            evaluate(LEAK, **{"texts": texts, **arguments})
    with pytest.raises(fastdx.InputTypeError):
        evaluate("tem", texts)


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "tsv"])
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    texts, labels = texts_of(60, 2, 10, 8)
    E.save(tmp_path / "e.fdx")
    file = tmp_path / f"texts.{form}"
    rows = [{"body": t, "kind": k} for t, k in zip(texts, labels, strict=True)]
    if form in ("csv", "tsv"):
        between = "," if form == "csv" else "\t"
        lines = [between.join(row.values()) for row in rows]
        file.write_text("\n".join([between.join(rows[0]), *lines]) + "\n")
    else:
        lines = [json.dumps(row) for row in [*rows, {"body": None, "kind": "x"}]]
        file.write_text("\n".join(lines) if form == "jsonl" else f"[{','.join(lines)}]")
    page = tmp_path / "page.html"
    args = ["evaluate", str(file), "--text-column", "body", "--label-column", "kind", "--trials",
            "2", "--attacked", "5", "--embedding", str(tmp_path / "e.fdx"), "--epsilon", "3",
            "--exclude", "none", "-q", "-o", str(page)]  # fmt: skip
    assert main(args) == 0
    shown = capsys.readouterr().out
    assert "label learned from private text" in shown and "No authors" in shown
    data = json.loads(page.with_suffix(".json").read_text("utf-8"))
    assert data["texts"] == 60 and data["epsilon"] == 3.0 and not data["seeded"]
    assert ("1 records" in shown) == form.startswith("json")


@pytest.mark.parametrize(
    ("content", "more", "message"),
    [
        ('{"text": 3}\n', [], "line 1: field 'text' holds a int, not text"),
        ('{"text": "a"}\n[]\n', [], "line 2: not a JSON object"),
        ('{"text": "secret" x\n', [], "line 1: not JSON at character"),
        ('{"body": "secret"}\n', [], "line 1: none of its 1 fields is called 'text'"),
        ('{"text": "a"}\n', ["--label-column", "text"], "must differ"),
        ('{"text": "a"}\n', ["--mechanism", "bag"], "not --mechanism bag"),
        ('{"text": "a"}\n', ["--sample", "-1"], "--sample"),
        ('{"text": "a"}\n', [], "texts must be"),
    ],
)
def test_mistakes_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, more: list[str], message: str
) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text(content)
    page = tmp_path / "p.html"
    assert main(["evaluate", str(file), "--epsilon", "3", "-q", "-o", str(page), *more]) == 1
    told = capsys.readouterr().err
    assert message in told and "secret" not in told and not page.exists()
