"""A table of a paper, measured and published side by side: as Markdown, JSON and a picture."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

import fastdx
from experiments.cache import kept
from experiments.data import Source
from fastdx.lab.evaluation import Interval

SEED = 20


@dataclass(frozen=True)
class Line:
    """A line of the picture: numbers over ε, with a band where they are intervals."""

    x: list[float] = field(default_factory=list)
    y: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    published: bool = False


@dataclass
class Table:
    """The result of an experiment."""

    title: str
    header: list[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lines: dict[str, Line] = field(default_factory=dict)
    xlabel: str = "ε per unit of distance"
    ylabel: str = ""
    logarithmic: bool = False
    picture_alone: bool = False
    """Whether a page has the picture in the place of the rows."""

    def add(self, *cells: object) -> None:
        self.rows.append([*map(str, cells)])

    def point(self, name: str, x: float, y: Interval | float) -> None:
        """Continue a line, or begin it."""
        line = self.lines.setdefault(name, Line())
        line.x.append(x)
        line.y.append(y.mean if isinstance(y, Interval) else y)
        if isinstance(y, Interval):
            line.low.append(y.low)
            line.high.append(y.high)

    def published(self, name: str, points: dict[float, float]) -> None:
        self.lines[name] = Line(list(points), list(points.values()), published=True)

    def markdown(self, *, rows: bool = True) -> str:
        head = [f"**{self.title}**"]
        if rows:
            head += ["", "| " + " | ".join(self.header) + " |", "|" + "---|" * len(self.header)]
            head += ["| " + " | ".join(row) + " |" for row in self.rows]
        notes = [line for note in self.notes for line in ("", note)]
        return "\n".join([*head, *notes])

    def draw(self, path: Path) -> None:
        """Write the picture; nothing where there is no line to draw."""
        if not self.lines:
            return
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        matplotlib.rcParams["svg.hashsalt"] = "fastdx"
        figure, axes = pyplot.subplots(figsize=(7, 4.2))
        for name, line in self.lines.items():
            if line.published:
                axes.plot(line.x, line.y, "x", markersize=9, markeredgewidth=2, color="black",
                          label=name)  # fmt: skip
                continue
            (drawn,) = axes.plot(line.x, line.y, "o-", markersize=4, label=name)
            if line.low:
                axes.fill_between(line.x, line.low, line.high, alpha=0.2, color=drawn.get_color())
        axes.set(xlabel=self.xlabel, ylabel=self.ylabel, title=self.title.split(":")[0])
        if self.logarithmic:
            axes.set_xscale("log")
        axes.legend(fontsize="small")
        figure.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        pyplot.close(figure)


@dataclass
class Run:
    """The input of an experiment: data, how much to do, where steps are kept."""

    data: Source
    paper: str
    quick: bool = False
    folder: Path | None = None
    seconds: float = 0.0

    def of(self, full: Any, quick: Any) -> Any:
        """The first, or the second where it shall be quick."""
        return quick if self.quick else full

    def step(self, make: Callable[[], Any], *parts: Any, code: str = "") -> Any:
        """Do a step, or take what was kept of it; count the time that it took when it was done.

        Steps of one `code` are shared: by default those of the paper.
        """

        def timed() -> dict[str, Any]:
            print(f"  {' '.join(map(str, parts))}", file=sys.stderr, flush=True)
            start = time.perf_counter()
            found = make()
            return {"found": found, "seconds": time.perf_counter() - start}

        done = kept(self.folder, timed, code or self.paper, *parts, self.quick, self.data.made_up)
        self.seconds += done["seconds"]
        return done["found"]

    def ask(self, make: Callable[..., Any], *asked: Any, code: str = "") -> Any:
        """Do a step that reads the data, and what is asked."""
        return self.step(partial(make, self.data, *asked), make.__name__, *asked, code=code)

    def provenance(self) -> str:
        """Seeds, versions and time of what was run."""
        quick = ", `--quick`: figures of a small part" if self.quick else ""
        sample = ". MADE-UP TEXTS: these figures say nothing of the paper" * self.data.made_up
        return (f"Seed {SEED}; fastdx {fastdx.__version__}, Python {platform.python_version()}, "
                f"numpy {np.__version__}, scikit-learn {sklearn.__version__}; computed in "
                f"{self.seconds:.0f} s{quick}{sample}.")  # fmt: skip


Experiment = Callable[[Run], Table]
