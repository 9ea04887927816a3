"""Authorship attribution: attacks that name the author of a text, as in ICDM'19 and POST'19."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from fastdx._core import Embedding, WordGraph, nearest_documents
from fastdx._shared.checks import at_least, inside, one_of, share
from fastdx.bags import bag_tokens
from fastdx.exceptions import ParameterError

Label = TypeVar("Label", bound=Hashable)
KNOWN = ("together", "mean", "each")
"""The ways to represent an author."""
WEIGHTS = ("log", "log-idf", "counts")
"""The ways to weight a gram."""


@dataclass(frozen=True)
class Attributed(Generic[Label]):
    """The answers of an attribution."""

    authors: list[Label | None]
    """The likeliest author of each text; None for "don't know"."""
    shares: NDArray[np.float64]
    """The share of rounds that this author won: float64, shape (texts,)."""


def _grams(text: str, length: int, lower: bool) -> Iterator[str]:
    """Yield all character n-grams of the words of a text; shorter words as a whole."""
    for word in (text.lower() if lower else text).split():
        yield from (word[i : i + length] for i in range(max(1, len(word) - length + 1)))


def _columns(weights: Any, kept: NDArray[np.bool_]) -> Any:
    """Return the kept features of each candidate, normalised to length 1."""
    part = weights * kept[:, None] if isinstance(weights, np.ndarray) else weights[kept]
    squares = part**2 if isinstance(part, np.ndarray) else part.multiply(part)
    norms = np.sqrt(np.asarray(squares.sum(axis=0), dtype=np.float32)).ravel()
    norms[norms == 0] = 1
    return part / norms if isinstance(part, np.ndarray) else part @ sparse.diags(1 / norms)


class Attribution(Generic[Label]):
    """Authorship attribution in the wild (Koppel, Schler and Argamon 2011).

    A text is represented by its counts of character n-grams without spaces. Each round keeps a
    random part of the features, and the author with the largest cosine wins the round. Choices that
    the paper leaves open are parameters; `choose_attribution` chooses them on the known texts.

    Parameters
    ----------
    texts : sequence of str
        The known texts.
    authors : sequence
        The author of each known text.
    features : int, optional
        The most grams to use; the most frequent ones are kept.
    rounds : int, optional
        The number of rounds.
    fraction : float, optional
        The probability that a round keeps a feature.
    seed : int, optional
        The seed of the random parts; with one seed the answers are always the same.
    grams : int, optional
        The number of characters in a gram.
    lower : bool, optional
        Whether to convert texts to lower case; words that a mechanism releases are lower-case.
    known : 'together', 'mean' or 'each', optional
        The representation of an author. 'together': all known texts as one text. 'mean': the mean
        of the texts' vectors, each of length 1, so neither long texts nor many texts count more.
        'each': every text by itself; the author of the nearest text wins.
    weights : 'log', 'log-idf' or 'counts', optional
        The weight of a gram that occurs c times in a text. 'log': ln(1 + c). 'log-idf': this times
        ln((1 + N)/(1 + n)) if n of the N known texts contain the gram. 'counts': c.

    Raises
    ------
    ParameterError
        A parameter lies outside its domain, or there is not one author for each text.

    Examples
    --------
    >>> from fastdx.lab.evaluation import Attribution
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
            at_least(name, number, 1)
        share("fraction", fraction)
        one_of("known", known, KNOWN)
        one_of("weights", weights, WEIGHTS)
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
            # The sum instead of the mean, because the cosine does not depend on the length.
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
            If the best author wins a smaller share of rounds, the answer is None, "don't know".
        """
        asked = self._weighed(self._counts.transform(texts).astype(np.float32))
        rng = np.random.default_rng(self.seed)
        won = np.zeros((asked.shape[0], len(self.authors)))
        for _ in range(self.rounds):
            kept = rng.random(self._weights.shape[0]) < self.fraction
            columns = _columns(self._weights, kept)
            # The text's norm is left out, because it is the same for all candidates.
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
    """Chosen settings of `Attribution`, and the reason. It prints as a sentence."""

    settings: dict[str, Any]
    """The keyword arguments for `Attribution`."""
    threshold: float
    """The smallest share of rounds at which at least `sure` of the answers were right; 1 if there
    is none."""
    sure: float
    """The wanted share of right answers above the threshold."""
    tried: list[tuple[dict[str, Any], float]]
    """All settings tried, with the share of held-out texts whose author they named."""
    asked: int
    """The number of held-out texts."""

    def __str__(self) -> str:
        """Return the choice and the reason as a sentence."""
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

    A part of the known texts is held out to test settings. The function tries the settings one
    after the other, each together with the best earlier ones: the representation of an author and
    the weights of grams, the length of grams, lower case, the number of features, and the fraction
    per round. It starts with ``known="together"`` and ``weights="log"``. A change is taken only if
    it is strictly better.

    Parameters
    ----------
    texts : sequence of str
        The known texts; never the texts to attribute.
    authors : sequence
        The author of each known text.
    held : float, optional
        The share of the texts to hold out.
    most : int, optional
        The most texts to hold out.
    rounds : int, optional
        The rounds of each test.
    sure : float, optional
        The wanted share of right answers above the threshold; the smallest such threshold is taken.
    seed : int, optional
        The seed of the held-out texts and of the tests.

    Returns
    -------
    ChosenAttribution
        ``Attribution(texts, authors, **chosen.settings)`` is then the attack.

    Raises
    ------
    ParameterError
        A share lies outside its domain, or one of the two parts has no text.

    Examples
    --------
    >>> from fastdx.lab.evaluation import choose_attribution
    >>> texts = [f"{word} {word}s" for word in ("alpha", "omega") for _ in range(10)]
    >>> chosen = choose_attribution(texts, [text[0] for text in texts])
    >>> chosen.asked, chosen.tried[0][1]
    (4, 1.0)
    """
    if len(texts) != len(authors):
        raise ParameterError(f"authors must be one for each text, {len(texts)}")
    inside("held", held)
    inside("sure", sure)
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

    def right_by(settings: dict[str, Any]) -> float:
        found = named(settings).authors
        right = float(np.mean([a == b for a, b in zip(found, truth, strict=True)]))
        tried.append((settings, right))
        return right

    best: dict[str, Any] = {"known": "together", "weights": "log", "grams": 4, "lower": False,
                            "features": 20_000, "fraction": 0.4}  # fmt: skip
    most_right = right_by(best)
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
            right = right_by(settings)
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
    distance: Literal["earth-movers", "euclidean"] = "earth-movers",
    progress: Callable[[int], object] | None = None,
) -> list[Label]:
    """Give every query the most frequent label of its k nearest bags.

    With k=1 and authors as labels this is an attack, with k=5 and topics as labels a measure of
    utility. POST'19 takes both by the Euclidean distance. Ties go to the nearer bag.

    Parameters
    ----------
    query_bags, bags : iterable of bags
        Bags, as for `fastdx.earth_movers_distance`.
    labels : sequence
        The label of each of `bags`.
    embedding : Embedding or WordGraph
        Words and their metric.
    k : int, optional
        The number of neighbours.
    distance : {'earth-movers', 'euclidean'}, optional
        The distance of two bags: the Earth Mover's distance of the metric, for which `BagOfWords`
        has its guarantee, or the Euclidean distance between the means of their words' vectors.
    progress : callable, optional
        Called now and then with the number of queries done.

    Raises
    ------
    ParameterError
        A label too few or too many, an empty bag, `k` outside 1..len(bags), or Euclidean distances
        of a WordGraph, which has no vectors.
    """
    bags = list(bags)
    if len(labels) != len(bags):
        raise ParameterError(f"labels must be one for each of {len(bags)} bags, got {len(labels)}")
    if distance == "earth-movers":
        ids = nearest_documents(query_bags, bags, embedding, k, progress=progress).ids
    elif distance != "euclidean":
        raise ParameterError(f"distance must be 'earth-movers' or 'euclidean', got {distance!r}")
    elif isinstance(embedding, WordGraph):
        raise ParameterError(
            "embedding must have vectors for distance='euclidean'; a WordGraph has none"
        )
    else:
        means = _means("bags", bags, embedding)
        documents = Embedding([str(i) for i in range(len(bags))], means)
        ids = documents.nearest(_means("query_bags", query_bags, embedding), k)[0]
    # Counter keeps the order of first appearance, which is by distance, so ties go to the nearer.
    return [Counter(labels[i] for i in row).most_common(1)[0][0] for row in ids]


def _means(name: str, bags: Iterable[Any], embedding: Embedding) -> NDArray[np.float64]:
    """Return the mean of the vectors of each bag's words."""
    means = []
    for at, bag in enumerate(bags):
        ids = embedding.ids(bag_tokens(bag))
        if not len(ids):
            raise ParameterError(f"{name}[{at}]: bag must be of at least one word, got 0")
        means.append(embedding.vectors[ids].mean(axis=0, dtype=np.float64))
    return np.array(means).reshape(len(means), embedding.dim)
