"""The command on many files, with ledgers and reports; what is left when it does not end well."""

import argparse
import gzip
import hashlib
import io
import json
import os
import resource
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastdx
from fastdx.budget import Ledger
from fastdx.cli import COMMANDS, main, messages, parser
from fastdx.cli.jobs import MANIFEST
from helpers.command import FASTDX, Command, fails, interruptible, run
from helpers.policies import options, weak


def record(text: str, **more: object) -> str:
    return json.dumps({"t": text, **more}) + "\n"


def files_in(folder: Path) -> list[str]:
    """All files but channel cards."""
    files = (p for p in folder.rglob("*") if p.is_file() and not p.match("*.channel.json"))
    return sorted(p.relative_to(folder).as_posix() for p in files)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of several formats."""
    folder = tmp_path / "data"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.jsonl").write_text(record("x cat"))
    (folder / "sub" / "a.jsonl.gz").write_bytes(gzip.compress(record("x dog").encode()))
    (folder / "sub" / "b.csv").write_text("t,u\nx bird,raw\n")
    (folder / "c.json").write_text('[{"t": "x"}]')
    pq.write_table(pa.table({"t": ["x"]}), folder / "d.parquet")
    (folder / "note.txt").write_text("x cat")
    (folder / ".hidden.jsonl").write_text(record("x"))
    return folder


class TestFolders:
    def test_one_output_a_file(self, data: Path, tmp_path: Path, sure: list[str]) -> None:
        out = tmp_path / "out"
        done = run("privatize", data, "--column", "t", "--output-dir", out, *sure, code=0)
        names = ["a.jsonl", "c.json", "d.parquet", "sub/a.jsonl.gz", "sub/b.csv"]
        assert files_in(out) == sorted([MANIFEST, *names])
        assert (out / "a.jsonl").read_text() == record("[MASK] cat")
        assert gzip.decompress((out / "sub/a.jsonl.gz").read_bytes()).decode() == record(
            "[MASK] dog"
        )
        assert (out / "sub/b.csv").read_text() == "t,u\n[MASK] bird,raw\n"
        assert (
            "5 files written" in done.stderr and "1 files of other formats left out" in done.stderr
        )
        done = run("privatize", data, "--output-dir", tmp_path / "text", *sure)
        assert files_in(tmp_path / "text") == [MANIFEST, "note.txt"], done.stderr

    def test_refused(self, data: Path, tmp_path: Path, sure: list[str], command: Command) -> None:
        other = tmp_path / "other"
        other.mkdir()
        (other / "a.jsonl").write_text(record("x"))
        chosen = ("--column", "t")
        for args, message in [
            ((data, *chosen), "is a folder: --output-dir takes folders"),
            ((data, *chosen, "--output-dir", data), "replace an input"),
            ((data / "a.jsonl", other / "a.jsonl", *chosen, "--output-dir", tmp_path / "o"),
             "would both become"),
            ((*chosen, "--output-dir", tmp_path / "o", "--format", "jsonl"), "standard input"),
            ((data, *chosen, "--output-dir", tmp_path / "o", "-o", "x"), "exclude each other"),
            ((data, *chosen, "--resume"), "--resume goes with --output-dir"),
            ((other, "--output-dir", tmp_path / "o"), "no file to privatise: 1 have other formats"),
        ]:  # fmt: skip
            assert message in command("privatize", *args, *sure, code=1).err
        assert not (tmp_path / "o").exists()

    def test_an_output_folder_within_the_input_is_no_input(
        self, data: Path, sure: list[str]
    ) -> None:
        args = (data, "--column", "t", "--output-dir", data / "private", *sure)
        for _ in range(2):
            assert run("privatize", *args).returncode == 0
            assert len(files_in(data / "private")) == 6

    def test_an_output_folder_above_the_input(self, data: Path, sure: list[str]) -> None:
        run("privatize", data / "sub", "--column", "t", "--output-dir", data, *sure, code=0)
        assert (data / "b.csv").exists()

    def test_resume(self, data: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        base = ("privatize", data, "--column", "t", "--output-dir", out)
        bad = data / "sub" / "b.csv"
        bad.write_text("t,u\nx,raw,more\n")
        fails("line 2", *base, "--epsilon", "3")
        before = {n: (out / n).read_bytes() for n in files_in(out) if n != MANIFEST}
        assert "a.jsonl" in before and "sub/b.csv" not in before
        bad.write_text("t,u\nx bird,raw\n")
        done = run(*base, "--epsilon", "3", "--resume", code=0)
        assert f"{len(before)} finished before" in done.stderr
        assert (out / "sub/b.csv").exists()
        # Another draw would be another text.
        assert all((out / n).read_bytes() == content for n, content in before.items())
        assert "5 finished before" in run(*base, "--epsilon", "3", "--resume").stderr
        for more in (("--epsilon", "4"), ("--epsilon", "3", "--oov", "mask")):
            fails("under other parameters", *base, *more, "--resume")
        assert all((out / n).read_bytes() == content for n, content in before.items())

    def test_resume_mistakes_nothing_for_finished(
        self, data: Path, tmp_path: Path, sure: list[str]
    ) -> None:
        out, skip = tmp_path / "out", tmp_path / "skip.txt"
        skip.write_text("nothing\n")
        source = data / "a.jsonl"
        args = ("privatize", source, "--column", "t", "--output-dir", out, "--skip", skip, *sure)
        assert run(*args).returncode == 0
        target = out / "a.jsonl"
        released = target.read_bytes()
        assert "1 finished before" in run(*args, "--resume", code=0).stderr
        # A file that decides what is released has other content now.
        skip.write_text("x\n")
        assert "under other parameters" in run(*args, "--resume").stderr
        skip.write_text("nothing\n")
        source.write_text(record("x dog dog"))
        assert "another state of its input" in run(*args, "--resume").stderr
        assert target.read_bytes() == released
        target.write_bytes(released + b"\n")
        assert "is not what an earlier run wrote" in run(*args, "--resume").stderr
        target.unlink()
        assert run(*args, "--resume").returncode == 0
        assert target.read_text() == record("[MASK] dog dog")
        # A file of somebody else's, in a folder without a record.
        (out / MANIFEST).unlink()
        assert "is not what an earlier run wrote" in run(*args, "--resume").stderr
        (out / MANIFEST).write_text("[")
        assert "damaged" in run(*args, "--resume").stderr

    def test_the_record_tells_nothing_of_the_input(self, data: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        # So long that it cannot come back as it was: equal files have equal digests.
        (data / "a.jsonl").write_text(record("the cat saw a dog " * 100))
        args = ("privatize", data / "a.jsonl", "--column", "t", "--output-dir", out)
        assert run(*args, "--epsilon", "3").returncode == 0
        kept = (out / MANIFEST).read_text()
        for folder in (out, data):
            digest = hashlib.sha256((folder / "a.jsonl").read_bytes()).hexdigest()
            assert (digest in kept) == (folder == out)


class TestLedger:
    def test_paid_by_one(self, tmp_path: Path) -> None:
        ledger, out = tmp_path / "ledger", tmp_path / "out.txt"
        args = ("privatize", "--epsilon", "3", "--ledger", ledger, "--account", "ann", "-o", out)
        fails("budget must be given", *args, stdin="coffee and tea")
        assert not ledger.exists() and not out.exists()
        done = run(*args, "--budget", "20", stdin="coffee and tea")
        assert done.returncode == 0 and "9 charged to 1 accounts" in done.stderr, done.stderr
        assert Ledger(ledger).spent("ann") == 9.0 and Ledger(ledger).budget == 20.0
        before = out.read_bytes()
        fails("would pass the budget", *args, stdin="coffee and tea and milk")
        assert Ledger(ledger).spent("ann") == 9.0 and out.read_bytes() == before
        names = sorted(p.name for p in tmp_path.iterdir() if "ledger" not in p.name)
        assert names == ["out.txt", "out.txt.channel.json"]

    @pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
    def test_paid_by_the_records(self, tmp_path: Path, kind: str) -> None:
        rows = [("ann", "coffee and tea"), ("bob", "tea"), ("ann", "milk"), ("bob", "")]
        source, out = tmp_path / f"in.{kind}", tmp_path / f"out.{kind}"
        if kind == "jsonl":
            source.write_text("".join(record(t, who=w) for w, t in rows))
        elif kind == "csv":
            source.write_text("who,t\n" + "".join(f"{w},{t}\n" for w, t in rows))
        else:
            columns = zip(*rows, strict=True)
            pq.write_table(
                pa.table(dict(zip(("who", "t"), map(list, columns), strict=True))), source
            )
        ledger = tmp_path / "ledger"
        args = ("privatize", source, "--column", "t", "--epsilon", "2", "-o", out)
        paid = (*args, "--ledger", ledger, "--account-column", "who")
        assert "10 charged to 2 accounts" in run(*paid, "--budget", "10", code=0).stderr
        assert Ledger(ledger).spent("ann") == 8.0 and Ledger(ledger).spent("bob") == 2.0
        out.unlink()
        # Ann cannot pay again: nobody is charged, nothing is released, and her name is not told.
        told = fails("one of 2 accounts would pass", *paid)
        assert "ann" not in told.replace(str(tmp_path), "") and not out.exists()
        assert "'ann' has spent 8" in run(*paid, "--show-text").stderr
        assert Ledger(ledger).spent("bob") == 2.0

    def test_a_record_without_an_account(self, tmp_path: Path) -> None:
        source = tmp_path / "in.jsonl"
        args = ("--column", "t", "--epsilon", "2", "-o", tmp_path / "out.jsonl", "--budget", "9")
        paid = (*args, "--ledger", tmp_path / "ledger", "--account-column", "who")
        for text in (
            record("tea", who="ann") + record("tea"),
            record("t") + record("tea", who=None),
        ):
            source.write_text(text)
            fails("no account", "privatize", source, *paid)
        assert Ledger(tmp_path / "ledger").entries() == []

    def test_what_has_no_price(self, tmp_path: Path, command: Command) -> None:
        source = tmp_path / "in.jsonl"
        source.write_text(record("tea") + record("?!"))
        args = ("privatize", source, "--column", "t", "--epsilon", "2")
        paid = ("--ledger", tmp_path / "ledger", "--budget", "9", "--account", "ann")
        out = ("-o", tmp_path / "out.jsonl")
        for more, message in [
            (out, "line 2, column 't': a text without a word"),
            ((*out, "--seed", "1"), "line 1, column 't': this release has no price"),
            ((), "--ledger needs -o FILE"),
            (("-o", "-"), "--ledger needs -o FILE"),
            (("-o", "/dev/null"), "--ledger needs -o FILE"),
        ]:
            assert message in command(*args, *paid, *more, code=1).err
        assert Ledger(tmp_path / "ledger").entries() == []
        command(*args, *paid, *out, "--allow-wordless")
        assert Ledger(tmp_path / "ledger").spent("ann") == 2.0
        for more, message in [
            (("--account", "x"), "--account goes with --ledger"),
            (("--account-column", "t"), "one of the columns to privatise"),
            (("--ledger", "x"), "needs --account NAME or"),
        ]:
            assert message in command(*args, *more, *out, code=1).err

    def test_every_file_pays(self, data: Path, tmp_path: Path) -> None:
        ledger, out = tmp_path / "ledger", tmp_path / "out"
        args = ("privatize", data, "--column", "t", "--output-dir", out, "--epsilon", "1")
        paid = ("--ledger", ledger, "--account", "ann", "--budget", "7.5")
        fails("would pass", *args, *paid)
        spent = Ledger(ledger).spent("ann")
        assert len(files_in(out)) == 5 and spent == 6.0
        paid = ("--ledger", ledger, "--account", "ann")
        assert "would pass the budget" in run(*args, *paid, "--resume").stderr
        assert Ledger(ledger).spent("ann") == spent


class TestReport:
    def test_json(self, data: Path, tmp_path: Path, sure: list[str]) -> None:
        path = tmp_path / "report.json"
        args = ("privatize", data, "--column", "t", "--output-dir", tmp_path / "out", *sure)
        told = run(*args, "--epsilon", "3", "--report", path, "--oov", "keep", "-q", code=0).stderr
        report = json.loads(path.read_text())
        assert report["counts"]["words"] == 8 and len(report["files"]) == 5
        assert (report["spec"]["mechanism"], report["spec"]["oov"]) == ("laplace", "keep")
        assert report["guarantee"]["epsilon"] == 3.0 and "counts" not in told
        assert report["policy"].startswith('the Spec of the options: {"mechanism": "laplace", ')
        assert any("RELEASED AS THEY ARE" in w for w in report["warnings"])


class TestMechanisms:
    def test_a_policy_by_name_or_file(self, tmp_path: Path, command: Command) -> None:
        several, spec = tmp_path / "p.toml", tmp_path / "spec.toml"
        several.write_text("[policies.low]\nepsilon = 1\n[policies.most]\nepsilon = 99\n"
                           "allow_unchanged = true\n"
                           "[policies.spans]\nepsilon = 2\nspans_only = true\n")  # fmt: skip
        spec.write_text("epsilon = 4.0\noov = 'mask'\nconsistent = true\n")
        text = "zyxw coffee " * 40
        for given, expected in (
            (f"{several}:low", {"epsilon": 1}), (f"{several}:most", {"epsilon": 99}),
            (spec, {"epsilon": 4.0, "oov": "mask", "consistent": True}),
        ):  # fmt: skip
            asked = options("privatize", "--policy", given)
            assert {key: asked.spec[key] for key in expected} == expected
            assert asked.allow_unchanged == (given == f"{several}:most")
            assert asked.policy.startswith(f"the Spec of {given}: {{")
        assert len(set(command("privatize", "--policy", spec, stdin=text).out.split())) == 2
        command("privatize", "--policy", f"{several}:most", stdin=text)
        for args, message in (
            ((several,), "no policy is the default one: give FILE:NAME (--show-text shows it)"),
            ((several, "--show-text"), "give FILE:NAME: low, most, spans"),
            ((f"{several}:none",), "no policy is called 'none'"),
            ((f"{several}:spans",), "policies.spans: it is for spans only"),
            ((f"{spec}:low",), "it is one Spec, and has no policy 'low'"),
            ((tmp_path / "none",), "none: No such file"),
            ((spec, "--epsilon", "0", "--oov", "drop"), "leave out --epsilon, --oov"),
        ):
            assert message in command("privatize", "--policy", *args, stdin=text, code=1).err

    def test_options_that_go_together(self, command: Command) -> None:
        for args, message in (
            (("--graph", "g", "--embedding", "e"), "exclude each other"),
            (("--cover", "0", "--balance", "0.1"), "cover must be"),
            (("--cover", "3", "--balance", "-1"), "balance must be"),
            (("--certified", "--mechanism", "laplace"), "certified must be left out"),
            (("--numbers", "3,low"), "--numbers and --dates must be ε, or a table as JSON"),
            (("--numbers", '{"epsilon": 3, "unit": -1}'), "whose unit is a positive finite number"),
        ):  # fmt: skip
            assert message in command("privatize", *args, stdin="coffee", code=1).err


class TestInput:
    def test_a_pipe_without_a_name_that_tells_its_format(self, tmp_path: Path) -> None:
        """It is looked at, and nothing of it is lost."""
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        for text in ("coffee and tea\n" * 20_000, record("coffee") * 20_000):
            column = ("--column", "t") if "{" in text else ()
            with ThreadPoolExecutor() as pool:
                pool.submit(pipe.write_text, text)
                done = run("privatize", pipe, *column, "--epsilon", "5", "-q", code=0)
            assert done.stdout.count("\n") == 20_000


def parsers(one: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser and those of all commands below it."""
    yield one
    for action in one._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from parsers(inner)


