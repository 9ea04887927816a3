"""Who wrote a text: the attacks that ICDM'19 and POST'19 measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from fastdx._core import Embedding, WordGraph, nearest_documents
from fastdx.exceptions import ParameterError

__all__ = ["Attributed", "Attribution", "classify_nearest"]

Label = TypeVar("Label", bound=Hashable)


@dataclass(frozen=True)
class Attributed(Generic[Label]):
    """Answers of an attribution."""

    authors: list[Label | None]
    """The likeliest author of each text; None for "don't know"."""
    shares: NDArray[np.float64]
    """The share of rounds that author won: float64, shape (texts,)."""


def _grams(text: str) -> Iterator[str]:
    """Every four neighbouring characters of a word, and shorter words whole."""
    for word in text.split():
        yield from (word[i : i + 4] for i in range(max(1, len(word) - 3)))


class Attribution(Generic[Label]):
    """Authorship attribution in the wild (Koppel, Schler and Argamon 2011).

    Texts are counts of character 4-grams without spaces, each as ln(1 + count), an author all known
    texts together. In each round a random part of the features is kept, and the author of the
    largest cosine wins.

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
    >>> from fastdx.evaluation import Attribution
    >>> known = Attribution(["alpha alphabet", "omega megalith"], ["ann", "bob"])
    >>> known.attribute(["alphabetical"]).authors
    ['ann']
    """

    def __init__(
        self,
        texts: Sequence[str],
        authors: Sequence[Label],
        *,
        features: int = 20_000,
        rounds: int = 100,
        fraction: float = 0.4,
        seed: int = 0,
    ) -> None:
        """Learn from the known texts."""
        if rounds < 1:
            raise ParameterError(f"rounds must be at least 1, got {rounds}")
        if len(texts) != len(authors):
            raise ParameterError(f"authors must be one for each text, {len(texts)}")
        self.authors: list[Label] = list(dict.fromkeys(authors))
        self.rounds, self.fraction, self.seed = rounds, fraction, seed
        self._counts = CountVectorizer(analyzer=_grams, max_features=features)
        counts = self._counts.fit_transform(texts)
        place = {author: i for i, author in enumerate(self.authors)}
        of = np.array([place[author] for author in authors])
        together = [np.asarray(counts[of == i].sum(axis=0)) for i in range(len(place))]
        self._weights = np.log1p(np.vstack(together)).T.astype(np.float32)

    def attribute(
        self,
        texts: Iterable[str],
        *,
        threshold: float = 0.0,
    ) -> Attributed[Label]:
        """Name the likeliest author of each text.

        Parameters
        ----------
        texts : iterable of str
            Texts of unknown authors.
        threshold : float, optional
            With a smaller share of rounds won the answer is None, "don't know".
        """
        counts = self._counts.transform(texts).astype(np.float32).log1p()
        rng = np.random.default_rng(self.seed)
        won = np.zeros((counts.shape[0], len(self.authors)))
        for _ in range(self.rounds):
            kept = self._weights * (rng.random((len(self._weights), 1)) < self.fraction)
            norms = np.linalg.norm(kept, axis=0)
            # The text's own norm is the same for all authors.
            best = (counts @ kept / np.where(norms > 0, norms, 1)).argmax(axis=1)
            won[np.arange(len(best)), best] += 1
        shares = won.max(axis=1) / self.rounds
        names = [
            self.authors[a] if share >= threshold else None
            for a, share in zip(won.argmax(axis=1), shares, strict=True)
        ]
        return Attributed(names, shares)


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
