"""Make python/fastdx/channel/nouns.tsv.gz: common nouns with their hypernyms, from WordNet.

    python tools/build_hierarchy.py DICT wordnet_nouns.edges.tsv words_by_frequency.txt OUT

DICT is the folder of WordNet 3.0's database (`cntlist.rev`, `noun.exc`); the edges are those of
tools/fetch_data.py: noun TAB hypernym, by first senses. The script keeps the words of the list that
are nouns or plurals of nouns, and all their hypernyms. Each line has a word, the probability that
the word is meant in the sense of the edges, and the word's hypernyms. For a plural it has '=' and
the singular instead of hypernyms.

The probability comes from the counts of the word's senses in WordNet's tagged texts, over all parts
of speech, with 1/2 added to each count. Letters and words of the closed classes are left out.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

from fetch_data import first_sense, records_of, synset

from fastdx.bags import STOP_WORDS

CLOSED = STOP_WORDS | frozenset(
    """us may might must shall will can could one ones like ago yet even well still ever never may
    yes okay hey please thanks got gonna anything something nothing everything someone anyone
    everyone nobody anybody somebody everybody mine thing things lot lots kind sort bit any every
    since till whose within without upon amid per via""".split()  # noqa: SIM905
)
NOUN = 1
RULES = (("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man"),
         ("ies", "y"), ("s", ""))  # fmt: skip
"""The endings of plurals and singulars in WordNet's own `morphy`."""


def senses(dictionary: Path) -> dict[str, float]:
    """Return the probability that each noun is meant in its first sense."""
    first: Counter[str] = Counter()
    every: defaultdict[str, float] = defaultdict(float)
    listed: defaultdict[str, int] = defaultdict(int)
    for part in ("noun", "verb", "adj", "adv"):
        for line in (dictionary / f"index.{part}").read_text("latin-1").splitlines():
            if not line.startswith(" "):
                lemma, _, count = line.split()[:3]
                listed[lemma] += int(count)
    for line in (dictionary / "cntlist.rev").read_text("latin-1").splitlines():
        key, number, count = line.split()
        lemma, rest = key.split("%")
        every[lemma] += int(count)
        if int(rest[0]) == NOUN and number == "1":
            first[lemma] += int(count)
    return {lemma: (first[lemma] + 0.5) / (every[lemma] + 0.5 * n) for lemma, n in listed.items()}


def named(dictionary: Path, nouns: set[str]) -> dict[str, list[str]]:
    """Return the hypernyms of names, which the edges lack: `london` is an instance of a capital.

    If a synset has no noun of the edges, its hypernyms are taken instead.
    """
    first = dict(map(first_sense, records_of((dictionary / "index.noun").read_bytes())))
    synsets = dict(map(synset, records_of((dictionary / "data.noun").read_bytes())))

    def above(offset: str, wanted: str) -> list[str]:
        ups = [up for kind, up in synsets[offset][1] if kind == wanted]
        return [noun for up in ups for noun in names(up)]

    def names(offset: str) -> list[str]:
        own = [w for w in synsets[offset][0] if w in nouns and first.get(w) == offset]
        return own[:1] or above(offset, "@")

    return {word: list(dict.fromkeys(above(offset, "@i")))
            for word, offset in first.items() if word not in nouns}  # fmt: skip


def singular(word: str, nouns: set[str], irregular: dict[str, str]) -> str | None:
    """Return the noun of which a word is the plural."""
    if word in irregular:
        return irregular[word] if irregular[word] in nouns else None
    for ending, end in RULES:
        if word.endswith(ending) and word[: -len(ending)] + end in nouns and len(word) > 3:
            return word[: -len(ending)] + end
    return None


def main() -> None:
    dictionary, edges, frequent, out = map(Path, sys.argv[1:])
    parents: defaultdict[str, list[str]] = defaultdict(list)
    for line in edges.read_text("utf-8").splitlines():
        child, parent = line.split("\t")
        parents[child].append(parent)
    nouns = set(parents) | {p for above in parents.values() for p in above}
    likely = senses(dictionary)
    exceptions = (dictionary / "noun.exc").read_text("latin-1").splitlines()
    irregular = dict(line.split()[:2] for line in exceptions)
    instances = named(dictionary, nouns)
    lines: dict[str, tuple[float, list[str]]] = {}

    def add(word: str, weight: float, above: list[str]) -> None:
        if word in lines:
            return
        lines[word] = weight, above
        for parent in above:
            add(parent, 0.0 if parent in CLOSED else likely.get(parent, 1.0), parents[parent])

    for word in frequent.read_text("utf-8").split("\n"):
        if not re.fullmatch(r"[a-z]{3,}", word) or word in CLOSED:
            continue
        one = None if word in nouns else singular(word, nouns, irregular)
        if instances.get(word):
            add(word, likely.get(word, 1.0), instances[word])
        elif word in nouns:
            add(word, likely.get(word, 1.0), parents[word])
        elif one is not None and one not in CLOSED:
            lines[word] = likely.get(one, 1.0), [f"={one}"]
            add(one, likely.get(one, 1.0), parents[one])
    text = "".join(f"{word}\t{weight:.3f}\t{' '.join(above)}\n"
                   for word, (weight, above) in sorted(lines.items()))  # fmt: skip
    out.write_bytes(gzip.compress(text.encode("utf-8"), mtime=0))
    print(f"{out}: {len(lines):,} nouns, {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
