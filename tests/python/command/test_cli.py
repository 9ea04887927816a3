"""The command, as a shell user meets it."""

import argparse
import csv
import gzip
import io
import math
import os
import pty
import re
import select
import signal
import stat
import subprocess
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

import fastdx
from fastdx import cli
from helpers import ROOT
from helpers.command import FASTDX, Command, fails, interruptible, run
from helpers.policies import made, options
from helpers.swapped import SECRET

PLAIN = ("--mechanism", "tem")
"""The mechanism as published, and not the recommended policy at another ε."""


def test_text_from_standard_input(sure: list[str]) -> None:
    done = run("privatize", *PLAIN, "--epsilon", "3", stdin="I like coffee.\nAnd zyxw!\n", code=0)
    assert done.stdout.count("\n") == 2 and done.stdout.count(" ") == 3
    line = (
        r"fastdx: 5 words; \d came back unchanged; 1 were not in the vocabulary \(drawn at random\)"
    )
    assert re.match(line, done.stderr), done.stderr
    assert "under this policy 3.3% of common words come back" in done.stderr
    assert "Tem protects" not in done.stderr, "the proof is printed on request"
    assert "\r" not in done.stderr, "no progress bar in a pipe"
    assert run("privatize", "--epsilon", "3", "-q", stdin="coffee").stderr == ""
    told = run("privatize", *sure, "-q", "--guarantee", stdin="cat").stderr
    assert "ε = 1000000 per unit of euclidean distance" in told


class TestUnchanged:
    """The command says which words a policy leaves, and refuses a policy that leaves most."""

    def test_a_policy_that_releases_most_words_is_refused(self, tmp_path: Path) -> None:
        out = tmp_path / "out.txt"
        done = run("privatize", *PLAIN, "--epsilon", "300", "-q", "-o", out, stdin="anna", code=1)
        assert done.stdout == "" and not out.exists()
        assert "of common words come back as they were" in done.stderr
        assert "hardly anything" in done.stderr and "--allow-unchanged" in done.stderr

    def test_who_insists_is_warned(self) -> None:
        args = ("--epsilon", "6", "--allow-unchanged", "-q")
        done = run("privatize", *PLAIN, *args, stdin="anna in london " * 9, code=0)
        first, second = done.stderr.splitlines()
        assert first.startswith("fastdx: warning: at this ε 57% of common words come back")
        assert re.match("fastdx: warning: [23] different words of these texts come back", second)

    def test_a_warning_below(self) -> None:
        done = run("privatize", *PLAIN, "--epsilon", "5", "-q", stdin="a word")
        assert done.returncode == 0 and "protects little" in done.stderr

    def test_unknown_words_of_another_language(self) -> None:
        text = "Ich möchte gern einen Tisch für zwei Personen reservieren, bitte recht schnell"
        done = run("privatize", "--epsilon", "3", "-q", stdin=text)
        assert "of the words are not in the vocabulary: is it of the language" in done.stderr
        done = run("privatize", "--epsilon", "3", "-q", stdin="zyxw " * 5 + "a coffee " * 5)
        assert "language" not in done.stderr


class TestRecommended:
    """The command without options; test_recommended.py compares it with Tem.recommended()."""

    def test_without_epsilon(self) -> None:
        done = run("privatize", stdin="anna has diabetes", code=0)
        assert done.stdout.count(" ") == 2
        assert "the recommended policy: --epsilon 2.6 --language rank" in done.stderr
        published = fastdx.Tem(epsilon=3.0, exclude="offensive")
        assert made("privatize", *PLAIN, "--epsilon", "3") == published
        for option, value, name in (("--embedding", "x.fdx", "an index"),
                                    ("--mechanism", "laplace", "this mechanism")):  # fmt: skip
            told = fails(f"epsilon must be given with {name}: the rec",
                         "privatize", option, value, stdin="coffee")  # fmt: skip
            assert "calibrate" in told

    @pytest.mark.parametrize(("more", "said", "changed"), [
        ("--epsilon 3", "--epsilon", {"epsilon": 3.0}),
        ("--language uniform", "--language", {"language": "uniform"}),
        ("--epsilon 3 --exclude none", "--epsilon, --exclude", {"epsilon": 3.0, "exclude": "none"}),
        ("--mechanism tem --cover 9", "--cover", {"cover": 9}),
        ("--oov mask", "", {"oov": "mask"}),
        ("--epsilon 2.6 --language rank", "", {}),
    ])  # fmt: skip
    def test_options_change_it_and_what_changed_is_said(
        self, more: str, said: str, changed: dict[str, object]
    ) -> None:
        asked = options("privatize", *more.split())
        unchanged = "the recommended policy: --epsilon 2.6 --language rank"
        assert asked.policy == (
            f"no longer the recommended policy, by {said}" if said else unchanged
        )
        wanted = {"mechanism": "tem", "epsilon": 2.6, "language": "rank",
                  "exclude": "offensive", "oov": "random"}  # fmt: skip
        assert asked.spec == wanted | changed


