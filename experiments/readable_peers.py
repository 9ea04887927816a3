"""Beside text that people can read: a neural attacker on it, and paraphrases by the same model.

The attacker (`experiments.smc`) has the exact law and a prior that mixes the neural model with
bigrams: the exact posterior of bigrams, times what the model adds behind the same particles, each
to a power that comes from texts that are not counted. Paraphrases are those of DP-Prompt (Utpala,
Hooker and Chen, Findings of EMNLP 2023): every token is drawn from the model's clipped logits.

    pip install 'fastdx[language-model]'
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from itertools import islice
from typing import Any

import numpy as np

from experiments.data import Source, builtin
from experiments.language_model import (
    CHOOSING,
    PARTICLES,
    SHOWN,
    chosen_weights,
    published,
    rivals,
    weighed,
)
from experiments.measures import Numbers, share
from experiments.readable import USE, Measures
from experiments.releases import CHUNK, KINDS, kind_of, likelihoods, neural, reader
from experiments.sentences import sentences, words_of
from experiments.smc import NgramWords, WordModel, decode
from experiments.smollm import Engine, NeuralWords, Spelling
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import Embedding, Tem
from fastdx.bags import STOP_WORDS
from fastdx.channel.neural import LlamaEngine, smollm

ATTACKED = range(150, 300)
"""Film sentences that the attackers' words are counted of, in steps of `CHOOSING`: none of those
that the model's share comes from (`language_model.HELD_OUT`), nor the weights."""
TEMPERATURES = (0.5, 0.75, 1.0)
PARAPHRASED = 2
"""Chunks of texts."""
TOKENS = 24
"""Of a paraphrase, at most."""
SIDE = 16
"""Paraphrases that are written side by side, and public texts that tell where to clip logits."""
PAIRS = (
    ("the acting was so bad that i left after an hour",
     "the acting was so terrible that i walked out after one hour"),
    ("please remind me to call my mother tomorrow morning",
     "set a reminder to phone my mom tomorrow morning"),
    ("where can i buy cheap tickets for the concert",
     "where are inexpensive tickets for the concert sold"),
    ("this is one of the best films that i have ever seen",
     "i have seldom seen a better film than this one"),
    ("put the new song on my playlist", "add the new song to my list"),
)  # fmt: skip
"""What the model is shown of paraphrasing: made up."""
FORM = "Sentence: {}\nThe same in other words:"


def public(source: Source, name: str, space: Embedding, count: int) -> list[str]:
    """Texts of a kind that everybody may read."""
    texts = kind_of(source, name, space).public.texts
    if name == "film":
        texts = [f"{words_of(space, s)}{s.mark}" for s in islice(sentences(texts, space), count)]
    return texts[:count]


@cache
def attacker(source: Source, space: Embedding) -> WordModel:
    """The neural model mixed with bigrams; bigrams alone where texts are made up."""
    prior = reader(source, "film", space).prior
    if source.made_up:
        return NgramWords(prior)
    engine = Engine(smollm(), 2 * PARTICLES + 1)
    shown = [f"- {text}" for text in public(source, "film", space, SHOWN)]
    return NeuralWords(engine, Spelling(engine, space.words), prior, share=published()["share"],
                       prompt="\n".join(["from film reviews:", *shown, "-"]),
                       count=PARTICLES)  # fmt: skip


def attacked(
    source: Source, epsilon: float, words: int, start: int, outputs: Sequence[str]
) -> list[dict[str, Any]]:
    """Attack film sentences from `start` on; a line of each, as `language_model.attack` has it."""
    space = builtin(words)
    read, model = reader(source, "film", space), attacker(source, space)
    texts = kind_of(source, "film", space).private.texts[start:]
    tem = Tem(space, epsilon, language=neural(source, "film", space), exclude="offensive")
    given = likelihoods(tem, [text.split() for text in outputs])
    content = np.array([word not in STOP_WORDS for word in space.words])
    lines = []
    for i, rows in enumerate(given):
        truth = space.ids(texts[i].split()).astype(int)
        (posterior,) = read.posteriors([rows])
        rng = np.random.default_rng([SEED, start + i])
        gains = decode(model, rows, read.ahead.messages(rows), PARTICLES, rng).gains
        places = rivals(posterior, gains.before + gains.behind, truth, content)
        lines.append({"sentence": start + i, "places": places})
    return lines


