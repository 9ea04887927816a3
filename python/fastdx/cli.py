"""The command: ``fastdx privatize``, ``fastdx convert``, ``fastdx info``.

Exit codes: 0 done, 1 an input or file that is wrong, 2 wrong usage, 130 interrupted (129 and 143:
by the signals HUP and TERM).

Messages show places and counts, never the content of a file, unless ``--show-text`` is given: what
is written to the standard error ends in logs.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from fastdx import (
    BagOfWords,
    Embedding,
    FastdxError,
    HyperbolicLaplace,
    MultivariateLaplace,
    Tem,
    WordGraph,
    __version__,
    _files,
    attribution,
    earth_movers_distance,
    poincare,
    report,
)
from fastdx._core import Mechanism, Replacements, check_index
from fastdx.bags import STOP_WORDS, bag_words
from fastdx.exceptions import UnknownWordError

METRICS = ("euclidean", "manhattan", "chebyshev", "angular", "poincare")
FORMATS = ("fastdx", "glove", "word2vec-text", "fasttext", "word2vec-binary", "npy")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fastdx", description="Metric differential privacy for text."
    )
    parser.add_argument("--version", action="version", version=f"fastdx {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)

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
        choices=("tem", "laplace", "hyperbolic", "bag"),
        default="tem",
        help="bag: each line or field becomes a bag of words, stop words left out, by --words",
    )
    p.add_argument("--words", choices=("tem", "laplace", "hyperbolic"),
                   help="bag: the mechanism for its words (default tem)")  # fmt: skip
    p.add_argument("--epsilon", type=float, required=True, help="ε per unit of distance")
    p.add_argument("--embedding", metavar="PATH", help="default: 20,000 English words × 50")
    p.add_argument("--graph", metavar="EDGES", help="tem: shortest paths as the metric instead; a "
                   "file of word TAB word lines, with a weight perhaps")  # fmt: skip
    _embedding_options(p)
    p.add_argument("--gamma", type=float, help="tem: distance beyond which all words are alike")
    p.add_argument("--beta", type=float, help="tem: sets gamma by Theorem 3 (default 0.001)")
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
    _show_text(p)
    p.set_defaults(run=_privatize)

    _emd_parser(commands)

    p = commands.add_parser("convert", help="write an embedding in fastdx's own format")
    p.add_argument("input", metavar="FILE")
    p.add_argument("-o", "--output", required=True, metavar="FILE")
    p.add_argument("--storage", choices=("float32", "int16"), default="float32")
    _embedding_options(p)
    p.set_defaults(run=_convert)

    _index_parser(commands)
    _poincare_parser(commands)
    _calibrate_parser(commands)

    p = commands.add_parser("info", help="describe an embedding file")
    p.add_argument("input", metavar="FILE")
    _embedding_options(p)
    p.set_defaults(run=_info)
    return parser


def _index_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    index = commands.add_parser("index", help="neighbour lists for Tem, stored with the embedding")
    kinds = index.add_subparsers(dest="index", required=True)
    p = kinds.add_parser("build", help="build the exact lists of every word's nearest neighbours")
    p.add_argument("--embedding", metavar="PATH", help="default: 20,000 English words × 50")
    p.add_argument("--k", type=int, help="neighbours a word (default √V, between 256 and 1024)")
    p.add_argument("--gamma", type=float, help="all neighbours within this distance instead")
    p.add_argument("--memory", type=int, help="bytes the lists may take (default 8 GiB)")
    p.add_argument("-o", "--output", required=True, metavar="FILE")
    p.add_argument("-q", "--quiet", action="store_true", help="no progress")
    _embedding_options(p)
    p.set_defaults(run=_index_build)
    p = kinds.add_parser(
        "check",
        help="compute again what an index file says: lists and certificates",
        description="Compute again what a file says of its words, for files from others: the "
        "lists of some words, drawn at random, or of all, and every certificate. Checksums find "
        "damage, not forgery.",
    )
    p.add_argument("input", metavar="FILE")
    p.add_argument("--words", type=int, default=1000, metavar="N",
                   help="lists computed again (default 1000)")  # fmt: skip
    p.add_argument("--all", action="store_true", help="the lists of all words")
    p.set_defaults(run=_index_check)
    p = kinds.add_parser("info", help="describe an index file")
    p.add_argument("input", metavar="FILE")
    _embedding_options(p)
    p.set_defaults(run=_info)


def _emd_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    p = commands.add_parser("emd", help="the Earth Mover's distance of two texts, exactly")
    p.add_argument("a", metavar="A")
    p.add_argument("b", metavar="B")
    p.add_argument("--embedding", metavar="PATH", help="default: 20,000 English words × 50")
    p.add_argument("--all", action="store_true", help="stop words too")
    _embedding_options(p)
    _show_text(p)
    p.set_defaults(run=_emd)


def _calibrate_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    p = commands.add_parser(
        "calibrate", help="choose ε from its consequences, on a page to look at"
    )
    p.add_argument("--mechanism", choices=("tem", "laplace", "hyperbolic"), default="tem")
    p.add_argument("--embedding", metavar="PATH", help="default: 20,000 English words × 50")
    p.add_argument("--graph", metavar="EDGES", help="tem: shortest paths as the metric instead")
    p.add_argument("--max-unchanged", type=float, default=0.5, metavar="P",
                   help="no word comes back unchanged more often (default 0.5)")  # fmt: skip
    p.add_argument("--min-outputs", type=int, default=300, metavar="N",
                   help="every word has so many distinct outputs (default 300)")  # fmt: skip
    p.add_argument("--sample", type=int, default=1000, metavar="N",
                   help="words measured, spread out (default 1000; 0: all)")  # fmt: skip
    p.add_argument("--draws", type=int, default=1000, help="draws a word (default 1000)")
    p.add_argument("--example", action="append", metavar="WORD", help="show its replacements")
    p.add_argument("--beta", type=float, help="tem: sets gamma by Theorem 3 (default 0.001)")
    p.add_argument("-o", "--output", required=True, metavar="FILE", help="an HTML page")
    p.add_argument("-q", "--quiet", action="store_true", help="no progress")
    _embedding_options(p)
    p.set_defaults(run=_calibrate, gamma=None, skip=None, oov="random", seed=None, epsilon=None,
                   consistent=False)  # fmt: skip


def _poincare_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    hyperbolic = commands.add_parser("poincare", help="Poincaré embeddings of a hierarchy")
    kinds = hyperbolic.add_subparsers(dest="poincare", required=True)
    p = kinds.add_parser("train", help="train one from word TAB hypernym lines")
    p.add_argument("edges", metavar="EDGES")
    p.add_argument("-o", "--output", required=True, metavar="FILE")
    p.add_argument("--dim", type=int, default=10, help="dimensions (default 10)")
    p.add_argument("--epochs", type=int, default=50)
    p.add_argument("--negatives", type=int, default=10)
    p.add_argument("--burn-in", type=int, default=10)
    p.add_argument("--lr", type=float, default=0.3)
    p.add_argument("--threads", type=int, help="default: all")
    p.add_argument("--seed", type=int, help="with --threads 1, one seed gives one embedding")
    p.add_argument("--checkpoint", metavar="FILE", help="written every epoch; goes on from it")
    p.add_argument("-q", "--quiet", action="store_true", help="no progress")
    p.set_defaults(run=_poincare_train)


def _show_text(p: argparse.ArgumentParser) -> None:
    p.add_argument("--show-text", action="store_true",
                   help="messages show the content that they are about")  # fmt: skip


def _embedding_options(p: argparse.ArgumentParser) -> None:
    group = p.add_argument_group("reading the embedding")
    group.add_argument("--embedding-format", choices=FORMATS, help="by default from its content")
    group.add_argument("--metric", choices=METRICS, help="by default the file's own, or euclidean")
    group.add_argument("--limit", type=int, help="only the first so many words")
    group.add_argument("--vocabulary", metavar="FILE", help="for .npy: the words, one a line")


def _load(args: argparse.Namespace, path: str) -> Embedding:
    return Embedding.load(
        path,
        format=args.embedding_format,
        limit=args.limit,
        metric=args.metric,
        vocabulary=args.vocabulary,
    )


def _mechanism(args: argparse.Namespace, *, pieces: bool = False) -> Mechanism:
    if getattr(args, "words", None) and args.mechanism != "bag":
        raise _files.Stop("--words goes with --mechanism bag")
    kind = (args.words or "tem") if args.mechanism == "bag" else args.mechanism
    if args.graph:
        others = ("embedding", "metric", "limit", "vocabulary", "embedding_format")
        given = [f"--{o.replace('_', '-')}" for o in others if getattr(args, o) is not None]
        if given or kind != "tem":
            more = f", without {', '.join(given)}" if given else ""
            raise _files.Stop(f"--graph goes with --mechanism tem, and is its own metric{more}")
    embedding = _load(args, args.embedding) if args.embedding else Embedding.default()
    skip = None
    if args.skip:
        skip = Path(args.skip).read_text("utf-8").split("\n")
        skip = [word.strip() for word in skip if word.strip()]
    # A file of plain text comes in pieces, which are one text.
    consistent: bool | str = "call" if args.consistent and pieces else args.consistent
    if kind in ("laplace", "hyperbolic"):
        if args.gamma is not None or args.beta is not None:
            raise _files.Stop("--gamma and --beta belong to --mechanism tem")
        made = MultivariateLaplace if kind == "laplace" else HyperbolicLaplace
        return made(embedding, args.epsilon, oov=args.oov, skip=skip, consistent=consistent,
                    seed=args.seed)  # fmt: skip
    if args.gamma is not None and args.beta is not None:
        raise _files.Stop("--gamma and --beta exclude each other")
    beta = 1e-3 if args.beta is None else args.beta
    return Tem(
        WordGraph(args.graph) if args.graph else embedding,
        args.epsilon,
        gamma=args.gamma,
        beta=beta,
        oov=args.oov,
        skip=skip,
        consistent=consistent,
        seed=args.seed,
    )


class _Bar:
    """A line on the terminal that shows how far the work is; silent elsewhere."""

    def __init__(self, total: int | None, quiet: bool) -> None:
        self.total = total
        self.done = 0
        self.shown = self.start = time.monotonic()
        self.active = not quiet and sys.stderr.isatty()

    def __call__(self, count: int) -> None:
        self.done += count
        now = time.monotonic()
        if self.active and now - self.shown > 0.1:
            self.shown = now
            rate = self.done / 1e6 / (now - self.start)
            share = f"{self.done / self.total:4.0%} " if self.total else ""
            print(f"\r\x1b[K{share}{self.done / 1e6:.0f} MB, {rate:.1f} MB/s", end="",
                  file=sys.stderr, flush=True)  # fmt: skip

    def clear(self) -> None:
        if self.active:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _privatize(args: argparse.Namespace) -> None:
    files = args.files or ["-"]
    formats = {args.format or _files.format_of(name) for name in files}
    if len(formats) > 1:
        raise _files.Stop(f"files of several formats at once: {', '.join(sorted(formats))}")
    kind = formats.pop()
    if kind == "text" and args.column:
        raise _files.Stop("--column goes with CSV, JSONL and Parquet (see --format)")
    if kind != "text" and not args.column:
        raise _files.Stop(f"{kind} needs --column NAME: which text to privatise")
    mechanism = _mechanism(args, pieces=kind == "text")
    counts: Counter[str] = Counter()

    bags = BagOfWords(mechanism) if args.mechanism == "bag" else None
    if bags is not None and args.skip:
        raise _files.Stop("--skip does not go with --mechanism bag")

    def privatiser() -> _files.Privatise:
        """Make a function for a text that may come in pieces."""
        kept = Replacements() if kind == "text" and args.consistent else None

        def private(texts: list[str]) -> list[str]:
            if bags is not None:
                return _private_bags(bags, texts, counts, by_line=kind == "text")
            out, new = mechanism.privatize_counted(texts, replacements=kept)
            counts.update(new)
            return out

        return private

    bar = _Bar(_files.total_size(files), args.quiet)
    columns = (files, args.column)
    try:
        with _files.open_output(args.output, files) as out:
            if kind == "text":
                released = _files.plain_text(files, out, privatiser, bar, by_line=bags is not None)
            elif kind == "jsonl":
                released = _files.json_lines(*columns, out, privatiser(), bar)
            elif kind == "parquet":
                released = _files.parquet(*columns, out, privatiser(), bar)
            else:
                delimiter = "\t" if kind == "tsv" else ","
                released = _files.delimited(*columns, out, privatiser(), bar, delimiter=delimiter)
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
    drawn = (attribution.text_of(bag) for bag in bags.privatize_documents(flat))
    return ["\n".join(next(drawn) for _ in parts) for parts in split]


def _emd(args: argparse.Namespace) -> None:
    space = _load(args, args.embedding) if args.embedding else Embedding.default()
    bags = []
    for name in (args.a, args.b):
        stop_words = () if args.all else STOP_WORDS
        words = bag_words(Path(name).read_text("utf-8"), stop_words=stop_words, space=space)
        known = [word for word in words if word in space]
        if not known:
            raise _files.Stop(f"{name}: no word of it is in the vocabulary")
        if len(known) < len(words):
            print(f"{name}: {len(words) - len(known):,} of {len(words):,} words are not in the "
                  "vocabulary and left out", file=sys.stderr)  # fmt: skip
        bags.append(known)
    print(earth_movers_distance(bags[0], bags[1], space))


def _report(
    args: argparse.Namespace,
    mechanism: Mechanism | BagOfWords,
    counts: Counter[str],
    released: _files.Released,
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
    args: argparse.Namespace, word: Mechanism, counts: Counter[str], released: _files.Released
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


def _convert(args: argparse.Namespace) -> None:
    embedding = _load(args, args.input)
    embedding.save(args.output, storage=args.storage)
    size = Path(args.output).stat().st_size
    print(f"{args.output}: {embedding!r}, {size:,} bytes", file=sys.stderr)


def _index_build(args: argparse.Namespace) -> None:
    embedding = _load(args, args.embedding) if args.embedding else Embedding.default()
    shown = sys.stderr.isatty() and not args.quiet

    def progress(done: int) -> None:
        if shown:
            print(f"\r\x1b[K{done / len(embedding):4.0%} of {len(embedding):,} words", end="",
                  file=sys.stderr, flush=True)  # fmt: skip

    lists = "nearest" if args.gamma is None else "gamma"
    tem = Tem(embedding, 1.0, gamma=args.gamma)
    try:
        tem = tem.build_lists(args.k, lists=lists, memory=args.memory, progress=progress)
    finally:
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    tem.save(args.output)
    if not args.quiet:
        size = Path(args.output).stat().st_size
        print(f"{args.output}: {embedding!r}, {_lists(tem)}, {size:,} bytes",
              file=sys.stderr)  # fmt: skip


def _index_check(args: argparse.Namespace) -> None:
    if args.words < 1:
        raise _files.Stop(f"--words must be at least 1, got {args.words}")
    words, lists, certificates = check_index(args.input, None if args.all else args.words)
    print(f"{args.input}: {words:,} words found by the index, {lists:,} lists and {certificates} "
          "certificates computed again: all true")  # fmt: skip


def _calibrate(args: argparse.Namespace) -> None:
    # Its own ε does not matter, but hyperbolic noise needs one above the dimension.
    args.epsilon = 1.0
    if args.mechanism == "hyperbolic":
        if args.graph or args.beta is not None:
            raise _files.Stop("--graph and --beta belong to --mechanism tem")
        embedding = _load(args, args.embedding) if args.embedding else Embedding.default("nouns")
        mechanism: Mechanism = HyperbolicLaplace(embedding, float(embedding.dim))
    else:
        mechanism = _mechanism(args)
    space = mechanism.space
    words = None
    if 0 < args.sample < len(space):
        step = len(space) / args.sample
        words = [space.words[int(i * step)] for i in range(args.sample)]

    def progress(line: str) -> None:
        if not args.quiet:
            print(f"fastdx: {line}", file=sys.stderr)

    choice = report.write(
        args.output, mechanism, max_unchanged=args.max_unchanged, min_outputs=args.min_outputs,
        words=words, examples=args.example, draws=args.draws, progress=progress,
    )  # fmt: skip
    print(choice)


def _poincare_train(args: argparse.Namespace) -> None:
    def progress(epoch: int, loss: float) -> None:
        if not args.quiet:
            end = "" if sys.stderr.isatty() else "\n"
            start = "\r\x1b[K" if sys.stderr.isatty() else ""
            print(f"{start}epoch {epoch} of {args.epochs}: loss {loss:.4f}", end=end,
                  file=sys.stderr, flush=True)  # fmt: skip

    embedding = poincare.train(
        args.edges, args.dim, epochs=args.epochs, negatives=args.negatives,
        burn_in=args.burn_in, lr=args.lr, seed=args.seed, threads=args.threads,
        callback=progress, checkpoint=args.checkpoint,
    )  # fmt: skip
    embedding.save(args.output)
    if not args.quiet:
        found = poincare.reconstruction(embedding, args.edges)
        print(f"\n{args.output}: {embedding!r}, mean rank {found.mean_rank:.2f}, MAP "
              f"{found.map:.3f}", file=sys.stderr)  # fmt: skip


def _lists(tem: Tem) -> str:
    match tem.lists:
        case None:
            return "none"
        case int(k):
            return f"{k} neighbours a word"
        case radius:
            return f"all neighbours within {radius:.6g}"


def _info(args: argparse.Namespace) -> None:
    embedding = _load(args, args.input)
    words = embedding.words
    print(f"words      {len(embedding):,}")
    print(f"dimension  {embedding.dim}")
    print(f"metric     {embedding.metric}")
    print(f"lists      {_lists(Tem(embedding, 1.0))}")
    print(f"file       {Path(args.input).stat().st_size:,} bytes")
    print(f"first      {' '.join(words[:10])}")


class _Ended(BaseException):
    """A signal that ends the command, as Ctrl-C does: nothing half done stays."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def _ending_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP, where they would end the process, into an exception."""

    def end(number: int, _: FrameType | None) -> None:
        raise _Ended(number)

    names = ("SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    try:
        # nohup has SIGHUP ignored, and that stays so.
        before = {
            n: signal.signal(n, end) for n in numbers if signal.getsignal(n) == signal.SIG_DFL
        }
    except ValueError:  # not on the main thread
        before = {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    args = _parser().parse_args(argv)
    try:
        with _ending_signals():
            args.run(args)
    except KeyboardInterrupt:
        print("fastdx: interrupted", file=sys.stderr)
        return 130
    except _Ended as e:
        print(f"fastdx: ended by {signal.Signals(e.number).name}", file=sys.stderr)
        return 128 + e.number
    except BrokenPipeError:
        # The reader has gone, as with `| head`; keep the interpreter from flushing again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (FastdxError, _files.Stop, OSError, EOFError, UnicodeError, zlib.error) as e:
        print(f"fastdx: {_message(e, show=getattr(args, 'show_text', False))}", file=sys.stderr)
        return 1
    return 0


def _message(error: BaseException, *, show: bool) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fspath(error.filename)}: {error.strerror}"
    if isinstance(error, UnicodeError):
        # Its own message shows a character.
        return f"a text is not Unicode: {type(error).__name__}"
    shown = getattr(error, "shown", None) or getattr(error, "word", None)
    if show and shown:
        return f"{error}: {shown}"
    more = " (--show-text shows it)" if isinstance(error, _files.Stop) and shown else ""
    return f"{error}{more}"


if __name__ == "__main__":
    sys.exit(main())
