"""Numbers of the recommended policy that are kept, since every start of the command shows them."""

import numpy as np

from fastdx import Tem


def test_unchanged_words_of_the_recommended_policy_are_those_of_its_laws() -> None:
    tem = Tem.recommended()
    known = tem.unchanged
    assert known.draws == 0
    common = tem.space.words[: known.words]
    same = np.array([tem.probabilities(word)[i] for i, word in enumerate(common)])
    assert abs(known.mean - same.mean()) < 1e-12
    assert abs(known.worst - same.max()) < 1e-12


def test_other_policies_are_measured() -> None:
    epsilon = Tem.recommended().nominal
    others = [Tem.recommended(epsilon=float(np.nextafter(epsilon, 3))),
              Tem.recommended(language="uniform"), Tem.recommended(exclude=["tea"]),
              Tem.recommended(beta=0.01), Tem.recommended(cover=3)]  # fmt: skip
    assert all(other.unchanged.draws > 0 for other in others)
