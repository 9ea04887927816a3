"""Numbers and dates by their own metrics, in columns and in texts."""

import datetime as dt
import io
import itertools
import json
import math
import pickle
import random
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import fastdx
from fastdx import Embedding, Tem, from_spec
from fastdx.budget import BudgetExceededError, Ledger
from fastdx.channel import Channel, NgramPrior
from fastdx.cli.formats.base import BATCH_CHARACTERS
from fastdx.cli.formats.opening import between_words, cut
from fastdx.exceptions import InputTypeError, ParameterError
from fastdx.numbers import Date, Number
from helpers.command import fails, run
from helpers.draws import ALARM, assert_follows
from helpers.policies import options
from helpers.registry import KINDS, space
from helpers.spaces import line

ORDERS = [1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0]
"""Six orders of ε and of the scale."""

E2 = Embedding(["the", "cat", "dog", "12"], [[0.0], [1.0], [2.0], [3.0]])
WORDS = Embedding(["the", "cat", "dog"], [[0.0], [1.0], [2.0]])
"""Without a word that looks like a number."""
N = Number(10.0)
D = Date(0.1, order="dmy")
BOX = Embedding(["▢"], [[0.0]])


def counted(draws: np.ndarray, values: np.ndarray) -> np.ndarray:
    """How often each value of a grid was drawn."""
    return np.bincount(np.searchsorted(values, draws - 1e-9 * np.abs(draws)), minlength=len(values))


# The law


@pytest.mark.parametrize("scale", ORDERS)
@pytest.mark.parametrize("epsilon", [0.5, 20.0])
def test_a_log_law_is_what_is_drawn_at_every_size(scale: float, epsilon: float) -> None:
    number = Number(epsilon, unit=0.05, smallest=scale, high=1e4 * scale, low=-1e4 * scale, seed=3)
    for x in (0.0, scale, -scale, 33.0 * scale, -1e4 * scale):
        values, law = number.probabilities(x)
        assert np.all(np.diff(values) > 0) and abs(law.sum() - 1) < 1e-9
        assert np.any(values == 0.0) and np.allclose(values, -values[::-1])
        assert_follows(counted(number.sample(x, 60_000), values), law)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-4, *ORDERS])
def test_the_bound_holds_for_the_integers_that_are_drawn(epsilon: float) -> None:
    """In exact arithmetic: the law as fractions, for all pairs of neighbours and all outputs."""
    core = Number(epsilon, "linear", low=0, high=60)._core
    ratio, table = core.integers()
    weights = [int(x) for x in table]
    v, t = weights[:-1], Fraction(weights[-1], 2**63)
    # r ≥ exp(-ε), by a fraction that is no smaller: exp(-ε) ≤ 1/(1 + ε + … + εⁿ/n!).
    e = Fraction(min(epsilon, 42.0))
    series, term = Fraction(1), Fraction(1)
    for k in range(1, 160):
        term = term * e / k
        series += term
    r = Fraction(ratio, 2**64)
    assert r >= 1 / series > 0
    # The last of them is the first of the next repetition.
    assert v[0] == 2**63 and all(r * a <= b <= a for a, b in itertools.pairwise(weights))
    side = Fraction(sum(v)) / (1 - t)

    def weight(m: int) -> Fraction:
        o, s = divmod(m, len(v))
        return t**o * v[s]

    def tail(m: int) -> Fraction:
        return side - sum(weight(k) for k in range(m))

    last = 12
    tails = [tail(m) for m in range(last + 1)]

    def law(i: int) -> list[Fraction]:
        return [tails[i], *(weight(abs(i - y)) for y in range(1, last)), tails[last - i]]

    for i in range(last + 1):
        assert sum(law(i)) == 2 * side - weight(0)
        for j in (i - 1, i + 1):
            if 0 <= j <= last:
                assert all(r * a <= b for a, b in zip(law(i), law(j), strict=True))


FINITE = st.floats(allow_nan=False, width=64)
NUMBERS = st.one_of(
    FINITE,
    st.sampled_from([0.0, -0.0, 0.01, -0.01, 0.005, 0.004, 1e9, -1e9, 1e300, math.inf]),
    st.integers(-10_000, 10_000).map(lambda k: k / 2),
)


