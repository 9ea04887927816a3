"""Fetch and convert the public data of the papers' experiments (docs/research/papers/index.md).

    python tools/fetch_data.py [NAME …] [--to FOLDER]     by default ../shared/data

Downloads are kept in FOLDER/downloads, each under the last part of its address: what is there is
not fetched, so an address that has moved may be fetched by hand. Archives are read without
unpacking them, and files are written only if all of a data set are as they should be.

A file with a SHA-256 below is byte for byte the one that docs/research/papers was measured on, or
it is refused: the sentiment sets, TREC, Snips and WordNet. Of the others only the number of records
is checked, and they may differ from those that were measured on:

- ``imdb``: the training reviews are split into 20,000 and 5,000 in another way.
- ``glove``: the measured file is a selection of 12,691 words; this takes the first 12,691.
- ``reuters``: the reader follows a published description.

Not fetched: PAN11's mails, which PAN gives to people only (https://pan.webis.de/data.html), and
MiniLM's vectors (``embeddings/minilm-40k*``), which a model makes: take the 40,000 most frequent
English words of wordfreq 3.1.1, the mean-pooled output of all-MiniLM-L6-v2 for each alone, not
normalised; centre, project on the first 50 (300) principal components, and multiply each row by
1e-3/(1e-3 + the word's frequency). experiments/data.py says how all files look.

WordNet 3.0 also comes with Debian's ``wordnet-base``: a .tar.gz with its ``dict/index.noun`` and
``dict/data.noun`` is enough.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import itertools
import json
import re
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"

Sources = Mapping[str, Path]
"""The downloaded files by name."""
Records = list[dict[str, Any]]


class DataError(Exception):
    """A download or a file is wrong."""


@dataclass(frozen=True)
class Made:
    """A file that a conversion makes."""

    lines: int
    """The number of records."""
    sha256: str | None = None
    """The SHA-256 of the uncompressed content; None if the content may differ."""


@dataclass(frozen=True)
class Data:
    """A data set: its addresses, conversion and files."""

    about: str
    """A description with the licence."""
    urls: tuple[str, ...]
    """The addresses of the downloads."""
    convert: Callable[[Sources], Mapping[str, bytes]]
    """A function from the downloads to the files by path."""
    files: Mapping[str, Made]
    """The requirements on the files."""


def lines_of(records: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records).encode()


# --- conversions


def sentiment(sources: Sources) -> dict[str, bytes]:
    """Convert lines of a label, a space and a sentence to records; copy TREC unchanged."""
    made = {f"text/trec.{part}.txt": sources[f"TREC.{part}.all"].read_bytes()
            for part in ("train", "test")}  # fmt: skip
    for name, source in (("mr", "rt-polarity.all"), ("cr", "custrev.all"), ("mpqa", "mpqa.all"),
                         ("sst5.train", "stsa.fine.train"),
                         ("sst5.test", "stsa.fine.test")):  # fmt: skip
        pairs = [
            line.split(" ", 1) for line in sources[source].read_text("latin-1").split("\n") if line
        ]
        made[f"text/sentiment/{name}.jsonl.gz"] = lines_of(
            {"text": text.rstrip(), "label": int(label)} for label, text in pairs if text.strip()
        )
    return made


SNIPS_FILES = {"train_{}_full.json": "train", "validate_{}.json": "validate"}
INTENTS = ("AddToPlaylist", "BookRestaurant", "GetWeather", "PlayMusic", "RateBook",
           "SearchCreativeWork", "SearchScreeningEvent")  # fmt: skip


def snips(sources: Sources) -> dict[str, bytes]:
    """Convert queries, whose pieces may have the name of a slot, to text and slots."""
    made = {}
    for name, part in SNIPS_FILES.items():
        records: Records = []
        for intent in INTENTS:
            data = sources[name.format(intent)].read_bytes()
            try:
                text = data.decode("utf-8")
            except UnicodeDecodeError:
                text = data.decode("cp1252", "replace")  # some of the files
            for query in json.loads(text)[intent]:
                pieces = query["data"]
                records.append({
                    "intent": intent,
                    "text": "".join(p["text"] for p in pieces).strip(),
                    "slots": [[p["entity"], p["text"]] for p in pieces if "entity" in p],
                })  # fmt: skip
        made[f"text/snips.{part}.jsonl"] = lines_of(records)
    return made


REVIEW = re.compile(r"aclImdb/(train|test)/(neg|pos)/(\d+)_(\d+)\.txt$")


def imdb(sources: Sources) -> dict[str, bytes]:
    """Convert files of one review each; a hash selects a fifth of each label for tuning."""
    parts: dict[str, Records] = {"train": [], "val": [], "test": []}
    found = []
    with tarfile.open(sources["aclImdb_v1.tar.gz"]) as archive:
        for member in archive:
            if (place := REVIEW.match(member.name)) and (file := archive.extractfile(member)):
                found.append((place.groups(), file.read().decode("utf-8")))
    aside = set()
    for label in ("neg", "pos"):
        ids = [at[2] for at, _ in found if at[:2] == ("train", label)]
        ids.sort(key=lambda number: hashlib.sha256(f"{label}/{number}".encode()).digest())
        aside |= {("train", label, number) for number in ids[: len(ids) // 5]}
    # In the order of the files' names.
    for at, text in sorted(found, key=lambda review: "_".join(review[0])):
        part, label, number, rating = at
        record = {"id": number, "label": label, "rating": int(rating), "text": text}
        parts["val" if at[:3] in aside else part].append(record)
    return {f"text/imdb.{part}.jsonl.gz": lines_of(records) for part, records in parts.items()}


ARTICLE = re.compile(r"C50(train|test)/([^/]+)/([^/]+\.txt)$")


def reuters(sources: Sources) -> dict[str, bytes]:
    """Convert folders of authors with one file per text."""
    parts: dict[str, Records] = {"train": [], "test": []}
    for name, data in sorted(unzipped(sources["reuter+50+50.zip"].read_bytes())):
        if place := ARTICLE.search(name):
            part, author, file = place.groups()
            text = data.decode("utf-8", "replace")
            parts[part].append({"id": file, "author": author, "text": text})
    return {f"text/reuters_c50.{p}.jsonl.gz": lines_of(r) for p, r in parts.items()}


def unzipped(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a ZIP archive and of the archives in it."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            if name.endswith(".zip"):
                yield from unzipped(archive.read(name))
            elif not name.endswith("/"):
                yield name, archive.read(name)


def glove(sources: Sources) -> dict[str, bytes]:
    """Return the vectors of the most frequent words."""
    wanted = DATA["glove"].files["embeddings/glove.6B.50d.12k.txt"].lines
    # The file has 862 MB, so it is read line by line.
    with (
        zipfile.ZipFile(sources["glove.6B.zip"]) as archive,
        archive.open("glove.6B.50d.txt") as file,
    ):
        kept = list(itertools.islice(file, wanted))
    return {"embeddings/glove.6B.50d.12k.txt": b"".join(kept)}


NOUN = re.compile(r"[a-z][a-z'.-]*")


def wordnet(sources: Sources) -> dict[str, bytes]:
    """Return is-a edges between nouns of one word, by first senses, and their closure.

    If a synset has no such noun, its hypernyms take its place.
    """
    with tarfile.open(sources["WNdb-3.0.tar.gz"]) as archive:
        index, data = (archive.extractfile(f"dict/{n}.noun") for n in ("index", "data"))
        assert index is not None and data is not None
        senses = dict(map(first_sense, records_of(index.read())))
        synsets = dict(map(synset, records_of(data.read())))

    @cache
    def above(offset: str) -> dict[str, None]:
        """Return the nouns above a synset, in order."""
        found: dict[str, None] = {}
        for kind, hypernym in synsets[offset][1]:
            if kind != "@":
                continue
            nouns = [
                w for w in synsets[hypernym][0] if NOUN.fullmatch(w) and senses.get(w) == hypernym
            ]
            found |= dict.fromkeys(nouns[:1]) if nouns else above(hypernym)
        return found

    nouns = sorted(filter(NOUN.fullmatch, senses))
    parents = {noun: sorted(w for w in above(senses[noun]) if w != noun) for noun in nouns}

    @cache
    def ancestors(noun: str) -> frozenset[str]:
        return frozenset(parents[noun]).union(*map(ancestors, parents[noun]))

    return {
        "graph/wordnet_nouns.edges.tsv": pairs_of(parents),
        "graph/wordnet_nouns.closure.tsv": pairs_of({n: sorted(ancestors(n)) for n in nouns}),
    }


def records_of(data: bytes) -> list[list[str]]:
    """Return the fields of each line of a WordNet file, without licence and glosses."""
    lines = data.decode("ascii").splitlines()
    return [line.split("|")[0].split() for line in lines if not line.startswith("  ")]


def first_sense(fields: list[str]) -> tuple[str, str]:
    """Return the lemma and its most frequent synset of a line of index.noun."""
    return fields[0], fields[6 + int(fields[3])]


def synset(fields: list[str]) -> tuple[str, tuple[list[str], list[tuple[str, str]]]]:
    """Return the offset, the words, and the pointers, kind and offset, of a line of data.noun."""
    count = int(fields[3], 16)
    words = [word.lower() for word in fields[4 : 4 + 2 * count : 2]]
    pointers = fields[5 + 2 * count :]
    return fields[0], (words, list(zip(pointers[::4], pointers[1::4], strict=False)))


def pairs_of(above: Mapping[str, Iterable[str]]) -> bytes:
    return "".join(f"{low}\t{high}\n" for low, highs in above.items() for high in highs).encode()


# --- what there is

SENTENCES = ("TREC.train.all", "TREC.test.all", "rt-polarity.all", "custrev.all", "mpqa.all",
             "stsa.fine.train", "stsa.fine.test")  # fmt: skip
HARVARD = "https://raw.githubusercontent.com/harvardnlp/sent-conv-torch/master/data/"
SNIPS = (
    "https://raw.githubusercontent.com/sonos/nlu-benchmark/master/2017-06-custom-intent-engines/"
)

# fmt: off
DATA = {
    "sentiment": Data(
        "MR, CR, MPQA, SST-5, TREC (Kim 2014); research use",
        tuple(HARVARD + name for name in SENTENCES),
        sentiment, {
        "text/trec.train.txt": Made(
            5_452, "c8183fd8c2a5cc4a9a1c56548d7c6410a8b71ed7843df9ef1f0a05cd7cf2fb3e"),
        "text/trec.test.txt": Made(
            500, "92a6a3cede5678b447ef5f1d7ec474134fcda211e6590e6fa627b4a2c68e4566"),
        "text/sentiment/mr.jsonl.gz": Made(
            10_662, "a5c54c900698f17d2260bcfed223f7edb2e019c3ce32acd2a488e4a4f230e6cf"),
        "text/sentiment/cr.jsonl.gz": Made(
            3_771, "39cd64f17730e399c80f04e797cb301033d1ec7dd18180c008ed18898ec71f66"),
        "text/sentiment/mpqa.jsonl.gz": Made(
            10_603, "0b8c8f153e463d4407c639ea1f98da3d67777d0080aeafe9d9853aa3af6cad69"),
        "text/sentiment/sst5.train.jsonl.gz": Made(
            8_544, "da9036d851ae500f01cab36f8c12c02ba2b974c615b740b228edae11f648f24c"),
        "text/sentiment/sst5.test.jsonl.gz": Made(
            2_210, "91f22a8e900ec7250674b53f0447865fa51a9dd338172d2b511f733937c27444"),
    }),
    "snips": Data(
        "Snips NLU 2017-06; CC0",
        tuple(f"{SNIPS}{i}/{name.format(i)}" for i in INTENTS for name in SNIPS_FILES),
        snips, {
        "text/snips.train.jsonl": Made(
            13_784, "e580ac179af5df9dacfc97b9661a168d741a9e9c994fc82837b60fea846b32ca"),
        "text/snips.validate.jsonl": Made(
            700, "3b39fe2c23dc08cb46e033fef9ddc5f434dbc1c9e35e38a209cf33bb00aa6e48"),
    }),
    "wordnet": Data(
        "WordNet 3.0; its own licence",
        ("https://wordnetcode.princeton.edu/3.0/WNdb-3.0.tar.gz",),
        wordnet, {
        "graph/wordnet_nouns.edges.tsv": Made(
            53_362, "256f080f63d0cab0ec69f6689617ba89328ab9181182041c4ad1ff275c8fff9e"),
        "graph/wordnet_nouns.closure.tsv": Made(
            235_803, "4755ef2df82445a8e64001aeaf19e02b1aa319a702df589ed965bee4bf196ec9"),
    }),
    "imdb": Data(
        "Maas et al. 2011; research use",
        ("https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",),
        imdb, {
        "text/imdb.train.jsonl.gz": Made(20_000),
        "text/imdb.val.jsonl.gz": Made(5_000),
        "text/imdb.test.jsonl.gz": Made(25_000),
    }),
    "reuters": Data(
        "Reuter_50_50; CC BY 4.0",
        ("https://archive.ics.uci.edu/static/public/217/reuter+50+50.zip",),
        reuters, {
        "text/reuters_c50.train.jsonl.gz": Made(2_500),
        "text/reuters_c50.test.jsonl.gz": Made(2_500),
    }),
    "glove": Data(
        "GloVe 6B; PDDL 1.0",
        ("https://downloads.cs.stanford.edu/nlp/data/glove.6B.zip",),
        glove, {"embeddings/glove.6B.50d.12k.txt": Made(12_691)}),
}
# fmt: on


# --- the command


def name_of(url: str) -> str:
    return url.rpartition("/")[2]


def write(path: Path, data: bytes) -> None:
    """Write a file atomically; a .gz is compressed reproducibly."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".tmp")
    beside.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    beside.replace(path)


