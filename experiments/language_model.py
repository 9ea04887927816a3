"""A neural model of language as attacker, beside exact n-grams, at equal bits a word.

    pip install 'fastdx[language-model]'
    python -m experiments.language_model settle FOLDER     settings, from texts held out: minutes
    python -m experiments.language_model measure FOLDER    hours; goes on where it was stopped
    python -m experiments.language_model bits FOLDER       what every policy tells: minutes
    python -m experiments.language_model keep FOLDER       experiments/results/language_model.json
    python -m experiments language-model --table named     the table, from what was kept
    python -m experiments language-model --table beam      beside beam search, from what was kept

A run goes on where the kept one ended: with its settings, at the sentences that it lacks. `keep`
adds the new ones. Without that file all begins anew.

Sentences of film reviews (IMDB, test), one a review, without marks inside, all words known; the
built-in vocabulary. Each is released by Tem and by Tem on balanced covers, with ε chosen so that
all tell equally many bits a word (`Channel.bits` under the words' frequencies in other reviews).
All attackers know the law. The n-grams learned from 25,000 other reviews, and their posteriors are
exact sums (`Channel.decode`). The neural attacker (`experiments.smc`) has a prior that mixes the
neural model with the trigrams. A few particles do not stand for all texts, so it does not name
words by them: it takes the exact posterior of the trigrams, and multiplies it by what the neural
model adds behind the same particles, each to a power. The powers come from sentences that are not
measured.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.data import Shared, Source, builtin
from experiments.measures import narrowed, tem
from experiments.sentences import Sentence, plain, sentences
from experiments.smc import (
    Ids,
    LookAhead,
    NgramWords,
    Numbers,
    WordModel,
    choice,
    decode,
    likeliest,
    mixture,
)
from experiments.smollm import Engine, NeuralWords, Spelling
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import Mechanism
from fastdx.bags import STOP_WORDS
from fastdx.channel import Channel, NgramPrior, Posterior
from fastdx.channel.neural import smollm
from fastdx.lab.evaluation import Interval

FEWEST = 30
"""Sentences below which a normal interval of a share is not to be trusted."""
KEPT = Path(__file__).parent / "results" / "language_model.json"
SETTLED, MEASURED = "settings.json", "measured.jsonl"
SETTINGS = ("epsilon", "bits", "share", "entropy", "particles")
HELD_OUT = 140
"""Sentences that the prior's shares come from; those that are attacked come after them."""
CHOOSING = 50
"""Of the sentences that are not attacked for the table, the first: their releases are attacked too,
and the weights that name words come from them."""
PARTICLES = 16
SHOWN = 10
"""Other sentences that the neural model reads first."""
PARTS = ("trigrams", "gain")
"""The neural attacker weighs at each word: ln of the exact trigrams' posterior, and ln of what
the neural model adds."""
BEAM, BEAMED = 10, 100
"""Prefixes of the beam search, and the sentences that it attacks too, at the most bits."""
RIVALS = 10
"""At each place, the likeliest content words by trigrams: the neural attacker names one of them."""
LEAST = 1e-30
"""Posteriors below this count as this."""
ATTACKERS = ("unigram", "bigram", "trigram", "neural")
COLUMNS = ("sentence", "words", "content", *ATTACKERS, "surprise trigram", "surprise neural",
           "beam")  # fmt: skip


class Policy(NamedTuple):
    """Tem, on a balanced cover of k or on none, that tells so many bits a word."""

    k: int | None
    bits: float
    language: str = "uniform"

    def __str__(self) -> str:
        name = "Tem" if self.k is None else f"cover of {self.k}"
        base = "" if self.language == "uniform" else f" by {self.language}"
        return f"{name}{base}, {self.bits:g} bits"


POLICIES = tuple(
    policy for bits in (3.3, 2.0, 1.0)
    for policy in (Policy(None, bits), Policy(None, bits, "rank"), Policy(20, bits),
                   Policy(40, bits))
)  # fmt: skip
EVERY = {3.3: 1, 2.0: 4, 1.0: 8}
"""At few bits hardly any word is named, so only every fourth or eighth sentence is released."""


