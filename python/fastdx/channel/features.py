"""Numbers that a classifier learns from: the expectation of a text's features given its release.

If the prior knows no history, every word has its own posterior: a table holds them, and a text's
features are a mean of its rows. Otherwise each text goes through `Channel.decode`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx._core import Embedding, NgramPrior
from fastdx._shared.checks import check_type, one_of
from fastdx._shared.laws import laws as blocks_of_laws
from fastdx.channel import receiver
from fastdx.channel.law import Channel
from fastdx.exceptions import ParameterError

_Numbers = NDArray[np.float64]
_Ids = NDArray[np.uint32]

KINDS = ("means", "counts")
LEAST = 1e-3
"""A word that is less probable than this at a place leaves the sparse counts."""
TEXTS = 256
"""Texts whose means are computed together."""


def prior_of(channel: Channel, prior: Any) -> NgramPrior:
    """Return a prior as a model of language."""
    if isinstance(prior, NgramPrior):
        return prior
    frequencies: Any = None if prior is None else receiver.numbers_of(prior)
    return NgramPrior.of_frequencies(channel.mechanism.space, frequencies)


def laws(channel: Channel) -> Iterator[tuple[slice, _Numbers]]:
    """Yield the laws of all words in blocks: which words, and a law a row."""
    return blocks_of_laws(channel._core, len(channel.mechanism.space))


def columns_of(channel: Channel, outputs: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return Pr[output | word] of some outputs: float32, shape (V, len(outputs))."""
    found = np.empty((len(channel.mechanism.space), len(outputs)), dtype=np.float32)
    for ids, law in laws(channel):
        found[ids] = law[:, outputs]
    return found


def shares_behind(
    columns: NDArray[np.float32], counts: _Numbers, smooth: _Numbers, rounds: int
) -> _Numbers:
    """Return the shares of words that explain counts of outputs: float64, shape (n, V).

    Each row raises Σ_y counts_y·ln (θ·K)_y + Σ_w smooth_w·ln θ_w over the shares θ by some rounds
    of EM that start from shares like `smooth`; no round makes it smaller.

    Parameters
    ----------
    columns : ndarray of float32, shape (V, m)
        K of the m outputs that are counted.
    counts : ndarray of float, shape (n, m)
        How often each collection has each output.
    smooth : ndarray of float, shape (V,)
        Counts of words that are added to all: a Dirichlet prior of 1 + smooth.
    rounds : int
        Rounds of EM.
    """
    shares = np.tile(smooth / smooth.sum(), (len(counts), 1))
    for _ in range(rounds):
        expected = shares @ columns
        weights = np.divide(counts, expected, out=np.zeros_like(expected), where=expected > 0)
        shares *= weights @ columns.T
        shares += smooth
        shares /= shares.sum(axis=1, keepdims=True)
    return shares


def counted(channel: Channel, texts: Iterable[str | None]) -> Any:
    """Return how often each word of the space stands in texts, as they are: sparse (n, V)."""
    ids, lengths = _known(channel, texts)
    return _incidence(ids, lengths, len(channel.mechanism.space))


def _known(channel: Channel, texts: Iterable[str | None]) -> tuple[_Ids, _Ids]:
    """Return the ids of texts' known words in a row, and how many each text has."""
    tokens = channel.mechanism.tokenize
    places = {word: i for i, word in enumerate(channel.mechanism.space.words)}
    rows = [[places[w] for w in tokens((text or "").lower()) if w in places] for text in texts]
    lengths = np.fromiter(map(len, rows), dtype=np.uint32, count=len(rows))
    flat = np.fromiter((i for row in rows for i in row), dtype=np.uint32, count=lengths.sum())
    return flat, lengths


def _incidence(ids: _Ids, lengths: _Ids, rows: int) -> Any:
    from scipy.sparse import csr_matrix

    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return csr_matrix((np.ones(len(ids)), ids.astype(np.int64), starts), (len(lengths), rows))


def _row_means(table: _Numbers, ids: _Ids, lengths: _Ids) -> _Numbers:
    """Return the mean of some rows for each text; zeros for one without words."""
    means = np.zeros((len(lengths), table.shape[1]))
    ends = np.cumsum(lengths, dtype=np.int64)
    full = np.flatnonzero(lengths)
    for first in range(0, len(full), TEXTS):
        some = full[first : first + TEXTS]
        starts = ends[some] - lengths[some]
        rows = table[ids[starts[0] : ends[some[-1]]]]
        means[some] = np.add.reduceat(rows, starts - starts[0]) / lengths[some, None]
    return means


def _over(numbers: _Numbers, total: _Numbers) -> _Numbers:
    """Divide rows; those of what never happens become 0."""
    happens = total > 0
    return numbers * np.where(happens, 1 / np.where(happens, total, 1.0), 0.0)[:, None]


