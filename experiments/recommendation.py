"""The recommended policy, chosen from what was measured of many; never by hand.

    python -m experiments.recommendation [--draws 10] [BASE:COVER:EPSILON …]
        measures policies, by default all of the grid, and adds them to results/recommendation.json:
        hours each; goes on where it was stopped
    python -m experiments recommendation [--table summary|choice|consequences]     from that file

The recommended policy has the most use among those that give away no more than the one before
(`BEFORE`), within the intervals, by every one of: content words named (each task), rare words named
(each task), authors (learned from private texts, and from clear ones); and whose worst word stays
unchanged at most .25 of the time; on at least two of three spaces. Of equal use, within the
intervals, that of which the fewest content words are named.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tools.figures import commit, machine

from experiments import keeps
from experiments.cache import FOLDER
from experiments.data import Shared
from experiments.measures import Numbers, by_texts
from experiments.policies import BANDS, BEFORE, QUICK, SPACES, TASKS, Cell, Policy, Size, unit
from experiments.tables import Experiment, Run, Table
from fastdx.exceptions import FastdxWarning
from fastdx.lab.evaluation import over_trials

DRAWS = 10
ORDER = (
    ("rank", 0, (2.6, 2.8, 3.0)), ("frequency", 0, (2.2, 2.8, 3.2)),
    ("uniform", 0, (2.4, 2.66, 3.0)),
    ("frequency", 10, (2.4, 2.8, 3.2)), ("rank", 10, (2.2, 2.4, 2.8)), ("rank", 0, (2.2, 2.4, 3.2)),
    ("uniform", 10, (2.0, 2.4)), ("uniform", 40, (2.0, 2.66)), ("frequency", 40, (2.0, 2.4, 2.8)),
    ("rank", 40, (2.0, 2.4, 2.8)), ("frequency", 0, (2.4, 3.0, 3.6)), ("uniform", 0, (2.0, 2.2)),
)  # fmt: skip
GRID = (BEFORE, *(Policy(base, k, epsilon) for base, k, every in ORDER for epsilon in every))
"""The policies, in the order in which they are measured."""
KEPT = Path(__file__).parent / "results" / "recommendation.json"
ENOUGH = 5
"""Draws whose interval can make use equal."""
WORST = 0.25
"""The worst word stays unchanged at most this often."""
FEWEST = 30
"""Words of a kind below which a share of them is not shown, and decides nothing."""
KINDS = ("function", "content", "rare", "names")
HOW = ("private", "clear")
"""The texts that an attacker of authors learns from."""
Row = dict[str, Any]
"""All that is shown of a policy on a space."""
Rows = dict[str, Row]


class Leak(NamedTuple):
    """What an attacker finds in each text, the mean of the draws, of how much."""

    found: Numbers
    of: Numbers

    def share(self) -> list[float]:
        """Of all, and its 95% interval."""
        share, half = by_texts(self.found, self.of)
        return [share, share - half, share + half]

    def more(self, other: Leak) -> list[float]:
        """How much more than another policy's, text by text."""
        return Leak(self.found - other.found, self.of).share()


class Found(NamedTuple):
    """A policy's steps."""

    clear: dict[str, list[float]]
    law: dict[str, Any]
    draws: list[dict[tuple[Any, ...], Any]]

    def chains(self, task: str, band: str) -> list[Leak]:
        """What chains of each order name; only the first draw has function words."""
        attacks = [draw["attack", task].get(band) for draw in self.draws]
        of, *named = np.mean([x for x in attacks if x], axis=0)
        return [Leak(some, of) for some in named]

    def strongest(self, task: str, band: str) -> Leak:
        return max(self.chains(task, band), key=lambda leak: float(leak.found.sum()))

    def leaks(self) -> dict[str, Leak]:
        """The measures that judge a policy."""
        every = {f"{band}, {task}": self.strongest(task, band)
                 for band in ("content", "rare") for task in TASKS}  # fmt: skip
        found = {name: leak for name, leak in every.items() if leak.of.sum() >= FEWEST}
        for i, how in enumerate(HOW):
            right = np.mean([draw["authors",][i] for draw in self.draws], axis=0)
            found[f"authors, {how}"] = Leak(right, np.ones(len(right)))
        return found

    def named(self) -> dict[str, float]:
        """The shares of words that chains name in all tasks together, by kind of word."""
        leaks = {kind: [self.strongest(task, kind) for task in TASKS] for kind in KINDS}
        sums = {kind: np.sum([(x.found.sum(), x.of.sum()) for x in some], axis=0)
                for kind, some in leaks.items()}  # fmt: skip
        return {kind: float(found / of) for kind, (found, of) in sums.items() if of >= FEWEST}

    def use(self) -> Numbers:
        """Accuracies on plain and private texts: shape (draws, tasks, 2)."""
        return np.array([[draw["use", task] for task in TASKS] for draw in self.draws])

    def score(self) -> list[float]:
        """The kept share of the accuracy above chance, the mean of all tasks and both uses."""
        clear, chance = np.array([self.clear[task] for task in TASKS]).T[:, :, None]
        scores = ((self.use() - chance) / (clear - chance)).mean(axis=(1, 2)).tolist()
        if len(scores) == 1:
            return [*scores, *scores, *scores]
        interval = over_trials(scores)
        return [interval.mean, interval.low, interval.high]

    def row(self, policy: Policy, before: Found) -> Row:
        leaks, others = self.leaks(), before.leaks()
        use = self.use().mean(axis=0).tolist()
        return {
            "policy": policy, "draws": len(self.draws), "law": self.law, "named": self.named(),
            "plain": {task: self.clear[task][0] for task in TASKS},
            "score": self.score(), "use": dict(zip(TASKS, use, strict=True)),
            "chains": {task: [leak.share()[0] for leak in self.chains(task, "content")]
                       for task in TASKS},
            "leaks": {name: {"share": leak.share(), "more": leak.more(others[name])}
                      for name, leak in leaks.items()},
        }  # fmt: skip


