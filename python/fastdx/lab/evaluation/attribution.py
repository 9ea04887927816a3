"""Authorship attribution: attacks that name the author of a text, as in ICDM'19 and POST'19."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from fastdx._shared.checks import at_least, one_of, share
from fastdx.exceptions import ParameterError

Label = TypeVar("Label", bound=Hashable)
KNOWN = ("together", "mean")
"""The ways to represent an author."""
WEIGHTS = ("log", "log-idf", "counts")
"""The ways to weight a gram."""
HELD, MOST = 0.2, 500
"""The share of the known texts that is held out to choose settings, and the most texts of it."""
SURE = 0.9
"""The wanted share of right answers above the threshold."""


@dataclass(frozen=True)
class Attributed(Generic[Label]):
    """The answers of an attribution."""

    authors: list[Label]
    """The likeliest author of each text."""
    shares: NDArray[np.float64]
    """The share of rounds that this author won: float64, shape (texts,)."""


def _grams(text: str, length: int, lower: bool) -> Iterator[str]:
    """Yield all character n-grams of the words of a text; shorter words as a whole."""
    for word in (text.lower() if lower else text).split():
        yield from (word[i : i + length] for i in range(max(1, len(word) - length + 1)))


class Attribution(Generic[Label]):
    """Authorship attribution in the wild (Koppel, Schler and Argamon 2011).

    A text is represented by its counts of character n-grams without spaces. Each round keeps a
    random part of the features, and the author with the largest cosine wins the round. Choices that
    the paper leaves open are parameters; `choose_attribution` chooses them on the known texts.

    Parameters
    ----------
    texts, authors : sequence
        The known texts, and the author of each.
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
    known : 'together' or 'mean', optional
        The representation of an author. 'together': all known texts as one text. 'mean': the mean
        of the texts' vectors, each of length 1, so neither long texts nor many texts count more.
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
        of = [place[author] for author in authors]
        # Row a adds the texts of author a. The sum instead of the mean, because the cosine does not
        # depend on the length.
        sums = sparse.csr_array((np.ones(len(of), np.float32), (of, range(len(of)))))
        of_authors = (
            sums @ normalize(self._weighed(counts))
            if known == "mean"
            else self._weighed((sums @ counts).tocsr())
        )
        self._weights = of_authors.toarray().T

    def _weighed(self, counts: Any) -> Any:
        if self._weighing == "counts":
            return counts
        logs = counts.log1p()
        return logs if self._weighing == "log" else logs.multiply(self._rarity).tocsr()

    def attribute(self, texts: Iterable[str]) -> Attributed[Label]:
        """Name the likeliest author of each text."""
        asked = self._weighed(self._counts.transform(texts).astype(np.float32))
        rng = np.random.default_rng(self.seed)
        won = np.zeros((asked.shape[0], len(self.authors)))
        for _ in range(self.rounds):
            kept = rng.random(len(self._weights)) < self.fraction
            # The text's norm is left out, because it is the same for all candidates.
            best = (asked @ normalize(self._weights * kept[:, None], axis=0)).argmax(axis=1)
            won[np.arange(len(best)), best] += 1
        names = [self.authors[a] for a in won.argmax(axis=1)]
        return Attributed(names, won.max(axis=1) / self.rounds)


@dataclass(frozen=True)
class ChosenAttribution:
    """Chosen settings of `Attribution`, and the reason. It prints as a sentence."""

    settings: dict[str, Any]
    """The keyword arguments for `Attribution`."""
    threshold: float
    """The smallest share of rounds at which nine of ten answers were right; 1 if there is none."""
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
    rounds: int = 20,
    seed: int = 0,
) -> ChosenAttribution:
    """Choose the settings of an attribution on known texts alone.

    A fifth of the known texts, at most 500, is held out to test settings. The function tries them
    one after the other, each together with the best earlier ones: the representation of an author
    and the weights of grams, the length of grams, lower case, the number of features, and the
    fraction per round. It starts with ``known="together"`` and ``weights="log"``. A change is taken
    only if it is strictly better.

    Parameters
    ----------
    texts, authors : sequence
        The known texts, never the texts to attribute, and the author of each.
    rounds : int, optional
        The rounds of each test.
    seed : int, optional
        The seed of the held-out texts and of the tests.

    Returns
    -------
    ChosenAttribution
        ``Attribution(texts, authors, **chosen.settings)`` is then the attack.

    Raises
    ------
    ParameterError
        There is not one author for each text, or one of the two parts has no text.
    """
    if len(texts) != len(authors):
        raise ParameterError(f"authors must be one for each text, {len(texts)}")
    order = np.random.default_rng(seed).permutation(len(texts)).tolist()
    count = min(round(HELD * len(texts)), MOST)
    if not 0 < count < len(texts):
        raise ParameterError(f"texts must be enough to set {HELD:.0%} of them aside")
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
        (float(t) for t in np.unique(found.shares) if hits[found.shares >= t].mean() >= SURE), 1.0
    )
    return ChosenAttribution(best, threshold, tried, count)
