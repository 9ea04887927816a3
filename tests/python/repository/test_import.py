"""Tests the effects of `import fastdx`, each in a fresh interpreter."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import fastdx
from fastdx.cli import COMMANDS, parser
from helpers import ROOT
from helpers.command import python

# Used by some programs only: the ledger, the command, the page, figures, frames.
HEAVY = ("sqlite3", "argparse", "csv", "html", "json", "gzip", "importlib.resources", "hypothesis",
         "matplotlib", "pandas", "polars", "pyarrow", "duckdb", "sklearn", "scipy")  # fmt: skip


def fresh(program: str) -> list[str]:
    """The lines that a program prints in a new interpreter."""
    done = python(program, PYTHONWARNINGS="error")
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_what_is_heavy_is_not_imported() -> None:
    # numpy imports some of them itself, in some versions.
    loaded = fresh(
        "import sys, numpy; before = set(sys.modules)\n"
        "import fastdx\n"
        "print(*sorted(set(sys.modules) - before), sep='\\n')"
    )
    assert "fastdx" in loaded and "fastdx.mechanisms" in loaded
    assert not set(HEAVY) & set(loaded)
    own = {f"fastdx.{name}" for name in ("budget", "calibration", "channel", "client", "lab")}
    assert not own & set(loaded)


def test_text_needs_no_numpy() -> None:
    assert fresh(
        "import sys, fastdx\n"
        "tem = fastdx.Tem(epsilon=3.0); tem.privatize('a cup of tea'); str(tem.guarantee)\n"
        "print('numpy' in sys.modules)\n"
        "print(type(tem.privatize_ids([1, 2])).__module__)"
    ) == ["False", "numpy"]


def test_the_command_starts_with_few_modules(tmp_path: Path) -> None:
    # Each takes milliseconds of every start, and one line of text needs none of them.
    text = tmp_path / "text.txt"
    text.write_text("a cup of tea\n", "utf-8")
    loaded = fresh(
        "import sys\n"
        "from fastdx.cli import main\n"
        f"assert main(['privatize', '-q', {str(text)!r}, '-o', {str(tmp_path / 'out')!r}]) == 0\n"
        "print(*sys.modules, sep='\\n')"
    )
    assert "fastdx.cli.privatize" in loaded
    assert not {"dataclasses", "gzip", "hashlib", "inspect", "numpy", "secrets"} & set(loaded)


def test_words_are_prepared_before_the_command_is_imported() -> None:
    # These modules take as long as the words and their search, which a thread makes meanwhile.
    assert fresh(
        "import sys, fastdx.__main__\n"
        "print(*({'argparse', 'fastdx.cli', 'pathlib'} & sys.modules.keys()))"
    ) == [""]


def test_a_command_imports_its_own_module_only() -> None:
    assert fresh(
        "import io, sys\n"
        "from contextlib import redirect_stderr\n"
        "from fastdx.cli import COMMANDS, main, parser\n"
        "def shown():\n"
        "    return {name for name in COMMANDS.values() if f'fastdx.{name}' in sys.modules}\n"
        "with redirect_stderr(io.StringIO()):\n"
        "    code = main(['privatize', '--epsilon', '3', '/not/there'])\n"
        "print(code, *shown(), 'numpy' in sys.modules, 'sqlite3' in sys.modules)\n"
        "parser()\n"
        "print(shown() == set(COMMANDS.values()))"
    ) == ["1 cli.privatize False False", "True"]


def test_the_parser_of_one_command_says_what_that_of_all_says() -> None:
    for name in sorted(set(COMMANDS) - {"serve"}):  # whose help is its program's
        one, every = parser(name), parser()
        assert one.format_usage() == every.format_usage()
        helps = []
        for made in (one, every):
            with pytest.raises(SystemExit), redirect_stdout(io.StringIO()) as told:
                made.parse_args([name, "--help"])
            helps.append(told.getvalue())
        assert helps[0] == helps[1] != ""


def test_importing_changes_nothing() -> None:
    assert fresh(
        "import os, random, signal, sys, threading, warnings, locale, numpy\n"
        "def state():\n"
        "    return (dict(os.environ), os.getcwd(), sys.path[:],\n"
        "            sys.meta_path[:], sys.path_hooks[:], list(warnings.filters),\n"
        "            threading.enumerate(), random.getstate(),\n"
        "            str(numpy.random.get_state()), locale.setlocale(locale.LC_ALL),\n"
        "            [signal.getsignal(n) for n in signal.valid_signals()],\n"
        "            sys.excepthook, sys.displayhook, sys.getrecursionlimit(),\n"
        "            len(os.listdir('/dev/fd')) if os.path.isdir('/dev/fd') else 0)\n"
        "before = state(); import fastdx; print(state() == before)"
    ) == ["True"]


def test_every_name_is_there_when_asked_for() -> None:
    names = fresh("import fastdx; print(*dir(fastdx))")[0].split()
    assert set(fastdx.__all__) <= set(names)
    assert len(fastdx.__all__) == len(set(fastdx.__all__))
    stars = fresh("from fastdx import *; print(*sorted(vars()))")[0].split()
    assert set(fastdx.__all__) <= set(stars)


def test_what_needs_other_packages_is_no_part_of_a_star() -> None:
    loaded = fresh("import sys\nfrom fastdx import *\nprint(*sorted(sys.modules), sep='\\n')")
    assert not {"httpx", "sklearn", "fastdx.client", "fastdx.lab.attacks"} & set(loaded)


def test_what_is_for_those_who_write_mechanisms_stands_in_its_module() -> None:
    for name in ("MECHANISMS", "Common"):
        assert not hasattr(fastdx, name) and name in fastdx.mechanisms.__all__


def test_experiments_stand_on_nothing_private() -> None:
    private = re.compile(r"fastdx[\w.]*\._(?!_)|from fastdx.* import .*\b_[a-z]")
    for path in (ROOT / "experiments").glob("*.py"):
        assert not private.findall(path.read_text("utf-8")), path.name
