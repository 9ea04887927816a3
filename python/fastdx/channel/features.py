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

from fastdx._core import Embedding, NgramPrior, row_means
from fastdx._shared.checks import check_type, counted, one_of
from fastdx._shared.laws import laws as blocks_of_laws
from fastdx.channel import receiver
from fastdx.channel.law import Channel
from fastdx.exceptions import ParameterError

_Numbers = NDArray[np.float64]

KINDS = ("means", "counts", "both")
PASSES = 3
"""Rounds that find directions."""


def _prior_of(channel: Channel, prior: Any) -> NgramPrior:
    if isinstance(prior, NgramPrior):
        return prior
    frequencies: Any = None if prior is None else receiver.numbers_of(prior)
    return NgramPrior.of_frequencies(channel.mechanism.space, frequencies)


def laws(channel: Channel) -> Iterator[tuple[slice, _Numbers]]:
    """Yield the laws of all words in blocks: which words, and a law a row."""
    return blocks_of_laws(channel._core, len(channel.mechanism.space))


def _over(numbers: _Numbers, total: _Numbers) -> _Numbers:
    """Divide rows; those of what never happens become 0."""
    happens = total > 0
    return numbers * np.where(happens, 1 / np.where(happens, total, 1.0), 0.0)[:, None]


def directions(
    channel: Channel, k: int = 200, prior: ArrayLike | str | NgramPrior | None = None
) -> _Numbers:
    """Return the k functions of a word about which an output tells most: float64, shape (V, k).

    They are the leading functions of Hirschfeld, Gebelein and Rényi: uncorrelated, of mean 0 and
    variance 1 under the prior (that of `Channel.bits`), and the share of the variance that an
    output explains falls from one to the next. k must be below V. Subspace iteration from a fixed
    start finds them in 2·`PASSES` passes over the law; it uses no text.

    Examples
    --------
    >>> from fastdx import Embedding, Tem
    >>> from fastdx.channel import Channel
    >>> from fastdx.channel.features import directions
    >>> e = Embedding(["tea", "coffee", "law", "court"], [[0.0], [0.1], [9.0], [9.1]])
    >>> (directions(Channel.of(Tem(e, 2.0)), 1, [1, 1, 1, 1]) > 0)[:, 0].tolist() in (
    ...     [True, True, False, False], [False, False, True, True])
    True
    """
    pi = _prior_of(channel, prior).frequencies
    k = counted("directions", k, 1, len(pi) - 1)
    root = np.sqrt(pi)
    evidence = np.zeros(len(pi))
    for ids, law in laws(channel):
        evidence += pi[ids] @ law
    scale = np.sqrt(evidence)
    basis = np.random.default_rng(0).standard_normal((len(pi), min(k + 10, len(pi) - 1)))
    for last in (*(False,) * (PASSES - 1), True):
        basis -= np.outer(root, root @ basis)  # the constant function, of which all is known
        basis = np.linalg.qr(basis)[0]
        seen = np.zeros_like(basis)
        for ids, law in laws(channel):
            seen += law.T @ (root[ids, None] * basis[ids])
        seen = _over(seen, scale)
        if last:
            break
        weighted, image = _over(seen, scale), np.empty_like(basis)
        for ids, law in laws(channel):
            image[ids] = root[ids, None] * (law @ weighted)
        basis = image
    turned = np.linalg.eigh(seen.T @ seen)[1][:, ::-1][:, :k]
    return _over(basis @ turned, root)


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
    kind : {'means', 'counts', 'both'}, optional
        The mean over a text's words of the posterior mean of each one's vector; how often each word
        stands in the text, in expectation, as a sparse matrix; both side by side.
    vectors : array_like of float, shape (V, n), optional
        Vectors for means; by default those of the mechanism's embedding.
    directions : int, optional
        Counts, divided by the number of words, along so many directions in place of all V words:
        the functions of a word about which an output tells most (`directions`).
    least : float, optional
        A word that is less probable than this at a place leaves the sparse counts, where texts are
        not decoded.

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
        *,
        vectors: ArrayLike | None = None,
        directions: int | None = None,
        least: float = 1e-3,
    ) -> None:
        check_type("channel", channel, Channel)
        one_of("kind", kind, KINDS)
        if not 0 <= least < 1:
            raise ParameterError(f"least must be at least 0 and below 1, got {least}")
        self._channel, self._prior, self._least = channel, _prior_of(channel, prior), float(least)
        self._sparse = kind != "means" and directions is None
        self._columns, self.names = self._dense(kind, vectors, directions)
        words = channel.mechanism.space.words
        if self._sparse:
            self.names += [f"count {word}" for word in words]
        self._places = {word: i for i, word in enumerate(words)}
        self._table: _Numbers | None = None
        self._bags: Any = None
        if self._prior.order == 1 and not channel.mechanism.consistent:
            self._fill()

    def _dense(
        self, kind: str, vectors: ArrayLike | None, count: int | None
    ) -> tuple[_Numbers, list[str]]:
        """Return the numbers that are averaged, a row for each word, and their names."""
        space = self._channel.mechanism.space
        parts: list[_Numbers] = [np.empty((len(space), 0))]
        names: list[str] = []
        if kind != "counts":
            if vectors is None and not isinstance(space, Embedding):
                raise ParameterError("vectors must be given: the words of a graph have none")
            taken: Any = space.vectors if vectors is None else vectors  # type: ignore[union-attr]
            means = np.asarray(taken, dtype=np.float64)
            if means.ndim != 2 or len(means) != len(space):
                raise ParameterError(f"vectors must be of shape ({len(space)}, n)")
            parts.append(means)
            names += [f"mean {i}" for i in range(means.shape[1])]
        if kind != "means" and count is not None:
            parts.append(directions(self._channel, count, self._prior))
            names += [f"direction {i}" for i in range(count)]
        return np.hstack(parts), names

    @property
    def sparse(self) -> bool:
        """Whether features come as a sparse matrix."""
        return self._sparse

    @property
    def _middle(self) -> _Numbers:
        """The features of an unknown word."""
        return self._prior.frequencies @ self._columns

    def _fill(self) -> None:
        """Compute the rows to which `ChannelCore.rows_of` refers, in one or two passes over laws.

        For V words: V posterior means, V vectors of words that show themselves, and the vector of
        an unknown word; and the same for counts.
        """
        pi, count = self._prior.frequencies, len(self._columns)
        evidence, table = receiver.posterior_sums(self._channel._core, pi, self._columns)
        hidden = self._hidden(evidence)
        table = _over(table, evidence)
        table = table * (1 - hidden)[:, None] + np.outer(hidden, self._middle)
        self._table = np.vstack([table, self._columns, self._middle])
        if not self._sparse:
            return
        from scipy.sparse import csr_matrix, identity, vstack

        share = _over((1 - hidden)[:, None], evidence)[:, 0]
        blocks = []
        for ids, law in laws(self._channel):
            rows = pi[ids, None] * law * share
            blocks.append(_sparse(np.where(rows >= self._least, rows, 0.0)))
        bags = vstack(blocks, format="csc").T
        self._bags = vstack([bags, identity(count), csr_matrix((1, count))], format="csr")

    def _hidden(self, evidence: _Numbers) -> _Numbers:
        """Return how likely each output stands for a word that the space does not have."""
        unknown = self._prior.unknown
        if not unknown or self._channel.mechanism.oov != "random":
            return np.zeros(len(evidence))
        drawn = unknown * self._channel._core.unknown_law()
        return _over(drawn[:, None], drawn + (1 - unknown) * evidence)[:, 0]

    def __call__(self, texts: Iterable[str | None]) -> Any:
        """Return the features of released texts: float64, shape (texts, columns).

        A ``scipy.sparse`` matrix where it has the counts of all words. A text without words, and
        None, has zeros.

        Raises
        ------
        ParameterError
            A text of words none of which is an output. A word that is none, as two outputs around
            a hyphen may read, is left out.
        """
        given = ["" if text is None else text for text in texts]
        if self._table is None:
            with ThreadPoolExecutor(self._channel.mechanism.threads or cpu_count()) as pool:
                means, counts = zip(*pool.map(self._decoded, given), strict=True)
            dense = np.array(means)
            return _beside(dense, _sparse(np.array(counts))) if self._sparse else dense
        ids, lengths = self._channel._core.rows_of(given, self._prior.unknown > 0)
        found = row_means(self._table, ids, lengths)
        if not self._sparse:
            return found
        return _beside(found, _incidence(ids, lengths, self._bags.shape[0]) @ self._bags)

    def of_clear(self, texts: Iterable[str | None]) -> Any:
        """Return the same features of texts that were not privatised, of known words only.

        For a model that learned from releases and is used on texts of one's own. True vectors vary
        more than posterior means, so measure it: raw vectors or naive Bayes may do better.
        """
        flat, lengths = self._known(texts)
        found = row_means(self._columns, flat, lengths)
        if not self._sparse:
            return found
        return _beside(found, _incidence(flat, lengths, len(self._places)))

    @property
    def frequencies(self) -> _Numbers:
        """How often each word is written, by the prior: shape (V,)."""
        return self._prior.frequencies

    def counted(self, texts: Iterable[str | None]) -> Any:
        """Return how often each word of the space stands in texts, as they are: sparse (n, V)."""
        flat, lengths = self._known(texts)
        return _incidence(flat, lengths, len(self._places))

    def _known(self, texts: Iterable[str | None]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return the ids of texts' known words in a row, and how many each text has."""
        find, tokens = self._places.get, self._channel.mechanism.tokenize
        rows = [[find(word, -1) for word in tokens((text or "").lower())] for text in texts]
        ids = [[i for i in row if i >= 0] for row in rows]
        lengths = np.fromiter(map(len, ids), dtype=np.uint32, count=len(ids))
        flat = np.fromiter((i for row in ids for i in row), dtype=np.uint32, count=lengths.sum())
        return flat, lengths

    def _decoded(self, text: str) -> tuple[_Numbers, _Numbers]:
        try:
            posterior = self._channel.decode(text, self._prior)
        except ParameterError:
            # Outputs and punctuation that stand together may read as another word.
            words = [w for w in self._channel.mechanism.tokenize(text) if w in self._places]
            if not words:
                raise
            posterior = self._channel.decode(words, self._prior)
        counts = posterior.expected_counts()
        total = counts @ self._columns + posterior.unknown.sum() * self._middle
        return total / max(len(posterior), 1), counts

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the mechanism in place of the law, which is computed again where it is needed."""
        return {**self.__dict__, "_channel": self._channel.mechanism}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _channel=Channel.of(state["_channel"]))


def _incidence(ids: NDArray[np.uint32], lengths: NDArray[np.uint32], rows: int) -> Any:
    from scipy.sparse import csr_matrix

    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return csr_matrix((np.ones(len(ids)), ids.astype(np.int64), starts), (len(lengths), rows))


def _sparse(rows: _Numbers) -> Any:
    from scipy.sparse import csr_matrix

    return csr_matrix(rows)


def _beside(dense: _Numbers, bags: Any) -> Any:
    from scipy.sparse import hstack

    return hstack([_sparse(dense), bags], format="csr") if dense.shape[1] else bags
