"""Who wrote a text: the attacks that ICDM'19 and POST'19 measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from fastdx._core import Embedding, WordGraph, nearest_documents
from fastdx.exceptions import ParameterError

__all__ = [
    "Attributed",
    "Attribution",
    "ChosenAttribution",
    "choose_attribution",
    "classify_nearest",
]

Label = TypeVar("Label", bound=Hashable)
KNOWN = ("together", "mean", "each")
"""What can stand for an author."""
WEIGHTS = ("log", "log-idf", "counts")
"""What a gram can count."""


@dataclass(frozen=True)
class Attributed(Generic[Label]):
    """Answers of an attribution."""

    authors: list[Label | None]
    """The likeliest author of each text; None for "don't know"."""
    shares: NDArray[np.float64]
    """The share of rounds that author won: float64, shape (texts,)."""


def _grams(text: str, length: int, lower: bool) -> Iterator[str]:
    """Every so many neighbouring characters of a word, and shorter words whole."""
    for word in (text.lower() if lower else text).split():
        yield from (word[i : i + length] for i in range(max(1, len(word) - length + 1)))


def _columns(weights: Any, kept: NDArray[np.bool_]) -> Any:
    """The kept features of each candidate, divided by the norm of what is kept."""
    part = weights * kept[:, None] if isinstance(weights, np.ndarray) else weights[kept]
    squares = part**2 if isinstance(part, np.ndarray) else part.multiply(part)
    norms = np.sqrt(np.asarray(squares.sum(axis=0), dtype=np.float32)).ravel()
    norms[norms == 0] = 1
    return part / norms if isinstance(part, np.ndarray) else part @ sparse.diags(1 / norms)


class Attribution(Generic[Label]):
    """Authorship attribution in the wild (Koppel, Schler and Argamon 2011).

    Texts are counts of character n-grams without spaces. In each round a random part of the
    features is kept, and the author of the largest cosine wins. What the paper leaves open is a
    parameter; `choose_attribution` chooses on the known texts.

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
    grams : int, optional
        Characters of a gram.
    lower : bool, optional
        Whether texts are brought to lower case, as words that a mechanism replaces are.
    known : 'together', 'mean' or 'each', optional
        What stands for an author: all known texts as one; the mean of the texts' vectors, each of
        length 1, so that neither long texts nor many count for more; or every text by itself, and
        the author of the nearest one is named.
    weights : 'log', 'log-idf' or 'counts', optional
        A gram that a text holds c times counts as ln(1 + c); as that times ln((1 + N)/(1 + n)), n
        of the N known texts holding it; or as c.

    Raises
    ------
    ParameterError
        A parameter outside its domain, or not one author for each text.

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
        grams: int = 4,
        lower: bool = False,
        known: str = "mean",
        weights: str = "log-idf",
    ) -> None:
        """Learn from the known texts."""
        for name, number in (("rounds", rounds), ("grams", grams), ("features", features)):
            if number < 1:
                raise ParameterError(f"{name} must be at least 1, got {number}")
        if not 0 < fraction <= 1:
            raise ParameterError(f"fraction must be above 0 and at most 1, got {fraction}")
        for name, given, allowed in (("known", known, KNOWN), ("weights", weights, WEIGHTS)):
            if given not in allowed:
                raise ParameterError(f"{name} must be one of {', '.join(allowed)}; got {given!r}")
        if len(texts) != len(authors):
            raise ParameterError(f"authors must be one for each text, {len(texts)}")
        self.authors: list[Label] = list(dict.fromkeys(authors))
        self.rounds, self.fraction, self.seed = rounds, fraction, seed
        self._weighing = weights
        self._counts = CountVectorizer(
            analyzer=partial(_grams, length=grams, lower=lower), max_features=features
        )
        counts = self._counts.fit_transform(texts).astype(np.float32)
        held = np.asarray((counts > 0).sum(axis=0)).ravel()
        self._rarity = np.log((1 + len(texts)) / (1 + held)).astype(np.float32)
        place = {author: i for i, author in enumerate(self.authors)}
        of = np.array([place[author] for author in authors])
        self._of = np.arange(len(place)) if known != "each" else of
        # Row a adds the texts of author a.
        sums = sparse.csr_matrix((np.ones(len(of), np.float32), (of, np.arange(len(of)))))
        if known == "each":
            self._weights = self._weighed(counts).T.tocsr()
        elif known == "mean":
            # The sum: a candidate's length does not change a cosine.
            self._weights = (sums @ normalize(self._weighed(counts))).toarray().T
        else:
            self._weights = self._weighed((sums @ counts).tocsr()).toarray().T

    def _weighed(self, counts: Any) -> Any:
        if self._weighing == "counts":
            return counts
        logs = counts.log1p()
        return logs if self._weighing == "log" else logs.multiply(self._rarity).tocsr()

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
        asked = self._weighed(self._counts.transform(texts).astype(np.float32))
        rng = np.random.default_rng(self.seed)
        won = np.zeros((asked.shape[0], len(self.authors)))
        for _ in range(self.rounds):
            kept = rng.random(self._weights.shape[0]) < self.fraction
            columns = _columns(self._weights, kept)
            # The text's own norm is the same for all candidates.
            found = asked @ columns if isinstance(columns, np.ndarray) else (
                (asked[:, kept] @ columns).toarray())  # fmt: skip
            best = self._of[found.argmax(axis=1)]
            won[np.arange(len(best)), best] += 1
        shares = won.max(axis=1) / self.rounds
        names = [
            self.authors[a] if share >= threshold else None
            for a, share in zip(won.argmax(axis=1), shares, strict=True)
        ]
        return Attributed(names, shares)