class TestHelp:
    def test_every_help_has_examples_that_are_understood(self) -> None:
        examples = 0
        for one in parsers(parser()):
            assert "examples:\n  fastdx " in one.format_help(), one.prog
            for line in (one.epilog or "").replace("\\\n", " ").split("\n")[1:]:
                words = shlex.split(line.split(" < ")[0].split(" > ")[0])
                if not words or "--help" in words:
                    continue
                args = parser().parse_args(words[1:])
                assert words[0] == "fastdx" and args.run and not weak(args), line
                examples += 1
        assert len(COMMANDS) > 7 and examples > 15

    def test_without_a_command_all_are_shown_in_groups(self) -> None:
        shown = run(code=0).stdout
        assert shown == run("--help", code=0).stdout and shown.count("\n") <= 40
        assert all(f"\n  {name} " in shown for name in COMMANDS)
        assert "\nchoose a policy:\n  calibrate " in shown and "  fastdx try " in shown

    def test_a_help_is_short_and_another_is_whole(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "80")
        split = 0
        for one in parsers(parser()):
            short = one.format_help()
            assert short.count("\n") <= (60 if one.prog == "fastdx privatize" else 40), one.prog
            options = [a.option_strings[-1] for a in one._actions if a.option_strings]
            if "--help-all" in options:
                split += 1
                assert any(option not in short for option in options)
                done = run(*one.prog.split()[1:], "--help-all", code=0)
                short = done.stdout.partition("examples:")[0]
            assert all(option in short for option in options), one.prog
        assert split == 5
        groups = run("privatize", "--help", code=0).stdout.split(":\n")
        assert groups[2].endswith("\n\npolicy") and groups[3].startswith("  --policy FILE ")

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_completion(self, shell: str) -> None:
        pytest.importorskip("shtab")
        done = run("completion", shell, code=0)
        for word in ("privatize", "output-dir", "account-column", "calibrate"):
            assert word in done.stdout

    def test_completion_without_its_library(
        self, monkeypatch: pytest.MonkeyPatch, command: Command
    ) -> None:
        monkeypatch.setitem(sys.modules, "shtab", None)
        assert "fastdx[completion]" in command("completion", "bash", code=1).err


