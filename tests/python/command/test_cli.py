"""The command, as a shell user meets it."""

import csv
import gzip
import io
import json
import os
import pty
import re
import select
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastdx
from helpers import ROOT
from helpers.command import FASTDX, run

PLAIN = ("--mechanism", "tem")
"""The mechanism as published, and not the recommended policy at another ε."""


@pytest.fixture
def sure(tmp_path: Path) -> list[str]:
    """Options under which every known word becomes itself."""
    path = tmp_path / "sure.fdx"
    fastdx.Embedding(["cat", "dog", "bird"], np.eye(3) * 100).save(path)
    return ["--embedding", str(path), "--mechanism", "laplace", "--epsilon", "1e6", "--oov", "mask",
            "--allow-unchanged"]  # fmt: skip


def test_text_from_standard_input() -> None:
    done = run("privatize", *PLAIN, "--epsilon", "3", stdin="I like coffee.\nAnd zyxw!\n")
    assert done.returncode == 0
    assert done.stdout.count("\n") == 2 and done.stdout.count(" ") == 3
    line = (
        r"fastdx: 5 words; \d came back unchanged; 1 were not in the vocabulary \(drawn at random\)"
    )
    assert re.match(line, done.stderr), done.stderr
    assert "under this policy 3.3% of common words come back" in done.stderr
    assert "Tem protects" not in done.stderr, "the proof is printed on request"
    assert "\r" not in done.stderr, "no progress bar in a pipe"
    assert run("privatize", "--epsilon", "3", "-q", stdin="coffee").stderr == ""
    done = run("privatize", "--epsilon", "3", "-q", "--guarantee", stdin="coffee")
    assert "ε = 3 per unit of euclidean distance" in done.stderr


class TestUnchanged:
    """The command says which words a policy leaves, and refuses a policy that leaves most."""

    def test_a_policy_that_releases_most_words_is_refused(self, tmp_path: Path) -> None:
        for args in (["--epsilon", "6"], ["--epsilon", "300"], ["--epsilon", "300", "-q"]):
            out = tmp_path / "out.txt"
            done = run("privatize", *PLAIN, *args, "-o", out, stdin="anna has diabetes")
            assert done.returncode == 1 and done.stdout == "" and not out.exists()
            assert "of common words come back as they were" in done.stderr
            assert "hardly anything" in done.stderr and "--allow-unchanged" in done.stderr

    def test_who_insists_is_warned(self) -> None:
        args = ("--epsilon", "6", "--allow-unchanged", "-q")
        done = run("privatize", *PLAIN, *args, stdin="anna in london")
        assert done.returncode == 0
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
    def test_without_epsilon(self) -> None:
        done = run("privatize", stdin="anna has diabetes")
        assert done.returncode == 0 and done.stdout.count(" ") == 2
        tem = fastdx.Tem.recommended()
        assert (
            f"the recommended policy: --epsilon {tem.nominal:g} --cover {tem.cover.k}"
            in done.stderr
        )
        assert run("privatize", "-q", stdin="coffee").stderr == ""

    def test_it_is_that_of_the_options(self, tmp_path: Path) -> None:
        args = ("--seed", "5", "-q")
        short = run("privatize", *args, stdin="a coffee and a tea")
        tem = fastdx.Tem.recommended()
        policy = ("--epsilon", str(tem.nominal), "--cover", "40", "--balance", "0.1")
        assert run("privatize", *policy, *args, stdin="a coffee and a tea").stdout == short.stdout
        assert tem.privatize("coffee") != "" and "fuck" in tem.excluded
        written = fastdx.Tem(epsilon=2.25, cover=40, balance=0.1, exclude="offensive")
        assert written.cover == tem.cover and written.nominal == tem.nominal

    @pytest.mark.parametrize(("more", "said", "changed"), [
        (["--epsilon", "3"], "--epsilon 2.25; still --cover 40 --balance 0.1", {"epsilon": 3.0}),
        (["--cover", "50"], "--cover 40; still --epsilon 2.25 --balance 0.1", {"cover": 50}),
        (["--balance", "0.3"], "--balance 0.1; still --epsilon 2.25 --cover 40", {"balance": 0.3}),
        (["--gamma", "9"], "no --gamma; still --epsilon", {"gamma": 9.0}),
        (["--epsilon", "3", "--exclude", "none"], "--epsilon 2.25, --exclude offensive; still",
         {"epsilon": 3.0, "exclude": None}),
        (["--mechanism", "tem", "--balance", "0.3"], "--balance 0.1; still", {"balance": 0.3}),
        (["--oov", "mask"], "", {"oov": "mask"}),
        (["--epsilon", "2.25", "--cover", "40"], "", {}),
    ])  # fmt: skip
    def test_options_change_it_and_what_changed_is_said(
        self, more: list[str], said: str, changed: dict[str, object]
    ) -> None:
        done = run("privatize", *more, "--report", "json", stdin="coffee")
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stderr)
        verdict = f"no longer the recommended policy, which has {said}" if said else "the recomm"
        assert report["policy"].startswith(verdict), report["policy"]
        wanted = fastdx.Tem.recommended(**changed).spec  # type: ignore[arg-type]
        assert report["spec"] == wanted
        shown = run("privatize", *more, stdin="coffee").stderr.splitlines()[0]
        assert shown == f"fastdx: {report['policy']}"

    def test_a_named_mechanism_is_that_of_its_paper(self) -> None:
        done = run("privatize", *PLAIN, "--epsilon", "3", "--report", "json", stdin="coffee")
        report = json.loads(done.stderr)
        assert "balance" not in report["spec"] and report["policy"] is None

    @pytest.mark.parametrize(("more", "name"), [
        (["--embedding", "x.fdx"], "an index"), (["--mechanism", "laplace"], "this mechanism"),
    ])  # fmt: skip
    def test_it_has_no_other_mechanism_and_words(self, more: list[str], name: str) -> None:
        done = run("privatize", *more, stdin="coffee")
        assert done.returncode == 1, done.stderr
        assert f"--epsilon must be given with {name}: the recommended" in done.stderr