def test_text_is_kept_byte_for_byte_between_words(tmp_path: Path, sure: list[str]) -> None:
    text = "Cat\r\n\tdog,  x\u00a0bird\n\n\n cat\n" * 1000
    (tmp_path / "in").write_bytes(text.encode())
    out = tmp_path / "out"
    assert run("privatize", tmp_path / "in", "-o", out, *sure, code=0).stdout == ""
    assert out.read_bytes().decode() == text.replace("x", "[MASK]").replace("Cat", "cat")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "out"]


def test_csv(tmp_path: Path, sure: list[str]) -> None:
    path = tmp_path / "in.csv"
    rows = [["id", "text", "note"], ["1", 'a "Cat", dog\nbird', "raw, cat"], ["2", "", "Dog"]]
    with path.open("w", newline="") as f:
        csv.writer(f, lineterminator="\r\n").writerows(rows)
    done = run("privatize", path, "--column", "text", *sure)
    assert list(csv.reader(io.StringIO(done.stdout, newline=""))) == [
        rows[0], ["1", '[MASK] "cat", dog\nbird', "raw, cat"], rows[2]
    ]  # fmt: skip
    assert "released as they were: id, note" in done.stderr
    both = run("privatize", path, "--column", "text", "--column", "note", *sure)
    assert both.stdout.count("[MASK], cat") == 1


ONE = ["privatize", "--epsilon", "1"]
BAD = [
    (["privatize", "--epsilon", "x"], "", 2, "invalid float"),
    (["privatize", "--epsilon", "0"], "", 1, "epsilon must be"),
    ([*ONE, "/no/such"], "", 1, "/no/such: No such file"),
    ([*ONE, "--embedding", "/no/such"], "", 1, "/no/such: No such"),
    ([*ONE, "--mechanism", "laplace", "--gamma", "1"], "", 1, "gamma must"),
    ([*ONE, "--gamma", "1", "--beta", ".1"], "", 1, "must be left out where gamma is given"),
    ([*ONE, "--column", "x"], "", 1, "--column goes with"),
    ([*ONE, "--format", "csv"], "", 1, "csv needs --column"),
    (ONE, b"ok \xff", 1, "byte 3 is not UTF-8"),
    ([*ONE, "--oov", "error"], "zyxw", 1, "line 1: a word of 4 characters is not in the voc"),
    ([*ONE, "a.csv", "b.jsonl", "--column", "x"], "", 1, "several"),
    ([*ONE, "--format", "parquet", "--column", "x"], "", 1, "standard"),
    (["nonsense"], "", 2, "no command 'nonsense'"),
    (["info", "/no/such"], "", 1, "No such file"),
    (["convert", "/no/such", "-o", "x"], "", 1, "No such file"),
]
DAMAGED = gzip.compress(b"text " * 1000, mtime=0)[:-30] + b"x" * 30
JSON = [*ONE, "--format", "jsonl", "--column", "t"]
CSV = [*ONE, "--format", "csv", "--column", "t"]
BAD += [
    (JSON, '{"t": "a"}\n{"t"', 1, "line 2: not JSON"),
    (CSV, "", 1, "no header"),
    (CSV, "t,t\n1,2\n", 1, "2 columns are called 't'"),
    (CSV, "\nt\n1\n", 1, "none of its 0 columns is called 't'"),
    (CSV, 't,"b', 1, "line 1"),
    (ONE, DAMAGED, 1, ""),
    (CSV, "a,the text\n1,2\n", 1, "none of its 2 columns is called 't' (--show-text shows it)\n"),
    ([*CSV, "--format", "tsv", "--show-text"], "a\tb\n1\t2\n", 1, "called 't': a, b\n"),
    (CSV, "t,b\n1,2\n3\n", 1, "line 3: 1 fields, the header has 2"),
    (CSV, 't,b\n1,"2', 1, "line 2"),
    ([*JSON, "--no-header"], "", 1, "--no-header goes with csv"),
    ([*CSV, "--format", "tsv", "--delimiter", ";"], "", 1, "--delimiter goes with csv"),
    ([*CSV, "--delimiter", ";;"], "", 1, "must be one sign"),
    (ONE, f"{SECRET}\ntea\nM\xfcller".encode("latin-1"), 1, "byte 15 is not UTF-8 (line 3)"),
    ([*JSON, "--format", "json"], f'[{{"t": "a"}},\n"{SECRET}"]', 1, "line 2: not a JSON object"),
]  # other refusals, nested fields, accounts of JSON: src/text/records/tests.rs


