"""Pictures of a calibration and of a hierarchy (``pip install 'fastdx[evaluate]'``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastdx import Embedding, calibration
from fastdx.calibration.measures import names_of, spread
from fastdx.exceptions import ParameterError
from fastdx.lab.hyperbolic import exp_map, log_map
from fastdx.mechanisms import Mechanism

__all__ = ["curve", "disk", "distances", "distributions", "neighbour_distances"]


def neighbour_distances(
    mechanism: Mechanism, ks: Sequence[int], words: Iterable[str] | None = None
) -> NDArray[np.float64]:
    """Return distances to the k-th nearest other word: float64, shape (words, len(ks)).

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism with the words and metric.
    ks : sequence of int
        The numbers k, from 1 to V - 1.
    words : iterable of str, optional
        The words; by default 200 spread over the vocabulary.
    """
    space = mechanism.space
    if not ks or min(ks) < 1 or max(ks) >= len(space):
        raise ParameterError(f"ks must be from 1 to {len(space) - 1}, got {list(ks)}")
    if words is None:
        words = names_of(mechanism, spread(mechanism))
    return np.array([np.partition(space.distances(word), ks)[list(ks)] for word in words])


def _axes(axes: Any) -> Any:
    if axes is not None:
        return axes
    from matplotlib import pyplot

    return pyplot.subplots()[1]


def distances(mechanism: Mechanism, ks: Sequence[int] | None = None, *, axes: Any = None) -> Any:
    """Plot distances to the k-th nearest word, as WSDM'20 figure 1; return the axes."""
    axes = _axes(axes)
    most = len(mechanism.space) - 1
    ks = [k for k in (1, 5, 10, 20, 50, 100, 200, 500, 1000) if k <= most] if ks is None else ks
    axes.boxplot(neighbour_distances(mechanism, ks), showfliers=False)
    axes.set_xticks(range(1, len(ks) + 1), [str(k) for k in ks])
    axes.set(xlabel="k", ylabel=f"{mechanism.space.metric} distance to the k-th nearest word")
    return axes


def distributions(
    mechanism: Mechanism,
    epsilons: Sequence[float],
    column: str = "N_w",
    words: Iterable[str] | None = None,
    *,
    draws: int = 1000,
    axes: Any = None,
) -> Any:
    """Plot the distribution of N_w, S_w or support over words at each ε, as WSDM'20 figure 2."""
    axes = _axes(axes)
    names = None if words is None else list(words)
    values = [
        calibration.statistics(mechanism.with_epsilon(e), names, draws, inputs=False)[column]
        for e in epsilons
    ]
    axes.boxplot(values, showfliers=False)
    axes.set_xticks(range(1, len(epsilons) + 1), [f"{e:.3g}" for e in epsilons])
    axes.set(xlabel="ε per unit of distance", ylabel=column)
    return axes


def curve(table: calibration.Table, *, axes: Any = None) -> Any:
    """Plot mean and worst N_w over ε, from `calibration.sweep` or ``Choice.curve``."""
    axes = _axes(axes)
    axes.plot(table["epsilon"], table["mean_N_w"], "o-", label="mean")
    axes.plot(table["epsilon"], table["worst_N_w"], "s-", label="worst")
    axes.set(xlabel="ε per unit of distance", ylabel="N_w: probability of coming back unchanged")
    axes.set_xscale("log")
    axes.legend()
    return axes


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
    axes, points = _axes(axes), space.vectors.astype(np.float64)
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
