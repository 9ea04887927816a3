"""Spark against the real thing: types kept, workers killed, plans run again, streams, SQL."""

from __future__ import annotations

import datetime
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'fastdx[spark]'")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java, which is not there", allow_module_level=True)

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import types as T

import fastdx
import fastdx.spark
from fastdx import Embedding
from swapped import SECRET, SWAPPED, TEXTS, WANTED


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2, 3]")  # three attempts a task
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(list(enumerate(TEXTS)), "id int, text string").repartition(3)


def texts(frame: DataFrame) -> list[str | None]:
    return [row["text"] for row in sorted(frame.collect(), key=lambda row: row["id"])]


def everything(error: BaseException) -> str:
    """All that an exception shows, causes and the Java side included."""
    return "\n".join(map(str, (error, repr(error), error.__cause__, error.__context__)))


@pytest.mark.parametrize("ship", [True, False])
def test_columns(frame: DataFrame, swap: dict[str, Any], ship: bool) -> None:
    private = fastdx.spark.privatize(frame, "text", ship=ship, **swap)
    assert private.schema == frame.schema
    assert texts(private) == WANTED


def test_types_and_nesting_are_kept(spark: SparkSession, swap: dict[str, Any]) -> None:
    schema = T.StructType(
        [
            T.StructField("id", T.LongType(), nullable=False),
            T.StructField(
                "user", T.StructType([T.StructField("comment", T.StringType()),
                                      T.StructField("name", T.StringType())])
            ),
            T.StructField("tags", T.ArrayType(T.StringType())),
            T.StructField("items", T.ArrayType(T.StructType([
                T.StructField("text", T.StringType()), T.StructField("n", T.IntegerType())]))),
            T.StructField("when", T.TimestampType()),
            T.StructField("day", T.DateType()),
            T.StructField("price", T.DecimalType(10, 2)),
            T.StructField("raw", T.BinaryType()),
            T.StructField("counts", T.MapType(T.StringType(), T.IntegerType())),
            T.StructField("a.b", T.StringType()),
        ]
    )  # fmt: skip
    when, day = datetime.datetime(2020, 1, 2, 3, 4, 5), datetime.date(2020, 1, 2)
    rows = [
        (1, ("tea", "tea"), ["king", None], [("tea", 1), None], when, day, None, b"tea",
         {"tea": 1}, "tea"),
        (2, None, None, None, None, None, None, None, None, None),
        (3, (None, "king"), [], [], when, day, None, b"", {}, ""),
    ]  # fmt: skip
    frame = spark.createDataFrame(rows, schema)
    names = ["user.comment", "tags", "items.text", "a.b"]
    private = fastdx.spark.privatize(frame, names, **swap)
    assert private.schema == schema
    assert sorted(private.collect()) == [
        Row(1, Row("coffee", "tea"), ["queen", None], [Row("coffee", 1), None], when, day, None,
            bytearray(b"tea"), {"tea": 1}, "coffee"),
        Row(2, *[None] * 9),
        Row(3, Row(None, "king"), [], [], when, day, None, bytearray(b""), {}, ""),
    ]  # fmt: skip


