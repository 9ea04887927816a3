"""Columns, frames and spans: what is not text stays, what is text is drawn afresh."""

import json
import math
import pickle
import re
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fastdx
from fastdx import Cover, Embedding, Guarantee, NeighborResponse, Tem
from fastdx.channel import NgramPrior
from fastdx.mechanisms import improbable, rare
from helpers.errors import refused
from helpers.swapped import SWAPPED, TEXTS, WANTED

E = Embedding(["tea", "coffee", "king", "queen"], [[0.0], [0.1], [5.0], [5.2]])
# Every output is another word than its input, so that what is released raw is seen.
COVER = Cover.from_sets(E, {word: [other] for word, other in SWAPPED.items()})
SWAP = Tem(E, 1e4, cover=COVER, gamma=math.inf, oov="mask")
MODEL = NgramPrior.train(E, ["tea queen king"] * 9 + ["king tea"], order=2)
ENUM = pl.Enum(["tea", "coffee"])


def test_lists_and_scalars() -> None:
    assert SWAP.privatize(TEXTS) == WANTED
    assert SWAP.privatize(("tea", None)) == ["coffee", None]
    assert SWAP.privatize([["tea", None], [], "king", [["queen"]]]) == [
        ["coffee", None], [], "queen", [["king"]],
    ]  # fmt: skip
    assert SWAP.privatize(iter(["tea"])) == ["coffee"]
    assert SWAP.privatize(None) is None and SWAP.privatize(pd.NA) is pd.NA
    assert math.isnan(SWAP.privatize(float("nan")))
    assert SWAP.privatize(np.array(["tea", "king"])).tolist() == ["coffee", "queen"]
    assert SWAP.privatize(pa.scalar("tea")) == pa.scalar("coffee")
    assert SWAP.privatize(pa.scalar(None, pa.string())).as_py() is None


def test_what_is_no_column_or_frame_is_named() -> None:
    """Texts that are none: test_bad_input.py; columns that are not there: test_accidents.py."""
    wrong, frame, table = fastdx.InputTypeError, pl.DataFrame({"t": ["tea"]}), pa.table({"t": [""]})
    two = duckdb.sql("select 'tea' as t, 1 as n")
    enum = pl.DataFrame({"u": [{"said": "tea"}]}).cast({"u": pl.Struct({"said": ENUM})})
    refused(
        (wrong, r"text\[1\]\[0\] must be a str, not bytes",
         lambda: SWAP.privatize([["tea"], [b""]])),
        *((wrong, "column of text", lambda x=x: SWAP.privatize(pa.array([x])))
          for x in (1, {"a": "tea"}, b"tea")),
        (wrong, "MultiIndex", lambda: SWAP.privatize(pd.MultiIndex.from_tuples([("tea", "king")]))),
        (wrong, "Enum", lambda: SWAP.privatize(pl.Series(["tea"], dtype=ENUM))),
        (wrong, "Enum", lambda: SWAP.privatize_frame(enum, "u.said")),
        (wrong, "2 columns", lambda: SWAP.privatize(two)),
        (wrong, "lazy", lambda: SWAP.privatize_frame(frame.lazy(), ["t"])),
        (wrong, "frame must be", lambda: SWAP.privatize_frame([1], "a")),
        (fastdx.ParameterError, "at least one", lambda: SWAP.privatize_frame(table, [])),
        (wrong, "give one", lambda: SWAP.privatize_spans("tea")),
        (fastdx.ParameterError, "'utf16', 'codepoint', 'byte', got \"utf-16\"",
         lambda: SWAP.privatize_spans("tea", [(0, 1)], unit="utf-16")),
        (wrong, "unit with spans",
         lambda: SWAP.privatize_spans("tea", select=["tea"], unit="utf16")),
        *((wrong, "select", lambda bad=bad: SWAP.privatize_tokens(["tea"], select=bad))
          for bad in ("common", 3)),
        (fastdx.ParameterError, "", lambda: rare(-1)),
        (wrong, "drop",
         lambda: Tem(E, 1.0, oov="drop").privatize_tokens(["tea"], select=["tea"])),
        *((fastdx.ParameterError, "share|below", lambda wrong=wrong: improbable(MODEL, **wrong))
          for wrong in ({}, {"share": 0.5, "below": 0.5}, {"share": 0.0}, {"below": 1.0})),
    )  # fmt: skip


