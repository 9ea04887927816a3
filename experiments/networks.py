"""Recurrent networks of the papers: Keras on JAX's CPU, in the extra ``experiments``.

A network is compiled once and then trained anew from fresh weights, which compiling would outlast
on small data.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastdx import Embedding, tokenize

INSTALLED = find_spec("keras") is not None and find_spec("jax") is not None
MISSING = "Keras and JAX are not installed (pip install 'fastdx[networks]')"

Ids = NDArray[np.int32]


def versions() -> str:
    """Of what trained a network."""
    import jax

    return f"Keras {_keras().__version__}, JAX {jax.__version__}"


@cache
def _keras() -> Any:
    # One thread: the same sums in the same order, and room for others.
    os.environ["KERAS_BACKEND"] = "jax"
    os.environ.setdefault(
        "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    )
    import keras

    return keras


class Reader:
    """Texts as ids of an embedding's words, from 1 on; 0 fills up and stands for unknown words."""

    def __init__(self, e: Embedding, length: int) -> None:
        self.e, self.length = e, length
        self._places = {word: i + 1 for i, word in enumerate(e.words)}

    def words(self, text: str) -> list[str]:
        """The first words, at most so many."""
        return tokenize(text, self.e)[: self.length]

    def ids(self, texts: Sequence[str]) -> Ids:
        """int32, shape (texts, length); filled up in front, so that a network reads words last."""
        found = ([self._places.get(word, 0) for word in self.words(text)] for text in texts)
        return np.array([[0] * (self.length - len(ids)) + ids for ids in found], dtype=np.int32)

    def vectors(self) -> NDArray[np.float32]:
        """Of 0 and of the words, scaled to a standard deviation of 1."""
        v = self.e.vectors
        return np.vstack([np.zeros((1, self.e.dim), np.float32), v / v.std()]).astype(np.float32)


class _Anew:
    """A compiled network whose weights and optimiser can be put back to the start."""

    def __init__(self, model: Any) -> None:
        self.model = model
        model.optimizer.build(model.trainable_variables)
        self._weights = _copies(model.trainable_variables)
        self._optimizer = _copies(model.optimizer.variables)

    def start(self, seed: int) -> Any:
        """The model with the weights that this seed gives; biases as they were."""
        keras = _keras()
        keras.utils.set_random_seed(seed)
        for layer in self.model.layers:
            if isinstance(layer, keras.layers.Dropout):  # its numbers go on from fit to fit
                layer.seed_generator.state.assign([seed, 0])
        glorot = keras.initializers.GlorotUniform(seed=keras.random.SeedGenerator(seed))
        _assign(self.model.optimizer.variables, self._optimizer)
        return self.learned([glorot(w.shape) if w.ndim > 1 else w for w in self._weights])

    def learned(self, weights: Sequence[Any]) -> Any:
        """The model with these weights."""
        _assign(self.model.trainable_variables, weights)
        return self.model


def _assign(variables: Any, values: Sequence[Any]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def _copies(variables: Any) -> list[NDArray[Any]]:
    """JAX gives its buffers away when it trains."""
    return [np.array(v.value) for v in variables]


@cache
def _classifier(rows: int, dim: int, length: int, units: int) -> _Anew:
    keras = _keras()
    layers = keras.layers
    model = keras.Sequential([
        layers.Input((length,), dtype="int32"),
        layers.Embedding(rows, dim, trainable=False),
        # The mean of its states: the last ones alone learn little from some thousand texts.
        layers.Bidirectional(layers.LSTM(units, return_sequences=True)),
        layers.GlobalAveragePooling1D(),
        layers.Dropout(0.3),
        layers.Dense(1, activation="sigmoid"),
    ])  # fmt: skip
    model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="binary_crossentropy",
                  metrics=["accuracy"])  # fmt: skip
    return _Anew(model)


