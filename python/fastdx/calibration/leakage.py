"""Words named in sentences, as a function of the mechanism."""

from __future__ import annotations

from collections.abc import Iterable

from fastdx._shared.intervals import Interval
from fastdx.channel import Channel, NgramPrior
from fastdx.channel.guesses import PrivateTexts, check_model
from fastdx.exceptions import ParameterError
from fastdx.mechanisms import Mechanism

SEED = 0
"""The seed of the draws in comparisons; it is the same at every ε, so that a search is stable."""


def refuse_lawless(parameter: str, mechanism: Mechanism) -> None:
    """Refuse a bound that cannot be computed because the mechanism has no law."""
    if not mechanism.has_law:
        raise ParameterError(f"{parameter} must be left out: this mechanism has no law to compute")


def check_texts(
    texts: Iterable[str] | None, model: NgramPrior | None
) -> tuple[list[str], NgramPrior]:
    """Return the texts and the model of an attack on sentences; refuse missing ones."""
    if texts is None or model is None:
        missing = "texts" if texts is None else "model"
        raise ParameterError(f"{missing} must be given: the attacker reads texts by a model")
    if isinstance(texts, str):
        raise ParameterError("texts must be several texts, got one str")
    return list(texts), model


def named_in_sentences(mechanism: Mechanism, texts: list[str], model: NgramPrior) -> Interval:
    """Return the share of content words that the strongest attacker names in these texts.

    The draws have a fixed seed, so mechanisms that differ only in ε use the same draws.
    """
    check_model(mechanism, model)
    mechanism = mechanism._seeded(SEED)
    release = PrivateTexts(mechanism, texts)
    return release.share(release.best(Channel.of(mechanism), model))