ARROW_TYPES = [pa.string(), pa.large_string(), pa.string_view()]


@pytest.mark.parametrize("kind", ARROW_TYPES, ids=str)
def test_arrow(kind: pa.DataType) -> None:
    for column in (
        pa.array(TEXTS, kind),
        pa.array(["king", *TEXTS, "king"], kind)[1:-1],
        pa.array([], kind),
        pa.array([None, None], kind),
    ):
        new = SWAP.privatize(column)
        assert isinstance(new, pa.Array) and new.type == kind
        new.validate(full=True)
        assert new.to_pylist() == SWAP.privatize(column.to_pylist())
    chunked = pa.chunked_array([TEXTS[:2], [], TEXTS[2:]], kind)
    new = SWAP.privatize(chunked)
    assert isinstance(new, pa.ChunkedArray) and new.type == kind and new.to_pylist() == WANTED
    assert SWAP.privatize(pa.chunked_array([], kind)).to_pylist() == []
    # Lists, in slices and with nulls.
    nested = [["tea", None], None, [], ["king", "queen"]]
    wanted = [["coffee", None], None, [], ["queen", "king"]]
    for lists in (pa.list_(kind), pa.large_list(kind)):
        column = pa.array([["tea"], *nested], lists)[1:]
        assert SWAP.privatize(column).to_pylist() == wanted
        assert SWAP.privatize(column).type == lists
    fixed = pa.array([["tea", "king"], None, ["queen", None]], pa.list_(kind, 2))
    assert SWAP.privatize(fixed[1:]).to_pylist() == [None, ["king", None]]
    # Dictionaries: every row by itself.
    column = pa.array(TEXTS, kind).dictionary_encode() if kind != pa.string_view() else None
    if column is not None:
        new = SWAP.privatize(column)
        assert new.type == column.type and new.to_pylist() == WANTED
        small = column.cast(pa.dictionary(pa.int8(), kind))
        assert SWAP.privatize(small).type == pa.dictionary(pa.int32(), kind)


def test_dictionary_rows_are_drawn_by_themselves() -> None:
    response = NeighborResponse(E, 0.1, cover=2)
    column = pa.array(["tea"] * 400).dictionary_encode()
    assert len(set(response.privatize(column).to_pylist())) == 4
    once = NeighborResponse(E, 0.1, cover=2, consistent="call")
    both = pa.chunked_array([column, column])
    assert len(set(once.privatize(both).to_pylist())) == 1


def test_many_rows() -> None:
    words = np.random.default_rng(0).choice(E.words, 200_000).tolist()
    words[::7] = [None] * len(words[::7])
    new = SWAP.privatize(pa.array(words))
    assert new.to_pylist() == SWAP.privatize(words)
    strict = Tem(E, 3.0, oov="error")
    column = pa.chunked_array([["tea"] * 70_000, ["tea", "secret"]])
    with pytest.raises(fastdx.UnknownWordError, match="of text 70001,") as caught:
        strict.privatize(column)
    assert caught.value.text == 70_001 and "secret" not in str(caught.value)


