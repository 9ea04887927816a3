"""Mechanisms that break their claim: a test of the bound must convict each of them."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from fastdx import Embedding, HyperbolicLaplace, Mechanism, Tem

Ids: TypeAlias = NDArray[np.uint32]
Lie: TypeAlias = Callable[[Mechanism, Ids], Ids]


def itself(_: Mechanism, ids: Ids) -> Ids:
    """Every word is released as itself."""
    return ids


def one_word_as_itself(m: Mechanism, ids: Ids) -> Ids:
    """The first word is released as itself, all others honestly."""
    return np.where(ids == 0, ids, m.privatize_ids(ids))


def twice_epsilon(m: Mechanism, ids: Ids) -> Ids:
    """Too little noise, but maybe enough for Tem: its true ε may be half of the claimed one."""
    return m.with_epsilon(2 * m.epsilon).privatize_ids(ids)


def four_times_epsilon(m: Mechanism, ids: Ids) -> Ids:
    """Too little noise for every mechanism."""
    return m.with_epsilon(4 * m.epsilon).privatize_ids(ids)


LIES = [itself, one_word_as_itself, four_times_epsilon]


def tell(monkeypatch: pytest.MonkeyPatch, lie: Lie) -> None:
    """Let every mechanism draw by a lie."""

    def sample(m: Mechanism, word: str, size: int) -> Ids:
        return lie(m, np.repeat(m.space.ids([word]), size))

    def privatize_tokens(m: Mechanism, tokens: Iterable[str]) -> list[str]:
        return [m.space.words[i] for i in lie(m, m.space.ids(list(tokens)))]

    monkeypatch.setattr(Mechanism, "sample", sample)
    monkeypatch.setattr(Mechanism, "privatize_tokens", privatize_tokens)


class _Exponential:
    """The exponential mechanism with scores of its own."""

    def __init__(self, embedding: Embedding, epsilon: float, gamma: float, seed: int) -> None:
        self.embedding, self.epsilon, self.gamma = embedding, epsilon, gamma
        self.rng = np.random.default_rng(seed)

    def scores(self, word: str) -> NDArray[np.float64]:
        raise NotImplementedError

    def sample(self, word: str, size: int) -> NDArray[np.int64]:
        weights = np.exp(self.epsilon / 2 * self.scores(word))
        return self.rng.choice(len(weights), size, p=weights / weights.sum())


class WrongBottom(_Exponential):
    """TEM whose ⊥ has the score 2·ln(|V|/|L_w|)/ε instead of -γ + 2·ln|V∖L_w|/ε."""

    def scores(self, word: str) -> NDArray[np.float64]:
        d = self.embedding.distances(word)
        near = d <= self.gamma
        scores = np.where(near, -d, 0.0)
        if not near.all():
            bottom = 2 * np.log(len(d) / near.sum()) / self.epsilon
            # ⊥ stands for any word beyond γ.
            scores[~near] = bottom - 2 * np.log((~near).sum()) / self.epsilon
        return scores


class MissingNeighbours(_Exponential):
    """TEM whose lists miss each neighbour with probability 0.1: an approximate index."""

    def __init__(self, embedding: Embedding, epsilon: float, gamma: float, seed: int) -> None:
        super().__init__(embedding, epsilon, gamma, seed)
        self.missed = np.random.default_rng(seed).random((len(embedding),) * 2) < 0.1
        np.fill_diagonal(self.missed, False)

    def scores(self, word: str) -> NDArray[np.float64]:
        d = np.minimum(self.embedding.distances(word), self.gamma)
        return -np.where(self.missed[self.embedding.ids([word])[0]], self.gamma, d)


def nominal_hyperbolic(embedding: Embedding, nominal: float, seed: int) -> HyperbolicLaplace:
    """The hyperbolic paper's noise, sold at its nominal ε."""
    return HyperbolicLaplace.from_paper(embedding, nominal, seed=seed)


class ExponentialRadius:
    """Laplace noise in n dimensions with a radius from Exponential instead of Gamma(n)."""

    def __init__(self, embedding: Embedding, epsilon: float, seed: int) -> None:
        self.embedding, self.epsilon = embedding, epsilon
        self.rng = np.random.default_rng(seed)

    def sample(self, word: str, size: int) -> NDArray[np.uint32]:
        center = self.embedding.vectors[self.embedding.ids([word])[0]].astype(float)
        noise = self.rng.standard_normal((size, len(center)))
        noise *= (self.rng.exponential(1 / self.epsilon, size) / np.linalg.norm(noise, axis=1))[
            :, None
        ]
        return self.embedding.nearest(center + noise)[0][:, 0]


class RawUnknown:
    """Returns words that it does not know as they are."""

    def __init__(self, tem: Tem) -> None:
        self.tem = tem

    def sample(self, word: str, size: int) -> list[str]:
        if word not in self.tem.space:
            return [word] * size
        return [self.tem.space.words[i] for i in self.tem.sample(word, size)]
