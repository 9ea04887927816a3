"""scikit-learn: transformers that replace words, and that make features of private texts.

Extra: ``fastdx[sklearn]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._set_output import _wrap_data_with_container
from sklearn.utils.validation import check_is_fitted, validate_data

from fastdx._core import Guarantee
from fastdx._shared.missing import is_missing
from fastdx.channel import Channel, NgramPrior
from fastdx.channel.features import TextFeatures, columns_of, counted, laws, prior_of, shares_behind
from fastdx.engines._recipe import Recipe, no_text, privatize_values
from fastdx.exceptions import InputTypeError, ParameterError

__all__ = ["ChannelNB", "PosteriorFeatures", "Privatizer"]


class _TakesTexts(BaseEstimator):  # type: ignore[misc]
    """An estimator whose X are texts, among which some may be missing."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.allow_nan = True
        tags.input_tags.two_d_array = False
        return tags


class _Private:
    """The methods of `Privatizer` that scikit-learn would wrap if the class itself had them.

    With `set_output`, the wrapper would make a frame of a list of texts, and an estimator of texts
    would see only the names of its columns.
    """

    mechanism: str
    epsilon: float | None
    index: str | PathLike[str] | None
    parameters: Mapping[str, Any] | None

    def _recipe(self) -> Recipe:
        return Recipe.of(self.epsilon, self.mechanism, self.index, **(self.parameters or {}))

    def fit(self, X: Any, y: Any = None) -> Any:
        """Check the parameters, and store the names of the columns; nothing is learnt.

        Parameters
        ----------
        X : iterable of str, or frame or array of shape (rows, columns)
            The texts.
        """
        self._recipe()
        if _is_table(X):
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
        mechanism = self._recipe().mechanism()
        if _is_table(X) and hasattr(self, "n_features_in_"):
            validate_data(self, X, reset=False, skip_check_array=True)
        if isinstance(X, str) or len(getattr(X, "shape", ())) > 2:
            raise InputTypeError("X must be texts, of one dimension or two")
        with no_text():
            if _is_table(X) and not isinstance(X, np.ndarray):
                new = mechanism.privatize_frame(X, list(X.columns))
            else:
                new = privatize_values(mechanism, X)
        return _wrap_data_with_container("transform", new, X, self) if _is_table(X) else new

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Do both; see `transform`."""
        return self.fit(X, y).transform(X)


class Privatizer(_Private, OneToOneFeatureMixin, TransformerMixin, _TakesTexts):  # type: ignore[misc]
    """Replaces the words of texts: a transformer without a state, whose every call draws afresh.

    Parameters
    ----------
    mechanism, epsilon, index : str, float, str or os.PathLike, optional
        The mechanism: see ``docs/engines.md``.
    parameters : mapping, optional
        The mechanism's other parameters: ``{"cover": 40, "exclude": "offensive"}``.

    Attributes
    ----------
    n_features_in_, feature_names_in_ : int, ndarray of str
        Columns seen by `fit` (1 for a list of texts), and their names, if they have any.

    Notes
    -----
    The output has the shape of the input. Cross-validation draws the same texts again in every
    fold: look at its results, but a release of them costs the ε of all draws.

    Examples
    --------
    >>> from fastdx.engines.sklearn import Privatizer
    >>> private = Privatizer().fit_transform(["A cup of tea, please.", None])
    >>> private[0].count(","), private[1]
    (1, None)
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

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one call of `transform`, with the present parameters."""
        return self._recipe().mechanism().guarantee

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit, tags.non_deterministic = False, True
        return tags


class PosteriorFeatures(TransformerMixin, _TakesTexts):  # type: ignore[misc]
    """Expected features of private texts, by the law of the mechanism.

    Released words stand for other words with known probabilities. Their vectors mislead, and their
    posterior means do not: of all that can be made of a release, nothing is nearer to the written
    words' vectors in the mean square. This is post-processing: it costs no privacy.

    Parameters
    ----------
    channel : Channel
        The law of the mechanism that released the texts: `Channel.of`, `Channel.load`.
    prior : array_like of float, shape (V,), 'rank', or NgramPrior, optional
        How often each word is written, by default 1/(rank + 2.7) in the order of the space. With an
        NgramPrior of order 2 or 3 each text is decoded as a whole, about a millisecond a word.
    kind : {'means', 'counts'}, optional
        The mean over a text's words of the posterior mean of each one's vector; or how often each
        word stands in the text, in expectation, as a sparse matrix. There, a word is left out at a
        place where its probability is below 0.001.

    Attributes
    ----------
    features_ : TextFeatures
        What computes them, with its table; `fit` makes it, and learns nothing of the texts.
    n_features_in_ : int
        1.

    Examples
    --------
    >>> from fastdx import Embedding, Tem
    >>> from fastdx.channel import Channel
    >>> from fastdx.engines.sklearn import PosteriorFeatures
    >>> e = Embedding(["tea", "coffee", "law"], [[0.0], [1.0], [9.0]])
    >>> channel = Channel.of(Tem(e, 2.0))
    >>> PosteriorFeatures(channel, [1, 1, 1]).fit_transform(["tea tea", "law"]).round(2).tolist()
    [[0.27], [8.99]]
    """

    def __init__(
        self,
        channel: Channel,
        prior: ArrayLike | str | NgramPrior | None = None,
        kind: str = "means",
    ) -> None:
        self.channel = channel
        self.prior = prior
        self.kind = kind

    def fit(self, X: Any, y: Any = None) -> PosteriorFeatures:
        """Compute the table of all outputs: a pass over the law, of seconds to a minute.

        Parameters
        ----------
        X : iterable of str
            Private texts; only that they are texts is checked.
        """
        _texts(X)
        self.features_ = TextFeatures(self.channel, self.prior, self.kind)
        self.n_features_in_ = 1
        return self

    def transform(self, X: Any) -> Any:
        """Return the features of releases of the channel's mechanism, as `TextFeatures` does."""
        check_is_fitted(self)
        with no_text():
            return self.features_(_texts(X))

    def of_clear(self, X: Any) -> Any:
        """Return the same features of texts as they were written, by their known words.

        For a model that learned from private texts and is used on texts of one's own. True vectors
        vary more than posterior means, so measure it: raw vectors or `ChannelNB` may do better.
        """
        check_is_fitted(self)
        return self.features_.of_clear(_texts(X))

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the columns: ``mean 0``, ``count tea``."""
        check_is_fitted(self)
        return np.array(self.features_.names, dtype=object)


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
        How often each word is written, by default 1/(rank + 2.7): where EM begins, and what is
        added.
    rounds : int, optional
        Rounds of EM.
    alpha : float, optional
        Counts added to each class: alpha·V in all, as the prior has them.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    class_log_prior_ : ndarray of float64, shape (classes,)
        ln of how often each is.
    shares_ : ndarray of float64, shape (classes, V)
        Which words each class writes.
    released_ : ndarray of float64, shape (classes, V)
        Which it releases.

    Notes
    -----
    Holds 4·V·m bytes while it fits, for m different outputs in the texts. Words are taken as
    independent given the class, as naive Bayes does; a word that is no output is left out.

    Examples
    --------
    >>> from fastdx import Embedding, Tem
    >>> from fastdx.channel import Channel
    >>> from fastdx.engines.sklearn import ChannelNB
    >>> e = Embedding(["tea", "coffee", "law"], [[0.0], [1.0], [9.0]])
    >>> judge = ChannelNB(Channel.of(Tem(e, 2.0)))
    >>> judge.fit(["tea coffee", "law law"], ["drinks", "courts"]).predict(["coffee"]).tolist()
    ['drinks']
    """

    def __init__(
        self,
        channel: Channel,
        prior: ArrayLike | str | NgramPrior | None = None,
        *,
        rounds: int = 30,
        alpha: float = 1.0,
    ) -> None:
        self.channel = channel
        self.prior = prior
        self.rounds = rounds
        self.alpha = alpha

    def fit(self, X: Any, y: Any) -> ChannelNB:
        """Learn from private texts.

        Parameters
        ----------
        X : iterable of str
            Releases of the channel's mechanism.
        y : array_like, shape (texts,)
            A label each.
        """
        if self.rounds < 1 or not self.alpha > 0:
            raise ParameterError("rounds must be at least 1 and alpha positive")
        if self.channel.mechanism.consistent:
            raise ParameterError("channel must be of a mechanism without consistent=")
        texts, labels = _texts(X), np.asarray(y)
        if len(texts) != len(labels):
            raise ParameterError(f"y must be {len(texts)} labels, got {len(labels)}")
        words = len(self.channel.mechanism.space)
        counts = counted(self.channel, texts)
        self.classes_, of = np.unique(labels, return_inverse=True)
        sums = np.array([counts[of == c].sum(axis=0).A1 for c in range(len(self.classes_))])
        outputs = np.flatnonzero(sums.any(axis=0))
        smooth = self.alpha * words * prior_of(self.channel, self.prior).frequencies
        columns = columns_of(self.channel, outputs)
        self.shares_ = shares_behind(columns, sums[:, outputs], smooth, self.rounds)
        self.released_ = np.zeros_like(self.shares_)
        for ids, law in laws(self.channel):
            self.released_ += self.shares_[:, ids] @ law
        self.class_log_prior_ = np.log(np.bincount(of) / len(of))
        self.n_features_in_ = 1
        return self

    def _scores(self, X: Any, shares: Any) -> Any:
        check_is_fitted(self)
        # An output that no class can release says nothing of the class.
        logs = np.log(np.maximum(shares, 1e-300))
        return counted(self.channel, _texts(X)) @ logs.T + self.class_log_prior_

    def predict(self, X: Any) -> Any:
        """Return the likeliest class of each private text."""
        return self.classes_[self._scores(X, self.released_).argmax(axis=1)]

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of every class for each private text: shape (texts, classes)."""
        scores = self._scores(X, self.released_)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)

    def predict_clear(self, X: Any) -> Any:
        """Return the likeliest class of each text as it was written, by its known words."""
        return self.classes_[self._scores(X, self.shares_).argmax(axis=1)]


def _texts(X: Any) -> list[str | None]:
    """Return texts as a list, with None for missing ones."""
    if isinstance(X, str) or len(getattr(X, "shape", (1,))) != 1:
        raise InputTypeError("X must be texts, of one dimension")
    found = [None if is_missing(text) else text for text in X]
    for text in found:
        if text is not None and not isinstance(text, str):
            raise InputTypeError(f"X must be texts, and one is a {type(text).__name__}")
    return found


def _is_table(X: Any) -> bool:
    return len(getattr(X, "shape", ())) == 2
