"""Nothing private leaves beside the mechanism: controls, errors, temporary files, metadata."""

import base64
import gzip
import json
import os
import signal
import stat
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastdx
from fastdx import Embedding, Tem
from helpers.command import FASTDX, Command, Said, interruptible, run
from helpers.swapped import SECRET

SMALL = Embedding(["cat", "dog", "c", "42", "$"], [[0.0], [1.0], [2.0], [3.0], [4.0]])


CONTROLS = [c for c in [*range(0x20), *range(0x7F, 0xA0)] if chr(c) not in "\t\n\v\f\r"]


class TestControlCharacters:
    def test_they_are_parts_of_words(self) -> None:
        tem = Tem(SMALL, 1.0)
        for code in CONTROLS:
            for text in (f"x{chr(code)}y", chr(code), f"cat {chr(code)}{chr(code)} dog"):
                assert chr(code) not in tem.privatize(text), hex(code)

    # Other code pages: src/text/decoding.rs.
    @pytest.mark.parametrize("name", ["Чехов", "习近平", "Ünal", "Παῦλος"])
    def test_utf8_read_as_latin_1_is_replaced_and_said(self, name: str) -> None:
        mojibake = name.encode().decode("latin-1")
        tem = Tem(SMALL, 1.0)
        with pytest.warns(fastdx.FastdxWarning, match="Latin-1"):
            out = tem.privatize(f"cat {mojibake} dog")
        # Only these may be left: no-break spaces, and signs that stand between no two letters.
        left = {c for c in out if ord(c) > 0x7F}
        assert not any(c.isalpha() or 0x7F < ord(c) < 0xA0 for c in left), left
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tem.privatize(f"cat {mojibake} dog")  # said once
            Tem(SMALL, 1.0).privatize(f"cat {name} «dog» 5 € ±3°")


class TestStructure:
    @pytest.mark.parametrize(
        "secret",
        ["123-45-6789", "+1(555)123-4567", "2024/11/21", "C++", "hunter2***", "€20", "$20", "#42",
         "a+b", "p@ss^w0rd", "10:30-11:00", "R&D", "hunter2＊＊＊", "Ｃ＃", "５％", "5٪", "5‰"],
    )  # fmt: skip
    def test_one_word_comes_out_whole(self, secret: str) -> None:
        tem = Tem(SMALL, 1.0, oov="mask")
        # Known without its symbols, or unknown: one word in either case.
        out = tem.privatize(f"({secret}), dog")
        assert out in {f"({w}), {v}" for w in [*SMALL.words, "[MASK]"] for v in SMALL.words}


LENGTH = f"{len(SECRET)} characters"


