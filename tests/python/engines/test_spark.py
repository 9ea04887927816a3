"""Spark against the real thing: types kept, workers killed, plans run again, streams, SQL."""

from __future__ import annotations

import datetime
import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'fastdx[spark]'")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java, which is not there", allow_module_level=True)

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import types as T

import fastdx
from fastdx import Embedding, Tem
from fastdx._shared.card import KEY
from fastdx.channel import Channel
from fastdx.counts import Estimator
from fastdx.engines import spark as engine
from fastdx.engines._recipe import Recipe
from helpers.swapped import SECRET, SWAPPED, TEXTS, WANTED


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


def types(frame: DataFrame) -> list[tuple[str, T.DataType, bool]]:
    """The columns of a frame, without their metadata."""
    return [(field.name, field.dataType, field.nullable) for field in frame.schema]


def everything(error: BaseException) -> str:
    """All that an exception shows, causes and the Java side included."""
    return "\n".join(map(str, (error, repr(error), error.__cause__, error.__context__)))


def test_columns(frame: DataFrame, swap: dict[str, Any]) -> None:
    private = engine.privatize(frame, "text", **swap)
    assert types(private) == types(frame)
    assert texts(private) == WANTED


def test_another_index_than_the_one_named_fails(
    frame: DataFrame, tmp_path: Path, other_index: Path
) -> None:
    index = tmp_path / "moved.index"  # which no worker has seen
    Embedding(["tea", "king", "pea"], [[0.0], [1.0], [2.0]]).save(index)
    private = engine.privatize(frame, "text", ship=False, epsilon=1.0, index=index)
    other_index.replace(index)
    with pytest.raises(Exception, match=r"moved\.index is not the file that was named"):
        private.collect()


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
    assert types(private) == [(f.name, f.dataType, f.nullable) for f in schema]
    assert sorted(private.collect()) == [
        Row(1, Row("coffee", "tea"), ["queen", None], [Row("coffee", 1), None], when, day, None,
            bytearray(b"tea"), {"tea": 1}, "coffee"),
        Row(2, *[None] * 9),
        Row(3, Row(None, "king"), [], [], when, day, None, bytearray(b""), {}, ""),
    ]  # fmt: skip


