"""A neural model of language as attacker, beside exact n-grams, at equal bits a word.

    pip install 'fastdx[language-model]'
    python -m experiments language-model --table named     the table, from what was kept
    python -m experiments.language_model    measures what is kept in an hour or two, step by step

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

import json
from functools import cache, cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.cache import FOLDER
from experiments.data import Shared, Source, builtin
from experiments.measures import by_texts, narrowed, tem
from experiments.sentences import Sentence, plain, sentences, unseen, words_of
from experiments.smc import (
    Ids,
    LookAhead,
    NgramWords,
    Numbers,
    WordModel,
    choice,
    decode,
    mixture,
)
from experiments.smollm import Engine, NeuralWords, Spelling
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import Mechanism
from fastdx.bags import STOP_WORDS
from fastdx.channel import Channel, NgramPrior, Posterior
from fastdx.channel.neural import smollm
from fastdx.lab.evaluation import Interval

KEPT = Path(__file__).parent / "results" / "language_model.json"
HELD_OUT, SENTENCES = 140, 1000
"""Sentences that the prior's shares come from, and those behind them that are attacked."""
CHOOSING = 50
"""Of the sentences that are not attacked for the table, the first: their releases are attacked too,
and the weights that name words come from them."""
PARTICLES = 16
SHOWN = 10
"""Other sentences that the neural model reads first."""
PARTS = ("trigrams", "gain")
"""The neural attacker weighs at each word: ln of the exact trigrams' posterior, and ln of what
the neural model adds."""
RIVALS = 10
"""At each place, the likeliest content words by trigrams: the neural attacker names one of them."""
LEAST = 1e-30
"""Posteriors below this count as this."""
ATTACKERS = ("unigram", "bigram", "trigram", "neural")
COLUMNS = ("sentence", "words", "content", *ATTACKERS, "surprise trigram", "surprise neural")


class Policy(NamedTuple):
    """Tem, on a balanced cover of k or on none, that tells so many bits a word."""

    k: int | None
    bits: float
    language: str = "uniform"

    def __str__(self) -> str:
        name = "Tem" if self.k is None else f"cover of {self.k}"
        base = "" if self.language == "uniform" else f" by {self.language}"
        return f"{name}{base}, {self.bits:g} bits"


POLICIES = (Policy(None, 3.3), Policy(None, 3.3, "rank"), Policy(20, 3.3), Policy(40, 3.3))


class Knowledge:
    """What all attackers know of the language: n-grams of other reviews."""

    def __init__(self, source: Source, words: int = 20_000) -> None:
        self.space = builtin(words)
        self.public = [plain(t) for part in ("train", "val") for t in source.imdb(part).texts]
        self.priors = [NgramPrior.train(self.space, self.public, order) for order in (1, 2, 3)]
        self.frequencies = self.priors[2].frequencies
        names = self.space.words
        self.content = np.array([w not in STOP_WORDS for w in names])
        self.made_up, self.attacked = source.made_up, unseen(source, self.space)

    @cached_property
    def ahead(self) -> LookAhead:
        return LookAhead.of(self.priors[1])

    def prompt(self) -> str:
        """Other sentences in the form of those attacked: what comes next is one more."""
        shown = [f"- {words_of(self.space, s)}{s.mark}"
                 for s in islice(sentences(self.public, self.space), SHOWN)]  # fmt: skip
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


def marked(model: WordModel, sentence: Sentence) -> WordModel:
    """Tell a neural model how the sentence ends, which the release shows."""
    if isinstance(model, NeuralWords):
        model.mark = sentence.mark
    return model


def rivals(
    posterior: Numbers, gains: Numbers, words: Ids, content: NDArray[np.bool_]
) -> list[dict[str, Any]]:
    """What weights are for: of every content word what `PARTS` say of its likeliest rivals.

    Also which of them it is (-1: none), and what n-grams say of it; and no word.

    Parameters
    ----------
    posterior, gains : array of float, shape (n, V)
        Of every place and word by n-grams, and ln of what a model adds to them.
    words : array of int, shape (n,)
        Those that were written.
    """
    places: list[dict[str, Any]] = []
    for j in np.flatnonzero(content[words]):
        ids = np.argsort(np.where(content, -posterior[j], 1.0), kind="stable")[:RIVALS]
        parts = np.stack([np.log(np.maximum(posterior[j, ids], LEAST)), gains[j, ids]])
        places.append({"truth": int((ids == words[j]) @ np.arange(1, RIVALS + 1)) - 1,
                       "trigrams": float(posterior[j, words[j]]),
                       "parts": parts.tolist()})  # fmt: skip
    return places


