"""What all word mechanisms share: their common parameters, and how they are copied and shown."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, SupportsIndex, TypedDict

from fastdx._core import Cover, Embedding, Guarantee, MechanismCore, WordGraph
from fastdx._shared.rounded import up
from fastdx._types import Bits, LedgerLike, Unchanged
from fastdx.exceptions import InputTypeError, ParameterError
from fastdx.selection import PrivateSpans, Select, private_spans, selected, spans_of

if TYPE_CHECKING:
    from typing_extensions import Self

    from fastdx.numbers import Date, Number

__all__ = ["Common", "Mechanism", "Option", "Unchanged"]

QUICK = 50_000
"""Words of a vocabulary up to which `repr` measures what comes back unchanged."""


class Common(TypedDict, total=False):
    """The parameters that every mechanism takes by keyword."""

    oov: str
    """Unknown words: 'random' (default) draws uniformly from the vocabulary, 'error', 'drop',
    'mask'; 'keep' releases them UNPROTECTED."""
    skip: Iterable[str] | None
    """Words released as they are, UNPROTECTED."""
    exclude: Iterable[str] | PathLike[str] | str | None
    """Words that are never released and stay protected inputs: words, a file of them, one a line,
    or 'offensive', the built-in list. Noise mechanisms release the nearest word that is allowed."""
    remap: Cover | SupportsIndex | None
    """Post-processing, which costs nothing: an output is replaced by one of those that a cover has
    for it, uniformly drawn; k for its k nearest. For mechanisms whose outputs stand for
    themselves."""
    consistent: bool | str
    """True: the same word gets the same replacement throughout a text (a list of tokens or an array
    of ids is one), so that counting outputs recovers nothing; which words are equal is released.
    'call': throughout all texts of a call. `sample` still draws independently."""
    numbers: Number | float | None
    """What numbers in texts are drawn by (`fastdx.numbers.Number`, or its ε with everything else by
    default), each written in the form that it had; that form is released. By default they are
    words."""
    dates: Date | float | None
    """What dates in texts are drawn by: `fastdx.numbers.Date`, or its ε. By default they are
    words."""
    seed: int | None
    """For tests only: makes the output reproducible, and thereby unprotected."""
    pad: float | None
    """Seconds: every call takes a whole multiple of it, so that its time tells nothing of the words
    as long as calls need less."""
    cache_bytes: int | None
    """Bytes of neighbour lists and laws that the mechanism and its copies at other ε keep at most;
    by default ``FASTDX_CACHE_BYTES``, or 128 MiB. What comes first is kept and stays; beyond the
    bound it is made anew each time. The law of the output does not depend on it. Only Tem keeps
    anything."""
    threads: int | None
    """Threads that a call uses at most; by default ``FASTDX_NUM_THREADS``, or one a core."""


class Option(NamedTuple):
    """A number that a mechanism takes on the command line, as it does by keyword."""

    name: str
    """The keyword; ``--name`` on the command line."""
    help: str
    """What it is."""


class Mechanism(MechanismCore):
    """What every word mechanism can do. Not made itself: see Tem, MultivariateLaplace, ….

    Mechanisms are immutable, may be shared between threads and pickled. Every call draws fresh
    randomness from the operating system, unless the mechanism was made with ``seed=``, which is for
    tests only.

    All take, by keyword, ``oov``, ``skip``, ``exclude``, ``remap``, ``consistent``, ``numbers``,
    ``dates``, ``seed``, ``pad``, ``cache_bytes`` and ``threads``: see `Common`.
    """

    __slots__ = ()

    name: ClassVar[str]
    """What it is called in `MECHANISMS` and on the command line."""
    options: ClassVar[tuple[Option, ...]] = ()
    """Numbers that it takes on the command line, beside ε."""
    default_space: ClassVar[str] = "english"
    """The built-in embedding that it works on where none is given."""

    @classmethod
    def _new(
        cls,
        space: Embedding | WordGraph | None,
        embedding: Embedding | None,
        epsilon: float | None,
        own: dict[str, Any],
        common: Common,
    ) -> Self:
        """Make the core; ``embedding=`` is an alias of ``space=``."""
        if space is not None and embedding is not None:
            raise InputTypeError("space and embedding are one parameter: give one of them")
        given = embedding if space is None else space
        if epsilon is None and isinstance(given, Real):
            name = "nominal" if own.get("paper") else "epsilon"
            raise InputTypeError(
                "embedding must be a fastdx.Embedding (or, for Tem, a WordGraph), not "
                f"{type(given).__name__}; ε comes second, or by its name: {name}={float(given)!r}"
            )
        return MechanismCore.__new__(cls, cls.name, given, {"epsilon": epsilon, **own, **common})

    @classmethod
    def _around(cls, core: MechanismCore) -> Self:
        return MechanismCore.__new__(cls, core)

    @classmethod
    def _from_spec(cls, spec: str, held: dict[str, Any]) -> Self:
        """Make the mechanism that a Spec (JSON) describes, with what is in memory by name."""
        return cls._around(MechanismCore._of_spec(spec, held))

    @classmethod
    def make(cls, space: Embedding | WordGraph | None, epsilon: float, **parameters: Any) -> Self:
        """Make the mechanism from parameters by name, whichever it is."""
        constructor: Any = cls
        made: Self = constructor(space, epsilon, **parameters)
        return made

    @classmethod
    def smallest_epsilon(cls, space: Embedding | WordGraph) -> float:
        """Return what ε must be above on a space."""
        return 0.0

    @property
    def spec(self) -> dict[str, Any]:
        """The complete description of the mechanism as data, which `fastdx.from_spec` reads.

        It says exactly what was run: the mechanism with its parameters, the words (built in, or a
        file, and their fingerprint), cover, exclusions, and what is done to text. What is in memory
        only, it holds the fingerprint of.

        Examples
        --------
        >>> from fastdx import Tem, from_spec
        >>> tem = Tem.recommended()
        >>> spec = tem.spec
        >>> spec["mechanism"], spec["epsilon"], spec["cover"], spec["balance"]
        ('tem', 2.25, 40, 0.1)
        >>> from_spec(spec) == tem
        True
        """
        import json

        spec: dict[str, Any] = json.loads(self._complete_spec())
        return spec

    @property
    def guarantee(self) -> Guarantee:
        """What is proved, as an object that prints as a sentence."""
        return Guarantee(self)

    @property
    def numbers(self) -> Number | None:
        """What numbers in texts are drawn by; None where they are words.

        Examples
        --------
        >>> from fastdx import Tem
        >>> from fastdx.numbers import Number
        >>> tem = Tem.recommended(numbers=Number(20.0))
        >>> tem.numbers == Number(20.0), tem.dates
        (True, None)
        >>> tem.privatize("12.50 €").endswith(" €")
        True
        """
        from fastdx.numbers import made

        return made(self._figures)[0]

    @property
    def dates(self) -> Date | None:
        """What dates in texts are drawn by; None where they are words."""
        from fastdx.numbers import made

        return made(self._figures)[1]

    @property
    def unchanged(self) -> Unchanged:
        """How often common words come back as they were: look at it before anything is released.

        Common words are the first 1,000 of the vocabulary, which is in order of frequency. They are
        measured once, by draws with a fixed key; in small vocabularies the law is summed.
        `calibration.statistics` computes it for all words.

        Examples
        --------
        >>> from fastdx import Tem
        >>> Tem(epsilon=6.0).unchanged.warning
        'at this ε 57% of common words come back as they were: this protects hardly anything'
        """
        return Unchanged(*self._unchanged())

    def bits(self) -> Bits:
        """Return what a release tells of a word, in bits: the mutual information of both.

        A release of n words tells at most n times this of its text, whoever reads it. A measure
        under one prior, not a proof: words are written by 1/(rank + 2.7), the vocabulary being in
        order of frequency. Computed once, by a pass over the laws of all words (seconds for
        20,000). `fastdx.channel.Channel` takes other priors.

        Raises
        ------
        ParameterError
            Noise, whose law cannot be computed; a seeded mechanism, which tells everything.

        Examples
        --------
        >>> from fastdx import Embedding, Tem
        >>> e = Embedding(["a", "b", "c"], [[0.0], [0.1], [5.0]])
        >>> print(Tem(e, 4.0).bits())
        0.84 bits
        """
        found, why = self._bits()
        if found is None:
            raise ParameterError(f"mechanism must be one whose bits are known: {why}")
        return Bits(*found)

    def describe(
        self,
        audience: str = "engineer",
        *,
        ledger: LedgerLike | None = None,
        account: str | None = None,
    ) -> str:
        """Describe what is proved for one audience.

        Parameters
        ----------
        audience : 'engineer', 'user' or 'reviewer', optional
            'engineer': the sentence that `guarantee` prints; 'user': a paragraph in plain words
            for those whose words it protects; 'reviewer': a release record in Markdown, for a
            data-protection officer to read, fill in and sign.
        ledger : fastdx.budget.Ledger, optional
            For the record: the budget and what was spent of it.
        account : str, optional
            For the record: the account of the ledger that is meant. By default all of them.

        Examples
        --------
        >>> from fastdx import Tem
        >>> "## What is not anonymous" in Tem.recommended().describe("reviewer")
        True
        """
        return self.guarantee.describe(audience, ledger=ledger, account=account)

    def _record(self, guarantee: Guarantee, ledger: LedgerLike | None, account: str | None) -> str:
        """Write the release record of one of its guarantees; the core calls it."""
        from fastdx.record import page

        return page(guarantee, ledger, account)

    def with_epsilon(self, epsilon: float) -> Self:
        """Return the same mechanism at another ε, sharing everything else."""
        return self._around(self._at(epsilon))

    def _seeded(self, seed: int) -> Self:
        """Return the same mechanism with a seed, for measurements that are to be repeatable."""
        import json

        spec = json.loads(self._given_spec())
        spec["seed"] = seed
        return self._from_spec(json.dumps(spec), self._held())

    def _privatize_column(self, text: Any) -> Any:
        """Replace the words of a column: what the core's `privatize` does not know."""
        from fastdx.columns import privatize_column

        return privatize_column(self, text)

    def privatize_frame(self, frame: Any, columns: str | Iterable[str]) -> Any:
        """Replace the words of columns of a frame; all others stay as they are, UNPROTECTED.

        Parameters
        ----------
        frame : pandas.DataFrame, polars.DataFrame, pyarrow.Table or RecordBatch, DuckDB relation
            The frame.
        columns : str or iterable of str
            Columns of text. Of Arrow tables also fields within: ``'user.comment'``.

        Returns
        -------
        DataFrame, Table or RecordBatch
            As given (of a DuckDB relation a pyarrow.Table), with the columns in their places.
            ``attrs`` and metadata are dropped, but for what Arrow and pandas need to read columns.
            The schema of an Arrow table gets the channel card (key ``fastdx.channel``), unless the
            mechanism has a seed or no law.
        """
        from fastdx.columns import privatize_frame

        return privatize_frame(self, frame, columns)

    def privatize_spans(
        self,
        text: str,
        spans: Iterable[tuple[int, int]] | None = None,
        *,
        select: Select | None = None,
    ) -> PrivateSpans:
        """Replace the words of some spans of a text; the rest is released as it is, UNPROTECTED.

        The bridge to whatever finds names, slot values or medical terms. Where the spans lie, and
        so what they were found by, is not protected.

        Parameters
        ----------
        text : str
            The text.
        spans : iterable of (int, int), optional
            Starts and ends in characters, ascending, without overlap.
        select : 'rare', collection of str, or callable, optional
            In the place of `spans` the words that are rare (`fastdx.selection.rare`), that are
            among these, or for which the function says so.

        Returns
        -------
        PrivateSpans
            ``.text``, ``.spans`` (where they are now), ``.counts``, ``.guarantee``.

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
            return private_spans(self, text, spans_of(self, text, select))
        return private_spans(self, text, [(int(a), int(b)) for a, b in spans or ()])

    def privatize_tokens(self, tokens: Iterable[str], *, select: Select | None = None) -> list[str]:
        """Replace words that were found elsewhere: each string is one word, whatever it holds.

        Parameters
        ----------
        tokens : iterable of str
            The words.
        select : 'rare', collection of str, or callable, optional
            Only these words, as for `privatize_spans`; others are released as they are,
            UNPROTECTED.

        Returns
        -------
        list of str
            Of the same length, unless ``oov='drop'``.
        """
        if select is None:
            return super().privatize_tokens(tokens)
        if self.oov == "drop":
            raise InputTypeError("select does not go with oov='drop'")
        wanted, new = selected(select), list(tokens)
        chosen = [i for i, token in enumerate(new) if wanted(token)]
        drawn = super().privatize_tokens([new[i] for i in chosen])
        for i, word in zip(chosen, drawn, strict=True):
            new[i] = word
        return new

    def _shown(self) -> str:
        """Return its parameters as `repr` shows them."""
        return f"epsilon={up(self.epsilon)}"

    def _held(self) -> dict[str, Any]:
        """Return what is in memory and makes an equal mechanism, with `spec`."""
        return {"space": self.space, "cover": self._given_cover(), "remap": self._given_remap()}

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes an equal object: pickle's protocol."""
        return _restored, (type(self), self._given_spec(), self._held())

    def __eq__(self, other: object) -> bool:
        """Whether it has the same `spec`: the same law, words and guarantee."""
        if type(self) is not type(other) or not isinstance(other, Mechanism):
            return NotImplemented
        return self is other or self._complete_spec(False) == other._complete_spec(False)

    def __hash__(self) -> int:
        """Hash the `spec`."""
        return hash(self._complete_spec(False))

    def __repr__(self) -> str:
        """Show the space and the parameters."""
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
        if len(self.space) <= QUICK:
            shown += f", unchanged={self.unchanged.mean:.2g}"
        if self.seed is not None:
            shown += f", seed={self.seed}: REPRODUCIBLE, FOR TESTS ONLY"
        return f"{shown})"


def _restored(cls: type[Mechanism], spec: str, held: dict[str, Any]) -> Mechanism:
    """Make the mechanism of a Spec as JSON, with what is in memory."""
    return cls._from_spec(spec, held)
