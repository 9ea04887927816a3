"""Compare columns and engines with a list of str, on the same reviews in the same run.

Engines that are not installed are left out.

All run on one thread with one index, whose lists are ready. Time is processor time, so other load
matters less. In this process the kinds of columns take turns, and the best round counts. For Spark
it is the time of all its processes. The difference between several partitions and one counts, so
the rate does not include the start. Ray starts actors with empty caches for every run, so such a
difference would say nothing.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ["FASTDX_NUM_THREADS"] = "1"
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

import pandas as pd
from common import reviews

from fastdx import Tem

COUNT = 3_000
ROUNDS = 12
OVER = 3
PARTITION = 8
"""How often a partition of Spark repeats the texts: to some 30 MB, of 128 MB by default."""
EPSILON = 3.0


def seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def used() -> float:
    """Return the processor time of this process and of all its children."""
    parents, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (path / "stat").read_text("utf-8").rpartition(")")[2].split()
            parents[path.name] = fields[1]
            ticks[path.name] = sum(map(int, fields[11:15]))  # with children that have ended
    mine = {str(os.getpid())}
    while more := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sum(ticks[pid] for pid in mine) / os.sysconf("SC_CLK_TCK")


def columns(texts: list[str]) -> dict[str, Callable[[], Any]]:
    """Return functions that make columns of every kind from the texts."""
    import polars as pl
    import pyarrow as pa

    return {
        "list of str": lambda: texts,
        "pandas, object": lambda: pd.Series(texts, dtype=object),
        "pandas, Arrow's string": lambda: pd.Series(texts, dtype=pd.ArrowDtype(pa.string())),
        "polars": lambda: pl.Series(texts),
        "pyarrow": lambda: pa.array(texts),
    }


def sklearn_(texts: list[str], index: str) -> Callable[[], object]:
    from fastdx.engines.sklearn import Privatizer

    privatizer = Privatizer(epsilon=EPSILON, index=index).fit(texts)
    return lambda: privatizer.transform(texts)


def datasets_(texts: list[str], index: str) -> Callable[[], object]:
    import datasets

    from fastdx.engines.datasets import privatize

    datasets.disable_progress_bars()
    given = datasets.Dataset.from_dict({"text": texts})
    function = privatize("text", epsilon=EPSILON, index=index)
    return lambda: given.map(function, batched=True)


def duckdb_(texts: list[str], index: str) -> Callable[[], object]:
    import duckdb
    import pyarrow as pa

    from fastdx.engines.duckdb import register

    connection = duckdb.connect(config={"threads": 1})
    register(connection, "private", epsilon=EPSILON, index=index)
    connection.register("given", pa.table({"text": texts}))
    connection.execute("CREATE TABLE reviews AS SELECT text FROM given")
    query = "CREATE OR REPLACE TABLE out AS SELECT private(text) FROM reviews"
    return lambda: connection.execute(query)


def spacy_(texts: list[str], index: str) -> Callable[[], object]:
    import spacy

    import fastdx.engines.spacy  # noqa: F401 (registers the component where no package is installed)

    nlp = spacy.blank("en")
    docs, own = list(nlp.pipe(texts)), {"epsilon": EPSILON, "index": index}
    component: Any = nlp.add_pipe("fastdx", config={"parameters": own})
    return lambda: list(component.pipe(docs))


def presidio_(texts: list[str], index: str) -> Callable[[], object]:
    from presidio_anonymizer import AnonymizerEngine, OperatorConfig, RecognizerResult

    from fastdx.engines.presidio import FastdxOperator

    engine = AnonymizerEngine()
    engine.add_anonymizer(FastdxOperator)
    policy = {"DEFAULT": OperatorConfig("fastdx", {"epsilon": EPSILON, "index": index})}
    found = [[RecognizerResult("TEXT", 0, len(text), 1.0)] for text in texts]
    return lambda: [
        engine.anonymize(text, spans, policy) for text, spans in zip(texts, found, strict=True)
    ]


@contextlib.contextmanager
def spark_(parquet: str, index: str) -> Iterator[Callable[[int], float]]:
    from pyspark.sql import SparkSession

    import fastdx.engines.spark

    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    once = spark.read.parquet(parquet)

    def run(times: int) -> float:
        given = once
        for _ in range(times - 1):
            given = given.union(once)
        private = fastdx.engines.spark.privatize(given, "text", epsilon=EPSILON, index=index)
        start = used()
        private.write.format("noop").mode("overwrite").save()
        return used() - start

    yield run
    spark.stop()


def main() -> None:
    parts = (pd.read_json(path, lines=True, dtype=False)["text"] for path in reviews())
    texts = [text for part in parts for text in part][:COUNT]
    few = texts[: COUNT // 5]
    folder = tempfile.mkdtemp()
    index = f"{folder}/english.index"
    Tem(epsilon=EPSILON).build_lists(64).save(index)
    tem = Tem.load(index, EPSILON)
    words = tem.privatize_counted(texts)[1]["words"]
    few_words = tem.privatize_counted(few)[1]["words"]
    print(f"{COUNT:,} reviews of IMDB, {words:,} words, ε = {EPSILON:g}, one thread:\n")
    print("| | words a second of processor time | of a list's |\n|---|---|---|")

    calls: dict[str, tuple[Callable[[], object], int]] = {}
    for name, make in columns(texts).items():
        calls[name] = (partial(tem.privatize, make()), words)
    for name, library, start, some in [
        ("DuckDB, function", "duckdb", duckdb_, False),
        ("scikit-learn", "sklearn", sklearn_, False),
        ("datasets, `map`", "datasets", datasets_, False),
        ("spaCy, the component alone", "spacy", spacy_, True),
        ("Presidio, a text a finding", "presidio_anonymizer", presidio_, True),
    ]:
        if find_spec(library) is not None:
            calls[name] = (start(few if some else texts, index), few_words if some else words)
    best = {name: float("inf") for name in calls}
    for _ in range(ROUNDS + 1):  # the first fills the caches
        for name, (call, number) in calls.items():
            with contextlib.redirect_stderr(io.StringIO()):
                best[name] = min(best[name], seconds(call) / number)
    base = best["list of str"]
    for name, took in best.items():
        print(f"| {name} | {1 / took:,.0f} | {base / took:.0%} |", flush=True)
    if find_spec("pyspark") is None:
        return

    import pyarrow as pa
    import pyarrow.parquet as pq

    parquet = f"{folder}/reviews.parquet"
    pq.write_table(pa.table({"text": texts * PARTITION}), parquet)
    with spark_(parquet, index) as run:
        run(1)
        short = min(run(1) for _ in range(2))
        long = min(run(1 + OVER) for _ in range(2))
    took = (long - short) / (OVER * PARTITION * words)
    print(f"| Spark, `local[1]` | {1 / took:,.0f} | {base / took:.0%} |", flush=True)


if __name__ == "__main__":
    main()
