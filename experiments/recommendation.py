"""The recommended policy, chosen from what was measured of many; never by hand.

    python -m experiments.recommendation measure [--spaces NAME …] [--draws 10] [--processes 2]
        [--only BASE:COVER:EPSILON …]     hours; goes on where it was stopped
    python -m experiments.recommendation keep          experiments/results/recommendation.json
    python -m experiments recommendation [--table choice|use|bands|full-size]    from that file

The recommended policy has the most use among those that give away no more than today's, within the
intervals, by every one of: content words named (each task), rare words named (each task), authors
(learned from private texts, and from clear ones); and whose worst word stays unchanged at most .25
of the time; on at least two of three spaces.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tools.figures import commit, machine

from experiments.cache import FOLDER
from experiments.data import Shared
from experiments.measures import Numbers
from experiments.policies import BANDS, QUICK, SPACES, TASKS, TODAY, Cell, Policy, Size, unit
from experiments.tables import Experiment, Run, Table
from fastdx.exceptions import FastdxWarning
from fastdx.lab.evaluation import over_trials

DRAWS = 10
GRID = (
    TODAY,
    *(Policy("frequency", 0, epsilon) for epsilon in (2.8, 3.2)),
    *(Policy("uniform", 0, epsilon) for epsilon in (2.4, 2.66, 3.0)),
    *(Policy("frequency", 0, epsilon) for epsilon in (3.0, 3.6)),
    *(Policy("frequency", 10, epsilon) for epsilon in (2.8, 3.2)),
    *(Policy("frequency", 40, epsilon) for epsilon in (2.4, 2.8)),
    *(Policy("uniform", 10, epsilon) for epsilon in (2.0, 2.4)),
    *(Policy("uniform", 40, epsilon) for epsilon in (2.0, 2.66)),
    *(Policy("frequency", 0, epsilon) for epsilon in (2.4, 2.6, 3.4)),
    *(Policy("uniform", 0, epsilon) for epsilon in (2.0, 2.25)),
    Policy("frequency", 10, 3.6),
    Policy("frequency", 40, 3.2),
)
"""The policies, in the order in which they are measured."""
KEPT = Path(__file__).parent / "results" / "recommendation.json"
WORST = 0.25
"""The worst word stays unchanged at most this often."""
FEWEST = 30
"""Words of a kind below which a share of them is not shown, and decides nothing."""
DESIGN = {
    Policy("uniform", 0, 2.4): ".05 → .18/.75 | .04 → .20/.30 | .09 .08 | .06, .22; .07",
    Policy("uniform", 0, 2.66): ".10 → .20/.83 | .05 → .21/.34 | .22 .14 | .11, .41; .14",
    Policy("uniform", 0, 3.0): ".17 → .31/.86 | .14 → .24/.38 | .40 .31 | .22, .69; .28",
    TODAY: ".13 → .23/.58 | .03 → .26/.34 | .09 .04 | .01, .02; .01",
    Policy("frequency", 0, 2.8): ".07 → .22/.76 | .02 → .27/.41 | .05 .04 | .01, .07; .02",
    Policy("frequency", 0, 3.2): ".10 → .30/.82 | .03 → .28/.44 | .10 .06 | .01, .18; .06",
    Policy("frequency", 0, 3.6): ".12 → .34/.86 | .07 → .27/.42 | .22 .13 | .03, .38; .13",
}  # fmt: skip
"""The first measurement (one draw, another classifier), beside which the same is measured again."""

Row = dict[str, Any]
"""All that is shown of a policy on a space."""
Rows = dict[str, Row]


class Leak(NamedTuple):
    """What an attacker finds in each text, the mean of the draws, of how much."""

    found: Numbers
    of: Numbers

    def share(self) -> list[float]:
        """Of all, and its 95% interval by texts: the words of a text are not independent."""
        total = max(self.of.sum(), 1.0)
        share = float(self.found.sum() / total)
        half = 1.96 * float(np.sqrt(((self.found - share * self.of) ** 2).sum())) / total
        return [share, share - half, share + half]

    def more(self, other: Leak) -> list[float]:
        """How much more than another policy's, text by text."""
        return Leak(self.found - other.found, self.of).share()


