"""Privatise sentences by Tem as published, by the recommended policy, and by Tem on a cover.

    python examples/beside.py

It prints the bits that a release tells about a word. The vocabulary is the built-in one. Outputs
are random, so they differ from run to run.
"""

from __future__ import annotations

from fastdx import Tem
from fastdx.channel import Channel

SENTENCES = (
    "cancer treatment in Boston",
    "I would like to book a table for two at the restaurant near the station.",
)
DRAWS = 3


def main() -> None:
    """Print the table."""
    policies = {
        "Tem as published, ε = 2.8": Tem(epsilon=2.8, exclude="offensive"),
        "`Tem.recommended()`": Tem.recommended(),
        "Tem, ε = 2.25, balanced cover of 40": Tem(
            epsilon=2.25, cover=40, balance=0.1, exclude="offensive"
        ),
    }
    print("| written |", " | ".join(policies), "|\n|---|" + "---|" * len(policies))
    for sentence in SENTENCES:
        for i in range(DRAWS):
            drawn = " | ".join(tem.privatize(sentence) for tem in policies.values())
            print(f"| {sentence if i == 0 else ''} | {drawn} |")
    bits = " | ".join(str(Channel.of(tem).bits()) for tem in policies.values())
    print(f"| *bits a word* | {bits} |")


if __name__ == "__main__":
    main()
