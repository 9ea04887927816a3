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
    """How well the distances of an embedding reconstruct edges (Nickel and Kiela 2017, §4.1)."""

    mean_rank: float
    """The mean rank of an edge's target among nodes without an edge from its source; 1 is best."""
    map: float
    """The mean average precision of a node's targets, over the nodes with edges."""


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
    min_count: SupportsIndex | None = None,
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
        Negatives per edge, drawn by degree among the words without an edge from its source.
    burn_in : int, optional
        The number of first epochs that run at a tenth of the learning rate.
    lr : float, optional
        The learning rate.
    seed : int, optional
        The seed. With ``threads=1`` the embedding is then reproducible.
    threads : int, optional
        Threads that update one table without locks; by default one per processor.
    callback : callable, optional
        Called with the epoch (from 1) and its mean loss per edge, in nats.
    checkpoint : str or os.PathLike, optional
        A file written atomically after every epoch. If it exists, the run continues from it.
    min_count : int, optional
        The file has a third column, of how often each pair was seen, as in WebIsADb. Pairs that
        were seen fewer times are left out.

    Returns
    -------
    Embedding
        An embedding with ``metric="poincare"`` and the words in order of first appearance.

    Raises
    ------
    FormatError
        A line or pair is no edge; the message names the line or number.
    ParameterError
        A parameter lies outside its domain, or the checkpoint is from another run.

    Examples
    --------
    >>> from fastdx import poincare
    >>> edges = [("dog", "animal"), ("cat", "animal"), ("oak", "plant"), ("plant", "thing"),
    ...          ("animal", "thing")]
    >>> e = poincare.train(edges, 2, epochs=200, negatives=3, seed=1, threads=1)
    >>> e.metric, e.distance("dog", "animal") < e.distance("dog", "oak")
    ('poincare', True)
    """
    words, pairs = read_edges(edges, min_count)
    if not words:
        raise ParameterError("edges must be at least one, got none")
    if threads is None:
        affinity = getattr(os, "sched_getaffinity", None)
        threads = len(affinity(0)) if affinity else os.cpu_count() or 1
    start: dict[str, Any] = {}
    path = None if checkpoint is None else os.fspath(checkpoint)
    if path is not None and Path(path).exists():
        with np.load(path, allow_pickle=False) as saved:
            if saved["words"].tolist() != words or saved["vectors"].shape[1] != int(dim):
                what = "its words or its dimension differ"
                raise ParameterError(f"checkpoint {path} is of another run: {what}")
            start = {"vectors": saved["vectors"], "epoch": int(saved["epoch"])}
    run = PoincareTraining(words, pairs, dim, epochs=epochs, negatives=negatives, burn_in=burn_in,
                           lr=lr, threads=threads, seed=seed, **start)  # fmt: skip
    while run.epoch < int(epochs):
        loss = run.run_epoch()
        if path is not None:
            with open_output(path) as out:
                vectors = run.embedding().vectors
                np.savez(out, words=np.array(words), vectors=vectors, epoch=run.epoch)
        if callback is not None:
            callback(run.epoch, loss)
    return run.embedding()


def reconstruction(
    embedding: Embedding, edges: Edges, *, min_count: SupportsIndex | None = None
) -> Reconstruction:
    """Rank every edge's target among the words without an edge from its source.

    The embedding may have any metric, and must have all words of the edges. These, and `min_count`,
    are given as for `train`.
    """
    words, pairs = read_edges(edges, min_count)
    ids = embedding.ids(words)
    return Reconstruction(*poincare_reconstruction(embedding, ids[pairs]))