def test_text_is_kept_byte_for_byte_between_words(tmp_path: Path, sure: list[str]) -> None:
    text = "Cat\r\n\tdog,  x\u00a0bird\n\n\n cat\n" * 1000
    (tmp_path / "in").write_bytes(text.encode())
    out = tmp_path / "out"
    done = run("privatize", tmp_path / "in", "-o", out, *sure)
    assert done.returncode == 0 and done.stdout == ""
    assert out.read_bytes().decode() == text.replace("x", "[MASK]").replace("Cat", "cat")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "out", "sure.fdx"]


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
    both = run("privatize", path, path, "--column", "text", "--column", "note", *sure)
    assert both.stdout.count("id,text,note") == 1 and both.stdout.count("[MASK], cat") == 2


def test_json_lines(tmp_path: Path, sure: list[str]) -> None:
    path = tmp_path / "in.jsonl.gz"
    records = [
        {"id": 1, "text": "Cat & x", "n": 0.1},
        {"id": 2, "text": None},
        {"text": ["dog", "é"], "id": 3},
    ]
    lines = "\n".join(json.dumps(r) for r in records) + "\n\n"
    path.write_bytes(gzip.compress(lines.encode()))
    out = tmp_path / "out.jsonl.gz"
    done = run("privatize", path, "--column", "text", "-o", out, *sure)
    assert done.returncode == 0, done.stderr
    new = [json.loads(line) for line in gzip.decompress(out.read_bytes()).splitlines() if line]
    assert new == [
        {"id": 1, "text": "cat & [MASK]", "n": 0.1},
        {"id": 2, "text": None},
        {"text": ["dog", "[MASK]"], "id": 3},
    ]
    assert "2 other fields released as they were" in done.stderr


def test_parquet(tmp_path: Path, sure: list[str]) -> None:
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    table = pa.table({"id": range(10_000), "text": pa.array(["Cat dog", None] * 5000)})
    pq.write_table(table, path)
    done = run("privatize", path, path, "--column", "text", "-o", out, *sure)
    assert done.returncode == 0, done.stderr
    new = pq.read_table(out)
    assert new.schema == table.schema and new["text"].to_pylist() == ["cat dog", None] * 10_000
    assert new["id"].to_pylist() == [*range(10_000)] * 2


