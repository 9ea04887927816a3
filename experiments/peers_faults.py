"""Faults in the code of peers, each reproduced by a few lines; `FAULTS` has file and line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, patch

import numpy as np
from scipy import stats

from experiments.data import builtin
from experiments.peers_made import key_vectors, vectors_of
from experiments.tables import SEED
from fastdx import Embedding
from fastdx.lab.evaluation import of_share

DRAWS = 2000
UNKNOWN = "xqzt"
CONFIDENCE = 0.9999
SECONDS = 40


def _mldp(name: str, epsilon: float, places: Sequence[float], **more: Any) -> Any:
    """A mechanism of mldp-text on words w0, w1, … at places on a line."""
    from mldp_text import get_mechanism

    np.random.seed(SEED)
    kv = key_vectors([f"w{i}" for i in range(len(places))], np.reshape(places, (-1, 1)))
    return get_mechanism(name, epsilon=epsilon, embedding_matrix=kv, dim=1, use_faiss=False, **more)


def _drawn(m: Any, word: str, draws: int = DRAWS) -> Counter[str]:
    return Counter(m.replace_word(word) for _ in range(draws))


def _least(one: int, other: int, draws: int) -> float:
    """A lower bound on the log-ratio of two probabilities, from how often each was seen."""
    low = of_share(one, draws, confidence=CONFIDENCE).low
    high = of_share(other, draws, confidence=CONFIDENCE).high
    return float(np.log(low / high)) if low else -np.inf


def _ratio(m: Any, words: tuple[str, str], output: Callable[[str], bool], allowed: float) -> str:
    seen = [sum(n for y, n in _drawn(m, w).items() if output(y)) for w in words]
    return (f"{seen[0]:,} and {seen[1]:,} of {DRAWS:,} draws: a log-ratio of at least "
            f"{_least(*seen, DRAWS):.2f}, where ε·d = {allowed:g}")  # fmt: skip


def far_weight() -> str:
    # From w0 all of w2 … w51 are farther than γ = 2.2, from w1 none of them is.
    m = _mldp("tem", 10.0, [0, 0.1, *([2.25] * 50), 9])
    return _ratio(m, ("w0", "w1"), lambda y: y not in ("w0", "w1", "w52"), 1.0)


def rounded() -> str:
    used, exact = round(0.2 * np.log(999 * 2000), 1), 0.2 * np.log(999 * 1999)
    return (f"ε = 10, 2,000 words: γ = {used} for {exact:.4f}; harmless, since γ may be any public "
            "number")  # fmt: skip


def none_far() -> str:
    m, failed = _mldp("tem", 1.0, [0, 1, 2]), Counter[str]()
    for _ in range(DRAWS):
        try:
            m.replace_word("w0")
        except ValueError as e:
            failed[f"ValueError: {e}"] += 1
    ((message, times),) = failed.items()
    return f"3 words, ε = 1: {times:,} of {DRAWS:,} calls raise *{message}*"


def listed() -> str:
    m = _mldp("truncated_gumbel", 100.0, [0, 1, 3], max_inter_dist=3.0, min_inter_dist=1.0)
    seen = [_drawn(m, w)["w2"] for w in ("w2", "w0")]
    return (f"words at 0, 1, 3: of {DRAWS:,} draws the last one is released {seen[0]:,} times for "
            f"itself, {seen[1]:,} times for the first; no ε")  # fmt: skip


def _gumbel(e: Embedding) -> Any:
    """TruncatedGumbel as it is by default, with faiss."""
    from mldp_text import get_mechanism

    np.random.seed(SEED)
    kv = key_vectors(e.words, e.vectors)
    return get_mechanism("truncated_gumbel", epsilon=100.0, dim=e.dim, max_inter_dist=8.0,
                         min_inter_dist=0.1, embedding_matrix=kv)  # fmt: skip


def none_listed() -> str:
    m, failed = _gumbel(builtin(200)), 0
    for _ in range(DRAWS):
        try:
            m.replace_word("the")
        except AssertionError:
            failed += 1
    return (
        f"200 words: {failed} of {DRAWS:,} calls raise *AssertionError*, expected {DRAWS / 199:.0f}"
    )


def squared() -> str:
    e = builtin(200)
    scores, ids = _gumbel(e).index.search(e.vectors[:1], 2)
    return (f"*{e.words[ids[0, 1]]}* is {e.distances(e.words[0])[ids[0, 1]]:.3f} from "
            f"*{e.words[0]}*; its score is {scores[0, 1]:.3f}")  # fmt: skip


def bounds_left_out() -> str:
    try:
        _mldp("truncated_gumbel", 100.0, [0, 1, 3])
    except TypeError as e:
        return f"Python {sys.version_info[0]}.{sys.version_info[1]}: *TypeError: {e}*"
    return "does not raise with this Python"


def scales() -> str:
    epsilons, places = (6.0, 60.0, 600.0), [0, 0.1, 8]
    found = [_mldp("truncated_gumbel", x, places, max_inter_dist=8.0, min_inter_dist=0.1).b
             for x in epsilons]  # fmt: skip
    return "distances of 0.1 to 8: " + ", ".join(
        f"b = {b:.3g} at ε = {x:g}" for x, b in zip(epsilons, found, strict=True))  # fmt: skip


def left_out() -> str:
    m = _mldp("vickrey", 10.0, [0, 0.001, 3])
    return _ratio(m, ("w1", "w0"), lambda y: y == "w0", 0.01)


def unknown_mldp() -> str:
    names = ("multivariate_calibrated", "mahalanobis", "vickrey", "tem", "truncated_gumbel")
    more = {"truncated_gumbel": {"max_inter_dist": 3.0, "min_inter_dist": 1.0}}
    same = [n for n in names if set(_drawn(
        _mldp(n, 1.0, [0, 1, 3], **more.get(n, {})), UNKNOWN, 100)) == {UNKNOWN}]  # fmt: skip
    return f"{len(same)} of {len(names)} release {UNKNOWN!r} as it is, 100 of 100 times"


def synonyms() -> str:
    from mldp_text import get_mechanism

    # WordNet is downloaded; these stand for two words of two synsets.
    sets = {"glad": ["glad", "happy"], "sad": ["sad", "sorry"]}

    def synsets(word: str) -> list[Any]:
        lemmas = [SimpleNamespace(name=partial(str, n)) for n in sets.get(word, [])]
        return [SimpleNamespace(lemmas=lambda: lemmas)]

    np.random.seed(SEED)
    with patch("mldp_text.mechanisms.wordnet", SimpleNamespace(synsets=synsets)):
        m = get_mechanism("syntf", epsilon=1.0, data=["glad sad"])
    drawn = {w: "/".join(sorted(_drawn(m, w, 100))) for w in ("glad", "sad", UNKNOWN)}
    return "two made-up synsets: " + ", ".join(f"*{w}* becomes {y}" for w, y in drawn.items())


def _pantera_tem(e: Embedding, **given: float) -> Any:
    from src.SamplingPerturbationMechanism.tem import TEM

    np.random.seed(SEED)
    with vectors_of(e) as path:
        return TEM({"embPath": path, **given})


def bottom() -> str:
    e = Embedding(["w0", "word1"], [[0.0] * 5, [2.0] * 5])
    m = _pantera_tem(e, epsilon=2.0, beta=0.4)
    seen = [Counter(m.processText([w] * DRAWS).split())["w0"] for w in e.words]
    return (f"two words {20**0.5:.2f} apart, γ = {m.gamma:.2f}: w0 is released for w0 {seen[0]:,} "
            f"times in {DRAWS:,}, for the other {seen[1]:,} times; no ε")  # fmt: skip


def stretched() -> str:
    from src.EmbeddingPerturbationMechanism.mahalanobis import Mahalanobis

    v = np.random.default_rng(SEED).standard_normal((100, 5)) * [3, 1, 1, 1, 1]
    np.random.seed(SEED)
    with vectors_of(Embedding([f"word{i}" for i in range(100)], v)) as path:
        m = Mahalanobis({"embPath": path, "epsilon": 1.0, "lam": 0.9})
    inverse = np.linalg.inv(m._sigmaLoc @ m._sigmaLoc)
    norms = [float(np.sqrt(z @ inverse @ z)) for z in (m.pullNoise() for _ in range(DRAWS))]
    p = stats.kstest(norms, stats.gamma(5).cdf).pvalue
    return f"the paper's norm of {DRAWS:,} noises, λ = 0.9, against its Γ law: p = {p:.0g}"


def lost_words() -> str:
    m = _pantera_tem(Embedding(["w0", "w1"], [[0.0], [2.0]]), epsilon=2.0, beta=0.4)
    return f"a file of 2 words on {os.cpu_count()} cores: {len(m.embMatrix)} word loaded"


def unknown_pantera() -> str:
    m = _pantera_tem(Embedding(["w0", "w1"], [[0.0] * 50, [0.1] * 50]), epsilon=10.0, beta=0.001)
    same = Counter(m.processText([UNKNOWN] * 200).split())[UNKNOWN]
    return f"{UNKNOWN!r} gets a chance vector, beyond γ of all: returned {same} of 200 times"


CHILD = r"""
import json, sys
from types import SimpleNamespace
from unittest.mock import patch
import nltk, numpy as np
with patch("nltk.corpus.stopwords", SimpleNamespace(words=lambda _: sys.argv[4].split())), \
     patch("nltk.word_tokenize", str.split):
    from diffractor import Diffractor, DiffractorConfig
    texts = json.loads(sys.argv[1])
    m = Diffractor(DiffractorConfig(verbose=False), [sys.argv[2]])
    out = m.rewrite(texts)
    if sys.argv[3] == "twice":
        m.close()
        Diffractor(DiffractorConfig(verbose=False), [sys.argv[2]]).rewrite(texts)
    line, places = m.mgr.lists[0], m.mgr.word_to_idx[0]
    rng = np.random.default_rng(np.random.SeedSequence(42).spawn(1)[0])
    p, named = 1 - np.exp(-1.0), []
    for y in (w for text in out for w in text.split()):
        if y in places:
            i = places[y] - rng.geometric(p) + rng.geometric(p)
            named.append(line[min(max(0, i), len(line) - 1)])
    print(json.dumps([out, named]), flush=True)
    m.close()