class Knowledge:
    """What all attackers know of the language: n-grams of other reviews."""

    def __init__(self, source: Source, words: int = 20_000) -> None:
        self.space = builtin(words)
        self.public = [plain(t) for part in ("train", "val") for t in source.imdb(part).texts]
        self.priors = [NgramPrior.train(self.space, self.public, order) for order in (1, 2, 3)]
        self.frequencies = self.priors[2].frequencies
        names = self.space.words
        self.content = np.array([w not in STOP_WORDS for w in names])
        texts = source.imdb("test").texts
        if source.made_up:
            # They have no sentences.
            texts = [f"{' '.join(text.split()[:10])}." for text in texts]
        self.attacked = list(sentences(texts, self.space))

    @cached_property
    def ahead(self) -> LookAhead:
        return LookAhead.of(self.priors[1])

    def text(self, sentence: Sentence) -> str:
        return " ".join(self.space.words[w] for w in sentence.words) + sentence.mark

    def prompt(self, count: int = SHOWN) -> str:
        """Other sentences in the form of those attacked: what comes next is one more."""
        shown = [f"- {self.text(s)}" for s in sentences(self.public, self.space)][:count]
        return "\n".join(["from film reviews:", *shown, "-"])

    def mechanism(self, policy: Policy, epsilon: float) -> Mechanism:
        return tem(self.space, epsilon, policy.k, exclude="offensive", language=policy.language,
                   seed=SEED)  # fmt: skip

    def epsilon(self, policy: Policy) -> float:
        """The ε at which a policy tells its bits, to 1% of them; bits grow with ε."""

        def less(epsilon: float) -> bool:
            # The estimate's words are always the same, so it grows with ε too.
            channel = Channel.of(self.mechanism(policy, epsilon))
            return bool(channel.bits(self.frequencies, sample=2048) < policy.bits)

        low, high = narrowed(less, 0.5, 16.0, 1.004)
        return float(f"{(low * high) ** 0.5:.3f}")


class Released(NamedTuple):
    """A policy's channel, and what it releases of all sentences."""

    policy: Policy
    channel: Channel
    outputs: list[NDArray[Any]]

    @classmethod
    def of(cls, know: Knowledge, policy: Policy, epsilon: float, count: int) -> Released:
        """Release the first sentences; always the same outputs."""
        mechanism = know.mechanism(policy, epsilon)
        some = [s.words for s in know.attacked[:count]]
        outputs = mechanism.privatize_ids(np.concatenate(some))
        ends = np.cumsum([len(words) for words in some])[:-1]
        return cls(policy, Channel.of(mechanism), np.split(outputs, ends))

    def likelihoods(self, i: int) -> Numbers:
        return np.array([self.channel.likelihood(int(y)) for y in self.outputs[i]])

    def exact(self, know: Knowledge, i: int, order: int) -> Posterior:
        """The posterior of a sentence by n-grams."""
        names = know.space.words
        return self.channel.decode([names[y] for y in self.outputs[i]], know.priors[order - 1])

    def gains(self, know: Knowledge, model: WordModel, i: int, particles: int) -> Numbers:
        """ln of what the model adds to n-grams, of every place and word: (n, V)."""
        likelihoods = self.likelihoods(i)
        ahead = know.ahead.messages(likelihoods)
        # Chance depends on the sentence alone: a run that goes on where it was repeats nothing.
        rng = np.random.default_rng([SEED, i])
        found = decode(marked(model, know.attacked[i]), likelihoods, ahead, particles, rng)
        return found.gains.before + found.gains.behind

    def beam(self, know: Knowledge, model: WordModel, i: int) -> Ids:
        """The content word that a beam search thinks likeliest at every place: no look-ahead."""
        likelihoods = self.likelihoods(i)
        found = decode(marked(model, know.attacked[i]), likelihoods, np.ones_like(likelihoods),
                       BEAM, np.random.default_rng(SEED), keep=likeliest)  # fmt: skip
        # A place at which no kept prefix has a content word is named by the prefixes before it.
        kept = found.marginals() + 1e-9 * found.seen
        return np.where(know.content, kept, -1.0).argmax(axis=1)