def test_pandas() -> None:
    index = pd.Index([3, 1, 4, 1, 5], name="i")
    for dtype in (object, "string[python]", "string[pyarrow]", "str", pd.ArrowDtype(pa.string())):
        series = pd.Series(TEXTS, index=index, name="n", dtype=dtype)
        new = SWAP.privatize(series)
        assert new.dtype == series.dtype and new.name == "n" and new.index.equals(index)
        assert [None if pd.isna(x) else x for x in new] == WANTED
        labels = pd.Index(["tea", "king"], name="l", dtype=dtype)
        renamed = SWAP.privatize(labels)
        assert list(renamed) == ["coffee", "queen"] and renamed.name == "l"
        assert renamed.dtype == labels.dtype
    new = SWAP.privatize(pd.Series(["tea", None, "king", "tea"], dtype="category"))
    assert list(new[[0, 2, 3]]) == ["coffee", "queen", "coffee"] and pd.isna(new[1])
    # A category that is not written is not released.
    kept = pd.Categorical(["tea"], categories=["tea", "king"])
    assert list(SWAP.privatize(pd.Series(kept)).cat.categories) == ["coffee"]
    # Nor is what fills a sparse column.
    sparse = SWAP.privatize(pd.Series(pd.arrays.SparseArray(["tea", "king"], fill_value="tea")))
    assert sparse.dtype == object and list(sparse) == ["coffee", "queen"]
    frame = pd.DataFrame({"t": TEXTS, "n": range(5)}, index=index)
    new = SWAP.privatize_frame(frame, "t")
    assert list(new.columns) == ["t", "n"] and new["n"].tolist() == [0, 1, 2, 3, 4]
    assert [None if pd.isna(x) else x for x in new["t"]] == WANTED
    assert frame["t"][3] == "tea and king"
    assert frame["t"].map(SWAP.privatize).tolist()[0] == WANTED[0]


def test_polars_and_duckdb() -> None:
    series = pl.Series("n", TEXTS)
    new = SWAP.privatize(series)
    assert new.name == "n" and new.dtype == pl.String and new.to_list() == WANTED
    new = SWAP.privatize(series.cast(pl.Categorical))
    assert new.dtype == pl.Categorical and new.to_list() == WANTED
    nested = pl.Series([["tea"], None, ["king", None]])
    assert SWAP.privatize(nested).to_list() == [["coffee"], None, ["queen", None]]
    frame = pl.DataFrame({"t": TEXTS, "n": range(5)})
    new = SWAP.privatize_frame(frame, ["t"])
    assert new["t"].to_list() == WANTED and new["n"].to_list() == [0, 1, 2, 3, 4]
    relation = duckdb.sql("select * from (values ('tea', 1), (null, 2)) as v(t, n)")
    assert SWAP.privatize(relation.select("t")).to_pylist() == ["coffee", None]
    table = SWAP.privatize_frame(relation, "t")
    assert table.to_pylist() == [{"t": "coffee", "n": 1}, {"t": None, "n": 2}]


class Producer:
    """Somebody else's column."""

    def __init__(self, column: Any) -> None:
        self.column = column

    def __arrow_c_stream__(self, schema: object = None) -> object:
        return self.column.__arrow_c_stream__(schema)


def test_two_fields_of_one_name_are_refused() -> None:
    # The second one would be released as it is.
    fields = [pa.field("text", pa.string()), pa.field("text", pa.string())]
    struct = pa.StructArray.from_arrays([pa.array(["a cup"]), pa.array(["Anna"])], fields=fields)
    with pytest.raises(fastdx.FastdxError, match="2 named 'text'"):
        Tem(epsilon=1.0).privatize_frame(pa.table({"user": struct}), "user.text")


def struct_frames(rows: list[Any]) -> list[Any]:
    """Frames of every library with a struct column."""
    table = pa.table({"id": list(range(len(rows))), "user": rows})
    batch = table.to_batches()[0]
    arrow = table.to_pandas(types_mapper=pd.ArrowDtype)
    return [table, batch, pl.from_arrow(table), arrow, duckdb.from_arrow(table)]


def rows_of(frame: Any) -> list[Any]:
    if isinstance(frame, pd.DataFrame):
        frame = pa.Table.from_pandas(frame)
    rows: list[Any] = pa.table(frame).column("user").to_pylist()
    return rows