@pytest.mark.parametrize(("args", "stdin", "code", "message"), BAD)
def test_mistakes(args: list[str], stdin: str, code: int, message: str, command: Command) -> None:
    told = command(*args, stdin=stdin, code=code).err
    assert message in told and SECRET not in told


def test_special_files_links_and_modes_survive(tmp_path: Path) -> None:
    link, real = tmp_path / "link", tmp_path / "real"
    real.write_text("old")
    real.chmod(0o600)
    link.symlink_to(real)
    assert run("privatize", "--epsilon", "1", "-o", link, stdin="coffee").returncode == 0
    assert link.is_symlink() and real.read_text() != "old" and real.stat().st_mode & 0o777 == 0o600
    fastdx.Embedding.default().save(link)
    assert link.is_symlink() and real.stat().st_mode & 0o777 == 0o600
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for write in (
        lambda: run("privatize", "--epsilon", "1", "-q", "-o", pipe, stdin="coffee"),
        lambda: fastdx.Embedding(["a"], [[1.0]]).save(pipe),
    ):
        with ThreadPoolExecutor() as pool:
            got = pool.submit(pipe.read_bytes)
            write()
            assert got.result(30) and stat.S_ISFIFO(pipe.stat().st_mode)


def test_tab_separated_files_have_no_quotes(sure: list[str]) -> None:
    text = '\ufeffid\tt\n5" pipe\tcat "x"\n'
    done = run("privatize", "--format", "tsv", "--column", "t", *sure, stdin=text)
    assert done.stdout == 'id\tt\n5" pipe\tcat "[MASK]"\n'


def test_index(tmp_path: Path) -> None:
    path = tmp_path / "index"
    few = tmp_path / "few.fdx"
    run("convert", ROOT / "data" / "default.fdx", "--limit", "3000", "-o", few, code=0)
    done = run("index", "build", "--k", "20", "-o", path, "--embedding", few, code=0)
    assert "20 neighbours a word" in done.stderr
    assert "lists      20" in run("info", path).stdout
    run("privatize", "--epsilon", "3", "--embedding", path, stdin="coffee", code=0)
    fails("need 40960000 bytes, and 1000 are allowed", "index", "build", "--memory", "1000",
          "-o", path)  # fmt: skip


def test_convert_and_info(tmp_path: Path) -> None:
    glove = tmp_path / "g.txt"
    glove.write_text("cat 1 2\ndog 3 4\n")
    for storage in ("float32", "int16"):
        out = tmp_path / storage
        assert run("convert", glove, "-o", out, "--storage", storage).returncode == 0
        done = run("info", out)
        assert "words      2" in done.stdout and "dimension  2" in done.stdout
    e = fastdx.Embedding.load(tmp_path / "float32")
    assert e.words == ("cat", "dog") and e.vectors.tolist() == [[1, 2], [3, 4]]
    done = run("convert", glove, "-o", tmp_path / "m", "--metric", "manhattan", "--limit", "1")
    assert "1 words × 2, manhattan" in done.stderr
    (tmp_path / "p.csv").write_text("id,text\n1,the coffee was cold\n")
    assert "coffee" not in fails("p.csv, line 1: a word", "info", tmp_path / "p.csv")


