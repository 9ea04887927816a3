"""A child that is forked while another thread makes its first call can use everything."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fastdx import (
    BagOfWords,
    Cover,
    Embedding,
    FiniteLaw,
    HyperbolicLaplace,
    Mahalanobis,
    MultivariateLaplace,
    NeighborResponse,
    Tem,
    Vickrey,
)  # fmt: skip
from fastdx.channel import Channel
from fastdx.counts import Estimator

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")

WORDS = 3000
DELAYS = (0.001, 0.005, 0.03)
RNG = np.random.default_rng(5)
VECTORS = RNG.normal(size=(WORDS, 20)).astype(np.float32)
BALL = (VECTORS[:, :3] / (1 + np.abs(VECTORS[:, :3]).sum(1, keepdims=True))).astype(np.float32)
NAMES = [f"w{i}" for i in range(WORDS)]
TEXT = "w1 w2, w3 unknown " * 150
TEXTS = [TEXT] * 4


def space(count: int = WORDS) -> Embedding:
    return Embedding(NAMES[:count], VECTORS[:count])


def ball() -> Embedding:
    return Embedding(NAMES, BALL, metric="poincare")


# The first call to noise measures how many of the words come back: few words.
FIRST: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "nearest": (space, lambda e: e.nearest(VECTORS[:1], 5)),
    "nearest of many": (space, lambda e: e.nearest(VECTORS[:200], 5)),
    "words": (space, lambda e: e.words),
    "equal": (lambda: (space(), space()), lambda pair: pair[0] == pair[1]),
    "a cover": (space, lambda e: Cover.nearest(e, 10)),
    "lists": (lambda: Tem(space(), 3.0), lambda m: m.build_lists(20)),
    "tem": (lambda: Tem(space(), 3.0), lambda m: m.privatize(TEXTS)),
    "tem, one word": (lambda: Tem(space(), 3.0), lambda m: m.sample("w1", 5)),
    "tem, its law": (lambda: Tem(space(), 3.0), lambda m: m.probabilities("w1")),
    "tem, unchanged": (lambda: Tem(space(), 3.0), lambda m: m.unchanged),
    "tem, guarantee": (lambda: Tem(space(), 3.0), lambda m: str(m.guarantee)),
    "tem, hash": (lambda: Tem(space(), 3.0), hash),
    "tem on a cover": (lambda: Tem(space(), 3.0, cover=10), lambda m: m.privatize(TEXTS)),
    "certified": (lambda: space(300), lambda e: Tem(e, 3.0, certified=True)),
    "laplace": (lambda: MultivariateLaplace(space(800), 8.0), lambda m: m.privatize(TEXTS)),
    "laplace, one word": (lambda: MultivariateLaplace(space(), 8.0), lambda m: m.sample("w1", 5)),
    "laplace, unchanged": (lambda: MultivariateLaplace(space(800), 8.0), lambda m: m.unchanged),
    "vickrey": (lambda: Vickrey(space(800), 8.0), lambda m: m.privatize(TEXTS)),
    "mahalanobis": (lambda: Mahalanobis(space(800), 8.0), lambda m: m.privatize(TEXTS)),
    "hyperbolic": (lambda: HyperbolicLaplace(ball(), 8.0), lambda m: m.privatize(TEXTS)),
    "response": (lambda: NeighborResponse(space(), 6.0), lambda m: m.privatize(TEXTS)),
    "a law": (lambda: FiniteLaw(space(300), np.ones((300, 300))), lambda m: m.privatize(TEXTS)),
    "bags": (lambda: BagOfWords(Tem(space(), 3.0)), lambda b: b.privatize_documents(TEXTS)),
    "bits": (lambda: Channel.of(Tem(space(300), 3.0)), lambda c: c.bits()),
    "counts": (
        lambda: Channel.of(Tem(space(300), 3.0, oov="mask")),
        lambda c: Estimator(c).add(["w1 w2", "w3"] * 9).share("w1"),
    ),
}  # fmt: skip


def wait(process: int) -> int | None:
    """Return how the child ended within 5 s; None if it did not, and then kill it."""
    for _ in range(5000):
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.001)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of such forks
@pytest.mark.parametrize("name", FIRST)
def test_a_fork_during_the_first_call(name: str) -> None:
    make, call = FIRST[name]
    for delay in DELAYS:
        one = make()
        first = threading.Thread(target=call, args=(one,))
        first.start()
        time.sleep(delay)
        process = os.fork()
        if process == 0:
            try:
                call(one)
            except BaseException as error:
                print(f"{name}: {error!r}", file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        status = wait(process)
        first.join()
        assert status == 0, (name, delay, "hangs" if status is None else status)
