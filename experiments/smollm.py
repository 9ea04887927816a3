"""A neural model of language that says how likely words are: SmolLM2-135M through llama.cpp.

`fastdx.channel.neural` loads it. Here sequences share what they have in common, many tokens are
read at once, and words have all their tokens.

Probabilities of words come from those of tokens. The model reads a prompt and then ' w_1 w_2 …'.
With F the tokens that begin a word of the vocabulary, and B those that cannot go on within a word
(white space, punctuation, the end),

    Pr[w | prefix] = Pr[first token]/Pr[F] · Π Pr[next tokens] · Pr[B behind w]

so a word is over where it is over, and rows sum to 1 at most. Other ways to cut a word into tokens
than the tokeniser's own are not counted. `Pr[F]/Pr[B]` says that a word follows and no comma;
`Pr[mark]/Pr[B]` that the sentence ends: the release shows both, so an attacker uses them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.smc import Ids, Numbers
from fastdx.channel import NgramPrior
from fastdx.channel.neural import LlamaEngine

PUNCTUATION = tuple('.,!?;:()[]{}"“”…/*')


class Engine(LlamaEngine):
    """llama.cpp: probabilities of tokens behind many prefixes at once."""

    def __init__(self, path: Path, sequences: int, threads: int = 1) -> None:
        # Sequences share the cells of what they have in common.
        super().__init__(path, sequences, threads, shared=True)

    def pieces(self) -> list[str]:
        """The text of every token; control tokens have none."""
        buffer = ctypes.create_string_buffer(256)
        made = []
        for token in range(self.count):
            size = self._api.llama_token_to_piece(self._vocabulary, token, buffer, 256, 0, False)
            made.append(buffer.raw[: max(size, 0)].decode("utf-8", "replace"))
        return made

    def copy(self, source: int, target: int) -> None:
        """Let a sequence begin as another stands; nothing is computed."""
        self._api.llama_memory_seq_cp(self._memory, source, target, -1, -1)

    def forget(self, sequence: int) -> None:
        self._api.llama_memory_seq_rm(self._memory, sequence, -1, -1)

    def run(self, tokens: Sequence[tuple[int, int, int, bool]]) -> NDArray[np.float32]:
        """Append tokens as `LlamaEngine.run` does; return ln Pr[next token] in place of logits."""
        logits = super().run(tokens)
        logits -= logits.max(axis=1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return logits


class Spelling:
    """The words of a vocabulary in tokens."""

    def __init__(self, engine: Engine, words: Iterable[str]) -> None:
        self.tokens = engine.spelled(words)
        self.first: Ids = np.array([t[0] for t in self.tokens], dtype=np.int64)
        self.begin: Ids = np.unique(self.first)
        """F: tokens that begin a word."""
        self.order: Ids = np.argsort(self.first, kind="stable")
        sorted_first = self.first[self.order]
        self.starts: Ids = np.searchsorted(sorted_first, self.begin)
        self.group: Ids = np.searchsorted(self.begin, self.first)
        pieces = engine.pieces()
        self.over: Ids = np.array(
            [i for i, p in enumerate(pieces) if not p or p[0].isspace() or p[0] in PUNCTUATION]
        )
        """B: tokens behind which a word is over."""
        self._pieces = pieces

    def marks(self, mark: str) -> Ids:
        """Tokens that begin with a mark."""
        return np.array([i for i, p in enumerate(self._pieces) if p.startswith(mark)])

    def within(self, following: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the probability of words given their first token: shape (N, V)."""
        groups = np.add.reduceat(following[:, self.order], self.starts, axis=1)
        found: NDArray[np.float32] = following / groups[:, self.group]
        return found


