"""Membership inference: did a classifier learn from this text?"""

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

Labelled = tuple[Sequence[str], Sequence[Hashable]]
"""Texts and their labels."""


def _evidence(classifier: Any, texts: Labelled) -> NDArray[np.float64]:
    """Return features of a classifier's answers to texts.

    They are the true label's probability, its loss, whether it is the answer, and the three largest
    other probabilities.
    """
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
    """Measure how well an attacker recognises the texts from which a classifier learned.

    The attacker (Shokri et al. 2017, as used in TEM'21 section 5) trains a *shadow* classifier on
    other texts in the same way as the target. A network of two layers of 64 units learns how the
    shadow's answers differ between its training texts and other texts. It then judges the target's
    answers.

    `target` and `shadow` have ``predict_proba(texts)`` and ``classes_``; the training of both must
    have the same privacy protection. Texts come with their labels, as their authors wrote them:
    `members` and `shadow_members` those from which a classifier learned, the `others` any. `seed`
    is that of the attacker's network. Returns the probability that a member is ranked above another
    text (area under the ROC curve): 0.5 is chance.
    """
    given = {"members": members, "others": others, "shadow_members": shadow_members,
             "shadow_others": shadow_others}  # fmt: skip
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
