"""``fastdx counts`` estimates shares of written words from released files, with intervals."""

from __future__ import annotations

import argparse
import json
from typing import Any

from fastdx.cli import options
from fastdx.cli.formats import FORMATS, Opener, read
from fastdx.cli.messages import CommandError, step, tell
from fastdx.counts import Estimator, Share
from fastdx.exceptions import ParameterError


def add(commands: options.Commands) -> None:
    """Add the command."""
    p = commands.add_parser(
        "counts",
        description="Estimate the share of words of a lexicon in the texts that were written, from "
        "the released texts. Reads an output of fastdx privatize and its channel card, "
        "FILE.channel.json. Each text is a document; in plain text each line is one. The intervals "
        "include a bound on the bias that holds for all texts.",
        examples="""
  fastdx counts private.jsonl --column text --lexicon health.txt
  fastdx counts private.csv --column text --lexicon good.txt --lexicon bad.txt --each
  fastdx counts private.txt --card private.txt.channel.json --lexicon words.txt --report json
""",
    )
    p.add_argument("files", nargs="+", metavar="FILE", help="released files; '-': stdin")
    p.add_argument("--lexicon", action="append", required=True, metavar="FILE",
                   help="a file of words, one per line; repeatable")  # fmt: skip
    p.add_argument("--each", action="store_true", help="also estimate each word of the lexicons")
    options.add(p, "card", "embedding")
    p.add_argument("--column", metavar="NAME", help="a column or field of text; in JSON and "
                   "Parquet also nested fields: user.comment, items[].text")  # fmt: skip
    p.add_argument("--format", choices=tuple(FORMATS),
                   help="by default recognised by the files' names")  # fmt: skip
    p.add_argument("--confidence", type=float, default=0.95, metavar="P",
                   help="the confidence of the intervals (default %(default)s)")  # fmt: skip
    p.add_argument("--report", choices=("json",), help="print one JSON object instead of a table")
    options.add(p, "show-text")
    p.set_defaults(run=_counts)


def _counts(args: argparse.Namespace) -> None:
    channel = options.channel_of(args)
    lexicons = {name: _lexicon(name, channel.mechanism.space) for name in args.lexicon}
    estimator = Estimator(channel)
    opener = Opener()
    for name in args.files:
        try:
            for batch in read(name, args.format, args.column, opener):
                texts = batch.texts()
                lines = [line for text in texts for line in text.splitlines() if line.strip()]
                estimator.add(lines if args.column is None else texts)
        except ParameterError as e:
            raise CommandError(f"{name}: {e}") from None
    found: list[tuple[str, Share]] = []
    for name, known in lexicons.items():
        with step("choosing scores"):
            found.append((name, estimator.share(known, args.confidence)))
            if args.each:
                found += [(word, estimator.share(word, args.confidence)) for word in known]
    if args.report:
        shares = [{"name": name, "value": s.value, "low": s.low, "high": s.high, "bias": s.bias,
                   "error": s.error} for name, s in found]  # fmt: skip
        print(json.dumps({"documents": estimator.documents, "words": estimator.words,
                          "confidence": args.confidence, "shares": shares},
                         ensure_ascii=False))  # fmt: skip
        return
    width = max(len("lexicon"), *(len(name) for name, _ in found))
    print(f"{'lexicon':{width}}    share      low     high     bias")
    for name, s in found:
        print(f"{name:{width}} {s.value:8.3%} {s.low:8.3%} {s.high:8.3%} {s.bias:8.3%}")
    print(f"{estimator.documents:,} documents, {estimator.words:,} words; intervals of "
          f"{args.confidence:.0%} with the bias")  # fmt: skip
    if any(s.bias > abs(s.value) for _, s in found):
        tell("a bias exceeds its share: under this mechanism no number of documents is enough "
             "(fastdx.counts.plan)")  # fmt: skip


def _lexicon(name: str, space: Any) -> list[str]:
    """Return the words of a file that the vocabulary has, and say how many it has not."""
    words = list(dict.fromkeys(options.lines_of(name)))
    known = [word for word in words if word in space]
    if not known:
        raise CommandError(f"{name}: no word of it is in the vocabulary")
    if len(known) < len(words):
        tell(f"{name}: {len(words) - len(known):,} of {len(words):,} words are not in the "
             "vocabulary and left out")  # fmt: skip
    return known
