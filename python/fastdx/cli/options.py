"""The options that commands share, and the Spec of a mechanism that they make."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from fastdx import Embedding, Tem, from_spec
from fastdx._core import RECOMMENDED_BALANCE, RECOMMENDED_COVER, RECOMMENDED_EPSILON
from fastdx.cli.messages import CommandError, step
from fastdx.exceptions import ParameterError
from fastdx.mechanisms import MECHANISMS, Mechanism

if TYPE_CHECKING:
    _Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]

METRICS = ("euclidean", "manhattan", "chebyshev", "angular", "poincare")
FORMATS = ("fastdx", "glove", "word2vec-text", "fasttext", "word2vec-binary", "npy")
BAG = "bag"
"""``--mechanism bag`` makes bags of words with the mechanism of ``--words``."""

KEYS = {
    "epsilon": "epsilon", "gamma": "gamma", "beta": "beta", "mixing": "mixing",
    "tuning": "tuning", "certified": "certified", "cover": "cover", "balance": "balance",
    "exclude": "exclude", "oov": "oov", "skip": "skip", "pad": "pad", "cache_bytes": "cache",
    "threads": "threads", "seed": "seed", "index": "embedding", "metric": "metric",
    "limit": "limit", "format": "embedding-format", "vocabulary": "vocabulary",
    "numbers": "numbers", "dates": "dates",
}  # fmt: skip
"""The names of options by the keys of a Spec that they set."""


RECOMMENDED: dict[str, Any] = {"epsilon": RECOMMENDED_EPSILON, "cover": RECOMMENDED_COVER,
                               "balance": RECOMMENDED_BALANCE, "exclude": "offensive"}  # fmt: skip
"""The keys of a Spec that the recommended policy sets."""

WHY = "docs/explanation/what-you-keep.md"
"""Where the choice of the recommended policy is explained."""


class _Help(argparse.RawDescriptionHelpFormatter):
    """Formats help for the terminal's width.

    argparse makes a formatter for each option, and each asks for the width by a module that loads
    all compressors: a part of every start.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_width() - 2)


def _width() -> int:
    """Return the columns of the terminal, as `shutil.get_terminal_size` finds them."""
    with contextlib.suppress(KeyError, ValueError):
        if (columns := int(os.environ["COLUMNS"])) > 0:
            return columns
    with contextlib.suppress(AttributeError, ValueError, OSError):
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    return 80


def examples(lines: str) -> dict[str, Any]:
    """Return the arguments of a parser that show examples below the help of a command."""
    return {
        "epilog": "examples:\n" + lines.strip("\n"),
        "formatter_class": _Help,
    }


def show_text(p: argparse._ActionsContainer) -> None:
    """Add ``--show-text``."""
    p.add_argument("--show-text", action="store_true",
                   help="show private content in messages")  # fmt: skip


def embedding_options(p: argparse.ArgumentParser) -> None:
    """Add the options that say how to read an embedding file."""
    group = p.add_argument_group("reading the embedding")
    group.add_argument("--embedding-format", choices=FORMATS,
                       help="by default recognised by the content")  # fmt: skip
    group.add_argument("--metric", choices=METRICS, help="by default the file's own, or euclidean")
    group.add_argument("--limit", type=int, metavar="N", help="read only the first N words")
    group.add_argument("--vocabulary", metavar="FILE", help="for .npy: the words, one per line")


def cover_options(p: argparse._ActionsContainer) -> None:
    """Add ``--cover``, ``--balance``, ``--cover-file`` and ``--exclude``."""
    p.add_argument("--cover", type=int, metavar="K", help="tem, response: each word has K outputs "
                   "at distance 0, so no output is likelier than 1/K")  # fmt: skip
    p.add_argument("--balance", type=float, metavar="A", help="with --cover: the weight of similar "
                   "frequency in the choice of outputs; needs a vocabulary in order of frequency "
                   "(try 0.1)")  # fmt: skip
    p.add_argument("--cover-file", metavar="FILE", help="tem, response: a saved cover")
    p.add_argument("--exclude", metavar="FILE", default="offensive", help="words, one per line, "
                   "that are never released; 'offensive' is the built-in list, 'none' excludes "
                   "none (default %(default)s)")  # fmt: skip


