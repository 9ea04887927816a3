"""Every registered mechanism as a test's parameter, and small spaces to make it on."""

import numpy as np
import pytest

from fastdx import Embedding, Mechanism
from fastdx.mechanisms import MECHANISMS

KINDS = pytest.mark.parametrize("kind", MECHANISMS.values(), ids=MECHANISMS)


def space(kind: type[Mechanism], rows: list[list[float]]) -> Embedding:
    """Points that the mechanism works on: within the ball for hyperbolic ones."""
    metric = Embedding.default(kind.default_space).metric
    scale = 0.3 if metric == "poincare" else 1.0
    return Embedding([f"w{i}" for i in range(len(rows))], np.array(rows) * scale, metric=metric)


def made(kind: type[Mechanism], e: Embedding, epsilon: float, **parameters: object) -> Mechanism:
    """The mechanism at `epsilon` above its smallest one."""
    return kind(e, kind.smallest_epsilon(e) + epsilon, **parameters)
