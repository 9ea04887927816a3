"""The base class of all word mechanisms: common parameters, copies, equality and `repr`."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex, TypedDict

from fastdx._core import Cover, Embedding, Guarantee, MechanismCore, WordGraph
from fastdx._selection import CHOSEN, RELEASED, PrivateSpans, Select, pairs, places_of
from fastdx._shared.rounded import up
from fastdx._types import Bits, Unchanged
from fastdx.exceptions import InputTypeError, ParameterError

if TYPE_CHECKING:
    from typing_extensions import Self

    from fastdx.numbers import Date, Number

QUICK = 50_000
"""The largest vocabulary for which `repr` measures how many words come back unchanged."""


class Common(TypedDict, total=False):
    """The parameters that every mechanism takes by keyword."""

    oov: str
    """How to treat a word that the vocabulary lacks. 'random' (default) draws a word uniformly from
    the vocabulary; 'error' raises; 'drop' leaves it out; 'mask' replaces it by a mask; 'keep'
    releases it UNPROTECTED."""
    skip: Iterable[str] | None
    """Words that are released unchanged, UNPROTECTED."""
    exclude: Iterable[str] | PathLike[str] | str | None
    """Words that are never released; as inputs they stay protected. An iterable of words, the path
    of a file with one word per line, or 'offensive', the built-in list. Noise mechanisms release
    the nearest word that is allowed."""
    remap: Cover | SupportsIndex | None
    """Post-processing, which costs no privacy: replaces an output by one of the outputs that a
    cover has for it, drawn uniformly. An int k takes the k nearest words. Only for mechanisms
    whose outputs stand for themselves."""
    consistent: bool | str
    """True: all occurrences of a word in one text get the same replacement, so counting outputs
    recovers nothing. The output then shows which words of the text are equal. A list of tokens or
    an array of ids is one text. 'call': all texts of one call count as one text. `sample` still
    draws independently."""
    numbers: Number | float | None
    """The mechanism that draws numbers in texts: a `fastdx.numbers.Number`, or its ε with defaults
    for the rest. Each number keeps its written form, which is released. By default numbers are
    words."""
    dates: Date | float | None
    """The mechanism that draws dates in texts: a `fastdx.numbers.Date`, or its ε. By default dates
    are words."""
    seed: int | None
    """For tests only: makes the output reproducible, and so unprotected."""
    pad: float | None
    """Seconds. Every call lasts a whole multiple of `pad`. While calls need less than one `pad`,
    their duration tells nothing about the words."""
    cache_bytes: int | None
    """The most bytes of neighbour lists and laws that the mechanism and its copies at other ε keep
    together; by default ``FASTDX_CACHE_BYTES``, or 128 MiB. The first entries stay; once the cache
    is full, later ones are computed anew each time. The law of the output does not depend on it.
    Only Tem has such a cache."""
    threads: int | None
    """The most threads that a call uses; by default ``FASTDX_NUM_THREADS``, or one per core."""


class Mechanism(MechanismCore):
    """The abstract base of all word mechanisms: see Tem, MultivariateLaplace, ….

    A mechanism is immutable; threads may share it, and it can be pickled. Every call draws fresh
    randomness from the operating system, unless the mechanism was made with ``seed=``, which is for
    tests only.

    Every mechanism takes

    - ``space``, an Embedding or a WordGraph: words and metric, by default a built-in embedding
      (`default_space`). Noise mechanisms need an `Embedding` with their metric;
    - ``epsilon``: ε per unit of the metric's distance, positive;
    - ``oov``, ``skip``, ``exclude``, ``remap``, ``consistent``, ``numbers``, ``dates``, ``seed``,
      ``pad``, ``cache_bytes`` and ``threads``: see `Common`.

    A parameter outside its domain, or a space of another metric than the mechanism's, raises a
    `ParameterError`.
    """

    __slots__ = ()

    name: ClassVar[str]
    """The mechanism's name in `MECHANISMS` and on the command line."""
    default_space: ClassVar[str] = "english"
    """The built-in embedding that the mechanism uses if none is given."""

    def __new__(
        cls,
        space: Embedding | WordGraph | None = None,
        epsilon: float | None = None,
        **parameters: Any,
    ) -> Self:
        """Make the core of a mechanism of this class, whichever class it is."""
        if epsilon is None and isinstance(space, Real):
            raise InputTypeError(
                "embedding must be a fastdx.Embedding (or, for Tem, a WordGraph), not "
                f"{type(space).__name__}; ε comes second, or by its name: epsilon={float(space)!r}"
            )
        if cls is Mechanism:
            raise TypeError("Mechanism is abstract: make a Tem, a MultivariateLaplace, …")
        return super().__new__(cls, cls.name, space, {"epsilon": epsilon, **parameters})

    @classmethod
    def _around(cls, core: MechanismCore) -> Self:
        return MechanismCore.__new__(cls, core)

    @classmethod
    def _from_spec(cls, spec: str, held: dict[str, Any]) -> Self:
        """Make the mechanism that a Spec (JSON) and its in-memory parts, by name, describe."""
        return cls._around(MechanismCore._of_spec(spec, held))

    @classmethod
    def smallest_epsilon(cls, space: Embedding | WordGraph) -> float:
        """Return the exclusive lower bound on ε for a space."""
        return 0.0

    @property
    def spec(self) -> dict[str, Any]:
        """The complete description of the mechanism as data, which `fastdx.from_spec` reads.

        It says exactly what runs: the mechanism with its parameters, the words (built in or a file,
        with their fingerprint), the cover, the exclusions, and the treatment of text. For a part
        that exists only in memory it holds the fingerprint.

        Examples
        --------
        >>> from fastdx import Tem, from_spec
        >>> tem = Tem.recommended()
        >>> spec = tem.spec
        >>> spec["mechanism"], spec["epsilon"], spec["language"]
        ('tem', 2.6, 'rank')
        >>> from_spec(spec) == tem
        True
        """
        import json

        spec: dict[str, Any] = json.loads(self._complete_spec())
        return spec

    @property
    def nominal(self) -> float:
        """The ε in the law's formula: the paper's one, where `epsilon` is the one that is proved.

        Of a certified `Tem` it is larger than `epsilon`; of `Mahalanobis` per unit of that norm; of
        `HyperbolicLaplace` with base='ball' it is ε - n. Otherwise both are the same.
        """
        return float(self._details.get("nominal", self.epsilon))

    @property
    def guarantee(self) -> Guarantee:
        """The proved guarantee, an object that prints as a sentence."""
        return Guarantee(self)

    @property
    def numbers(self) -> Number | None:
        """The mechanism that draws numbers in texts; None if numbers are words."""
        from fastdx.numbers import Number, restored

        return restored(Number, self._figures[0])

    @property
    def dates(self) -> Date | None:
        """The mechanism that draws dates in texts; None if dates are words."""
        from fastdx.numbers import Date, restored

        return restored(Date, self._figures[1])

    @property
    def unchanged(self) -> Unchanged:
        """How often common words come back unchanged; look at it before you release anything.

        Common words are the first 1,000 of the vocabulary, which is in order of frequency. They are
        measured once, by draws with a fixed key; for a small vocabulary the law is summed.
        `calibration.statistics` computes the probability for all words.

        Raises
        ------
        ParameterError
            It depends on what was released before (a `Tem` with such a `language`).

        Examples
        --------
        >>> from fastdx import Tem
        >>> Tem(epsilon=6.0).unchanged.warning
        'at this ε 57% of common words come back as they were: this protects hardly anything'
        """
        self._check_one_law()
        return Unchanged(*self._unchanged())

    def bits(self) -> Bits:
        """Return the mutual information of a word and its replacement, in bits.

        A release of n words tells any reader at most n times this about its text. It is a measure
        under one prior, not a proof: a word is written with probability ∝ 1/(rank + 2.7), the
        vocabulary being in order of frequency. The first call computes it: a sum over all words up
        to 20,000, above that an estimate from fewer laws, with its interval (``low``, ``high``,
        ``sampled``). `fastdx.channel.Channel` takes other priors, and sums over more
        words.

        Raises
        ------
        ParameterError
            The mechanism is noise, whose law cannot be computed, has a seed, which tells
            everything, or a law that depends on what was released before.
        """
        found, why = self._bits()
        if found is None:
            raise ParameterError(f"mechanism must be one whose bits are known: {why}")
        return Bits(*found)

    def with_epsilon(self, epsilon: float) -> Self:
        """Return a copy at another ε that shares everything else."""
        return self._around(self._at(epsilon))

    def _seeded(self, seed: int) -> Self:
        """Return a copy with a seed, for repeatable measurements."""
        import json

        spec = json.loads(self._given_spec())
        spec["seed"] = seed
        return self._from_spec(json.dumps(spec), self._held())

    def privatize_frame(self, frame: Any, columns: str | int | Iterable[str | int]) -> Any:
        """Replace the words of columns of a frame; all others stay as they are, UNPROTECTED.

        Parameters
        ----------
        frame : pandas.DataFrame, polars.DataFrame, pyarrow.Table or RecordBatch, DuckDB relation
            The frame.
        columns : str or iterable of str
            The columns of text (numbers where pandas has numbers). A name with points names a field
            within structs of Arrow, polars or DuckDB (``'user.comment'``), unless a column has it.

        Returns
        -------
        DataFrame, Table or RecordBatch
            A frame of the same type (a pyarrow.Table for a DuckDB relation), with the columns in
            their places. ``attrs`` and metadata are dropped, except those that Arrow and pandas
            need to read columns. The schema of an Arrow table gets the channel card (key
            ``fastdx.channel``), unless the mechanism has a seed or no law.

        Raises
        ------
        InputTypeError
            The frame is of another kind or lazy, or a value is no text.
        """
        from fastdx._shared.columns import privatize_frame

        return privatize_frame(self, frame, columns)

    def privatize_spans(
        self,
        text: str,
        spans: Iterable[Any] | None = None,
        *,
        unit: str = "codepoint",
        select: Select | None = None,
    ) -> PrivateSpans:
        """Replace the words of some spans of a text; the rest is released as it is, UNPROTECTED.

        Use it with a tool that finds names, slot values or medical terms. The places of the spans,
        and so the findings of that tool, are not protected. A span is widened to the whole words
        that it touches: the other half of a word would be released.

        Parameters
        ----------
        text : str
            The text.
        spans : iterable of (int, int), optional
            Starts and ends, in any order; their union counts. Also an array of shape (n, 2), dicts
            or objects with ``start`` and ``end`` (Presidio's results), and spans of spaCy.
        unit : 'codepoint', 'utf16' or 'byte', optional
            The unit of starts and ends: Python counts code points, JavaScript, Java and C# units of
            UTF-16, Rust and Go bytes of UTF-8.
        select : Select, optional
            Selects words instead of `spans`. The choice depends on private words and is released,
            so the guarantee bounds no two texts.

        Raises
        ------
        ParameterError
            A span that is empty, ends before it starts, or does not start and end between
            characters of the text; its position in the list is named.

        Examples
        --------
        >>> from fastdx import Tem
        >>> private = Tem.recommended().privatize_spans("Dear Anna, thank you.", [(5, 9)])
        >>> private.text.startswith("Dear ") and private.text.endswith(", thank you.")
        True
        """
        if (spans is None) == (select is None):
            raise InputTypeError("spans and select: give one of them")
        if select is not None:
            if unit != "codepoint":
                raise InputTypeError("select finds words in code points: give unit with spans")
            words = self._word_spans(text)
            spans = [words[i] for i in places_of([text[a:b] for a, b in words], select)]
        new, places, counts, outside = self._privatize_spans(text, pairs(spans), unit)
        chosen = Guarantee(self, [RELEASED, CHOSEN])
        guarantee = Guarantee(self, [RELEASED], outside) if select is None else chosen
        return PrivateSpans(new, places, counts, guarantee)

    def privatize_tokens(self, tokens: Iterable[str], *, select: Select | None = None) -> list[str]:
        """Replace the words of a list; each string is one word, whatever characters it holds.

        Parameters
        ----------
        tokens : iterable of str
            The words. There are as many replacements, unless ``oov='drop'``.
        select : Select, optional
            Replaces only these words, as for `privatize_spans`; all others are released unchanged,
            UNPROTECTED.
        """
        if select is None:
            return self._privatize_tokens(tokens)
        if self.oov == "drop":
            raise InputTypeError("select does not go with oov='drop'")
        new = list(tokens)
        chosen = places_of(new, select)
        for i, word in zip(chosen, self._privatize_tokens(new, chosen), strict=True):
            new[i] = word
        return new

    def _shown(self) -> str:
        """Return the parameters as `repr` shows them."""
        own = {name: value for name, value in self._details.items() if value is not None}
        shown = [f"{k}={up(v) if isinstance(v, float) else repr(v)}" for k, v in own.items()]
        return ", ".join([f"epsilon={up(self.epsilon)}", *shown])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._from_spec, (self._given_spec(), self._held())

    def __eq__(self, other: object) -> bool:
        """Return whether both have an equal `spec` and, of what is in Python, the same objects."""
        if type(self) is not type(other) or not isinstance(other, Mechanism):
            return NotImplemented
        if self is other:
            return True
        held = other._held()
        same = all(part is held[name] for name, part in self._held().items()
                   if callable(part) or hasattr(part, "log_next"))  # fmt: skip
        return same and self._complete_spec(False) == other._complete_spec(False)

    def __hash__(self) -> int:
        return hash(self._complete_spec(False))

    def __repr__(self) -> str:
        shown = f"{type(self).__name__}({self._shown_space}, {self._shown()}, oov={self.oov!r}"
        if (remap := self.remap) is not None:
            shown += f", remap={remap!r}"
        if self.excluded:
            shown += f", {len(self.excluded)} words excluded"
        if self.consistent:
            shown += f", consistent={self.consistent!r}"
        for name, law in (("numbers", self.numbers), ("dates", self.dates)):
            if law is not None:
                shown += f", {name}={law!r}"
        if len(self.space) <= QUICK and not self._has_history:
            shown += f", unchanged={self.unchanged.mean:.2g}"
        if self.seed is not None:
            shown += f", seed={self.seed}: REPRODUCIBLE, FOR TESTS ONLY"
        return f"{shown})"
