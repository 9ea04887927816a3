"""``fastdx completion`` prints a script with which a shell completes the command."""

from __future__ import annotations

import argparse
from typing import Any

from fastdx.cli.messages import CommandError
from fastdx.cli.options import Commands


def add(commands: Commands) -> None:
    """Add the command."""
    p = commands.add_parser(
        "completion",
        description="Print a script that completes fastdx's commands, options and file names.",
        examples="""
  fastdx completion bash > ~/.local/share/bash-completion/completions/fastdx
  fastdx completion zsh > ~/.zfunc/_fastdx
  fastdx completion fish > ~/.config/fish/completions/fastdx.fish
""",
    )
    p.add_argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL",
                   help="bash, zsh or fish")  # fmt: skip
    p.set_defaults(run=_completion)


def _completion(args: argparse.Namespace) -> None:
    try:
        import shtab
    except ImportError:
        raise CommandError("completion needs shtab: pip install 'fastdx[completion]'") from None
    # Imported here, because fastdx.cli imports this module for the parser of all commands.
    from fastdx.cli import parser

    made = parser()
    files = dict.fromkeys(("FILE", "PATH", "EDGES"), shtab.FILE)
    _with_files(made, files | {"FOLDER": shtab.DIRECTORY})
    print(shtab.complete(made, args.shell))


def _with_files(parser: argparse.ArgumentParser, files: dict[Any, Any]) -> None:
    """Mark every option whose value is a file or a folder, for shtab."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                _with_files(inner, files)
        elif action.metavar in files:
            action.complete = files[action.metavar]  # type: ignore[attr-defined]  # shtab's protocol
