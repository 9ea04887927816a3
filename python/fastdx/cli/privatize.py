"""``fastdx privatize`` replaces the words of files."""

from __future__ import annotations

import argparse
import json
import math
import operator
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from fastdx import __version__
from fastdx._core import MOST_UNCHANGED, Replacements
from fastdx._shared.card import beside, card_of, no_card
from fastdx._shared.replace import open_output
from fastdx._types import Unchanged
from fastdx.cli import options
from fastdx.cli.formats import FORMATS, Batch, Choice, Format, Opener
from fastdx.cli.formats.opening import LONGEST_BYTES
from fastdx.cli.jobs import Finished, Job, jobs, streams
from fastdx.cli.messages import CommandError, step, tell
from fastdx.exceptions import UnknownWordError
from fastdx.mechanisms import Mechanism

if TYPE_CHECKING:
    from fastdx.budget import Ledger

WORDLESS = "all of it would be released as it is (--allow-wordless)"
OOV = {"random": "drawn at random", "error": "refused", "drop": "left out", "mask": "masked",
       "keep": "RELEASED"}  # fmt: skip
"""The treatment of unknown words, as the closing line says it."""
FEW_WORDS = 10
"""With fewer words than this, unknown ones say nothing about the language of the texts."""


def add(commands: options.Commands) -> None:
    """Add the command."""
    p = commands.add_parser(
        "privatize",
        description="Replace the words of text by words drawn with metric differential privacy. "
        "White space, punctuation and the number of words are not protected. Columns that "
        "--column does not name are not protected either.",
        examples="""
  fastdx privatize < letter.txt
  fastdx privatize reviews.jsonl.gz --column text -o private.jsonl.zst
  fastdx privatize chats.json --column 'messages[].text' -o private.json
  fastdx privatize table.csv --no-header --column 2 --delimiter ';'
  fastdx privatize data/ --column text --output-dir private/ --resume
  fastdx privatize posts.jsonl --column text -o private.jsonl \\
      --ledger budget.sqlite --budget 3000 --account-column user
  fastdx privatize --epsilon 2 --cover 40 --balance 0.1 < letter.txt
""",
        short="column format output output_dir report_file quiet ledger policy epsilon "
        "mechanism cover embedding",
    )
    p.add_argument("files", nargs="*", metavar="FILE", help="files, folders; '-' or none: stdin")
    options.add_mechanism(p)
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
                       "',')")  # fmt: skip
    group.add_argument("--max-record", type=int, default=LONGEST_BYTES >> 20, metavar="MB",
                       help="the largest line, row or record, in MB (default %(default)s); memory "
                       "grows with it")  # fmt: skip
    group = p.add_argument_group("output")
    group.add_argument("-o", "--output", metavar="FILE", help="the output, which gets this name "
                       "when it is complete; compressed if it ends in .gz or .zst")  # fmt: skip
    group.add_argument("--output-dir", metavar="FOLDER", help="write one output per input, with "
                       "its name and sub-folder")  # fmt: skip
    group.add_argument("--resume", action="store_true", help="keep the files that an earlier run "
                       "wrote to --output-dir with the same parameters; refuse other existing "
                       "files")  # fmt: skip
    group.add_argument("--report", dest="report_file", metavar="FILE",
                       help="write the closing lines to a file, as one JSON object")  # fmt: skip
    group.add_argument("-q", "--quiet", action="store_true",
                       help="show no progress and no closing line, only warnings")  # fmt: skip
    group.add_argument("--guarantee", action="store_true", help="print the guarantee too")
    group.add_argument("--allow-unchanged", action="store_true", help="release the texts even if "
                       "more than half of the common words come back unchanged")  # fmt: skip
    options.add(group, "show-text")
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
    p.set_defaults(run=_privatize)


