"""Spark against the real thing: types kept, no text in failures, streams, SQL."""

from __future__ import annotations

import datetime
import os
import shutil
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
from fastdx._shared.card import KEY
from fastdx.channel import Channel
from fastdx.engines import spark as engine
from helpers.swapped import SECRET, TEXTS, WANTED


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
    # A session that another test of this process left would be taken as it is.
    assert session.sparkContext.master == "local[2, 3]"
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(list(enumerate(TEXTS)), "id int, text string").repartition(3)


def texts(frame: DataFrame) -> list[str | None]:
    return [row["text"] for row in sorted(frame.collect(), key=lambda row: row["id"])]


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
    private = engine.privatize(frame, names, **swap)
    found = [(f.name, f.dataType, f.nullable) for f in private.schema]
    assert found == [(f.name, f.dataType, f.nullable) for f in schema]
    assert not any(field.metadata for field in frame.schema)
    assert sorted(private.collect()) == [
        Row(1, Row("coffee", "tea"), ["queen", None], [Row("coffee", 1), None], when, day, None,
            bytearray(b"tea"), {"tea": 1}, "coffee"),
        Row(2, *[None] * 9),
        Row(3, Row(None, "king"), [], [], when, day, None, bytearray(b""), {}, ""),
    ]  # fmt: skip


def test_names_of_columns(spark: SparkSession, swap: dict[str, Any]) -> None:
    # A column's own name goes first, then a point stands before a field.
    frame = spark.createDataFrame([("tea", "tea", ("tea",))],
                                  "Text string, `a.b` string, a struct<b:string>")  # fmt: skip
    for name, wanted in [("Text", ("coffee", "tea")), ("a.b", ("tea", "coffee"))]:
        row = engine.privatize(frame, [name, name], **swap).first()
        assert row is not None and row[:2] == wanted and row[2] == Row("tea")
    row = engine.privatize(frame.drop("a.b"), "a.b", **swap).first()
    assert row is not None and row == ("tea", Row("coffee"))
    twice = frame.select("Text", frame["`a.b`"].alias("Text"))
    for given, name, why in [
        (frame, "text", "no column 'text': did you mean 'Text'"),
        (frame, "b.a", "no column 'b'"),
        (twice, "Text", "there 2 times"),
    ]:
        with pytest.raises(fastdx.ParameterError, match=why):
            engine.privatize(given, name, **swap)
    for wrong in ("a", "a.c"):
        with pytest.raises(Exception, match="struct of"):
            engine.privatize(frame.drop("a.b"), wrong, **swap).collect()


def test_columns_hold_their_card(spark: SparkSession, swap: dict[str, Any], tmp_path: Path) -> None:
    rows = [("tea", ("king", 1))]
    frame = spark.createDataFrame(rows, "text string, user struct<comment:string,n:int>")
    private = engine.privatize(frame, ["text", "user.comment"], **swap)
    private.write.parquet(str(tmp_path / "out"))
    read = spark.read.parquet(str(tmp_path / "out"))
    space = fastdx.Embedding.load(swap["index"])
    for held in (private, read, read.filter("text > 'a'").select("user", "text")):
        for name, key in (("text", KEY), ("user", f"{KEY}.comment")):
            assert Channel.load(held.schema[name].metadata[key], space).mechanism.epsilon == 1e4
    # The law of what is replaced again is another one; a field keeps its own card.
    again = engine.privatize(read, "text", **{**swap, "epsilon": 4e4}).schema
    assert Channel.load(again["text"].metadata[KEY], space).mechanism.epsilon == 4e4
    assert again["user"].metadata == read.schema["user"].metadata
    noise = engine.privatize(read, "text", mechanism="laplace", epsilon=4.0,
                             index=swap["index"]).schema  # fmt: skip
    assert not noise["text"].metadata and noise["user"].metadata


def test_nothing_runs_before_an_action(spark: SparkSession, swap: dict[str, Any]) -> None:
    spark.sparkContext.setJobGroup("lazy", "no job may belong to it")
    try:
        frame = spark.range(10).selectExpr("id", "'tea' AS text")
        engine.privatize(frame, "text", **swap)
        assert not spark.sparkContext.statusTracker().getJobIdsForGroup("lazy")
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_a_failing_task_releases_nothing(
    spark: SparkSession, swap: dict[str, Any], tmp_path: Path
) -> None:
    rows = [(i, "tea") for i in range(20)] + [(20, f"tea {SECRET}")]
    frame = spark.createDataFrame(rows, "id int, text string").repartition(2)
    private = engine.privatize(frame, "text", **{**swap, "oov": "error"})
    with pytest.raises(Exception, match="not in the vocabulary") as info:
        private.write.parquet(str(tmp_path / "out"))
    error = info.value
    assert SECRET not in f"{error} {error!r} {error.__cause__} {error.__context__}"
    left = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert all(SECRET.encode() not in path.read_bytes() for path in left)
    assert not (tmp_path / "out" / "_SUCCESS").exists()


def test_every_action_draws(spark: SparkSession) -> None:
    frame = spark.range(0, 4, 1, 4).selectExpr("id", "repeat('coffee and tea ', 30) AS text")
    private = engine.privatize(frame, "text", epsilon=1.0)
    # At ε = 1 a word comes back with a probability of about 1/20,000: equal draws of 90 are none,
    # neither of the tasks of one action nor of two.
    assert len(set(texts(private) + texts(private))) == 8


def test_sql(spark: SparkSession, frame: DataFrame, swap: dict[str, Any]) -> None:
    function = engine.register(spark, "swap_words", **swap)
    engine.register(spark, "swap_lists", returns="array<string>", **swap)
    frame.createOrReplaceTempView("reviews")
    found = spark.sql("SELECT id, swap_words(text) AS text FROM reviews")
    assert texts(found) == WANTED
    assert texts(frame.select("id", function("text").alias("text"))) == WANTED
    lists = spark.sql("SELECT swap_lists(array('tea', NULL)) AS a, swap_lists(NULL) AS b").first()
    assert lists is not None and (lists["a"], lists["b"]) == (["coffee", None], None)
    # Every row and call is a draw.
    engine.register(spark, "private", epsilon=1.0)
    row = spark.sql("SELECT private(t) AS a, private(t) AS b "
                    "FROM (SELECT repeat('coffee ', 30) AS t)").first()  # fmt: skip
    assert row is not None and row["a"] != row["b"]
    rows = spark.sql("SELECT private('coffee tea coffee') AS a FROM range(20)").collect()
    assert len({row["a"] for row in rows}) > 10


def test_streams(spark: SparkSession, swap: dict[str, Any], tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    stream = spark.readStream.schema("id int, text string").json(str(source))
    private = engine.privatize(stream, "text", **swap)
    assert private.isStreaming
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
