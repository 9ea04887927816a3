"""A small network that predicts the word at a place from the outputs around it.

It is the fixed-window network of Bengio et al. (2003), with words on both sides. It learns from
public texts that the attacker privatises himself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastdx._core import Embedding
from fastdx._shared.checks import at_least
from fastdx.channel import NgramPrior
from fastdx.exceptions import ParameterError
from fastdx.lab.attacks import LikelyInputs, known_runs
from fastdx.mechanisms import Mechanism

_Ids = NDArray[np.uint32]
_Floats = NDArray[np.float32]

BACKENDS = ("jax", "tensorflow", "torch")
"""Libraries of which Keras needs one, the smallest first."""
WINDOW = 5
"""The number of neighbours on each side."""
UNITS = 256
"""The size of the hidden layer."""
POSITIONS = 100_000
"""The most words of the texts to learn from."""
BATCH = 512
PATIENCE = 2
"""Learning ends after this many passes in a row without an improvement."""
PASS = 20_000
"""The least number of words that a pass learns from."""
FAR = -1e9
"""The logit of a word that is no candidate."""


def missing() -> str | None:
    """Return the library that a `ContextModel` needs and that is not installed, or None."""
    if find_spec("keras") is None:
        return "keras"
    return None if any(map(find_spec, BACKENDS)) else "jax"


def _keras() -> Any:
    lacking = missing()
    if lacking:
        raise ImportError(f"ContextModel needs {lacking}: pip install 'fastdx[networks]'")
    if "keras" not in sys.modules:
        # By default Keras takes TensorFlow, even if only another backend is installed.
        found = next(name for name in BACKENDS if find_spec(name))
        os.environ.setdefault("KERAS_BACKEND", found)
    import keras

    return keras


class _Weights(NamedTuple):
    """The weights of the network."""

    hidden: _Floats
    """Shape (inputs, units)."""
    hidden_bias: _Floats
    out: _Floats
    """Shape (units, dim)."""
    out_bias: _Floats
    words: _Floats
    """A vector for each word, shape (V, dim)."""
    word_bias: _Floats
    """Shape (V, 1)."""

    def scores(self, features: _Floats, words: _Ids) -> NDArray[np.float64]:
        """Return the score that the context gives to each word, in the shape of `words`."""
        h = np.maximum(features @ self.hidden + self.hidden_bias, 0) @ self.out + self.out_bias
        fits = np.einsum("nmd,nd->nm", self.words[words], h) + self.word_bias[words, 0]
        return np.asarray(fits, dtype=np.float64)


class ContextModel:
    """A small neural network that predicts a word from the outputs around it.

    The attacker privatises public texts himself. He trains the network to name each word from the
    outputs of its left and right neighbours and of the whole run. Since an output depends on its
    word alone, Bayes' rule combines this with the known law of the word's own output to the
    posterior.

    The network sees an output as the mean vector of its likely inputs, and chooses among the likely
    inputs of the output to be explained. A tenth of the public texts decides when learning stops.
    If the network never beats the words' frequencies, it uses these.

    It needs Keras and one of its backends (``pip install 'fastdx[networks]'``).

    Parameters
    ----------
    mechanism : Mechanism
        Any mechanism.
    texts : sequence of str
        Public texts, similar to the attacked texts but different from them.
    inputs : LikelyInputs
        The likely inputs of the mechanism's outputs.
    model : NgramPrior, optional
        A model with the frequencies of the mechanism's words; by default it is trained on `texts`.
    epochs : int, optional
        The most passes over fresh draws of the texts.
    seed : int, optional
        The seed of the network. The mechanism's draws are fresh unless it has a seed itself.

    Raises
    ------
    ImportError, ParameterError
        Keras is not installed; the texts have no words of the vocabulary, or `epochs` is not
        positive.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        texts: Sequence[str],
        inputs: LikelyInputs,
        model: NgramPrior | None = None,
        *,
        epochs: int = 15,
        seed: int = 0,
    ) -> None:
        """Learn from the texts."""
        keras = _keras()
        at_least("epochs", epochs, 1)
        model = NgramPrior.train(mechanism.space, texts) if model is None else model
        rng = np.random.default_rng(seed)
        runs = list(known_runs(mechanism.space, texts))
        runs = [runs[i] for i in rng.permutation(len(runs))]
        kept = int(np.searchsorted(np.cumsum([len(run) for run in runs]), POSITIONS)) + 1
        runs = runs[:kept]
        if len(runs) < 2:
            raise ParameterError("texts must hold at least two runs of words of the vocabulary")
        self._table = inputs.under(model.frequencies)
        self._log_prior = np.log(model.frequencies)
        vectors = _vectors(mechanism, rng)
        self._seen = _seen(self._table, vectors)
        count = max(1, len(runs) // 10)
        checked, learned = (_Runs(mechanism, part) for part in (runs[:count], runs[count:]))
        net, layers = self._network(keras, vectors, int(rng.integers(1 << 30)))

        def weights() -> _Weights:
            return _Weights(*(np.asarray(w) for layer in layers for w in layer.get_weights()))

        judged = checked.draw()
        best = self._weights = weights()
        least, since = self._loss(checked, judged), 0
        # Few texts are drawn several times per pass, before the loss is checked.
        times = -(-PASS // len(learned.written))
        for _ in range(epochs):
            for _ in range(times):
                self._learn(net, learned, rng)
            self._weights = weights()
            loss = self._loss(checked, judged)
            if loss < least:
                best, least, since = self._weights, loss, 0
            else:
                since += 1
                if since == PATIENCE:
                    break
        self._weights = best

    def log_probability(self, out: _Ids, words: _Ids) -> NDArray[np.float64]:
        """Return ln Pr[word | outputs at all other places], up to a constant for each place.

        `out`, uint32, shape (places,), are the outputs of a run of words; `words`, uint32, and the
        result, float64, have the shape (places, words): candidates for each place.
        """
        found: NDArray[np.float64] = self._log_prior[words]
        return found + self._weights.scores(self._features(*self._around([out])), words)

    def _around(self, outs: Iterable[_Ids]) -> tuple[_Ids, _Floats]:
        """Return the neighbours of each place, shape (places, 2·WINDOW), and the sum of others."""
        beside = [d for d in range(-WINDOW, WINDOW + 1) if d]
        nothing = len(self._seen) - 1
        near, others = [], []
        for out in outs:
            at = np.arange(len(out))[:, None] + beside
            within = (at >= 0) & (at < len(out))
            near.append(np.where(within, out[at.clip(0, len(out) - 1)], nothing))
            own = self._seen[out]
            others.append((own.sum(axis=0) - own) / np.float32(max(1, len(out) - 1) ** 0.5))
        return np.concatenate(near).astype(np.uint32), np.concatenate(others)

    def _features(self, near: _Ids, others: _Floats) -> _Floats:
        """Return the inputs of the network, shape (places, inputs)."""
        return np.hstack([self._seen[near].reshape(len(near), -1), others])

    def _candidates(self, out: _Ids) -> tuple[_Ids, _Floats]:
        """Return the candidates of each output and their log-probabilities without context."""
        words, likelihood = self._table.log_likelihood(out)
        known = np.where(likelihood > FAR, likelihood + self._log_prior[words], FAR)
        return words, known.astype(np.float32)

    def _loss(self, runs: _Runs, out: _Ids) -> float:
        """Return the mean of -ln of the probability that the attacker gives to the written word."""
        total, number = 0.0, 0
        for outs, written in zip(runs.split(out), runs.split(runs.written), strict=True):
            words, known = self._candidates(outs)
            logits = known + self._weights.scores(self._features(*self._around([outs])), words)
            logits -= np.logaddexp.reduce(logits, axis=1, keepdims=True)
            right = (words == written[:, None]) & (known > FAR)
            total -= float(logits[right].sum())
            number += int(right.sum())
        return total / max(number, 1)

    def _learn(self, net: Any, learned: _Runs, rng: np.random.Generator) -> None:
        """Draw all runs afresh and learn from them."""
        out = learned.draw()
        near, others = self._around(learned.split(out))
        words, known = self._candidates(out)
        right = (words == learned.written[:, None]) & (known > FAR)
        # The network cannot learn a word that is not among the candidates.
        usable = rng.permutation(np.flatnonzero(right.any(axis=1)))
        target = right.argmax(axis=1)
        # All batches have one size, so the network is compiled once.
        for first in range(0, len(usable), BATCH):
            chosen = np.resize(usable[first : first + BATCH], BATCH)
            shown = self._features(near[chosen], others[chosen])
            batch = [shown, words[chosen].astype(np.int32), known[chosen]]
            net.train_on_batch(batch, target[chosen])

    def _network(self, keras: Any, vectors: _Floats, seed: int) -> tuple[Any, list[Any]]:
        """Return the Keras network and its layers in the order of `_Weights`.

        Fresh weights score all words equally.
        """
        most, (count, dim) = self._table.words.shape[1], vectors.shape
        of_words = keras.initializers.Constant(vectors / np.float32(dim**0.5))
        hidden = keras.initializers.HeNormal(seed=seed)
        layers = [
            keras.layers.Dense(UNITS, activation="relu", kernel_initializer=hidden),
            keras.layers.Dense(dim, kernel_initializer="zeros"),
            keras.layers.Embedding(count, dim, embeddings_initializer=of_words),
            keras.layers.Embedding(count, 1, embeddings_initializer="zeros"),
        ]
        features = keras.Input((self._seen.shape[1] * (2 * WINDOW + 1),))
        candidates = keras.Input((most,), dtype="int32")
        known = keras.Input((most,))
        shown = keras.layers.Dropout(0.2, seed=seed)(layers[0](features))
        fits = keras.layers.Dot(axes=(2, 1))([layers[2](candidates), layers[1](shown)])
        bias = keras.layers.Reshape((most,))(layers[3](candidates))
        net = keras.Model([features, candidates, known], keras.layers.Add()([fits, bias, known]))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        net.compile(optimizer=keras.optimizers.Adam(2e-3), loss=loss)
        return net, layers


def _vectors(mechanism: Mechanism, rng: np.random.Generator) -> _Floats:
    """Return a vector for each word; each coordinate has mean 0 and variance 1."""
    space = mechanism.space
    # Graphs have no vectors; random vectors distinguish words too.
    raw = space.vectors if isinstance(space, Embedding) else rng.normal(size=(len(space), 50))
    spread = raw.std(axis=0)
    return np.asarray((raw - raw.mean(axis=0)) / np.where(spread > 0, spread, 1), dtype=np.float32)


def _seen(table: LikelyInputs, vectors: _Floats) -> _Floats:
    """Return the mean vector of the likely inputs of each output; the last row, for none, is 0."""
    count, dim = vectors.shape
    seen = np.zeros((count + 1, dim), dtype=np.float32)
    for first in range(0, count, 1000):
        out = np.arange(first, min(first + 1000, count), dtype=np.uint32)
        words, likelihood = table.log_likelihood(out)
        weight = np.exp(likelihood) * table.prior[words]
        weight /= np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
        seen[out] = np.einsum("nm,nmd->nd", weight, vectors[words])
    seen[:-1] -= seen[:-1].mean(axis=0)
    seen[:-1] /= max(float(seen[:-1].std()), 1e-12)
    return seen


class _Runs:
    """Runs of words that can be privatised again and again."""

    def __init__(self, mechanism: Mechanism, runs: Sequence[_Ids]) -> None:
        self.mechanism = mechanism
        self.ends = np.cumsum([len(run) for run in runs])
        self.written = np.concatenate(runs)

    def draw(self) -> _Ids:
        return self.mechanism.privatize_ids(self.written)

    def split(self, out: _Ids) -> list[_Ids]:
        return np.split(out, self.ends[:-1])
