"""What models give away of the texts that they learned from.

The auditor of Song and Shmatikov (2019) asks a next-word model for the rank of every next word in a
user's texts. It learns the typical ranks of members from a shadow model, whose members it knows.
Membership inference (Shokri et al. 2017) does the same with the answers of a classifier.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score, roc_auc_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fastdx._core import Embedding, WordGraph
from fastdx.exceptions import ParameterError
from fastdx.lab.attacks import known_runs

_Run = NDArray[np.uint32]

Users = Sequence[Sequence[_Run]]
"""The runs of ids of every user, from `runs_of`."""

EDGES = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096])
"""The edges of the classes in which ranks are counted."""


class UserAudit(NamedTuple):
    """The result of an audit."""

    auc: float
    """The probability that a member is ranked above another user: 0.5 is chance."""
    precision: float
    """The share of true members among the users that the auditor calls members."""
    recall: float
    """The share of the true members that the auditor calls members."""
    accuracy: float
    """The share of the users whose membership the auditor judges rightly."""


class NextWord:
    """A next-word model that ranks words by how often they followed, then by frequency.

    It is a minimal next-word model; the paper uses an LSTM. It memorises the word pairs of its
    users, and an auditor detects this. It learns from texts as runs of ids of adjacent words;
    `words` is the size of the vocabulary.
    """

    def __init__(self, runs: Iterable[_Run], words: int) -> None:
        """Count pairs of words."""
        counts = np.zeros(words)
        pairs: dict[int, Counter[int]] = defaultdict(Counter)
        for run in runs:
            np.add.at(counts, run, 1)
            for word, following in pairwise(run.tolist()):
                pairs[word][following] += 1
        # 1 is the most frequent word.
        self._place = np.argsort(np.argsort(-counts, kind="stable")) + 1
        self._after = {
            word: {y: rank for rank, (y, _) in enumerate(
                sorted(following.items(), key=lambda found: (-found[1], found[0])), 1)}
            for word, following in pairs.items()
        }  # fmt: skip

    def ranks_of(self, runs: Sequence[_Run]) -> NDArray[np.int64]:
        """Return the rank, from 1, of every word of the runs given the previous one.

        Words never seen after the previous word rank by frequency, after all words seen there.
        """
        found = []
        for word, y in (pair for run in runs for pair in pairwise(run.tolist())):
            after = self._after.get(word, {})
            found.append(after.get(y) or len(after) + self._place[y])
        return np.array(found, dtype=np.int64)


def runs_of(space: Embedding | WordGraph, texts: Iterable[str]) -> list[_Run]:
    """Return the runs of adjacent known words in the texts, as ids."""
    return list(known_runs(space, (text.lower() for text in texts)))


def _evidence(model: Any, runs: Sequence[_Run]) -> NDArray[np.float64]:
    """Return the share of a user's next words in each class of ranks."""
    ranks = model.ranks_of(runs)
    if not len(ranks):
        return np.zeros(len(EDGES))
    return np.bincount(np.searchsorted(EDGES, ranks, side="right") - 1, minlength=len(EDGES)) / len(
        ranks
    )


def audit_users(
    plain: Users,
    private: Users,
    members: NDArray[np.bool_],
    target: NDArray[np.bool_],
    words: int,
    *,
    learn: Callable[[Iterable[_Run], int], Any] = NextWord,
) -> UserAudit:
    """Train a target and a shadow model on private texts of their members; audit the target.

    This is the audit of Song and Shmatikov (2019, "Auditing Data Provenance in Text-Generation
    Models"). The model counts pairs of words (`NextWord`); the judge is a logistic regression.

    Parameters
    ----------
    plain, private : sequence of users' runs of ids
        The texts that users wrote, with which the auditor queries the models, and the private texts
        from which the models learn.
    members : ndarray of bool, shape (users,)
        True for users from whose texts a model learns.
    target : ndarray of bool, shape (users,)
        True for users of the target, False for users of the shadow.
    words : int
        The size of the vocabulary.
    learn : callable, optional
        A function from runs and the number of words to a next-word model, whose method
        ``ranks_of(runs)`` returns the ranks of next words from 1. By default `NextWord`.

    Raises
    ------
    ParameterError
        The arguments do not have one entry per user, or all or no users of the target or of the
        shadow are members.
    """
    if not len(plain) == len(private) == len(members) == len(target):
        raise ParameterError("plain, private, members and target must be one for each user")
    found = []
    for name, world in (("shadow", ~target), ("target", target)):
        if len(np.unique(members[world])) < 2:
            raise ParameterError(f"members must be some and not all of the {name}'s users")
        model = learn(
            (run for i in np.flatnonzero(world & members).tolist() for run in private[i]), words
        )
        users = np.flatnonzero(world).tolist()
        found.append((np.array([_evidence(model, plain[i]) for i in users]), members[users]))
    (known, truth), (asked, hidden) = found
    judge = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(known, truth)
    said = judge.predict(asked)
    return UserAudit(
        float(roc_auc_score(hidden, judge.predict_proba(asked)[:, 1])),
        float(precision_score(hidden, said, zero_division=0.0)),
        float(recall_score(hidden, said)),
        float((said == hidden).mean()),
    )


Labelled = tuple[Sequence[str], Sequence[Hashable]]
"""Texts and their labels."""


def _answers(classifier: Any, texts: Labelled) -> NDArray[np.float64]:
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
    known, unknown = _answers(shadow, shadow_members), _answers(shadow, shadow_others)
    network = make_pipeline(
        StandardScaler(), MLPClassifier((64, 64), max_iter=200, early_stopping=True,
                                        random_state=seed)
    )  # fmt: skip
    network.fit(np.vstack([known, unknown]), np.repeat([1, 0], [len(known), len(unknown)]))
    known, unknown = _answers(target, members), _answers(target, others)
    scores = network.predict_proba(np.vstack([known, unknown]))[:, 1]
    return float(roc_auc_score(np.repeat([1, 0], [len(known), len(unknown)]), scores))
