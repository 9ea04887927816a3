"""Ray Data against the real thing: actors, formats, failures, a killed worker."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install 'fastdx[ray]'")

import ray

import fastdx
from fastdx.ray import Privatizer, privatize
from helpers.swapped import SECRET, SWAPPED, TEXTS, WANTED


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(
        num_cpus=2, include_dashboard=False, object_store_memory=200 << 20, log_to_driver=False,
        logging_level="ERROR",
    )  # fmt: skip
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


def reviews() -> Any:
    return ray.data.from_items([{"id": i, "text": text} for i, text in enumerate(TEXTS)])


def texts(dataset: Any) -> list[str | None]:
    return [row["text"] for row in sorted(dataset.take_all(), key=lambda row: row["id"])]


def test_actors(swap: dict[str, Any]) -> None:
    assert texts(privatize(reviews(), "text", concurrency=2, **swap)) == WANTED


@pytest.mark.parametrize("kind", ["numpy", "pandas", "pyarrow"])
def test_formats(swap: dict[str, Any], kind: str) -> None:
    private = reviews().map_batches(
        Privatizer,
        fn_constructor_kwargs={"columns": "text", **swap},
        batch_format=kind,
        compute=ray.data.ActorPoolStrategy(size=1),
    )
    found = [None if pd.isna(text) else text for text in texts(private)]
    assert found == WANTED


def test_batches(swap: dict[str, Any]) -> None:
    private = Privatizer(["a", "b"], **swap)
    batch = {"a": np.array(["tea", None], dtype=object), "b": ["king", "queen"], "n": [1, 2]}
    new = private(batch)
    assert new["a"].tolist() == ["coffee", None] and new["b"] == ["queen", "king"]
    assert new["n"] is batch["n"] and batch["a"][0] == "tea"
    table = pa.table({"user": [{"a": "tea"}], "b": ["king"]})
    assert Privatizer("user.a", **swap)(table).to_pylist() == [
        {"user": {"a": "coffee"}, "b": "king"}
    ]


def test_actors_use_one_thread(swap: dict[str, Any]) -> None:
    class Looking(Privatizer):
        def __call__(self, batch: Any) -> Any:
            threads = os.environ.get("FASTDX_NUM_THREADS", "")
            return {**super().__call__(batch), "threads": [threads] * len(batch["text"])}

    looked = reviews().map_batches(
        Looking,
        fn_constructor_kwargs={"columns": "text", **swap},
        compute=ray.data.ActorPoolStrategy(size=1),
    )
    assert {row["threads"] for row in looked.take_all()} == {"1"}


def test_failures_show_no_text(swap: dict[str, Any], tmp_path: Path) -> None:
    given = ray.data.from_items([{"text": "tea"}] * 50 + [{"text": f"tea {SECRET}"}])
    private = privatize(given, "text", **{**swap, "oov": "error"})
    with pytest.raises(Exception, match="not in the vocabulary") as info:
        private.write_parquet(str(tmp_path / "out"))
    error: BaseException | None = info.value
    while error is not None:
        assert SECRET not in f"{error} {error!r} {getattr(error, 'word', '')}"
        error = error.__cause__
    # Ray does not undo what it has written; all of it is private.
    for path in (tmp_path / "out").rglob("*.parquet"):
        assert set(pq.read_table(path)["text"].to_pylist()) == {"coffee"}


def test_a_killed_actor_loses_and_releases_nothing(swap: dict[str, Any], tmp_path: Path) -> None:
    mark = tmp_path / "killed"

    class Killed(Privatizer):
        def __call__(self, batch: Any) -> Any:
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return super().__call__(batch)

    words = [list(SWAPPED)[i % 4] for i in range(400)]
    given = ray.data.from_items([{"id": i, "text": word} for i, word in enumerate(words)])
    private = given.map_batches(
        Killed,
        fn_constructor_kwargs={"columns": "text", **swap},
        compute=ray.data.ActorPoolStrategy(size=1),
        batch_size=50,
    )
    assert texts(private) == [SWAPPED[word] for word in words]
    assert mark.exists()


def test_an_actor_that_dies_is_not_asked_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Earlier draws may have been read, and would be drawn again."""
    log = tmp_path / "log"

    class Killed(fastdx.ray._Actor):
        def __call__(self, batch: Any) -> Any:
            with log.open("a") as file:
                file.write("a batch\n")
            if log.read_text("utf-8").count("\n") == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().__call__(batch)

    monkeypatch.setattr(fastdx.ray, "_Actor", Killed)
    rows = [{"id": i, "text": "coffee and tea"} for i in range(40)]
    private = privatize(ray.data.from_items(rows, override_num_blocks=2), "text", epsilon=1.0)
    with pytest.raises(ray.exceptions.RayError):
        private.write_parquet(str(tmp_path / "out"))
    assert log.read_text("utf-8").count("\n") == 2


def test_mistakes_are_said_before_anything_runs(swap: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(fastdx.ParameterError, match="epsilon"):
        privatize(reviews(), "text", epsilon=-1.0)
    with pytest.raises(fastdx.MissingFileError, match=r"none\.index"):
        privatize(reviews(), "text", epsilon=1.0, index=tmp_path / "none.index")
    with pytest.raises(Exception, match="'txet'"):
        privatize(reviews(), "txet", **swap).take_all()