class TestErrors:
    """Messages give places and counts. Of JSON: src/text/records/tests.rs."""

    PRIVATIZE = ("privatize", "--epsilon", "1", "--column", "t")

    def check(self, said: Said, *parts: str) -> None:
        assert SECRET not in said.err + said.out
        assert all(part in said.err for part in parts), said.err

    @pytest.mark.parametrize(
        ("name", "text", "code", "parts"),
        [
            ("in.csv", f"{SECRET},1\nb,2\n", 1, ["none of its 2 columns"]),
            ("in.jsonl", f'{{"t": "a"}}\n{{"{SECRET}": 1}}\n', 1, ["line 2: none of its 1 fields"]),
            ("in.jsonl", f'{{"t": "tea", "{SECRET}": 1}}\n', 0, ["1 other fields released"]),
            # A first record is no header.
            *(("in.csv", f"{SECRET},{more}\n", 1, ["columns is called 't' (--show-text shows it)"])
              for more in ("2024-11-21", "", SECRET, "a@b.org", "long " * 9)),
            *(("in.csv", f"{SECRET}{more}\n", 1, ["columns is called 't' (--show-text shows it)"])
              for more in (" saw a doctor today", ",3rd of May")),
            # Unknown words are given by their place.
            ("in.csv", f"id,t\n1,tea\n2,coffee {SECRET}\n", 1, ["line 3", LENGTH]),
            ("in.jsonl", f'{{"t": "tea"}}\n{{"t": "wine"}}\n{{"t": "a {SECRET}"}}\n', 1,
             ["line 3", LENGTH]),
            ("in.txt", f"coffee tea\ntea\nwine and {SECRET} tea\n", 1, ["line 3", LENGTH]),
            ("in.parquet", "", 1, ["row 3", LENGTH]),
        ],
    )  # fmt: skip
    def test_content_is_shown_on_request(
        self, tmp_path: Path, command: Command, name: str, text: str, code: int, parts: list[str]
    ) -> None:
        path = tmp_path / name
        if name == "in.parquet":
            pq.write_table(pa.table({"t": ["tea", None, f"a {SECRET}"]}), path)
        else:
            path.write_text(text)
        line = [*self.PRIVATIZE[: 3 if name == "in.txt" else None], "--oov", "error", path]
        line += ["-o", tmp_path / "out"]
        said = command(*line, code=code)
        self.check(said, *parts)
        assert (name in said.err) == (code == 1)
        assert SECRET.casefold() in command(*line, "--show-text", code=code).err.casefold()

    @pytest.mark.parametrize(
        "text",
        [f"Dear {SECRET}\nI am well.\n", f"{SECRET}\t{SECRET}\n", f"a\tb\n{SECRET}\n",
         f"a\t{SECRET}\t{SECRET}\n", f"a 1 2\nb 3 {SECRET}\n", f"{SECRET} 1e99 3\n",
         f"2 3\n{SECRET} 1 2 3\nb 1 2\n"],
    )  # fmt: skip
    def test_a_letter_given_as_something_else(self, tmp_path: Path, text: str) -> None:
        letter = tmp_path / "letter.txt"
        letter.write_text(text)
        for option in ("--graph", "--embedding"):
            done = run("privatize", "--epsilon", "1", option, letter, stdin="a")
            if done.returncode:
                self.check(Said(done.stdout, done.stderr), "letter.txt")

    def test_errors_carry_the_word_and_line(self, tmp_path: Path) -> None:
        path = tmp_path / "e.txt"
        path.write_text(f"a 1 2\n{SECRET} 1 x\nb 1 2\n")
        with pytest.raises(fastdx.FormatError) as e:
            Embedding.load(path)
        assert (e.value.line, e.value.word) == (2, "x") and "line 2" in str(e.value)
        with pytest.raises(fastdx.DuplicateWordError) as d:
            Embedding(["a", "a"], [[1.0], [2.0]])
        assert d.value.word == "a"

    def test_unknown_words(self, tmp_path: Path) -> None:
        strict = Tem(SMALL, 1.0, oov="error")
        for call in (
            lambda: strict.privatize(["cat", f"dog {SECRET}"]),
            lambda: strict.privatize_tokens(["cat", SECRET]),
            lambda: SMALL.ids(["cat", SECRET]),
            lambda: fastdx.earth_movers_distance([SECRET], ["cat"], SMALL),
            lambda: fastdx.earth_movers_distance({SECRET: 1}, ["cat"], SMALL),
            lambda: fastdx.BagOfWords(strict).privatize([SECRET]),
            lambda: fastdx.BagOfWords(strict).privatize_documents([f"dog {SECRET}"]),
        ):
            with pytest.raises(fastdx.UnknownWordError) as e:
                call()
            assert SECRET not in str(e.value) and e.value.word is not None
            assert e.value.word.casefold() == SECRET.casefold()
            assert str(len(SECRET)) in str(e.value)
        with pytest.raises(fastdx.UnknownWordError, match=r"word 1 of text 1, at byte 4"):
            strict.privatize(["cat", f"dog {SECRET}"])
        with pytest.raises(fastdx.FastdxError) as wrong:
            fastdx.BagOfWords(strict).privatize({SECRET: -1})
        assert SECRET not in str(wrong.value)

    def test_half_a_surrogate_pair_and_damaged_parquet_are_placed(
        self, tmp_path: Path, command: Command
    ) -> None:
        path = tmp_path / "in.jsonl"
        path.write_text('{"t": "tea"}\n{"t": "bad \\ud800 one"}\n')
        self.check(command(*self.PRIVATIZE, path, code=1), "line 2", "surrogate")
        path = tmp_path / "in.parquet"
        pq.write_table(pa.table({"t": [SECRET * 50] * 2000}), path, compression="none")
        data = bytearray(path.read_bytes())
        data[200:4000] = os.urandom(3800)
        path.write_bytes(data)
        self.check(command(*self.PRIVATIZE, path, "-o", tmp_path / "out", code=1), "in.parquet")


