"""What an attacker recovers who knows the mechanism: single words, and words in sentences.

N_w, the probability that a word comes back unchanged, can be gamed: a fixed permutation of the
words has N_w = 0 and hides nothing. These measures cannot: the attacker knows the law of the
mechanism, how often each word is written, and which words follow each other. Where the mechanism
has a law he is the strongest there is with that knowledge: he sums over all sentences.
"""

from fastdx.attacks.sentences import Context, Recovered, known_runs, sentence_attack
from fastdx.attacks.words import (
    LikelyInputs,
    Prior,
    Reidentification,
    mean_similarity,
    prior_of,
    reidentification,
)

__all__ = [
    "Context",
    "LikelyInputs",
    "Prior",
    "Recovered",
    "Reidentification",
    "known_runs",
    "mean_similarity",
    "prior_of",
    "reidentification",
    "sentence_attack",
]
