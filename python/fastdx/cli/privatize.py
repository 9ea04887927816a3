"""``fastdx privatize``: the words of files replaced."""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from fastdx import __version__
from fastdx._core import MOST_UNCHANGED, RECOMMENDED_BALANCE, RECOMMENDED_COVER
from fastdx._replace import PACKED, open_output, packed
from fastdx.bags import BagOfWords
from fastdx.cli import folders
from fastdx.cli.drawing import Bill, Drawing
from fastdx.cli.formats import FORMATS, Choice, Format, Opener, Released, format_named, format_of
from fastdx.cli.formats.opening import LONGEST, bare
from fastdx.cli.messages import Bar, CommandError, step
from fastdx.cli.options import (
    cover_errors,
    cover_of,
    cover_options,
    embedding_options,
    examples,
    excluded_words,
    graph_option,
    mechanism_options,
    own_options,
    show_text,
    skipped_words,
    space_of,
)
from fastdx.cli.pipeline import run
from fastdx.exceptions import FastdxWarning
from fastdx.mechanisms import MECHANISMS, Mechanism, Tem

if TYPE_CHECKING:
    from fastdx.budget import Ledger
    from fastdx.cli.options import _Commands

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


def add(commands: _Commands) -> None:
    """Add the command."""
    p = commands.add_parser(
        "privatize",
        help="replace the words of text, CSV, JSON or Parquet",
        description="Replace the words of text by words drawn with metric differential privacy. "
        "White space, punctuation, and the number of words are not protected; nor are columns "
        "that --column does not name.",
        **examples(EXAMPLES),
    )
    p.add_argument("files", nargs="*", default=[], metavar="FILE",
                   help="files, patterns in quotes, folders; '-' or none: stdin")  # fmt: skip
    p.add_argument("--epsilon", type=float, help="ε per unit of distance; by default the policy "
                   "that is recommended for the built-in English words")  # fmt: skip
    _input_options(p)
    _output_options(p)
    mechanism_group(p)
    _ledger_options(p)
    p.set_defaults(run=_privatize)


def _input_options(p: argparse.ArgumentParser) -> None:
    group = p.add_argument_group("input")
    group.add_argument("--format", choices=tuple(FORMATS), help="by default from the files' names, "
                       "or else their content")  # fmt: skip
    group.add_argument(
        "--column", action="append", default=[], metavar="NAME", help="column or field of text; "
        "repeatable; within JSON and Parquet also user.comment, items[].text",
    )  # fmt: skip
    group.add_argument("--no-header", action="store_true", help="CSV, TSV: the first line is data; "
                       "--column takes numbers, from 1 on")  # fmt: skip
    group.add_argument("--delimiter", metavar="SIGN",
                       help="CSV: what separates fields (default ','; '\\t': a tab)")  # fmt: skip
    group.add_argument("--encoding", metavar="NAME", help="of the input, as Python calls it "
                       "(default utf-8); the output is UTF-8")  # fmt: skip
    group.add_argument("--max-record", type=_megabytes, default=LONGEST >> 20, metavar="MB",
                       help="a line, a row or a record may have so many MB (default "
                       "%(default)s); memory grows with it")  # fmt: skip