def graph_option(p: argparse._ActionsContainer) -> None:
    """Add ``--graph``."""
    p.add_argument("--graph", metavar="EDGES", help="tem: take shortest paths in a graph as the "
                   "metric; a file of lines word TAB word, optionally TAB weight")  # fmt: skip


def number_options(p: argparse._ActionsContainer) -> None:
    """Add the numbers that mechanisms take besides ε."""
    for cls in MECHANISMS.values():
        for option in cls.options:
            p.add_argument(f"--{option.name}", type=float, help=f"{cls.name}: {option.help}")


def mechanism_group(p: argparse.ArgumentParser) -> None:
    """Add the options that choose a mechanism and its parameters."""
    before = len(p._actions)
    group = p.add_argument_group("mechanism")
    group.add_argument("--spec", metavar="FILE", help="a file with the mechanism's Spec (JSON or "
                       "TOML), for example from a report; excludes the other options of this "
                       "group")  # fmt: skip
    group.add_argument(
        "--mechanism",
        choices=(*MECHANISMS, BAG),
        help="by default the recommended policy, whose ε, γ, cover and excluded words the options "
        "change, or tem on other words than the built-in ones; bag: turn each line or field into "
        "a bag of words without stop words; see --words",
    )
    group.add_argument("--words", choices=tuple(MECHANISMS),
                       help="bag: the mechanism that draws its words (default tem)")  # fmt: skip
    group.add_argument("--certified", action="store_true", help="tem: --epsilon is the certified "
                       "ε, which needs less noise; takes a while")  # fmt: skip
    group.add_argument("--embedding", metavar="PATH", help="default: 20,000 English words × 50")
    graph_option(group)
    number_options(group)
    cover_options(group)
    group.add_argument(
        "--oov",
        choices=("random", "error", "drop", "mask", "keep"),
        default="random",
        help="how to treat unknown words (default random; keep releases them UNPROTECTED)",
    )
    group.add_argument("--skip", metavar="FILE",
                       help="words, one per line, that are released UNPROTECTED")  # fmt: skip
    group.add_argument(
        "--consistent",
        action="store_true",
        help="replace all occurrences of a word in a text (a field, or a file of plain text) by "
        "the same word; shows which words are equal",
    )
    group.add_argument("--numbers", metavar="EPS[,KEY=VALUE…]", help="replace numbers by numbers "
                       "near them, with this ε per 1 of ln x; their written form stays; keys: "
                       "scale, unit, low, high, smallest, decimal "
                       "(--numbers 20,decimal=',')")  # fmt: skip
    group.add_argument("--dates", metavar="EPS[,KEY=VALUE…]", help="replace dates by dates near "
                       "them, with this ε per day; keys: order (dmy or mdy, for 03/05/2026), low, "
                       "high, unit")  # fmt: skip
    group.add_argument("--pad", type=float, metavar="SECONDS", help="make every call of the "
                       "mechanism last a multiple of this, so its time tells less")  # fmt: skip
    group.add_argument("--cache", type=int, metavar="BYTES", help="the most bytes of cached lists "
                       "and laws (default FASTDX_CACHE_BYTES, or 128 MiB)")  # fmt: skip
    group.add_argument("--threads", type=int, metavar="N", help="threads that draw words (default "
                       "FASTDX_NUM_THREADS, or one per core)")  # fmt: skip
    group.add_argument("--seed", type=int, help="for tests only: makes the output reproducible, so "
                       "unprotected")  # fmt: skip
    embedding_options(p)
    options = {a.dest: (a.option_strings[0], a.default) for a in p._actions[before:]}
    p.set_defaults(of_mechanism=options)


def given_of_mechanism(args: argparse.Namespace) -> list[str]:
    """Return the options of the mechanism that were given, except ``--spec`` and bags."""
    return [option for dest, (option, default) in args.of_mechanism.items()
            if getattr(args, dest) not in (default, BAG) and dest != "spec"]  # fmt: skip


def index_of(args: argparse.Namespace) -> dict[str, Any] | None:
    """Return the Spec's key ``index`` for the words of the options; None for built-in words."""
    graph = getattr(args, "graph", None)
    reading = {"format": args.embedding_format, "metric": args.metric, "limit": args.limit,
               "vocabulary": args.vocabulary}  # fmt: skip
    given = {key: value for key, value in reading.items() if value is not None}
    if graph is not None:
        others = [f"--{KEYS[key]}" for key in given]
        others += ["--embedding"] if args.embedding is not None else []
        if others:
            raise CommandError(f"--graph has its own metric: leave out {', '.join(others)}")
        return {"file": graph, "format": "edges"}
    if args.embedding is not None:
        return {"file": args.embedding, **given}
    return None


