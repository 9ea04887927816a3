"""Attacks by an adversary who knows the mechanism, on single words and on words in sentences.

A mechanism can cheat N_w, the probability that a word comes back unchanged: a fixed permutation of
the words has N_w = 0 and hides nothing. It cannot cheat these attacks. The attacker knows the law
of the mechanism, how often each word is written, and which words follow each other. If the
mechanism has a law, he sums over all sentences, and no attacker with that knowledge does better.
"""

from fastdx.lab.attacks.linearization import Linearized, linearize
from fastdx.lab.attacks.sentences import Context, Recovered, known_runs, sentence_attack
from fastdx.lab.attacks.words import (
    LikelyInputs,
    Reidentification,
    drawn_bits,
    reidentification,
)

__all__ = [
    "Context",
    "LikelyInputs",
    "Linearized",
    "Recovered",
    "Reidentification",
    "drawn_bits",
    "known_runs",
    "linearize",
    "reidentification",
    "sentence_attack",
]