PROC = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no /proc")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX files and signals")
class TestTemporaryFiles:
    LINES = b'{"secret": "raw", "t": "the quick brown fox jumps over the lazy dog"}\n' * 80_000

    @staticmethod
    def modes(process: subprocess.Popen[bytes], folder: Path) -> set[int]:
        """Wait until a process writes files in a folder, and return their modes."""
        found: set[int] = set()
        deadline = time.monotonic() + 120
        while not found and time.monotonic() < deadline:
            time.sleep(0.02)
            for fd in Path(f"/proc/{process.pid}/fd").iterdir():
                with suppress(OSError):
                    target, mode = str(fd.readlink()), fd.stat().st_mode
                    ours = target.startswith(str(folder)) and not target.endswith("in.jsonl")
                    if ours and stat.S_ISREG(mode):
                        found.add(stat.S_IMODE(mode))
        time.sleep(0.1)
        return found

    @PROC
    # Other signals: test_command.py.
    @pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="no unnamed temporary files here")
    def test_nothing_stays_after_a_kill(self, tmp_path: Path) -> None:
        source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
        source.write_bytes(self.LINES)
        source.chmod(0o600)
        process = subprocess.Popen(
            [*FASTDX, "privatize", str(source), "--column", "t", "-o", str(out), "--epsilon=5",
             "--mechanism=laplace"],
            stderr=subprocess.PIPE,
            preexec_fn=interruptible,  # noqa: PLW1509
        )  # fmt: skip
        # Meanwhile the file is its owner's alone.
        assert self.modes(process, tmp_path) == {0o600}
        process.kill()
        process.communicate(timeout=240)
        assert [p.name for p in tmp_path.iterdir()] == ["in.jsonl"]

    @PROC
    def test_hangup_stays_ignored_under_nohup(self, tmp_path: Path) -> None:
        out = tmp_path / "out.txt"
        process = subprocess.Popen(
            [*FASTDX, "privatize", "--format", "text", "--epsilon", "5", "-o", str(out)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),  # noqa: PLW1509
        )
        assert process.stdin is not None
        process.stdin.write(b"coffee and tea " * 200_000)
        process.stdin.flush()
        assert self.modes(process, tmp_path)
        process.send_signal(signal.SIGHUP)
        process.communicate(b"and milk", timeout=120)
        assert process.returncode == 0 and out.exists()

    def test_modes(self, tmp_path: Path) -> None:
        a, out = (tmp_path / n for n in ("a.txt", "out.txt"))
        a.write_text("tea")
        for mode, umask, expected in (
            (0o600, 0o022, 0o600),
            (0o644, 0o022, 0o644),
            (0o640, 0o000, 0o640),
            (0o666, 0o077, 0o600),
        ):
            a.chmod(mode)
            before = os.umask(umask)
            try:
                done = run("privatize", "--epsilon", "5", "-q", a, "-o", out)
            finally:
                os.umask(before)
            assert done.returncode == 0, done.stderr
            assert stat.S_IMODE(out.stat().st_mode) == expected
            out.unlink()
        # An index keeps the ordinary mode.
        before = os.umask(0o022)
        try:
            SMALL.save(tmp_path / "e.fdx")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "e.fdx").stat().st_mode) == 0o644

    def test_without_unnamed_files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from fastdx._shared import replace

        monkeypatch.setattr(replace, "_unnamed", lambda folder: None)
        seen: list[int] = []
        out = tmp_path / "out.gz"
        with replace.open_output(str(out)) as f:
            f.write(b"x")
            (temporary,) = tmp_path.iterdir()
            seen.append(stat.S_IMODE(temporary.stat().st_mode))
        assert seen == [0o600] and gzip.decompress(out.read_bytes()) == b"x"
        out.chmod(0o604)
        with replace.open_output(str(out)) as f:
            f.write(b"y")
        assert stat.S_IMODE(out.stat().st_mode) == 0o604
        assert gzip.decompress(out.read_bytes()) == b"y"
        with pytest.raises(RuntimeError), replace.open_output(str(tmp_path / "b")) as f:
            f.write(b"x")
            raise RuntimeError
        assert [p.name for p in tmp_path.iterdir()] == ["out.gz"]


def test_parquet_metadata_is_dropped_and_named(tmp_path: Path) -> None:
    frame = pd.DataFrame({"t": ["tea", "coffee"], "n": [1, 2]}, index=[5, 7])
    table = pa.Table.from_pandas(frame)
    noted = pa.field("x", pa.int64(), metadata={"comment": SECRET})
    struct = pa.struct([noted])
    lists = pa.list_(pa.field("item", struct, metadata={"ARROW:mynote": SECRET}))
    table = table.append_column(noted, [[1, 2]])
    table = table.append_column("s", pa.array([{"x": 1}] * 2, struct))
    table = table.append_column("l", pa.array([[{"x": 2}]] * 2, lists))
    metadata = {**(table.schema.metadata or {}), b"author": SECRET, b"ARROW:other": SECRET}
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(table.replace_schema_metadata(metadata), source)
    done = run("privatize", source, "--column", "t", "-o", out, "--epsilon", "5", "-q", code=0)
    for named in ("metadata dropped", "author", "comment", "ARROW:mynote"):
        assert named in done.stderr and SECRET not in done.stderr
    raw, coded = out.read_bytes(), base64.b64encode(SECRET.encode())[:8]
    assert SECRET.encode() not in raw and coded not in raw
    assert not pq.read_schema(out).field("s").type.field(0).metadata
    assert pq.read_table(out)["l"].to_pylist() == [[{"x": 2}]] * 2
    assert pd.read_parquet(out).index.tolist() == [5, 7]