def _check(args: argparse.Namespace) -> None:
    """Refuse options that contradict each other, before any file is opened."""
    if args.output and args.output_dir:
        raise CommandError("--output and --output-dir exclude each other")
    if args.resume and not args.output_dir:
        raise CommandError("--resume goes with --output-dir")
    if not 1 <= args.max_record <= 1024:
        raise CommandError(f"--max-record must be from 1 to 1024, got {args.max_record}")
    if args.delimiter is not None and (len(args.delimiter) != 1 or args.delimiter in '\r\n\t"'):
        raise CommandError("--delimiter must be one sign that is no quote, no tab (--format tsv) "
                           "and no line end")  # fmt: skip
    if args.account_column in args.column:
        raise CommandError("--account-column must not be one of the columns to privatise")
    if not args.ledger:
        for option in ("budget", "account", "account_column", "allow_wordless"):
            if getattr(args, option):
                raise CommandError(f"--{option.replace('_', '-')} goes with --ledger")
        return
    if (args.account is None) == (args.account_column is None):
        raise CommandError("--ledger needs --account NAME or --account-column NAME")
    if not args.output_dir and (args.output is None or streams(args.output)):
        raise CommandError("--ledger needs -o FILE: a stream releases text at once, and the "
                           "ledger must be charged before that")  # fmt: skip


def _privatize(args: argparse.Namespace) -> None:
    _check(args)
    asked = options.MechanismOptions.of(args)
    choice = Choice(tuple(args.column), args.account_column, not args.no_header,
                    args.delimiter, longest=args.max_record << 20)  # fmt: skip
    opener = Opener()
    wanted, others = jobs(args, choice, opener)
    ledger = None
    if args.ledger:
        from fastdx.budget import Ledger

        ledger = Ledger(args.ledger, args.budget, allow_wordless=args.allow_wordless)
    # The pieces of plain text are one text, so one call must keep their replacements.
    whole = not choice.columns
    mechanism = asked.make(pieces=whole)
    run = _Run(mechanism, others)
    if run.unchanged.mean > MOST_UNCHANGED and not (args.allow_unchanged or asked.allow_unchanged):
        raise CommandError(f"{run.warning}; take a smaller --epsilon or a --cover, or give "
                           "--allow-unchanged")  # fmt: skip
    if args.output_dir:
        run.finished = Finished(Path(args.output_dir), _released_by(args, choice, mechanism))
        if args.resume:
            left = [job for job in wanted if not run.finished.has(job.name, str(job.output))]
            run.skipped, wanted = len(wanted) - len(left), left
    with step("drawing", quiet=args.quiet) as run.progress:
        for job in wanted:
            bill = None if ledger is None else _Bill(ledger, mechanism, args.account, whole=whole)
            run.make(job, job.kind(choice, job.name), opener, bill)
    _report(args, asked.policy, run)


def _released_by(args: argparse.Namespace, choice: Choice, mechanism: Mechanism) -> dict[str, Any]:
    """Return all parameters that decide the output; ``--resume`` compares them."""
    chosen = choice._asdict()
    chosen.pop("longest")
    spec = json.loads(mechanism._complete_spec(False))
    for key in ("pad", "cache_bytes", "threads"):
        spec.pop(key, None)
    return {
        "spec": spec, "format": args.format, "choice": chosen,
        "ledger": args.ledger and [args.ledger, args.account, args.account_column],
        "version": __version__,
    }  # fmt: skip


