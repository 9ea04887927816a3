"""Compare bits per word with ε and the success of one guess, on the built-in words.

    python examples/bits.py

This writes the table of docs/research/bits.md. It takes some minutes, because every number is a
sum over all 20,000 words and all outputs.
"""

from __future__ import annotations

from fastdx import Embedding, Tem
from fastdx.channel import Channel
from fastdx.lab.attacks import reidentification

READERS = (7.0, 3.5, 2.5)
"""The bits of a word for a reader who knows the words before it."""


def policies(e: Embedding) -> dict[str, Tem]:
    """Return the mechanisms of the table."""
    plain = {f"Tem, ε = {x:g}": Tem(e, x) for x in (2.0, 2.66, 3.0, 4.0)}
    covers = {
        f"Tem, ε = {x:g}, balanced cover of {k}": Tem(e, x, cover=k, balance=0.05)
        for k, x in ((40, 3.0), (40, 6.0), (20, 4.0))
    }
    return {**plain, "`Tem.recommended()`": Tem.recommended(), **covers}


def row(name: str, tem: Tem) -> str:
    """Return a row of the table."""
    channel = Channel.of(tem)
    told = channel.bits()
    right = reidentification(tem, "rank").success[1]
    left = " | ".join(f"{max(0.0, h - told):.1f}" for h in READERS)
    return f"| {name} | {told:.2f} | {channel.capacity:.1f} | {right:.1%} | {left} |"


def main() -> None:
    """Print the table."""
    left = " | ".join(f"h = {h:g}" for h in READERS)
    print(f"| policy | bits a word | capacity | named by one guess | left open, {left} |")
    print("|---" * (4 + len(READERS)) + "|")
    for name, tem in policies(Embedding.default()).items():
        print(row(name, tem), flush=True)


if __name__ == "__main__":
    main()