def attack(
    know: Knowledge, released: Released, model: WordModel, i: int, particles: int
) -> dict[str, Any]:
    """Count the content words of a sentence that n-grams name; and tell what weights are for.

    All attackers name content words, since only these are counted.
    """
    words = np.array(know.attacked[i].words)
    exact = np.zeros((0, 0))
    found: dict[str, Any] = {"sentence": i, "words": len(words),
                             "content": int(know.content[words].sum())}  # fmt: skip
    for name, order in zip(ATTACKERS, (1, 2, 3), strict=False):
        posterior = released.exact(know, i, order)
        exact = np.array([posterior.marginals(place) for place in range(len(words))])
        first = np.where(know.content, exact, -1.0).argmax(axis=1)
        found[name] = int(((first == words) & know.content[words]).sum())
    gains = released.gains(know, model, i, particles)
    return {**found, "places": rivals(exact, gains, words, know.content)}


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


def published() -> dict[str, Any]:
    """Return what was kept."""
    return dict(json.loads(KEPT.read_text("utf-8")))


@cache
def neural(know: Knowledge, share: float) -> WordModel:
    """The neural model mixed with trigrams; these alone where texts are made up."""
    if know.made_up:
        return NgramWords(know.priors[2])
    engine = Engine(smollm(), 2 * PARTICLES + 1)
    spelling = Spelling(engine, know.space.words)
    return NeuralWords(engine, spelling, know.priors[2], share=share, prompt=know.prompt(),
                       count=PARTICLES)  # fmt: skip


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


def settled(know: Knowledge) -> dict[str, Any]:
    """Find the neural model's share of the prior, and the bits a word of all three."""
    model = neural(know, 0.5)
    if not isinstance(model, NeuralWords):
        return {"share": 0.0}
    by_model, by_grams = plain_words(know, model, range(HELD_OUT))
    share = round(float(mixture([by_model, by_grams])[0]), 2)
    said = {"neural": by_model, "trigrams": by_grams,
            "mix": share * by_model + (1 - share) * by_grams}  # fmt: skip
    entropy = {name: round(float(-np.log2(p).mean()), 2) for name, p in said.items()}
    return {"share": share, "entropy": entropy}


def measured(run: Run) -> dict[str, Any]:
    """Attack sentence by sentence under all policies: what `KEPT` holds.

    Of every attack it has numbers, in the order of `COLUMNS`; no text.
    """
    know = Knowledge(run.data, run.of(20_000, 500))
    settings = run.step(partial(settled, know), "share")
    # Those that the weights come from are the first.
    first, count, chosen = run.of((HELD_OUT, SENTENCES, CHOOSING), (5, 10, 5))
    starts = [*range(0, chosen, CHOOSING), *range(first, first + count, CHOOSING)]
    lines: dict[str, list[dict[str, Any]]] = {}
    found: dict[str, Any] = {**settings, "epsilon": {}, "bits": {}, "particles": PARTICLES}
    for policy in run.of(POLICIES, POLICIES[::2]):
        epsilon = run.step(partial(know.epsilon, policy), "epsilon", *policy)
        released = Released.of(know, policy, epsilon, first + count)
        # ε was found by an estimate; this is exact.
        exact = run.step(partial(released.channel.bits, know.frequencies), "bits", *policy)
        found["epsilon"][str(policy)], found["bits"][str(policy)] = epsilon, round(exact, 3)

        def attacks(start: int, released: Released = released) -> list[dict[str, Any]]:
            ends = min(start + CHOOSING, first + count if start else chosen)
            model = neural(know, settings["share"])
            return [attack(know, released, model, i, PARTICLES) for i in range(start, ends)]

        steps = [run.step(partial(attacks, start), "attack", *policy, start) for start in starts]
        lines[str(policy)] = [line for step in steps for line in step]
    weights = chosen_weights([line for some in lines.values() for line in some], chosen)
    rows: dict[str, list[list[float]]] = {policy: [] for policy in lines}
    for policy, some in lines.items():
        for line in some:
            if line["sentence"] >= first:
                named, *surprise = weighed(line, weights)
                rows[policy].append([*(line[c] for c in COLUMNS[:-3]), named, *surprise])
    return {**found, "weights": weights.tolist(), "columns": COLUMNS, "attacks": rows}


