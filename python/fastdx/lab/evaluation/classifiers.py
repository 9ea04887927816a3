"""Linear classifiers of texts, on their words or on the mean of their words' vectors."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from fastdx._core import Embedding, tokenize


def text_classifier(
    texts: Iterable[str], labels: Iterable[Hashable], *, strength: float = 1.0
) -> Any:
    """Return a classifier fitted to texts: TF-IDF of their words and logistic regression.

    `strength` is the inverse of the penalty on weights; the larger, the more the classifier
    memorises. ``.predict(texts)`` gives labels, ``.predict_proba(texts)`` their probabilities.

    Examples
    --------
    >>> from fastdx.lab.evaluation import text_classifier
    >>> drinks = text_classifier(["hot coffee", "green tea", "supreme court"], [1, 1, 0])
    >>> drinks.predict(["a cup of tea"]).tolist()
    [1]
    """
    classifier = make_pipeline(
        TfidfVectorizer(sublinear_tf=True, token_pattern=r"\S+"),
        LogisticRegression(C=strength, max_iter=1000),
    )
    return classifier.fit(list(texts), list(labels))


class MeanVectors:
    """A function from texts to the mean vectors of their known words in an embedding."""

    def __init__(self, embedding: Embedding) -> None:
        """Index the words of the embedding."""
        self.embedding = embedding
        self._places = {word: i for i, word in enumerate(embedding.words)}
        self._vectors = embedding.vectors

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32, shape (texts, n); zeros for a text without known words."""
        rows = np.zeros((len(texts), self.embedding.dim), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            ids = [self._places[w] for w in tokenize(text.lower(), self.embedding)
                   if w in self._places]  # fmt: skip
            if ids:
                row[:] = self._vectors[ids].mean(axis=0)
        return rows


def vector_classifier(
    texts: Iterable[str], labels: Iterable[Hashable], embedding: Embedding
) -> Any:
    """Return a classifier fitted to texts: the mean vector of the words and logistic regression.

    It is like `text_classifier`, but on vectors.
    """
    classifier = make_pipeline(
        FunctionTransformer(MeanVectors(embedding)),
        StandardScaler(),
        LogisticRegression(max_iter=1000),
    )
    return classifier.fit(list(texts), list(labels))