def attackers(run: Run) -> Table:
    """Content words that bigrams and the neural attacker name of the same releases."""
    m = Measures(run)
    table = Table(
        "Content words named in sentences of film reviews, by attacker",
        ["ε", "sentences", "content words", "bigrams", "bigrams and SmolLM2-135M", "difference",
         "bits left: bigrams", "and SmolLM2-135M"],
    )  # fmt: skip
    size = run.of(CHOOSING, 10)
    for epsilon in m.epsilons[-2:]:
        released, steps = m.of("film", "neural", epsilon)["texts"], []
        for start in (0, *run.of(ATTACKED, range(10, 20))[::size]):
            outputs = released[start : start + size]
            make = partial(attacked, run.data, epsilon, m.words, start, outputs)
            drawn = zlib.crc32("\n".join(outputs).encode())
            steps.append(run.step(make, epsilon, m.words, start, drawn))
        weights = chosen_weights(steps[0])
        lines = [line for step in steps[1:] for line in step]
        content = np.array([len(line["places"]) for line in lines])
        named, _, bits = np.array([weighed(line, np.array([1.0, 0.0])) for line in lines]).T
        more, _, left = np.array([weighed(line, weights) for line in lines]).T
        table.add(f"{epsilon:g}", f"{len(lines)}", f"{content.sum():,}",
                  *(share(x, content) for x in (named, more)), share(more - named, content, "+"),
                  *(f"{x.sum() / content.sum():.2f}" for x in (bits, left)))  # fmt: skip
    model = "Bigrams take the place of the neural model."
    if not run.data.made_up:
        model = f"The model has {published()['share']:.2f} of his prior; {PARTICLES} particles."
    table.notes.append(
        "The same releases, behind the neural base measure; both attackers know it, its prompt and "
        "the law of each word behind what was released before, and have bigrams of other reviews. "
        "*Difference*: paired; 95% intervals by the bootstrap over sentences. *Bits left*: mean of "
        f"-log2 of the posterior of the true content word. {model}"
    )
    return table


def law(logits: Any, clip: Sequence[float], temperature: float) -> Numbers:
    """Return DP-Prompt's law of the next token; any two differ by e^(2·(clip's width)/T) at most.

    Parameters
    ----------
    logits : array, shape (n, tokens)
        A row for each text.
    """
    scores = np.clip(logits.astype(np.float64), *clip) / temperature
    found: Numbers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return found / found.sum(axis=1, keepdims=True)


class Paraphraser:
    """SmolLM2-135M behind `PAIRS`."""

    def __init__(self) -> None:
        self.engine = Engine(smollm(), SIDE + 1)
        self.pieces = self.engine.pieces()
        shown = "".join(f"{FORM.format(text)} {other}\n\n" for text, other in PAIRS)
        self.prompt = self.engine.tokens(shown, start=True)
        LlamaEngine.run(self.engine, [(t, i, 0, False) for i, t in enumerate(self.prompt)])

    def read(self, texts: Sequence[str]) -> tuple[Any, list[int]]:
        """Read at most `SIDE` texts; return the logits behind each, and the next places."""
        asked, places = [], []
        for j, text in enumerate(texts, 1):
            self.engine.forget(j)
            self.engine.copy(0, j)
            tokens = self.engine.tokens(FORM.format(text))
            places.append(len(self.prompt) + len(tokens))
            asked += [(t, i, j, i == places[-1] - 1)
                      for i, t in enumerate(tokens, len(self.prompt))]  # fmt: skip
        return LlamaEngine.run(self.engine, asked), places

    def write(
        self, texts: Sequence[str], clip: Sequence[float], temperature: float,
        rng: np.random.Generator,
    ) -> list[list[int]]:  # fmt: skip
        """Draw a paraphrase of each, token by token, up to the end of its line."""
        logits, places = self.read(texts)
        made: list[list[int]] = [[] for _ in texts]
        going = list(range(len(texts)))
        while going:
            for j, row in zip(going, law(logits, clip, temperature), strict=True):
                made[j].append(int(rng.choice(len(row), p=row)))
            going = [j for j in going if len(made[j]) < TOKENS
                     and "\n" not in (self.pieces[made[j][-1]] or "\n")]  # fmt: skip
            logits = LlamaEngine.run(self.engine, [
                (made[j][-1], places[j] + len(made[j]) - 1, j + 1, True) for j in going
            ])  # fmt: skip
        return made


