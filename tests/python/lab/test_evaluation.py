"""Every attack convicts a planted leak, and is at chance on uniformly random output."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import fastdx
from fastdx import Embedding, MultivariateLaplace, Tem
from fastdx.channel import NgramPrior
from fastdx.cli.policies import mechanisms
from fastdx.lab.attacks import LikelyInputs, sentence_attack
from fastdx.lab.evaluation import (
    Attribution,
    ContextModel,
    Evaluation,
    Interval,
    NextWord,
    audit_users,
    choose_attribution,
    evaluate,
    frequency_attack,
    likelihood_attack,
    membership_inference,
    of_share,
    over_trials,
    text_classifier,
    vector_classifier,
)
from helpers.attacked import kinds_of_texts, leak, uniform, users
from helpers.command import Command

WORDS = [f"w{i}" for i in range(300)]
E = Embedding(WORDS, np.random.default_rng(3).normal(size=(300, 8)))
LEAK, UNIFORM = leak(E), uniform(E)
KERAS = find_spec("keras") is not None
"""Whether the neural network can be run."""


def texts_of(count: int, kinds: int, seed: int, length: int = 30) -> tuple[list[str], list[str]]:
    return kinds_of_texts(WORDS, 20, count, kinds, seed, length)


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


def test_explaining_repeats() -> None:
    assert likelihood_attack(LEAK, WORDS, [1, 3]).all()
    # 300 tries at 1/300 each, as above.
    assert likelihood_attack(UNIFORM, WORDS, [50]).sum() <= 12
    # No output is likelier than 1/20, so counting finds little; who knows the law finds it all.
    cover = Tem(E, 3.0, cover=20, seed=1)
    assert frequency_attack(cover, WORDS, 200).mean() < 0.3
    once, often = likelihood_attack(cover, WORDS, [1, 200]).mean(axis=1)
    assert once < 0.3 and often > 0.95
    # Without a law it is learned from draws.
    noise = MultivariateLaplace(E, 3.0, seed=1)
    assert likelihood_attack(noise, WORDS, [100]).mean() > 0.6
    with pytest.raises(fastdx.ParameterError, match="times"):
        likelihood_attack(LEAK, WORDS, [1, 0])


needs_keras = pytest.mark.skipif(
    not KERAS, reason="Keras is not installed: pip install 'fastdx[networks]'"
)


@needs_keras
def test_the_network_is_among_the_attackers() -> None:
    texts, _ = texts_of(60, 2, 6, 12)
    found = evaluate(LEAK, texts, trials=2, attacked=5)
    (measure,) = [m for m in found.measures if "network" in m.name]
    assert measure.private.mean == 1.0
    assert "Keras" in found.versions and not any("network" in note for note in found.notes)


@needs_keras
def test_the_network_knows_what_stands_around_a_word() -> None:
    # Each word follows from the one before, which is released as it is or as another.
    rng = np.random.default_rng(4)

    def texts(count: int) -> list[str]:
        starts = rng.integers(0, 300, count)
        return [" ".join(WORDS[(s + 7 * i) % 300] for i in range(12)) for s in starts]

    # Twins at one place: an output alone cannot tell them apart, the words around it can.
    vectors = np.repeat(np.random.default_rng(5).normal(size=(150, 8)), 2, axis=0)
    twins = Embedding(WORDS, vectors + np.random.default_rng(6).normal(0, 1e-6, (300, 8)))
    public, attacked = texts(300), texts(60)
    named = {}
    for name, m in (("twins", Tem(twins, 60.0, gamma=10.0, seed=1)),
                    ("leak", LEAK), ("noise", UNIFORM)):  # fmt: skip
        model, inputs = NgramPrior.train(m.space, public), LikelyInputs.of(m)
        context = ContextModel(m, public, inputs, model, epochs=6, seed=1)
        named[name] = sentence_attack(
            m, attacked, model, inputs=inputs, context=context.log_probability
        )
    assert named["leak"].context.mean == 1.0
    assert named["twins"].alone.mean < 0.6 and named["twins"].context.mean > 0.9
    # 720 words at 1/300 each, the commonest perhaps at 2/300: more than 20 have a probability below
    # 1e-6.
    assert named["noise"].context.mean * named["noise"].words <= 20
    with pytest.raises(fastdx.ParameterError, match="runs"):
        ContextModel(LEAK, ["none of the vocabulary"], LikelyInputs.of(LEAK))
    with pytest.raises(fastdx.ParameterError, match="epochs"):
        ContextModel(LEAK, public, LikelyInputs.of(LEAK), epochs=0)


def test_without_keras_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastdx.lab.evaluation.context.find_spec", lambda name: None)
    texts, _ = texts_of(60, 2, 6)
    found = evaluate(LEAK, texts, trials=2, attacked=5)
    assert any("network" in note and "keras is not installed" in note for note in found.notes)
    assert not any("network" in m.name for m in found.measures)
    with pytest.raises(ImportError, match="keras"):
        ContextModel(LEAK, texts, LikelyInputs.of(LEAK))


@pytest.mark.parametrize("weights", ["log", "log-idf", "counts"])
@pytest.mark.parametrize("known", ["together", "mean"])
def test_every_attribution_finds_what_is_there_and_nothing_else(known: str, weights: str) -> None:
    learned, authors = texts_of(80, 8, 1)
    texts, truth = texts_of(80, 8, 2)
    attack = Attribution(learned, authors, rounds=10, known=known, weights=weights, lower=True)

    def right(mechanism: Tem) -> int:
        found = attack.attribute(t.upper() for t in mechanism.privatize(texts)).authors
        return sum(a == b for a, b in zip(found, truth, strict=True))

    # 80 tries at 1/8: 28 hits or more have a probability below 1e-6.
    assert right(LEAK) > 50 and right(UNIFORM) < 28
    assert attack.attribute(learned).shares.mean() > 0.9


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
    with pytest.raises(fastdx.ParameterError, match="texts"):
        choose_attribution(texts[:2], authors[:2])
    with pytest.raises(fastdx.ParameterError, match="authors"):
        choose_attribution(texts, authors[:3])


def test_membership_of_a_classifier_that_learns_by_heart() -> None:
    rng = np.random.default_rng(1)

    def part() -> tuple[list[str], list[str]]:
        texts, _ = texts_of(200, 2, int(rng.integers(1 << 30)))
        # Nothing to learn but by heart.
        return texts, [f"kind {k}" for k in rng.integers(0, 2, 200)]

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


def test_ranks_of_next_words() -> None:
    model = NextWord([np.array([0, 1, 0, 1, 0, 2, 3], np.uint32)], 5)
    # After 0 came 1 twice, 2 once; then all by frequency: 0, 1, 2, 3, 4.
    after = [int(model.ranks_of([np.array([0, w], np.uint32)])[0]) for w in range(5)]
    assert (after[1], after[2]) == (1, 2) and after[0] == 3 and after[4] == 7
    assert model.ranks_of([np.array([4, 0], np.uint32)]).tolist() == [1]  # nothing was seen after 4
    assert len(model.ranks_of([np.array([1], np.uint32)])) == 0


def test_the_auditor_convicts_a_leak_and_is_at_chance_on_noise() -> None:
    rng = np.random.default_rng(1)
    target, members = (rng.permutation(400) % 2 == 0 for _ in range(2))
    plain, noise = users(400, 2), users(400, 3)
    leak = audit_users(plain, plain, members, target, 500)
    assert leak.auc > 0.99 and min(leak.precision, leak.recall, leak.accuracy) > 0.95
    # The standard deviation of an AUC of about 100 against 100 is 0.041, of the accuracy 0.035.
    chance = audit_users(plain, noise, members, target, 500)
    assert abs(chance.auc - 0.5) < 5.5 * 0.041 and abs(chance.accuracy - 0.5) < 5.5 * 0.035
    with pytest.raises(fastdx.ParameterError, match="shadow"):
        audit_users(plain, plain, target, target, 500)
    with pytest.raises(fastdx.ParameterError, match="private"):
        audit_users(plain, plain[1:], members, target, 500)


def by_name(found: Evaluation) -> dict[str, Interval]:
    return {m.name: m.private for m in found.measures}


def test_all_of_them_on_a_leak_and_on_noise() -> None:
    texts, labels = texts_of(240, 4, 5)
    every = {"labels": labels, "authors": labels, "trials": 3, "network": False}
    leak, noise = (evaluate(m, texts, **every) for m in (LEAK, UNIFORM))
    both = {m.name for m in leak.measures}
    assert len(both) == len(leak.measures) == 14
    assert [note for note in leak.notes if "auditor" in note] and leak.policies[0].seeded
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


def test_several_policies_share_the_splits() -> None:
    texts, labels = texts_of(160, 4, 5)
    authors = [f"author {i % 8}" for i in range(160)]
    found = evaluate({"leak": LEAK, "noise": UNIFORM}, texts, labels=labels, authors=authors,
                     trials=3, attacked=20, network=False)  # fmt: skip
    leak, noise = found.of("leak"), found.of("noise")
    assert [m.name for m in leak] == [m.name for m in noise]
    assert [m.plain for m in leak] == [m.plain for m in noise]
    user = next(m for m in leak if m.name.startswith("user"))
    # The release is the written text, word for word.
    assert user.plain == user.private
    assert all(a.private.mean > b.private.mean for a, b in zip(leak, noise, strict=True)
               if "AUC" not in a.name)  # fmt: skip
    alone = evaluate(LEAK, texts, labels=labels, authors=authors, trials=3, attacked=20,
                     network=False)  # fmt: skip
    # The same splits, whoever else is judged.
    assert [m.plain for m in alone.measures] == [m.plain for m in leak]
    assert "leak" in str(found) and "noise" in str(found)


def test_mechanisms_without_a_law_and_texts_alone() -> None:
    texts, _ = texts_of(60, 2, 6)
    found = evaluate(MultivariateLaplace(E, 2.0, seed=1), texts, trials=2, attacked=10,
                     network=False)  # fmt: skip
    assert [m.kind for m in found.measures] == ["attack"] * 9
    assert len(found.notes) == 3
    assert found.measures[0].private.low < found.measures[0].private.high


def test_what_cannot_be_measured_is_said() -> None:
    strange = [f"nothing {i} known" for i in range(60)]
    found = evaluate(LEAK, strange, labels=range(60), trials=2, network=False)
    said = "\n".join(found.notes)
    assert "content word of a sentence" in said and "member of the training texts" in said
    assert not any("sentence" in m.name for m in found.measures)


def test_the_page_and_its_data(tmp_path: Path) -> None:
    texts, labels = texts_of(80, 2, 7)
    texts = [f"{t} <script>secret" for t in texts]
    found = evaluate(LEAK, texts, labels=[f"secret {k}" for k in labels], trials=2, attacked=10,
                     authors=[f"secret {i % 9}" for i in range(80)],
                     network=False, command="fastdx <evaluate>")  # fmt: skip
    found.write(tmp_path / "page.html")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["page.html", "page.json"]
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "{{" not in page and "secret" not in page and "<script" not in page
    assert "NOT" in page and "fastdx &lt;evaluate&gt;" in page
    assert page.count('<section class="measure">') == len(found.measures)
    raw = (tmp_path / "page.json").read_text("utf-8")
    assert "secret" not in raw
    data = json.loads(raw)
    assert data["measures"][0]["private"]["mean"] == found.measures[0].private.mean
    assert data["versions"]["fastdx"] == fastdx.__version__
    assert found.policies[0].guarantee == str(LEAK.guarantee)
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
        ({"mechanism": {}}, "mechanism"),
    ):
        with pytest.raises(fastdx.ParameterError, match=match):
            evaluate(**{"mechanism": LEAK, "texts": texts, **arguments})
    with pytest.raises(fastdx.InputTypeError):
        evaluate("tem", texts)
    with pytest.raises(fastdx.InputTypeError, match="weak"):
        evaluate({"leak": LEAK, "weak": "tem"}, texts)


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "tsv"])
def test_the_command(tmp_path: Path, command: Command, form: str) -> None:
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
            "--exclude", "none", "--no-network", "-q", "-o", str(page)]  # fmt: skip
    shown = command(*args).out
    assert "label learned from private text" in shown and "No authors" in shown
    data = json.loads(page.with_suffix(".json").read_text("utf-8"))
    (policy,) = data["policies"]
    assert data["texts"] == 60 and policy["epsilon"] == 3.0 and not policy["seeded"]
    assert ("1 records" in shown) == form.startswith("json")


def test_policies_of_the_command_in_markdown(tmp_path: Path, command: Command) -> None:
    E.save(tmp_path / "e.fdx")
    file = tmp_path / "texts.jsonl"
    texts, labels = texts_of(60, 2, 5)
    rows = ({"text": t, "kind": k} for t, k in zip(texts, labels, strict=True))
    file.write_text("\n".join(map(json.dumps, rows)))
    policies = tmp_path / "policies.toml"
    policy = 'index = "e.fdx"\nexclude = "none"\nspans_only = true\nwarm = "words.txt"\n'
    policies.write_text(f"[policies.low]\nepsilon = 1.0\n{policy}"
                        f"[policies.low_high]\nepsilon = 9.0\n{policy}")  # fmt: skip
    page = tmp_path / "p.html"
    args = ["evaluate", str(file), "--label-column", "kind", "--trials", "2", "--attacked", "5",
            "--policy", str(policies), "--no-network", "--markdown", "-q",
            "-o", str(page)]  # fmt: skip
    table, *notes = command(*args).out.rstrip("\n").split("\n\n")
    head, ruled, *lines = table.split("\n")
    # A name is no markup.
    assert head == r"| measure | low | low\_high | plain text | chance |"
    assert ruled == "|---|---|---|---|---|"
    data = json.loads(page.with_suffix(".json").read_text("utf-8"))
    names = list(dict.fromkeys(m["name"] for m in data["measures"]))
    told, lines = lines[:2], lines[2:]
    assert [line.split(" | ")[0] for line in told] == ["| ε per unit of distance", "| bits a word"]
    low, high = (policy["bits"]["mean"] for policy in data["policies"])
    assert f" {low:.3f} | {high:.3f} | {data['policies'][0]['entropy']:.3f} |" in told[1]
    assert [line.split(" | ")[0] for line in lines] == [f"| {name}" for name in names]
    assert {line.count("|") for line in lines} == {6}
    first = data["measures"][0]
    assert f" {first['private']['mean']:.3f}" in lines[0]
    assert notes == data["notes"] and len(notes) >= 2
    assert [(p["name"], p["mechanism"], p["epsilon"]) for p in data["policies"]] == [
        ("low", "Tem", 1.0), ("low_high", "Tem", 9.0)]  # fmt: skip
    assert {m["policy"] for m in data["measures"]} == {"low", "low_high"}
    for more, message in (
        (["--epsilon", "3"], "--policy"),
        (["--cover", "3", "--oov", "drop"], "--cover, --oov"),
    ):
        assert message in command(*args, *more, code=1).err


@pytest.mark.parametrize(
    ("content", "more", "message"),
    [
        ('{"text": 3}\n', [], "line 1: field 'text' holds a int, not text"),
        ('{"text": "a"}\n[]\n', [], "line 2: not a JSON object"),
        ('{"text": "secret" x\n', [], "line 1: not JSON at character"),
        ('{"body": "secret"}\n', [], "line 1: none of its 1 fields is called 'text'"),
        ('{"text": "a"}\n', ["--label-column", "text"], "must differ"),
        ('{"text": "a"}\n', ["--sample", "-1"], "--sample"),
        ('{"text": "a"}\n', [], "at least 40 texts, got 1"),
    ],
)
def test_mistakes_of_the_command(
    tmp_path: Path, command: Command, content: str, more: list[str], message: str
) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text(content)
    page = tmp_path / "p.html"
    told = command("evaluate", file, "--epsilon", "3", "-q", "-o", page, *more, code=1).err
    assert message in told and "secret" not in told and not page.exists()


def test_mistakes_in_policies(tmp_path: Path) -> None:
    """The file is named too; what is said: policies_name_the_line in tests/it/spec.rs."""
    file = tmp_path / "p.toml"
    file.write_text("[policies.a]\nepsilon = -3")
    with pytest.raises(fastdx.FastdxError, match=r"policies\.a: epsilon") as told:
        mechanisms(str(file))
    assert str(file) in str(told.value)
