"""Membership inference: was this text among those that a classifier learned from?"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fastdx.exceptions import ParameterError

__all__ = ["membership_inference"]

Labelled = tuple[Sequence[str], Sequence[Hashable]]
"""Texts, and the label of each."""


def _evidence(classifier: Any, texts: Labelled) -> NDArray[np.float64]:
    """What a classifier says of texts: the true label's probability first, the others sorted."""
    probabilities = np.asarray(classifier.predict_proba(list(texts[0])), dtype=np.float64)
    place = {label: i for i, label in enumerate(classifier.classes_)}
    of = np.array([place[label] for label in texts[1]])
    rows = np.arange(len(of))
    true = probabilities[rows, of]
    others = probabilities.copy()
    others[rows, of] = -1
    others = -np.sort(-others, axis=1)[:, : min(3, probabilities.shape[1] - 1)]
    loss = -np.log(np.maximum(true, 1e-12))
    return np.column_stack([true, loss, probabilities.argmax(axis=1) == of, others])


def membership_inference(
    target: Any,
    members: Labelled,
    others: Labelled,
    *,
    shadow: Any,
    shadow_members: Labelled,
    shadow_others: Labelled,
    seed: int = 0,
) -> float:
    """Measure how well an attacker tells the texts that a classifier has learned from.

    The attacker (Shokri et al. 2017, as TEM'21 section 5 uses it) trains a *shadow* classifier as
    the target was trained, on other texts, and from it learns what a classifier says of texts that
    it knows and of texts that it does not: by a network of two layers of 64. Then it is asked about
    the target's.

    Parameters
    ----------
    target, shadow : classifier
        With ``predict_proba(texts)`` and ``classes_``. Whatever privacy protects the target's
        training must protect the shadow's too.
    members, others : (texts, labels)
        Texts that the target learned from, as their authors wrote them, and such that it did not.
    shadow_members, shadow_others : (texts, labels)
        The same of the shadow.
    seed : int, optional
        Of the attacker's network.

    Returns
    -------
    float
        The probability that a member is ranked above another text (area under the ROC curve): 0.5
        is chance.
    """
    given = {
        "members": members,
        "others": others,
        "shadow_members": shadow_members,
        "shadow_others": shadow_others,
    }
    for name, pair in given.items():
        if not len(pair[0]) or len(pair[0]) != len(pair[1]):
            raise ParameterError(f"{name} must be texts and as many labels, at least one")
    known, unknown = _evidence(shadow, shadow_members), _evidence(shadow, shadow_others)
    network = make_pipeline(
        StandardScaler(), MLPClassifier((64, 64), max_iter=200, early_stopping=True,
                                        random_state=seed)
    )  # fmt: skip
    network.fit(np.vstack([known, unknown]), np.repeat([1, 0], [len(known), len(unknown)]))
    known, unknown = _evidence(target, members), _evidence(target, others)
    scores = network.predict_proba(np.vstack([known, unknown]))[:, 1]
    return float(roc_auc_score(np.repeat([1, 0], [len(known), len(unknown)]), scores))