@settings(max_examples=150, deadline=None)
@given(NUMBERS, NUMBERS, st.sampled_from(ORDERS), st.booleans(), st.data())
def test_no_output_tells_more_than_the_bound(
    x: float, y: float, epsilon: float, log: bool, data: st.DataObject
) -> None:
    if data.draw(st.booleans()):
        y = data.draw(st.sampled_from([-x, math.nextafter(x, 0), x + 0.5, 0.0, x * 1.005]))
    number = Number(epsilon) if log else Number(epsilon, "linear", low=-300, high=200.5, unit=0.5)
    (values, p), (_, q) = number.probabilities(x), number.probabilities(y)
    seen = (p > 1e-290) & (q > 1e-290)
    loss = float(np.max(np.abs(np.log(p[seen]) - np.log(q[seen])), initial=0.0))
    bound = number.bound(x, y)
    assert loss <= bound * (1 + 1e-9) + 1e-9
    # It is reached, but for the steepest laws.
    if epsilon * number.unit < 30 and bound < 500:
        assert loss >= bound * (1 - 1e-3) - 1e-6
    cx, cy = (float(np.clip(v, values[0], values[-1])) for v in (x, y))
    if log and cx * cy > 0 and min(abs(cx), abs(cy)) >= 0.01:
        assert bound <= epsilon * (abs(math.log(cx / cy)) + number.unit) * (1 + 1e-9) + 1e-12
    if not log:
        assert bound <= epsilon * (abs(cx - cy) + number.unit) * (1 + 1e-9)


def test_dates_are_drawn_by_days() -> None:
    date = Date(0.2, low="2026-01-01", high=dt.date(2026, 3, 1), seed=1)
    day = dt.date(2026, 1, 20)
    days, law = date.probabilities(day)
    assert [str(d) for d in days[[0, -1]]] == ["2026-01-01", "2026-03-01"]
    assert days[law.argmax()] == day
    counts = np.bincount((date.sample(day, 100_000) - days[0]).astype(int), minlength=len(law))
    assert_follows(counts, law)
    assert date.bound(day, dt.date(2026, 1, 25)) == pytest.approx(1.0)
    assert date.bound(dt.date(2000, 1, 1), dt.date(1990, 1, 1)) == 0.0


# Columns


def test_types_and_nulls_are_kept() -> None:
    assert N.privatize(Decimal("12.50")).as_tuple().exponent == -2
    assert isinstance(N.privatize(np.float32(2)), np.float32) and N.privatize(None) is None
    assert math.isnan(N.privatize(math.nan))
    out = N.privatize([1, 2.5, None, Decimal("3"), [4, None]])
    assert [type(x) for x in out[:4]] == [int, float, type(None), Decimal] and out[4][1] is None
    for dtype in ("int8", "uint16", "int64", "float32", "float64"):
        array = np.array([[1, 2], [100, 4]], dtype=dtype)
        new = N.privatize(array)
        assert new.dtype == array.dtype and new.shape == (2, 2)
    assert type(D.privatize(DAY)) is dt.date and D.privatize([DAY, None])[1] is None
    moment = D.privatize(MOMENT.replace(tzinfo=dt.timezone.utc))
    assert (moment.hour, moment.minute, moment.tzinfo) == (0, 0, dt.timezone.utc)
    hours = np.array(["2026-05-03T10", "NaT"], dtype="datetime64[h]")
    days = D.privatize(hours)
    assert days.dtype == hours.dtype and np.isnat(days[1])
    assert days[0].astype("datetime64[D]") == days[0]
    huge = Number(1e-3, low=0)
    assert set(huge.privatize(np.full(1000, 200, np.uint8)).tolist()) <= set(range(256))
    assert N.privatize([]) == []