class _Bill:
    """The prices of the texts of one output by account; they are paid before its release."""

    def __init__(
        self, ledger: Ledger, mechanism: Mechanism, account: str | None, *, whole: bool
    ) -> None:
        """Start with no charges; `whole` says that texts are parts of one text (plain text)."""
        self._ledger = ledger
        self._guarantee = mechanism.guarantee
        self._account = account
        self._whole = whole
        self._prices: defaultdict[str, float] = defaultdict(float)
        self._units: defaultdict[str, tuple[int, ...]] = defaultdict(lambda: (0, 0, 0))
        self._wordless = False

    def add(self, batch: Batch) -> None:
        """Add the prices of texts; refuse a text without a price."""
        texts = batch.texts()
        payers = batch.payers or [self._account or ""] * len(texts)
        for at, (text, account) in enumerate(zip(texts, payers, strict=True)):
            price, why, units = self._guarantee._price(text)
            if why is not None:
                raise CommandError(f"{batch.place(at)}: this release has no price: {why}")
            if any(units):
                self._units[account] = tuple(map(operator.add, self._units[account], units))
                self._prices[account] += price
            elif text and not (self._whole or self._ledger.allow_wordless):
                raise CommandError(f"{batch.place(at)}: a text without a word: {WORDLESS}")
            elif text:
                self._wordless = True

    def pay(self, name: str) -> dict[str, float]:
        """Charge every account, or none; return the charge of each."""
        from fastdx.budget import BudgetExceededError

        if self._wordless and not self._units and not self._ledger.allow_wordless:
            raise CommandError(f"{name}: no word: {WORDLESS}")
        notes = {account: self._guarantee._note(*units) for account, units in self._units.items()}
        try:
            self._ledger.charge_all(self._prices, notes)
        except BudgetExceededError as e:
            if self._account is not None:
                raise
            # Account names from a column are content.
            message = f"{name}: one of {len(notes)} accounts would pass the budget"
            raise CommandError(message, str(e)) from None
        return self._prices


class _Run:
    """Makes the outputs, and holds what is said of them at the end."""

    progress: Callable[[int], object]
    finished: Finished | None = None
    skipped = 0
    """The number of files that earlier runs finished."""
    no_card: str | None = None
    """The reason why outputs got no channel card, if they should have one."""

    def __init__(self, mechanism: Mechanism, others: int) -> None:
        """Start with the number of files of other formats in folders."""
        self.mechanism = mechanism
        self.unchanged = Unchanged(*mechanism._unchanged())
        self.warning = self.unchanged.warning
        if self.warning is not None and mechanism._has_history:
            self.warning = f"without a history, {self.warning}"
        self.others = others
        self.counts: Counter[str] = Counter()
        self.left: dict[str, None] = {}
        """Columns and fields that were released unchanged."""
        self.dropped: dict[str, None] = {}
        """Keys of metadata that were dropped."""
        self.files: list[dict[str, str]] = []
        self.charged: Counter[str] = Counter()

    def make(self, job: Job, form: Format, opener: Opener, bill: _Bill | None) -> None:
        """Make an output; it gets its name when it is complete and paid for."""
        kept = Replacements() if self.mechanism.consistent and not form.choice.columns else None
        if job.output is not None and not streams(job.output):
            self.no_card, form.card = no_card(self.mechanism), card_of(self.mechanism)

        def complete(file: BinaryIO) -> None:
            if bill is not None:
                self.charged.update(bill.pay(job.name))
            if self.finished is not None:
                self.finished.save(job.name, str(job.output), file)

        with open_output(job.output, [job.name], then=complete) as out:
            done = False
            try:
                for batch in form.read(opener):
                    try:
                        if bill is not None:
                            bill.add(batch)
                        new, counts = form.draw(batch, self.mechanism, kept)
                    except UnknownWordError as e:
                        word, place = e.word or "", batch.place(e.text or 0, e.start or 0)
                        what = f"a word of {len(word)} characters"
                        message = f"{place}: {what} is not in the vocabulary (--oov error)"
                        raise CommandError(message, repr(word)) from None
                    self.counts.update(counts)
                    form.write(batch, new, out)
                    self.progress(self.counts["words"])
                done = True
            finally:
                form.close(complete=done)
        if form.card is not None:
            with open_output(str(beside(str(job.output))), [job.name]) as beside_it:
                beside_it.write(f"{form.card}\n".encode())
        self.left |= form.left
        self.dropped |= form.dropped
        file = {"input": job.name, "output": job.output or "-", "format": job.kind.name}
        self.files.append(file)


