"""The formats of the command: what is replaced, what is copied, what is refused."""

import gzip
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastdx
import fastdx.budget
from fastdx._shared.replace import packed
from fastdx.cli.formats import Choice, Opener, format_of
from fastdx.cli.formats.base import BATCH_CHARACTERS
from fastdx.cli.formats.json import Json, JsonLines
from helpers.command import MAIN, Command, fails, peak, run
from helpers.swapped import SECRET


class TestJson:
    def test_an_array_is_copied_but_for_its_texts(self, tmp_path: Path, sure: list[str]) -> None:
        path = tmp_path / "in.json"
        text = (
            '\ufeff [\r\n  {"id" : 1.50, "t": "Cat \\u0078",\n "big": 123456789012345678901234},\n'
            '{"t":null,"n":1e400} , {"\\u0074":["dog", "é \\"q\\""], "t": "x", "u": [1, "é"]}\n]\n'
        )
        path.write_bytes(text.encode())
        done = run("privatize", path, "--column", "t", "-o", tmp_path / "out.json", *sure, code=0)
        new = text.removeprefix("\ufeff").replace('"Cat \\u0078"', '"cat [MASK]"')
        new = new.replace('"é \\"q\\""', '"[MASK] \\"[MASK]\\""').replace(
            '"t": "x"', '"t": "[MASK]"'
        )
        assert (tmp_path / "out.json").read_bytes().decode() == new
        assert "4 other fields released" in done.stderr

    def test_never_as_text(self, tmp_path: Path) -> None:
        path = tmp_path / "in.json"
        path.write_text('{"t": "a"}')
        fails("json needs --column", "privatize", path, "--epsilon", "1")
        for text in ('{"t": "a"}\n', '[\n {"t": "a"}]', '{\n "t": "a"}'):
            fails("needs --column", "privatize", "--epsilon", "1", stdin=text)
            run("privatize", "--epsilon", "1", "--format", "text", stdin=text, code=0)
        # A letter may begin with a bracket.
        assert run("privatize", "--epsilon", "1", stdin="[sic] {it}").returncode == 0

    def test_names_of_other_fields_are_kept_over_blocks(self, tmp_path: Path) -> None:
        path = tmp_path / "in.jsonl"
        form = JsonLines(Choice(("t",)), str(path))
        many = "".join(f'{{"t": "a", "x{i}": 1, "n": 2}}\n' for i in range(120))
        for lines in ('{"t": "a", "n": [1.50, {"x": null}]}\n', many):
            path.write_text(lines)
            (batch,) = form.read(Opener())
            assert batch.place(0) == f"{path}, line 1, column 't'"
        assert list(form.left) == ["n", *(f"x{i}" for i in range(99))]

    def test_a_long_array(self, tmp_path: Path, sure: list[str]) -> None:
        """Several batches, each of whole records."""
        path, out = tmp_path / "in.json", tmp_path / "out.json"
        n = 4 * BATCH_CHARACTERS // 60
        path.write_text(json.dumps([{"i": i, "t": "cat dog é bird", "u": "raw"} for i in range(n)]))
        run("privatize", path, "--column", "t", "-o", out, *sure, code=0)
        new = json.loads(out.read_text())
        assert new == [{"i": i, "t": "cat dog [MASK] bird", "u": "raw"} for i in range(n)]


class TestDelimited:
    def test_without_a_header(self, tmp_path: Path, sure: list[str]) -> None:
        path = tmp_path / "in.csv"
        path.write_text('1;"x; cat"\n2;dog\n')
        args = ("privatize", path, "--no-header", "--delimiter", ";", *sure)
        done = run(*args, "--column", "2")
        assert done.stdout == '1;"[MASK]; cat"\n2;dog\n'
        assert "released as they were: 1" in done.stderr
        for column in ("0", "3", "t", "-1", "²", "01"):
            fails("numbers from 1 to 2", *args, f"--column={column}")

    def test_no_header_and_nothing_there(self, sure: list[str]) -> None:
        args = ("--format", "csv", "--no-header", "--column", "1")
        assert run("privatize", *args, *sure, code=0).stdout == ""