def fetch(url: str, folder: Path) -> Path:
    """Download a file, unless it exists."""
    path = folder / name_of(url)
    if not path.exists():
        print(f"fetching {url}", file=sys.stderr)
        folder.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(path.name + ".tmp")
        with urllib.request.urlopen(url, timeout=60) as answer, beside.open("wb") as out:
            while block := answer.read(1 << 20):
                out.write(block)
        beside.replace(path)
    return path


def check(name: str, data: bytes, made: Made) -> None:
    """Refuse a file that does not meet its requirements."""
    lines = data.split(b"\n")
    if lines.pop() or len(lines) != made.lines:
        raise DataError(f"{name}: {len(lines):,} lines, not {made.lines:,}")
    if made.sha256 and hashlib.sha256(data).hexdigest() != made.sha256:
        raise DataError(f"{name}: not the file that was measured on (its SHA-256 differs)")


def make(name: str, folder: Path) -> None:
    """Fetch, convert and check, and only then write files."""
    one = DATA[name]
    print(f"{name}: {one.about}", file=sys.stderr)
    made = one.convert({name_of(url): fetch(url, folder / "downloads") for url in one.urls})
    for path, wanted in one.files.items():
        check(path, made[path], wanted)
    for path in one.files:
        write(folder / path, made[path])
        print(f"{folder / path}: {one.files[path].lines:,} lines")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    # No default: argparse would look for the empty list among the choices.
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*DATA, []],
                        help=f"of {', '.join(DATA)}")  # fmt: skip
    parser.add_argument("--to", type=Path, default=SHARED, metavar="FOLDER")
    args = parser.parse_args()
    failed = False
    for name in args.names or DATA:
        try:
            make(name, args.to)
        except (DataError, OSError, EOFError, KeyError, ValueError, tarfile.TarError,
                zipfile.BadZipFile) as e:  # fmt: skip
            print(f"{name}: {type(e).__name__}: {e}", file=sys.stderr)
            failed = True
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
