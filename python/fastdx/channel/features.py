"""Numbers that a classifier learns from: the expectation of a text's features given its release.

If the prior knows no history, every word has its own posterior: a table holds them, and a text's
features are a mean of its rows. Otherwise each text goes through `Channel.decode`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx._core import NgramPrior
from fastdx._shared.checks import check_type
from fastdx.channel.law import Channel, by_rank
from fastdx.channel.posterior import vectors_of
from fastdx.exceptions import ParameterError

_Numbers = NDArray[np.float64]
_Ids = NDArray[np.integer[Any]]


def means_of(table: _Numbers, rows: Sequence[_Ids]) -> _Numbers:
    """Return the mean of some rows for each text; zeros for one without words."""
    nothing = np.zeros(table.shape[1])
    means = [table[ids].mean(axis=0) if len(ids) else nothing for ids in rows]
    return np.array(means).reshape(len(rows), table.shape[1])


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
    """

    def __init__(self, channel: Channel, prior: ArrayLike | str | NgramPrior | None = None) -> None:
        check_type("channel", channel, Channel)
        self._vectors, space = vectors_of(channel.mechanism), channel.mechanism.space
        if not isinstance(prior, NgramPrior):
            prior = NgramPrior.of_frequencies(space, by_rank(prior, len(space)))
        self._channel, self._prior = channel, prior
        self._table: _Numbers | None = None
        if self._prior.order == 1 and not channel.mechanism.consistent:
            self._table = self._made_table()

    def _made_table(self) -> _Numbers:
        """Return a row for each number that `ChannelCore.observed` gives, in one pass.

        For V words: what V outputs tell, V words that show themselves, and an unknown word.
        """
        evidence, means, pi, vectors = self._channel._received(self._prior)
        middle, unknown = pi @ vectors, self._prior.unknown
        if unknown and self._channel.mechanism.oov == "random":
            # How likely each output stands for a word that the space does not have.
            drawn = unknown * self._channel._core.unknown_law()
            every = drawn + (1 - unknown) * evidence
            hidden = np.divide(drawn, every, out=np.zeros_like(every), where=every > 0)[:, None]
            means = means * (1 - hidden) + hidden * middle
        return np.vstack([means, vectors, middle])

    def __call__(self, texts: Iterable[str | None]) -> _Numbers:
        """Return the means of released texts: float64, shape (texts, n).

        A text without words, and None, has zeros.

        Raises
        ------
        ParameterError
            A text of words none of which is an output. A word that is none, as two outputs around
            a hyphen may read, is left out.
        """
        given = ["" if text is None else text for text in texts]
        if self._table is None:
            with ThreadPoolExecutor(self._channel.mechanism.threads or cpu_count()) as pool:
                return np.array(list(pool.map(self._decoded, given))).reshape(
                    len(given), self._vectors.shape[1]
                )
        flat, lengths = self._channel._core.observed(given, True)
        rows = np.split(flat, np.cumsum(lengths)[:-1]) if given else []
        if not self._prior.unknown:
            # Nothing is known of unknown words.
            for at, ids in enumerate(rows):
                rows[at] = ids[ids < len(self._table) - 1]
                if len(ids) and not len(rows[at]):
                    raise ParameterError(f"texts must be releases of this mechanism, got at {at} "
                                         "one of unknown words")  # fmt: skip
        return means_of(self._table, rows)

    def of_clear(self, texts: Iterable[str | None]) -> _Numbers:
        """Return the same features of texts that were not privatised, of known words only.

        For a model that learned from releases and is used on texts of one's own. True vectors vary
        more than posterior means, so measure it: raw vectors or naive Bayes may do better.
        """
        mechanism = self._channel.mechanism
        places = {word: i for i, word in enumerate(mechanism.space.words)}
        tokens = (mechanism.tokenize((text or "").lower()) for text in texts)
        rows = [np.array([places[w] for w in found if w in places], int) for found in tokens]
        return means_of(self._vectors, rows)

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
        if not len(posterior):
            return np.zeros(self._vectors.shape[1])
        mean: _Numbers = posterior.means.mean(axis=0)
        return mean