@dataclass(frozen=True)
class ChosenAttribution:
    """Settings of `Attribution`, and why. Printed, it is a sentence."""

    settings: dict[str, Any]
    """What `Attribution` is to be given."""
    threshold: float
    """The smallest share of rounds at which `sure` of the answers were right; 1 if none."""
    sure: float
    """What share of right answers the threshold was chosen for."""
    tried: list[tuple[dict[str, Any], float]]
    """All settings that were tried, and the share of the texts set aside that they named right."""
    asked: int
    """Texts that were set aside."""

    def __str__(self) -> str:
        """Return what was chosen and what it was chosen by."""
        best = max(share for _, share in self.tried)
        named = ", ".join(f"{key} = {value!r}" for key, value in self.settings.items())
        return (f"{named}: right for {best:.3f} of {self.asked:,} known texts that were set "
                f"aside, the first of {len(self.tried)} settings for {self.tried[0][1]:.3f}; "
                f"answers of at least {self.threshold:.0%} of the rounds count as "
                "sure.")  # fmt: skip


def choose_attribution(
    texts: Sequence[str],
    authors: Sequence[Hashable],
    *,
    held: float = 0.2,
    most: int = 500,
    rounds: int = 20,
    sure: float = 0.9,
    seed: int = 0,
) -> ChosenAttribution:
    """Choose the settings of an attribution on known texts alone.

    A part of the known texts is set aside, and the settings are tried on it one after the other,
    each with the best of those before: what stands for an author and how grams are weighted, the
    length of grams, lower case, the number of features, the fraction of them in a round. It begins
    with all texts of an author together, by logarithms; a change must be better, not as good.

    Parameters
    ----------
    texts : sequence of str
        Known texts; never those that are to be attributed.
    authors : sequence
        The author of each.
    held : float, optional
        The share of the texts that is set aside.
    most : int, optional
        At most so many are.
    rounds : int, optional
        Rounds of a trial.
    sure : float, optional
        The threshold is the smallest at which so many of the answers are right.
    seed : int, optional
        Of what is set aside, and of the trials.

    Returns
    -------
    ChosenAttribution
        ``Attribution(texts, authors, **chosen.settings)`` is the attack.

    Raises
    ------
    ParameterError
        A share outside its domain, or no text on either side.

    Examples
    --------
    >>> from fastdx.evaluation import choose_attribution
    >>> texts = [f"{word} {word}s" for word in ("alpha", "omega") for _ in range(10)]
    >>> chosen = choose_attribution(texts, [text[0] for text in texts])
    >>> chosen.asked, chosen.tried[0][1]
    (4, 1.0)
    """
    if len(texts) != len(authors):
        raise ParameterError(f"authors must be one for each text, {len(texts)}")
    for name, given in (("held", held), ("sure", sure)):
        if not 0 < given < 1:
            raise ParameterError(f"{name} must be above 0 and below 1, got {given}")
    order = np.random.default_rng(seed).permutation(len(texts)).tolist()
    count = min(round(held * len(texts)), most)
    if not 0 < count < len(texts):
        raise ParameterError(f"texts must be enough to set {held:.0%} of them aside")
    asked, learned = order[:count], order[count:]
    truth = [authors[i] for i in asked]
    tried: list[tuple[dict[str, Any], float]] = []

    def named(settings: dict[str, Any]) -> Attributed[Hashable]:
        attack = Attribution([texts[i] for i in learned], [authors[i] for i in learned],
                             rounds=rounds, seed=seed, **settings)  # fmt: skip
        return attack.attribute([texts[i] for i in asked])

    def share(settings: dict[str, Any]) -> float:
        found = named(settings).authors
        right = float(np.mean([a == b for a, b in zip(found, truth, strict=True)]))
        tried.append((settings, right))
        return right

    best: dict[str, Any] = {"known": "together", "weights": "log", "grams": 4, "lower": False,
                            "features": 20_000, "fraction": 0.4}  # fmt: skip
    most_right = share(best)
    steps: list[list[dict[str, Any]]] = [
        [{"known": k, "weights": w} for k in KNOWN for w in WEIGHTS],
        [{"grams": n} for n in (3, 5)],
        [{"lower": True}],
        [{"features": n} for n in (5_000, 50_000)],
        [{"fraction": x} for x in (0.2, 0.7)],
    ]
    for step in steps:
        before = best
        for change in step:
            settings = {**before, **change}
            if settings == before:
                continue
            right = share(settings)
            if right > most_right:
                best, most_right = settings, right
    found = named(best)
    hits = np.array([a == b for a, b in zip(found.authors, truth, strict=True)])
    threshold = next(
        (float(t) for t in np.unique(found.shares) if hits[found.shares >= t].mean() >= sure), 1.0
    )
    return ChosenAttribution(best, threshold, sure, tried, count)


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