def cover_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the keys of a Spec for the cover that the options ask for."""
    if args.cover is not None and args.cover_file is not None:
        raise CommandError("--cover and --cover-file exclude each other")
    # An absolute path, so that a file called "none" or "offensive" is not taken for a keyword.
    stored = None if args.cover_file is None else {"file": str(Path(args.cover_file).absolute())}
    return {"cover": stored if args.cover is None else args.cover, "balance": args.balance,
            "exclude": args.exclude}  # fmt: skip


def numbers_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the numbers that mechanisms take besides ε."""
    return {option.name: getattr(args, option.name)
            for cls in MECHANISMS.values() for option in cls.options}  # fmt: skip


def figures_of(option: str, given: str | None) -> dict[str, Any] | None:
    """Return the Spec's table for ``--numbers`` or ``--dates``."""
    if given is None:
        return None
    # The value of a key may be a comma: decimal=,
    first, *rest = given.replace("decimal=','", "decimal=COMMA").replace(
        "decimal=,", "decimal=COMMA").split(",")  # fmt: skip
    table: dict[str, Any] = {"epsilon": _number(first)}
    for part in rest:
        key, equals, value = part.partition("=")
        if not equals:
            raise CommandError(f"--{option} must be EPS or EPS,KEY=VALUE,…")
        table[key.strip()] = "," if value == "COMMA" else _number(value)
    return table


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text.strip()


