"""Numbers and dates through the service: what they cost, and the laws that it shows."""

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from fastdx import from_spec
from fastdx.budget import Ledger
from fastdx.client import Client, ServiceError
from fastdx.numbers import Date, Number

SPEC: dict[str, Any] = {
    "epsilon": 3.0,
    "numbers": {"epsilon": 10.0, "low": 0.0},
    "dates": {"epsilon": 0.2, "order": "dmy"},
}
CONFIG = """
[policies.a]
epsilon = 3.0
allow_unchanged = true
numbers = { epsilon = 10.0, low = 0.0 }
dates = { epsilon = 0.2, order = "dmy" }
"""


def test_a_ledger_charges_what_python_charges(start: Callable[..., str], tmp_path: Path) -> None:
    config, keys, path = (tmp_path / name for name in ("policies.toml", "keys", "ledger.sqlite"))
    config.write_text(CONFIG)
    keys.write_text(f"ann\t{'k' * 16}\n")
    address = start("--config", str(config), "--keys", str(keys), "--ledger", str(path),
                    "--budget", "60")  # fmt: skip
    ledger, guarantee = Ledger(path), from_spec(SPEC).guarantee
    spent = 0.0
    with Client(f"http://{address}", key="k" * 16) as client:
        for text, note in [
            (
                "coffee for €12 on 3 May 2026",
                "3 words at ε = 3, 1 numbers at ε = 10, 1 dates at ε = 0.2",
            ),
            ("7 %", "1 numbers at ε = 10"),
            ("call 555 123 4567", "4 words at ε = 3"),
        ]:
            new = client.privatize(text)
            assert len(Number(1.0).find(new)) == len(Number(1.0).find(text))
            spent += guarantee.price(text)
            assert ledger.spent("ann") == pytest.approx(spent)
            assert ledger.entries("ann")[-1].note == note
        with pytest.raises(ServiceError, match="is left"):
            client.privatize("€1, €2 and €3")
    assert ledger.spent("ann") == pytest.approx(spent) == pytest.approx(41.2)


def test_the_law_of_a_number_is_shown(start: Callable[..., str], tmp_path: Path) -> None:
    config = tmp_path / "policies.toml"
    config.write_text(CONFIG + "[policies.fine]\nepsilon = 3.0\nnumbers = 0.01\n")
    address = start("--config", str(config))

    def law(text: str, policy: str) -> list[dict[str, Any]]:
        body = json.dumps({"text": text, "policy": policy}).encode()
        request = Request(f"http://{address}/v1/law", body, {"content-type": "application/json"})
        with urlopen(request, timeout=60) as answer:
            words: list[dict[str, Any]] = json.load(answer)["words"]
        return words

    coffee, amount, day, year = law("coffee: 1,249.90 €, 3 May 2019", "a")[:3] + law("2019", "a")
    assert coffee["fate"] == "replaced" and year["fate"] == "unknown"
    assert (amount["word"], amount["fate"]) == ("1,249.90 €", "number")
    assert (day["word"], day["fate"]) == ("3 May 2019", "date")
    # Two decimals tell all points of this grid apart: each is a replacement.
    values, p = Number(10.0, low=0).probabilities(1249.90)
    wanted = {f"{value:,.2f} €": chance for value, chance in zip(values, p, strict=True)}
    assert len(amount["likeliest"]) == 8 and amount["unchanged"] == 0.0
    for written, chance in amount["likeliest"]:
        assert chance == pytest.approx(wanted[written], rel=1e-9)
    assert amount["likeliest"][0][1] == pytest.approx(p.max())
    days, p = Date(0.2).probabilities(dt.date(2019, 5, 3))
    assert day["unchanged"] == pytest.approx(p.max()) == day["likeliest"][0][1]
    assert day["likeliest"][0][0] == "3 May 2019" and len(days) == len(p)
    # A grid so fine that it has too many points of a probability that counts.
    assert law("€12", "fine") == [{"word": "€12", "fate": "number", "likeliest": None}]
