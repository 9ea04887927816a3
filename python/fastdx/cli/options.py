"""The options that commands share, and the Spec of a mechanism that they make."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from fastdx import Embedding, from_spec
from fastdx._core import RECOMMENDED_EPSILON, spec_keys
from fastdx.cli import policies
from fastdx.cli.messages import CommandError, step, tell
from fastdx.mechanisms import MECHANISMS, Mechanism

if TYPE_CHECKING:
    from fastdx.channel import Channel

Commands: TypeAlias = "argparse._SubParsersAction[Parser]"

RECOMMENDED: dict[str, Any] = {"epsilon": RECOMMENDED_EPSILON, "language": "rank",
                               "exclude": "offensive"}  # fmt: skip
"""The keys of a Spec that the recommended policy sets."""


class _Help(argparse.HelpFormatter):
    """Formats help; with `short`, of these options only."""

    def __init__(self, prog: str, short: str = "") -> None:
        super().__init__(prog)
        self._short = short.split()

    def add_usage(
        self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None
    ) -> None:
        """Add the usage, without the options that may be left out: the help lists them."""
        needed = [a for a in actions if a.required or not a.option_strings]
        if len(needed) < len(list(actions)):
            needed.insert(0, argparse.Action([], "options", metavar="[options]"))
        super().add_usage(usage, needed, [], prefix)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        examples = text.startswith("examples:")  # whose lines are commands
        return text if examples else super()._fill_text(text, width, indent)

    def add_argument(self, action: argparse.Action) -> None:
        """Add the help of an option, unless it is left to ``--help-all``."""
        if not self._short or not action.option_strings or action.dest in self._short:
            super().add_argument(action)


class _HelpAll(argparse._HelpAction):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        parser.formatter_class = _Help
        parser.print_help()
        parser.exit()


class Parser(argparse.ArgumentParser):
    """A parser whose help ends with examples.

    If `short` names options, ``--help`` shows only these, and ``--help-all`` shows all.
    """

    def __init__(self, *, examples: str, short: str = "", **more: Any) -> None:
        formatter: Any = partial(_Help, short=short and f"help help_all {short}")
        epilog = "examples:\n" + examples.strip("\n")
        super().__init__(epilog=epilog, formatter_class=formatter, **more)
        if short:
            self.add_argument("--help-all", action=_HelpAll, help="show all options, and exit")


def lines_of(path: str) -> list[str]:
    """Return the lines of a file, without white space around them and without empty ones."""
    lines = Path(path).read_text("utf-8").split("\n")
    return [line.strip() for line in lines if line.strip()]


def _language(given: str) -> str | dict[str, str]:
    known = given in ("uniform", "rank", "frequency", "english")
    return given if known else {"file": str(Path(given).absolute())}


def _figure(given: str) -> Any:
    """Return the Spec's value for ``--numbers`` or ``--dates``."""
    try:
        return json.loads(given)
    except ValueError:
        raise CommandError("--numbers and --dates must be ε, or a table as JSON") from None