def _report(args: argparse.Namespace, policy: str, run: _Run) -> None:
    """Print or write counts, warnings about unprotected parts, and the guarantee."""
    warned = list(_warnings(run, show_text=args.show_text))
    if args.report_file:
        report = {
            "counts": dict(run.counts),
            "spec": run.mechanism.spec,
            "policy": policy,
            "guarantee": run.mechanism.guarantee.with_bits().to_dict(),
            "files": run.files,
            "finished_before": run.skipped,
            "left_out": run.others,
            "charged": math.fsum(run.charged.values()),
            "accounts": len(run.charged),
            "warnings": warned,
            "no_channel_card": run.no_card,
        }
        with open_output(args.report_file) as out:
            out.write(f"{json.dumps(report, ensure_ascii=False)}\n".encode())
    tell(f"{_line(run)}.", quiet=args.quiet)
    for warning in warned:
        tell(f"warning: {warning}")
    if args.guarantee:
        print(run.mechanism.guarantee.with_bits(), file=sys.stderr)


def _line(run: _Run) -> str:
    counts = run.counts
    common = "" if run.mechanism._has_history else f"{run.unchanged.mean:.1%}"
    charged = math.fsum(run.charged.values())
    many = len(run.files) > 1 or run.skipped
    parts = {
        f"{counts['words']:,} words": True,
        f"{counts['unchanged']:,} came back unchanged": True,
        f"{counts['unknown']:,} were not in the vocabulary ({OOV[run.mechanism.oov]})": True,
        f"{counts['skipped']:,} were skipped": counts["skipped"],
        f"{counts['numbers']:,} were numbers, drawn by their own law": counts["numbers"],
        f"{counts['dates']:,} were dates, drawn by their own law": counts["dates"],
        f"under this policy {common} of common words come back": common,
        f"{charged:g} charged to {len(run.charged):,} accounts": run.charged,
        f"{len(run.files):,} files written": many,
        f"{run.skipped:,} finished before": run.skipped,
        f"{run.others:,} files of other formats left out": run.others,
        f"no channel card: {run.no_card}": run.no_card,
    }
    return "; ".join(part for part, said in parts.items() if said)


def _warnings(run: _Run, *, show_text: bool) -> Iterator[str]:
    """Yield warnings about unprotected parts; ``-q`` does not hide them."""
    counts, word = run.counts, run.mechanism
    if run.warning is not None:
        yield run.warning
    if not word._has_history and (nearly := word._nearly_always_unchanged()):
        yield (
            f"{nearly:,} different words of these texts come back as they were nearly "
            "always: with a probability above 0.9"
        )
    if counts["words"] >= FEW_WORDS and 2 * counts["unknown"] > counts["words"]:
        yield (
            f"{counts['unknown'] / counts['words']:.0%} of the words are not in the vocabulary: is "
            "it of the language of these texts? (--embedding)"
        )
    if word.seed is not None:
        yield "SEEDED: the output is reproducible, hence NOT protected"
    if word.oov == "keep":
        yield f"{counts['unknown']:,} unknown words RELEASED AS THEY ARE (--oov keep)"
    if word.skip:
        yield f"{counts['skipped']:,} skipped words RELEASED AS THEY ARE (--skip)"
    content = any(FORMATS[file["format"]].names_are_content for file in run.files)
    if run.left and content and not show_text:
        yield f"{len(run.left)} other fields released as they were (--show-text names them)"
    elif run.left:
        yield f"released as they were: {', '.join(run.left)}"
    if run.dropped:
        yield f"metadata dropped from the schema: {', '.join(run.dropped)}"
    if counts["misdecoded"]:
        yield (
            f"{counts['misdecoded']:,} texts look like UTF-8 that was read as another encoding "
            "(Latin-1, Windows-1251, …): parts of their words stand as punctuation and were "
            "released as they are"
        )
