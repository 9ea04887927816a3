"""The conversions of the papers' data, on small made files, and the checks of what they make."""

import gzip
import io
import json
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from tools import fetch_data
from tools.fetch_data import DATA, DataError, Made


def records(data: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in data.decode().splitlines()]


def tarred(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def converted(name: str, folder: Path) -> dict[str, bytes]:
    """Convert a folder of downloads; return the files by name."""
    made: dict[str, bytes] = DATA[name].convert({path.name: path for path in folder.iterdir()})
    return made


def test_sentences(tmp_path: Path) -> None:
    for url in DATA["sentiment"].urls:
        (tmp_path / fetch_data.name_of(url)).write_bytes(b"1  a caf\xe9 . \n0 \n0 dull\n")
    made = converted("sentiment", tmp_path)
    assert set(made) == set(DATA["sentiment"].files)
    assert made["text/trec.train.txt"] == b"1  a caf\xe9 . \n0 \n0 dull\n"
    # A sentence without a word is none.
    assert records(made["text/sentiment/sst5.test.jsonl.gz"]) == [
        {"text": " a café .", "label": 1}, {"text": "dull", "label": 0},
    ]  # fmt: skip


def test_queries(tmp_path: Path) -> None:
    pieces = [{"text": "Add "}, {"text": "Café", "entity": "album"}, {"text": " now "}]
    for url in DATA["snips"].urls:
        name = fetch_data.name_of(url)
        intent = name.split("_")[1].removesuffix(".json")
        data = json.dumps({intent: [{"data": pieces}]}, ensure_ascii=False)
        encoding = "cp1252" if name == "train_PlayMusic_full.json" else "utf-8"
        (tmp_path / name).write_bytes(data.encode(encoding))
    made = converted("snips", tmp_path)
    assert set(made) == set(DATA["snips"].files)
    found = records(made["text/snips.train.jsonl"])
    assert [r["intent"] for r in found] == list(fetch_data.INTENTS)
    assert all(r["text"] == "Add Café now" and r["slots"] == [["album", "Café"]] for r in found)


def test_reviews(tmp_path: Path) -> None:
    every = [
        (p, label, n) for p in ("train", "test") for label in ("pos", "neg") for n in range(10)
    ]
    files = {f"aclImdb/{p}/{label}/{n}_{1 + n % 4}.txt": f"{p} {label} {n}".encode()
             for p, label, n in every}  # fmt: skip
    unlabelled = {"aclImdb/train/unsup/1_0.txt": b"none", "aclImdb/README": b"none"}
    tarred(tmp_path / "aclImdb_v1.tar.gz", files | unlabelled)
    made = converted("imdb", tmp_path)
    parts = {name: records(made[f"text/imdb.{name}.jsonl.gz"]) for name in ("train", "val", "test")}
    assert [len(found) for found in parts.values()] == [16, 4, 20]
    assert [r["label"] for r in parts["val"]] == ["neg", "neg", "pos", "pos"]
    assert {r["text"] for found in parts.values() for r in found} == {
        data.decode() for data in files.values()
    }
    first = parts["test"][0]
    assert first == {"id": "0", "label": "neg", "rating": 1, "text": "test neg 0"}


def test_news_in_an_archive_of_archives(tmp_path: Path) -> None:
    inner = {"C50/C50train/Ann/2.txt": b"two\r\n", "C50/C50train/Ann/1.txt": b"one\r\n",
             "C50/C50test/Bob/3.txt": b"three", "C50/readme": b"no"}  # fmt: skip
    (tmp_path / "reuter+50+50.zip").write_bytes(zipped({"C50.zip": zipped(inner)}))
    made = converted("reuters", tmp_path)
    assert records(made["text/reuters_c50.train.jsonl.gz"]) == [
        {"id": "1.txt", "author": "Ann", "text": "one\r\n"},
        {"id": "2.txt", "author": "Ann", "text": "two\r\n"},
    ]
    assert len(records(made["text/reuters_c50.test.jsonl.gz"])) == 1


def test_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "embeddings/glove.6B.50d.12k.txt"
    monkeypatch.setitem(DATA, "glove", replace(DATA["glove"], files={name: Made(2)}))
    (tmp_path / "glove.6B.zip").write_bytes(zipped({"glove.6B.50d.txt": b"the 1\nof 2\nin 3\n"}))
    assert converted("glove", tmp_path) == {name: b"the 1\nof 2\n"}


def test_nouns(tmp_path: Path) -> None:
    # A dog (1) is a kind of four_legs (2), that one of an animal (3) and, as an instance, of 4.
    index = ("  licence\nanimal n 1 1 ~ 1 1 00000003\nbeast n 2 1 ~ 2 1 00000004 00000003\n"
             "dog n 1 1 @ 1 1 00000001\nfour_legs n 1 1 @ 1 1 00000002\n"
             "hound n 1 0 1 0 00000001\nk9 n 1 1 @ 1 0 00000001\n")  # fmt: skip
    data = ("  licence\n00000001 05 n 03 Dog 0 hound 0 k9 0 002 @ 00000002 n 0000 + 00000003 n 0101"
            " | barks\n00000002 05 n 01 four_legs 0 001 @ 00000003 n 0000 | legs\n"
            "00000003 05 n 02 beast 0 animal 0 001 @i 00000004 n 0000 | lives\n"
            "00000004 05 n 01 beast 0 000 | of the field\n")  # fmt: skip
    tarred(tmp_path / "WNdb-3.0.tar.gz",
           {"dict/index.noun": index.encode(), "dict/data.noun": data.encode()})  # fmt: skip
    made = converted("wordnet", tmp_path)
    # Of the synset of animals "beast" comes first, but it is not what a beast mostly is.
    expected = b"dog\tanimal\nhound\tanimal\n"
    assert made["graph/wordnet_nouns.edges.tsv"] == expected
    assert made["graph/wordnet_nouns.closure.tsv"] == expected


def test_what_is_not_as_it_should_be_is_refused() -> None:
    good = b'{"text": "a", "label": 1}\n'
    made = Made(1, fetch_data.hashlib.sha256(good).hexdigest())
    fetch_data.check("x", good, made)
    for bad, why in {
        good * 2: "2 lines, not 1",
        good.rstrip(b"\n"): "0 lines, not 1",
        good.replace(b"1", b"0"): "SHA-256",
    }.items():
        with pytest.raises(DataError, match=why):
            fetch_data.check("x", bad, made)


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*args: str) -> int:
        monkeypatch.setattr(sys, "argv", ["fetch_data.py", "--to", str(tmp_path / "data"), *args])
        with pytest.raises(SystemExit) as done:
            fetch_data.main()
        return int(done.value.code or 0)

    def no_network(url: str, timeout: float) -> None:
        raise OSError(f"{url}: no network")

    monkeypatch.setattr(fetch_data.urllib.request, "urlopen", no_network)
    files = {f"text/reuters_c50.{part}.jsonl.gz": Made(1) for part in ("train", "test")}
    monkeypatch.setitem(DATA, "reuters", replace(DATA["reuters"], files=files))
    assert run("reuters") == 1
    assert "reuter+50+50.zip: no network" in capsys.readouterr().err
    # Files that are there are not fetched.
    archive = tmp_path / "data" / "downloads" / "reuter+50+50.zip"
    archive.write_bytes(zipped({"C50train/Ann/1.txt": b"one"}))
    assert run("reuters") == 1
    assert "test.jsonl.gz: 0 lines, not 1" in capsys.readouterr().err
    assert not (tmp_path / "data/text").exists()  # all of it, or nothing
    archive.write_bytes(zipped({"C50train/Ann/1.txt": b"one", "C50test/Ann/2.txt": b"two"}))
    assert run("reuters") == 0
    made = tmp_path / "data/text/reuters_c50.test.jsonl.gz"
    assert records(gzip.decompress(made.read_bytes()))[0]["text"] == "two"
    first = made.read_bytes()
    assert run("reuters") == 0 and made.read_bytes() == first
    assert run("unheard-of") == 2
