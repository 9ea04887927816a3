"""scikit-learn: a transformer that replaces words (extra ``fastdx[sklearn]``)."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._set_output import _wrap_data_with_container
from sklearn.utils.validation import _check_feature_names_in, validate_data

from fastdx._core import Guarantee
from fastdx._engines.recipe import Recipe, no_text, privatize_values
from fastdx.exceptions import InputTypeError

__all__ = ["Privatizer"]


class _Texts:
    """The methods. scikit-learn wraps those that `Privatizer` itself has: `set_output` would make a
    list of texts a frame, of which what takes texts sees the names of the columns only."""

    mechanism: str
    epsilon: float | None
    index: str | PathLike[str] | None
    parameters: Mapping[str, Any] | None

    def _recipe(self) -> Recipe:
        return Recipe.of(self.epsilon, self.mechanism, self.index, **(self.parameters or {}))

    def fit(self, X: Any, y: Any = None) -> Any:
        """Check the parameters, and remember the columns' names; nothing is learnt.

        Parameters
        ----------
        X : iterable of str, or frame or array of shape (rows, columns)
            The texts.

        Raises
        ------
        ParameterError, MissingFileError, CorruptFileError
            A parameter outside its domain; the index.
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
            The texts; None and NaN stay. What is not text is an `InputTypeError`. Returned is the
            same kind of thing.
        """
        mechanism = self._recipe().mechanism()
        if _is_table(X) and hasattr(self, "n_features_in_"):
            validate_data(self, X, reset=False, skip_check_array=True)
        if isinstance(X, str) or len(getattr(X, "shape", ())) > 2:
            raise InputTypeError("X must be texts, of one dimension or two")
        with no_text():
            if not _is_table(X):
                return privatize_values(mechanism, X)
            if isinstance(X, np.ndarray):
                new = privatize_values(mechanism, X)
            else:
                new = mechanism.privatize_frame(X, list(X.columns))
        return _wrap_data_with_container("transform", new, X, self)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Do both; see `transform`."""
        return self.fit(X, y).transform(X)


class Privatizer(_Texts, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Replaces the words of texts: a transformer without a state, whose every call draws afresh.

    Parameters
    ----------
    mechanism : str, optional
        A name in `fastdx.MECHANISMS`.
    epsilon : float, optional
        ε per unit of distance. Without it, ``Tem.recommended()``.
    index : str or os.PathLike, optional
        A file that ``Tem.save`` or ``fastdx index build`` wrote, mapped once a process; the
        built-in words if left out.
    parameters : mapping, optional
        The mechanism's other parameters: ``{"cover": 40, "exclude": "offensive"}``.

    Attributes
    ----------
    n_features_in_, feature_names_in_ : int, ndarray of str
        Columns seen by `fit` (1 for a list of texts), and their names, if they have any.

    Notes
    -----
    What comes out has the shape that went in. Cross-validation draws the same texts again in every
    fold: that is for you to see, and to be released only at the price of all the draws.

    Examples
    --------
    >>> from fastdx.sklearn import Privatizer
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
        """Keep the parameters; `fit` checks them."""
        self.mechanism = mechanism
        self.epsilon = epsilon
        self.index = index
        self.parameters = parameters

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the columns, which stay as they are."""
        return _check_feature_names_in(self, input_features)

    @property
    def guarantee(self) -> Guarantee:
        """What is proved of one call of `transform`, with the parameters as they are now."""
        return self._recipe().mechanism().guarantee

    def __sklearn_tags__(self) -> Any:
        """Say that it takes texts, needs no `fit`, and draws."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.allow_nan = True
        tags.input_tags.two_d_array = False
        tags.requires_fit, tags.non_deterministic = False, True
        return tags


def _is_table(X: Any) -> bool:
    return len(getattr(X, "shape", ())) == 2