class TestPacked:
    @pytest.mark.parametrize("suffix", [".gz", ".zst"])
    def test_in_and_out(self, tmp_path: Path, sure: list[str], suffix: str) -> None:
        source, out = tmp_path / f"in.txt{suffix}", tmp_path / f"out.txt{suffix}"
        text = "x cat\n" * 100_000
        with source.open("wb") as f, packed(f, source.name) as stream:
            stream.write(text.encode())
        assert source.stat().st_size < len(text) / 20
        # Found by its content, whatever it is called.
        other = tmp_path / "in.txt"
        other.write_bytes(source.read_bytes())
        for name in (source, other):
            assert run("privatize", name, "-o", out, *sure).returncode == 0
            data = out.read_bytes()
            if suffix == ".gz":
                assert gzip.decompress(data) == text.replace("x", "[MASK]").encode()
            else:
                assert data[:4] == b"\x28\xb5\x2f\xfd"
                assert Opener().open(str(out)).read() == text.replace("x", "[MASK]").encode()

    @pytest.mark.parametrize("suffix", [".gz", ".zst"])
    def test_two_in_a_row_and_damage(self, tmp_path: Path, sure: list[str], suffix: str) -> None:
        source = tmp_path / f"in.txt{suffix}"
        with source.open("wb") as f, packed(f, source.name) as stream:
            stream.write(
                b"cat dog " * 5000 + np.random.default_rng(1).bytes(5000).hex().encode() + b" "
            )
        made = source.read_bytes()
        source.write_bytes(made * 2)
        assert run("privatize", source, *sure).stdout.count("cat dog ") == 10_000
        source.write_bytes(made[:-20])
        told = fails("cut off", "privatize", source, "-o", tmp_path / "out.txt", *sure)
        assert "in.txt" in told and not (tmp_path / "out.txt").exists()

    def test_gzip_from_a_pipe_that_pauses(self, tmp_path: Path) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)

        def write() -> None:
            with pipe.open("wb", 0) as out:
                for part in (b"[", b'{"t": "tea"}]'):
                    out.write(gzip.compress(part) + bytes(3))
                    time.sleep(0.2)

        with ThreadPoolExecutor() as pool:
            written = pool.submit(write)
            opener = Opener()
            assert format_of(str(pipe), opener) is Json
            assert opener.open(str(pipe)).read() == b'[{"t": "tea"}]'
            written.result()

    def test_names_that_contradict(self, tmp_path: Path) -> None:
        (tmp_path / "in.jsonl").write_text('{"t": "tea"}\n')
        pq.write_table(pa.table({"t": ["tea"]}), tmp_path / "in.parquet")
        for source, out, message in [
            ("in.jsonl", "out.csv", "its name says csv, and it would hold jsonl"),
            ("in.jsonl", "out.json.gz", "its name says json"),
            ("in.jsonl", "out.parquet", "its name says parquet"),
            ("in.parquet", "out.parquet.gz", "compressed inside"),
            ("in.parquet", "out.txt", "its name says text"),
        ]:
            args = ("--column", "t", "--epsilon", "1", "-o", tmp_path / out)
            fails(message, "privatize", tmp_path / source, *args)
            assert not (tmp_path / out).exists()
        args = ("--column", "t", "--epsilon", "1", "-o", tmp_path / "out.unknown")
        assert run("privatize", tmp_path / "in.jsonl", *args).returncode == 0

    def test_without_a_library(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "in.txt.zst"
        with path.open("wb") as f, packed(f, path.name) as stream:
            stream.write(b"cat")
        opener = Opener()
        with opener.open(str(path)) as f:
            assert f.read() == b"cat"
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(fastdx.FileError, match=r"fastdx\[parquet\]"):
            opener.open(str(path))
        with path.open("wb") as f, pytest.raises(fastdx.FileError, match=r"fastdx\[parquet\]"):
            packed(f, "a.zst").__enter__()


class TestParquet:
    def test_lists_dictionaries_views_and_structs(self, tmp_path: Path, sure: list[str]) -> None:
        texts = ["Cat x", None, "x", "dog"]
        struct = pa.struct([("text", pa.string()), ("id", pa.int64())])
        table = pa.table(
            {
                "large": pa.array(texts, pa.large_string()),
                "view": pa.array(texts, pa.string_view()),
                "code": pa.array(texts).dictionary_encode(),
                "list": pa.array([["x", None], [], None, ["dog"]]),
                "user": pa.array([{"text": t, "id": i} for i, t in enumerate(texts)], struct),
                "items": pa.array([[{"text": "x", "id": 1}], [], None, [None]], pa.list_(struct)),
                "kept": pa.array(texts),
            }
        )
        source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
        pq.write_table(table, source)
        columns = ("large", "view", "code", "list", "user.text", "items[].text")
        chosen = [a for c in columns for a in ("--column", c)]
        done = run("privatize", source, "-o", out, *chosen, *sure, code=0)
        new = pq.read_table(out)
        expected = ["cat [MASK]", None, "[MASK]", "dog"]
        for name in ("large", "view", "code"):
            assert new[name].to_pylist() == expected, name
            assert new[name].type == pq.read_table(source)[name].type
        assert new["list"].to_pylist() == [["[MASK]", None], [], None, ["dog"]]
        assert new["user"].to_pylist() == [{"text": t, "id": i} for i, t in enumerate(expected)]
        assert new["items"].to_pylist() == [[{"text": "[MASK]", "id": 1}], [], None, [None]]
        assert new["kept"].to_pylist() == texts
        assert "released as they were: user.id, items[].id, kept" in done.stderr

    @pytest.mark.parametrize(
        ("column", "message"),
        [
            ("n", "column 'n': text must be a column of text, not int64"),
            ("user", "a struct of 1 fields: name one"),
            ("user.nope", "column 'user.nope': text must be a column of text, not a struct of "
             "1 fields, 0 named 'nope'"), ("list[].x", "not string, which has no field 'x'"),
            ("nope", "none of its 3 columns is called 'nope' (--show-text"),
        ],
    )  # fmt: skip
    def test_refused(self, tmp_path: Path, command: Command, column: str, message: str) -> None:
        source = tmp_path / "in.parquet"
        table = {"n": [1], "user": [{"text": "x"}], "list": [["x"]]}
        pq.write_table(pa.table(table), source)
        args = ("--epsilon", "1", "--column", column, "-o", tmp_path / "out.parquet")
        assert message in command("privatize", source, *args, code=1).err
        assert [p.name for p in tmp_path.iterdir()] == ["in.parquet"]

    def test_unknown_words_are_placed_within_lists(self, tmp_path: Path) -> None:
        source = tmp_path / "in.parquet"
        rows = [["tea"], [], None, ["tea", None, f"tea {SECRET}"]]
        pq.write_table(pa.table({"t": rows}), source)
        args = ("--epsilon", "1", "--column", "t", "--oov", "error")
        done = run("privatize", source, *args, "-o", tmp_path / "out.parquet")
        assert "row 4, column 't'" in done.stderr and SECRET not in done.stderr

    def test_bytes_that_are_no_text(self, tmp_path: Path) -> None:
        bad = pa.array([b"tea", b"\xff\xfe"]).view(pa.string())
        source = tmp_path / "in.parquet"
        pq.write_table(pa.table({"t": bad}), source)
        said = "from row 1: column 't': text is an Arrow column that is damaged, or is not UTF-8"
        fails(said, "privatize", source, "--epsilon", "1", "--column", "t", "-o", tmp_path / "out")

    def test_what_was_decoded_wrongly_is_told_once(self, tmp_path: Path) -> None:
        source = tmp_path / "in.parquet"
        pq.write_table(pa.table({"t": ["Müller".encode().decode("latin-1"), "tea"]}), source)
        args = ("--epsilon", "1", "--column", "t", "-o", tmp_path / "out.parquet", "-q")
        done = run("privatize", source, *args)
        assert done.stderr.count("look") == 1 and "1 texts look like UTF-8" in done.stderr

    def test_an_empty_table_and_content_without_a_name(self, tmp_path: Path) -> None:
        source, out = tmp_path / "in", tmp_path / "out.parquet"
        for table in (pa.table({"t": pa.array([], pa.string())}), pa.table({"t": ["tea"]})):
            pq.write_table(table, source)
            run("privatize", source, "--column", "t", "-o", out, "--epsilon", "1", code=0)
            assert pq.read_table(out).num_rows == table.num_rows
            assert pq.read_schema(out) == table.schema


@pytest.mark.parametrize("kind", ["txt", "json"])
def test_memory_stays_flat(tmp_path: Path, kind: str) -> None:
    """Ten times the input, or one array ten times as long, takes no more memory."""
    path, out, used = tmp_path / f"in.{kind}", tmp_path / f"out.{kind}", []
    record = json.dumps({"t": "coffee and tea for the two of us", "kept": "x" * 100})
    for count in (30_000, 300_000):
        if kind == "json":
            path.write_text("[" + ",\n".join([record] * count) + "]")
        else:
            path.write_text("coffee and tea for the two of us\n" * 5 * count)
        column = ("--column", "t") if kind == "json" else ()
        args = ("privatize", path, *column, "--epsilon", "5", "-q", "-o", out)
        used.append(peak(MAIN, *args)[0])
    assert used[1] < 1.4 * used[0]