def test_fields_of_structs_in_every_library() -> None:
    rows = [
        {"said": "tea", "tags": ["king", None], "deep": [{"a": "tea", "b": "tea"}]},
        {"said": None, "tags": [], "deep": None},
        None,
    ]
    for frame in struct_frames(rows):
        kind = type(frame)
        new = SWAP.privatize_frame(frame, ["user.said", "user.deep.a"])
        assert isinstance(new, pa.Table if "duckdb" in kind.__module__ else kind), kind
        assert rows_of(new) == [
            {"said": "coffee", "tags": ["king", None], "deep": [{"a": "coffee", "b": "tea"}]},
            {"said": None, "tags": [], "deep": None},
            None,
        ]
        assert rows_of(SWAP.privatize_frame(frame, "user.tags"))[0]["tags"] == ["queen", None]
        assert rows_of(frame) == rows, "the given frame stays"
        for wrong, message in [
            ("user", "struct of 3 fields: name one"),
            ("user.sad", "struct of 3 fields, 0 named"),
            ("usr.said", "'usr'"),
            ("id.said", "no field|to have fields"),
        ]:
            with pytest.raises(fastdx.FastdxError, match=message):
                SWAP.privatize_frame(frame, wrong)
    # A column's own name goes first.
    for frame in (pl.DataFrame({"user.said": ["tea"], "user": [{"said": "tea"}]}),
                  pa.table({"user.said": ["tea"], "user": [{"said": "tea"}]})):  # fmt: skip
        new = pa.table(SWAP.privatize_frame(frame, "user.said"))
        assert new.to_pylist() == [{"user.said": "coffee", "user": {"said": "tea"}}]


def test_a_column_that_is_named_twice_is_drawn_once() -> None:
    rows = {"t": ["tea"]}
    for frame in (pd.DataFrame(rows), pl.DataFrame(rows), pa.table(rows)):
        assert str(list(SWAP.privatize_frame(frame, ["t", "t"])["t"])).count("coffee") == 1


def json_columns() -> list[Any]:
    text = ['{"tea": 1, "said": "king"}']
    json_array = pa.array(text, pa.json_())
    listed = pa.ListArray.from_arrays([0, 1], json_array)
    struct = pa.StructArray.from_arrays([json_array, pa.array(["tea"])], ["a", "b"])
    other = pa.field("t", pa.string(), metadata={"ARROW:extension:name": "google:sqlType:json"})
    query = f"SELECT '{text[0]}'::JSON AS t, ['{text[0]}'::JSON] AS l"
    return [
        (json_array, "t"),
        (listed, "t"),
        (struct, "t.a"),
        (pd.Series(json_array, dtype=pd.ArrowDtype(pa.json_())), "t"),
        (pl.Series(json_array), "t"),
        (pa.table([text], schema=pa.schema([other])), "t"),
        (duckdb.sql(query), "t"),
        (duckdb.sql(query), "l"),
        (duckdb.sql(f"SELECT {{'a': '{text[0]}'::JSON, 'b': 'tea'}} AS t"), "t.a"),
    ]


def test_json_is_not_drawn_as_text() -> None:
    for column, name in json_columns():
        frames: list[Any] = [column]
        if isinstance(column, pa.Array):
            frames = [pa.table({"t": column}), pl.DataFrame({"t": column})]
        elif isinstance(column, pd.Series):
            frames = [pd.DataFrame({"t": column})]
        elif isinstance(column, pl.Series):
            frames = [pl.DataFrame({"t": column})]
        for frame in frames:
            with pytest.raises(fastdx.InputTypeError, match="JSON") as refused:
                SWAP.privatize_frame(frame, name)
            assert "king" not in str(refused.value)
            if name == "t.a":
                new = pa.table(SWAP.privatize_frame(frame, "t.b"))
                assert new["t"].to_pylist()[0]["b"] == "coffee"
    arrays = [column for column, name in json_columns()[:5] if name == "t"]
    for column in (*arrays, arrays[0][0], duckdb.sql("SELECT '1'::JSON AS t")):
        with pytest.raises(fastdx.InputTypeError, match="JSON"):
            SWAP.privatize(column)


