"""The papers' experiments, on made-up texts; and that what they print is what they measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from experiments import cache, data, tables
from experiments.__main__ import PAPERS

ROOT = Path(__file__).resolve().parents[2]


def run(paper: str, folder: Path | None = None) -> tables.Run:
    return tables.Run(data.Sample(), paper, quick=True, folder=folder)


@pytest.mark.parametrize(
    ("paper", "table"), [(name, t) for name, paper in PAPERS.items() for t in paper.TABLES]
)
def test_every_table_is_made(paper: str, table: str, tmp_path: Path) -> None:
    done = run(paper)
    made = PAPERS[paper].TABLES[table](done)
    assert made.rows and all(len(row) == len(made.header) for row in made.rows)
    text = made.markdown()
    assert text.count("\n|") == len(made.rows) + 2 and "nan" not in text
    assert "say nothing of the paper" in done.provenance() and done.seconds > 0
    picture = tmp_path / "p.svg"
    made.draw(picture)
    assert picture.exists() == bool(made.lines)


def test_steps_are_kept_under_what_they_come_from(tmp_path: Path) -> None:
    calls = []

    def step() -> dict[str, int]:
        calls.append(1)
        return {"found": len(calls)}

    first = run("wsdm20", tmp_path)
    assert first.step(step, "a", 1) == first.step(step, "a", 1) == {"found": 1}
    assert first.step(step, "a", 2) == {"found": 2}
    assert run("icdm19", tmp_path).step(step, "a", 1) == {"found": 3}  # of other code
    assert run("wsdm20").step(step, "a", 1) == {"found": 4}  # nothing kept
    again = run("wsdm20", tmp_path)
    assert again.step(step, "a", 1) == {"found": 1} and again.seconds > 0
    assert len(list(tmp_path.iterdir())) == 3 and len(calls) == 4
    assert cache.fingerprint("wsdm20", 1) != cache.fingerprint("wsdm20", 2)


def test_the_runner(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "experiments", "wsdm20", "--table", "fig2", "--quick",
               "--sample", "--fresh", "--json", str(tmp_path / "t.json"),
               "--pictures", str(tmp_path)]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "| ε | words |" in done.stdout and "wsdm20-fig2.svg" in done.stdout
    found = json.loads((tmp_path / "t.json").read_text("utf-8"))
    assert list(found) == ["wsdm20 fig2"] and (tmp_path / "wsdm20-fig2.svg").exists()
    wrong = subprocess.run([sys.executable, "-m", "experiments", "kdd99"], cwd=ROOT,
                           capture_output=True, text=True, check=False)  # fmt: skip
    assert wrong.returncode == 2 and "kdd99" in wrong.stderr


def test_missing_data_are_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"imdb\.\{train,val,test\}"):
        data.Shared(tmp_path / "nowhere")


def test_samples_have_the_form_of_the_data(shared: Path) -> None:
    real, made = data.Shared(shared), data.Sample()
    for name in ("mr", "sst5", "trec"):
        (first, second), (other, other_second) = real.sentences(name), made.sentences(name)
        assert (second is None) == (other_second is None)
        assert len(set(first.labels)) == len(set(other.labels))
    assert {*real.imdb("val").labels} == {*made.imdb("val").labels} == {"neg", "pos"}
    assert len(set(real.mails("small", "train").labels)) == 26
    assert len(set(real.news("train").labels)) == 50
    assert len(set(real.snips("validate").labels)) == 7
