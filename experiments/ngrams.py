"""Exact n-grams as attackers, on many sentences, at equal bits a word.

    python -m experiments.ngrams measure FOLDER    40 minutes; goes on where it was stopped
    python -m experiments.ngrams keep FOLDER       experiments/results/ngrams.json
    python -m experiments ngrams                   the table, from what was kept

Sentences, policies and models are those of `experiments.language_model`, at most bits. No neural
model takes part, so a thousand sentences take minutes, and intervals are narrow.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.data import Shared
from experiments.language_model import (
    HELD_OUT,
    POLICIES,
    Knowledge,
    Policy,
    Released,
    published,
    share_named,
)
from experiments.tables import Experiment, Run, Table

KEPT = Path(__file__).parent / "results" / "ngrams.json"
MEASURED = "ngrams.jsonl"
MOST = max(policy.bits for policy in POLICIES)
SENTENCES = 1000
ORDERS = ("unigram", "bigram", "trigram")
COLUMNS = ("sentence", "content", *ORDERS)


def attack(know: Knowledge, released: Released, i: int) -> dict[str, int]:
    """Count the content words of a sentence that n-grams name, by order."""
    words = np.array(know.attacked[i].words)
    (places,) = np.nonzero(know.content[words])
    found = {"sentence": i, "content": len(places)}
    for order, name in enumerate(ORDERS, 1):
        posterior = released.exact(know, i, order)
        likeliest = [np.where(know.content, posterior.marginals(place), -1.0).argmax()
                     for place in places.tolist()]  # fmt: skip
        found[name] = int((np.array(likeliest, dtype=np.int64) == words[places]).sum())
    return found


def lines(folder: Path) -> list[dict[str, Any]]:
    path = folder / MEASURED
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if (
        path.exists()) else []  # fmt: skip


def measure(folder: Path, know: Knowledge, count: int = SENTENCES) -> None:
    """Attack sentence by sentence under all policies, from where an earlier run stopped."""
    folder.mkdir(parents=True, exist_ok=True)
    done = {(line["sentence"], line["policy"]) for line in lines(folder)}
    epsilon = published()["epsilon"]
    every = [Released.of(know, policy, epsilon[str(policy)], HELD_OUT + count)
             for policy in POLICIES if policy.bits == MOST]  # fmt: skip
    with (folder / MEASURED).open("a", encoding="utf-8") as out:
        for i in range(HELD_OUT, HELD_OUT + count):
            for released in every:
                if (i, str(released.policy)) not in done:
                    line = {"policy": str(released.policy), **attack(know, released, i)}
                    print(json.dumps(line), file=out, flush=True)


def keep(folder: Path, path: Path = KEPT) -> None:
    """Write the counts to the file that the table is made from. It holds no text."""
    found: dict[str, list[list[int]]] = {}
    for line in lines(folder):
        found.setdefault(line["policy"], []).append([line[c] for c in COLUMNS])
    rows = ",\n".join(f" {json.dumps(p)}: {json.dumps(sorted(r))}" for p, r in found.items())
    path.write_text(f'{{"columns": {json.dumps(COLUMNS)}, "attacks": {{\n{rows}}}}}\n', "utf-8")


def stand_in(run: Run) -> dict[str, Any]:
    """Attack made-up texts."""
    know = Knowledge(run.data, 500)
    found: dict[str, Any] = {"columns": COLUMNS, "attacks": {}}
    for policy in (Policy(None, 2.0), Policy(20, 2.0)):
        released = Released.of(know, policy, know.epsilon(policy), 10)
        rows = [attack(know, released, i) for i in range(10)]
        found["attacks"][str(policy)] = [[row[c] for c in COLUMNS] for row in rows]
    return found


def named(run: Run) -> Table:
    """The share of content words that exact n-grams name, at equal bits."""
    kept: dict[str, Any]
    if run.data.made_up:
        kept = run.step(partial(stand_in, run))
    else:
        kept = json.loads(KEPT.read_text("utf-8"))
    table = Table(
        "Content words named by exact n-grams, at equal bits a word",
        ["policy", "sentences", "content words", "one by one", "bigrams", "trigrams",
         "trigrams - bigrams"],
    )  # fmt: skip
    for policy, rows in kept["attacks"].items():
        data = dict(zip(kept["columns"], np.array(rows, dtype=float).T, strict=True))
        content = data["content"]
        shares = [share_named(data[name], content) for name in ORDERS]
        shares.append(share_named(data["trigram"] - data["bigram"], content))
        shown = [f"{x.mean:.3f} [{x.low:.3f}, {x.high:.3f}]" for x in shares]
        table.add(policy, f"{len(rows):,}", f"{content.sum():,.0f}", *shown)
    table.notes.append(
        "The sentences and releases of the table above, and more of them: one of each review, 95% "
        "intervals with sentences as the unit; the difference is paired."
    )
    return table


TABLES: dict[str, Experiment] = {"exact": named}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("measure", "keep"))
    parser.add_argument("folder", type=Path, help="where a run keeps its counts")
    parser.add_argument("--sentences", type=int, default=SENTENCES)
    args = parser.parse_args()
    if args.step == "keep":
        if not lines(args.folder):
            raise SystemExit(f"{args.folder / MEASURED} holds no attack: measure first")
        keep(args.folder)
    else:
        measure(args.folder, Knowledge(Shared()), args.sentences)


if __name__ == "__main__":
    main()