def test_columns_are_named_as_in_spark(spark: SparkSession, swap: dict[str, Any]) -> None:
    inner = T.StructType([T.StructField("x.y", T.StringType()), T.StructField("Z", T.StringType())])
    schema = T.StructType(
        [
            T.StructField("Text", T.StringType()),
            T.StructField("a.b", T.StringType()),
            T.StructField("tick`ed", T.StringType()),
            T.StructField("a", T.StructType([T.StructField("b", T.StringType())])),
            T.StructField("in.ner", T.ArrayType(inner)),
        ]
    )
    frame = spark.createDataFrame([("tea", "tea", "tea", ("tea",), [("tea", "tea")])], schema)

    def changed(*names: str) -> str:
        private = engine.privatize(frame, names, **swap)
        assert types(private) == types(frame)
        row = private.first()
        assert row is not None
        flat = (*row[:3], row[3][0], *row[4][0])
        assert set(flat) <= {"tea", "coffee"}
        return "".join(str(i) for i, word in enumerate(flat) if word == "coffee")

    assert changed("TEXT") == "0" and changed("`text`", "Text") == "0"
    # A point stands before a field, unless it is in backquotes.
    assert changed("a.b") == "3" and changed("`a`.`B`") == "3"
    assert changed("`a.b`") == "1" and changed("`A.b`") == "1"
    assert changed("`tick``ed`") == "2" and changed("tick`ed") == "2"
    assert changed("`in.ner`.`x.y`", "`in.ner`.z") == "45"
    for name, named in [
        ("txet", "'txet' is there 0 times among Text, "),
        ("a.c", "'a.c', of which 'c' is there 0 times"),
        ("`a.c`", "'`a.c`' is there 0 times"),
        ("`a", "'`a' is there 0 times"),
        ("a..b", "'a..b' is there 0 times"),
        ("in.ner", "'in.ner' is struct<"),
        ("`in.ner`.x.y", "'x' is there 0 times"),
        ("a", "'a' is struct<b:string>"),
        ("Text.b", "'Text.b' is string"),
    ]:
        with pytest.raises(fastdx.FastdxError, match=rf"columns must be .*{named}"):
            changed(name)
    with pytest.raises(fastdx.InputTypeError, match="columns must be text: 'id' is bigint"):
        engine.privatize(spark.range(1), "id", **swap)
    twice = frame.select("Text", frame["a.b"].alias("TEXT"), "a")
    with pytest.raises(fastdx.ParameterError, match="'text' is there 2 times among Text, TEXT, a"):
        engine.privatize(twice, "text", **swap)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert changed("Text") == "0" and changed("a.b") == "3"
        with pytest.raises(fastdx.ParameterError, match="'TEXT' is there 0 times"):
            changed("TEXT")
        row = engine.privatize(twice, "TEXT", **swap).first()
        assert row is not None and row[:2] == ("tea", "coffee")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_columns_hold_their_card_and_a_receiver_counts(spark: SparkSession, tmp_path: Path) -> None:
    """From the sender's frame to a file, and from the file alone to shares with intervals."""
    words = [f"w{i}" for i in range(40)]
    space = Embedding(words, np.random.default_rng(3).normal(size=(40, 3)))
    space.save(tmp_path / "words.fdx")
    tem = Tem(space, 6.0, oov="mask")
    made = {"epsilon": 6.0, "oov": "mask", "index": tmp_path / "words.fdx"}
    rows = [(i, "w3 w3 w1 w9", ("w5", i)) for i in range(300)]
    frame = spark.createDataFrame(rows, "id int, Text string, user struct<comment:string,n:int>")
    private = engine.privatize(frame, ["text", "user.comment"], **made)
    engine.checkpoint(private, str(tmp_path / "out"))
    read = spark.read.parquet(str(tmp_path / "out"))
    for held in (private, read, read.filter("id > 3").select("user", "`Text`")):
        assert Channel.load(held.schema["Text"].metadata[KEY], space).mechanism == tem
        assert Channel.load(held.schema["user"].metadata[f"{KEY}.comment"], space).mechanism == tem
    channel = Channel.load(read.schema["Text"].metadata[KEY], space)
    found = (read.select("text").rdd
             .mapPartitions(lambda rows: [Estimator(channel).add(r.text for r in rows)])
             .reduce(Estimator.__add__).share("w3", confidence=1 - 1e-7))  # fmt: skip
    assert found.documents == 300 and found.low <= 0.5 <= found.high < 1
    with pytest.raises(fastdx.InputTypeError, match="column of a frame"):
        Estimator(channel).add(read)
    # The law of what is replaced again is another one; a field keeps its own card.
    again = engine.privatize(read, "text", **{**made, "epsilon": 4.0}).schema
    assert Channel.load(again["Text"].metadata[KEY], space).mechanism.epsilon == 4.0
    assert again["user"].metadata == read.schema["user"].metadata
    noise = engine.privatize(read, "text", mechanism="laplace", epsilon=4.0,
                                   index=tmp_path / "words.fdx").schema  # fmt: skip
    assert not noise["Text"].metadata and noise["user"].metadata


