"""``fastdx privatize``: the words of files replaced."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fastdx._core import Replacements
from fastdx._replace import open_output
from fastdx.bags import STOP_WORDS, BagOfWords, text_of
from fastdx.cli.formats.batches import Privatise, Released
from fastdx.cli.formats.delimited import delimited
from fastdx.cli.formats.json import json_lines
from fastdx.cli.formats.opening import format_of, total_size
from fastdx.cli.formats.parquet import parquet
from fastdx.cli.formats.text import plain_text
from fastdx.cli.messages import Bar, CommandError
from fastdx.cli.options import (
    cover_of,
    cover_options,
    embedding_options,
    excluded_words,
    graph_option,
    mechanism_options,
    own_options,
    show_text,
    skipped_words,
    space_of,
)
from fastdx.exceptions import UnknownWordError
from fastdx.mechanisms import MECHANISMS, Mechanism

if TYPE_CHECKING:
    from fastdx.cli.options import _Commands


def add(commands: _Commands) -> None:
    """Add the command."""
    p = commands.add_parser(
        "privatize",
        help="replace the words of text, CSV, JSONL or Parquet",
        description="Replace the words of text by words drawn with metric differential privacy. "
        "White space, punctuation, and the number of words are not protected; nor are columns "
        "that --column does not name.",
    )
    p.add_argument("files", nargs="*", default=[], metavar="FILE", help="'-' or none: stdin")
    p.add_argument(
        "--mechanism",
        choices=(*MECHANISMS, "bag"),
        default="tem",
        help="bag: each line or field becomes a bag of words, stop words left out, by --words",
    )
    p.add_argument("--words", choices=tuple(MECHANISMS),
                   help="bag: the mechanism for its words (default tem)")  # fmt: skip
    p.add_argument("--epsilon", type=float, required=True, help="ε per unit of distance")
    p.add_argument("--embedding", metavar="PATH", help="default: 20,000 English words × 50")
    graph_option(p)
    embedding_options(p)
    mechanism_options(p)
    cover_options(p)
    p.add_argument(
        "--oov",
        choices=("random", "error", "drop", "mask", "keep"),
        default="random",
        help="unknown words (default random; keep releases them UNPROTECTED)",
    )
    p.add_argument("--skip", metavar="FILE", help="words, one a line, released UNPROTECTED")
    p.add_argument(
        "--consistent",
        action="store_true",
        help="the same word gets the same replacement throughout a text (a field, or a file of "
        "plain text); which words are equal is released",
    )
    p.add_argument(
        "--format",
        choices=("text", "csv", "tsv", "jsonl", "parquet"),
        help="of the input; by default from the files' names",
    )
    p.add_argument(
        "--column", action="append", default=[], metavar="NAME", help="column or field; repeatable"
    )
    p.add_argument("-o", "--output", metavar="FILE", help="written beside, then renamed")
    p.add_argument("--seed", type=int, help="for tests only: reproducible, hence unprotected")
    p.add_argument("-q", "--quiet", action="store_true",
                   help="no progress, no closing line; warnings all the same")  # fmt: skip
    show_text(p)
    p.set_defaults(run=_privatize)


def mechanism_of(args: argparse.Namespace, *, pieces: bool = False) -> Mechanism:
    """Return the mechanism that the options ask for."""
    if args.words and args.mechanism != "bag":
        raise CommandError("--words goes with --mechanism bag")
    kind = MECHANISMS[(args.words or "tem") if args.mechanism == "bag" else args.mechanism]
    own = own_options(args, kind)
    space = space_of(args, kind)
    # A file of plain text comes in pieces, which are one text.
    consistent: bool | str = "call" if args.consistent and pieces else args.consistent
    return kind.make(space, args.epsilon, **own, **cover_of(args, kind, space), oov=args.oov,
                skip=skipped_words(args.skip), exclude=excluded_words(args),
                consistent=consistent, seed=args.seed)  # fmt: skip


def _privatize(args: argparse.Namespace) -> None:
    names = args.files or ["-"]
    formats = {args.format or format_of(name) for name in names}
    if len(formats) > 1:
        raise CommandError(f"files of several formats at once: {', '.join(sorted(formats))}")
    kind = formats.pop()
    if kind == "text" and args.column:
        raise CommandError("--column goes with CSV, JSONL and Parquet (see --format)")
    if kind != "text" and not args.column:
        raise CommandError(f"{kind} needs --column NAME: which text to privatise")
    mechanism = mechanism_of(args, pieces=kind == "text")
    counts: Counter[str] = Counter()

    bags = BagOfWords(mechanism) if args.mechanism == "bag" else None
    if bags is not None and args.skip:
        raise CommandError("--skip does not go with --mechanism bag")

    def privatiser() -> Privatise:
        """Make a function for a text that may come in pieces."""
        kept = Replacements() if kind == "text" and args.consistent else None

        def private(texts: list[str]) -> list[str]:
            if bags is not None:
                return _private_bags(bags, texts, counts, by_line=kind == "text")
            out, new = mechanism.privatize_counted(texts, replacements=kept)
            counts.update(new)
            return out

        return private

    bar = Bar(total_size(names), args.quiet)
    columns = (names, args.column)
    try:
        with open_output(args.output, names) as out:
            if kind == "text":
                released = plain_text(names, out, privatiser, bar, by_line=bags is not None)
            elif kind == "jsonl":
                released = json_lines(*columns, out, privatiser(), bar)
            elif kind == "parquet":
                released = parquet(*columns, out, privatiser(), bar)
            else:
                delimiter = "\t" if kind == "tsv" else ","
                released = delimited(*columns, out, privatiser(), bar, delimiter=delimiter)
    finally:
        bar.clear()
    _report(args, bags or mechanism, counts, released)


def _private_bags(
    bags: BagOfWords, texts: list[str], counts: Counter[str], *, by_line: bool
) -> list[str]:
    # In plain text a line is a document, and line ends stay; elsewhere a field is one.
    split = [text.split("\n") if by_line else [text] for text in texts]
    flat = [part for parts in split for part in parts]
    for at, text in enumerate(flat):
        words = [w for w in bags.mechanism.tokenize(text) if w not in STOP_WORDS]
        new = bags.mechanism.count_tokens(words)
        if new["unknown"] and bags.mechanism.oov == "error":
            unknown = next(w for w in words if bags.mechanism.count_tokens([w])["unknown"])
            error = UnknownWordError()
            error.word = unknown
            # The lines of a piece of plain text, or the texts of a batch.
            error.text = at
            error.start = sum(len(t.encode()) + 1 for t in flat[:at]) if by_line else 0
            raise error
        counts.update(new)
    drawn = (text_of(bag) for bag in bags.privatize_documents(flat))
    return ["\n".join(next(drawn) for _ in parts) for parts in split]


def _report(
    args: argparse.Namespace,
    mechanism: Mechanism | BagOfWords,
    counts: Counter[str],
    released: Released,
) -> None:
    word = mechanism.mechanism if isinstance(mechanism, BagOfWords) else mechanism
    if not args.quiet:
        line = (
            f"{counts['replaced']:,} of {counts['words']:,} words replaced by the mechanism; "
            f"{counts['unknown']:,} unknown ({word.oov})"
        )
        print(f"fastdx: {line}.", file=sys.stderr)
    for warning in _warnings(args, word, counts, released):
        print(f"fastdx: warning: {warning}", file=sys.stderr)
    if not args.quiet:
        print(mechanism.guarantee, file=sys.stderr)


def _warnings(
    args: argparse.Namespace, word: Mechanism, counts: Counter[str], released: Released
) -> Iterator[str]:
    """Yield what left unprotected, which ``-q`` does not hide."""
    if word.seed is not None:
        yield "SEEDED: the output is reproducible, hence NOT protected"
    if word.oov == "keep":
        yield f"{counts['unknown']:,} unknown words RELEASED AS THEY ARE (--oov keep)"
    if word.skip:
        yield f"{counts['skipped']:,} skipped words RELEASED AS THEY ARE (--skip)"
    if released.names and released.content and not args.show_text:
        yield f"{len(released.names)} other fields released as they were (--show-text names them)"
    elif released.names:
        yield f"released as they were: {', '.join(released.names)}"
    if released.dropped:
        yield f"metadata dropped from the schema: {', '.join(released.dropped)}"
    if counts["misdecoded"]:
        yield (
            f"{counts['misdecoded']:,} texts look like UTF-8 that was read as another encoding "
            "(Latin-1, Windows-1251, …): parts of their words stand as punctuation and were "
            "released as they are"
        )
