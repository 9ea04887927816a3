"""WSDM'20, Feyisetan, Balle, Drake, Diethe: what MADLIB does to single words (figures 2 to 4,
table 1), to a classifier of reviews (figure 5) and to an auditor (tables 3 and 4)."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.preprocessing import normalize

from experiments import measures, networks
from experiments.data import PAPERS, STAND_IN, STANDARD, SUBSET, Labelled, Source, space
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import Embedding, Mechanism, MultivariateLaplace, calibration
from fastdx.bags import STOP_WORDS
from fastdx.lab.evaluation import (
    MeanVectors,
    NextWord,
    UserAudit,
    audit_users,
    over_trials,
    runs_of,
    vector_classifier,
)

PUBLISHED = {
    "worst N_w": ({5.0: 500.0}, "WSDM'20 section 4.1: at ε = 5 no word of their sample comes back "
                  "unchanged more than 500 times in 1,000"),
    "worst S_w": ({5.0: 300.0}, "the same: every word has at least 300 distinct outputs"),
}  # fmt: skip
DRAWS = 1000


def figure_2(run: Run) -> Table:
    name, e, count = STANDARD, run.data.glove(), run.of(300, 60)
    epsilons = run.of([5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0], [5.0, 15.0])
    table = Table(
        f"WSDM'20 figure 2, {name}: N_w and S_w of MADLIB in {DRAWS:,} draws",
        ["ε", "words", "mean N_w ± 95%", "99% of words below", "worst N_w [95%]",
         "mean S_w ± 95%", "worst S_w", "published worst N_w", "published worst S_w"],
        ylabel=f"times in {DRAWS:,} draws",
        picture_alone=True,
    )  # fmt: skip

    def show(epsilon: float, f: dict[str, Any], *, all_words: bool = False) -> None:
        claims = [
            f"{sign} {points[epsilon]:g}" if epsilon in points else "–"
            for sign, (points, _) in zip("≤≥", PUBLISHED.values(), strict=True)
        ]
        table.add(f"{epsilon:g}", f"all {f['words']:,}" if all_words else f"{f['words']:,}",
                  measures.about(f, "n"), f"{f['p99_n']:.0f}", measures.worst(f),
                  measures.about(f, "s"), f"{f['min_s']:.0f}", *claims)  # fmt: skip

    for epsilon in epsilons:
        m = MultivariateLaplace(e, epsilon, seed=SEED)
        make = partial(measures.counted, m, measures.spread(e, count), DRAWS)
        found = run.step(make, "N_w", name, epsilon, count)
        show(epsilon, found)
        for label, key in (("mean N_w", "mean_n"), ("worst N_w", "max_n"),
                           ("mean S_w", "mean_s"), ("worst S_w", "min_s")):  # fmt: skip
            table.point(label, epsilon, found[key])
        if epsilon == 5.0 and not run.quick:
            make = partial(measures.counted, m, e.words, DRAWS)
            every = run.step(make, "N_w of all", name, epsilon)
            show(epsilon, every, all_words=True)
            table.notes.append(
                f"The claim is about a sample of words. Over all {every['words']:,} words at ε = 5 "
                f"the mean N_w is {every['mean_n']:.0f}, the 99th percentile {every['p99_n']:.0f} "
                f"and the worst {every['max_n']:.0f}: "
                + ("the claim holds there too." if every["max_n"] <= 500 and every["min_s"] >= 300
                   else "it does not hold for the vocabulary."))  # fmt: skip
    for label, (points, source) in PUBLISHED.items():
        table.published(f"published bound of the {label}", points)
        table.notes.append(f"Published {label}: {source}.")
    table.notes.append("Words are spread evenly over the vocabulary, in order of frequency. "
                       "The intervals of means are over words, that of the worst N_w over "
                       "draws (Clopper-Pearson).")  # fmt: skip
    return table


def _largest(m: MultivariateLaplace, words: list[str]) -> float:
    """The largest ε at which these words keep the paper's promise of figure 2."""
    found = calibration.choose_epsilon(
        m, max_unchanged=0.5, min_outputs=300, words=words, draws=DRAWS, tolerance=0.02
    )
    return found.epsilon