def test_nothing_runs_before_an_action(spark: SparkSession, swap: dict[str, Any]) -> None:
    spark.sparkContext.setJobGroup("lazy", "no job may belong to it")
    try:
        frame = spark.range(10).selectExpr("id", "'tea' AS text")
        fastdx.spark.privatize(frame, "text", **swap)
        assert not spark.sparkContext.statusTracker().getJobIdsForGroup("lazy")
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_one_mapping_and_one_thread_a_worker(spark: SparkSession, swap: dict[str, Any]) -> None:
    """Every worker process draws on one thread, and maps the index once for all its tasks."""
    frame = spark.range(8).selectExpr("id", "'tea' AS text").repartition(8)

    def seen(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for _batch in batches:
            maps = Path("/proc/self/maps").read_text()
            starts = [line for line in maps.splitlines() if line.endswith("swap.index")]
            threads = os.environ.get("FASTDX_NUM_THREADS")
            yield pa.RecordBatch.from_pydict(
                {"pid": [os.getpid()], "mapped": [len(starts)], "threads": [threads]},
                pa.schema({"pid": pa.int64(), "mapped": pa.int64(), "threads": pa.string()}),
            )

    private = fastdx.spark.privatize(frame, "text", **swap)
    again = fastdx.spark.privatize(private, "text", **{**swap, "epsilon": 2e4})
    rows = again.mapInArrow(seen, "pid long, mapped long, threads string").collect()
    # The process that looks may be another than those that map.
    assert {row["mapped"] for row in rows} <= {0, 1} and any(row["mapped"] for row in rows)
    assert {row["threads"] for row in rows if row["mapped"]} == {"1"}


def test_mistakes_are_said_before_anything_runs(
    frame: DataFrame, swap: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(fastdx.ParameterError, match="'txet'"):
        fastdx.spark.privatize(frame, "txet", **swap)
    with pytest.raises(fastdx.InputTypeError, match="'id' is int"):
        fastdx.spark.privatize(frame, "id", **swap)
    nested = frame.selectExpr("id", "named_struct('name', text) AS user")
    with pytest.raises(fastdx.InputTypeError, match="'user' is struct<name:string>"):
        fastdx.spark.privatize(nested, "user", **swap)
    with pytest.raises(fastdx.ParameterError, match=r"'user.nam', of which 'nam' is there 0 times"):
        fastdx.spark.privatize(nested, "user.nam", **swap)
    with pytest.raises(fastdx.ParameterError, match="epsilon"):
        fastdx.spark.privatize(frame, "text", epsilon=-1.0)
    with pytest.raises(fastdx.ParameterError, match=r"mechanism must be one of tem, .*'tme'"):
        fastdx.spark.privatize(frame, "text", epsilon=1.0, mechanism="tme")
    with pytest.raises(fastdx.ParameterError, match="consistent"):
        fastdx.spark.privatize(frame, "text", epsilon=1.0, consistent="call")
    with pytest.raises(fastdx.MissingFileError, match=r"none\.index"):
        fastdx.spark.privatize(frame, "text", epsilon=1.0, index=tmp_path / "none.index")


def test_another_index_than_the_one_named_fails(
    frame: DataFrame, swap: dict[str, Any], tmp_path: Path, other_index: Path
) -> None:
    index = tmp_path / "moved.index"  # which no worker has seen
    Embedding(["tea", "king", "pea"], [[0.0], [1.0], [2.0]]).save(index)
    private = fastdx.spark.privatize(frame, "text", ship=False, **{**swap, "index": index})
    other_index.replace(index)
    with pytest.raises(Exception, match="is not the file that was named") as info:
        private.collect()
    assert "moved.index" in str(info.value)


def test_a_failing_task_releases_nothing(
    spark: SparkSession, swap: dict[str, Any], tmp_path: Path
) -> None:
    rows = [(i, "tea") for i in range(20)] + [(20, f"tea {SECRET}")]
    frame = spark.createDataFrame(rows, "id int, text string").repartition(2)
    private = fastdx.spark.privatize(frame, "text", **{**swap, "oov": "error"})
    with pytest.raises(Exception, match="not in the vocabulary") as info:
        private.write.parquet(str(tmp_path / "out"))
    assert SECRET not in everything(info.value)
    left = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert all(SECRET.encode() not in path.read_bytes() for path in left)
    assert not (tmp_path / "out" / "_SUCCESS").exists()


def killing(marks: Path) -> Any:
    """Batches pass; each of the first two processes that sees one is killed."""

    def kill(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for n in range(2):
                try:
                    os.close(os.open(marks / str(n), os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    return kill


@pytest.mark.parametrize("before", [True, False], ids=["killed before", "killed after"])
def test_killed_workers_lose_and_release_nothing(
    spark: SparkSession, swap: dict[str, Any], tmp_path: Path, before: bool
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    rows = [(i, list(SWAPPED)[i % 4]) for i in range(400)]
    frame = spark.createDataFrame(rows, "id int, text string").repartition(4)
    kill = killing(marks)
    if before:
        frame = frame.mapInArrow(kill, frame.schema)
    private = fastdx.spark.privatize(frame, "text", **swap)
    if not before:
        private = private.mapInArrow(kill, private.schema)
    kept = fastdx.spark.checkpoint(private, str(tmp_path / "out"))
    assert len(list(marks.iterdir())) == 2, "no worker was killed"
    found = sorted((row["id"], row["text"]) for row in kept.collect())
    assert found == [(i, SWAPPED[word]) for i, word in rows]


def test_plans_draw_again_and_a_checkpoint_does_not(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(1).selectExpr("id", "repeat('coffee and tea ', 30) AS text")
    private = fastdx.spark.privatize(frame, "text", epsilon=1.0)
    # At ε = 1 a word comes back with a probability of about 1/20,000: equal draws of 90 are none.
    assert texts(private) != texts(private)
    kept = fastdx.spark.checkpoint(private, str(tmp_path / "once"))
    assert kept.dtypes == private.dtypes
    assert texts(kept) == texts(kept)
    with pytest.raises(Exception, match=r"(?i)already.exists"):
        fastdx.spark.checkpoint(private, str(tmp_path / "once"))


def test_sql(spark: SparkSession, frame: DataFrame, swap: dict[str, Any]) -> None:
    function = fastdx.spark.register(spark, "swap_words", **swap)
    fastdx.spark.register(spark, "swap_lists", returns="array<string>", **swap)
    frame.createOrReplaceTempView("reviews")
    found = spark.sql("SELECT id, swap_words(text) AS text FROM reviews")
    assert texts(found) == WANTED
    assert texts(frame.select("id", function("text").alias("text"))) == WANTED
    lists = spark.sql("SELECT swap_lists(array('tea', NULL)) AS a, swap_lists(NULL) AS b").first()
    assert lists is not None and (lists["a"], lists["b"]) == (["coffee", None], None)


def test_sql_draws_for_every_row_and_call(spark: SparkSession) -> None:
    fastdx.spark.register(spark, "private", epsilon=1.0)
    row = spark.sql("SELECT private(t) AS a, private(t) AS b "
                    "FROM (SELECT repeat('coffee ', 30) AS t)").first()  # fmt: skip
    assert row is not None and row["a"] != row["b"]
    rows = spark.sql("SELECT private('coffee tea coffee') AS a FROM range(20)").collect()
    assert len({row["a"] for row in rows}) > 10


def test_streams(spark: SparkSession, swap: dict[str, Any], tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    stream = spark.readStream.schema("id int, text string").json(str(source))
    private = fastdx.spark.privatize(stream, "text", **swap)
    assert private.isStreaming
    with pytest.raises(fastdx.InputTypeError, match="stream"):
        fastdx.spark.checkpoint(private, str(tmp_path / "never"))
    for line in ('{"id": 0, "text": "tea and king"}\n', '{"id": 1}\n{"id": 2, "text": "queen"}\n'):
        (source / f"{line[7]}.json").write_text(line)
        query = (
            private.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "log"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "sink"))
        )
        query.awaitTermination()
    written = spark.read.parquet(str(tmp_path / "sink"))
    assert texts(written) == ["coffee [MASK] queen", None, "king"]