def test_nothing_runs_before_an_action(spark: SparkSession, swap: dict[str, Any]) -> None:
    spark.sparkContext.setJobGroup("lazy", "no job may belong to it")
    try:
        frame = spark.range(10).selectExpr("id", "'tea' AS text")
        engine.privatize(frame, "text", **swap)
        assert not spark.sparkContext.statusTracker().getJobIdsForGroup("lazy")
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_one_mapping_and_one_thread_a_worker(spark: SparkSession, swap: dict[str, Any]) -> None:
    """A worker process draws on one thread, and maps the index once for all mechanisms over it."""
    # Spark may run each function of a plan in its own process: the one that looks also draws.
    mechanisms = [
        engine._on_workers(spark, Recipe.of(**parameters), True)
        for parameters in (swap, {**swap, "epsilon": 2e4})
    ]

    def seen(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            texts = batch.column(1).to_pylist()
            for mechanism in mechanisms:
                texts = mechanism().privatize(texts)
            maps = Path("/proc/self/maps").read_text()
            # Spark has shipped it to its folder of this name.
            mapped = len(re.findall(r"/userFiles-[^/]*/swap\.index$", maps, re.MULTILINE))
            threads = os.environ.get("FASTDX_NUM_THREADS")
            yield pa.RecordBatch.from_pydict(
                {"mapped": [mapped], "threads": [threads]},
                pa.schema({"mapped": pa.int64(), "threads": pa.string()}),
            )

    frame = spark.range(8).selectExpr("id", "'tea' AS text").repartition(8)
    rows = frame.mapInArrow(seen, "mapped long, threads string").collect()
    assert rows
    assert {(row["mapped"], row["threads"]) for row in rows} == {(1, "1")}


def test_a_failing_task_releases_nothing(
    spark: SparkSession, swap: dict[str, Any], tmp_path: Path
) -> None:
    rows = [(i, "tea") for i in range(20)] + [(20, f"tea {SECRET}")]
    frame = spark.createDataFrame(rows, "id int, text string").repartition(2)
    private = engine.privatize(frame, "text", **{**swap, "oov": "error"})
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


def test_killed_workers_lose_and_release_nothing(
    spark: SparkSession, swap: dict[str, Any], tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    rows = [(i, list(SWAPPED)[i % 4]) for i in range(400)]
    frame = spark.createDataFrame(rows, "id int, text string").repartition(4)
    private = engine.privatize(frame, "text", **swap)
    private = private.mapInArrow(killing(marks), private.schema)
    kept = engine.checkpoint(private, str(tmp_path / "out"))
    assert len(list(marks.iterdir())) == 2, "no worker was killed"
    found = sorted((row["id"], row["text"]) for row in kept.collect())
    assert found == [(i, SWAPPED[word]) for i, word in rows]


def test_plans_draw_again_and_a_checkpoint_does_not(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(0, 4, 1, 4).selectExpr("id", "repeat('coffee and tea ', 30) AS text")
    private = engine.privatize(frame, "text", epsilon=1.0)
    # At ε = 1 a word comes back with a probability of about 1/20,000: equal draws of 90 are none,
    # neither of the tasks of one action nor of two.
    assert len(set(texts(private) + texts(private))) == 8
    kept = engine.checkpoint(private, str(tmp_path / "once"))
    assert kept.dtypes == private.dtypes
    assert texts(kept) == texts(kept)
    with pytest.raises(Exception, match=r"(?i)already.exists"):
        engine.checkpoint(private, str(tmp_path / "once"))


def losing(local: Path, mark: Path) -> Any:
    """Batches pass; the first task that ends deletes the files of all shuffles."""

    def lose(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        for path in local.rglob("shuffle_*.*"):
            path.unlink(missing_ok=True)

    return lose


def test_lost_shuffles_leave_one_draw_of_every_row(spark: SparkSession, tmp_path: Path) -> None:
    local = Path(str(spark.sparkContext.getConf().get("spark.local.dir")))
    assert local.is_absolute() and tmp_path.parent in local.parents  # files will be deleted there
    frame = spark.range(0, 200, 1, 4).selectExpr("id", "'coffee and tea' AS text")
    shuffled = frame.repartition(4, "id")
    lost = shuffled.mapInArrow(losing(local, tmp_path / "below"), shuffled.schema)
    private = engine.privatize(lost, "text", epsilon=1.0)
    kept = engine.checkpoint(private, str(tmp_path / "kept"))
    assert (tmp_path / "below").exists()
    assert sorted(row["id"] for row in kept.collect()) == list(range(200))
    above = losing(local, tmp_path / "above")
    kept.repartition(4, "text").mapInArrow(above, kept.schema).write.parquet(str(tmp_path / "out"))
    assert (tmp_path / "above").exists()
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(map(tuple, found)) == sorted(map(tuple, kept.collect()))


SHUFFLED = {
    "repartition": lambda df: df.repartition(4, "text"),
    "round robin": lambda df: df.repartition(4),
    "sort": lambda df: df.orderBy("text").select("id"),
    "distinct": lambda df: df.distinct(),
    "group": lambda df: df.groupBy("text").count(),
    "limit": lambda df: df.limit(3),
    "union": lambda df: df.union(df),
    "join": lambda df: df.join(df.sparkSession.range(5), "id"),
    "broadcast": lambda df: df.sparkSession.range(5).join(df.hint("broadcast"), "id"),
    "in": lambda df: df.filter("id IN (SELECT id + 1 FROM range(5))"),
    "cached below": lambda df: df.cache().repartition(4, "text"),
    "cached above": lambda df: df.repartition(4, "text").cache().select("text"),
    "private again": lambda df: engine.privatize(df.repartition(4, "text"), "text", epsilon=1.0),
    "sql": lambda df: df.sparkSession.sql("SELECT drawn(text) AS t FROM plain DISTRIBUTE BY t"),
    "subquery": lambda df: df.sparkSession.sql(
        "SELECT * FROM plain WHERE id < (SELECT count(*) FROM plain WHERE drawn(text) > 'c')"
    ),
    "named twice": lambda df: df.sparkSession.sql(
        "WITH p AS (SELECT drawn(text) AS t FROM plain) SELECT * FROM p UNION ALL SELECT * FROM p"
    ),
}

UNSHUFFLED = {
    "itself": lambda df: df,
    "narrow": lambda df: df.selectExpr("id + 1 AS n", "explode(split(text, ' ')) AS word")
    .filter("n > 2").sortWithinPartitions("word").coalesce(1),
    "cached": lambda df: df.cache().select("text"),
    "private again": lambda df: engine.privatize(df, "text", epsilon=1.0),
    "sql": lambda df: df.sparkSession.sql("SELECT id, drawn(text) AS t FROM plain WHERE id > 1"),
    "shuffled before": lambda df: engine.privatize(
        df.sparkSession.table("plain").distinct().orderBy("id"), "text", epsilon=1.0
    ),
    "no draw": lambda df: df.sparkSession.range(10).orderBy("id"),
}  # fmt: skip


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_checkpoints_refuse_a_shuffle_above_the_draws(
    spark: SparkSession, tmp_path: Path, adaptive: str
) -> None:
    frame = spark.range(0, 20, 1, 2).selectExpr("id", "'coffee and tea' AS text")
    frame.createOrReplaceTempView("plain")
    engine.register(spark, "drawn", epsilon=1.0)
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        for name, made in SHUFFLED.items():
            shuffled = made(engine.privatize(frame, "text", epsilon=1.0))
            with pytest.raises(fastdx.ParameterError, match="above the draws"):
                engine.checkpoint(shuffled, str(tmp_path / name))
            assert not (tmp_path / name).exists()
            spark.catalog.clearCache()
        for name, made in UNSHUFFLED.items():
            df = made(engine.privatize(frame, "text", epsilon=1.0))
            assert engine.checkpoint(df, str(tmp_path / name)).count() > 0
            spark.catalog.clearCache()
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")


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
    with pytest.raises(fastdx.InputTypeError, match="stream"):
        engine.checkpoint(private, str(tmp_path / "never"))
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
