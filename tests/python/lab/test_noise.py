"""The noise that TEM's paper prints has the law that Tem draws by integers."""

import numpy as np
import pytest

from fastdx import Cover, Embedding, ParameterError, Tem, UnknownWordError
from fastdx.lab.noise import gumbel_draws
from helpers.draws import ALARM, assert_follows, p_value


@pytest.mark.parametrize("gamma", [0.5, 1.3, 100.0])
def test_gumbel_noise_has_the_law_of_tem(gamma: float) -> None:
    vectors = np.random.default_rng(4).normal(size=(40, 3))
    vectors[1] = vectors[0]
    space = Embedding([f"w{i}" for i in range(40)], vectors)
    tem = Tem(space, 3.0, gamma=gamma)

    def counts(tem: Tem) -> np.ndarray:
        return np.bincount(gumbel_draws(tem, "w0", 400_000, seed=5), minlength=40)

    assert_follows(counts(tem), tem.probabilities("w0"))
    liar = tem.with_epsilon(3.5)
    assert p_value(counts(liar), tem.probabilities("w0")) < ALARM


def test_what_it_does_not_draw() -> None:
    space = Embedding(["a", "b", "c"], [[0.0], [1.0], [9.0]])
    assert gumbel_draws(Tem(space, 1.0), "a", 0).shape == (0,)
    assert (gumbel_draws(Tem(space, 1e6, gamma=10.0), "b", 100) == 1).all()
    assert len(set(gumbel_draws(Tem(space, 1e-6, gamma=1.0), "b", 1000, seed=1).tolist())) == 3
    for tem in (
        Tem(space, 1.0, cover=Cover.nearest(space, 2)),
        Tem(space, 1.0, language=[3, 2, 1]),
        Tem(space, 1.0, remap=2),
    ):
        with pytest.raises(ParameterError, match="tem must have neither"):
            gumbel_draws(tem, "a", 1)
    with pytest.raises(UnknownWordError):
        gumbel_draws(Tem(space, 1.0), "zebra", 1)
