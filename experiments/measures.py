"""What more than one paper's tables show of a mechanism."""

from __future__ import annotations

import numpy as np

from fastdx import Mechanism, calibration


def unchanged(mechanism: Mechanism) -> float:
    """Mean N_w of 200 words spread over the vocabulary: how much noise an ε is there."""
    words = mechanism.space.words
    spread = [words[i] for i in np.linspace(0, len(words) - 1, 200).astype(int)]
    return float(calibration.statistics(mechanism, spread, 300, inputs=False)["N_w"].mean())
