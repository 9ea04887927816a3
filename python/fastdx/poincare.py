"""Poincaré embeddings of a hierarchy, trained by Riemannian SGD (Nickel and Kiela 2017)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from fastdx._core import Embedding, PoincareTraining, poincare_reconstruction, read_edges
from fastdx._shared.replace import open_output
from fastdx.exceptions import ParameterError

__all__ = ["Reconstruction", "reconstruction", "train"]

Edges = str | PathLike[str] | Iterable[tuple[str, str]]


class Reconstruction(NamedTuple):
    """How well the distances of an embedding give edges back (Nickel and Kiela 2017, §4.1)."""

    mean_rank: float
    """Mean rank of an edge's target among the nodes its source has no edge to; 1 is best."""
    map: float
    """Mean average precision of the targets of a node, over the nodes with edges."""


def train(
    edges: Edges,
    dim: SupportsIndex,
    *,
    epochs: SupportsIndex = 50,
    negatives: SupportsIndex = 10,
    burn_in: SupportsIndex = 10,
    lr: float = 0.3,
    seed: SupportsIndex | None = None,
    threads: SupportsIndex | None = None,
    callback: Callable[[int, float], object] | None = None,
    checkpoint: str | PathLike[str] | None = None,
) -> Embedding:
    """Train a Poincaré embedding of a graph.

    Parameters
    ----------
    edges : str, os.PathLike or iterable of (str, str)
        Pairs (word, hypernym): a file of two columns separated by a tab, an iterable, or an
        array of strings of shape (m, 2).
    dim : int
        Dimensions.
    epochs : int, optional
        Passes over the edges, those of the burn-in included.
    negatives : int, optional
        Negatives an edge, drawn by degree among the words it has no edge to.
    burn_in : int, optional
        First epochs, at a tenth of the rate.
    lr : float, optional
        Learning rate.
    seed : int, optional
        With ``threads=1`` one seed gives one embedding.
    threads : int, optional
        Threads that update one table without locks; by default all.
    callback : callable, optional
        Called with the epoch (from 1) and its mean loss an edge, in nats.
    checkpoint : str or os.PathLike, optional
        A file written after every epoch, atomically. If it is there, the run goes on from it.

    Returns
    -------
    Embedding
        With ``metric="poincare"``, words in order of first appearance.

    Raises
    ------
    FormatError
        A line or pair that is no edge, by its line or number.
    ParameterError
        A parameter outside its domain, or a checkpoint of another run.

    Examples
    --------
    >>> from fastdx import poincare
    >>> edges = [("dog", "animal"), ("cat", "animal"), ("oak", "plant"), ("plant", "thing"),
    ...          ("animal", "thing")]
    >>> e = poincare.train(edges, 2, epochs=200, negatives=3, seed=1, threads=1)
    >>> e.metric, e.distance("dog", "animal") < e.distance("dog", "oak")
    ('poincare', True)
    """
    words, pairs = read_edges(edges)
    if not words:
        raise ParameterError("edges must be at least one, got none")
    settings: dict[str, Any] = {
        "epochs": epochs,
        "negatives": negatives,
        "burn_in": burn_in,
        "lr": lr,
        "threads": _processors() if threads is None else threads,
        "seed": seed,
    }
    start: dict[str, Any] = {}
    path = None if checkpoint is None else Path(checkpoint)
    if path is not None and path.exists():
        with np.load(path, allow_pickle=False) as saved:
            if saved["words"].tolist() != words or saved["vectors"].shape[1] != int(dim):
                raise ParameterError(f"checkpoint {os.fspath(path)} is of another run: its words "
                                     "or its dimension differ")  # fmt: skip
            start = {"vectors": saved["vectors"], "epoch": int(saved["epoch"])}
    run = PoincareTraining(words, pairs, dim, **settings, **start)
    while run.epoch < int(epochs):
        loss = run.run_epoch()
        if path is not None:
            with open_output(os.fspath(path)) as out:
                np.savez(out, words=np.array(words), vectors=run.embedding().vectors,
                         epoch=run.epoch)  # fmt: skip
        if callback is not None:
            callback(run.epoch, loss)
    return run.embedding()


def reconstruction(embedding: Embedding, edges: Edges) -> Reconstruction:
    """Rank every edge's target among the words its source has no edge to.

    Parameters
    ----------
    embedding : Embedding
        Words and distances, of any metric.
    edges : str, os.PathLike or iterable of (str, str)
        As for `train`; all words must be in the embedding.

    Returns
    -------
    Reconstruction
        Mean rank and mean average precision.
    """
    words, pairs = read_edges(edges)
    ids = embedding.ids(words)
    return Reconstruction(*poincare_reconstruction(embedding, ids[pairs]))


def _processors() -> int:
    """Return how many processors this process may use, or else how many there are."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
