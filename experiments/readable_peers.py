"""Beside text that people can read: paraphrases by the same model.

Paraphrases are those of DP-Prompt (Utpala, Hooker and Chen, Findings of EMNLP 2023): every token is
drawn from the model's clipped logits.

    pip install 'fastdx[language-model]'
"""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
from scipy.special import softmax

from experiments.data import Source, builtin
from experiments.measures import Numbers, share
from experiments.readable import USE, Measures
from experiments.releases import CHUNK, KINDS, kind_of, sentences, words_of
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import Embedding
from fastdx.bags import STOP_WORDS
from fastdx.channel.neural import LlamaEngine, smollm

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


def law(logits: Any, clip: Sequence[float], temperature: float) -> Numbers:
    """Return DP-Prompt's law of the next token; any two differ by e^(2·(clip's width)/T) at most.

    Parameters
    ----------
    logits : array, shape (n, tokens)
        A row for each text.
    """
    return np.asarray(softmax(np.clip(logits.astype(np.float64), *clip) / temperature, axis=1))


class Engine(LlamaEngine):
    """llama.cpp with sequences that share the cells of what they have in common."""

    def __init__(self) -> None:
        super().__init__(smollm(), SIDE + 1, shared=True)

    def pieces(self) -> list[str]:
        """The text of every token; control tokens have none."""
        buffer = ctypes.create_string_buffer(256)
        made = []
        for token in range(self.count):
            size = self._api.llama_token_to_piece(self._vocabulary, token, buffer, 256, 0, False)
            made.append(buffer.raw[: max(size, 0)].decode("utf-8", "replace"))
        return made

    def begin(self, sequence: int) -> None:
        """Let a sequence stand where the first one stands; nothing is computed."""
        self._api.llama_memory_seq_rm(self._memory, sequence, -1, -1)
        self._api.llama_memory_seq_cp(self._memory, 0, sequence, -1, -1)


class Paraphraser:
    """SmolLM2-135M behind `PAIRS`."""

    def __init__(self) -> None:
        self.engine = Engine()
        self.pieces = self.engine.pieces()
        shown = "".join(f"{FORM.format(text)} {other}\n\n" for text, other in PAIRS)
        self.prompt = self.engine.tokens(shown, start=True)
        self.engine.run([(t, i, 0, False) for i, t in enumerate(self.prompt)])

    def read(self, texts: Sequence[str]) -> tuple[Any, list[int]]:
        """Read at most `SIDE` texts; return the logits behind each, and the next places."""
        asked, places = [], []
        for j, text in enumerate(texts, 1):
            self.engine.begin(j)
            tokens = self.engine.tokens(FORM.format(text))
            places.append(len(self.prompt) + len(tokens))
            asked += [(t, i, j, i == places[-1] - 1)
                      for i, t in enumerate(tokens, len(self.prompt))]  # fmt: skip
        return self.engine.run(asked), places

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
            logits = self.engine.run([
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
            done = [run.ask(paraphrased, name, temperature, chunk, m.words)
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


TABLES: dict[str, Experiment] = {"dp-prompt": paraphrases}