DAY, MOMENT = dt.date(2026, 5, 3), dt.datetime(2026, 5, 3, 17, 45)
STAMPS = pd.Series([pd.Timestamp(MOMENT), pd.NaT], name="t")
WHOLE_NUMBERS = pa.array([1.0, None, 3.0])
COLUMNS = [
    *((N, column) for column in (
        pd.Series([1.0, None, 3.0], index=[5, 6, 7], name="x"), pd.Series([1, 2, 3]),
        pd.Series([1, None, 3], dtype="Int64"), pd.Series([1.5, None], dtype="Float32"),
        pd.Series([Decimal("1.20"), None]), pd.Series([1, None], dtype=pd.ArrowDtype(pa.int32())),
        pl.Series("x", [1, None, 3]), pl.Series([1.5, None]), pl.Series([Decimal("1.20"), None]),
        *(WHOLE_NUMBERS.cast(kind) for kind in (pa.int8(), pa.uint64(), pa.float32(), pa.float64(),
                                                pa.decimal128(9, 2))),
        pa.chunked_array([WHOLE_NUMBERS, WHOLE_NUMBERS]),
    )),
    *((D, column) for column in (
        STAMPS, STAMPS.dt.tz_localize("Europe/Berlin"), pd.Series([DAY, None]),
        pl.Series("t", [DAY, None]), pl.Series("t", [MOMENT, None]),
        *(pa.array([DAY, None], kind) for kind in (pa.date32(), pa.date64())),
        pa.array([MOMENT, None], pa.timestamp("us")),
        pa.array([MOMENT.replace(tzinfo=dt.timezone.utc), None], pa.timestamp("s", tz="UTC")),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("law", "column"), COLUMNS)
def test_a_column_keeps_its_type_name_index_and_nulls(law: Number | Date, column: Any) -> None:
    new = law.privatize(column)
    assert type(new) is type(column) and len(new) == len(column)
    if isinstance(first := next(iter(new)), dt.datetime):
        assert (first.hour, first.minute) == (0, 0), "a date is a midnight"
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        assert new.type == column.type and new.is_null().equals(column.is_null())
        return
    assert (new.dtype, new.name) == (column.dtype, column.name)
    if isinstance(column, pd.Series):
        assert list(new.index) == list(column.index) and list(new.isna()) == list(column.isna())
    else:
        assert new.is_null().equals(column.is_null())


def test_columns_whose_type_holds_values() -> None:
    """Categories, and what fills a sparse column, would be released as they were written."""
    number = Number(1.0, low=1, high=1e6, smallest=1.0)
    raw = [1249.9, 17.25, None, 1249.9]
    for ordered in (False, True):
        given = pd.Series(pd.Categorical(raw, ordered=ordered), index=[5, 6, 7, 8], name="x")
        for column in (given, pd.CategoricalIndex(given, name="x")):
            new = number.privatize(column)
            assert isinstance(new.dtype, pd.CategoricalDtype) and new.dtype.ordered == ordered
            assert new.name == "x" and list(new.isna()) == [False, False, True, False]
            assert not {1249.9, 17.25} & set(new.dtype.categories)
    whole = number.privatize(pd.Series([1, 2, 900], dtype="category"))
    assert whole.dtype.categories.dtype.kind == "i"
    days = pd.Series(pd.to_datetime(["2026-05-03", None, "2026-05-04"])).astype("category")
    far = Date(1e-3, low="2030-01-01", high="2090-01-01").privatize(days)
    assert far.isna().tolist() == [False, True, False]
    assert all(day.year >= 2030 for day in far.dtype.categories)
    sparse = pd.Series(pd.arrays.SparseArray([12.5, 12.5, 3.0], fill_value=12.5))
    new = number.privatize(sparse)
    assert new.dtype == np.float64 and 12.5 not in new.tolist() and len(new) == 3


def test_what_is_masked_or_infinite() -> None:
    with pytest.raises(fastdx.InputTypeError, match="numbers must be an array without a mask"):
        N.privatize(np.ma.array([1249.0, 2.0], mask=[True, False]))
    # Too large values are clamped, whatever type holds them.
    wide = Number(1.0, "linear", low=0, high=10)
    given_ = [Decimal("Infinity"), Decimal("1E-500"), 10**400, -(10**400), Fraction(10**400, 3),
              Decimal("NaN"), Decimal("sNaN"), math.inf]  # fmt: skip
    found = wide.privatize(given_)
    assert [x.is_nan() for x in found[5:7]] == [True, True]
    assert all(0 <= x <= 10 for i, x in enumerate(found) if i not in (5, 6))
    assert type(found[2]) is int and isinstance(found[0], Decimal)
    half = Number(1e-4, "linear", low=-1e9, high=1e9).privatize(np.full(1000, 9, np.float16))
    assert half.dtype == np.float16 and np.isfinite(half).all()


def test_timestamps_of_nanoseconds_end_in_2262() -> None:
    wide = Date(1e-5, low="0100-01-01", high="9900-12-31")
    ns = np.full(200, "2026-05-03T10", dtype="datetime64[ns]")
    first, last = np.datetime64("1677-09-23"), np.datetime64("2262-04-10")
    columns = [ns, pd.Series(ns), pd.Series(ns).dt.tz_localize("Etc/GMT-9"), pa.array(ns),
               pa.array(ns).cast(pa.timestamp("ns", tz="UTC"))]  # fmt: skip
    for column in columns:
        new = wide.privatize(column)
        drawn = new.to_numpy(zero_copy_only=False) if isinstance(new, pa.Array) else new
        if isinstance(drawn, pd.Series):
            drawn = drawn.dt.tz_localize(None).to_numpy()
        assert drawn.min() >= first and drawn.max() <= last
        # A tenth of the range fits: the others are its ends, on a midnight.
        assert (drawn == drawn.astype("datetime64[D]")).all() and len(np.unique(drawn)) > 3
    assert wide.privatize(ns[0]).dtype == ns.dtype
    assert wide.privatize(ns.astype("datetime64[us]")).max() > last


def test_bad_input_names_the_parameter() -> None:
    """Other settings: tables_are_read_and_written in src/numbers/settings.rs."""
    for make, said in [
        (lambda: Number("x"), "^epsilon"),
        (lambda: Number(1.0, high=math.inf), "^high must be a finite number"),
        (lambda: Number(1.0, low=object()), "^low must be a number or a str, not object"),
        (lambda: Date(1, low="soon"), "low"),
        (lambda: N.privatize("5"), "numbers"),
        (lambda: N.privatize([True]), "numbers"),
        (lambda: N.privatize({}), "numbers"),
        (lambda: D.privatize(5), "dates"),
        (lambda: D.privatize(["5"]), "dates"),
        (lambda: N.estimate_mean([]), "released"),
        (lambda: N.estimate_mean([1.0], level=1.0), "level"),
        (lambda: N.estimate_histogram([], [0, 1]), "released"),
        (lambda: N.estimate_histogram([1.0], [0]), "edges"),
        (lambda: N.estimate_histogram([1.0], [1, 1]), "edges"),
        (lambda: Number(1, "linear", unit=1e-9, low=0, high=1).probabilities(0), "epsilon"),
        (lambda: Tem(E2, 1.0, numbers=Number(1.0, seed=1)), "seed"),
        (lambda: Tem(E2, 1.0, numbers="x"), "numbers"),
        (lambda: fastdx.BagOfWords(Tem(E2, 1.0, numbers=N)), "numbers= or dates="),
        (lambda: fastdx.BagOfWords(Tem(E2, 1.0, dates=D)), "numbers= or dates="),
        (lambda: Tem(E2, 1.0, dates={"epsilon": 1, "lo": 2}), "dates"),
    ]:
        with pytest.raises((ParameterError, InputTypeError), match=said):
            make()


def test_objects_are_equal_pickled_and_shown() -> None:
    for law in (N, D, Number(1, "linear", low=0, high=5, seed=3), Date(1, low="2020-01-01")):
        again = pickle.loads(pickle.dumps(law))
        assert again == law and hash(again) == hash(law)
        assert eval(repr(law).split(", seed")[0].rstrip(")") + ")").settings == law.settings
    assert "FOR TESTS ONLY" in repr(Number(1, seed=2)) and "SEEDED" in Number(1, seed=2).guarantee
    assert (Number(5.0).epsilon, Number(5.0).scale) == (5.0, "log")
    assert Date(1.0).high == "2099-12-31"
    assert N != D and Number(1.0) != Number(2.0)
    a, b = Number(5.0, seed=4), Number(5.0, seed=4)
    assert np.array_equal(a.sample(3, 100_000), b.sample(3, 100_000))
    assert not np.array_equal(N.sample(3, 100), N.sample(3, 100))


def test_an_expectation_is_undone_exactly() -> None:
    for number in (
        Number(0.5, "linear", low=-3, high=7),
        Number(2.0, unit=0.2, low=-50, high=20, smallest=1.0),
    ):
        released = [-3.0, 0.0, 1.0, 5.0]
        undone = number._undone(released, lambda x: x[None, :])[0]
        assert number.estimate_mean(released).value == pytest.approx(undone.mean())
        for x in (-3.0, -2.0, 0.0, 5.0, 7.0, 20.0):
            values, law = number.probabilities(x)
            at = number._core.place(x)
            h = number._undone(values, lambda x: np.array([x, x > 1.0, np.ones(len(x))]))
            here = number._core.values(np.array([at]))[0]
            assert h @ law == pytest.approx([here, float(here > 1.0), 1.0], abs=1e-6)


@pytest.mark.parametrize("epsilon", [2.0, 20.0])
def test_histograms_are_estimated_without_bias(epsilon: float) -> None:
    number = Number(epsilon, low=0, high=1e4, seed=5)
    written = np.random.default_rng(2).gamma(2.0, 20.0, 4000)
    edges = [0.0, 10.0, 20.0, 50.0, 100.0, 1e4]
    on_grid = number._core.values(number._core.places(written))
    true = np.histogram(on_grid, edges)[0]
    found = [number.estimate_histogram(number.privatize(written), edges) for _ in range(60)]
    for estimates in found:
        # All bins together hold everything.
        assert sum(e.value for e in estimates) == pytest.approx(len(written))
    for at, count in enumerate(true):
        spread = [(e[at].high - e[at].low) / 2 / 1.96 for e in found]
        off = [(e[at].value - count) / s for e, s in zip(found, spread, strict=True)]
        assert abs(np.mean(off)) * math.sqrt(60) < 5.3
        assert sum(o * o for o in off) < stats.chi2.isf(ALARM, 60)
    coarse, more = Number(5.0, "linear", low=0, high=1, unit=0.5), 1 / math.expm1(2.5)
    low, top = coarse.estimate_histogram([1.0], [0, 1, 1.5])
    assert (low.value, top.value) == pytest.approx((-more, 1 + more))


# Texts


def test_numbers_are_words_by_default() -> None:
    plain, with_both = Tem(WORDS, 2.0, seed=5), Tem(WORDS, 2.0, seed=5, numbers=N, dates=D)
    texts = ["the cat, the dog", "a dog xyz"] * 20
    assert plain.privatize(texts) == with_both.privatize(texts)
    assert plain.numbers is None and plain.dates is None and "numbers" not in plain.spec
    assert plain.privatize_counted(["12 cats"])[1]["numbers"] == 0


def test_words_that_would_be_read_as_numbers_are_inputs_only() -> None:
    assert Tem(E2, 2.0, numbers=N).excluded == ["12"] and not Tem(E2, 2.0).excluded
    words = Embedding(["tea", "May", "pm", "version", "of"], [[0.0], [1.0], [2.0], [3.0], [4.0]])
    both = Tem(words, 0.1, numbers=N, dates=D)
    assert both.excluded == ["May", "pm", "version"] and not Tem(words, 0.1).excluded
    texts = ["tea 7 tea", "7 tea of May", "version tea 7 pm", "tea 3 May 2020 tea", "tea 7"] * 300
    for text, private in zip(texts, both.privatize(texts), strict=True):
        assert len(both.tokenize(private)) == len(both.tokenize(text)), (text, private)


def test_texts_with_numbers_and_dates() -> None:
    tem = Tem(BOX, 1.0, numbers=Number(1e5, unit=0.001), dates=Date(40.0, order="dmy"))
    # On a grid of a thousandth the number moves by half of it at most.
    for text, shape in [
        ("Refund 1,249.90 € for order of 3 May", "▢ 9,999.99 € ▢ ▢ ▢ ▢ ▢"),
        ("5th of 03/05/2026, €12!", "▢ ▢ 99/99/9999, €99!"),
        ("555 123 4567 and 12/31/99 in 2019", "▢ ▢ ▢ ▢ ▢ ▢ ▢"),
    ]:
        assert re.sub(r"\d", "9", tem.privatize(text)) == shape
    _, counts = tem.privatize_counted(["12 of 3 May 2026, xyz"])
    assert counts["numbers"] == 1 and counts["dates"] == 1 and counts["words"] == 4
    assert counts["unknown"] == 2 and counts["replaced"] == 0
    # A form does not tell how a month and a day were written, which depends on the date: others in
    # src/numbers/date_form.rs.
    near = Tem(BOX, 1.0, dates=Date(40.0, order="dmy"))
    assert near.privatize("03 Jun 2026") == "3 June 2026"
    assert near.guarantee.bound("03 Jun 2026", "3 June 2026") == 0.0
    # A number of the vocabulary is a number; a skipped one is released.
    twelve = Tem(E2, 1.0, numbers=N, skip=["12"])
    assert twelve.privatize_counted(["12 13"])[1]["skipped"] == 1
    assert Tem(E2, 1.0, numbers=N).privatize_counted(["12"])[1]["numbers"] == 1
    assert Tem(E2, 1.0, numbers=N).tokenize("12 The 3 May") == ["12", "the", "3", "may"]
    assert Tem(E2, 1.0, dates=D).tokenize("The 3 May 2026") == ["the", "3 May 2026"]


def test_a_draw_in_text_follows_the_law() -> None:
    number = Number(3.0, "linear", unit=1, low=0, high=40)
    date = Date(0.5, low="2026-01-01", high="2026-12-31")
    texts = ["€20 on 2026-12-24"] * 50_000
    drawn = Tem(E2, 1.0, numbers=number, dates=date, seed=9).privatize(texts)
    parts = [(text.split()[0], text.split()[2]) for text in drawn]
    values, law = number.probabilities(20)
    assert_follows(counted(np.array([float(n[1:]) for n, _ in parts]), values), law)
    days, law = date.probabilities(dt.date(2026, 12, 24))
    at = (np.array([d for _, d in parts], dtype="datetime64[D]") - days[0]).astype(int)
    assert_follows(np.bincount(at, minlength=len(law)), law)


def test_the_bound_of_texts_with_numbers() -> None:
    tem = Tem(E2, 2.0, numbers=N, dates=D)
    g = tem.guarantee
    a, b = "the cat paid €12 on 3 May 2026", "the dog paid €24 on 13 May 2026"
    words = Tem(E2, 2.0).guarantee.bound("the cat", "the dog")
    expected = words + N.bound(12, 24) + D.bound(dt.date(2026, 5, 3), dt.date(2026, 5, 13))
    assert g.bound(a, b) == pytest.approx(expected)
    assert g.bound("x -3", "x 3") == pytest.approx(N.bound(-3, 3))
    for part, other in (("€24", "$24"), ("24", "24.00"), ("€24", "xyz"), ("13 May", "May 13")):
        assert g.bound(a, b.replace(part, other)) == math.inf
    assert g.bound(["€12"], ["€24"]) == pytest.approx(N.bound(12, 24))
    assert g.price(a) == pytest.approx(2.0 * 4 + 10.0 + 0.1)
    assert "exp(10·d)" in str(g) and "the form of each" in str(g)
    assert "exp(0.1·d)" in g.describe("user")
    assert "the form of each" not in str(Tem(E2, 2.0).guarantee)
    once = Tem(E2, 2.0, numbers=N, consistent=True)
    assert once.guarantee.bound("€12 €12 x", "€24 €24 x") == pytest.approx(N.bound(12, 24))
    assert once.guarantee.bound("€12 €12 x", "€24 €25 x") == math.inf
    seen = [t.split() for t in once.privatize(["€12 €12 €13"] * 50)]
    assert all(x == y for x, y, _ in seen) and len({x for x, _, _ in seen}) > 5
    everywhere = Tem(E2, 2.0, numbers=N, consistent="call").privatize(["€12", "€12"] * 10)
    assert len(set(everywhere)) == 1


@KINDS
def test_every_mechanism_and_its_spec(kind: Any) -> None:
    points = space(kind, [[0.0, 0.1], [1.0, 0.3], [0.5, 2.0]])
    e = Embedding(list("abc"), points.vectors, metric=points.metric)
    made = kind(e, kind.smallest_epsilon(e) + 1.0, numbers=N, dates=D)
    assert made.numbers == N and made.dates == D and "numbers=" in repr(made)
    assert from_spec(made.spec, e) == made == pickle.loads(pickle.dumps(made))
    assert from_spec({**made.spec, "numbers": 10}, e) == made
    assert made.with_epsilon(made.epsilon + 1).numbers == N
    assert made.privatize("€5 a").startswith(("€", "-€"))


PHONE = "call 555 123 4567 on 3 May"


def test_a_part_of_something_else_is_no_number_by_itself() -> None:
    tem = Tem(BOX, 1.0, numbers=Number(1.0, "linear", low=8, high=8.5))
    # As tokens, with spaces between.
    assert tem.privatize_tokens(tem.tokenize(PHONE)) == ["▢"] * 7
    assert tem.privatize_tokens(["€5", "x", "7 %", "y", "9"]) == ["€8", "▢", "8 %", "▢", "8"]
    assert tem.privatize_tokens(["555", "123", "5 pm", "x", "7"], select=["555", "7"]) == [
        "▢", "123", "5 pm", "x", "8",
    ]  # fmt: skip
    assert tem.guarantee.price(["555", "123"]) == 2.0
    assert Tem(E2, 1.0, numbers=N).guarantee.bound(["5", "cat"], ["5", "6"]) == math.inf
    # As spans: of every word, and of the words that a selection takes.
    starts = [m.span() for m in re.finditer(r"\S+", PHONE)]
    found = tem.privatize_spans(PHONE, starts)
    assert found.text == "▢ ▢ ▢ ▢ ▢ ▢ ▢"
    assert tem.privatize_spans(PHONE, [(5, 8), (21, 22)]).text == "call ▢ 123 4567 on ▢ May"
    assert tem.privatize_spans("paid €5 and 12 %", [(5, 7), (12, 14)]).text == "paid €8 and 8 %"
    chosen = tem.privatize_spans(PHONE, select=lambda word: word.isdigit())
    assert chosen.text == "call ▢ ▢ ▢ on ▢ May"
    for consistent in (False, True, "call"):
        same = Tem(E2, 1.0, numbers=N, consistent=consistent, seed=4)
        new = same.privatize_spans(
            "cat 555 123 cat €5", [(0, 3), (4, 7), (8, 11), (12, 15), (16, 18)]
        )
        words = new.text.split()
        # A part of a telephone number makes words of all.
        assert not re.search(r"\d", new.text) and len(words) == 5
        assert not consistent or words[0] == words[3]
    # The bound knows it: 123 beside 555 is a word, and beside a word a number.
    spans = [(0, 3), (4, 7)]
    guarantee = Tem(E2, 1.0, numbers=N).privatize_spans("555 123", spans).guarantee
    assert guarantee.bound("555 123", "cat 123") == math.inf
    assert guarantee.bound("555 123", "556 124") == 0.0
    assert guarantee.bound("cat 123", "cat 124") == pytest.approx(N.bound(123, 124))


def test_the_channel_takes_numbers_for_what_is_known() -> None:
    e = line(0, 1, 3)
    # To a model of language a number is a word that it does not know.
    prior = NgramPrior.train(e, ["a zz b", "b c zz", "c a a"] * 10, 1)
    found = Channel.of(Tem(e, 1.0, numbers=N)).decode("a €12.50 b", prior)
    words = Channel.of(Tem(e, 1.0)).decode("a b", prior)
    for place, other in ((0, 0), (2, 1)):
        np.testing.assert_allclose(found.marginals(place), words.marginals(other))


def test_a_ledger_charges_each_by_its_own_law(tmp_path: Path) -> None:
    tem = Tem(WORDS, 2.0, numbers=N, dates=D)
    ledger = Ledger(tmp_path / "ledger.sqlite", budget=40.0)
    new = ledger.privatize(tem, "the cat paid €12 on 3 May 2026", account="ann")
    assert len(N.find(new)) == 1 and len(D.find(new)) == 1
    assert ledger.spent("ann") == pytest.approx(2.0 * 4 + 10.0 + 0.1)
    ledger.privatize(tem, "€12 cat", account="ann")
    assert ledger.spent("ann") == pytest.approx(18.1 + 12.0)
    # A text of nothing but a number has a word; an unknown word costs as a known one.
    ledger.privatize(tem, "7 %", account="bob")
    ledger.privatize(tem, "xyz 2019", account="bob")
    assert ledger.spent("bob") == pytest.approx(10.0 + 4.0)
    notes = [entry.note for entry in ledger.entries()]
    assert notes[0] == "4 words at ε = 2, 1 numbers at ε = 10, 1 dates at ε = 0.1"
    assert notes[2:] == ["1 numbers at ε = 10", "2 words at ε = 2"]
    with pytest.raises(BudgetExceededError):
        ledger.privatize(tem, "€1, €2", account="ann")
    assert ledger.spent("ann") == pytest.approx(30.1) and len(ledger.entries()) == 4
    # Equal numbers are drawn, and paid for, once.
    once = Tem(WORDS, 2.0, numbers=N, consistent=True)
    ledger.privatize(once, "€12 €12 cat cat", account="cy")
    assert ledger.spent("cy") == pytest.approx(12.0)


def test_the_command_charges_numbers_and_dates(tmp_path: Path) -> None:
    ledger, text = tmp_path / "ledger.sqlite", "hot coffee, €12 on 3 May 2026\n"
    given = ("privatize", "--ledger", ledger, "--account", "ann", "--epsilon", "2",
             "-o", tmp_path / "out.txt")  # fmt: skip
    figures = ("--numbers", "10", "--dates", "0.5")
    run(*given, *figures, "--budget", "20", stdin=text, code=0)
    spent = from_spec({"epsilon": 2.0, "numbers": 10, "dates": 0.5}).guarantee.price(text)
    assert Ledger(ledger).spent("ann") == pytest.approx(2.0 * 3 + 10.5) == spent
    (entry,) = Ledger(ledger).entries("ann")
    assert entry.note == "3 words at ε = 2, 1 numbers at ε = 10, 1 dates at ε = 0.5"
    assert len(N.find((tmp_path / "out.txt").read_text())) == 1
    fails("would pass the budget", *given, *figures, stdin=text)


WHOLE = [
    "EUR 12.50", "12 %", "3 May 2026", "May 3, 2026", "May the 3rd", "the 3rd of May",
    "call 555 123 4567 now", "version 2.5", "5 pm", "4111 - 1111 - 1111", "Jan. 5, 2026",
]  # fmt: skip


@pytest.mark.parametrize("whole", WHOLE)
def test_no_piece_of_plain_text_ends_in_a_number_or_date(whole: str) -> None:
    for size in range(100, 220):
        text = f"{'and so on with words ' * 20}{whole} {'then some more of them ' * 20}"
        pieces = [b.text("") for b in cut(io.BytesIO(text.encode()), "", size, between_words)]
        assert "".join(pieces) == text and len(pieces) > 1
        assert sum(whole in piece for piece in pieces) == 1, pieces
    # Where every word has digits, it is cut somewhere.
    numbers = "12 13 14 " * 20
    pieces = [b.text("") for b in cut(io.BytesIO(numbers.encode()), "", 30, between_words)]
    assert "".join(pieces) == numbers and len(pieces) > 5


def test_the_command_reads_a_date_across_a_piece_whole(tmp_path: Path) -> None:
    # The border of the first piece lies behind "3 May".
    before = "tea " * (BATCH_CHARACTERS // 4)
    text = before[-(BATCH_CHARACTERS - 6) :] + "3 May 2026 and €12 more of it, with 12 % of it all"
    assert text.encode()[:BATCH_CHARACTERS].endswith(b" 3 May ")
    (tmp_path / "in.txt").write_text(text)
    done = run("privatize", tmp_path / "in.txt", "-o", tmp_path / "out.txt", "--epsilon", "9",
               "--allow-unchanged", "--numbers", "1000", "--dates", "1000", code=0)  # fmt: skip
    new = (tmp_path / "out.txt").read_text()
    assert "1 were dates" in done.stderr and "2 were numbers" in done.stderr
    assert D.find(new[-200:]) == [dt.date(2026, 5, 3)]


def test_options_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,text\n1,paid €12.50\n")
    given = {"epsilon": 20.0, "decimal": ",", "unit": 1.0}
    assert options("privatize", "--numbers", json.dumps(given)).spec["numbers"] == given
    wrong = ("--dates", '{"epsilon": 1, "order": "ymd"}')
    fails("dates must", "privatize", tmp_path / "in.csv", "--column", "text", *wrong)


# Hostile inputs

WRITTEN = """
0 1 12 999 1249 2019 007 3.14 1,249.90 1.249,90 1'249 12:30 1.2.3 12/31/99 03/05/2026
2026-05-03 0x1F ½ ² Ⅳ XIV １２ ٣٤ १२ 𝟙𝟚 ① 〇 五 € $ % - − + e E5 1e9 th st . , ' ’ May Jan DEC
am pm version of the Sept Jan. mai + EUR ( ) [ " / : ; _ * # @ http:// a Xy 🎉 1\u20e3
"""
UNSEEN = " \t\n\u00a0\u202f\u2007\u2009\x85\x00\u200b\u0301\u202e\ufeff\ue000"
PARTS = [*WRITTEN.split(), *UNSEEN, "  "]


FORMS = {"August"}


def hostile_texts(count: int) -> list[str]:
    rng = random.Random(20)
    return ["".join(rng.choices(PARTS, k=rng.randint(1, 9))) for _ in range(count)]


@pytest.mark.parametrize("which", ["numbers", "dates", "both"])
def test_nothing_raw_passes_in_hostile_inputs(which: str) -> None:
    """Digits and letters that are released were drawn, or are of a form.

    Over grids of one point every number becomes 8 and every date with a year 8 or 9 August 2000, so
    no other digit comes out, nor a letter that no form has. Texts without figures are as without.
    """
    number = Number(1.0, "linear", low=8, high=8.5) if which != "dates" else None
    date = (
        Date(1.0, low="2000-08-08", high="2000-08-09", order="dmy") if which != "numbers" else None
    )
    texts = hostile_texts(100_000)
    out, counts = Tem(BOX, 1.0, numbers=number, dates=date).privatize_counted(texts)
    words = Tem(BOX, 1.0).privatize(texts)
    assert number is None or counts["numbers"] > 2000
    assert date is None or counts["dates"] > 500
    for text, new, drawn in zip(texts, out, words, strict=True):
        if not ((number and number.find(text)) or (date and date.find(text))):
            assert new == drawn, ascii(text)
            continue
        digits = {c for c in new if c.isnumeric()}
        assert digits <= set("80" if which == "numbers" else "8029"), (ascii(text), ascii(new))
        letters = "".join(c if c.isalpha() else " " for c in new.replace("▢", " ")).split()
        assert set(letters) <= FORMS, (ascii(text), ascii(new))
        left = {c for c in new if not (c.isalnum() or c.isspace() or c in "▢€$")}
        assert left <= set(drawn) | set("-.,'’/%"), (ascii(text), ascii(new))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=12).map("".join), st.text(max_size=10))
def test_the_account_of_a_text_is_one(text: str, more: str) -> None:
    text += more
    tem = Tem(E2, 1.0, numbers=N, dates=D)
    out, counts = tem.privatize_counted([text])
    tokens = tem.tokenize(text)
    assert len(tokens) == counts["words"]
    kinds = ("replaced", "unknown", "skipped", "numbers", "dates")
    assert counts["words"] == sum(counts[kind] for kind in kinds)
    g = tem.guarantee
    assert g.bound(text, text) == 0.0 and math.isfinite(g.price(text))
    words = counts["replaced"] + counts["unknown"]
    assert g.price(text) == pytest.approx(words + 10 * counts["numbers"] + 0.1 * counts["dates"])
    assert json.loads(json.dumps(out)) == out
