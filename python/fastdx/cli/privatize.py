"""``fastdx privatize`` replaces the words of files."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from fastdx import __version__
from fastdx._shared.card import beside, card_of, no_card
from fastdx._shared.replace import open_output, packed
from fastdx.cli import closing, folders
from fastdx.cli.closing import Done
from fastdx.cli.drawing import Bill, Drawing
from fastdx.cli.formats import FORMATS, Choice, Opener
from fastdx.cli.formats.opening import LONGEST
from fastdx.cli.jobs import Files, Job, jobs, streams, total_size
from fastdx.cli.messages import Bar, CommandError
from fastdx.cli.options import (
    SHORT,
    Commands,
    MechanismOptions,
    mechanism_options,
    refuse_unchanged,
    show_text,
)
from fastdx.cli.pipeline import run
from fastdx.mechanisms import Mechanism

if TYPE_CHECKING:
    from fastdx.bags import BagOfWords
    from fastdx.budget import Ledger

EXAMPLES = """
  fastdx privatize < letter.txt
  fastdx privatize reviews.jsonl.gz --column text -o private.jsonl.zst
  fastdx privatize chats.json --column 'messages[].text' -o private.json
  fastdx privatize table.csv --no-header --column 2 --delimiter ';' --encoding cp1252
  fastdx privatize data/ --column text --output-dir private/ --resume
  fastdx privatize posts.jsonl --column text -o private.jsonl \\
      --ledger budget.sqlite --budget 3000 --account-column user
  fastdx privatize --epsilon 2 --cover 40 --balance 0.1 < letter.txt