def figures_3_4(run: Run) -> Table:
    """The averages in 300 dimensions, where ε is another one for each embedding."""
    count, epsilons = run.of(100, 20), run.of([5.0, 10.0, 15.0, 20.0, 30.0], [5.0, 15.0])
    spaces = run.of([PAPERS, STAND_IN, STANDARD], [PAPERS, STANDARD])
    table = Table(
        f"WSDM'20 figures 3 and 4: mean N_w and S_w of MADLIB in {DRAWS:,} draws, in 300 "
        "dimensions",
        ["ε", *(f"{name}: mean N_w ± 95%, mean S_w ± 95%, worst N_w [95%]" for name in spaces),
         "published, 50 dimensions"],
        ylabel=f"mean N_w in {DRAWS:,} draws",
    )  # fmt: skip
    cells: dict[float, list[str]] = {x: [] for x in epsilons}
    promised = []
    for name in spaces:
        e = space(run.data, name)
        words = measures.spread(e, count)
        for x in epsilons:
            m = MultivariateLaplace(e, x, seed=SEED)
            f = run.step(partial(measures.counted, m, words, DRAWS), "means", name, x, count)
            table.point(name, x, f["mean_n"])
            told = measures.about(f, "n"), measures.about(f, "s"), measures.worst(f)
            cells[x].append(", ".join(told))
        m = MultivariateLaplace(e, 5.0, seed=SEED)
        kept = run.step(partial(_largest, m, words), "calibrated", name, count)
        promised.append(f"{kept:.2f} ({name})")
    for x, row in cells.items():
        claim = "worst N_w ≤ 500, worst S_w ≥ 300" if x in PUBLISHED["worst N_w"][0] else "–"
        table.add(f"{x:g}", *row, claim)
    table.notes += [
        f"{count} words of each, spread evenly over the vocabulary. *{PAPERS}*: {SUBSET}. The "
        "fewer words, the more often each comes back, so the whole has a smaller N_w. Intervals: "
        "of means over words, of the worst N_w over draws (Clopper-Pearson).",
        "The largest ε at which all of these words keep the published calibration (worst N_w at "
        f"most 500, worst S_w at least 300), published 5 for 50 dimensions: {', '.join(promised)}.",
        "The published figures 3 and 4 are curves; no numbers are read off them here.",
    ]
    return table


# Table 1.

TOPICS = 10
TOP_WORDS = 4
SHOWN = 6
"""Every so many of the words have a row; the means are over all."""


def _topics(texts: list[str], e: Embedding, count: int) -> list[list[str]]:
    """The top words of the topics that most words are of, by latent Dirichlet allocation."""
    known = {w for w in e.words if w.isalpha() and w not in STOP_WORDS}
    counter = CountVectorizer(vocabulary=sorted(known), token_pattern=r"[a-z]+")
    counts = counter.transform([t.lower() for t in texts])
    # A word in a tenth of all texts says nothing of a topic, and neither does a very rare word.
    within = np.asarray((counts > 0).sum(axis=0)).ravel()
    told = np.flatnonzero((within >= len(texts) / 500) & (within <= len(texts) / 10))
    names = counter.get_feature_names_out()[told]
    model = LatentDirichletAllocation(TOPICS, max_iter=10, random_state=SEED)
    shares = model.fit_transform(counts[:, told]).sum(axis=0)
    return [[str(w) for w in names[np.argsort(-model.components_[t])[:TOP_WORDS]]]
            for t in np.argsort(-shares)[:count]]  # fmt: skip


def _replacements(m: MultivariateLaplace, words: list[str]) -> list[dict[str, Any]]:
    """N_w, S_w, and the outputs beside the word that come most often, of the same draws."""
    names, found = m.space.words, []
    for word in words:
        out = Counter(m.privatize_ids(np.repeat(m.space.ids([word]), DRAWS)).tolist())
        own = int(m.space.ids([word])[0])
        # Of those that come as often, the most frequent word.
        others = sorted((-times, i) for i, times in out.items() if i != own and names[i].isalpha())
        found.append({"N_w": out[own], "S_w": len(out), "others": [names[i] for _, i in
                                                                   others[:3]]})  # fmt: skip
    return found