def rows_of(cells: Iterable[Cell], draws: int) -> Rows:
    """Return a row for each policy; the first is the one before."""
    found = {cell.policy: Found(*cell.measured(draws)) for cell in cells}
    before = next(iter(found.values()))
    return {str(policy): some.row(policy, before) for policy, some in found.items()}


def faults(row: Row) -> list[str]:
    """Return by what a policy gives away more than the one before: an interval above 0."""
    found = [name for name, leak in row["leaks"].items() if leak["more"][1] > 0]
    return found + ["worst word"] * (row["law"]["worst"] > WORST)


def winner(rows: Rows) -> str | None:
    """Return the policy of most use among those without a fault.

    Use that differs by less than its interval, over enough draws, is equal: of such policies the
    one of whose content words the fewest are named.
    """
    sound = [name for name, row in rows.items() if not faults(row)]
    if not sound:
        return None
    best = max(sound, key=lambda name: rows[name]["score"][0])
    most = rows[best]["score"][0]
    equal = [name for name in sound
             if rows[name]["score"][2] >= most and rows[name]["draws"] >= ENOUGH]  # fmt: skip
    return min([best, *equal], key=lambda name: rows[name]["named"]["content"])


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
        return json.loads(KEPT.read_text("utf-8"))
    spaces = {space: rows_of([Cell(run, space, p, QUICK) for p in GRID[:2]], 2)
              for space in SPACES[:2]}  # fmt: skip
    return {"spaces": spaces, "stamps": ["commit none, a small part"]}


def _measured_at(stamps: list[str]) -> str:
    """The commits, and the machines, of all rows."""
    commits, machines = zip(*(stamp.split(", ", 1) for stamp in stamps), strict=True)
    short = ", ".join(text.removeprefix("commit ") for text in commits)
    return f"Measured at {short}; {'; '.join(dict.fromkeys(machines))}."


def _numbers(x: Iterable[float]) -> str:
    return " ".join(f"{v:.2f}".replace("0.", ".", 1) for v in x)


def _table(
    run: Run,
    title: str,
    header: list[str],
    cells: Callable[[Row], list[str]],
    only: Sequence[str] | None = None,
) -> Table:
    """A row for each policy, or those named, on each space, most use first."""
    kept = _kept(run)
    table = Table(title, ["space", "base, cover, ε", *header])
    for space, rows in kept["spaces"].items():
        for name in sorted(rows, key=lambda name: -rows[name]["score"][0]):
            shown = f"**{name}**" if name == winner(rows) else name
            if only is None or name in only:
                table.add(space, shown, *cells(rows[name]))
    table.notes += [f"{_measured_at(kept['stamps'])}"]
    return table


def _more(faults: Iterable[str]) -> str:
    """Measures by kind: a kind alone has more in all its tasks, or for both attackers."""
    kinds: dict[str, list[str]] = {}
    for fault in faults:
        kind, _, task = fault.partition(", ")
        kinds.setdefault(kind, []).append(task)
    every = {"content": len(TASKS), "rare": len(TASKS), "authors": len(HOW), "worst word": 1}
    shown = (kind if len(tasks) == every[kind] else f"{kind} ({', '.join(tasks)})"
             for kind, tasks in kinds.items())  # fmt: skip
    return f"more: {', '.join(shown)}" if kinds else "no more"


