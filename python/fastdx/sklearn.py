"""scikit-learn: a transformer that replaces words (extra ``fastdx[sklearn]``)."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, validate_data

from fastdx._worker import Recipe, no_text, privatize_values
from fastdx.exceptions import InputTypeError

__all__ = ["Privatizer"]


class Privatizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Replaces the words of texts: a transformer without a state, whose every call draws afresh.

    Parameters
    ----------
    mechanism : str, optional
        A name in `fastdx.MECHANISMS`.
    epsilon : float
        ε per unit of distance.
    index : str or os.PathLike, optional
        A file that ``Tem.save`` or ``fastdx index build`` wrote, mapped once a process; the
        built-in words if left out.
    parameters : mapping, optional
        The mechanism's other parameters: ``{"cover": 40, "exclude": "offensive"}``.

    Attributes
    ----------
    guarantee_ : Guarantee
        What is proved, per call of `transform`.
    n_features_in_ : int
        Columns seen by `fit`; 1 for a list of texts.
    feature_names_in_ : ndarray of str
        Their names, if they have any.

    Notes
    -----
    What comes out has the shape that went in: a list of texts, an array or a Series for what takes
    texts (``TfidfVectorizer``), a frame for a frame. Cross-validation draws the same texts again in
    every fold: that is for you to see, and to be released only at the price of all the draws.

    Examples
    --------
    >>> from fastdx.sklearn import Privatizer
    >>> private = Privatizer(epsilon=6.0).fit_transform(["A cup of tea, please.", None])
    >>> private[0].count(","), private[1]
    (1, None)
    """

    def __init__(
        self,
        mechanism: str = "tem",
        *,
        epsilon: float = 3.0,
        index: str | PathLike[str] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self.mechanism = mechanism
        self.epsilon = epsilon
        self.index = index
        self.parameters = parameters

    def fit(self, X: Any, y: Any = None) -> Privatizer:
        """Check the parameters, and remember the columns' names; nothing is learnt.

        Parameters
        ----------
        X : iterable of str, or frame or array of shape (rows, columns)
            The texts.
        y : ignored
            There because pipelines give it.

        Raises
        ------
        ParameterError
            A parameter outside its domain.
        MissingFileError, CorruptFileError
            The index.
        """
        self.guarantee_ = self._recipe().mechanism().guarantee
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
            The texts; None and NaN stay.

        Returns
        -------
        list, ndarray, Series or frame
            As given.

        Raises
        ------
        InputTypeError
            Something that is not text.
        """
        mechanism = self._recipe().mechanism()
        if _is_table(X) and hasattr(self, "n_features_in_"):
            validate_data(self, X, reset=False, skip_check_array=True)
        with no_text():
            if not isinstance(X, np.ndarray) and _is_table(X):
                return mechanism.privatize_frame(X, list(X.columns))
            if np.ndim(X) > 2 if isinstance(X, np.ndarray) else isinstance(X, str):
                raise InputTypeError("X must be texts: one or two dimensions, not a single text")
            return privatize_values(mechanism, X)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the columns, which stay as they are."""
        return _check_feature_names_in(self, input_features)

    def _recipe(self) -> Recipe:
        return Recipe.of(self.epsilon, self.mechanism, self.index, **(self.parameters or {}))

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.allow_nan = True
        tags.input_tags.two_d_array = False
        tags.requires_fit, tags.non_deterministic = False, True
        return tags


def _is_table(X: Any) -> bool:
    return len(getattr(X, "shape", ())) == 2