class TextFeatures:
    """Expected features of texts, given their releases: picklable, the same in every engine.

    Released words stand for other words with known probabilities. Their vectors mislead, and their
    posterior means do not: of all that can be made of a release, nothing is nearer to the written
    words' vectors in the mean square. This is post-processing: it costs no privacy. In pipelines of
    scikit-learn it stands in a ``FunctionTransformer``.

    Parameters
    ----------
    channel : Channel
        The law of the mechanism that released the texts: `Channel.of`, `Channel.load`.
    prior : array_like of float, shape (V,), 'rank', or NgramPrior, optional
        How often each word is written, by default 1/(rank + 2.7) in the order of the space. With an
        NgramPrior of order 2 or 3, and for ``consistent=`` mechanisms, each text is decoded as a
        whole, about a millisecond a word.
    kind : {'means', 'counts'}, optional
        The mean over a text's words of the posterior mean of each one's vector; or how often each
        word stands in the text, in expectation, as a sparse matrix. There, a word is left out at a
        place where its probability is below 0.001.

    Examples
    --------
    >>> from fastdx import Embedding, Tem
    >>> from fastdx.channel import Channel
    >>> from fastdx.channel.features import TextFeatures
    >>> e = Embedding(["tea", "coffee", "law"], [[0.0], [1.0], [9.0]])
    >>> features = TextFeatures(Channel.of(Tem(e, 2.0)), [1, 1, 1])
    >>> features(["tea, tea!", "law"]).round(2).tolist()
    [[0.27], [8.99]]
    """

    def __init__(
        self,
        channel: Channel,
        prior: ArrayLike | str | NgramPrior | None = None,
        kind: str = "means",
    ) -> None:
        check_type("channel", channel, Channel)
        one_of("kind", kind, KINDS)
        space = channel.mechanism.space
        self._channel, self._prior = channel, prior_of(channel, prior)
        self._vectors: _Numbers | None = None
        if kind == "counts":
            self.names = [f"count {word}" for word in space.words]
        elif isinstance(space, Embedding):
            self._vectors = space.vectors.astype(np.float64)
            self.names = [f"mean {i}" for i in range(space.vectors.shape[1])]
        else:
            raise ParameterError("kind must be 'counts': the words of a graph have no vectors")
        self._table: Any = None
        if self._prior.order == 1 and not channel.mechanism.consistent:
            self._table = self._made_table()

    def _made_table(self) -> Any:
        """Return a row for each number that `ChannelCore.observed` gives, in one or two passes.

        For V words: what V outputs tell, V words that show themselves, and an unknown word.
        """
        pi, core, vectors = self._prior.frequencies, self._channel._core, self._vectors
        values = np.empty((len(pi), 0)) if vectors is None else vectors
        evidence, sums = receiver.posterior_sums(core, pi, values)
        hidden = self._hidden(evidence)
        if vectors is not None:
            middle = pi @ vectors
            means = _over(sums, evidence) * (1 - hidden)[:, None] + np.outer(hidden, middle)
            return np.vstack([means, vectors, middle])
        from scipy.sparse import csr_matrix, identity, vstack

        share = _over((1 - hidden)[:, None], evidence)[:, 0]
        blocks = []
        for ids, law in laws(self._channel):
            rows = pi[ids, None] * law * share
            blocks.append(csr_matrix(np.where(rows >= LEAST, rows, 0.0)))
        bags = vstack(blocks, format="csc").T
        return vstack([bags, identity(len(pi)), csr_matrix((1, len(pi)))], format="csr")

    def _hidden(self, evidence: _Numbers) -> _Numbers:
        """Return how likely each output stands for a word that the space does not have."""
        unknown = self._prior.unknown
        if not unknown or self._channel.mechanism.oov != "random":
            return np.zeros(len(evidence))
        drawn = unknown * self._channel._core.unknown_law()
        return _over(drawn[:, None], drawn + (1 - unknown) * evidence)[:, 0]

    def __call__(self, texts: Iterable[str | None]) -> Any:
        """Return the features of released texts: float64, shape (texts, columns).

        Counts are a ``scipy.sparse`` matrix. A text without words, and None, has zeros.

        Raises
        ------
        ParameterError
            A text of words none of which is an output. A word that is none, as two outputs around
            a hyphen may read, is left out.
        """
        given = ["" if text is None else text for text in texts]
        if self._table is None:
            with ThreadPoolExecutor(self._channel.mechanism.threads or cpu_count()) as pool:
                return self._stacked(list(pool.map(self._decoded, given)))
        ids, lengths = self._channel._core.observed(given, True)
        if not self._prior.unknown:
            # Nothing is known of unknown words.
            kept = ids < self._table.shape[0] - 1
            text = np.repeat(np.arange(len(given)), lengths)[kept]
            left = np.bincount(text, minlength=len(given)).astype(np.uint32)
            if (gone := np.flatnonzero((left == 0) & (lengths > 0))).size:
                raise ParameterError("texts must be releases of this mechanism, got at "
                                     f"{gone[0]} one of unknown words")  # fmt: skip
            ids, lengths = ids[kept], left
        if self._vectors is not None:
            return _row_means(self._table, ids, lengths)
        return _incidence(ids, lengths, self._table.shape[0]) @ self._table

    def _stacked(self, rows: list[_Numbers]) -> Any:
        from scipy.sparse import csr_matrix

        found = np.array(rows).reshape(len(rows), len(self.names))
        return found if self._vectors is not None else csr_matrix(found)

    def of_clear(self, texts: Iterable[str | None]) -> Any:
        """Return the same features of texts that were not privatised, of known words only.

        For a model that learned from releases and is used on texts of one's own. True vectors vary
        more than posterior means, so measure it: raw vectors or naive Bayes may do better.
        """
        if self._vectors is None:
            return counted(self._channel, texts)
        return _row_means(self._vectors, *_known(self._channel, texts))

    def _decoded(self, text: str) -> _Numbers:
        try:
            posterior = self._channel.decode(text, self._prior)
        except ParameterError:
            # Outputs and punctuation that stand together may read as another word.
            mechanism = self._channel.mechanism
            words = [w for w in mechanism.tokenize(text) if w in mechanism.space]
            if not words:
                raise
            posterior = self._channel.decode(words, self._prior)
        counts = posterior.expected_counts()
        if self._vectors is None:
            return counts
        unknown = posterior.unknown.sum() * self._prior.frequencies
        total: _Numbers = (counts + unknown) @ self._vectors
        return total / max(len(posterior), 1)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the mechanism in place of the law, which is computed again where it is needed."""
        return {**self.__dict__, "_channel": self._channel.mechanism}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _channel=Channel.of(state["_channel"]))