def test_attrs_of_pandas_are_dropped_and_named(tmp_path: Path) -> None:
    kinds = {
        "t": ["tea", "coffee"],
        "c": pd.Categorical(["x", "y"], ordered=True),
        "d": pd.to_datetime(["2020-01-01", "2021-01-01"]).tz_localize("Europe/Paris"),
    }
    frame = pd.DataFrame(kinds, index=pd.Index(["a", "b"], name="key"))
    frame.attrs = {"note": SECRET}
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    frame.to_parquet(source)
    assert SECRET.encode() in source.read_bytes()
    done = run("privatize", source, "--column", "t", "-o", out, "--epsilon", "5", "-q", code=0)
    assert "metadata dropped from the schema: pandas: attributes" in done.stderr
    raw = out.read_bytes()
    assert SECRET.encode() not in raw and base64.b64encode(SECRET.encode())[:8] not in raw
    back = pd.read_parquet(out)
    assert back.attrs == {} and back.index.name == "key"
    pd.testing.assert_frame_equal(back.drop(columns="t"), frame.drop(columns="t"))
    # Whatever else stands there.
    table = pq.read_table(source)
    noted = json.loads(table.schema.metadata[b"pandas"])
    noted["columns"][0]["metadata"] = {"note": SECRET, "encoding": "UTF-8"}
    noted["columns"][0]["note"] = noted["creator"]["note"] = noted["more"] = SECRET
    for metadata in (json.dumps(noted), SECRET, f'["{SECRET}"]', f'{{"columns": ["{SECRET}"]}}'):
        pq.write_table(table.replace_schema_metadata({b"pandas": metadata.encode()}), source)
        done = run("privatize", source, "--column", "t", "-o", out, "--epsilon", "5", "-q")
        assert done.returncode == 0 and "dropped from the schema: pandas" in done.stderr
        assert SECRET not in done.stderr and SECRET.encode() not in out.read_bytes()
        assert SECRET not in str(pq.read_schema(out).metadata)


def test_frames_come_back_without_attrs_and_metadata() -> None:
    tem = fastdx.Tem(epsilon=5.0)
    frame = pd.DataFrame({"t": ["tea"], "n": [1]})
    frame.attrs = {"note": SECRET}
    assert tem.privatize_frame(frame, "t").attrs == {} and frame.attrs == {"note": SECRET}
    noted = {"metadata": {"note": SECRET, "ARROW:extension:name": "x"}}
    fields = [
        pa.field("t", pa.string(), **noted),
        pa.field("s", pa.struct([pa.field("t", pa.string(), **noted)]), **noted),
        pa.field("l", pa.list_(pa.field("i", pa.struct([pa.field("t", pa.string(), **noted)])))),
        pa.field("kept", pa.large_list(pa.field("i", pa.int64(), **noted))),
    ]
    schema = pa.schema(fields, metadata={"note": SECRET, "pandas": json.dumps({"attributes": 1})})
    columns = [["tea"], [{"t": "tea"}], [[{"t": "tea"}]], [[1]]]
    table = pa.table(columns, schema=schema)
    for given in (table, table.to_batches()[0], table.slice(0, 0)):
        for column in ("t", "s.t", "l.t"):
            new = tem.privatize_frame(given, column)
            assert type(new) is type(given) and new.schema.equals(schema)
            assert SECRET not in new.schema.to_string(truncate_metadata=False)
            assert b"attributes" not in new.schema.metadata[b"pandas"]
            assert new.schema.field("t").metadata == {b"ARROW:extension:name": b"x"}
            assert new["kept"].to_pylist() == given["kept"].to_pylist()
    # A column alone may hold fields as well.
    lists = pa.array([["tea"]], pa.list_(pa.field("i", pa.string(), metadata={"note": SECRET})))
    new = tem.privatize(lists)
    assert new.type == lists.type and not new.type.value_field.metadata