class Found(NamedTuple):
    """A policy's steps, with as many draws as are complete."""

    clear: dict[str, list[float]]
    law: dict[str, Any]
    draws: list[dict[tuple[Any, ...], Any]]

    @classmethod
    def of(cls, cell: Cell, draws: int, take: Callable[..., Any]) -> Found:
        """Take a step after the other; `take` returns None for one that is not there."""
        found = {step: take(cell, step, make) for step, make in cell.steps(draws)}
        by_draw = [{s[:-1]: found[s] for s in found if s[-1] == draw} for draw in range(draws)]
        complete = [some for some in by_draw if None not in some.values()]
        return cls({task: found["clear", task] for task in TASKS}, found["law",], complete)

    def chains(self, task: str, band: str) -> list[Leak]:
        """What chains of each order name."""
        attacks = [np.array(draw["attack", task][band], float) for draw in self.draws]
        of, *named = np.mean(attacks, axis=0)
        return [Leak(some, of) for some in named]

    def leaks(self) -> dict[str, Leak]:
        """What the recommendation is judged by; of chains the one that names most."""
        found = {}
        for band in ("content", "rare"):
            for task in TASKS:
                leak = max(self.chains(task, band), key=lambda leak: leak.found.sum())
                if leak.of.sum() >= FEWEST:
                    found[f"{band}, {task}"] = leak
        for i, how in enumerate(("private", "clear")):
            right = np.mean([draw["authors",][i] for draw in self.draws], axis=0)
            found[f"authors, {how}"] = Leak(right, np.ones(len(right)))
        return found

    def named(self) -> dict[str, float]:
        """The shares of words that chains name in all tasks together, by kind of word."""
        found = {}
        for band in ("function", "content", "rare", "names"):
            if band == "function":
                attacks = [self.draws[0]["attack", task][band] for task in TASKS]
                leaks = [Leak(np.array(x[1], float), np.array(x[0], float)) for x in attacks]
            else:
                leaks = [max(self.chains(task, band), key=lambda leak: leak.found.sum())
                         for task in TASKS]  # fmt: skip
            of = sum(leak.of.sum() for leak in leaks)
            if of >= FEWEST:
                found[band] = float(sum(leak.found.sum() for leak in leaks) / of)
        return found

    def use(self) -> Numbers:
        """Accuracies on plain and private texts: shape (draws, tasks, 2)."""
        return np.array([[draw["use", task] for task in TASKS] for draw in self.draws])

    def score(self) -> list[float]:
        """What is kept of the accuracy above chance, the mean of all tasks and both uses."""
        clear, chance = np.array([self.clear[task] for task in TASKS]).T[:, :, None]
        scores = ((self.use() - chance) / (clear - chance)).mean(axis=(1, 2)).tolist()
        if len(scores) == 1:
            return [*scores, *scores, *scores]
        interval = over_trials(scores)
        return [interval.mean, interval.low, interval.high]

    def row(self, policy: Policy, today: Found) -> Row:
        leaks, others = self.leaks(), today.leaks()
        use = self.use().mean(axis=0).tolist()
        return {
            "policy": policy, "draws": len(self.draws), "law": self.law, "named": self.named(),
            "score": self.score(), "use": dict(zip(TASKS, use, strict=True)),
            "chains": {task: [leak.share()[0] for leak in self.chains(task, "content")]
                       for task in TASKS},
            "leaks": {name: {"share": leak.share(), "more": leak.more(others[name])}
                      for name, leak in leaks.items()},
        }  # fmt: skip


def rows_of(cells: Iterable[Cell], draws: int, take: Callable[..., Any]) -> Rows:
    """Return a row for each policy of which a draw is complete: none without the first, today's."""
    rows: Rows = {}
    today = None
    for cell in cells:
        found = Found.of(cell, draws, take)
        today = today or found
        if today.draws and found.draws:
            rows[str(cell.policy)] = found.row(cell.policy, today)
    return rows


def faults(row: Row) -> list[str]:
    """Return by what a policy gives away more than today's: where the interval is above 0."""
    found = [name for name, leak in row["leaks"].items() if leak["more"][1] > 0]
    return found + ["worst word"] * (row["law"]["worst"] > WORST)


def winner(rows: Rows) -> str | None:
    """Return the policy of most use among those without a fault."""
    sound = [name for name, row in rows.items() if not faults(row)]
    return max(sound, key=lambda name: rows[name]["score"][0], default=None)


def recommended(spaces: Mapping[str, Rows]) -> Policy | None:
    """Return the policy whose base and cover win on two spaces, with the ε of the first of them."""
    won = [Policy(*rows[best]["policy"]) for rows in spaces.values() if (best := winner(rows))]
    return next((p for p in won if sum(p[:2] == other[:2] for other in won) >= 2), None)


