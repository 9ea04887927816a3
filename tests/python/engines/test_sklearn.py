"""scikit-learn against the real thing: pipelines, searches, columns, copies, its own checks."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

pytest.importorskip(
    "sklearn", reason="scikit-learn is not installed: pip install 'fastdx[sklearn]'"
)

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.validation import check_is_fitted

import fastdx
from fastdx.channel import Channel
from fastdx.engines.sklearn import ChannelNB, Privatizer
from helpers.swapped import TEXTS, WANTED


@pytest.fixture
def private(swap: dict[str, Any]) -> Privatizer:
    own = {"gamma": swap["gamma"], "oov": swap["oov"]}
    return Privatizer("tem", epsilon=swap["epsilon"], index=swap["index"], parameters=own)


# The checks of scikit-learn that give no numbers. For classes that take texts, `check_estimator`
# itself stops after the first.
CHECKS = """do_not_raise_errors_in_init_or_set_params estimator_cloneable estimator_repr
estimator_tags_renamed get_params_invariance mixin_order no_attributes_set_in_init
parameters_default_constructible set_params valid_tag_types estimator_sparse_array
estimator_sparse_matrix""".split()  # noqa: SIM905


@pytest.mark.parametrize("check", CHECKS)
def test_scikit_learns_own_checks(check: str) -> None:
    if not hasattr(estimator_checks, f"check_{check}"):
        pytest.skip(f"this scikit-learn has no check_{check}")
    getattr(estimator_checks, f"check_{check}")("Privatizer", Privatizer(epsilon=6.0))
    embedding = fastdx.Embedding(["a", "b"], [[0.0], [1.0]])
    judge = ChannelNB(Channel.of(fastdx.Tem(embedding, 1.0)))
    if "sparse" not in check and "default" not in check:
        getattr(estimator_checks, f"check_{check}")("ChannelNB", judge)


def test_shapes_are_kept(private: Privatizer) -> None:
    assert private.fit_transform(TEXTS) == WANTED
    array = private.fit_transform(np.array(TEXTS, dtype=object))
    assert isinstance(array, np.ndarray) and array.tolist() == WANTED
    series = private.fit_transform(pd.Series(TEXTS, index=list("abcde"), name="text"))
    assert series.index.tolist() == list("abcde") and series.name == "text"
    assert series["a"] == WANTED[0] and series.isna().tolist() == [w is None for w in WANTED]
    table = np.array([["tea", "king"], [None, "queen"]], dtype=object)
    assert private.fit_transform(table).tolist() == [["coffee", "queen"], [None, "king"]]
    assert private.n_features_in_ == 2
    frame = pl.DataFrame({"a": ["tea"], "b": ["king"]})
    assert private.fit_transform(frame).rows() == [("coffee", "queen")]
    for bad in ("tea", np.zeros((2, 2)), np.full((1, 1, 1), "tea"), [3]):
        with pytest.raises(fastdx.InputTypeError):
            private.fit_transform(bad)


def test_copies(private: Privatizer) -> None:
    params = private.get_params()
    assert params["epsilon"] == 1e4 and clone(private).get_params() == params
    private.fit(TEXTS)
    for copy in (clone(private).fit(TEXTS), pickle.loads(pickle.dumps(private))):
        assert copy.transform(TEXTS) == WANTED
    assert "epsilon" in repr(private)
    check_is_fitted(clone(private))  # it needs no fit
    assert get_tags(private).non_deterministic


def test_pickles_hold_no_index_and_guarantees_are_of_now(private: Privatizer) -> None:
    big = Privatizer(epsilon=6.0).fit(["tea"])
    assert len(pickle.dumps(big)) < 2000
    assert big.guarantee.epsilon == 6.0
    assert big.set_params(epsilon=2.0).guarantee.epsilon == 2.0


def test_one_column_and_several(private: Privatizer) -> None:
    frame = pd.DataFrame({"a": ["tea", "king"], "b": ["queen", "coffee"], "n": [1, 2]})
    several = ColumnTransformer([("words", private, ["a", "b"])], remainder="passthrough")
    assert several.fit_transform(frame).tolist() == [["coffee", "king", 1], ["queen", "tea", 2]]
    names = ["words__a", "words__b", "remainder__n"]
    assert several.get_feature_names_out().tolist() == names
    one = ColumnTransformer([("words", make_pipeline(private, CountVectorizer()), "a")],
                            sparse_threshold=0)  # fmt: skip
    assert np.asarray(one.fit_transform(frame)).tolist() == [[1, 0], [0, 1]]
    assert one.get_feature_names_out().tolist() == ["words__coffee", "words__queen"]
    assert private.fit(frame[["a"]]).get_feature_names_out().tolist() == ["a"]