GROUPS: dict[str, dict[str, dict[str, Any]]] = {
    "policy": {
        "mechanism": {"choices": tuple(MECHANISMS), "metavar": "NAME", "help": "%(choices)s; by "
                      "default the recommended policy, or tem on other words than the built-in "
                      "ones"},
        "epsilon": {"type": float, "help": "ε per unit of distance (default on the built-in words: "
                    f"{RECOMMENDED_EPSILON:g}, as recommended)"},
        "certified": {"action": "store_true", "help": "--epsilon is the certified ε, which needs "
                      "less noise; takes a while"},
        "gamma": {"type": float, "help": "distance beyond which all words are alike"},
        "beta": {"type": float, "help": "sets gamma by Theorem 3 (default 0.001)"},
        "mixing": {"type": float,
                   "help": "share of the covariance in the noise, 0 to below 1 (default 0.2)"},
        "tuning": {"type": float, "help": "0 always the nearest word, 1 always the second nearest "
                   "(default 0.75)"},
        "cover": {"type": int, "metavar": "K", "help": "each word has K outputs at distance 0, so "
                  "no output is likelier than 1/K"},
        "balance": {"type": float, "metavar": "A", "help": "with --cover: the weight of similar "
                    "frequency in the choice of outputs; needs a vocabulary in order of frequency "
                    "(try 0.1)"},
        "language": {"metavar": "NAME|FILE", "help": "the public base measure: uniform (default), "
                     "rank (of words in order of frequency), frequency (in English), english "
                     "(bigrams, behind what was released before), or a file: of lines of a word "
                     "and a count, or of an n-gram model"},
        "exclude": {"default": "offensive", "metavar": "FILE", "help": "words, one per line, that "
                    "are never released; 'offensive' is the built-in list, 'none' excludes none "
                    "(default %(default)s)"},
    },
    "words": {
        "embedding": {"metavar": "PATH", "help": "default: 20,000 English words × 50"},
        "graph": {"metavar": "EDGES", "help": "tem: take shortest paths in a graph as the metric; "
                  "a file of lines word TAB word"},
    },
    "text": {
        "oov": {"choices": ("random", "error", "drop", "mask", "keep"), "default": "random",
                "help": "how to treat unknown words (default %(default)s; keep releases them "
                "UNPROTECTED)"},
        "skip": {"metavar": "FILE", "help": "words, one per line, that are released UNPROTECTED"},
        "consistent": {"action": "store_true", "help": "replace all occurrences of a word in a "
                       "text (a field, or a file of plain text) by the same word; shows which "
                       "words are equal"},
        "numbers": {"metavar": "EPS|JSON", "help": "replace numbers by numbers near them, with "
                    "this ε per 1 of ln x; their written form stays; or a table as JSON: epsilon, "
                    "scale, unit, low, high, smallest, decimal"},
        "dates": {"metavar": "EPS|JSON", "help": "replace dates by dates near them, with this ε "
                  "per day; or a table as JSON: epsilon, order (dmy or mdy, for 03/05/2026), low, "
                  "high, unit"},
        "seed": {"type": int,
                 "help": "for tests only: makes the output reproducible, so unprotected"},
    },
}  # fmt: skip
"""The options that set keys of a Spec, by the groups of the help, and what argparse gets of each.
Those of the same name set a key, but for `INDEX`."""
OPTIONS = {name: more for group in GROUPS.values() for name, more in group.items()}
SHARED: dict[str, dict[str, Any]] = {
    "policy": {"metavar": "FILE", "help": "replaces the other options of the mechanism: a Spec "
               "(JSON or TOML), or policies as for the service, of which FILE:NAME chooses one"},
    "card": {"metavar": "FILE", "help": "the channel card, whose fingerprint of the words is "
             "checked; by default that in the first file, or beside it"},
    "quiet": {"action": "store_true", "help": "show no progress"},
    "show-text": {"action": "store_true", "help": "show private content in messages"},
}  # fmt: skip
"""Other options of several commands."""
INDEX = ("embedding", "graph")
"""The options that set the key ``index``."""
VALUES: dict[str, Callable[[Any], Any]] = {
    "language": _language,
    "embedding": lambda file: {"file": file},
    "graph": lambda file: {"file": file, "format": "edges"},
    "skip": lines_of,
    "numbers": _figure,
    "dates": _figure,
}
"""Functions that turn the value of an option into that of its key, where the two differ."""
LAW = ("gamma", "beta", "mixing", "tuning")
"""The numbers that mechanisms take besides ε."""
COVER = ("cover", "balance", "exclude")


def add(p: argparse._ActionsContainer, *names: str) -> None:
    """Add shared options; the help names the mechanisms that take one, if not all do."""
    for name in names:
        more = (OPTIONS | SHARED)[name]
        flags = ("-q", "--quiet") if name == "quiet" else (f"--{name}",)
        kinds = [kind for kind in dict(spec_keys()).get(name, ()) if kind in MECHANISMS]
        some = f"{', '.join(kinds)}: " if 0 < len(kinds) < len(MECHANISMS) else ""
        p.add_argument(*flags, **{"default": None, **more, "help": some + more["help"]})