def chosen_weights(lines: list[dict[str, Any]], most: int = CHOOSING) -> Numbers:
    """The weights of `PARTS` that make the true words of the first sentences likeliest."""
    places = [place for line in lines if line["sentence"] < most
              for place in line["places"] if place["truth"] >= 0]  # fmt: skip
    parts = [np.array(place["parts"]) for place in places]
    return choice(parts, [place["truth"] for place in places]).round(3)


def _kept(run: Run) -> dict[str, Any]:
    return measured(run) if run.data.made_up else published()


def share_named(named: Numbers, content: Numbers) -> Interval:
    """A share of content words, with an interval for which sentences are drawn."""
    share, half = by_texts(named, content)
    half *= (len(named) / (len(named) - 1)) ** 0.5
    return Interval(share, share - half, share + half)


def named(run: Run) -> Table:
    """The share of content words that each attacker names, at equal bits."""
    kept = measured(run) if run.data.made_up else published()
    run.seconds += kept.get("seconds", 0.0)
    table = Table(
        "Content words named, by attacker, at equal bits a word",
        ["policy", "ε", "bits", "sentences", "content words", "one by one", "exact bigrams",
         "exact trigrams", "of these also neural", "exact trigrams", "neural",
         "neural - trigrams", "bits left: trigrams", "neural"],
    )  # fmt: skip
    for policy, rows in kept["attacks"].items():
        data = dict(zip(kept["columns"], np.array(rows, dtype=float).T, strict=True))
        content, count = data["content"], f"{len(rows):,}"
        shown = [_cell(share_named(data[name], content)) for name in ATTACKERS]
        more = _cell(share_named(data["neural"] - data["trigram"], content), "+.3f")
        left = [data[f"surprise {name}"].sum() / content.sum() for name in ATTACKERS[2:]]
        table.add(policy, f"{kept['epsilon'][policy]:.2f}", f"{kept['bits'][policy]:.2f}", count,
                  f"{content.sum():,.0f}", *shown[:3], count, *shown[2:], more,
                  *(f"{x:.2f}" for x in left))  # fmt: skip
    table.notes.append(_note(kept, run.data.made_up))
    return table


def _cell(x: Interval, form: str = ".3f") -> str:
    return f"{x.mean:{form}} [{x.low:{form}}, {x.high:{form}}]"


def _note(kept: dict[str, Any], made_up: bool) -> str:
    if made_up:
        return "Trigrams by sequential Monte Carlo take the place of the neural model."
    entropy, attacks, weights = kept["entropy"], kept["attacks"].values(), kept["weights"]
    words = sum(row[kept["columns"].index("words")] for row in max(attacks, key=len))
    return (
        f"Sentences of film reviews, one a review ({words:,} words), 95% intervals with sentences "
        "as the unit; the difference is paired. *Bits*: what an output tells of its word "
        "under the words' frequencies in other reviews. *Bits left*: mean of "
        "-log2 of the posterior of the true content word. The neural attacker: "
        f"{kept['particles']} particles, {kept['share']:.2f} of the prior, the powers "
        f"{weights[0]:.2f} and {weights[1]:.2f} from {CHOOSING} other sentences. A word of a plain "
        f"sentence takes {entropy['trigrams']:.2f} bits by trigrams, {entropy['neural']:.2f} by "
        f"the neural model alone, {entropy['mix']:.2f} by their mix."
    )


TABLES: dict[str, Experiment] = {"named": named}


def main() -> None:
    run = Run(Shared(), "language-model", folder=FOLDER)
    found = measured(run)
    found["seconds"] = round(run.seconds)
    attacks = found.pop("attacks")
    listed = ",\n".join(f" {json.dumps(p)}: {json.dumps(rows)}" for p, rows in attacks.items())
    KEPT.write_text(f'{json.dumps(found)[:-1]}, "attacks": {{\n{listed}}}}}\n', "utf-8")


if __name__ == "__main__":
    main()