def table_1(run: Run) -> Table:
    e = run.data.glove()
    epsilons = run.of([2.0, 5.0, 8.0, 15.0], [5.0, 15.0])
    table = Table(
        f"WSDM'20 table 1: words of topics through MADLIB, {DRAWS:,} draws each, GloVe 50d",
        ["topic of", "word", *(f"ε = {x:g}: N_w / S_w; the commonest other words"
                               for x in epsilons)],
        ylabel=f"mean over the words, of {DRAWS:,} draws",
    )  # fmt: skip
    texts = {"IMDB": run.data.texts("imdb", "train").some(run.of(5000, 400)).texts,
             "Reuters": run.data.texts("news", "train").some(run.of(2500, 400)).texts}  # fmt: skip
    rows: list[tuple[str, str]] = []
    for name, part in texts.items():
        topics = run.step(partial(_topics, part, e, run.of(3, 1)), "topics", name)
        every = dict.fromkeys(word for topic in topics for word in topic)
        rows += [(name, word) for word in every if word not in {w for _, w in rows}]
    words = [word for _, word in rows]
    columns = [run.step(partial(_replacements, MultivariateLaplace(e, x, seed=SEED), words),
                        "outputs", x, *words) for x in epsilons]  # fmt: skip
    for i, (name, word) in list(enumerate(rows))[::SHOWN]:
        table.add(name, word, *(f"{c[i]['N_w']} / {c[i]['S_w']}; {', '.join(c[i]['others']) or '–'}"
                                for c in columns))  # fmt: skip
    for key in ("N_w", "S_w"):
        for x, column in zip(epsilons, columns, strict=True):
            table.point(f"mean {key}", x, float(np.mean([f[key] for f in column])))
    table.notes += [
        f"Some of the first {TOP_WORDS} words of the topics that most words are of, of {TOPICS} "
        "by latent Dirichlet allocation on training texts without stop words, the commonest and "
        "the rarest words. The paper's table has other topics and another embedding.",
    ]
    return table


# Figure 5.

FIGURE_5 = "degrades little"
FIGURE_5_SOURCE = (
    "WSDM'20 figure 5: a biLSTM that learns from private reviews and is tested on plain ones loses "
    "little accuracy"
)
KINDS = {"lstm": "biLSTM", "vectors": "averaged vectors"}


def _reviews(source: Source, reader: networks.Reader, trial: int, sizes: tuple[int, int]
             ) -> list[Labelled]:  # fmt: skip
    """Reviews to learn from and to test on, the same for every ε."""
    parts = []
    for name, size in zip(("train", "test"), sizes, strict=True):
        every = source.texts("imdb", name)
        drawn = np.random.default_rng([SEED, trial]).permutation(len(every.texts))[:size]
        part = every.at(drawn.tolist())
        parts.append(part._replace(texts=[" ".join(reader.words(t.lower())) for t in part.texts]))
    return parts


def _learned(
    m: MultivariateLaplace | None,
    tested_by: list[MultivariateLaplace],
    *,
    source: Source,
    e: Embedding,
    trials: int,
    sizes: tuple[int, int],
    epochs: int,
    length: int,
) -> dict[str, list[list[float]]]:
    """Accuracies of classifiers that learned from what `m` made of reviews, one list a trial.

    The first is on plain reviews, the others on what each mechanism of `tested_by` makes of them.
    """
    reader = networks.Reader(e, length)
    found: dict[str, list[list[float]]] = {key: [] for key in KINDS}
    for trial in range(trials):
        known, tested = _reviews(source, reader, trial, sizes)
        learned = known.private(m)
        asked = [tested, *map(tested.private, tested_by)]
        judges: dict[str, Any] = {"vectors": vector_classifier(*learned, e)}
        if networks.INSTALLED:
            judges["lstm"] = networks.BiLstm(reader, epochs=epochs).fit(*learned, trial)
        for key, judge in judges.items():
            found[key].append([float(judge.score(*part)) for part in asked])
    return found


