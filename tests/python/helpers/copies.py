"""Copies of a mechanism: by pickle, by copy, by what describes it."""

import copy
import pickle

from fastdx import Mechanism


def assert_copies(m: Mechanism, *others: Mechanism) -> None:
    """Compare a mechanism with its copies, and with others that are meant to be the same."""
    words = m.space.words[:20]
    after = {"after": [words[-1]]} if m._has_history else {}
    for again in (pickle.loads(pickle.dumps(m)), copy.copy(m), copy.deepcopy(m), *others):
        assert type(again) is type(m) and again == m and hash(again) == hash(m)
        assert again.spec == m.spec and repr(again) == repr(m)
        assert again.guarantee.to_dict() == m.guarantee.to_dict()
        for word in words if m.has_law or m._has_history else ():
            assert (again.probabilities(word, **after) == m.probabilities(word, **after)).all()