@pytest.mark.parametrize("given", [("privatize", "--epsilon", "5", "-q"), ("--help",)])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_closed_pipe_is_no_error(given: tuple[str, ...], unbuffered: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"coffee and tea " * 100_000)
    with (tmp_path / "in").open() as text:
        process = subprocess.Popen(
            [*FASTDX, *given], stdin=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip
    assert process.stdout and process.stderr
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr.read() == b""
    process.stderr.close()


def shown_until(main: int, sign: bytes) -> bytes:
    """Return the text of a terminal up to a sign, or until nobody writes to it."""
    shown, end = b"", time.monotonic() + 60
    while sign not in shown and time.monotonic() < end:
        try:
            shown += os.read(main, 4096) if select.select([main], [], [], 1.0)[0] else b""
        except OSError:
            break
    return shown


@pytest.mark.parametrize(("args", "line"), [
    (("calibrate",), "choosing ε"),
    (("compare", "--mechanisms", "all"), "tem-cover"),
    (("evaluate", "{texts}", "--no-network"), "words by themselves"),
])  # fmt: skip
def test_long_work_shows_its_steps_and_stops(
    args: tuple[str, ...], line: str, tmp_path: Path
) -> None:
    texts = tmp_path / "texts.jsonl"
    texts.write_text('{"text": "coffee and tea for the two of us"}\n' * 60)
    command = [*FASTDX, *(arg.format(texts=texts) for arg in args), "-o", str(tmp_path / "page")]
    main, side = pty.openpty()
    with subprocess.Popen(
        command,
        stderr=side,
        stdout=subprocess.DEVNULL,
        preexec_fn=interruptible,  # noqa: PLW1509
    ) as process:
        os.close(side)
        assert line.encode() in shown_until(main, line.encode())
        process.send_signal(signal.SIGINT)
        shown = shown_until(main, b"never")
        assert process.wait(60) == 130
    os.close(main)
    assert shown.rstrip().endswith(b"fastdx: interrupted") and b"Traceback" not in shown
    assert list(tmp_path.iterdir()) == [texts]


def test_an_interruption_that_scikit_learn_swallows_is_raised_again() -> None:
    warn = partial(warnings.warn, "interrupted by user")
    with pytest.raises(KeyboardInterrupt):
        cli._run(argparse.Namespace(run=lambda _: warn(), command="try"))


def test_hyperbolic(tmp_path: Path) -> None:
    glove = tmp_path / "g.txt"
    glove.write_text("cat 0.1 0.2\ndog 0.3 -0.4\n")
    run("convert", glove, "-o", tmp_path / "g.fdx", "--metric", "poincare", code=0)
    poincare = ("privatize", "--mechanism", "hyperbolic", "--embedding", tmp_path / "g.fdx",
                "--allow-unchanged", "--guarantee")  # fmt: skip
    done = run(*poincare, "--epsilon", "2", stdin="cat, dog!", code=0)
    assert done.stdout.split(",")[0] in ("cat", "dog") and "poincare" in done.stderr
    fails("Tem on the Poincaré metric", *poincare, "--epsilon", "0.5", stdin="cat")


class TestTry:
    def test_a_sentence_at_three_epsilons_with_its_bound(self) -> None:
        done = run("try", "Anna has a zyxw cough.", "--pair", "hot", "cold", code=0)
        tem = fastdx.Tem.recommended()
        lines = done.stdout.splitlines()
        assert [line.split()[:3] for line in lines[2:5]] == [
            ["ε", "=", f"{e:g}"] for e in (1.8, tem.nominal, 3.4)
        ]
        # White space and marks stay, whatever is drawn.
        assert all(line.split("(")[0].rstrip().endswith(".") for line in lines[1:5])
        stays = tem.probabilities("anna")[tem.space.ids(["anna"])[0]]
        assert any(line.split()[:2] == ["anna", f"{stays:.1%};"] for line in lines)
        assert re.search("zyxw +not in the vocabulary", done.stdout)
        odds = math.ceil(math.exp(tem.guarantee.bound("hot", "cold")))
        assert f"odds of at most {odds:,} to 1" in done.stdout
        assert re.search(r"be right for \d of 5 words", done.stdout) or len(lines) < 15

    def test_a_text_without_words(self) -> None:
        assert "has no words" in run("try", "...", code=1).stderr
