"""Attacks on your own texts, and learning tasks on them.

The package needs scikit-learn (``pip install 'fastdx[evaluate]'``). `evaluate` runs all attacks
and tasks and returns an `Evaluation`, which can be written as a page. ``fastdx evaluate`` does both
for files.
"""

from importlib.util import find_spec

if find_spec("sklearn") is None:
    raise ImportError("fastdx.lab.evaluation needs scikit-learn: pip install 'fastdx[evaluate]'")

from fastdx._shared.intervals import Interval, of_share, over_texts
from fastdx.lab.evaluation.attribution import (
    Attributed,
    Attribution,
    ChosenAttribution,
    choose_attribution,
)
from fastdx.lab.evaluation.auditor import (
    NextWord,
    UserAudit,
    audit_users,
    membership_inference,
    runs_of,
)
from fastdx.lab.evaluation.classifiers import MeanVectors, text_classifier, vector_classifier
from fastdx.lab.evaluation.context import ContextModel
from fastdx.lab.evaluation.repeats import frequency_attack, likelihood_attack
from fastdx.lab.evaluation.results import Evaluation, Judged, Measure
from fastdx.lab.evaluation.run import evaluate, over_trials

__all__ = [
    "Attributed",
    "Attribution",
    "ChosenAttribution",
    "ContextModel",
    "Evaluation",
    "Interval",
    "Judged",
    "MeanVectors",
    "Measure",
    "NextWord",
    "UserAudit",
    "audit_users",
    "choose_attribution",
    "evaluate",
    "frequency_attack",
    "likelihood_attack",
    "membership_inference",
    "of_share",
    "over_texts",
    "over_trials",
    "runs_of",
    "text_classifier",
    "vector_classifier",
]