BAD = [
    (["privatize", "--epsilon", "x"], "", 2, "invalid float"),
    (["privatize", "--epsilon", "0"], "", 1, "epsilon must be"),
    (["privatize", "--epsilon", "1", "/no/such"], "", 1, "/no/such: No such file"),
    (["privatize", "--epsilon", "1", "--embedding", "/no/such"], "", 1, "/no/such: No such"),
    (["privatize", "--epsilon", "1", "--mechanism", "laplace", "--gamma", "1"], "", 1, "--gamma"),
    (
        ["privatize", "--epsilon", "1", "--gamma", "1", "--beta", ".1"],
        "",
        1,
        "must be left out where gamma is given",
    ),
    (["privatize", "--epsilon", "1", "--column", "x"], "", 1, "--column goes with"),
    (["privatize", "--epsilon", "1", "--format", "csv"], "", 1, "csv needs --column"),
    (["privatize", "--epsilon", "1"], b"ok \xff", 1, "byte 3 is not UTF-8"),
    (
        ["privatize", "--epsilon", "1", "--oov", "error"],
        "zyxw",
        1,
        "line 1: a word of 4 characters is not in the voc",
    ),
    (["privatize", "--epsilon", "1", "a.csv", "b.jsonl", "--column", "x"], "", 1, "several"),
    (["privatize", "--epsilon", "1", "--format", "parquet", "--column", "x"], "", 1, "standard"),
    (["nonsense"], "", 2, "no command 'nonsense'"),
    (["info", "/no/such"], "", 1, "No such file"),
    (["convert", "/no/such", "-o", "x"], "", 1, "No such file"),
]
DAMAGED = gzip.compress(b"text " * 1000, mtime=0)[:-30] + b"x" * 30
JSON = ["privatize", "--epsilon", "1", "--format", "jsonl", "--column", "t"]
CSV = ["privatize", "--epsilon", "1", "--format", "csv", "--column", "t"]
BAD += [
    (JSON, '{"t": "a"}\n{"t"', 1, "line 2: not JSON"),
    (JSON, "[1]\n", 1, "line 1: not a JSON object"),
    (JSON, '{"u": "a"}\n', 1, "line 1: none of its 1 fields is called 't'"),
    (JSON, '{"t": 5}\n', 1, "line 1: field 't' holds a number"),
    (CSV, "", 1, "no header"),
    (CSV, "t,t\n1,2\n", 1, "2 columns are called 't'"),
    (CSV, "\nt\n1\n", 1, "none of its 0 columns is called 't'"),
    (CSV, 't,"b', 1, "line 1"),
    (JSON, '{"t": "a", "n": NaN}\n', 1, "a number that JSON does not have"),
    (JSON, "[" * 100_000 + "\n", 1, "line 1: not JSON"),
    (["privatize", "--epsilon", "1"], DAMAGED, 1, ""),
    (CSV, "a,the text\n1,2\n", 1, "none of its 2 columns is called 't'; they are a, the text\n"),
    ([*CSV, "--format", "tsv"], "a\tb\n1\t2\n", 1, "called 't'; they are a, b\n"),
    ([*CSV, "--format", "tsv", "--column", "a"], "a\tb\n1\t2\n", 1, "called 't'; they are a, b\n"),
    (CSV, "t,b\n1,2\n3\n", 1, "line 3: 1 fields, the header has 2"),
    (CSV, 't,b\n1,"2', 1, "line 2"),
]


@pytest.mark.parametrize(("args", "stdin", "code", "message"), BAD)
def test_mistakes(args: list[str], stdin: str, code: int, message: str) -> None:
    done = run(*args, stdin=stdin)
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


