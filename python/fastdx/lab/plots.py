"""A picture of a hierarchy (``pip install 'fastdx[evaluate]'``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fastdx import Embedding
from fastdx.exceptions import ParameterError
from fastdx.lab.hyperbolic import exp_map, log_map

__all__ = ["disk"]


def disk(
    space: Embedding,
    edges: Iterable[tuple[str, str]] = (),
    labels: Iterable[str] | None = None,
    *,
    axes: Any = None,
) -> Any:
    """Plot words in the Poincaré disk, with edges as geodesics (Nickel and Kiela 2017, figure 2).

    Parameters
    ----------
    space : Embedding
        A Poincaré embedding of two dimensions.
    edges : iterable of (str, str), optional
        Pairs of words, such as child and parent.
    labels : iterable of str, optional
        The words whose names are written; by default all.
    axes : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    if space.metric != "poincare" or space.vectors.shape[1] != 2:
        got = f"{space.metric} of {space.vectors.shape[1]} dimensions"
        raise ParameterError(f"space must be a Poincaré embedding of 2 dimensions, got {got}")
    if axes is None:
        from matplotlib import pyplot

        axes = pyplot.subplots()[1]
    points = space.vectors.astype(np.float64)
    axes.plot(*np.array([(np.cos(t), np.sin(t)) for t in np.linspace(0, 2 * np.pi, 200)]).T,
              color="0.7")  # fmt: skip
    steps = np.linspace(0, 1, 50)[:, None]
    for pair in edges:
        one, other = points[space.ids(pair)][:, None]
        axes.plot(*exp_map(np.repeat(one, 50, axis=0), steps * log_map(one, other)).T, color="0.7")
    axes.plot(*points.T, "o", markersize=4)
    for word in space.words if labels is None else labels:
        axes.annotate(word, points[space.ids([word])[0]], xytext=(4, 4), textcoords="offset points")
    axes.set_aspect("equal")
    axes.set_axis_off()
    return axes
