"""One ledger file, opened by Python's processes and by the service at once: one truth.

Every charge that was accepted stands in the file exactly once, nobody overspends, what still fits
is not refused, and nobody is told that the file is locked.
"""

import http.client
import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fastdx.budget import Ledger
from helpers.charging import begun, charged

# A word costs ε, here and in Python's charges.
EPSILON = 3.0
PROCESSES, CHARGES = 5, 80
CLIENTS, REQUESTS = 4, 120
# Charges that fit into the budget of an account that everybody charges: fewer than are asked for.
FIT = 500
KEYS = {"common": "c" * 16, "small": "s" * 16, "served": "o" * 16}


def own_charges(count: int) -> list[list[tuple[str, float, str]]]:
    """Each process charges an account of all, a small one, and its own."""
    return [
        [(account, amount, f"own {i} {account} {n}") for n in range(count)
         for account, amount in (("common", EPSILON), ("small", 0.1), (f"own {i}", 0.1))]
        for i in range(PROCESSES)
    ]  # fmt: skip


def asked(address: str, account: str, requests: int) -> Counter[str]:
    """The service's answers to so many texts of a word, on one connection."""
    found: Counter[str] = Counter()
    connection = http.client.HTTPConnection(address, timeout=120)
    headers = {"Authorization": f"Bearer {KEYS[account]}"}
    for _ in range(requests):
        connection.request("POST", "/v1/privatize", json.dumps({"text": "tea"}), headers)
        answer = connection.getresponse()
        body: dict[str, Any] = json.load(answer)
        if answer.status == 200:
            found[account] += 1
        else:
            code = body["error"]["code"]
            found[f"refused {account}" if code == "budget" else f"{answer.status}: {body}"] += 1
    connection.close()
    return found


def served(start: Callable[..., str], folder: Path, ledger: Path, budget: float) -> str:
    keys = folder / "keys"
    keys.write_text("".join(f"{account}\t{key}\n" for account, key in KEYS.items()))
    return start("--epsilon", f"{EPSILON}", "--keys", str(keys), "--ledger", str(ledger),
                 "--budget", f"{budget}")  # fmt: skip


def rows(ledger: Path) -> list[tuple[str, float, str]]:
    with sqlite3.connect(ledger) as db:
        return db.execute("SELECT account, amount, note FROM charges").fetchall()


def test_python_and_the_service_charge_one_file_at_once(
    start: Callable[..., str], tmp_path: Path
) -> None:
    ledger, budget = tmp_path / "ledger.sqlite", FIT * EPSILON
    address = served(start, tmp_path, ledger, budget)
    processes = begun(ledger, budget, own_charges(CHARGES))
    with ThreadPoolExecutor() as threads:
        clients = [
            threads.submit(asked, address, account, REQUESTS)
            for account in ("common", "served")
            for _ in range(CLIENTS)
        ]
        of_python = [charged(process) for process in processes]
        of_service = [client.result() for client in clients]

    total: Counter[str] = Counter()
    for found in [found for found, *_ in of_python] + of_service:
        total.update(found)
    tried = PROCESSES * CHARGES + CLIENTS * REQUESTS
    assert tried > FIT
    # The common budget is spent to its end, whoever spent it; nothing but the budget refuses.
    assert total == {
        "common": FIT,
        "refused common": tried - FIT,
        "small": PROCESSES * CHARGES,
        **{f"own {i}": CHARGES for i in range(PROCESSES)},
        "served": CLIENTS * REQUESTS,
    }
    written = rows(ledger)
    # Once each, and no others.
    assert Counter(account for account, _, _ in written) == {
        account: count for account, count in total.items() if not account.startswith("refused")
    }
    notes = Counter(note for _, _, note in written if note.startswith("own"))
    assert notes == Counter(note for _, accepted, _ in of_python for note in accepted)
    # Both have read what the other wrote.
    both = Ledger(ledger)
    assert (both.spent("common"), both.remaining("common")) == (budget, 0.0)
    assert asked(address, "common", 1) == {"refused common": 1}
    assert sum(found["common"] for found, *_ in of_python) > 0
    assert sum(found["common"] for found in of_service) > 0


def test_many_open_a_new_file_at_once(start: Callable[..., str], tmp_path: Path) -> None:
    for attempt in range(5):
        ledger = tmp_path / f"{attempt}.sqlite"
        processes = begun(ledger, 100.0, own_charges(1))
        address = served(start, tmp_path, ledger, 100.0)
        assert asked(address, "served", 2) == {"served": 2}
        for i, process in enumerate(processes):
            assert charged(process)[0] == {"common": 1, "small": 1, f"own {i}": 1}
        assert len(rows(ledger)) == 2 + 3 * PROCESSES
