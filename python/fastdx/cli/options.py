"""Options that commands share: where the words come from, which mechanism."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from fastdx import Cover, Embedding, NeighborResponse, Tem, WordGraph
from fastdx._core import space_cover
from fastdx.cli.messages import CommandError
from fastdx.exceptions import ParameterError
from fastdx.mechanisms import MECHANISMS, Mechanism

if TYPE_CHECKING:
    _Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]

METRICS = ("euclidean", "manhattan", "chebyshev", "angular", "poincare")
FORMATS = ("fastdx", "glove", "word2vec-text", "fasttext", "word2vec-binary", "npy")


def examples(lines: str) -> dict[str, Any]:
    """Return what shows examples below the help of a command."""
    return {
        "epilog": "examples:\n" + lines.strip("\n"),
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def show_text(p: argparse._ActionsContainer) -> None:
    """Add ``--show-text``."""
    p.add_argument("--show-text", action="store_true",
                   help="messages show the content that they are about")  # fmt: skip


def embedding_options(p: argparse.ArgumentParser) -> None:
    """Add how an embedding file is read."""
    group = p.add_argument_group("reading the embedding")
    group.add_argument("--embedding-format", choices=FORMATS, help="by default from its content")
    group.add_argument("--metric", choices=METRICS, help="by default the file's own, or euclidean")
    group.add_argument("--limit", type=int, help="only the first so many words")
    group.add_argument("--vocabulary", metavar="FILE", help="for .npy: the words, one a line")


def cover_options(p: argparse._ActionsContainer) -> None:
    """Add ``--cover``, ``--balance``, ``--cover-file`` and ``--exclude``."""
    p.add_argument("--cover", type=int, metavar="K", help="tem, response: each word is at "
                   "distance 0 from its K nearest outputs: none is likelier than 1/K")  # fmt: skip
    p.add_argument("--balance", type=float, metavar="A", help="with --cover: outputs of like "
                   "frequency, the vocabulary being in order of it (try 0.1)")  # fmt: skip
    p.add_argument("--cover-file", metavar="FILE", help="tem, response: a cover that was saved")
    p.add_argument("--exclude", metavar="FILE", default="offensive", help="words, one a line, that "
                   "are never released; 'offensive': the built-in list; 'none'; default "
                   "%(default)s")  # fmt: skip


def excluded_words(args: argparse.Namespace) -> Path | str | None:
    """Return what ``exclude=`` takes."""
    if args.exclude in ("none", "offensive"):
        return "offensive" if args.exclude == "offensive" else None
    return Path(args.exclude)


def cover_of(
    args: argparse.Namespace, kind: type[Mechanism], space: Embedding | WordGraph
) -> dict[str, Any]:
    """Return the parameters of the cover that the options ask for, or that the file holds."""
    if args.balance is not None and args.cover is None:
        raise CommandError("--balance goes with --cover")
    if args.cover is not None and args.cover_file is not None:
        raise CommandError("--cover and --cover-file exclude each other")
    if not issubclass(kind, (Tem, NeighborResponse)):
        if args.cover is not None or args.cover_file is not None:
            raise CommandError("--cover and --cover-file go with --mechanism tem or response")
        return {}
    if args.cover_file is not None:
        return {"cover": Cover.load(space, args.cover_file)}
    if args.cover is not None:
        return {"cover": args.cover, "balance": args.balance}
    stored = space_cover(space)
    return {} if stored is None else {"cover": stored}


@contextmanager
def cover_errors() -> Iterator[None]:
    """Name the parameters of a cover as the command calls them."""
    try:
        yield
    except ParameterError as e:
        if str(e).startswith(("cover must", "balance must")):
            raise CommandError(f"--{e}") from e
        raise


def graph_option(p: argparse._ActionsContainer) -> None:
    """Add ``--graph``."""
    p.add_argument("--graph", metavar="EDGES", help="tem: shortest paths as the metric instead; a "
                   "file of word TAB word lines, with a weight perhaps")  # fmt: skip


def mechanism_options(p: argparse._ActionsContainer) -> None:
    """Add what the registered mechanisms take beside ε."""
    for cls in MECHANISMS.values():
        for option in cls.options:
            p.add_argument(f"--{option.name}", type=float, help=f"{cls.name}: {option.help}")


def load(args: argparse.Namespace, path: str) -> Embedding:
    """Load an embedding as the options say."""
    return Embedding.load(
        path,
        format=args.embedding_format,
        limit=args.limit,
        metric=args.metric,
        vocabulary=args.vocabulary,
    )


def space_of(args: argparse.Namespace, kind: type[Mechanism]) -> Embedding | WordGraph:
    """Return the words and metric that a mechanism is to work on."""
    if args.graph is None:
        return (
            load(args, args.embedding) if args.embedding else Embedding.default(kind.default_space)
        )
    others = ("embedding", "metric", "limit", "vocabulary", "embedding_format")
    given = [f"--{o.replace('_', '-')}" for o in others if getattr(args, o) is not None]
    if given or kind is not Tem:
        more = f", without {', '.join(given)}" if given else ""
        raise CommandError(f"--graph goes with --mechanism tem, and is its own metric{more}")
    return WordGraph(args.graph)


def own_options(args: argparse.Namespace, kind: type[Mechanism]) -> dict[str, float]:
    """Return the mechanism's own options that were given; refuse those of another one."""
    given = {}
    for cls in MECHANISMS.values():
        for option in cls.options:
            value = getattr(args, option.name, None)
            if value is None:
                continue
            if option not in kind.options:
                raise CommandError(f"--{option.name} belongs to --mechanism {cls.name}")
            given[option.name] = value
    if {"gamma", "beta"} <= given.keys():
        raise CommandError("--gamma and --beta exclude each other")
    return given


def skipped_words(path: str | None) -> list[str] | None:
    """Return the words of a file, one a line."""
    if path is None:
        return None
    lines = Path(path).read_text("utf-8").split("\n")
    return [line.strip() for line in lines if line.strip()]


def shown_lists(tem: Tem) -> str:
    """Return in words which lists a Tem has stored."""
    if tem.lists_k is not None:
        return f"{tem.lists_k} neighbours a word"
    if tem.lists_radius is not None:
        return f"all neighbours within {tem.lists_radius:.6g}"
    return "none"
