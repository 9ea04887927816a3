"""Processes that charge a ledger at once."""

import json
import subprocess
import sys
from collections import Counter

CHARGE = """
import json, sys, time
from collections import Counter
from fastdx.budget import BudgetExceededError, Ledger

path, charges, budget = json.loads(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
found, accepted, longest = Counter(), [], 0.0
for account, amount, note in charges:
    start = time.perf_counter()
    try:
        # Opens the ledger as often as it charges: many programs that charge once are like that.
        Ledger(path, budget, timeout=60.0).charge(account, amount, note)
    except BudgetExceededError:
        found[f"refused {account}"] += 1
    except Exception as e:
        found[f"{type(e).__name__}: {e}"] += 1
    else:
        found[account] += 1
        accepted.append(note)
    longest = max(longest, time.perf_counter() - start)
print(json.dumps([found, accepted, longest]))
"""


def begun(
    path: object, budget: float, charges: list[list[tuple[str, float, str]]]
) -> list[subprocess.Popen[str]]:
    """One process for each list of accounts, amounts and notes; all begin at once."""
    pipe, processes = subprocess.PIPE, []
    for own in charges:
        command = [sys.executable, "-c", CHARGE, json.dumps([str(path), own, budget])]
        processes.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True))
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return processes


def charged(process: subprocess.Popen[str]) -> tuple[Counter[str], list[str], float]:
    """The answers to a process, the notes of what was accepted, the longest wait in seconds."""
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    found, accepted, longest = json.loads(out)
    return Counter(found), accepted, longest