def test_a_failed_run_leaves_the_old_output(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("old")
    assert run("privatize", "--epsilon", "1", "-o", out, stdin=b"a \xff").returncode == 1
    assert out.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["out"]


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
        got: list[bytes] = []
        reader = threading.Thread(target=lambda got=got: got.append(pipe.read_bytes()))
        reader.start()
        write()
        reader.join(30)
        assert got and got[0] and stat.S_ISFIFO(pipe.stat().st_mode)


def test_json_keeps_what_it_does_not_touch(sure: list[str]) -> None:
    line = '{"id": "\\ud800", "t": "cat é"}\n'
    args = ["privatize", "--format", "jsonl", "--column", "t", *sure]
    done = run(*args, "--column", "id", stdin=line)
    assert done.returncode == 1 and "surrogate" in done.stderr
    done = run(*args, stdin=line)
    assert json.loads(done.stdout) == {"id": "\ud800", "t": "cat [MASK]"}


def test_tab_separated_files_have_no_quotes(sure: list[str]) -> None:
    text = '\ufeffid\tt\n5" pipe\tcat "x"\n'
    done = run("privatize", "--format", "tsv", "--column", "t", *sure, stdin=text)
    assert done.stdout == 'id\tt\n5" pipe\tcat "[MASK]"\n'


def test_index(tmp_path: Path) -> None:
    path = tmp_path / "index"
    done = run("index", "build", "--limit", "3000", "--k", "20", "-o", path, "--embedding",
               ROOT / "data" / "default.fdx")  # fmt: skip
    assert done.returncode == 0 and "20 neighbours a word" in done.stderr
    assert "lists      20" in run("index", "info", path).stdout
    assert run("privatize", "--epsilon", "3", "--embedding", path, stdin="coffee").returncode == 0
    done = run("index", "build", "--limit", "300", "--gamma", "0.5", "-o", path, "--embedding",
               ROOT / "data" / "default.fdx")  # fmt: skip
    assert done.returncode == 0 and "all neighbours within 0.5" in done.stderr
    done = run("index", "build", "--memory", "1000", "-o", path)
    assert done.returncode == 1 and "need 40960000 bytes, and 1000 are allowed" in done.stderr


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


def test_a_closed_pipe_is_no_error() -> None:
    process = subprocess.Popen(
        [*FASTDX, "privatize", "--epsilon", "5", "-q"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin and process.stdout and process.stderr
    process.stdout.close()
    process.stdin.write(b"coffee and tea " * 100_000)
    process.stdin.close()
    assert process.wait(60) == 141
    assert process.stderr.read() == b""
    process.stderr.close()


def test_ctrl_c(tmp_path: Path) -> None:
    path, out = tmp_path / "in", tmp_path / "out"
    path.write_text("the quick brown fox jumps over the lazy dog " * 500_000)
    process = subprocess.Popen(
        [*FASTDX, "privatize", str(path), "-o", str(out), "--epsilon=5", "--mechanism=laplace"],
        stderr=subprocess.PIPE,
        # A shell's background job starts with SIGINT ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 130 and b"interrupted" in err and b"Traceback" not in err
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


def test_a_progress_bar_on_a_terminal(tmp_path: Path) -> None:
    main, side = pty.openpty()
    with subprocess.Popen(
        [*FASTDX, "privatize", "-o", str(tmp_path / "out"), "--epsilon", "5"],
        stdin=subprocess.PIPE,
        stderr=side,
    ) as process:
        os.close(side)
        shown = b""
        assert process.stdin is not None
        # However fast it is, it is not done before the bar is seen.
        end = time.monotonic() + 60
        while b"MB/s" not in shown and time.monotonic() < end:
            process.stdin.write(b"coffee and tea ")
            process.stdin.flush()
            if select.select([main], [], [], 0.02)[0]:
                shown += os.read(main, 4096)
        process.stdin.close()
        while True:
            try:
                data = os.read(main, 4096)
            except OSError:
                break
            if not data:
                break
            shown += data
        assert process.wait() == 0
    os.close(main)
    assert b"MB/s" in shown and b"came back unchanged" in shown


def test_memory_stays_flat(tmp_path: Path) -> None:
    """Twenty times the input takes no more memory."""
    code = (
        "import resource, sys; from fastdx.cli import main; main(sys.argv[1:]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )

    def peak(repeat: int) -> int:
        path = tmp_path / "in"
        path.write_text("coffee and tea for the two of us\n" * repeat)
        args = ["privatize", str(path), "--epsilon", "5", "-q", "-o", str(tmp_path / "out")]
        done = subprocess.run(
            [sys.executable, "-c", code, *args], capture_output=True, text=True, check=True
        )
        return int(done.stdout)

    assert peak(3_000_000) < 1.3 * peak(300_000)


def test_hyperbolic(tmp_path: Path) -> None:
    glove = tmp_path / "g.txt"
    glove.write_text("cat 0.1 0.2\ndog 0.3 -0.4\n")
    poincare = ("--mechanism", "hyperbolic", "--embedding", glove, "--metric", "poincare",
                "--allow-unchanged", "--guarantee")  # fmt: skip
    done = run("privatize", *poincare, "--epsilon", "2", stdin="cat, dog!")
    assert done.returncode == 0 and done.stdout.split(",")[0] in ("cat", "dog")
    assert "poincare" in done.stderr
    done = run("privatize", *poincare, "--epsilon", "0.5", stdin="cat")
    assert done.returncode == 1 and "Tem on the Poincaré metric" in done.stderr


def test_poincare_train(tmp_path: Path) -> None:
    edges = tmp_path / "edges.tsv"
    edges.write_text("dog\tanimal\ncat\tanimal\n")
    out = tmp_path / "e.fdx"
    done = run("poincare", "train", edges, "-o", out, "--dim", "2", "--epochs", "3")
    assert done.returncode == 0 and "mean rank" in done.stderr and "epoch 3 of 3" in done.stderr
    assert "poincare" in run("info", out).stdout