def without_none(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a Spec without the keys whose value is None."""
    return {key: value for key, value in spec.items() if value is not None}


class MechanismOptions(NamedTuple):
    """The mechanism that the options of a command describe."""

    spec: dict[str, Any]
    """The Spec of the mechanism; empty if `file` has it."""
    file: str | None
    """The file with the Spec, if ``--spec`` names one."""
    bag: bool
    """Whether texts become bags of words."""
    quiet: bool
    recommended: bool = False
    """Whether `spec` is the recommended policy, or this with some keys changed."""

    @classmethod
    def of(cls, args: argparse.Namespace) -> MechanismOptions:
        """Read the options, and refuse those that contradict each other."""
        bag = args.mechanism == BAG
        if args.words and not bag:
            raise CommandError("--words goes with --mechanism bag")
        if args.skip and bag:
            raise CommandError("--skip does not go with --mechanism bag")
        if args.spec is not None:
            given = given_of_mechanism(args)
            if given or args.epsilon is not None:
                option = given[0] if given else "--epsilon"
                raise CommandError(f"--spec describes the whole mechanism: leave out {option}")
            return cls({}, args.spec, bag, args.quiet)
        named = args.words if bag else args.mechanism
        spec: dict[str, Any] = {
            "mechanism": named or "tem",
            "epsilon": args.epsilon, **numbers_of(args), "certified": args.certified or None,
            "index": index_of(args), **cover_of(args), "oov": args.oov,
            "skip": skipped_words(args.skip), "consistent": args.consistent or None,
            "numbers": figures_of("numbers", args.numbers),
            "dates": figures_of("dates", args.dates),
            "pad": args.pad, "cache_bytes": args.cache, "threads": args.threads,
            "seed": args.seed,
        }  # fmt: skip
        spec = without_none(spec)
        recommended = "index" not in spec and (
            named is None or (named == "tem" and args.epsilon is None)
        )
        if recommended:
            own = RECOMMENDED.copy()
            if isinstance(spec.get("cover"), dict):
                del own["balance"]  # a stored cover has its own
            spec = own | spec
        # A report on the standard error must be its only line, and says the same.
        quiet = args.quiet or getattr(args, "report", None) is not None
        return cls(spec, None, bag, quiet, recommended)

    @property
    def consistent(self) -> bool:
        """Whether equal words in a text get the same replacement."""
        return bool(self.spec.get("consistent"))

    @property
    def policy(self) -> str | None:
        """What is as recommended and what is not, if the recommended policy is meant."""
        return _recommended(self.spec) if self.recommended else None

    def make(self, *, pieces: bool = False) -> Mechanism:
        """Make the mechanism.

        Parameters
        ----------
        pieces : bool, optional
            Whether one call of the mechanism gets the pieces of one text.
        """
        if self.file is not None:
            with step("making the mechanism", quiet=self.quiet) as progress:
                return from_spec(self.file, progress=progress)
        spec = {**self.spec, "consistent": "call"} if pieces and self.consistent else self.spec
        doing = "certifying" if spec.get("certified") else "making the mechanism"
        with step(doing, quiet=self.quiet) as progress:
            mechanism = made(spec, progress)
        if self.policy is not None and not self.quiet:
            print(f"fastdx: {self.policy}", file=sys.stderr)
        return mechanism


def _recommended(spec: dict[str, Any]) -> str:
    """Say what of a policy is as recommended, and what is not."""
    law = [key for key in (*RECOMMENDED, "gamma", "beta", "certified") if key in spec]
    kept = {key: f"--{key} {spec[key]}" for key in law if spec[key] == RECOMMENDED.get(key)}
    changed = [
        f"--{key} {RECOMMENDED[key]}" if key in RECOMMENDED else f"no --{key}"
        for key in law
        if key not in kept
    ]
    kept.pop("exclude", None)
    if not changed:
        return (f"the recommended policy: {' '.join(kept.values())}; attacks on sentences decided "
                f"these numbers ({WHY})")  # fmt: skip
    return (f"no longer the recommended policy, which has {', '.join(changed)}"
            + f"; still {' '.join(kept.values())}" * bool(kept)
            + f"; attacks on sentences decided the recommended numbers only ({WHY})")  # fmt: skip


def made(spec: dict[str, Any], progress: Callable[[int], object] | None = None) -> Mechanism:
    """Make the mechanism of a Spec that comes from options; errors name the options."""
    try:
        return from_spec(spec, progress=progress)
    except ParameterError as e:
        key, _, rest = str(e).partition(" ")
        key, _, of_table = key.partition(".")
        name = KEYS.get(key)
        if name is None or not rest.startswith("must be "):
            raise
        edges = spec.get("index", {}).get("format") == "edges"
        name = "graph" if key == "index" and edges else name
        name = f"{name}: {of_table}" if of_table else name
        raise CommandError(f"--{name} {rest}") from e


def refuse_unchanged(mechanism: Mechanism, *, allowed: bool) -> None:
    """Refuse a policy under which more than half of the common words come back unchanged."""
    from fastdx._core import MOST_UNCHANGED

    found = mechanism.unchanged
    if found.mean > MOST_UNCHANGED and not allowed:
        raise CommandError(f"{found.warning}; take a smaller --epsilon or a --cover, or give "
                           "--allow-unchanged")  # fmt: skip


def load(args: argparse.Namespace, path: str) -> Embedding:
    """Load an embedding as the options say."""
    return Embedding.load(
        path,
        format=args.embedding_format,
        limit=args.limit,
        metric=args.metric,
        vocabulary=args.vocabulary,
    )


def excluded_words(args: argparse.Namespace) -> Path | str | None:
    """Return the value for the parameter ``exclude``."""
    if args.exclude in ("none", "offensive"):
        return "offensive" if args.exclude == "offensive" else None
    return Path(args.exclude)


def attacked_texts(path: str) -> tuple[list[str], list[str]]:
    """Return the texts, one per line, that an attacker knows, and those that he attacks.

    Lines alternate: he knows the first and attacks the second. Empty lines are left out.
    """
    lines = [line for line in Path(path).read_text("utf-8").split("\n") if line.strip()]
    if len(lines) < 2:
        raise CommandError(f"{path}: --texts needs at least two lines, one text each")
    return lines[::2], lines[1::2]


def skipped_words(path: str | None) -> list[str] | None:
    """Return the words of a file with one word per line."""
    if path is None:
        return None
    lines = Path(path).read_text("utf-8").split("\n")
    return [line.strip() for line in lines if line.strip()]


def shown_lists(tem: Tem) -> str:
    """Describe the lists that a Tem has stored."""
    if tem.lists_k is not None:
        return f"{tem.lists_k} neighbours a word"
    if tem.lists_radius is not None:
        return f"all neighbours within {tem.lists_radius:.6g}"
    return "none"