@cache
def _paraphraser() -> Paraphraser:
    return Paraphraser()


def paraphrased(
    source: Source, name: str, temperature: float, chunk: int, words: int
) -> dict[str, Any]:
    """Paraphrase some texts; where they are made up, every other word is left out."""
    space = builtin(words)
    texts = kind_of(source, name, space).private.texts[chunk * CHUNK : (chunk + 1) * CHUNK]
    if source.made_up:
        outputs = [text.split()[::2] for text in texts]
        return {"texts": [" ".join(out) for out in outputs], "tokens": [len(o) for o in outputs],
                "clip": [0.0, 1.0]}  # fmt: skip
    writer = _paraphraser()
    logits, _ = writer.read(public(source, name, space, SIDE))
    clip = [float(logits.mean()), float(logits.max())]
    rng = np.random.default_rng([SEED, chunk])
    made: list[list[int]] = []
    for start in range(0, len(texts), SIDE):
        made += writer.write(texts[start : start + SIDE], clip, temperature, rng)
    written = ("".join(writer.pieces[t] for t in tokens) for tokens in made)
    return {"texts": [" ".join(re.findall(r"[\w']+", text.lower())) for text in written],
            "tokens": [len(tokens) for tokens in made], "clip": clip}  # fmt: skip


def unchanged(texts: Sequence[str], outputs: Sequence[str]) -> str:
    """The share of the texts' content words that stand in the outputs."""
    written = [Counter(w for w in text.split() if w not in STOP_WORDS) for text in texts]
    stand = [(c & Counter(out.split())).total() for c, out in zip(written, outputs, strict=True)]
    return share(np.array(stand, dtype=float), np.array([c.total() for c in written], dtype=float))


def paraphrases(run: Run) -> Table:
    """DP-Prompt beside Tem with the same model as its base measure, on the same texts."""
    m = Measures(run)
    table = Table(
        "DP-Prompt by SmolLM2-135M beside Tem with SmolLM2-135M as base",
        ["texts", "mechanism", "ε", "content words unchanged", "named", *USE],
    )
    for name in KINDS:
        texts = m.kind(name).private.texts[: CHUNK * run.of(PARAPHRASED, 1)]
        title = f"{len(texts)} {KINDS[name]}"
        for temperature in run.of(TEMPERATURES, TEMPERATURES[:1]):
            done = [run.step(partial(paraphrased, run.data, name, temperature, chunk, m.words),
                             name, temperature, chunk, m.words)
                    for chunk in range(run.of(PARAPHRASED, 1))]  # fmt: skip
            outputs = [text for step in done for text in step["texts"]]
            tokens = np.mean([n for step in done for n in step["tokens"]])
            low, high = done[0]["clip"]
            epsilon = 2 * (high - low) / temperature
            table.add(title, f"DP-Prompt, T = {temperature:g}",
                      f"{tokens:.1f} · {epsilon:.0f} = {tokens * epsilon:,.0f}",
                      unchanged(texts, outputs), "–", *m.judged(name, outputs))  # fmt: skip
            title = ""
        for epsilon in m.epsilons[-2:]:
            found = m.of(name, "neural", epsilon)
            outputs, named, content = (found[key][: len(texts)]
                                       for key in ("texts", "named", "content"))  # fmt: skip
            table.add("", "Tem", f"{epsilon:g} · d", unchanged(texts, outputs),
                      share(np.array(named, dtype=float), np.array(content)),
                      *m.judged(name, outputs))  # fmt: skip
    table.notes.append(
        "The first of the texts above. ε of DP-Prompt: a text's tokens, on average, times "
        "2(b_max - b_min)/T, the bound of one; logits are clipped to [b_min, b_max], from their "
        f"mean to their largest behind {SIDE} public texts. The model sees {len(PAIRS)} made-up "
        f"pairs, and writes at most {TOKENS} tokens. *Content words unchanged*: the share of those "
        "written that stand in the output, with 95% intervals by the bootstrap over texts. Whoever "
        "takes the output for the text names these; a better attacker names more, and for "
        "DP-Prompt no exact posterior is known. *Named*: as above. One draw."
    )
    return table


TABLES: dict[str, Experiment] = {"attackers": attackers, "dp-prompt": paraphrases}
