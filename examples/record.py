"""Print a release record with filled-in fields, the page that somebody signs before a release.

    python examples/record.py

The texts, the people and the account are invented. Everything else is computed in the run.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from fastdx import Tem
from fastdx.budget import Ledger
from fastdx.lab import attacks
from fastdx.record import LINE

TEXTS = ("the doctor said that my knee is fine", "see you on monday", "thank you for the medicine")


def filled() -> str:
    """Release three invented texts of one person, and fill in the record."""
    tem = Tem.recommended()
    attack = attacks.reidentification(tem, "rank", (1,))
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "budget.sqlite", budget=100.0)
        for text in TEXTS:
            ledger.privatize(tem, text, account="patient 7")
        page = tem.guarantee.describe("reviewer", ledger=ledger, account="patient 7")
    return fill(
        page,
        {
            "controller": "Example Clinic, Springfield",
            "texts, and whose they are": "three messages of one patient to the clinic, in English",
            "purpose and recipients": "training of a classifier of messages, by Example Labs",
            "other releases of these texts": "none",
            "attack that was run, and its result": (
                "best attacker on single words, who knows how often each word is written; named "
                f"{attack.success[1]:.1%} of the words"
            ),
            "why the result is acceptable": (
                "a contract binds the recipient; names and numbers were deleted before; the output "
                "is handled as personal data"
            ),
            "name, place, date, signature": "J. Doe, data-protection officer, Springfield, …",
        },
    )


def fill(page: str, answers: dict[str, str]) -> str:
    """Write the answers into the empty lines of the page."""
    for what, answer in answers.items():
        blank = f"- {what}: {LINE}"
        if blank not in page:
            raise ValueError(f"the page has no line for {what!r}")
        page = page.replace(blank, f"- {what}: {answer}")
    return page


def demoted(page: str) -> str:
    """Lower all headings by two levels, so that the page fits into another one."""
    return re.sub(r"^#", "###", page, flags=re.MULTILINE)


if __name__ == "__main__":
    print(demoted(filled()), end="")