def add_mechanism(p: argparse.ArgumentParser) -> None:
    """Add the options that choose a mechanism, its words, and what it does with text."""
    for title, options in GROUPS.items():
        add(p.add_argument_group(title), *(["policy"] if title == "policy" else []), *options)


def spec_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the keys of a Spec that the options set; commands may have some options only."""
    given = {o: v for o in OPTIONS if (v := getattr(args, o, None)) is not None}
    if given.keys() >= set(INDEX):
        raise CommandError("--graph and --embedding exclude each other")
    return {
        "index" if o in INDEX else o: VALUES[o](v) if o in VALUES else v for o, v in given.items()
    }


class MechanismOptions(NamedTuple):
    """The mechanism that the options of a command describe."""

    spec: dict[str, Any]
    policy: str
    """A phrase about the policy: what of it is as recommended, or else its Spec."""
    quiet: bool
    recommended: bool = False
    """Whether `spec` is the recommended policy, or this with some keys changed."""
    allow_unchanged: bool = False
    """Whether the policy of a file may leave most words unchanged."""

    @classmethod
    def of(cls, args: argparse.Namespace) -> MechanismOptions:
        """Read the options, and refuse those that contradict each other."""
        if args.policy is not None:
            refuse_beside_policy(args)
            policy = policies.one(args.policy)
            phrase = f"the Spec of {args.policy}: {json.dumps(policy.spec)}"
            return cls(policy.spec, phrase, args.quiet, False, policy.allow_unchanged)
        spec = spec_of(args)
        named = spec.get("mechanism")
        recommended = "index" not in spec and (
            named is None or (named == "tem" and args.epsilon is None)
        )
        spec = {"mechanism": "tem", **(RECOMMENDED if recommended else {}), **spec}
        law = {*RECOMMENDED, "cover", "gamma", "beta", "certified"}
        changed = [key for key in spec if key in law and spec[key] != RECOMMENDED.get(key)]
        phrase = f"the recommended policy: --epsilon {RECOMMENDED_EPSILON:g} --language rank"
        if not recommended:
            phrase = f"the Spec of the options: {json.dumps(spec)}"
        elif changed:
            phrase = f"no longer the recommended policy, by --{', --'.join(changed)}"
        return cls(spec, phrase, args.quiet, recommended)

    def make(self, *, pieces: bool = False) -> Mechanism:
        """Make the mechanism; `pieces` says that each of its calls gets the pieces of one text."""
        spec = self.spec
        if pieces and spec.get("consistent"):
            spec = {**spec, "consistent": "call"}
        doing = "certifying" if spec.get("certified") else "making the mechanism"
        with step(doing, quiet=self.quiet) as progress:
            mechanism = from_spec(spec, progress=progress)
        if self.recommended:
            tell(self.policy, quiet=self.quiet)
        return mechanism


def refuse_beside_policy(args: argparse.Namespace) -> None:
    """Refuse options of the mechanism beside a policy, which describes all of it."""
    given = [f"--{o}" for o, more in OPTIONS.items() if getattr(args, o) != more.get("default")]
    if given:
        raise CommandError(f"--policy describes the whole mechanism: leave out {', '.join(given)}")


def channel_of(args: argparse.Namespace) -> Channel:
    """Make the channel from the card that ``--card`` names, or from that of the first file."""
    from fastdx.channel import Channel

    card = args.card or (args.files or ["-"])[0]
    if card == "-":
        raise CommandError("standard input needs --card FILE")
    space = None
    if args.embedding:
        with step("loading the words"):
            space = Embedding.load(args.embedding)
    return Channel.load(Path(card), space)


def attacked_texts(path: str) -> tuple[list[str], list[str]]:
    """Return the texts that an attacker knows, and those that he attacks: lines by turns."""
    lines = lines_of(path)
    if len(lines) < 2:
        raise CommandError(f"{path}: --texts needs at least two lines, one text each")
    return lines[::2], lines[1::2]