def test_columns_of_others() -> None:
    new = SWAP.privatize(Producer(pa.chunked_array([TEXTS])))
    assert pa.chunked_array(new).to_pylist() == WANTED


def test_spans() -> None:
    text = "Dear « tea », the king\nis héré: queen."
    spans = [(7, 10), (18, 22), (32, 37)]
    new = SWAP.privatize_spans(text, spans)
    assert new.text == "Dear « coffee », the queen\nis héré: king."
    assert [new.text[a:b] for a, b in new.spans] == ["coffee", "queen", "king"]
    assert new.counts["replaced"] == 3
    assert "outside the spans is RELEASED AS IT IS" in str(new.guarantee)
    again = pickle.loads(pickle.dumps(new.guarantee))
    assert again.exceptions == new.guarantee.exceptions != SWAP.guarantee.exceptions
    nothing: list[Any] = [[], (), np.empty((0, 2), dtype=int), iter(())]
    assert all(SWAP.privatize_spans("tea", empty).text == "tea" for empty in nothing)
    # Text outside of the spans is released as it is: texts that differ there are told apart.
    guarantee, plain = new.guarantee, SWAP.guarantee
    other = text.replace("tea", "king").replace("queen", "tea")
    for found in (guarantee, again):
        assert found.bound(text, text) == 0 and found.bound(["tea"], ["tea"]) == 0
        assert found.bound(text, other) == plain.bound(text, other) > 0
        assert found.bound(text, text.replace("is", "was")) == math.inf
        assert found.bound(text, text.replace("Dear", "queen")) == math.inf
        assert found.bound(text, text.replace("tea", "tea tea")) == math.inf
        assert found.bound(["tea"], ["king"]) == math.inf
        assert found.price(text) == found.price(["tea"]) == found.price("") == math.inf
    # Where spans could lie in two ways nothing is said.
    twice = SWAP.privatize_spans("tea tea tea", [(0, 3), (8, 11)]).guarantee
    assert twice.bound("tea tea tea", "king tea tea") == plain.bound("tea", "king")
    assert twice.bound("tea tea tea tea tea", "king tea tea tea tea") == math.inf
    # So is what is between the words of a span.
    pair = SWAP.privatize_spans("tea king", [(0, 8)]).guarantee
    assert pair.bound("tea king", "king tea") == plain.bound("tea king", "king tea") < math.inf
    assert pair.bound("tea king", "king, tea") == math.inf
    more = Guarantee(SWAP, ["more"])
    assert more.bound("tea", "king") == more.bound(["tea"], ["king"]) == math.inf
    assert more.bound("tea", "tea") == 0 and more.price("tea") == math.inf
    # The spans of a text are one text.
    once = NeighborResponse(E, 0.1, cover=2, consistent=True)
    drawn = {once.privatize_spans("tea " * 40, [(4 * i, 4 * i + 3) for i in range(40)]).text
             for _ in range(20)}  # fmt: skip
    assert all(len(set(text.split())) == 1 for text in drawn) and len(drawn) > 1