def _told(kept: dict[str, Any]) -> str:
    best = recommended(kept["spaces"])
    won = "; ".join(f"{name}: {winner(rows) or 'none'}" for name, rows in kept["spaces"].items())
    said = f"{best}" if best else "none: no base and cover wins on two spaces"
    return f"Winners: {won}. **Recommended: {said}.**"


def _kept(run: Run) -> dict[str, Any]:
    if not (run.data.made_up or run.quick):
        found: dict[str, Any] = json.loads(KEPT.read_text("utf-8"))
        return found

    def take(cell: Cell, step: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        return cell.measure(step, make, run.folder)

    def made() -> dict[str, Any]:
        spaces = {space: rows_of([Cell(run.data, space, p, QUICK) for p in GRID[:2]], 2, take)
                  for space in SPACES[:2]}  # fmt: skip
        return {"spaces": spaces, "stamps": ["a small part"]}

    found = run.step(made)
    return found


def _numbers(x: Iterable[float]) -> str:
    return " ".join(f"{v:.2f}".replace("0.", ".", 1) for v in x)


def _table(run: Run, title: str, header: list[str], cells: Callable[[Row], list[str]]) -> Table:
    """A row for each policy on each space, most use first."""
    kept = _kept(run)
    table = Table(title, ["space", "base, cover, ε", *header])
    for space, rows in kept["spaces"].items():
        for row in sorted(rows.values(), key=lambda row: -row["score"][0]):
            table.add(space, str(Policy(*row["policy"])), *cells(row))
    table.notes += [_told(kept), f"Measured: {'; '.join(kept['stamps'])}."]
    return table


def choice(run: Run) -> Table:
    """All policies, what each gives away, and why it lost."""
    kept = _kept(run)
    best = {winner(rows): space for space, rows in kept["spaces"].items()}

    def cells(row: Row) -> list[str]:
        shares = {name: leak["share"][0] for name, leak in row["leaks"].items()}
        score = "{:.2f} ({:.2f} to {:.2f})".format(*row["score"])
        shown = [_numbers(v for name, v in shares.items() if name.startswith(kind))
                 for kind in ("content", "rare", "authors")]  # fmt: skip
        fault = ", ".join(faults(row))
        law = row["law"]
        return [score, *shown, _numbers([law["worst"]]), _numbers([law["names"]]),
                f"{row['draws']}", f"more: {fault}" if fault else "no more"]  # fmt: skip

    table = _table(
        run, "The recommendation, and what lost",
        ["use", f"content words named ({', '.join(TASKS)})", "rare ones", "authors (both ways)",
         "worst word unchanged", "names unchanged", "draws", "than today's"], cells,
    )  # fmt: skip
    won = {(space, name) for name, space in best.items()}
    for shown in table.rows:
        if (shown[0], shown[1]) in won:
            shown[1] = f"**{shown[1]}**"
    table.notes.append(
        "*Use*: what classifiers that learned from private texts keep of the accuracy above chance "
        "of those that learned from plain ones, on plain and on private texts, mean of four tasks; "
        "95% over draws. *Named*: by the strongest of exact unigrams, bigrams and trigrams that "
        f"learned from such texts; rare: beyond rank {Size().rare:,} (fewer than {FEWEST} words "
        "are left out). *Authors*: Reuters C50, a linear SVM on TF-IDF of words that learned "
        "from private texts, or from clear ones. *More*: the 95% interval over texts of the "
        "paired difference from today's lies above 0. ε is in the unit of the "
        "built-in words. Public frequencies: counts of IMDB's training reviews, which no task has. "
        "Draws are not seeded."
    )
    return table


def use(run: Run) -> Table:
    """Accuracies by task, private → private / private → plain; and chains of each order."""

    def cells(row: Row) -> list[str]:
        shown = [f"{private:.2f}/{plain:.2f}" for plain, private in row["use"].values()]
        return [*shown, *(_numbers(row["chains"][task]) for task in TASKS)]

    return _table(run, "Accuracy private → private / private → plain; content words named by "
                  "unigrams, bigrams, trigrams",
                  [*TASKS, *(f"named, {task}" for task in TASKS)], cells)  # fmt: skip


def bands(run: Run) -> Table:
    """Everything by kinds of words."""

    def cells(row: Row) -> list[str]:
        of = row["law"]["bands"]
        named = [_numbers([row["named"][b]]) if b in row["named"] else "–"
                 for b in ("function", "content", "rare", "names")]  # fmt: skip
        return [f"{row['law']['bits']:.2f}", *(f"{of[b]['bits']:.2f}" for b in BANDS), *named,
                *(f"{of[b]['same']:.3f}" for b in BANDS), f"{row['law']['names']:.3f}",
                f"{row['law']['worst']:.2f} ({row['law']['worst word']})"]  # fmt: skip

    return _table(
        run, "By kinds of words: bits, words named, and Pr[w → w]",
        ["bits", *(f"bits, {b}" for b in BANDS),
         *(f"named, {b}" for b in ("function", "content", "rare", "names")),
         *(f"unchanged, {b}" for b in (*BANDS, "names", "worst"))], cells,
    )  # fmt: skip


def full_size(run: Run) -> Table:
    """The first measurement and this one, on the built-in words."""
    rows = _kept(run)["spaces"]["builtin"]
    table = Table("Named by bigrams → use, private → private / plain: first measured, and here",
                  ["policy", "Snips", "TREC", "authors", "rare, worst; names"])  # fmt: skip
    for policy, first in DESIGN.items():
        if not (row := rows.get(str(policy))):
            continue
        law = row["law"]
        here = [f"{_numbers([row['chains'][task][1]])} → {_numbers([row['use'][task][1]])}/"
                f"{_numbers([row['use'][task][0]])}" for task in ("snips", "trec")]  # fmt: skip
        here.append(_numbers(row["leaks"][f"authors, {how}"]["share"][0]
                             for how in ("private", "clear")))  # fmt: skip
        here.append(f"{_numbers([law['bands']['rare']['same']])}, {_numbers([law['worst']])}; "
                    f"{_numbers([law['names']])}")  # fmt: skip
        shown = first.split(" | ")
        table.add(str(policy), *(f"{a} : {b}" for a, b in zip(shown, here, strict=True)))
    table.notes.append(
        "The first measurement judged by another classifier (its bag weighed more than its "
        "vectors) and found authors by words that were not weighed by their rarity."
    )
    return table


TABLES: dict[str, Experiment] = {
    "choice": choice, "use": use, "bands": bands, "full-size": full_size
}  # fmt: skip


def keep(draws: int, folder: Path = FOLDER, path: Path = KEPT) -> None:
    """Write what was measured beside what was kept before, and drop nothing."""
    source, size = Shared(), Size()

    def take(cell: Cell, step: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        return cell.measure(step, make, folder) if cell.is_kept(step, folder) else None

    kept = json.loads(path.read_text("utf-8")) if path.exists() else {"spaces": {}, "stamps": []}
    for space in SPACES:
        rows = rows_of([Cell(source, space, p, size) for p in GRID], draws, take)
        if rows:
            kept["spaces"][space] = {**kept["spaces"].get(space, {}), **rows}
            kept.setdefault("units", {})[space] = unit(source, space, size.words)
    kept["stamps"] = sorted({*kept["stamps"], f"commit {commit()}, {machine()}"})
    text = json.dumps(json.loads(json.dumps(kept), parse_float=lambda x: round(float(x), 4)))
    # A line a policy.
    path.write_text(text.replace('}, "', '},\n"') + "\n", "utf-8")


def _measured(space: str, policy: Policy, draws: int) -> str:
    """Measure what is not kept of a policy on a space; return how long it took."""
    warnings.simplefilter("ignore", FastdxWarning)
    start = time.perf_counter()
    cell = Cell(Shared(), space, policy, Size())
    for step, make in cell.steps(draws):
        if not cell.is_kept(step, FOLDER):
            cell.measure(step, make, FOLDER)
            print(f"  {space} {policy}: {step}", file=sys.stderr, flush=True)
    return f"{space}, {policy}: {time.perf_counter() - start:.0f} s"


def measure(spaces: Sequence[str], policies: Sequence[Policy], draws: int, processes: int) -> None:
    """Measure what is not kept, in at most two processes."""
    asked = [(space, policy, draws) for space in spaces for policy in policies]
    if processes == 1:
        for some in asked:
            print(_measured(*some), flush=True)
        return
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for said in pool.map(_measured, *zip(*asked, strict=True)):
            print(said, flush=True)


def _policy(text: str) -> Policy:
    base, cover, epsilon = text.split(":")
    return Policy(base, int(cover), float(epsilon))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("measure", "keep"))
    parser.add_argument("--spaces", nargs="+", default=SPACES, choices=SPACES)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--processes", type=int, default=2, choices=(1, 2))
    parser.add_argument("--only", nargs="+", type=_policy, default=GRID, metavar="POLICY",
                        help="as frequency:0:3.2; by default all of the grid")  # fmt: skip
    args = parser.parse_args()
    if args.step == "keep":
        keep(args.draws)
    else:
        measure(args.spaces, args.only, args.draws, args.processes)


if __name__ == "__main__":
    main()