def fails_on_a_full_disk(*args: object) -> None:
    """Run the command where what is written beyond 100 kB of a file is an error."""

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = subprocess.run([*FASTDX, *map(str, args)], capture_output=True, check=False,
                          preexec_fn=limited)  # fmt: skip
    assert done.returncode == 1 and b"Traceback" not in done.stderr, done.stderr


class TestWhatStays:
    @pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "out.jsonl.zst", "out.parquet"])
    def test_a_full_disk_leaves_no_half_file(self, tmp_path: Path, name: str) -> None:
        rng = np.random.default_rng(1)
        words = fastdx.Embedding.default().words
        texts = [" ".join(words[i] for i in rng.integers(0, 500, 20)) for _ in range(5000)]
        source = tmp_path / ("in.parquet" if "parquet" in name else "in.jsonl")
        if "parquet" in name:
            pq.write_table(pa.table({"t": texts}), source)
        else:
            source.write_text("".join(map(record, texts)))
        out = tmp_path / name
        out.write_text("old")
        fails_on_a_full_disk("privatize", source, "--column", "t", "-o", out, "--epsilon", "5")
        assert out.read_text() == "old"
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted([source.name, name])

    def test_a_full_disk_in_a_folder_charges_nothing(self, tmp_path: Path) -> None:
        source, ledger = tmp_path / "in.txt", tmp_path / "ledger"
        source.write_text("coffee and tea " * 50_000)
        Ledger(ledger, budget=1e9)
        fails_on_a_full_disk("privatize", source, "--output-dir", tmp_path / "out",
                             "--epsilon", "5", "--ledger", ledger, "--account", "ann")  # fmt: skip
        assert files_in(tmp_path / "out") == [] and Ledger(ledger).entries() == []

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
    def test_dev_full(self) -> None:
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [*FASTDX, "privatize", "--epsilon", "5"], input=b"coffee", stdout=full,
                stderr=subprocess.PIPE, check=False,
            )  # fmt: skip
        assert done.returncode == 1 and b"No space left" in done.stderr
        done = run("privatize", "--epsilon", "5", "-o", "/dev/full", stdin="coffee")
        assert done.returncode == 1 and "/dev/full: No space left" in done.stderr

    def test_ended_while_it_waits_for_input(self, tmp_path: Path) -> None:
        """A reader that cannot be woken does not keep the command from ending."""
        codes = {signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGINT: 130}
        processes = [
            subprocess.Popen(
                [*FASTDX, "privatize", "--format", "text", "--epsilon", "5",
                 "-o", str(tmp_path / f"{code}.txt")],
                stdin=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=interruptible,  # noqa: PLW1509
            )
            for code in codes.values()
        ]  # fmt: skip
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"coffee and tea " * 500_000)
            process.stdin.flush()
        time.sleep(1.5)
        for process, (number, code) in zip(processes, codes.items(), strict=True):
            process.send_signal(number)
            # The pipe stays open.
            assert process.wait(60) == code
            assert process.stdin is not None and process.stderr is not None
            process.stdin.close()
            told = process.stderr.read()
            process.stderr.close()
            assert b"Traceback" not in told and b"Fatal" not in told, told
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
    def test_ended_while_nobody_reads(self, number: signal.Signals, code: int) -> None:
        """A writer that cannot be woken does not keep the command from ending."""
        first, second = os.pipe()
        process = subprocess.Popen(
            [*FASTDX, "privatize", "--epsilon", "5"], stdin=subprocess.PIPE, stdout=second,
            stderr=subprocess.PIPE, preexec_fn=interruptible,  # noqa: PLW1509
        )  # fmt: skip
        os.close(second)
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(b"coffee and tea " * 20_000)
        process.stdin.close()
        # More than a pipe holds is on its way.
        assert select.select([first], [], [], 60)[0]
        time.sleep(0.1)
        process.send_signal(number)
        assert process.wait(60) == code
        assert b"Fatal" not in process.stderr.read()
        process.stderr.close()
        os.close(first)

    def test_progress_on_a_terminal(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "in.txt").write_text("coffee and tea")
        for quiet in (False, True):
            shown = io.StringIO()
            monkeypatch.setattr(shown, "isatty", lambda: True)
            monkeypatch.setattr("sys.stderr", shown)
            with messages.step("thinking", quiet=quiet) as progress:
                progress(12_345)
                progress("trial 2", 0.5)
            lines = shown.getvalue().split("\r\x1b[K")[1:]
            assert lines == ([] if quiet else ["thinking", "thinking, 12,345 words",
                                               "trial 2, 0 min 0 s left", ""])  # fmt: skip
            line = ["privatize", str(tmp_path / "in.txt"), "-o", str(tmp_path / "out.txt")]
            assert main([*line, "-q"][: None if quiet else -1]) == 0
            told = shown.getvalue()
            assert ("drawing, 3 words" in told and "came back unchanged" in told) != quiet