@pytest.mark.parametrize(
    ("unit", "length"),
    [
        ("codepoint", len),
        ("utf16", lambda text: len(text.encode("utf-16-le")) // 2),
        ("byte", lambda text: len(text.encode())),
    ],
)
def test_spans_in_every_unit(unit: str, length: Callable[[str], int]) -> None:
    """All that is wrong with positions: src/text/places.rs; what spans touch: src/text/spans.rs."""
    text = "☕😀 Dear Anna-Lena, tea!"
    start, tea = (length(text[: text.index(word)]) for word in ("Anna", "tea"))
    # Unsorted, overlapping, nested, adjacent, and of half words: the words that they touch.
    spans = [(tea + 2, tea + 3), (start + 2, start + 4), (start + 3, start + 4), (tea, tea + 2),
             (start + 1, start + 2), (start + 1, start + 3)]  # fmt: skip
    new = SWAP.privatize_spans(text, spans, unit=unit)
    assert new.text == "☕😀 Dear [MASK]-Lena, coffee!"
    places = [(new.text.index(w), new.text.index(w) + len(w)) for w in ("[MASK]", "coffee")]
    assert new.spans == [(length(new.text[:a]), length(new.text[:b])) for a, b in places]
    assert new.counts["words"] == 2
    assert new.guarantee.bound(text, text.replace("tea", "king")) < math.inf
    joined = SWAP.privatize_spans(text, [(start + 2, start + 6)], unit=unit)
    assert joined.text == "☕😀 Dear [MASK]-[MASK], tea!" and len(joined.spans) == 1
    for wrong, why in [((0, 10**30), f"ends at {length(text)}"), ((-(10**30), 3), "from 0 on")]:
        with pytest.raises(fastdx.ParameterError, match=f"{why}.* at position 1 of the list"):
            SWAP.privatize_spans(text, [(start, start + 1), wrong], unit=unit)


class Result:
    """A RecognizerResult of Presidio."""

    def __init__(self, start: object, end: object) -> None:
        self.entity_type, self.start, self.end, self.score = "PERSON", start, end, 0.9


class TokenSpan(Result):
    """A Span of spaCy, whose start and end count tokens."""

    start_char, end_char = 4, 7


INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", ">i4"]


@pytest.mark.parametrize(
    "spans",
    [
        *(np.array([[4, 7]], dtype=kind) for kind in INTEGERS),
        np.array([[9, 4, 9, 7]])[:, 1::2],
        np.array([[4], [7]]).T,
        [np.array([4, 7], dtype=np.uint8)],
        [(np.int64(4), np.uint8(7))],
        [Result(4, 7)],
        iter([vars(Result(4, 7))]),
        json.loads(json.dumps([vars(Result(4, 7))])),
        [{"entity_group": "PER", "start": 4, "end": 7, "word": "tea"}],
        [TokenSpan(0, 1)],
        {(4, 7)},
    ],
    ids=lambda spans: getattr(getattr(spans, "dtype", None), "name", type(spans).__name__),
)  # fmt: skip
def test_spans_of_other_tools(spans: Any) -> None:
    assert SWAP.privatize_spans("tea tea tea", spans).text == "tea coffee tea"


@pytest.mark.parametrize(
    "spans",
    [
        [(0, 3), (4.0, 7.0)],
        [(0, 3), ("4", "7")],
        [(0, 3), (None, 7)],
        [(0, 3), (4, 7, 9)],
        [(0, 3), 4],
        [(0, 3), "zqx"],
        [(0, 3), {"start": 4, "zqx": 7}],
        [(0, 3), Result(4, None)],
        [(0, 3), re.match("zqx", "zqx")],
        [(0, 3), slice(4, 7)],
    ],
)
def test_what_is_no_span_is_named(spans: Any) -> None:
    with pytest.raises(fastdx.InputTypeError, match="item at position 1 is none") as refused:
        SWAP.privatize_spans("tea tea zqx", spans)
    assert refused.value.__context__ is None and "zqx" not in str(refused.value)
    wholes: list[Any] = [np.array([[4.0, 7.0]]), np.zeros((2, 3), dtype=int), np.array([4, 7])]
    wholes += [(4, 7), 4, Result(4, 7), {"start": 4, "end": 7}, "text"]
    for whole in wholes:
        with pytest.raises(fastdx.InputTypeError, match="position 0 is none"):
            SWAP.privatize_spans("tea tea zqx", whole)


def test_selection() -> None:
    assert SWAP.privatize_spans("tea, king", select={"King"}).text == "tea, queen"
    chosen = SWAP.privatize_spans("tea, king", select=lambda word: word == "tea")
    assert chosen.text == "coffee, king"
    drawn = SWAP.privatize_tokens(["tea", "king", "zzz"], select=["tea"])
    assert drawn == ["coffee", "king", "zzz"]
    tem = Tem(epsilon=1e-9)
    text = "the nephrologist and the people"
    new = tem.privatize_spans(text, select="rare").text.split()
    assert [new[i] for i in (0, 2, 3, 4)] == ["the", "and", "the", "people"]
    assert new[1] != "nephrologist"
    assert [w for w in ("the", "Tea", "zzz") if rare(10)(w)] == ["Tea", "zzz"]
    assert not rare(["Zzz"])("zzz")


def test_improbable_places_are_those_of_the_model() -> None:
    model, words = MODEL, ["Tea", "queen", "zzz", "king", "queen", "queen"]
    known = [w.lower() for w in words]
    wanted = [
        0.0 if word not in E
        else model.next([known[i - 1]])[E.ids([word])[0]] * (1 - model.unknown_next([known[i - 1]]))
        if i and known[i - 1] in E
        else model.frequencies[E.ids([word])[0]]
        for i, word in enumerate(known)
    ]  # fmt: skip
    chosen = improbable(model, below=0.2)
    assert chosen.probabilities(words) == pytest.approx(wanted, rel=1e-9)
    assert chosen.places(words) == [i for i, p in enumerate(wanted) if p < 0.2]
    for share, count in ((0.01, 1), (0.5, 3), (0.51, 4), (0.99, 6)):
        places = improbable(model, share=share).places(words)
        rest = set(range(6)) - {*places}
        assert len(places) == count and places == sorted(places)
        assert max(wanted[i] for i in places) <= min((wanted[i] for i in rest), default=1)
    assert improbable(model, share=0.5).places([]) == []
    drawn = SWAP.privatize_tokens(words, select=chosen)
    kept = set(range(6)) - {*chosen.places(words)}
    assert [drawn[i] for i in kept] == [words[i] for i in kept]


def test_the_choice_of_places_leaks_and_no_bound_says_otherwise() -> None:
    model = NgramPrior.train(E, ["tea queen"] * 50, order=2)
    tem = Tem(E, 0.5)
    usual, odd = "tea queen", "tea king"
    chosen = improbable(model, below=0.3)
    assert [chosen.places(text.split()) for text in (usual, odd)] == [[], [1]]
    for select in (chosen, {"king", "tea"}, lambda word: word != "queen"):
        told = tem.privatize_spans(usual, select=select).guarantee
        assert told.bound(usual, odd) == told.bound(odd, "king king") == np.inf
        assert told.bound(usual, usual) == 0 and told.price(usual) == np.inf
        assert "nothing bounds how much" in str(told) and "RELEASED AS IT IS" in str(told)
    # Spans that are given are public: the same two texts have a bound, because their spans agree.
    assert tem.privatize_spans(odd, [(4, 8)]).guarantee.bound(usual, odd) < 10


def test_what_is_no_utf8_is_refused() -> None:
    offsets = pa.py_buffer(np.array([0, 1, 2], dtype=np.int32).tobytes())
    broken = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"a\xff")])
    nested = pa.ListArray.from_arrays(pa.array([0, 2]), broken)
    descending = pa.py_buffer(np.array([0, 2, 1], dtype=np.int32).tobytes())
    wrong = pa.Array.from_buffers(pa.string(), 2, [None, descending, pa.py_buffer(b"ab")])
    for column in (broken, nested, wrong, pa.chunked_array([pa.array(["a"]), broken])):
        with pytest.raises(fastdx.InputTypeError, match="damaged"):
            Tem(epsilon=3.0).privatize(column)