"""


def add(commands: Commands) -> None:
    """Add the command."""
    p = commands.add_parser(
        "privatize",
        help="replace the words of text, CSV, JSON or Parquet",
        description="Replace the words of text by words drawn with metric differential privacy. "
        "White space, punctuation and the number of words are not protected. Columns that "
        "--column does not name are not protected either.",
        examples=EXAMPLES,
        short=f"column format output in_place output_dir report quiet ledger {SHORT}",
    )
    p.add_argument("files", nargs="*", default=[], metavar="FILE",
                   help="files, patterns in quotes, folders; '-' or none: stdin")  # fmt: skip
    mechanism_options(p)
    _input_options(p)
    _output_options(p)
    _ledger_options(p)
    p.set_defaults(run=_privatize)


def _input_options(p: argparse.ArgumentParser) -> None:
    group = p.add_argument_group("input")
    group.add_argument("--format", choices=tuple(FORMATS), help="by default recognised by the "
                       "files' names or content")  # fmt: skip
    group.add_argument(
        "--column", action="append", default=[], metavar="NAME", help="a column or field of text; "
        "repeatable; in JSON and Parquet also nested fields: user.comment, items[].text",
    )  # fmt: skip
    group.add_argument("--no-header", action="store_true", help="CSV, TSV: the first line is data, "
                       "and --column takes numbers from 1")  # fmt: skip
    group.add_argument("--delimiter", metavar="SIGN", help="CSV: the sign between fields (default "
                       "','; '\\t' is a tab)")  # fmt: skip
    group.add_argument("--encoding", metavar="NAME", help="Python's name of the encoding of the "
                       "input (default utf-8); the output is UTF-8")  # fmt: skip
    group.add_argument("--max-record", type=_megabytes, default=LONGEST >> 20, metavar="MB",
                       help="the largest line, row or record, in MB (default %(default)s); memory "
                       "grows with it")  # fmt: skip


def _megabytes(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to 1024, got {text!r}")
    return int(text)


def _output_options(p: argparse.ArgumentParser) -> None:
    group = p.add_argument_group("output")
    group.add_argument("-o", "--output", metavar="FILE", help="the output, which gets this name "
                       "when it is complete; compressed if it ends in .gz or .zst")  # fmt: skip
    group.add_argument("--in-place", action="store_true", help="let the output replace the "
                       "only input, once complete")  # fmt: skip
    group.add_argument("--output-dir", metavar="FOLDER", help="write one output per input, with "
                       "its name and sub-folder")  # fmt: skip
    group.add_argument("--resume", action="store_true", help="with --output-dir: keep outputs that "
                       "an earlier run finished with the same parameters; refuse other existing "
                       "files")  # fmt: skip
    group.add_argument("--report", choices=("json",), help="the closing lines as one JSON object")
    group.add_argument("--report-file", metavar="FILE",
                       help="the file for --report (default stderr)")  # fmt: skip
    group.add_argument("-q", "--quiet", action="store_true",
                       help="show no progress and no closing line, only warnings")  # fmt: skip
    group.add_argument("--guarantee", action="store_true", help="print the guarantee too")
    group.add_argument("--no-channel-card", action="store_true", help="write no FILE.channel.json "
                       "beside outputs; receivers need this card to count or decode them, and it "
                       "holds no secrets")  # fmt: skip
    group.add_argument("--allow-unchanged", action="store_true", help="release the texts even if "
                       "more than half of the common words come back unchanged")  # fmt: skip
    show_text(group)


def _ledger_options(p: argparse.ArgumentParser) -> None:
    group = p.add_argument_group("ledger")
    group.add_argument("--ledger", metavar="FILE", help="charge this ledger (fastdx.budget; "
                       "created if missing) ε·words before an output is released; nothing is "
                       "released if an account cannot pay")  # fmt: skip
    group.add_argument("--budget", type=float, metavar="B", help="the most that an account may "
                       "spend in total (default: the budget in the ledger)")  # fmt: skip
    group.add_argument("--account", metavar="NAME", help="the account that pays")
    group.add_argument("--account-column", metavar="NAME", help="the column or field that names "
                       "the account of a record")  # fmt: skip
    group.add_argument("--allow-wordless", action="store_true", help="release texts without words "
                       "(punctuation only) unchanged, and charge nothing for them")  # fmt: skip


class Account(NamedTuple):
    """The ledger and the account that pay for the outputs."""

    ledger: str
    budget: float | None
    name: str | None
    column: str | None
    allow_wordless: bool

    @classmethod
    def of(cls, args: argparse.Namespace) -> Account | None:
        """Read the options of the ledger, and refuse those that contradict each other."""
        if not args.ledger:
            for option in ("budget", "account", "account_column", "allow_wordless"):
                if getattr(args, option):
                    raise CommandError(f"--{option.replace('_', '-')} goes with --ledger")
            return None
        if (args.account is None) == (args.account_column is None):
            raise CommandError("--ledger needs --account NAME or --account-column NAME")
        if not args.output_dir and (args.output is None or streams(args.output)):
            raise CommandError("--ledger needs -o FILE: a stream releases text at once, and the "
                               "ledger must be charged before that")  # fmt: skip
        return cls(args.ledger, args.budget, args.account, args.account_column,
                   args.allow_wordless)  # fmt: skip


class Options(NamedTuple):
    """The options of the command after parsing."""

    files: Files
    mechanism: MechanismOptions
    account: Account | None
    closing: closing.Options
    quiet: bool
    allow_unchanged: bool
    cards: bool
    """Whether outputs get channel cards."""

    @classmethod
    def of(cls, args: argparse.Namespace) -> Options:
        """Read the options and refuse contradictions, before any file is opened."""
        if args.output and args.output_dir:
            raise CommandError("--output and --output-dir exclude each other")
        if args.in_place and (args.output_dir or len(args.files) != 1):
            raise CommandError("--in-place goes with one input file")
        if args.in_place and args.output is None:
            args.output = args.files[0]
        if args.resume and not args.output_dir:
            raise CommandError("--resume goes with --output-dir")
        if args.report_file and not args.report:
            raise CommandError("--report-file goes with --report json")
        if args.account_column in args.column:
            raise CommandError("--account-column must not be one of the columns to privatise")
        mechanism = MechanismOptions.of(args)
        choice = Choice(tuple(args.column), args.account_column, not args.no_header,
                        _delimiter(args.delimiter), by_line=mechanism.bag,
                        longest=args.max_record << 20)  # fmt: skip
        return cls(
            Files(tuple(args.files), args.format, args.encoding, choice, args.output,
                  args.output_dir, args.resume),
            mechanism,
            Account.of(args),
            closing.Options(args.report is not None, args.report_file, args.quiet, args.guarantee,
                            mechanism.policy, args.show_text),
            args.quiet,
            args.allow_unchanged or mechanism.allow_unchanged,
            not args.no_channel_card,
        )  # fmt: skip

    def released_by(self, mechanism: Mechanism) -> dict[str, Any]:
        """Return all parameters that decide the output; ``--resume`` compares them."""
        choice = self.files.choice._asdict()
        choice.pop("longest")
        account = self.account
        spec = json.loads(mechanism._complete_spec(False))
        for key in ("pad", "cache_bytes", "threads"):
            spec.pop(key, None)
        return {
            "spec": spec,
            "bag": self.mechanism.bag, "format": self.files.format,
            "encoding": self.files.encoding, "choice": choice,
            "ledger": account and [account.ledger, account.name, account.column],
            "version": __version__,
        }  # fmt: skip


def _delimiter(given: str | None) -> str | None:
    if given is None:
        return None
    sign = given.replace("\\t", "\t")
    if len(sign) != 1 or sign in '\r\n"':
        raise CommandError("--delimiter must be one sign that is no quote and no line end")
    return sign


def _privatize(args: argparse.Namespace) -> None:
    options = Options.of(args)
    files, asked = options.files, options.mechanism
    bar = Bar(None, options.quiet)
    opener = Opener(bar, files.encoding)
    total = Done()
    wanted, total.others = jobs(files, opener)
    ledger = _ledger(options.account)

    def whole(job: Job) -> bool:
        # The pieces of plain text are one text, so one call must keep their replacements.
        return job.kind.name == "text" and asked.consistent

    made: dict[bool, Mechanism] = {}
    for pieces in sorted({whole(job) for job in wanted}):
        made[pieces] = asked.make(pieces=pieces)
        refuse_unchanged(made[pieces], allowed=options.allow_unchanged)
    bar.total = total_size([name for job in wanted for name in job.names])
    finished: dict[bool, folders.Finished | None] = dict.fromkeys(made)
    if files.output_dir:
        finished = {pieces: _finished(options, mechanism) for pieces, mechanism in made.items()}
    try:
        for job in wanted:
            known = finished[whole(job)]
            if known is not None and files.resume and known.has(job.names[0], str(job.output)):
                total.skipped += 1
                bar(Path(job.names[0]).stat().st_size)
                continue
            _Run(options, made[whole(job)], opener, ledger, known, total).make(job)
    finally:
        bar.clear()
    total.nearly = sum(mechanism._nearly_always_unchanged() for mechanism in made.values())
    word = next(iter(made.values()))
    closing.report(options.closing, word, _bags(word) if asked.bag else None, total)


def _bags(mechanism: Mechanism) -> BagOfWords:
    # Most runs draw no bags, so they need not wait for the module.
    from fastdx.bags import BagOfWords

    return BagOfWords(mechanism)


def _ledger(account: Account | None) -> Ledger | None:
    if account is None:
        return None
    from fastdx.budget import Ledger

    return Ledger(account.ledger, account.budget, allow_wordless=account.allow_wordless)


def _finished(options: Options, mechanism: Mechanism) -> folders.Finished:
    """Return the record of earlier runs, for comparison with these parameters."""
    known = folders.hash_of(options.released_by(mechanism))
    return folders.Finished(Path(str(options.files.output_dir)), known)


class _Descriptor(io.RawIOBase):
    """Standard output through a duplicated descriptor.

    A thread that waits for a reader then holds no lock that the interpreter needs to exit.
    """

    def __init__(self, number: int) -> None:
        self._number = os.dup(number)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        left = memoryview(data).cast("B")
        while left:
            left = left[os.write(self._number, left) :]
        return len(data)


class _Run(NamedTuple):
    """The parts that all jobs with one mechanism share."""

    options: Options
    mechanism: Mechanism
    opener: Opener
    ledger: Ledger | None
    finished: folders.Finished | None
    total: Done

    def make(self, job: Job) -> None:
        """Make an output; it gets its name when it is complete and paid for."""
        whole = job.kind.name == "text"
        bags = _bags(self.mechanism) if self.options.mechanism.bag else None
        drawing = Drawing(self.mechanism, bags, whole=whole)
        account = self.options.account
        if self.ledger is not None and account is not None:
            drawing.bill = Bill(self.ledger, self.mechanism, account.name, whole=whole)
        form = job.kind(self.options.files.choice)
        form.card = card = self._card(job, bags)

        def fill(out: BinaryIO) -> None:
            try:
                batches = (batch for name in job.names for batch in form.read(name, self.opener))
                run(batches, drawing, lambda batch: form.write(batch, out))
                form.close()
            except BaseException:
                form.abandon()
                raise

        output = None if job.output == "-" else job.output
        if output is None and (number := _number_of(sys.stdout)) is not None:
            sys.stdout.flush()
            fill(cast(BinaryIO, _Descriptor(number)))
        else:
            with _naming(output), open_output(output, job.names, pack=False) as plain:
                hashed = None if self.finished is None else folders.Hashed(plain)
                below = plain if hashed is None else cast(BinaryIO, hashed)
                with packed(below, output) as file:
                    fill(file)
                plain.flush()
                if drawing.bill is not None:
                    for name, price in drawing.bill.pay(job.names[0]).items():
                        self.total.charged[name] = self.total.charged.get(name, 0.0) + price
                if self.finished is not None and hashed is not None:
                    self.finished.add(job.names[0], str(output), hashed)
            if card is not None and output is not None:
                with open_output(str(beside(output)), job.names) as beside_it:
                    beside_it.write(f"{card}\n".encode())
        self.total.counts.update(drawing.counts)
        self.total.left.update(form.left)
        self.total.files.append(
            {"inputs": job.names, "output": output or "-", "format": job.kind.name}
        )

    def _card(self, job: Job, bags: BagOfWords | None) -> str | None:
        """Return the channel card of an output file, or note why it has none."""
        if not self.options.cards or job.output is None or streams(job.output):
            return None
        why = "bags have none" if bags is not None else no_card(self.mechanism)
        if why is not None:
            self.total.no_card = why
            return None
        return card_of(self.mechanism)


class _naming:
    """Adds the output's name to errors of writing it."""

    def __init__(self, output: str | None) -> None:
        self._output = output

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if (
            isinstance(error, OSError)
            and not isinstance(error, BrokenPipeError)
            and error.errno is not None
            and error.filename is None
            and self._output is not None
        ):
            error.filename = self._output


def _number_of(stream: Any) -> int | None:
    """Return the descriptor of a stream, if it has one."""
    try:
        return int(stream.fileno())
    except (AttributeError, OSError, ValueError):
        return None