def choice(run: Run) -> Table:
    """All policies, what each gives away, and why it lost."""

    def cells(row: Row) -> list[str]:
        shares = {name: leak["share"][0] for name, leak in row["leaks"].items()}
        form = "{:.2f} ({:.2f} to {:.2f})" if row["draws"] > 1 else "{:.2f}"
        score = form.format(*row["score"])
        shown = [_numbers(v for name, v in shares.items() if name.startswith(kind))
                 for kind in ("content", "rare", "authors")]  # fmt: skip
        law = row["law"]
        return [score, *shown, _numbers([law["worst"]]), _numbers([law["names"]]),
                f"{row['draws']}", _more(faults(row))]  # fmt: skip

    table = _table(
        run, "The recommendation, and what lost",
        ["use", f"content words named ({', '.join(TASKS)})", "rare ones", "authors (both ways)",
         "worst word unchanged", "names unchanged", "draws", "than before"], cells,
    )  # fmt: skip
    table.notes.insert(0, _told(_kept(run)))
    table.notes.append(
        "*Use*: what classifiers that learned from private texts keep of the accuracy above chance "
        "of those that learned from plain ones, on plain and on private texts, mean of four tasks; "
        "95% over draws. *Named*: by the strongest of exact unigrams, bigrams and trigrams that "
        f"learned from such texts; rare: beyond rank {Size().rare:,} (fewer than {FEWEST} words "
        "are left out). *Authors*: Reuters C50, a linear SVM on TF-IDF of words that learned "
        "from private texts, or from clear ones. *More*: the 95% interval over texts of the "
        f"paired difference from {BEFORE}, recommended before, lies above 0. ε is in the unit of "
        "the built-in words. Bases: frequency, counts of IMDB's training reviews, which no task "
        "has; rank, 1/(rank + 2.7). Draws are not seeded: few of them make wide intervals, "
        "which acquit."
    )
    return table


def consequences(run: Run) -> Table:
    """Leakage by kinds of words, of the recommended policy and the one before."""
    best = recommended(_kept(run)["spaces"])

    def cells(row: Row) -> list[str]:
        law, of = row["law"], row["law"]["bands"]
        named = [_numbers([row["named"][k]]) if k in row["named"] else "–" for k in KINDS]
        return [f"{law['bits']:.2f}", *(f"{of[b]['bits']:.2f}" for b in BANDS), *named,
                *(f"{of[b]['same']:.3f}" for b in BANDS), f"{law['names']:.3f}",
                f"{law['worst']:.2f} ({law['worst word']})"]  # fmt: skip

    table = _table(
        run, "Bits and words named, by kinds of words",
        ["bits", *(f"bits, {b}" for b in BANDS),
         *(f"named, {kind}" for kind in KINDS),
         *(f"unchanged, {b}" for b in (*BANDS, "names", "worst"))],
        cells, [str(policy) for policy in (best, BEFORE)],
    )  # fmt: skip
    table.notes.append(
        "Bits under the public frequencies. Content words named in all tasks together, each by the "
        "strongest of exact unigrams, bigrams and trigrams (function words: by bigrams). "
        "*Unchanged*: Pr[w → w], the mean over words of a kind."
    )
    return table


def summary(run: Run) -> Table:
    """Accuracies and words named under the recommended policy, on the built-in words."""
    kept = _kept(run)
    rows = kept["spaces"]["builtin"]
    best = rows.get(str(recommended(kept["spaces"]) or "")) or next(iter(rows.values()))
    first = next(iter(rows.values()))
    table = Table("What the recommended policy keeps, and what it gives away", [
        "texts", "plain", "private", "an attacker names", "before: private", "named"])  # fmt: skip
    for task in TASKS:
        title = keeps.TASKS.get(task, "sentences of film reviews, good or bad (MR)")
        shown = [f"{best['plain'][task]:.2f}"]
        for row in (best, first):
            shown += [f"{row['use'][task][0]:.2f}", f"{max(row['chains'][task]):.1%}"]
        table.add(title, *shown)
    policy = Policy(*best["policy"])
    table.notes.append(
        "*Plain*, *private*: the accuracy of a classifier that learned from plain texts, or from "
        "private ones, on plain texts. *An attacker names*: of the content words of private texts, "
        "by the strongest of exact unigrams, bigrams and trigrams that learned from such texts. "
        f'Recommended: language="{policy.base}", ε = {policy.epsilon:g}, {best["draws"]} draws. '
        f"*Before*: {Policy(*first['policy'])}. {_measured_at(kept['stamps'])}"
    )
    return table


TABLES: dict[str, Experiment] = {
    "summary": summary, "choice": choice, "consequences": consequences,
}  # fmt: skip


def _policy(text: str) -> Policy:
    base, cover, epsilon = text.split(":")
    return Policy(base, int(cover), float(epsilon))


def main() -> None:
    warnings.simplefilter("ignore", FastdxWarning)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("policies", nargs="*", type=_policy, default=GRID, metavar="POLICY",
                        help="as frequency:0:3.2; by default all of the grid")  # fmt: skip
    parser.add_argument("--draws", type=int, default=DRAWS)
    args = parser.parse_args()
    run, size = Run(Shared(), "recommendation", folder=FOLDER), Size()
    kept = json.loads(KEPT.read_text("utf-8"))
    for space in SPACES:
        cells = [Cell(run, space, p, size) for p in dict.fromkeys((BEFORE, *args.policies))]
        kept["spaces"][space] |= rows_of(cells, args.draws)
        kept["units"][space] = unit(run.data, space, size.words)
        kept["stamps"] = sorted({*kept["stamps"], f"commit {commit()}, {machine()}"})
        text = json.dumps(json.loads(json.dumps(kept), parse_float=lambda x: round(float(x), 4)))
        # A line a policy.
        KEPT.write_text(text.replace('}, "', '},\n"') + "\n", "utf-8")


if __name__ == "__main__":
    main()