def figure_5(run: Run) -> Table:
    e = run.data.glove()
    # Of made-up reviews there are few: one batch, and those set aside.
    sizes = run.of((2000, 1000), (77, 50) if run.data.made_up else (400, 200))
    trials, epochs, length = run.of(3, 2), run.of(10, 2), run.of(100, 50)
    epsilons = run.of([2.0, 5.0, 10.0], [8.0])
    noises = [MultivariateLaplace(e, x, seed=SEED) for x in epsilons]
    has = networks.INSTALLED
    learned = partial(_learned, source=run.data, e=e, trials=trials, sizes=sizes, epochs=epochs,
                      length=length)  # fmt: skip
    plain = run.step(partial(learned, None, noises),
                     "reviews", "plain", *epsilons, trials, *sizes, has)  # fmt: skip
    table = Table(
        "WSDM'20 figure 5: IMDB, classifiers that learn from private reviews or read them",
        ["ε", "mean N_w", *(f"{name}: {what} [95%]" for name in KINDS.values()
                            for what in ("learns private, reads plain",
                                         "learns plain, reads private")),
         "published, biLSTM learns private"],
        ylabel="accuracy",
    )  # fmt: skip

    def cell(values: list[list[float]], place: int, line: str, m: Mechanism | None) -> str:
        if not values:
            return "–"
        interval = over_trials([v[place] for v in values], reused=sizes[1] / sizes[0],
                               within=(0.0, 1.0))  # fmt: skip
        if m is not None:
            table.point(line, m.epsilon, interval)
        return str(interval)

    table.add("none", "1", *(cell(plain[key], 0, "", None) for key in KINDS for _ in range(2)), "–")
    for i, m in enumerate(noises):
        found = run.step(partial(learned, m, []),
                         "reviews", m.epsilon, trials, *sizes, has)  # fmt: skip
        same = run.step(partial(measures.unchanged, m), "N_w", m.epsilon)
        cells = []
        for key, name in KINDS.items():
            cells += [cell(found[key], 0, f"{name}, learns private", m),
                      cell(plain[key], i + 1, f"{name}, reads private", m)]  # fmt: skip
        table.add(f"{m.epsilon:g}", f"{same:.3f}", *cells, FIGURE_5)
    table.notes += [
        f"{trials} trials, each with {sizes[0]:,} reviews to learn from and {sizes[1]:,} to test "
        f"on, the first {length} words of each; the same for every ε. Chance is 0.5. Intervals: "
        "Student's, widened because trials share reviews.",
        "*biLSTM*: one layer of 64 in each direction over GloVe's vectors, which stay as they are; "
        f"at most {epochs} epochs, stopped on a sixth of the reviews that it learns from. "
        "*Averaged vectors*: their mean and logistic regression."
        + (f" {networks.versions()}." if has else f" The biLSTM was left out: {networks.MISSING}."),
        f"Published: {FIGURE_5_SOURCE}.",
    ]
    return table


# Figure 5's answers.

PASSAGE, PASSAGES = 20, 5
"""Words of a passage, and passages of a text: the first asks, the others answer."""
RANKED = [f"{measure} by {by}" for by in ("words", "vectors") for measure in ("MAP", "MRR")]


def _passages(texts: list[str]) -> tuple[list[str], list[str], NDArray[np.bool_]]:
    """Questions, one a text; the candidate answers; and which of them are of which text."""
    asked, answers, of = [], [], []
    for text in texts:
        words = text.lower().split()[: PASSAGE * PASSAGES]
        first, *others = (" ".join(words[i : i + PASSAGE]) for i in range(0, len(words), PASSAGE))
        if others:
            of += [len(asked)] * len(others)
            asked.append(first)
            answers += others
    return asked, answers, np.array(of) == np.arange(len(asked))[:, None]


def _answered(m: Mechanism | None, e: Embedding, texts: list[str]) -> dict[str, list[float]]:
    """How well the answers of each text are found by what `m` makes of its question."""
    asked, answers, own = _passages(texts)
    asked = asked if m is None else m.privatize(asked)
    by_words = TfidfVectorizer(sublinear_tf=True).fit(answers)
    found = []
    for read in (lambda t: by_words.transform(t).toarray(), MeanVectors(e)):
        found += measures.ranked(normalize(read(asked)) @ normalize(read(answers)).T, own)
    return {key: values.tolist() for key, values in zip(RANKED, found, strict=True)}