def marked(model: WordModel, sentence: Sentence) -> WordModel:
    """Tell a neural model how the sentence ends, which the release shows."""
    if isinstance(model, NeuralWords):
        model.mark = sentence.mark
    return model


class Ngrams(NamedTuple):
    """N-grams say this of a sentence's content words, in their order."""

    first: Ids
    """The likeliest content word by orders 1, 2, 3: (3, places)."""
    ids: Ids
    """The `RIVALS` likeliest content words by trigrams, likeliest first: (places, RIVALS)."""
    posterior: Numbers
    """Their posterior by trigrams: (places, RIVALS)."""
    truth: Numbers
    """The true words' posterior by trigrams: (places,)."""

    @classmethod
    def of(cls, know: Knowledge, released: Released, i: int) -> Ngrams:
        words = np.array(know.attacked[i].words)
        (places,) = np.nonzero(know.content[words])
        first = []
        likely, exact = np.zeros((0, 0)), np.zeros((0, 0))
        for order in (1, 2, 3):
            posterior = released.exact(know, i, order)
            # A row for each place; there may be none.
            rows = [posterior.marginals(place) for place in places.tolist()]
            exact = np.reshape(rows, (len(places), len(know.content)))
            likely = np.where(know.content, exact, -1.0)
            first.append(likely.argmax(axis=-1))
        ids = np.argsort(-likely, axis=-1, kind="stable")[:, :RIVALS]
        return cls(np.array(first), ids, np.take_along_axis(exact, ids, axis=-1),
                   exact[np.arange(len(places)), words[places]])  # fmt: skip