def _megabytes(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to 1024, got {text!r}")
    return int(text)


def _output_options(p: argparse.ArgumentParser) -> None:
    group = p.add_argument_group("output")
    group.add_argument("-o", "--output", metavar="FILE", help="written beside, then renamed; "
                       "packed if it ends in .gz or .zst")  # fmt: skip
    group.add_argument("--output-dir", metavar="FOLDER", help="one output a file, of its name, "
                       "sub-folders kept")  # fmt: skip
    group.add_argument("--resume", action="store_true", help="with --output-dir: files that were "
                       "finished under the same parameters stay; others are refused")  # fmt: skip
    group.add_argument("--report", choices=("json",), help="the closing lines as one JSON object")
    group.add_argument("--report-file", metavar="FILE", help="where --report goes (default stderr)")
    group.add_argument("-q", "--quiet", action="store_true",
                       help="no progress, no closing line; warnings all the same")  # fmt: skip
    group.add_argument("--guarantee", action="store_true", help="print what is proved, too")
    group.add_argument("--allow-unchanged", action="store_true", help="release the texts even if "
                       "more than half of the common words come back as they were")  # fmt: skip
    show_text(group)


def mechanism_group(p: argparse.ArgumentParser) -> None:
    """Add which mechanism, and all that it takes."""
    group = p.add_argument_group("mechanism")
    group.add_argument(
        "--mechanism",
        choices=(*MECHANISMS, "bag"),
        default="tem",
        help="bag: each line or field becomes a bag of words, stop words left out, by --words",
    )
    group.add_argument("--words", choices=tuple(MECHANISMS),
                       help="bag: the mechanism for its words (default tem)")  # fmt: skip
    group.add_argument("--certified", action="store_true", help="tem: --epsilon is what the "
                       "certificate proves, so with less noise; takes a while")  # fmt: skip
    group.add_argument("--embedding", metavar="PATH", help="default: 20,000 English words × 50")
    graph_option(group)
    mechanism_options(group)
    cover_options(group)
    group.add_argument(
        "--oov",
        choices=("random", "error", "drop", "mask", "keep"),
        default="random",
        help="unknown words (default random; keep releases them UNPROTECTED)",
    )
    group.add_argument("--skip", metavar="FILE", help="words, one a line, released UNPROTECTED")
    group.add_argument(
        "--consistent",
        action="store_true",
        help="the same word gets the same replacement throughout a text (a field, or a file of "
        "plain text); which words are equal is released",
    )
    group.add_argument("--pad", type=float, metavar="SECONDS", help="every call of the mechanism "
                       "takes a whole multiple of it, so that its time tells less")  # fmt: skip
    group.add_argument("--cache", type=int, metavar="BYTES", help="lists and laws kept at most "
                       "(default FASTDX_CACHE_BYTES, or 128 MiB)")  # fmt: skip
    group.add_argument("--threads", type=int, metavar="N", help="threads of the drawing (default "
                       "FASTDX_NUM_THREADS, or one a core)")  # fmt: skip
    group.add_argument("--seed", type=int, help="for tests only: reproducible, hence unprotected")
    embedding_options(p)


def _ledger_options(p: argparse.ArgumentParser) -> None:
    group = p.add_argument_group("ledger", "ε·words is charged before a file takes its name; if "
                                 "an account cannot pay, nothing is released")  # fmt: skip
    group.add_argument("--ledger", metavar="FILE", help="a ledger (fastdx.budget), made if needed")
    group.add_argument("--budget", type=float, metavar="B", help="what an account may spend in all "
                       "(default: what the ledger says)")  # fmt: skip
    group.add_argument("--account", metavar="NAME", help="who pays")
    group.add_argument("--account-column", metavar="NAME", help="the column or field that says who "
                       "pays for a record")  # fmt: skip
    group.add_argument("--allow-wordless", action="store_true", help="release texts that hold no "
                       "word, punctuation alone, as they are, for nothing")  # fmt: skip


def mechanism_of(args: argparse.Namespace, *, pieces: bool = False) -> Mechanism:
    """Return the mechanism that the options ask for."""
    if args.words and args.mechanism != "bag":
        raise CommandError("--words goes with --mechanism bag")
    if args.epsilon is None:
        return _recommended(args, pieces=pieces)
    kind = MECHANISMS[(args.words or "tem") if args.mechanism == "bag" else args.mechanism]
    if args.certified and kind is not Tem:
        raise CommandError("--certified goes with --mechanism tem")
    own: dict[str, Any] = dict(own_options(args, kind))
    quiet = args.quiet
    with step("loading the words", quiet=quiet):
        space = space_of(args, kind)
    own |= cover_of(args, kind, space) | _common(args, pieces=pieces)
    if args.certified:
        with step("certifying", quiet=quiet) as progress, cover_errors():
            return Tem.certified(space, args.epsilon, progress=progress, **own)
    with step("making the mechanism", quiet=quiet), cover_errors():
        return kind.make(space, args.epsilon, **own)


def _common(args: argparse.Namespace, *, pieces: bool) -> dict[str, Any]:
    """Return the parameters that all mechanisms take."""
    # A file of plain text comes in pieces, which are one text.
    consistent: bool | str = "call" if args.consistent and pieces else args.consistent
    return {"oov": args.oov, "skip": skipped_words(args.skip), "exclude": excluded_words(args),
            "consistent": consistent, "seed": args.seed, "pad": args.pad,
            "cache_bytes": args.cache, "threads": args.threads}  # fmt: skip


def _recommended(args: argparse.Namespace, *, pieces: bool) -> Tem:
    """Return the recommended policy, where no other mechanism is asked for."""
    own = ("words", "certified", "embedding", "graph", "cover", "balance", "cover_file",
           "embedding_format", "metric", "limit", "vocabulary",
           *(option.name for kind in MECHANISMS.values() for option in kind.options))  # fmt: skip
    # A zero was given, too.
    given = [f"--{name.replace('_', '-')}" for name in own
             if getattr(args, name) is not None and getattr(args, name) is not False]  # fmt: skip
    if args.mechanism not in ("tem", "bag"):
        given.append("--mechanism")
    if given:
        raise CommandError(f"{given[0]} needs --epsilon: without it the recommended policy is "
                           "taken, which is made for the built-in English words")  # fmt: skip
    with step("making the recommended policy", quiet=args.quiet):
        tem = Tem.recommended(**_common(args, pieces=pieces))
    if not args.quiet:
        print(f"fastdx: the recommended policy: --epsilon {tem.nominal:g} --cover "
              f"{RECOMMENDED_COVER} --balance {RECOMMENDED_BALANCE:g}, chosen by what an attacker "
              "names in sentences (docs/explanation/what-you-keep.md)",
              file=sys.stderr)  # fmt: skip
    return tem


def refuse_unchanged(mechanism: Mechanism, *, allowed: bool) -> None:
    """Refuse a policy under which more than half of the common words come back."""
    found = mechanism.unchanged
    if found.mean > MOST_UNCHANGED and not allowed:
        raise CommandError(f"{found.warning}; take a smaller --epsilon or a --cover, or insist by "
                           "--allow-unchanged")  # fmt: skip


@dataclass
class _Job:
    """An output, and what it is made of."""

    kind: type[Format]
    names: list[str]
    output: str | None


@dataclass
class _Sum:
    """What all outputs are made of."""

    counts: Counter[str] = field(default_factory=Counter)
    left: Released = field(default_factory=Released)
    files: list[dict[str, Any]] = field(default_factory=list)
    skipped: int = 0
    """Files that were finished before."""
    others: int = 0
    """Files of other formats in folders."""
    charged: dict[str, float] = field(default_factory=dict)
    nearly: int = 0
    """Words of these texts that come back as they are nearly always."""


def _privatize(args: argparse.Namespace) -> None:
    _check_options(args)
    bar = Bar(None, args.quiet)
    opener = Opener(bar, args.encoding)
    total = _Sum()
    jobs = _jobs(args, opener, total)
    ledger = None
    if args.ledger:
        from fastdx.budget import Ledger

        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", FastdxWarning)
            ledger = Ledger(args.ledger, args.budget, allow_wordless=args.allow_wordless)
        for warning in told:
            print(f"fastdx: warning: {warning.message}", file=sys.stderr)
    # Of plain text the pieces are one text, which the mechanism must know.
    made: dict[bool, Mechanism] = {}
    for pieces in sorted({job.kind.name == "text" and args.consistent for job in jobs}):
        made[pieces] = mechanism_of(args, pieces=pieces)
        refuse_unchanged(made[pieces], allowed=args.allow_unchanged)
    finished = _finished(args) if args.output_dir else None
    bar.total = _total_size([name for job in jobs for name in job.names])
    try:
        for job in jobs:
            mechanism = made[job.kind.name == "text" and args.consistent]
            if finished is not None and args.resume and finished.has(job.names[0], str(job.output)):
                total.skipped += 1
                bar(Path(job.names[0]).stat().st_size)
                continue
            _run_job(args, job, opener, mechanism, ledger, finished, total)
    finally:
        bar.clear()
    total.nearly = sum(mechanism._nearly_always_unchanged() for mechanism in made.values())
    word = next(iter(made.values())) if made else mechanism_of(args)
    _report(args, BagOfWords(word) if args.mechanism == "bag" else word, total)


def _check_options(args: argparse.Namespace) -> None:
    """Refuse options that contradict each other, before anything is read."""
    if args.output and args.output_dir:
        raise CommandError("--output and --output-dir exclude each other")
    if args.resume and not args.output_dir:
        raise CommandError("--resume goes with --output-dir")
    if args.report_file and not args.report:
        raise CommandError("--report-file goes with --report json")
    if args.skip and args.mechanism == "bag":
        raise CommandError("--skip does not go with --mechanism bag")
    if args.delimiter is not None:
        args.delimiter = args.delimiter.replace("\\t", "\t")
        if len(args.delimiter) != 1 or args.delimiter in '\r\n"':
            raise CommandError("--delimiter must be one sign, and no quote or line end")
    if args.account_column in args.column:
        raise CommandError("--account-column is one of the columns to privatise")
    if not args.ledger:
        for option in ("budget", "account", "account_column", "allow_wordless"):
            if getattr(args, option):
                raise CommandError(f"--{option.replace('_', '-')} goes with --ledger")
    elif (args.account is None) == (args.account_column is None):
        raise CommandError("--ledger needs --account NAME or --account-column NAME")
    elif not args.output_dir and (args.output is None or _streams(args.output)):
        raise CommandError("--ledger needs -o FILE: what goes to a stream is released at once, "
                           "and the ledger is charged before anything is")  # fmt: skip


def _streams(output: str) -> bool:
    path = Path(output)
    return output == "-" or (path.exists() and not path.is_file() and not path.is_dir())


def _choice(args: argparse.Namespace) -> Choice:
    return Choice(tuple(args.column), args.account_column, not args.no_header, args.delimiter,
                  by_line=args.mechanism == "bag", longest=args.max_record << 20)  # fmt: skip


def _given(args: argparse.Namespace) -> list[folders.Given]:
    """Return the files that are named, by themselves, by patterns, by folders."""
    names = args.files or ["-"]
    walked = [name for name in names if name != "-" and Path(name).is_dir()]
    given = list(folders.found(names))
    if not args.output_dir:
        if walked:
            raise CommandError(f"{walked[0]} is a folder: --output-dir takes folders")
        return given
    own = Path(args.output_dir).resolve()
    for name in walked:
        if Path(name).resolve() == own:
            raise CommandError(f"{name}: --output-dir would replace an input; choose another")
    # What an earlier run left in a folder within is no input.
    return [g for g in given if not (g.walked and own in Path(g.path).resolve().parents)]


def _jobs(args: argparse.Namespace, opener: Opener, total: _Sum) -> list[_Job]:
    """Return what is to be made of which files, or refuse."""
    given = _given(args)
    kept: list[tuple[folders.Given, type[Format]]] = []
    for g in given:
        if g.walked and args.format is None:
            named = format_named(g.path)
            if named is None or named.by_column != bool(args.column):
                total.others += 1
                continue
        kind = FORMATS[args.format] if args.format else format_of(g.path, opener)
        _check_kind(args, kind, g.path)
        kept.append((g, kind))
    if not kept:
        raise CommandError("no file to privatise" + (f": {total.others} have other formats"
                                                     if total.others else ""))  # fmt: skip
    if args.output_dir:
        if any(g.path == "-" for g, _ in kept):
            raise CommandError("--output-dir goes with files, not with standard input")
        targets = folders.outputs([g for g, _ in kept], Path(args.output_dir))
        unique = {g.path: kind for g, kind in kept}
        return [_Job(kind, [path], targets[path]) for path, kind in unique.items()]
    kinds = {kind for _, kind in kept}
    if len(kinds) > 1:
        several = ", ".join(sorted(kind.name for kind in kinds))
        raise CommandError(f"files of several formats at once: {several} (--output-dir takes them)")
    kind = kinds.pop()
    if len(kept) > 1 and not kind.joins:
        raise CommandError(f"several {kind.name} files do not make one: --output-dir")
    _check_output(args, kind)
    return [_Job(kind, [g.path for g, _ in kept], args.output)]


def _check_kind(args: argparse.Namespace, kind: type[Format], name: str) -> None:
    """Refuse options that a format does not take."""
    if not kind.by_column and (args.column or args.account_column):
        option = "--column" if args.column else "--account-column"
        raise CommandError(f"{option} goes with CSV, JSON and Parquet (see --format)")
    if kind.by_column and not args.column:
        raise CommandError(f"{kind.name} needs --column NAME: which text to privatise "
                           "(--format text: all of it)")  # fmt: skip
    for option, kinds in (("--no-header", ("csv", "tsv")), ("--delimiter", ("csv",))):
        given = args.no_header if option == "--no-header" else args.delimiter is not None
        if given and kind.name not in kinds:
            raise CommandError(f"{option} goes with {' and '.join(kinds)}, not with {kind.name}")
    if args.encoding and not kind.packs:
        raise CommandError(f"--encoding does not go with {kind.name}")
    if not kind.packs and bare(name) != name:
        raise CommandError(f"{name}: a {kind.name} file is packed within, not as {name[-4:]}")


def _check_output(args: argparse.Namespace, kind: type[Format]) -> None:
    """Refuse a name that says something else than what the file would hold."""
    if args.output is None or args.output == "-":
        return
    named = format_named(args.output)
    if named is not None and named is not kind:
        tabs = kind.name == "csv" and named.name == "tsv" and args.delimiter == "\t"
        if not tabs:
            raise CommandError(f"{args.output}: its name says {named.name}, and it would hold "
                               f"{kind.name}")  # fmt: skip
    if Path(args.output).suffix.lower() in PACKED and not kind.packs:
        raise CommandError(f"{args.output}: a {kind.name} file is packed within: leave out "
                           f"{Path(args.output).suffix}")  # fmt: skip


def _total_size(names: Sequence[str]) -> int | None:
    """Return the bytes of all input files, or None when one has no size."""
    if "-" in names:
        return None
    return sum(Path(name).stat().st_size for name in names)


OOV = {"random": "drawn at random", "error": "refused", "drop": "left out", "mask": "masked",
       "keep": "RELEASED"}  # fmt: skip
"""How unknown words are handled, for the closing line."""
FEW_WORDS = 10
"""Below this many words, unknown ones say nothing of the language."""
HARMLESS = {"files", "output", "output_dir", "resume", "report", "report_file", "quiet",
            "show_text", "run", "command", "pad", "budget", "allow_wordless", "cache",
            "threads", "guarantee", "allow_unchanged", "max_record"}  # fmt: skip
"""Options that do not change what is released."""
FILES = ("embedding", "graph", "vocabulary", "cover_file", "skip", "exclude")


def _finished(args: argparse.Namespace) -> folders.Finished:
    """Return what is known of earlier runs under these parameters."""
    parameters = {k: v for k, v in vars(args).items() if k not in HARMLESS}
    for option in FILES:
        path = parameters.get(option)
        if path and Path(path).is_file():
            parameters[option] = folders.hash_of_file(path)
    parameters["version"] = __version__
    return folders.Finished(Path(args.output_dir), folders.hash_of(parameters))


class _Descriptor(io.RawIOBase):
    """Standard output by a descriptor of its own.

    A thread that waits for a reader of it holds nothing that the interpreter's end wants.
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


def _run_job(  # noqa: PLR0917 (what a run consists of)
    args: argparse.Namespace,
    job: _Job,
    opener: Opener,
    mechanism: Mechanism,
    ledger: Ledger | None,
    finished: folders.Finished | None,
    total: _Sum,
) -> None:
    """Make an output: nothing of it has its name before all of it is there, and paid for."""
    whole = job.kind.name == "text"
    bags = BagOfWords(mechanism) if args.mechanism == "bag" else None
    drawing = Drawing(mechanism, bags, whole=whole)
    if ledger is not None:
        drawing.bill = Bill(ledger, mechanism, args.account, whole=whole)
    form = job.kind(_choice(args))

    def fill(out: BinaryIO) -> None:
        try:
            batches = (batch for name in job.names for batch in form.read(name, opener))
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
        with _named(output), open_output(output, job.names, pack=False) as plain:
            hashed = folders.Hashed(plain)
            below = cast(BinaryIO, hashed if finished is not None else plain)
            with packed(below, output) as file:
                fill(file)
            plain.flush()
            if drawing.bill is not None:
                for account, price in drawing.bill.pay(job.names[0]).items():
                    total.charged[account] = total.charged.get(account, 0.0) + price
            if finished is not None:
                finished.add(job.names[0], str(output), hashed)
    total.counts.update(drawing.counts)
    total.left.update(form.left)
    total.files.append({"inputs": job.names, "output": output or "-", "format": job.kind.name})


class _named:
    """Errors of writing name the output."""

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


def _report(args: argparse.Namespace, mechanism: Mechanism | BagOfWords, total: _Sum) -> None:
    word = mechanism.mechanism if isinstance(mechanism, BagOfWords) else mechanism
    warned = list(_warnings(args, word, total))
    if args.report:
        report = {
            "counts": dict(total.counts),
            "guarantee": word.guarantee.to_dict(),
            "files": total.files,
            "finished_before": total.skipped,
            "left_out": total.others,
            "charged": math.fsum(total.charged.values()),
            "accounts": len(total.charged),
            "warnings": warned,
        }
        if isinstance(mechanism, BagOfWords):
            report["bag"] = str(mechanism.guarantee)
        line = json.dumps(report, ensure_ascii=False)
        if args.report_file:
            with open_output(args.report_file) as out:
                out.write(f"{line}\n".encode())
        else:
            print(line, file=sys.stderr)
            return
    if not args.quiet:
        print(f"fastdx: {_closing(word, total)}.", file=sys.stderr)
    for warning in warned:
        print(f"fastdx: warning: {warning}", file=sys.stderr)
    if args.guarantee:
        print(mechanism.guarantee, file=sys.stderr)


def _closing(word: Mechanism, total: _Sum) -> str:
    counts = total.counts
    line = f"{counts['words']:,} words; "
    # Words of bags are drawn elsewhere, and not counted one by one.
    if "unchanged" in counts:
        line += f"{counts['unchanged']:,} came back unchanged; "
    line += f"{counts['unknown']:,} were not in the vocabulary ({OOV[word.oov]})"
    if counts["skipped"]:
        line += f"; {counts['skipped']:,} were skipped"
    line += f"; under this policy {word.unchanged.mean:.1%} of common words come back"
    if total.charged:
        charged = math.fsum(total.charged.values())
        line += f"; {charged:g} charged to {len(total.charged):,} accounts"
    if len(total.files) > 1 or total.skipped:
        line += f"; {len(total.files):,} files written"
    if total.skipped:
        line += f", {total.skipped:,} finished before"
    if total.others:
        line += f"; {total.others:,} files of other formats left out"
    return line


def _warnings(args: argparse.Namespace, word: Mechanism, total: _Sum) -> Iterator[str]:
    """Yield what left unprotected, which ``-q`` does not hide."""
    counts, left = total.counts, total.left
    if (warning := word.unchanged.warning) is not None:
        yield warning
    if total.nearly:
        yield (
            f"{total.nearly:,} different words of these texts come back as they were nearly "
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
    if left.names and left.content and not args.show_text:
        yield f"{len(left.names)} other fields released as they were (--show-text names them)"
    elif left.names:
        yield f"released as they were: {', '.join(left.names)}"
    if left.dropped:
        yield f"metadata dropped from the schema: {', '.join(left.dropped)}"
    if counts["misdecoded"]:
        yield (
            f"{counts['misdecoded']:,} texts look like UTF-8 that was read as another encoding "
            "(Latin-1, Windows-1251, …): parts of their words stand as punctuation and were "
            "released as they are"
        )
