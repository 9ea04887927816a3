"""Hugging Face datasets against the real thing: processes, formats, and no draw twice."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("datasets", reason="datasets is not installed: pip install 'fastdx[datasets]'")

import datasets

import fastdx
from fastdx.engines.datasets import privatize
from helpers.swapped import SECRET, SWAPPED, TEXTS, WANTED


@pytest.fixture
def stored(tmp_path: Path) -> datasets.Dataset:
    """A dataset with a folder, which is where a cache would be."""
    words = [list(SWAPPED)[i % 4] for i in range(400)]
    new = datasets.Dataset.from_dict({"id": list(range(400)), "text": words})
    new.save_to_disk(str(tmp_path / "stored"))
    return datasets.load_from_disk(str(tmp_path / "stored"))


def test_lists_and_fields(swap: dict[str, Any]) -> None:
    rows = {"tags": [["tea", "king"], []], "user": [{"said": "tea"}, {"said": None}]}
    given = datasets.Dataset.from_dict(rows)
    private = given.map(privatize("tags", **swap), batched=True)
    assert private["tags"][:] == [["coffee", "queen"], []] and private.features == given.features
    nested = given.flatten().map(privatize("user.said", **swap), batched=True)
    assert nested["user.said"][:] == ["coffee", None]
    # Only the columns of a format are seen, and the others stay, as map has it.
    some = given.with_format("numpy", columns=["tags"])
    assert some.map(privatize("tags", **swap), batched=True).with_format(None)["user"][:] == [
        {"said": "tea"},
        {"said": None},
    ]


def test_no_draw_comes_from_a_cache(stored: datasets.Dataset) -> None:
    function = privatize("text", epsilon=1.0)
    first, second = (
        stored.map(function, batched=True, load_from_cache_file=True) for _ in range(2)
    )
    assert first["text"][:] != second["text"][:] and first._fingerprint != second._fingerprint


def test_processes_use_one_thread(
    stored: datasets.Dataset, swap: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FASTDX_NUM_THREADS", raising=False)
    function = privatize("text", **swap)

    def seen(batch: Any) -> dict[str, Any]:
        new = function(batch)
        threads = os.environ.get("FASTDX_NUM_THREADS", "")
        return {**new, "threads": [threads] * len(batch["text"])}

    both = stored.map(seen, batched=True, num_proc=2)
    assert set(both["threads"][:]) == {"1"}
    assert "FASTDX_NUM_THREADS" not in os.environ


def test_failures_show_no_text(
    stored: datasets.Dataset, swap: dict[str, Any], tmp_path: Path
) -> None:
    secret = stored.add_item({"id": 400, "text": f"tea {SECRET}"})
    function = privatize("text", **{**swap, "oov": "error"})
    out = tmp_path / "out.arrow"
    with pytest.raises(fastdx.UnknownWordError) as info:
        secret.map(function, batched=True, num_proc=2, cache_file_name=str(out))
    assert SECRET not in f"{info.value} {info.value.__cause__}" and info.value.word is None
    # A process that came to its end has written its part, which is private.
    for path in tmp_path.glob("out*.arrow"):
        part = datasets.Dataset.from_file(str(path))
        assert part["text"][:] == [SWAPPED[word] for word in stored["text"][: len(part)]]


SOURCES = [
    *((kind, stream, None) for kind in (None, "numpy") for stream in (False, True)),
    (None, False, 2),
]


@pytest.mark.parametrize(("kind", "stream", "num_proc"), SOURCES)
def test_removed_columns_stay_removed(
    swap: dict[str, Any], kind: str | None, stream: bool, num_proc: int | None
) -> None:
    rows = {"id": list(range(len(TEXTS))), "email": ["zqx@y.z"] * len(TEXTS), "text": TEXTS}
    given: Any = datasets.Dataset.from_dict(rows)
    given = given.to_iterable_dataset() if stream else given
    given = given.with_format(kind)
    more = {} if stream else {"num_proc": num_proc}

    def outcome(function: Any, **removed: Any) -> dict[str, list[Any]]:
        new = given.map(function, batched=True, batch_size=2, **removed, **more).with_format(None)
        out: list[Any] = list(new)
        return {name: [row[name] for row in out] for name in out[0]}

    private = privatize("text", **swap)
    assert outcome(private) == {**rows, "text": WANTED}
    kept = outcome(private, remove_columns=["email"])
    assert kept == {"id": rows["id"], "text": WANTED}
    assert outcome(private, remove_columns=["email", "id"]) == {"text": WANTED}
    assert outcome(private, remove_columns=["text", "email"])["text"] == WANTED


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars"])
def test_tables_are_refused(swap: dict[str, Any], kind: str) -> None:
    """Of them `map` would keep the columns that are to be removed."""
    given = datasets.Dataset.from_dict({"text": ["tea"], "email": ["zqx"]}).with_format(kind)
    with pytest.raises(fastdx.ParameterError, match=r"with_format\(None\)"):
        given.map(privatize("text", **swap), batched=True, remove_columns=["email"])
