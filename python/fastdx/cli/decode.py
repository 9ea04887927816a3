"""``fastdx decode`` reconstructs likely texts from a release, by the law and a public model."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from fastdx._shared.replace import open_output
from fastdx.cli import options
from fastdx.cli.formats import Opener, format_named, read
from fastdx.cli.messages import CommandError, step, tell
from fastdx.exceptions import ParameterError

if TYPE_CHECKING:
    from fastdx.channel import Channel, NgramPrior, Posterior


def add(commands: options.Commands) -> None:
    """Add the command."""
    p = commands.add_parser(
        "decode",
        description="Decode released texts by the mechanism's law and a public model of language. "
        "The output is marked as reconstructed: it looks like the written text, but most of it may "
        "be invented. The command also prints a statement about the reconstruction.",
        examples="""
  fastdx decode private.txt
  fastdx decode private.txt --prior english.ngrams --view certain
  fastdx decode private.jsonl --column text --card card.json --to jsonl -o read.jsonl
""",
        short="card prior view column output",
    )
    p.add_argument("files", nargs="*", metavar="FILE", help="released texts: one text per file, or "
                   "records with --column; by default standard input")  # fmt: skip
    options.add(p, "card", "embedding")
    p.add_argument("--prior", metavar="FILE", help="a model that NgramPrior.save wrote; by default "
                   "bigrams of English if they are built in, else frequencies by rank")  # fmt: skip
    p.add_argument("--view", choices=("likely", "certain", "marginals"), default="likely",
                   help="likely: the likeliest text; certain: words and [categories] that are "
                   "certain, … for the rest; marginals: the likeliest word of each place (default "
                   "%(default)s)")  # fmt: skip
    p.add_argument("--at-least", type=float, default=0.5, metavar="P", help="with --view certain: "
                   "the least probability of each shown word or category (default "
                   "%(default)s)")  # fmt: skip
    group = p.add_argument_group("input and output")
    group.add_argument("--column", metavar="NAME", help="decode this column or field of each "
                       "record; a name without a known ending means JSON lines")  # fmt: skip
    group.add_argument("--to", choices=("text", "jsonl"), default="text",
                       help="the format of the output (default %(default)s)")  # fmt: skip
    group.add_argument("-o", "--output", metavar="FILE", help="by default standard output")
    options.add(group, "quiet", "show-text")
    p.set_defaults(run=_decode)


def _decode(args: argparse.Namespace) -> None:
    if not 0 < args.at_least <= 1:
        raise CommandError(f"--at-least must be above 0 and at most 1, got {args.at_least}")
    channel = options.channel_of(args)
    prior = _prior(args, channel)
    parts, guarantee = [], ""
    total = right = 0.0
    for place, text in _texts(args):
        try:
            posterior = channel.decode(text, prior)
        except ParameterError as e:
            raise CommandError(f"{place}: {e}") from None
        parts.append(_part(args, posterior))
        content = posterior.expected_right_content
        if not np.isnan(content):
            total, right = total + len(posterior), right + content * len(posterior)
        # The statement of the last text, with the mean over all texts.
        mean = right / total if total else float("nan")
        guarantee = posterior._described(mean)
    with open_output(args.output, args.files) as file:
        file.write("".join(f"{part}\n" for part in parts).encode())
    if guarantee:
        print(guarantee, file=sys.stderr)


def _part(args: argparse.Namespace, posterior: Posterior) -> str:
    view = posterior.text(args.view, at_least=args.at_least)
    if args.to == "text":
        return str(view)
    right = None if np.isnan(view.expected_right) else round(view.expected_right, 4)
    record = {
        "reconstructed": view.text, "view": args.view, "expected_right": right,
        "words": [{"text": p.text, "kind": p.kind, "probability": round(p.probability, 4)}
                  for p in view.words],
    }  # fmt: skip
    return json.dumps(record, ensure_ascii=False)


def _prior(args: argparse.Namespace, channel: Channel) -> NgramPrior:
    from fastdx.channel import NgramPrior

    space = channel.mechanism.space
    if args.prior is not None:
        with step("reading the model", quiet=args.quiet):
            return NgramPrior.load(space, args.prior)
    with suppress(ParameterError):  # the model has only the built-in words
        return NgramPrior.english(space)
    tell("no --prior: each word is decoded by itself, by its frequency", quiet=args.quiet)
    return NgramPrior.of_frequencies(space)


def _texts(args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    opener = Opener()
    for name in args.files or ["-"]:
        format = None if format_named(name) else "text" if args.column is None else "jsonl"
        batches = read(name, format, args.column, opener)
        if args.column is None:
            text = "".join(part for batch in batches for part in batch.texts())
            yield name, text.removeprefix("\ufeff").rstrip("\n")
            continue
        for batch in batches:
            for at, text in enumerate(batch.texts()):
                yield batch.place(at), text
