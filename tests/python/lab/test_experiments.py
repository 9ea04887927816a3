"""The papers' experiments, on made-up texts; and that what they print is what they measured."""

import re
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from experiments import __main__ as runner
from experiments import (
    cache,
    data,
    icdm19,
    measures,
    networks,
    ours,
    post19,
    readable_peers,
    releases,
    tables,
    wsdm20,
)
from sklearn.metrics import label_ranking_average_precision_score

from fastdx import Embedding, MultivariateLaplace, Tem
from fastdx.channel import Channel, NgramPrior
from fastdx.lab.evaluation import Attribution, audit_users
from helpers import ROOT
from helpers.attacked import WORDS, E, Planted, labelled, leak, uniform, users

PAPERS = runner.PAPERS


def run(paper: str, folder: Path | None = None, table: str = "") -> tables.Run:
    # The time of every table grows with the vocabulary. Networks of one shape are compiled once.
    if paper == "ours" or table in ("fig5", "tables3-4-lstm"):
        source: data.Sample = Planted()
    else:
        # In fewer words, every word comes back more often than the published calibration allows.
        source = data.Sample(2000 if table == "fig3-4" else 500)
    return tables.Run(source, paper, quick=True, folder=folder)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Steps that several tables share are made once."""
    return tmp_path_factory.mktemp("steps")


@pytest.mark.parametrize(
    ("paper", "table"), [(name, t) for name, paper in PAPERS.items() for t in paper.TABLES]
)
def test_every_table_is_made(paper: str, table: str, kept: Path, tmp_path: Path) -> None:
    if table == "tables3-4-lstm" and not networks.INSTALLED:
        pytest.skip(networks.MISSING)
    done = run(paper, kept, table)
    made = PAPERS[paper].TABLES[table](done)
    assert made.rows and all(len(row) == len(made.header) for row in made.rows)
    text = made.markdown()
    assert text.count("\n|") == len(made.rows) + 2 and "nan" not in text
    assert "\n|" not in made.markdown(rows=False) and made.title in made.markdown(rows=False)
    assert "say nothing of the paper" in done.provenance() and done.seconds > 0
    picture = tmp_path / "p.svg"
    made.draw(picture)
    assert picture.exists() == bool(made.lines)


def test_steps_are_kept_under_what_they_come_from(tmp_path: Path) -> None:
    calls = []

    def step() -> dict[str, int]:
        calls.append(1)
        return {"found": len(calls)}

    first = run("wsdm20", tmp_path)
    assert first.step(step, "a", 1) == first.step(step, "a", 1) == {"found": 1}
    assert first.step(step, "a", 2) == {"found": 2}
    assert run("icdm19", tmp_path).step(step, "a", 1) == {"found": 3}  # of another paper
    assert run("wsdm20").step(step, "a", 1) == {"found": 4}  # nothing kept
    again = run("wsdm20", tmp_path)
    assert again.step(step, "a", 1) == {"found": 1} and again.seconds > 0
    assert len(list(tmp_path.iterdir())) == 3 and len(calls) == 4
    assert cache.fingerprint("wsdm20", 1) != cache.fingerprint("wsdm20", 2)


def test_the_runner(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "FOLDER", kept)
    monkeypatch.setattr(runner, "Sample", partial(data.Sample, 500))
    asked = "experiments wsdm20 --table fig2 --quick --sample --pictures"
    monkeypatch.setattr(sys, "argv", [*asked.split(), str(tmp_path)])
    runner.main()
    # The picture stands for the rows.
    said = capsys.readouterr().out
    assert "| ε |" not in said and "wsdm20-fig2.svg" in said
    assert said.count("Seed 20") == 1 and (tmp_path / "wsdm20-fig2.svg").exists()
    monkeypatch.setattr(sys, "argv", ["experiments", "kdd99"])
    with pytest.raises(SystemExit, match="2"):
        runner.main()
    assert "kdd99" in capsys.readouterr().err


def test_every_table_has_its_place_on_a_page() -> None:
    block = re.compile(r"<!-- figures \S+ python -m experiments (\S+)(?: --table (\S+))?")
    shown = []
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        page = path.read_text("utf-8")
        # Without --table: all of them, which is one.
        shown += [(name, table or next(iter(PAPERS[name].TABLES)))
                  for name, table in block.findall(page)]  # fmt: skip
        pictures = re.findall(r"!\[.*\]\((.+\.svg)\)", page)
        assert all((path.parent / picture).is_file() for picture in pictures), path
    assert sorted(shown) == sorted((n, t) for n, paper in PAPERS.items() for t in paper.TABLES)
    # The summary is written by hand: a figure in it would not follow the tables.
    index = ROOT / "docs" / "research" / "papers" / "index.md"
    assert "<!-- figures" not in index.read_text("utf-8")


def test_missing_data_are_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"imdb\.\{train,val,test\}"):
        data.Shared(tmp_path / "nowhere")


def test_samples_have_the_form_of_the_data(shared: Path) -> None:
    real, made = data.Shared(shared), data.Sample()
    for name in ("mr", "sst5", "trec"):
        (first, second), (other, other_second) = (data.sentences(x, name) for x in (real, made))
        assert (second is None) == (other_second is None)
        assert len(set(first.labels)) == len(set(other.labels))
    assert (
        {*real.texts("imdb", "val").labels} == {*made.texts("imdb", "val").labels} == {"neg", "pos"}
    )
    assert len(set(real.texts("small", "train").labels)) == 26
    assert len(set(real.texts("news", "train").labels)) == 50
    assert len(set(real.texts("snips", "validate").labels)) == 7


keras = pytest.mark.skipif(not networks.INSTALLED, reason=networks.MISSING)
LEAK, UNIFORM = leak(E), uniform(E)


def test_attribution_of_mails_convicts_and_is_at_chance() -> None:
    known, mails = labelled(120, 8, 1), labelled(80, 8, 2)
    attack = Attribution(*known, rounds=20)
    (leak,) = icdm19._attacked(attack, 0.9, LEAK, mails)
    assert leak["right"] > 70 and leak["sure_right"] > 0.9 * leak["sure"] > 30
    (noise,) = icdm19._attacked(attack, 0.9, UNIFORM, mails)
    # 80 tries at 1/8: 28 hits or more have a probability below 1e-6.
    assert noise["right"] < 28 and noise["sure_right"] <= noise["right"]


def test_attackers_of_bags_convict_and_are_at_chance() -> None:
    known, texts = labelled(120, 8, 1), labelled(80, 8, 2)
    attackers = post19._Attackers(E, known, 20)

    def hits(m: Tem) -> dict[str, int]:
        bags = post19.bags_of(E, m.privatize(texts.texts))
        return attackers.hits(bags, texts.labels, [0] * len(bags))

    leak, noise = hits(LEAK), hits(UNIFORM)
    for key in post19.KEYS[:2]:
        assert leak[key] > 60 and noise[key] < 28, key


def test_ranks_of_answers_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    scores, relevant = rng.normal(size=(60, 30)), rng.random((60, 30)) < 0.2
    relevant[:, 7] = True
    precision, reciprocal = measures.ranked(scores, relevant)
    assert precision.mean() == pytest.approx(
        label_ranking_average_precision_score(relevant, scores)
    )
    best = np.where(relevant, scores, -np.inf).max(axis=1)
    assert reciprocal == pytest.approx(1 / (1 + (scores > best[:, None]).sum(axis=1)))


def test_answers_are_found_where_all_is_released_and_nowhere_else() -> None:
    texts = [" ".join(WORDS[2 * i : 2 * i + 2] * 50) for i in range(50)]
    plain, leak, noise = (wsdm20._answered(m, E, texts) for m in (None, LEAK, UNIFORM))
    for key in wsdm20.RANKED:
        assert plain[key] == leak[key] == pytest.approx([1.0] * 50), key
        # 50 numbers from 0 to 1 of a mean below 0.1: by Hoeffding 0.48 has a probability of 1e-6.
        assert np.mean(noise[key]) < 0.48, key


def test_audits_learn_from_what_is_released() -> None:
    rng = np.random.default_rng(4)
    texts = [[" ".join(rng.choice(WORDS, 80))] for _ in range(80)]
    audit = partial(wsdm20._audits, e=E, users=texts, trials=4, words=10**6, epochs=0)
    plain, noise = (np.mean([[found.auc, found.accuracy] for found in audit(m)], axis=0)
                    for m in (None, MultivariateLaplace(E, 1e-4, seed=1)))  # fmt: skip
    # Of an AUC of 20 against 20 the standard deviation is 0.092, of the accuracy 0.079; 4 trials.
    assert plain.min() > 0.9 and abs(noise - 0.5).max() < 5.2 * 0.046


def test_few_authors_of_long_texts_are_found_and_lost() -> None:
    mails, names = labelled(400, 8, 2), [f"kind {k}" for k in range(8)]
    texts = icdm19._joined(mails, names)
    assert len(texts.texts) == 80 and len(icdm19._joined(mails, names[:3]).texts) == 30
    first = [t for t, name in zip(*mails, strict=True) if name == names[0]][: icdm19.JOINED]
    assert texts.texts[0] == "\n".join(first) and texts.labels[:10] == [names[0]] * 10
    attack = Attribution(*labelled(120, 8, 1), rounds=20, **icdm19.PROFILE)
    plain, leak, noise = (icdm19._attacked(attack, 1.0, m, texts)[0]["right"]
                          for m in (None, LEAK, UNIFORM))  # fmt: skip
    # 80 tries at 1/8, as above.
    assert plain > 70 and leak > 70 and noise < 28


def test_pairs_of_sentences_are_told_apart_by_their_words_alone() -> None:
    known, asked = labelled(400, 4, 1), labelled(400, 4, 2)
    pairs = icdm19._pairs(known.labels, 100, np.random.default_rng(1))
    alike = [known.labels[i] == known.labels[j] for i, j in pairs]
    assert alike == [True, False] * 50 and all(i != j for i, j in pairs)

    def told(m: Tem) -> tuple[float, float]:
        made = m.privatize(known.texts), m.privatize(asked.texts)
        rng = np.random.default_rng(2)
        return icdm19._alike(made, (known.labels, asked.labels), E, 1000, rng)

    accuracy, pearson = told(LEAK)
    assert accuracy > 0.65 and pearson > 0.35
    # About 400 texts: five standard deviations.
    accuracy, pearson = told(UNIFORM)
    assert abs(accuracy - 0.5) < 0.13 and abs(pearson) < 0.25


@pytest.mark.parametrize("installed", [False, *([True] if post19.FASTTEXT else [])])
def test_fasttext_names_topics_of_bags_that_tell_them(
    installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(post19, "FASTTEXT", installed)
    known, asked = labelled(400, 4, 1), labelled(200, 4, 2)
    judge = post19.FastText(known.texts, known.labels)
    bags = post19.bags_of(E, asked.texts)
    plain, kept, noise = (post19._topics({"it": judge}, bags, asked.labels, E, epsilon)
                          for epsilon in (None, 1e4, 1e-4))  # fmt: skip
    assert plain == kept and plain["it"] > 160 and plain["stay"] == 1
    # 200 tries at 1/4: 83 hits or more have a probability below 1e-6.
    assert noise["it"] < 83 and noise["stay"] < 0.5


SIZES = ours._Sizes(len(WORDS), 2, 100, 100, 120, 10, 20)


def test_our_comparison_convicts_a_leak_and_is_at_chance_on_noise() -> None:
    source = Planted()
    leak, noise = (ours._measured(m, source, SIZES) for m in (LEAK, UNIFORM))
    for key in ours.TASKS:
        # A classifier of noise says anything of plain texts, alike for all of one kind.
        assert np.mean(leak[key]) > 0.8, key
    for key in ours.AUTHORS:
        # The better of two attacks on 120 texts at 1/8: 42 hits have a probability below 1e-6.
        assert leak[key][0] > 0.8 * 120 and noise[key][0] < 42 and noise[key][1] == 120, key
    commonest = measures.by_rank(len(WORDS))[0]
    assert leak["named"] == pytest.approx(1.0) and leak["sentences"] > 0.99
    assert noise["named"] == pytest.approx(commonest, rel=1e-6) and noise["sentences"] < 0.1
    assert leak["certified"] > 30 and noise["certified"] < 1e-6


def test_epsilons_are_those_that_are_asked_for() -> None:
    spaces = ours._spaces(Planted(), len(WORDS))
    for name in ("tem", "randomised-response", "laplace"):
        own = ours._at_certified(spaces, name, 2.0)
        assert own is not None
        reached = ours.certified(ours._mechanism(spaces, name, own))
        above = ours.certified(ours._mechanism(spaces, name, own * (1 + 2 * ours.TOLERANCE)))
        assert reached <= 2.0 < above, name
    assert ours._at_certified(spaces, "custext", 2.0) is None
    for name in ("tem", "laplace"):
        own = ours._at_bits(spaces, name, bits=0.5, draws=500)
        assert own is not None
        bits = ours._bits(ours._mechanism(spaces, name, own), 500)
        assert bits.low <= bits <= bits.high and 0.45 < bits.high <= 0.5, name


def test_who_wins_is_read_from_the_numbers() -> None:
    def row(words: list[float], author: int) -> dict[str, object]:
        return {"words": words, "vectors": words, "Reuters": [author, 100], "PAN11": [author, 100]}

    good, same, bad = [0.8, 0.81, 0.79], [0.81, 0.8, 0.78], [0.6, 0.61, 0.59]
    (said,) = ours._verdict({"a": row(good, 10), "b": row(same, 60), "c": row(bad, 12)})
    assert "IMDB, words: a is best, 0.800; not told apart from it: b;" in said
    assert "found least behind a, 0.100; within its interval: c;" in said
    assert said.endswith("in all four columns: a**.")
    (said,) = ours._verdict({"a": row(good, 60), "c": row(bad, 12)})
    assert "none, so who wins depends" in said
    assert ours._verdict({}) == []


@keras
def test_the_auditor_convicts_an_lstm_and_is_at_chance_on_noise() -> None:
    # 24 users in each part, 4 pieces of each: no batch is of another shape, which compiles anew.
    words = len(WORDS)
    target, members = np.arange(96) % 2 == 0, np.arange(96) % 4 < 2
    plain, noise = ([[run[:80] % words for run in runs] for runs in users(96, seed)]
                    for seed in (2, 3))  # fmt: skip

    def learn(runs: object, words: int) -> networks.NextWordLstm:
        return networks.NextWordLstm(runs, words, epochs=30, seed=1)

    assert audit_users(plain, plain, members, target, words, learn=learn).auc > 0.95
    # The standard deviation of an AUC of 24 against 24 is 0.084.
    found = audit_users(plain, noise, members, target, words, learn=learn).auc
    assert abs(found - 0.5) < 5.2 * 0.084


@keras
def test_ranks_of_an_lstm() -> None:
    # One batch, of the same network as above.
    most = len(WORDS)
    run = np.array([0, 1, 2, most] * 160, np.uint32)
    model = networks.NextWordLstm([run], most + 9, most=most, epochs=60, seed=1)
    ranks = model.ranks_of([run[:9], run[:1]])
    # Words from there on are unknown: what follows is not asked for, and six others are.
    assert len(ranks) == 6 and set(ranks[2:]) == {1}
    again = networks.NextWordLstm([run], most + 9, most=most, epochs=60, seed=1)
    assert (again.ranks_of([run]) == model.ranks_of([run])).all()
    assert len(model.ranks_of([])) == 0


@keras
def test_the_bilstm_learns_what_is_there_and_nothing_else() -> None:
    reader = networks.Reader(E, 50)
    # 64 are set aside, and 320 make five batches: another shape would compile anew.
    known, texts = labelled(384, 2, 1), labelled(200, 2, 2)
    model = networks.BiLstm(reader).fit(*known, seed=1)
    assert model.score(*texts) > 0.85
    # 200 at 0.5: five standard deviations are 0.18.
    assert abs(model.score(UNIFORM.privatize(texts.texts), texts.labels) - 0.5) < 0.18
    other = networks.BiLstm(reader, epochs=1).fit(known.texts, known.labels[::-1], 2)
    assert model.score(*texts) > 0.85  # the other one's weights are not its own
    again = networks.BiLstm(reader, epochs=1).fit(known.texts, known.labels[::-1], 2)
    assert all(map(np.array_equal, other.weights, again.weights))  # one seed, one network
    with pytest.raises(ValueError, match="labels"):
        networks.BiLstm(reader).fit(known.texts, ["a"] * 384, 1)


def test_what_a_network_reads() -> None:
    reader = networks.Reader(E, 4)
    ids = reader.ids([f"{WORDS[3]} qqqqq {WORDS[5]}", "", " ".join(WORDS[:6])])
    assert ids.tolist() == [[0, 4, 0, 6], [0, 0, 0, 0], [1, 2, 3, 4]]
    assert reader.vectors().shape == (len(WORDS) + 1, 8) and not reader.vectors()[0].any()


def test_a_reader_of_histories_is_exact() -> None:
    space = Embedding(["a", "b", "c", "d"], np.random.default_rng(0).normal(size=(4, 2)))
    public = ["a b c d a. b a c. c d b", "d c a b. a a b c d"] * 3
    model, neural = (NgramPrior.train(space, public, order) for order in (2, 3))
    texts = [["a", "c", "b"], ["d"], ["b", "b", "a", "a", "c"]]
    for language in ("frequency", neural):
        tem = Tem(space, 2.0, gamma=1.5, language=language, exclude=["d"])
        shown = texts if language == "frequency" else [["a", "c", "b"], ["c"], ["b", "b", "a"]]
        shown = [[word for word in text if word != "d"] or ["a"] for text in shown]
        given = releases.likelihoods(tem, shown)
        reader, channel = releases.Reader(model), Channel.of(tem)
        for text, found in zip(shown, reader.posteriors(given), strict=True):
            exact = channel.decode(text, model)
            for place in range(len(text)):
                np.testing.assert_allclose(found[place], exact.marginals(place), rtol=1e-4)
    # Whoever leaves out what was released before computes with another law.
    tem = Tem(space, 2.0, gamma=1.5, language="frequency", exclude=["d"])
    assert not np.allclose(releases.likelihoods(tem, shown)[0], given[0], rtol=0.01)


def test_sentences_are_of_known_words_and_have_no_marks_inside() -> None:
    e = Embedding(["the", "film", "was", "good", "and", "long", "it's", "not"], np.eye(8))
    texts = ["The film was good and long.<br /><br />It's not the film, it was the film and good!",
             "The film was long.", "Bad. The film was not good and long? It's the film.",
             "The film was strange and not good."]  # fmt: skip
    found = {s.review: s for s in releases.sentences(texts, e)}
    assert set(found) == {0, 2}
    assert [e.words[w] for w in found[0].words] == ["the", "film", "was", "good", "and", "long"]
    assert found[0].mark == "." and found[2].mark == "?"
    again = list(releases.sentences(texts, e))
    assert again == list(releases.sentences(texts, e))


def test_dp_prompt_keeps_its_bound_by_clipping() -> None:
    # One token stands out, or all but one do: the bound is all but reached.
    logits = np.full((2, 10_000), -9.0)
    logits[0, 0] = logits[1, 1:] = 9.0
    clipped, liar = (np.log(readable_peers.law(logits, (-clip, clip), 2.0)) for clip in (2, 9))
    epsilon = 2 * 4 / 2.0
    assert 0.99 * epsilon < np.abs(clipped[0] - clipped[1]).max() <= epsilon + 1e-9
    assert np.abs(liar[0] - liar[1]).max() > epsilon
