"""Mechanisms that break their claim: a test of the bound must convict each of them."""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from fastdx import Embedding, Mechanism, Tem
from helpers.laws import Numbers, distances_of

Ids: TypeAlias = NDArray[np.uint32]
Lie: TypeAlias = Callable[[Mechanism, Ids], Ids]
Sample: TypeAlias = Callable[[str, int], Any]


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


def exponential(e: Embedding, scores: Numbers, epsilon: float, seed: int) -> Sample:
    """The exponential mechanism with scores of its own."""
    weights, rng = np.exp(epsilon / 2 * scores), np.random.default_rng(seed)
    weights /= weights.sum(axis=1, keepdims=True)
    return lambda word, size: rng.choice(len(e), size, p=weights[e.ids([word])[0]])


def wrong_bottom(e: Embedding, epsilon: float, gamma: float, seed: int) -> Sample:
    """TEM whose ⊥ has the score 2·ln(|V|/|L_w|)/ε instead of -γ + 2·ln|V∖L_w|/ε."""
    d = distances_of(e)
    near = d <= gamma
    count = near.sum(axis=1, keepdims=True)
    # ⊥ stands for any word beyond γ.
    bottom = 2 * np.log(len(e) / count / np.maximum(len(e) - count, 1)) / epsilon
    return exponential(e, np.where(near, -d, bottom), epsilon, seed)


def missing_neighbours(e: Embedding, epsilon: float, gamma: float, seed: int) -> Sample:
    """TEM whose lists miss each neighbour with probability 0.1: an approximate index."""
    d = distances_of(e)
    missed = np.random.default_rng(seed).random(d.shape) < 0.1
    np.fill_diagonal(missed, False)
    return exponential(e, -np.where(missed, gamma, np.minimum(d, gamma)), epsilon, seed)


def exponential_radius(e: Embedding, epsilon: float, seed: int) -> Sample:
    """Laplace noise in n dimensions with a radius from Exponential instead of Gamma(n)."""
    rng = np.random.default_rng(seed)

    def sample(word: str, size: int) -> Ids:
        noise = rng.standard_normal((size, e.dim))
        radius = rng.exponential(1 / epsilon, size) / np.linalg.norm(noise, axis=1)
        return e.nearest(e.vectors[e.ids([word])[0]] + noise * radius[:, None])[0][:, 0]

    return sample


def raw_unknown(tem: Tem) -> Sample:
    """Returns words that it does not know as they are."""
    return lambda word, size: (
        tem.privatize_tokens([word] * size) if word in tem.space else [word] * size
    )