"""


def _diffractor(texts: list[str], *, stop: str = "", mode: str = "once") -> Any:
    """What a process of its own releases of texts, and what replaying the seed names."""

    with tempfile.TemporaryDirectory() as home, vectors_of(builtin(2000), header=True) as path:
        name = "glove-wiki-gigaword-300"  # it would be downloaded
        cached = Path(home, ".cache", "diffractor", f"{name}.txt")
        cached.parent.mkdir(parents=True)
        cached.write_bytes(Path(path).read_bytes())
        done = subprocess.run(
            [sys.executable, "-c", CHILD, json.dumps(texts), name, mode, stop], check=True,
            capture_output=True, text=True, timeout=SECONDS, env={**os.environ, "HOME": home},
        )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


SENTENCES = [
    "we think she knew about his money all that time",
    "they never had any right to say it",
]


def replayed() -> str:
    (one, named), (two, _) = _diffractor(SENTENCES), _diffractor(SENTENCES)
    words = " ".join(SENTENCES).split()
    hits = sum(a == b for a, b in zip(named, words, strict=False))
    return (f"two processes release the same: {one == two}; the seed replayed names {hits} of "
            f"{len(words)} words from the release alone")  # fmt: skip


def stop_words() -> str:
    # NLTK's list is downloaded; these two are on it.
    (text,), _ = _diffractor([f"the {UNKNOWN} her {UNKNOWN}"], stop="the her")
    return f"*the {UNKNOWN} her {UNKNOWN}* becomes *{text}*"


def again() -> str:
    try:
        _diffractor(SENTENCES, mode="twice")
    except subprocess.TimeoutExpired:
        return f"a second object in one process: no answer within {SECONDS} s"
    return "answers"


def _bart() -> Any:
    """PrivFill's DPBart without a model; numpy stands for what its noise uses of torch."""
    torch = MagicMock(from_numpy=lambda x: x, clip=np.clip)
    others = {n: MagicMock() for n in ("torch.utils", "torch.utils.data", "transformers")}
    with patch.dict(sys.modules, {"torch": torch, **others}):
        from privfill.mechanisms import DPBart

        return DPBart()


