"""scikit-learn: a transformer that replaces words, and naive Bayes of private texts.

`fastdx.channel.features.TextFeatures` in a ``FunctionTransformer`` makes features of private texts.

Extra: ``fastdx[sklearn]``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.validation import check_is_fitted, validate_data

from fastdx._core import Guarantee
from fastdx._shared.laws import laws
from fastdx.channel import Channel, NgramPrior
from fastdx.channel.law import by_rank
from fastdx.counts.update import Update
from fastdx.engines._recipe import Recipe, no_text
from fastdx.exceptions import InputTypeError, ParameterError

__all__ = ["ChannelNB", "Privatizer"]

ROUNDS = 30
"""Rounds of EM."""


class _TakesTexts(BaseEstimator):  # type: ignore[misc]
    """An estimator whose X are texts, among which some may be missing."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.allow_nan = True
        tags.input_tags.two_d_array = False
        return tags


# `set_output` would make a frame of a list of texts, of which estimators of texts see the columns'
# names alone.
class Privatizer(  # type: ignore[call-arg]
    OneToOneFeatureMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    _TakesTexts,
    auto_wrap_output_keys=None,
):
    """Replaces the words of texts: a transformer without a state, whose every call draws afresh.

    Parameters
    ----------
    mechanism, epsilon, index : str, float, str or os.PathLike, optional
        The mechanism: see ``docs/engines.md``.
    parameters : mapping, optional
        The mechanism's other parameters: ``{"cover": 40, "exclude": "offensive"}``.

    Notes
    -----
    The output is of the kind and shape of the input; there is no ``set_output``. Cross-validation
    draws the same texts again in every fold: look at its results, but a release of them costs the ε
    of all draws.
    """

    def __init__(
        self,
        mechanism: str = "tem",
        *,
        epsilon: float | None = None,
        index: str | PathLike[str] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self.mechanism = mechanism
        self.epsilon = epsilon
        self.index = index
        self.parameters = parameters

    def _recipe(self) -> Recipe:
        return Recipe.of(self.epsilon, self.mechanism, self.index, **(self.parameters or {}))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one call of `transform`, with the present parameters."""
        return self._recipe().mechanism().guarantee

    def fit(self, X: Any, y: Any = None) -> Privatizer:
        """Check the parameters, and store the names of the columns; nothing is learnt."""
        self._recipe()
        if len(getattr(X, "shape", ())) == 2:
            validate_data(self, X, skip_check_array=True)
        else:
            self.n_features_in_ = 1
        return self

    def transform(self, X: Any) -> Any:
        """Replace the words.

        Parameters
        ----------
        X : iterable of str, or frame or array of shape (rows, columns)
            The texts; None and NaN stay. The result is of the same kind.
        """
        shape = getattr(X, "shape", ())
        if isinstance(X, str) or len(shape) > 2:
            raise InputTypeError("X must be texts, of one dimension or two")
        if len(shape) < 2 or isinstance(X, np.ndarray):
            return self._recipe().privatize(X)
        with no_text():
            return self._recipe().mechanism().privatize_frame(X, list(X.columns))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit, tags.non_deterministic = False, True
        return tags


def counted(channel: Channel, texts: Iterable[str | None]) -> Any:
    """Return how often each word of the space stands in texts, as they are: sparse (n, V)."""
    m = channel.mechanism
    known = CountVectorizer(vocabulary=m.space.words, dtype=np.float64,
                            analyzer=lambda text: m.tokenize((text or "").lower()))  # fmt: skip
    return known.transform(texts)


class ChannelNB(ClassifierMixin, _TakesTexts):  # type: ignore[misc]
    """Naive Bayes of private texts, through the law of the mechanism.

    Of each class it learns which words were *written*: the shares that explain the outputs, by EM.
    So it judges private texts by what each class releases, and texts of one's own by what each
    class writes (`predict_clear`). Post-processing: it costs no privacy.

    Parameters
    ----------
    channel : Channel
        The law of the mechanism that released the texts. Not of one with ``consistent=``.
    prior : array_like of float, shape (V,), 'rank', or NgramPrior, optional
        How often each word is written, by default 1/(rank + 2.7): where EM begins, and, V times,
        what is added to the counts of each class.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    shares_ : ndarray of float64, shape (classes, V)
        Which words each class writes.
    released_ : ndarray of float64, shape (classes, V)
        Which it releases.

    Notes
    -----
    Holds 4·V·m bytes while it fits, for m different outputs in the texts. Words are taken as
    independent given the class, as naive Bayes does; a word that is no output is left out.
    """

    def __init__(self, channel: Channel, prior: ArrayLike | str | NgramPrior | None = None) -> None:
        self.channel = channel
        self.prior = prior

    def fit(self, X: Any, y: Any) -> ChannelNB:
        """Learn from private texts, releases of the channel's mechanism, with a label each."""
        if self.channel.mechanism.consistent:
            raise ParameterError("channel must be of a mechanism without consistent=")
        texts, labels = list(X), np.asarray(y)
        if len(texts) != len(labels):
            raise ParameterError(f"y must be {len(texts)} labels, got {len(labels)}")
        counts = counted(self.channel, texts)
        self.classes_, of = np.unique(labels, return_inverse=True)
        sums = np.asarray(np.vstack([counts[of == c].sum(axis=0) for c in range(of.max() + 1)]))
        outputs = np.flatnonzero(sums.any(axis=0))
        prior = by_rank(self.prior, len(self.channel.mechanism.space))
        update = Update(self.channel._core, outputs, prior, unknown=0.0, memory=sys.maxsize)
        self.shares_ = update.after(ROUNDS, sums[:, outputs], smooth=len(prior))
        self.released_ = np.zeros_like(self.shares_)
        for ids, law in laws(self.channel._core, len(prior)):
            self.released_ += self.shares_[:, ids] @ law
        self._log_prior = np.log(np.bincount(of) / len(of))
        self.n_features_in_ = 1
        return self

    def _likeliest(self, X: Any, shares: Any) -> Any:
        # An output that no class can release says nothing of the class.
        logs = np.log(np.maximum(shares, 1e-300))
        scores = counted(self.channel, X) @ logs.T + self._log_prior
        return self.classes_[scores.argmax(axis=1)]

    def predict(self, X: Any) -> Any:
        """Return the likeliest class of each private text."""
        check_is_fitted(self)
        return self._likeliest(X, self.released_)

    def predict_clear(self, X: Any) -> Any:
        """Return the likeliest class of each text as it was written, by its known words."""
        check_is_fitted(self)
        return self._likeliest(X, self.shares_)
