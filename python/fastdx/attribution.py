"""Who wrote a text, and what about: the attacks and the uses that POST'19 measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import NDArray

from fastdx._core import AttributionCore, Embedding, WordGraph, nearest_documents
from fastdx.exceptions import ParameterError

__all__ = ["Attributed", "Attribution", "classify_nearest", "text_of", "topic_classifier"]

Label = TypeVar("Label", bound=Hashable)


@dataclass(frozen=True)
class Attributed(Generic[Label]):
    """Answers of an attribution."""

    authors: list[Label | None]
    """The likeliest author of each text; None for "don't know"."""
    shares: NDArray[np.float64]
    """The share of rounds that author won: float64, shape (texts,)."""


class Attribution(Generic[Label]):
    """Authorship attribution in the wild (Koppel, Schler and Argamon 2011).

    Texts are counts of character 4-grams without spaces, an author all known texts together. In
    each round a random part of the features is kept, and the author of the largest cosine wins.

    Parameters
    ----------
    texts : sequence of str
        Known texts.
    authors : sequence
        The author of each.
    features : int, optional
        The most frequent grams, at most so many.
    rounds : int, optional
        Rounds.
    fraction : float, optional
        Probability that a feature is kept in a round.
    seed : int, optional
        Of the random parts: one seed, one answer.

    Examples
    --------
    >>> from fastdx.attribution import Attribution
    >>> known = Attribution(["alpha alphabet", "omega megalith"], ["ann", "bob"])
    >>> known.attribute(["alphabetical"]).authors
    ['ann']
    """

    def __init__(
        self,
        texts: Sequence[str],
        authors: Sequence[Label],
        *,
        features: SupportsIndex = 20_000,
        rounds: SupportsIndex = 100,
        fraction: float = 0.4,
        seed: SupportsIndex = 0,
    ) -> None:
        """Learn from the known texts."""
        self.authors: list[Label] = list(dict.fromkeys(authors))
        place = {author: i for i, author in enumerate(self.authors)}
        self._core = AttributionCore(
            texts,
            np.array([place[a] for a in authors], dtype=np.uint32),
            len(self.authors),
            features=features,
            rounds=rounds,
            fraction=fraction,
            seed=seed,
        )

    def attribute(
        self,
        texts: Iterable[str],
        *,
        threshold: float = 0.0,
        progress: Callable[[int], object] | None = None,
    ) -> Attributed[Label]:
        """Name the likeliest author of each text.

        Parameters
        ----------
        texts : iterable of str
            Texts of unknown authors.
        threshold : float, optional
            With a smaller share of rounds won the answer is None, "don't know".
        progress : callable, optional
            Called now and then with the number of texts done.
        """
        found, shares = self._core.attribute(texts, progress)
        names = [
            self.authors[a] if share >= threshold else None
            for a, share in zip(found, shares, strict=True)
        ]
        return Attributed(names, shares)


def text_of(bag: Mapping[str, int]) -> str:
    """Return a bag as a text, its words in alphabetical order, for what reads texts."""
    return " ".join(w for word in sorted(bag) for w in [word] * bag[word])


def classify_nearest(
    query_bags: Iterable[Any],
    bags: Iterable[Any],
    labels: Sequence[Label],
    embedding: Embedding | WordGraph,
    k: int = 1,
    *,
    progress: Callable[[int], object] | None = None,
) -> list[Label]:
    """Give every query the most frequent label of its k nearest bags under Earth Mover's distance.

    With k=1 and authors this is POST'19's attack in the same representation, with k=5 and topics
    its measure of use. Ties go to the nearer bag.

    Parameters
    ----------
    query_bags, bags : iterable of bags
        As for `fastdx.earth_movers_distance`.
    labels : sequence
        One a bag.
    embedding : Embedding or WordGraph
        Words and their metric.
    k : int, optional
        Neighbours.
    progress : callable, optional
        Called now and then with the number of queries done.
    """
    bags = list(bags)
    if len(labels) != len(bags):
        raise ParameterError(f"labels must be one for each of {len(bags)} bags, got {len(labels)}")
    found = nearest_documents(query_bags, bags, embedding, k, progress=progress)
    # Counter keeps the order of first appearance, that of distance.
    return [Counter(labels[i] for i in row).most_common(1)[0][0] for row in found.ids]


def topic_classifier(texts: Iterable[str], topics: Iterable[Label]) -> Any:
    """Return a classifier of topics fitted to texts: TF-IDF and logistic regression.

    Needs scikit-learn (``pip install 'fastdx[experiments]'``); ``.predict(texts)`` gives topics.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    classifier = make_pipeline(
        TfidfVectorizer(sublinear_tf=True, token_pattern=r"\S+"), LogisticRegression(max_iter=1000)
    )
    return classifier.fit(list(texts), list(topics))