def attack(
    know: Knowledge, released: Released, model: WordModel, i: int, particles: int, *,
    grams: Ngrams | None = None, beam: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Count the content words of a sentence that n-grams name; and tell what weights are for.

    With `beam` also those that a beam search names.

    All attackers name content words, since only these are counted. `places` has for every content
    word what `PARTS` say of its rivals, which of them it is (-1: none), and what trigrams say of
    it; and no word.
    """
    words = np.array(know.attacked[i].words)
    (places,) = np.nonzero(know.content[words])
    truth = words[places]
    if grams is None:
        grams = Ngrams.of(know, released, i)
    found: dict[str, Any] = {"sentence": i, "words": len(words), "content": len(places)}
    for name, first in zip(ATTACKERS, grams.first, strict=False):
        found[name] = int((first == truth).sum())
    if beam:
        found["beam"] = int((released.beam(know, model, i)[places] == truth).sum())
    gains = released.gains(know, model, i, particles)
    found["places"] = []
    for j, place in enumerate(places.tolist()):
        ids = grams.ids[j]
        parts = np.stack([np.log(np.maximum(grams.posterior[j], LEAST)), gains[place, ids]])
        is_it = np.nonzero(ids == truth[j])[0]
        found["places"].append({"truth": int(is_it[0]) if len(is_it) else -1,
                                "trigrams": _short(grams.truth[j]),
                                "parts": _short(parts)})  # fmt: skip
    return found


def _short(numbers: Any) -> Any:
    """Seven digits are enough to compare weights."""
    return json.loads(
        json.dumps(np.asarray(numbers).tolist()), parse_float=lambda x: float(f"{float(x):.6e}")
    )


def weighed(line: dict[str, Any], weights: Numbers) -> tuple[int, float, float]:
    """Return how many words weights of `PARTS` name, and the surprise: trigrams', their own.

    Surprise is the sum of -log2 of the posterior of the true words. A word that is no rival keeps
    its posterior by trigrams; rivals share out theirs.
    """
    named, by_grams, by_weights = 0, 0.0, 0.0
    for place in line["places"]:
        parts, truth = np.array(place["parts"]), place["truth"]
        scores = weights @ parts
        own = max(place["trigrams"], LEAST)
        by_grams -= float(np.log2(own))
        if truth >= 0:
            named += int(scores.argmax() == truth)
            likely = np.exp(scores - scores.max())
            own = float(likely[truth] / likely.sum() * np.exp(parts[0]).sum())
        by_weights -= float(np.log2(max(own, LEAST)))
    return named, round(by_grams, 3), round(by_weights, 3)


def published(path: Path | None = None) -> dict[str, Any]:
    """Return what was kept before; nothing if there is no such file."""
    return _read(KEPT if path is None else path)


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return found


class Folder:
    """Where a run keeps what it did: settings, and a line of JSON for each attack."""

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.settings, self.measured = path / SETTLED, path / MEASURED

    def load(self) -> dict[str, Any]:
        """The settings: this run's, or else those of the kept one."""
        kept = {name: value for name, value in published().items() if name in SETTINGS}
        return _read(self.settings) or kept or {"epsilon": {}, "bits": {}}

    def save(self, settings: dict[str, Any]) -> None:
        self.settings.write_text(json.dumps(settings, indent=1), "utf-8")

    def lines(self) -> list[dict[str, Any]]:
        if not self.measured.exists():
            return []
        return [json.loads(line) for line in self.measured.read_text("utf-8").splitlines()]


def neural(folder: Folder, know: Knowledge, share: float, particles: int) -> NeuralWords:
    engine = Engine(smollm(folder.path), 2 * particles + 1)
    spelling = Spelling(engine, know.space.words)
    return NeuralWords(engine, spelling, know.priors[2], share=share, prompt=know.prompt(),
                       count=particles)  # fmt: skip


def plain_words(know: Knowledge, model: NeuralWords, indices: range) -> tuple[Numbers, Numbers]:
    """Return what the neural model and the trigrams say of the words of plain sentences."""
    parts = []
    every = [know.attacked[i].words for i in indices]
    for start in range(0, len(every), model.count):
        some = every[start : start + model.count]
        model.begin()
        parents = np.zeros(len(some), dtype=np.int64)
        place = 0
        while some:
            model.extend(parents, np.array([words[place] for words in some]))
            parts.append(np.array(model.parts))
            place += 1
            parents = np.array([j for j, words in enumerate(some) if len(words) > place])
            some = [some[j] for j in parents]
    neural, grams = np.concatenate(parts, axis=1)
    return neural, grams


def settle(folder: Folder, know: Knowledge, particles: int = PARTICLES) -> None:
    """Find ε of all policies and the neural model's share of the prior.

    What an earlier run settled stays.
    """
    settings = folder.load()
    for policy in POLICIES:
        if str(policy) not in settings["epsilon"]:
            settings["epsilon"][str(policy)] = know.epsilon(policy)
            folder.save(settings)
    if "share" not in settings:
        model = neural(folder, know, 0.5, particles)
        settings |= _prior(know, model)
        folder.save(settings)


def _prior(know: Knowledge, model: NeuralWords) -> dict[str, Any]:
    by_model, by_grams = plain_words(know, model, range(HELD_OUT))
    share = round(float(mixture([by_model, by_grams])[0]), 2)
    said = {"neural": by_model, "trigrams": by_grams,
            "mix": share * by_model + (1 - share) * by_grams}  # fmt: skip
    entropy = {name: round(float(-np.log2(p).mean()), 2) for name, p in said.items()}
    return {"share": share, "entropy": entropy, "particles": model.count}


def kept_ngrams(folder: Folder, know: Knowledge, released: Released, i: int) -> Ngrams:
    """Return what n-grams say of a sentence; computed once, whichever neural attacker comes."""
    path = folder.path / "ngrams" / f"{i}-{POLICIES.index(released.policy)}.npz"
    if path.exists():
        with np.load(path) as held:
            return Ngrams(*(held[name] for name in Ngrams._fields))
    found = Ngrams.of(know, released, i)
    path.parent.mkdir(exist_ok=True)
    np.savez(path, **found._asdict())
    return found


def measure(
    folder: Folder, know: Knowledge, count: int, policies: Sequence[Policy] = POLICIES
) -> None:
    """Attack sentence by sentence under all policies, from where an earlier run stopped.

    Those that the weights come from are the first.
    """
    settings, before = folder.load(), published()
    done = {(line["sentence"], line["policy"]) for line in folder.lines()}
    for policy_name, rows in before.get("attacks", {}).items():
        done |= {(row[0], policy_name) for row in rows if row[COLUMNS.index("neural")] is not None}
    model = neural(folder, know, settings["share"], settings["particles"])
    every = [Released.of(know, policy, settings["epsilon"][str(policy)], HELD_OUT + count)
             for policy in policies]  # fmt: skip
    # The weights are known from the kept run: nothing is measured to choose them.
    chosen = [] if "weights" in before else list(range(CHOOSING))
    with folder.measured.open("a", encoding="utf-8") as out:
        for i in [*chosen, *range(HELD_OUT, HELD_OUT + count)]:
            for released in every:
                policy = released.policy
                if (i, str(policy)) in done or i % EVERY[policy.bits]:
                    continue
                start = time.perf_counter()
                grams = kept_ngrams(folder, know, released, i)
                beam = policy.bits == POLICIES[0].bits and HELD_OUT <= i < HELD_OUT + BEAMED
                found = attack(know, released, model, i, settings["particles"], grams=grams,
                               beam=beam)  # fmt: skip
                seconds = round(time.perf_counter() - start, 2)
                line = {"policy": str(policy), **found, "seconds": seconds}
                print(json.dumps(line), file=out, flush=True)


def bits(folder: Folder, know: Knowledge) -> None:
    """Compute what every policy tells, exactly: ε was found by an estimate."""
    settings = folder.load()
    for policy in POLICIES:
        if str(policy) not in settings["bits"]:
            channel = Channel.of(know.mechanism(policy, settings["epsilon"][str(policy)]))
            found = channel.bits(know.frequencies)
            settings["bits"][str(policy)] = round(float(found), 3)
            folder.save(settings)


def chosen_weights(lines: list[dict[str, Any]]) -> Numbers:
    """The weights of `PARTS` that make the true words of sentences before `CHOOSING` likeliest."""
    places = [place for line in lines if line["sentence"] < CHOOSING
              for place in line["places"] if place["truth"] >= 0]  # fmt: skip
    parts = [np.array(place["parts"]) for place in places]
    return choice(parts, [place["truth"] for place in places]).round(3)


def keep(folder: Folder, path: Path = KEPT) -> None:
    """Write settings and counts to the file that the table is made from.

    Of every attack the file holds numbers, in the order of `columns`; no text. Where a sentence was
    decoded by n-grams only, those of the neural attacker are null.
    """
    lines, before, settings = folder.lines(), published(path), folder.load()
    if before and not (before["epsilon"].items() <= settings["epsilon"].items() and all(
        before[name] == settings[name] for name in ("share", "particles")
    )):  # fmt: skip
        raise SystemExit(f"{path} was made with other settings: remove it to begin anew")
    weights = np.array(before["weights"]) if before else chosen_weights(lines)
    lines = [line for line in lines if line["sentence"] >= HELD_OUT]
    for line in lines:
        if "places" in line:
            line["neural"], line["surprise trigram"], line["surprise neural"] = weighed(
                line, weights
            )
    attacks: dict[str, list[list[float]]] = {}
    seconds = before.get("seconds", 0.0)
    for policy in map(str, POLICIES):
        rows = before.get("attacks", {}).get(policy, [])
        known = {row[0]: row for row in rows if row[COLUMNS.index("neural")] is not None}
        spare = {row[0]: row for row in rows}
        for line in lines:
            have = known if "neural" in line else spare
            if line["policy"] == policy and line["sentence"] not in have:
                have[line["sentence"]] = [line.get(c) for c in COLUMNS]
                seconds += line["seconds"]
        found = spare | known
        attacks[policy] = [found[sentence] for sentence in sorted(found)]
    path.parent.mkdir(exist_ok=True)
    listed = ",\n".join(f" {json.dumps(p)}: {json.dumps(rows)}" for p, rows in attacks.items())
    head = json.dumps(
        {**settings, "weights": weights.tolist(), "seconds": round(seconds), "columns": COLUMNS}
    )
    path.write_text(f'{head[:-1]}, "attacks": {{\n{listed}}}}}\n', "utf-8")


def share_named(named: Numbers, content: Numbers) -> Interval:
    """A share of content words, with an interval for which sentences are drawn."""
    share = float(named.sum() / content.sum())
    apart = named - share * content
    error = 1.96 * float(np.sqrt((apart**2).sum() * len(named) / (len(named) - 1)) / content.sum())
    return Interval(share, share - error, share + error)


def stand_in(run: Run) -> dict[str, Any]:
    """Attack made-up texts; trigrams take the place of the neural model."""
    know = Knowledge(run.data, 500)
    found: dict[str, Any] = {"epsilon": {}, "bits": {}, "share": 0.0, "particles": 8,
                             "entropy": {}, "attacks": {}}  # fmt: skip
    model, weights = NgramWords(know.priors[2]), np.array([1.0, 1.0])
    for policy in (Policy(None, 2.0), Policy(20, 2.0)):
        epsilon = know.epsilon(policy)
        released = Released.of(know, policy, epsilon, 10)
        rows = [attack(know, released, model, i, 8, beam=True) for i in range(10)]
        for row in rows:
            row["neural"], row["surprise trigram"], row["surprise neural"] = weighed(row, weights)
        found["epsilon"][str(policy)] = epsilon
        found["bits"][str(policy)] = float(released.channel.bits(know.frequencies))
        found["columns"] = COLUMNS
        found["attacks"][str(policy)] = [[row[c] for c in COLUMNS] for row in rows]
    return found


def _kept(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = run.step(partial(stand_in, run)) if run.data.made_up else published()
    return found


def _columns(kept: dict[str, Any], rows: list[list[float]]) -> dict[str, Numbers]:
    return dict(zip(kept["columns"], np.array(rows, dtype=float).T, strict=True))


def named(run: Run) -> Table:
    """The share of content words that each attacker names, at equal bits."""
    kept = _kept(run)
    run.seconds += kept.get("seconds", 0.0)
    table = Table(
        "Content words named, by attacker, at equal bits a word",
        ["policy", "ε", "bits", "sentences", "content words", "one by one", "exact bigrams",
         "exact trigrams", "of these also neural", "exact trigrams", "neural",
         "neural - trigrams", "bits left: trigrams", "neural"],
    )  # fmt: skip
    for policy, rows in kept["attacks"].items():
        if len(rows) < 2:
            continue
        data = _columns(kept, rows)
        content, few = data["content"], len(rows) < FEWEST
        shown = [_cell(share_named(data[name], content), few) for name in ATTACKERS[:3]]
        told = kept["bits"].get(policy)
        # Without the exact sum there is the estimate by which ε was found.
        shown_bits = f"≈ {policy.split()[-2]}" if told is None else f"{told:.2f}"
        table.add(policy, f"{kept['epsilon'][policy]:.2f}", shown_bits,
                  f"{len(rows):,}", f"{content.sum():,.0f}", *shown, *_beside(data))  # fmt: skip
    if any(2 <= len(rows) < FEWEST for rows in kept["attacks"].values()):
        table.notes.append(f"Of fewer than {FEWEST} sentences no interval is shown: such rows "
                           "are of a run that was not finished, and decide nothing.")  # fmt: skip
    table.notes.append(_note(kept, run.data.made_up))
    return table


def _beside(data: dict[str, Numbers]) -> list[str]:
    """Return what the neural attacker names, and trigrams of the same sentences."""
    there = ~np.isnan(data["neural"])
    if there.sum() < 2:
        return [f"{there.sum()}", *["-"] * 5]
    some = {name: column[there] for name, column in data.items()}
    content, few = some["content"], there.sum() < FEWEST
    both = [_cell(share_named(some[name], content), few) for name in ATTACKERS[2:]]
    more = _cell(share_named(some["neural"] - some["trigram"], content), few, "+.3f")
    left = [some[f"surprise {name}"].sum() / content.sum() for name in ATTACKERS[2:]]
    return [f"{there.sum():,}", *both, more, *(f"{x:.2f}" for x in left)]


def _cell(x: Interval, few: bool, form: str = ".3f") -> str:
    return f"{x.mean:{form}}" + ("" if few else f" [{x.low:{form}}, {x.high:{form}}]")


def _note(kept: dict[str, Any], made_up: bool) -> str:
    if made_up:
        return "Trigrams by sequential Monte Carlo take the place of the neural model."
    entropy, attacks, weights = kept["entropy"], kept["attacks"].values(), kept["weights"]
    words = sum(row[kept["columns"].index("words")] for row in max(attacks, key=len))
    return (
        f"Sentences of film reviews, one a review ({words:,} words), 95% intervals with sentences "
        "as the unit; the difference is paired. *Bits*: what an output tells of its word "
        "under the words' frequencies in other reviews (≈: by an estimate). *Bits left*: mean of "
        "-log2 of the posterior of the true content word. The neural attacker: "
        f"{kept['particles']} particles, {kept['share']:.2f} of the prior, the powers "
        f"{weights[0]:.2f} and {weights[1]:.2f} from {CHOOSING} other sentences. A word of a plain "
        f"sentence takes {entropy['trigrams']:.2f} bits by trigrams, {entropy['neural']:.2f} by "
        f"the neural model alone, {entropy['mix']:.2f} by their mix."
    )


def beam(run: Run) -> Table:
    """The neural attacker beside a beam search and n-grams, on the same sentences."""
    kept = _kept(run)
    table = Table(
        "Content words named, by attacker, on the sentences that the beam search attacked",
        ["policy", "sentences", "content words", "beam search", "exact bigrams", "exact trigrams",
         "neural", "neural - beam search"],
    )  # fmt: skip
    for policy, rows in kept["attacks"].items():
        if not rows:
            continue
        data = _columns(kept, rows)
        there = ~(np.isnan(data["beam"]) | np.isnan(data["neural"]))
        if there.sum() < 2:
            continue
        some = {name: column[there] for name, column in data.items()}
        content, few = some["content"], there.sum() < FEWEST
        table.add(policy, f"{there.sum():,}", f"{content.sum():,.0f}",
                  *(_cell(share_named(some[name], content), few)
                    for name in ("beam", "bigram", "trigram", "neural")),
                  _cell(share_named(some["neural"] - some["beam"], content), few, "+.3f")
                  )  # fmt: skip
    table.notes.append(
        f"Beam search: the {BEAM} likeliest prefixes under the same prior as that of the neural "
        "attacker, with the exact law and without look-ahead. 95% intervals, sentences as the "
        "unit; the difference is paired."
    )
    return table


TABLES: dict[str, Experiment] = {"named": named, "beam": beam}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("settle", "measure", "bits", "keep"))
    parser.add_argument("folder", type=Path, help="where a run keeps what it did")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--bits", type=float, help="for measure: only policies of so many bits")
    parser.add_argument("--particles", type=int, default=PARTICLES, help="for settle")
    args = parser.parse_args()
    folder = Folder(args.folder)
    if args.step == "keep":
        if not folder.lines():
            raise SystemExit(f"{folder.measured} holds no attack: measure first")
        keep(folder)
        return
    know = Knowledge(Shared())
    if args.step == "bits":
        bits(folder, know)
    elif args.step == "settle":
        settle(folder, know, args.particles)
    elif "share" not in folder.load():
        raise SystemExit(f"{folder.settings} is not complete: settle first")
    else:
        some = [policy for policy in POLICIES if args.bits in (None, policy.bits)]
        if not some:
            raise SystemExit(f"--bits must be one of {', '.join(f'{b:g}' for b in EVERY)}")
        measure(folder, know, args.sentences, some)


if __name__ == "__main__":
    main()
