"""The command: ``fastdx privatize``, ``fastdx calibrate``, ``fastdx index`` and others.

Exit codes: 0 success, 1 a wrong input or file, 2 wrong usage, 130 interrupted by Ctrl-C, 129 and
143 ended by the signals HUP and TERM.

Messages show places and counts, and never the content of a file, because logs keep the standard
error. With ``--show-text`` they show content too.
"""

from __future__ import annotations

import argparse
import difflib
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

from fastdx import FastdxError, FastdxWarning, __version__
from fastdx.cli.messages import CommandError, tell
from fastdx.cli.options import Parser

GROUPS = {
    "release": {
        "try": "show what becomes of a sentence, and what a reader could still say",
        "privatize": "replace the words of text, CSV, JSON or Parquet",
        "serve": "answer requests over HTTP",
    },
    "choose a policy": {
        "calibrate": "choose ε from its consequences and write a page about them",
        "evaluate": "attack your own texts, and learn from them, with and without privacy",
        "compare": "compare mechanisms in numbers and in example sentences",
    },
    "read releases": {
        "counts": "estimate shares of written words, with intervals",
        "decode": "reconstruct the likely or certain text",
    },
    "files and shells": {
        "convert": "write an embedding in fastdx's own format",
        "info": "describe an embedding or an index file",
        "index": "build and check files of neighbour lists for Tem",
        "completion": "print a script with which a shell completes this command",
    },
}
"""The commands, in groups."""
ABOUT = {name: about for group in GROUPS.values() for name, about in group.items()}
COMMANDS = {name: f"cli.{name}" for name in ABOUT} | {
    "try": "cli.trial", "convert": "cli.files", "info": "cli.files", "index": "cli.files",
    **{name: f"lab.commands.{name}" for name in GROUPS["choose a policy"]},
}  # fmt: skip
"""The module of each command."""

EXAMPLES = """
  fastdx try "I would like a cup of coffee, please."
  fastdx privatize reviews.csv --column text -o private.csv
  fastdx calibrate -o report.html
"""


class _Commands(argparse._SubParsersAction):  # type: ignore[type-arg]
    def add_parser(self, name: str, **more: Any) -> Any:
        return super().add_parser(name, help=ABOUT[name], **more)


def overview() -> str:
    """Return the commands in groups, and examples."""
    lines = ["usage: fastdx COMMAND [options]", "",
             f"fastdx {__version__}: metric differential privacy for text."]  # fmt: skip
    for title, group in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name:<12}{about}" for name, about in group.items())]
    return "\n".join([*lines, "", f"examples:{EXAMPLES}", "fastdx COMMAND --help says more."])


def parser(asked: str | None = None) -> Parser:
    """Return the parser of all commands, or of the one that is asked for, if there is such one."""
    made = Parser(
        prog="fastdx", description="Metric differential privacy for text.", examples=EXAMPLES
    )
    made.add_argument("--version", action="version", version=f"fastdx {__version__}")
    every = f"{{{','.join(COMMANDS)}}}"  # in the usage, also if the parser has only one
    commands = made.add_subparsers(dest="command", required=True, metavar=every, action=_Commands)
    for module in dict.fromkeys(COMMANDS[c] for c in COMMANDS if asked in (None, c)):
        import_module(f"fastdx.{module}").add(commands)
    return made


class _Ended(BaseException):
    """A signal, whose number it has, ends the command; unfinished outputs are removed."""


@contextmanager
def _ending_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into an exception, unless the process ignores or handles them."""

    def end(number: int, _: FrameType | None) -> None:
        raise _Ended(number)

    with ExitStack() as restored:
        for number in {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:
            # Under nohup the process ignores SIGHUP, and continues to do so.
            if signal.getsignal(number) == signal.SIG_DFL:
                with suppress(ValueError):  # not on the main thread
                    restored.callback(signal.signal, number, signal.signal(number, end))
        yield


OUTPUTS = ("output", "report_file")
"""Options that name a file that is written. All other names of files are inputs."""


def _check_outputs(args: argparse.Namespace) -> None:
    """Refuse an output in no folder, and one that is also an input: by its path, or by a link."""
    values = vars(args)
    given = [
        Path(name)
        for option, value in values.items()
        if option not in OUTPUTS
        for name in (value if isinstance(value, list) else [value])
        if isinstance(name, str) and Path(name).is_file()
    ]
    written = [Path(name) for name in map(values.get, OUTPUTS) if isinstance(name, str)]
    if values.get("command") == "evaluate":  # it writes a JSON file beside its page
        written += [path.with_suffix(".json") for path in written]
    for path in written:
        path.absolute().parent.stat()
        if path.is_file() and any(path.samefile(other) for other in given):
            raise CommandError(f"{path} is an input, too, and would be replaced: choose another")


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    if "interrupted by user" in str(message):  # scikit-learn goes on after Ctrl-C
        raise KeyboardInterrupt
    tell(f"warning: {message}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given in ([], ["-h"], ["--help"]):
        return _run(argparse.Namespace(run=lambda _: print(overview())))
    asked = given[0]
    if not asked.startswith("-") and asked not in COMMANDS:
        near = difflib.get_close_matches(asked, COMMANDS, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(COMMANDS)}"
        print(f"fastdx: no command {asked!r}: {hint}", file=sys.stderr)
        return 2
    return _run(parser(asked).parse_args(given))


def _run(args: argparse.Namespace) -> int:
    try:
        with _ending_signals(), warnings.catch_warnings():
            warnings.showwarning = _show_warning
            warnings.simplefilter("default", FastdxWarning)
            _check_outputs(args)
            args.run(args)
            sys.stdout.flush()
    except _Ended as e:
        (number,) = e.args
        print(f"fastdx: ended by {signal.Signals(number).name}", file=sys.stderr)
        _drop_output()
        return 128 + int(number)
    except BrokenPipeError:  # the reader has closed the pipe, as `| head` does
        _drop_output()
        return 141
    except (FastdxError, CommandError, OSError, UnicodeError) as e:
        print(f"fastdx: {_message(e, show=getattr(args, 'show_text', False))}", file=sys.stderr)
        return 1
    return 0


def _drop_output() -> None:
    """Prevent the interpreter from waiting, at its end, for a reader of what was not written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _message(error: BaseException, *, show: bool) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fspath(error.filename)}: {error.strerror}"
    if isinstance(error, UnicodeError):
        # The message of a UnicodeError shows a character.
        return f"a text is not Unicode: {type(error).__name__}"
    shown = getattr(error, "shown", None) or getattr(error, "word", None)
    if show and shown:
        return f"{error}: {shown}"
    more = " (--show-text shows it)" if isinstance(error, CommandError) and shown else ""
    return f"{error}{more}"