def figure_5_answers(run: Run) -> Table:
    e = space(run.data, PAPERS)
    texts = run.data.texts("news", "test").some(run.of(500, 100)).texts
    table = Table(
        f"WSDM'20 figure 5, finding answers: private questions to plain answers, {PAPERS}",
        ["ε", "mean N_w", *(f"{key} [95%]" for key in RANKED)],
        ylabel="mean over the questions",
    )  # fmt: skip
    for epsilon in (None, *run.of([5.0, 10.0, 15.0, 20.0, 30.0], [5.0, 30.0])):
        m = None if epsilon is None else MultivariateLaplace(e, epsilon, seed=SEED)
        found = run.step(partial(_answered, m, e, texts), "answers", epsilon or "plain", len(texts))
        cells = [measures.mean_of(np.array(found[key])) for key in RANKED]
        same = 1.0 if m is None else run.step(partial(measures.unchanged, m), "N_w 300", epsilon)
        table.add("none" if epsilon is None else f"{epsilon:g}", f"{same:.3f}", *map(str, cells))
        if epsilon is not None:
            for key, cell in zip(RANKED, cells, strict=True):
                table.point(key, epsilon, cell)
    asked, answers, own = _passages(texts)
    chance = measures.ranked(np.random.default_rng(SEED).random(own.shape), own)
    table.notes += [
        f"News stand for InsuranceQA: of {len(asked)} texts of "
        f"Reuters C50 the first {PASSAGE} words ask, and the next {PASSAGES - 1} passages of "
        f"{PASSAGE} words answer, among {len(answers):,} of all texts. Answers are ranked by the "
        "cosine of TF-IDF of words or of mean vectors; nothing is learned. In any order the MAP is "
        f"{chance[0].mean():.3f}, the MRR {chance[1].mean():.3f}. Intervals: bootstrap over the "
        "questions, one draw each.",
        f"*{PAPERS}*: {SUBSET}. The published curves are of another task; no numbers are read off "
        "them here.",
    ]
    return table


# Tables 3 and 4.

AUDIT = ("AUC", "precision", "recall", "accuracy by user")
"""As `UserAudit` has them."""
AUC = {23.0: 0.36}
AUC_SOURCE = (
    "WSDM'20 tables 3 and 4: an AUC of 0.36 at ε = 23, rising to 0.98; an LSTM, search logs, other "
    "embeddings, in table 4 GloVe in 300 dimensions"
)


def _audits(
    mechanism: MultivariateLaplace | None,
    e: Embedding,
    users: list[list[str]],
    *,
    trials: int,
    words: int,
    epochs: int,
) -> list[UserAudit]:
    """One audit a trial; with epochs, of an LSTM that reads so many words of each user."""
    plain = [_first(runs_of(e, texts), words) for texts in users]
    found = []
    for trial in range(trials):
        rng = np.random.default_rng([SEED, trial])
        target, members = (rng.permutation(len(users)) % 2 == 0 for _ in range(2))
        # A model learns from its members alone.
        private = [runs if mechanism is None or not member else
                   [mechanism.privatize_ids(run) for run in runs]
                   for runs, member in zip(plain, members, strict=True)]  # fmt: skip
        learn: Any = NextWord
        if epochs:
            learn = partial(networks.NextWordLstm, epochs=epochs, seed=trial)
        found.append(audit_users(plain, private, members, target, len(e), learn=learn))
    return found


def _first(runs: list[NDArray[np.uint32]], words: int) -> list[NDArray[np.uint32]]:
    """The runs as far as so many words."""
    starts = np.cumsum([0, *map(len, runs)])
    return [run[: words - at] for run, at in zip(runs, starts, strict=False) if at < words]


