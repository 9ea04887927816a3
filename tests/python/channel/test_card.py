"""The channel card travels with the release, and is all that a receiver needs."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import fastdx
from fastdx import Embedding, MultivariateLaplace, NeighborResponse, Tem
from fastdx._shared.card import KEY
from fastdx.channel import Channel
from helpers.command import run
from helpers.spaces import normal

E = normal(40, 3, 3)
TEXTS = [f"w{i % 7} w{i % 5} and w3" for i in range(60)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    E.save(tmp_path / "words.fdx")
    (tmp_path / "in.txt").write_text("\n".join(TEXTS) + "\n")
    lines = (json.dumps({"text": text}) + "\n" for text in TEXTS)
    (tmp_path / "in.jsonl").write_text("".join(lines))
    (tmp_path / "in.csv").write_text("text\n" + "\n".join(TEXTS) + "\n")
    (tmp_path / "lexicon.txt").write_text("w3\nw1\nunheard\n")
    return tmp_path


MADE = ("--embedding", "words.fdx", "--epsilon", 3, "--allow-unchanged", "--exclude", "none")


@pytest.mark.parametrize("name", ["in.txt", "in.jsonl", "in.csv"])
def test_the_command_writes_a_card_that_makes_the_channel(folder: Path, name: str) -> None:
    column = () if name.endswith("txt") else ("--column", "text")
    out = name.replace("in", "out")
    run("privatize", name, *column, *MADE, "-o", out, folder=folder, code=0)
    card = (folder / f"{out}.channel.json").read_text()
    assert str(folder) not in card
    assert not {"seed", "pad", "threads", "cache_bytes"} & json.loads(card)["spec"].keys()
    expected = Channel.of(Tem(E, 3.0)).likelihood("w3")
    for given in (card, folder / out, str(folder / out), folder / f"{out}.channel.json"):
        np.testing.assert_array_equal(Channel.load(given, E).likelihood("w3"), expected)
    counted = run("counts", out, *column, "--lexicon", "lexicon.txt", "--embedding",
                      "words.fdx", "--report", "json", "--each", folder=folder, code=0)  # fmt: skip
    assert "1 of 3 words" in counted.stderr
    report = json.loads(counted.stdout)
    assert (report["documents"], report["words"]) == (60, 240)
    assert [share["name"] for share in report["shares"]] == ["lexicon.txt", "w3", "w1"]
    assert all(s["low"] <= s["value"] <= s["high"] for s in report["shares"][:1])
    table = run("counts", out, *column, "--lexicon", "lexicon.txt", "--embedding", "words.fdx",
                    folder=folder)  # fmt: skip
    assert table.stdout.startswith("lexicon")
    assert "60 documents, 240 words" in table.stdout


def test_parquet_holds_its_card(folder: Path) -> None:
    parquet.write_table(pa.table({"text": TEXTS}), folder / "in.parquet")
    run("privatize", "in.parquet", "--column", "text", *MADE, "-o", "out.parquet",
                   folder=folder, code=0)  # fmt: skip
    (folder / "out.parquet.channel.json").unlink()
    assert Channel.load(folder / "out.parquet", E).mechanism == Tem(E, 3.0)
    assert KEY.encode() in parquet.read_schema(folder / "out.parquet").metadata
    # The text that was private before has another law now, so its card does not stay.
    run("privatize", "out.parquet", "--column", "text", *MADE, "--seed", 1,
                    "-o", "twice.parquet", folder=folder, code=0)  # fmt: skip
    assert KEY.encode() not in (parquet.read_schema(folder / "twice.parquet").metadata or {})
    with pytest.raises(fastdx.ParameterError, match="card"):
        Channel.load(folder / "twice.parquet", E)


def test_arrow_tables_hold_their_card(tmp_path: Path) -> None:
    table = pa.table({"text": TEXTS, "n": list(range(60))})
    private = Tem(E, 3.0).privatize_frame(table, "text")
    assert Channel.load(private.schema.metadata[KEY.encode()].decode(), E).mechanism == Tem(E, 3.0)
    for mechanism in (Tem(E, 3.0, seed=1), MultivariateLaplace(E, 3.0)):
        assert not mechanism.privatize_frame(table, "text").schema.metadata


def test_no_card_is_written_where_it_would_say_nothing(folder: Path) -> None:
    for name, why, options in [
        ("seeded.txt", "seed", ("--seed", 1)),
        ("noise.txt", "law", ("--mechanism", "laplace")),
    ]:
        done = run("privatize", "in.txt", *MADE, *options, "-o", name, folder=folder, code=0)
        assert not (folder / f"{name}.channel.json").exists()
        assert why in done.stderr.split("no channel card")[1]
    assert "channel card" not in run("privatize", "in.txt", *MADE, folder=folder, code=0).stderr


def test_folders_leave_cards_out(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "a.jsonl").write_text((folder / "in.jsonl").read_text())
    (folder / "data" / "a.jsonl.channel.json").write_text("{}")
    run("privatize", "data", "--column", "text", *MADE, "--output-dir", "new",
                   folder=folder, code=0)  # fmt: skip
    names = sorted(path.name for path in (folder / "new").glob("[!.]*"))
    assert names == ["a.jsonl", "a.jsonl.channel.json"]
    assert Channel.load(folder / "new" / "a.jsonl", E).mechanism == Tem(E, 3.0)


def test_a_saved_policy_is_told_without_its_file(tmp_path: Path) -> None:
    """The words that an index excludes are words in Specs and cards, not a cover in that file."""
    Tem.recommended().save(tmp_path / "english.index")
    saved = Tem.load(tmp_path / "english.index", Tem.recommended().epsilon, language="rank")
    assert (saved.spec["cover"], saved.spec["exclude"]) == ("none", "offensive")
    assert saved == Tem.recommended() and hash(saved) == hash(Tem.recommended())
    assert Channel.load(Channel.of(saved).card()).mechanism == Tem.recommended()
    made = Tem(E, 3.0, exclude=["w1"])
    made.save(tmp_path / "own.index")
    own = Embedding.load(tmp_path / "own.index")
    for same in (Tem.load(tmp_path / "own.index", 3.0), Tem(own, 3.0, exclude=["w1"])):
        assert made == same == pickle.loads(pickle.dumps(same))
        assert Channel.load(Channel.of(same).card(), E).mechanism == made
    assert Tem(own, 3.0, exclude=["w2"]).spec["exclude"] == ["w1", "w2"]
    response = NeighborResponse(own, 3.0, cover=5, exclude=["w1"])
    assert NeighborResponse(own, 3.0) == NeighborResponse(E, 3.0, exclude=["w1"]) != response


def test_older_or_altered_words_are_refused(folder: Path) -> None:
    run("privatize", "in.txt", *MADE, "-o", "out.txt", folder=folder, code=0)
    vectors = E.vectors.copy()
    vectors[0, 0] += 1e-3
    for other in (Embedding(E.words, vectors), Embedding([*E.words[:-1], "new"], E.vectors),
                  Embedding(E.words[::-1], E.vectors[::-1])):  # fmt: skip
        with pytest.raises(fastdx.ParameterError, match=r"fingerprint|space"):
            Channel.load(folder / "out.txt", other)
    with pytest.raises(fastdx.ParameterError, match="space"):
        Channel.load(folder / "out.txt")
    with pytest.raises(fastdx.MissingFileError):
        Channel.load(folder / "nothing.channel.json")
    tem = Tem(E, 3.0, cover=3, skip=["w1"], exclude=["w2"], consistent=True)
    card = Channel.of(tem).card()
    assert Channel.load(card, E).mechanism == tem
    wrong: Any
    for wrong in (folder / "in.txt", "no card", "[1]", {"card": 1},
                  card.replace('"tokenizer": 1', '"tokenizer": 2')):  # fmt: skip
        with pytest.raises(fastdx.ParameterError, match="card"):
            Channel.load(wrong, E)
    with pytest.raises(fastdx.ParameterError, match="seed"):
        Channel.of(Tem(E, 3.0, seed=1)).card()


def test_mistakes_of_the_command_are_named(folder: Path) -> None:
    run("privatize", "in.txt", *MADE, "-o", "out.txt", folder=folder, code=0)
    words = ("--embedding", "words.fdx")
    (folder / "empty.txt").write_text("\n")
    (folder / "unheard.txt").write_text("unheard\n")
    for message, arguments in [
        ("has none", ("in.txt", "--lexicon", "lexicon.txt", *words)),
        ("--card", ("-", "--lexicon", "lexicon.txt", *words)),
        ("no word", ("out.txt", "--lexicon", "empty.txt", *words)),
        ("vocabulary", ("out.txt", "--lexicon", "unheard.txt", *words)),
        ("--column", ("out.txt", "--column", "text", "--lexicon", "lexicon.txt", *words)),
        ("confidence", ("out.txt", "--lexicon", "lexicon.txt", "--confidence", 2, *words)),
        ("in.txt", ("in.txt", "--card", "out.txt", "--lexicon", "lexicon.txt", *words)),
    ]:
        told = run("counts", *arguments, folder=folder, code=1).stderr
        assert message in told and "w0 w0" not in told
