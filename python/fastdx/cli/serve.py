"""``fastdx serve`` starts the HTTP service, a program from the package ``fastdx-serve``."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import sysconfig
from pathlib import Path

from fastdx.cli.messages import CommandError
from fastdx.cli.options import Commands

PROGRAM = "fastdx-serve"


def add(commands: Commands) -> None:
    """Add the command."""
    p = commands.add_parser(
        "serve",
        usage="fastdx serve [OPTIONS]",
        description="Privatise texts over HTTP under named policies. This command replaces itself "
        "by the program fastdx-serve (pip install 'fastdx[serve]') and passes all options to it.",
        # No argument begins with this sign, so all of them, even --help, go to the program.
        prefix_chars="\0",
        add_help=False,
        examples="""
  fastdx serve --listen 127.0.0.1:8080
  fastdx serve --config policies.toml --check
  fastdx serve --help
""",
    )
    p.add_argument("options", nargs=argparse.REMAINDER, metavar="OPTIONS",
                   help="see fastdx serve --help")  # fmt: skip
    p.set_defaults(run=_serve)


def _program() -> str | None:
    """Return the path of the program: beside this Python, in the user's scripts, or on PATH."""
    folders = [sysconfig.get_path("scripts"), str(Path(sys.executable).parent)]
    user = f"{os.name}_user"
    if user in sysconfig.get_scheme_names():
        folders.append(sysconfig.get_path("scripts", user))
    return shutil.which(PROGRAM, path=os.pathsep.join(folders)) or shutil.which(PROGRAM)


def _serve(args: argparse.Namespace) -> None:
    program = _program()
    if program is None:
        raise CommandError(
            f"serve needs the program {PROGRAM}, which is neither beside this Python nor on PATH: "
            "pip install 'fastdx[serve]'"
        )
    sys.stdout.flush()
    sys.stderr.flush()
    # The program replaces this process and takes signals, exit code and standard streams.
    os.execv(program, [program, *args.options])