def one_noise() -> str:
    m = _bart()
    np.random.seed(SEED)
    plain = np.random.default_rng(SEED).uniform(-0.1, 0.1, (4, 1024))
    noise = m.noise(plain, 100.0) - plain
    return (f"noise of standard deviation {noise.std():.2g} on 4 tokens differs between them by "
            f"{np.abs(noise - noise[0]).max():.0g}: the difference of two has none")  # fmt: skip


def clipped() -> str:
    m = _bart()
    low, high = m.clip(np.array([-9.0, 9.0]))
    return (f"k numbers in [{low:g}, {high:g}] move by up to {high - low:.1f}·√k; the noise is for "
            f"{2 * m.sigma * m.num_sigmas:.1f}·√k")  # fmt: skip


FAULTS: list[tuple[str, str, str, Callable[[], str]]] = [
    (package, f"{file}:{lines}", claim, show)
    for (package, file), faults in {
        ("mldp-text", "mechanisms.py"): [
            ("305", "TEM: ⊥ weighs |V|/|L_w| words for |W∖L_w|, V its own file's", far_weight),
            ("299", "TEM: γ is rounded", rounded),
            ("320", "TEM: ⊥ where no word is beyond γ", none_far),
            ("157-172", "TruncatedGumbel: a list of the word's own nearest", listed),
            ("160-165", "TruncatedGumbel: a list of 0 words", none_listed),
            ("165-177", "TruncatedGumbel: noise on faiss' squared distances", squared),
            ("125", "TruncatedGumbel without bounds on distances", bounds_left_out),
            ("135-138", "TruncatedGumbel: noise below its condition on ε", scales),
            ("247", "Vickrey: the written word left out where it is nearest", left_out),
            ("422-446", "SynTF: a set of the word's own synonyms, by the text's weights", synonyms),
            ("96, 155, 233, 291, 402", "unknown words", unknown_mldp),
        ],
        ("pypantera", "tem.py"): [
            ("123-127", "TEM: the written word is released where ⊥ is drawn", bottom),
            ("116-127", "TEM: unknown words", unknown_pantera),
        ],
        ("pypantera", "mahalanobis.py"): [
            ("85", "Mahalanobis: stretched noise made a unit again", stretched),
        ],
        ("pypantera", "vocab.py"): [
            ("35-38", "a line that begins where a process's part ends", lost_words),
        ],
        ("dp-diffractor", "core.py"): [
            ("20, 46", "noise from the seed 42 unless another is given", replayed),
            ("121-125", "stop words and unknown words", stop_words),
            ("58", "a worker's list by the number of its process", again),
        ],
        ("privfill", "mechanisms.py"): [
            ("173-174", "DP-BART: one noise vector for all tokens", one_noise),
            ("98-99, 171", "DP-BART: less noise than the clipped range needs", clipped),
        ],
    }.items()
    for lines, claim, show in faults
]