class BiLstm:
    """WSDM'20's classifier of reviews: a bidirectional LSTM over fixed vectors, two classes.

    It stops when a part of the texts that it does not learn from is not told better any more, at
    the latest after all epochs, and keeps the best weights.
    """

    def __init__(self, reader: Reader, *, units: int = 64, epochs: int = 10) -> None:
        self.reader, self.units, self.epochs = reader, units, epochs
        self.weights: list[NDArray[Any]] = []

    def _model(self) -> _Anew:
        vectors = self.reader.vectors()
        made = _classifier(*vectors.shape, self.reader.length, self.units)
        made.model.layers[0].set_weights([vectors])
        return made

    def fit(self, texts: Sequence[str], labels: Sequence[str], seed: int) -> BiLstm:
        """Learn; every sixth text is set aside to stop by."""
        self.classes = sorted(set(labels))
        if len(self.classes) != 2:
            raise ValueError(f"labels must be of 2 kinds, got {len(self.classes)}")
        x = self.reader.ids(texts)
        y = np.array([label == self.classes[1] for label in labels], dtype=np.float32)
        aside = np.random.default_rng(seed).permutation(len(x)) % 6 == 0
        stop = _keras().callbacks.EarlyStopping(
            monitor="val_loss", patience=2, restore_best_weights=True
        )
        model = self._model().start(seed)
        model.fit(x[~aside], y[~aside], validation_data=(x[aside], y[aside]), batch_size=64,
                  epochs=self.epochs, verbose=0, callbacks=[stop])  # fmt: skip
        self.weights = _copies(model.trainable_variables)
        return self

    def score(self, texts: Sequence[str], labels: Sequence[str]) -> float:
        """The share of texts whose label it gives."""
        model = self._model().learned(self.weights)
        said = model.predict(self.reader.ids(texts), batch_size=256, verbose=0)[:, 0] > 0.5
        return float((np.where(said, *self.classes[::-1]) == np.asarray(labels)).mean())


BATCH = 64
CONTEXT = 20
"""Words of a sequence that a next-word network is trained on and reads."""


@cache
def _next_word(words: int, units: int) -> _Anew:
    keras = _keras()
    layers = keras.layers
    model = keras.Sequential([
        layers.Input((CONTEXT,), dtype="int32"),
        layers.Embedding(words, units),
        layers.LSTM(units, return_sequences=True),
        layers.Dense(words),
    ])  # fmt: skip
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    model.compile(optimizer=keras.optimizers.Adam(5e-3), loss=loss)
    return _Anew(model)


class NextWordLstm:
    """Ranks of next words by an LSTM, as WSDM'20 trains one; see `fastdx.lab.evaluation.NextWord`.

    The `most` frequent words are predicted; the others are one unknown word, which is not.
    """

    def __init__(
        self,
        runs: Iterable[NDArray[np.uint32]],
        words: int,
        *,
        most: int = 1000,
        units: int = 64,
        epochs: int = 15,
        seed: int = 0,
    ) -> None:
        self.most, self.units = min(most, words) + 1, units
        x, y = self._pieces(runs)
        model = _next_word(self.most, units).start(seed)
        if (y > 0).any():
            model.fit(x, y, batch_size=32, epochs=epochs, verbose=0)
        self.weights = _copies(model.trainable_variables)

    def _pieces(self, runs: Iterable[NDArray[np.uint32]]) -> Ids:
        """The tokens that are read and those that come next: (2, pieces, CONTEXT); 0 fills up."""
        found = [np.zeros((2, 0, CONTEXT), np.int32)]
        for run in runs:
            ids = np.where(run < self.most - 1, run.astype(np.int32) + 1, 0)
            pair = np.stack([ids[:-1], ids[1:]])
            full = np.pad(pair, ((0, 0), (0, -pair.shape[1] % CONTEXT)))
            found.append(full.reshape(2, -1, CONTEXT))
        return np.concatenate(found, axis=1)

    def ranks_of(self, runs: Sequence[NDArray[np.uint32]]) -> NDArray[np.int64]:
        """The ranks, from 1 on, of all the runs' next words that it knows."""
        x, y = self._pieces(runs)
        if not len(x):
            return np.zeros(0, np.int64)
        model = _next_word(self.most, self.units).learned(self.weights)
        # By batches of one shape: another one would be compiled anew.
        full = np.pad(x, ((0, -len(x) % BATCH), (0, 0)))
        scores = model.predict(full, batch_size=BATCH, verbose=0)[: len(x)]
        scores[:, :, 0] = -np.inf
        own = np.take_along_axis(scores, y[:, :, None], axis=2)
        ranks = 1 + (scores > own).sum(axis=2)
        return ranks[y > 0].astype(np.int64)