def tables_3_4(run: Run, lstm: bool = False, name: str = STANDARD) -> Table:
    """The auditor of next-word models; authors stand for the paper's users."""
    wide = name == PAPERS
    e, trials = space(run.data, name), run.of(3 if lstm or wide else 5, 2 if lstm else 3)
    users: dict[str, list[str]] = {}
    for part in (run.data.texts("news", "train"), run.data.texts("large", "train")):
        for text, author in zip(*part, strict=True):
            users.setdefault(author, []).append(text[:2000])
    # The same amount of text from everybody who has enough.
    least, most = run.of(10, 5), run.of(10, 5)
    texts = [t[:most] for t in users.values() if len(t) >= least]
    # An LSTM takes long to train.
    words, epochs = (run.of(500, 20), run.of(10, 1)) if lstm else (1_000_000, 0)
    model = "an LSTM" if lstm else "a model of word pairs"
    table = Table(
        f"WSDM'20 {f'table 4, {name}' if wide else 'tables 3 and 4'}: whose texts {model} learned "
        f"from, {len(texts)} users",
        ["ε", *(f"{key} [95%]" for key in AUDIT), "published AUC"],
        ylabel="AUC of the auditor",
        picture_alone=lstm,
    )  # fmt: skip
    if lstm and not networks.INSTALLED:
        table.notes.append(f"Not computed: {networks.MISSING}.")
        return table
    full = [2.0, 5.0, 8.0, 23.0] if lstm else [2.0, 5.0, 8.0, 12.0, 17.0, 23.0]
    full = [5.0, 12.0, 23.0] if wide else full
    for epsilon in (*run.of(full, [2.0] if lstm else [2.0, 23.0]), None):
        m = None if epsilon is None else MultivariateLaplace(e, epsilon, seed=SEED)
        made = partial(_audits, m, e, texts, trials=trials, words=words, epochs=epochs)
        asked = (trials, len(texts), words, epochs)
        found = run.step(made, "auditor", name, epsilon or "plain", *asked)
        told = [over_trials([f[i] for f in found], reused=1.0, within=(0.0, 1.0))
                for i in range(len(AUDIT))]  # fmt: skip
        claim = AUC.get(epsilon or 0.0)
        table.add("plain text" if epsilon is None else f"{epsilon:g}", *map(str, told),
                  "–" if claim is None else f"{claim:.2f}")  # fmt: skip
        if epsilon is not None:
            table.point("measured", epsilon, told[0])
    table.published("published", AUC)
    about = (
        f"The model is an LSTM as in the paper (one layer of 64, {epochs} epochs). It predicts "
        f"the 1,000 most frequent words from up to {networks.CONTEXT} before; it learns from the "
        f"first {words} words of a user. {networks.versions()}."
        if lstm
        else "The model counts word pairs; the paper's is an LSTM, which learns less by heart."
    )
    if lstm or wide:
        table.notes.append(f"{trials} trials, with the texts and the auditor of the pairs. {about}"
                           + f" *{name}*: {SUBSET}. Published: {AUC_SOURCE}." * wide)  # fmt: skip
        return table
    table.notes += [
        f"Authors of Reuters C50 and of PAN11's large set with at least {least} texts, as many of "
        f"each, cut at 2,000 characters. {trials} trials: half of the users are the target's, half "
        "the shadow's; half of each are members. Chance is 0.5. *Accuracy*: the share of users of "
        "whom the auditor says rightly whether they are members. Intervals: Student's, widened "
        "because trials share users.",
        "The auditor (Song and Shmatikov 2019) reads the ranks of a user's next words, as they "
        f"were written, and learns from the shadow model by logistic regression. {about} An AUC "
        "below 0.5 is that of answers which are reversed: 0.36 is 0.64, read the other way.",
        f"Published: {AUC_SOURCE}.",
    ]
    return table


TABLES: dict[str, Experiment] = {
    "fig2": figure_2,
    "fig3-4": figures_3_4,
    "table1": table_1,
    "fig5": figure_5,
    "fig5-answers": figure_5_answers,
    "tables3-4": tables_3_4,
    "table4": partial(tables_3_4, name=PAPERS),
    "tables3-4-lstm": partial(tables_3_4, lstm=True),
}
