"""Ray Data against the real thing: actors, failures, a killed worker."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install 'fastdx[ray]'")

import ray

import fastdx.engines.ray
from fastdx.engines._recipe import PrivateColumns
from fastdx.engines.ray import privatize
from helpers.errors import origins
from helpers.swapped import SECRET, TEXTS, WANTED


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
    for concurrency in (2, (1, 2)):
        assert texts(privatize(reviews(), "text", concurrency=concurrency, **swap)) == WANTED


def test_failures_show_no_text(swap: dict[str, Any], tmp_path: Path) -> None:
    given = ray.data.from_items([{"text": "tea"}] * 50 + [{"text": f"tea {SECRET}"}])
    private = privatize(given, "text", **{**swap, "oov": "error"})
    with pytest.raises(Exception, match="not in the vocabulary") as info:
        private.write_parquet(str(tmp_path / "out"))
    for error in origins(info.value):
        assert SECRET not in f"{error} {error!r} {getattr(error, 'word', '')}"
    # Ray does not undo what it has written; all of it is private.
    for path in (tmp_path / "out").rglob("*.parquet"):
        assert set(pq.read_table(path)["text"].to_pylist()) == {"coffee"}


def test_an_actor_that_dies_is_not_asked_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Earlier draws may have been read, and would be drawn again."""
    log = tmp_path / "log"

    class Killed(PrivateColumns):
        def __call__(self, batch: Any) -> Any:
            new = super().__call__(batch)
            with log.open("a") as file:
                file.write(f"{os.environ.get('FASTDX_NUM_THREADS')} thread\n")
            if log.read_text("utf-8").count("\n") == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            return new

    monkeypatch.setattr(fastdx.engines.ray, "PrivateColumns", Killed)
    rows = [{"id": i, "text": "coffee and tea"} for i in range(40)]
    private = privatize(ray.data.from_items(rows, override_num_blocks=2), "text", epsilon=1.0)
    with pytest.raises(ray.exceptions.RayError):
        private.write_parquet(str(tmp_path / "out"))
    assert log.read_text("utf-8") == "1 thread\n" * 2


def test_other_arguments(swap: dict[str, Any]) -> None:
    """They go to map_batches, but for those that keep Ray from drawing twice."""
    sizes: Any = privatize(reviews(), "text", options={"batch_size": 2, "num_cpus": 0.5}, **swap)
    assert texts(sizes) == WANTED
    with pytest.raises(TypeError, match="max_task_retries"):
        privatize(reviews(), "text", options={"max_task_retries": 1}, **swap)