class NeuralWords:
    """The neural model mixed with n-grams, as a `WordModel`.

    Pr[w | prefix] = share·Pr_neural + (1 - share)·Pr_ngram, word by word.
    """

    def __init__(
        self, engine: Engine, spelling: Spelling, prior: NgramPrior, *, share: float,
        prompt: str, count: int,
    ) -> None:  # fmt: skip
        """Read the prompt.

        Parameters
        ----------
        share : float
            Of the neural model, from 0 to below 1.
        prompt : str
            Stands before every sentence; it must end where a space and a word may follow.
        count : int
            Prefixes at most.
        """
        self.engine, self.spelling, self.prior = engine, spelling, prior
        self.share, self.count = share, count
        self._names = prior.space.words
        for sequence in range(2 * count + 1):
            engine.forget(sequence)
        tokens = engine.tokens(prompt, start=True)
        self._length = len(tokens)
        last = self._length - 1
        asked = [(t, i, 0, i == last) for i, t in enumerate(tokens)]
        self._prompt = engine.run(asked)
        self._marks = {mark: spelling.marks(mark) for mark in ".!?"}
        self.mark = "."
        """The mark at the end of the sentence."""
        self.grams: NDArray[np.float32] = np.zeros((0, 0), dtype=np.float32)
        self._side = 0
        self._prefixes: list[tuple[int, ...]] = [()]
        self._lengths = [self._length]
        self.parts: tuple[Numbers, Numbers] = (np.ones(0), np.ones(0))
        """What the neural model and the n-grams by themselves said of the last words: (N,) each."""

    def begin(self) -> Numbers:
        for sequence in range(1, 2 * self.count + 1):
            self.engine.forget(sequence)
        self._side, self._prefixes, self._lengths = 0, [()], [self._length]
        self._over, guesses = self._stand(self._prompt)
        self._sources = [0]
        return guesses

    def _stand(self, logs: NDArray[np.float32]) -> tuple[Numbers, Any]:
        """Take the tokens' probabilities behind all prefixes; return Pr[B] and the guesses."""
        s = self.spelling
        self._logs = logs
        tokens = np.exp(logs)
        over = tokens[:, s.over].sum(axis=1, dtype=np.float64)
        begins = tokens[:, s.begin].sum(axis=1, dtype=np.float64)
        self._ends = tokens[:, self._marks[self.mark]].sum(axis=1, dtype=np.float64) / over
        self._begins = begins
        # A word follows, and nothing else.
        self._scale = begins / over
        self.grams = self._look_up()
        guesses = tokens[:, s.first] * s.within(self.grams)
        guesses *= (self.share / begins)[:, None].astype(np.float32)
        guesses += (1 - self.share) * self.grams
        guesses *= self._scale[:, None].astype(np.float32)
        return over, guesses

    def _look_up(self) -> NDArray[np.float32]:
        known: dict[tuple[int, ...], Numbers] = {}
        for p in self._prefixes:
            if p not in known:
                known[p] = self.prior.next([self._names[w] for w in p])
        # Guesses need no more than 7 digits, and half the memory is twice as fast.
        return np.array([known[p] for p in self._prefixes], dtype=np.float32)

    def extend(self, parents: Ids, words: Ids) -> tuple[Numbers, Numbers]:
        s, engine = self.spelling, self.engine
        grams, scale = self.grams[parents, words].astype(np.float64), self._scale[parents]
        logs = np.log(self._begins[parents])
        logs = self._logs[parents, s.first[words]] - logs
        targets = [1 + (1 - self._side) * self.count + j for j in range(len(words))]
        lengths, asked = [], []
        for j, (p, w) in enumerate(zip(parents.tolist(), words.tolist(), strict=True)):
            engine.copy(self._sources[p], targets[j])
            start = self._lengths[p]
            asked += [(t, start + i, targets[j], True) for i, t in enumerate(s.tokens[w])]
            lengths.append(start + len(s.tokens[w]))
        for source in self._sources:
            if source:
                engine.forget(source)
        found = engine.run(asked)
        sizes = np.array([len(s.tokens[w]) for w in words])
        last = np.cumsum(sizes) - 1
        for j in np.nonzero(sizes > 1)[0]:
            place = last[j] - sizes[j] + 1
            for token in s.tokens[words[j]][1:]:
                logs[j] += found[place, token]
                place += 1
        kept = self.prior.order
        self._prefixes = [(*self._prefixes[p], int(w))[-kept:]
                          for p, w in zip(parents, words, strict=True)]  # fmt: skip
        self._sources, self._lengths, self._side = targets, lengths, 1 - self._side
        over, guesses = self._stand(found[last])
        self.parts = (np.exp(logs) * over, grams)
        exact = self.share * self.parts[0] + (1 - self.share) * grams
        return exact * scale, guesses

    def end(self) -> Numbers:
        return self._ends
