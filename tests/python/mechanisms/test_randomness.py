"""Draws differ wherever they must, and repeat only for a seed."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fastdx
from fastdx import Embedding, MultivariateLaplace, NeighborResponse, Tem
from fastdx.lab.noise import multivariate_laplace
from helpers.command import python
from helpers.draws import as_users_draw
from helpers.spaces import normal

IDS = np.zeros(3000, dtype=np.uint32)


def draw(m: fastdx.Mechanism) -> bytes:
    # Few short texts, too: a list once started a pool that does not survive a fork.
    assert len(m.privatize(["a w1", "w2"])) == 2
    return m.privatize_ids(IDS).tobytes()


def test_unseeded_objects_calls_and_copies_differ(small: Embedding, mechanism: type) -> None:
    m = mechanism(small, 0.5)
    copies = [pickle.loads(pickle.dumps(m)) for _ in range(2)]
    draws = [draw(m), draw(m), draw(mechanism(small, 0.5)), *map(draw, copies)]
    draws += list(ThreadPoolExecutor(4).map(lambda _: draw(m), range(4)))
    assert len(set(draws)) == len(draws)
    texts = [m.privatize("w1 " * 200 + "unknown " * 200) for _ in range(2)]
    assert texts[0] != texts[1]


def test_noise_differs_and_repeats_with_a_seed() -> None:
    noise = multivariate_laplace
    assert not np.array_equal(noise(3, 1.0, 5), noise(3, 1.0, 5))
    assert np.array_equal(noise(3, 1.0, 5000, seed=4), noise(3, 1.0, 5000, seed=4))
    assert not np.array_equal(noise(3, 1.0, 5, seed=4), noise(3, 1.0, 5, seed=5))


def test_a_seed_repeats_objects_not_calls(small: Embedding, mechanism: type) -> None:
    a, b = mechanism(small, 0.5, seed=7), mechanism(small, 0.5, seed=7)
    first, second = draw(a), draw(a)
    assert first != second
    assert (first, second) == (draw(b), draw(b))
    assert first != draw(mechanism(small, 0.5, seed=8))
    assert "FOR TESTS ONLY" in repr(a) and "TESTS" not in repr(mechanism(small, 0.5))


def test_users_paths_draw_other_words_from_the_same_keys() -> None:
    """Else tests of these paths would test the simple draw in silence."""
    e = normal(300, 3, 1)
    for seeded in (Tem(e, 2.0, seed=7), Tem(e, 2.0, cover=10, seed=7)):
        users, again = (as_users_draw(seeded).privatize_ids(IDS) for _ in range(2))
        assert (users == again).all() and (users != seeded.privatize_ids(IDS)).any()


SCRIPT = """
import sys, hashlib, numpy as np, fastdx
from fastdx.lab import noise
words = [f"w{i}" for i in range(500)]
e = fastdx.Embedding(words, np.random.default_rng(1).normal(size=(500, 8)))
ids = np.arange(30_000) * 7919 % 500
out = hashlib.sha256()
for m in (fastdx.Tem(e, 6.0, seed=1), fastdx.MultivariateLaplace(e, 12.0, seed=1)):
    out.update(m.privatize_ids(ids).tobytes())
    out.update(m.privatize(["w1 w2 w3 w4 qwxz " * 100] * 50).__repr__().encode())
out.update(noise.multivariate_laplace(5, 1.0, 10_000, seed=2).tobytes())
print(out.hexdigest())
"""


def test_a_seed_gives_the_same_at_any_number_of_threads() -> None:
    assert len({python(SCRIPT, FASTDX_NUM_THREADS=n).stdout for n in ("1", "5")}) == 1


def child(m: fastdx.Mechanism, queue: "multiprocessing.Queue[bytes]") -> None:
    queue.put(draw(m))


def test_forked_children_neither_hang_nor_share_draws(small: Embedding, mechanism: type) -> None:
    m = mechanism(small, 0.5)
    seen = [draw(m)]  # the pool of the parent exists before the fork
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=child, args=(m, queue)) for _ in range(3)]
    for c in children:
        c.start()
    seen += [queue.get(timeout=240) for _ in children]
    for c in children:
        c.join(timeout=240)
        assert c.exitcode == 0
    seen.append(draw(m))
    assert len(set(seen)) == len(seen)


# Other noise draws as MultivariateLaplace does.
DRAWING = pytest.mark.parametrize("mechanism", [Tem, MultivariateLaplace, NeighborResponse])


@DRAWING
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_ends_a_long_call(mechanism: type) -> None:
    m = mechanism(epsilon=5.0)
    ids = np.arange(20_000_000) % 20_000
    # A shell's background job starts with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        m.privatize_ids(ids)
    assert time.monotonic() - start < 20
    assert len(m.privatize_ids(ids[:1000])) == 1000, "it works again afterwards"


@DRAWING
def test_the_gil_is_released(mechanism: type) -> None:
    m = mechanism(epsilon=5.0)
    ids = np.arange(6_000_000 if mechanism is NeighborResponse else 20_000) % 20_000
    worker = threading.Thread(target=m.privatize_ids, args=(ids,))
    worker.start()
    ticks = 0
    while worker.is_alive():
        time.sleep(0.001)
        ticks += 1
    # Were the GIL held, this thread would have slept once through the whole call.
    assert ticks > 10


def test_a_bad_thread_count_is_an_error() -> None:
    code = "from fastdx.lab import noise; noise.multivariate_laplace(2, 1.0, 5000)"
    done = python(code, code=1, FASTDX_NUM_THREADS="none")
    assert "FASTDX_NUM_THREADS must be" in done.stderr


NAMESPACE = """
import ctypes, os, signal, sys, time

libc = ctypes.CDLL(None)
NEW_USER, NEW_PID = 0x10000000, 0x20000000

def unshared(flags):
    if libc.unshare(flags) != 0:
        os._exit(77)

def ended(work, seconds):
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    for _ in range(seconds * 10):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    return 1

def outer():
    from fastdx import Embedding, Tem
    tem = Tem(Embedding(["a", "b"], [[0.0], [1.0]]), 1.0)
    def draw():
        if os.getpid() != 1:
            os._exit(2)
        tem.privatize_ids([0] * 10_000)
    draw()
    unshared(NEW_PID)
    os._exit(ended(draw, 60))

# Before any import that starts threads: a process with threads gets no namespace of users.
unshared(NEW_USER | NEW_PID)
sys.exit(ended(outer, 120))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")
def test_a_child_with_its_parents_number_does_not_hang() -> None:
    # The first process of each namespace has the number 1.
    ended = subprocess.run([sys.executable, "-c", NAMESPACE], check=False, timeout=300).returncode
    if ended == 77:
        pytest.skip("no new namespaces here")
    assert ended == 0
