"""Show the outputs for twenty inputs, with ▢ for every drawn word.

python examples/what_stays.py
"""

from __future__ import annotations

from fastdx import Embedding, Tem

INPUTS = [
    "123-45-6789",
    "+1 (555) 123-4567",
    "+1(555)123-4567",
    "2024-11-21T10:30",
    "4111 1111 1111 1111",
    "€1,200.50",
    "5 $",
    "C++",
    "hunter2***",
    "p@ss^w0rd!",
    "#secret @john_doe",
    "john.smith@example.com",
    "https://example.com/a?b=c",
    "well-known",
    "O'Brien, Anne-Marie",
    "AB-12/CD",
    "yes/no?!",
    "**bold** and <b>bold</b>",
    "f(x) = a[i] + 2",
    "Sure... :-) \N{THUMBS UP SIGN}",
]


def main() -> None:
    # A vocabulary of one word, so every word becomes it.
    tem = Tem(Embedding(["▢"], [[0.0]]), 1.0)
    print("| written | released (▢: a word that is drawn) |")
    print("|---|---|")
    for text in INPUTS:
        cells = (t.replace("|", "\\|") for t in (text, tem.privatize(text)))
        print("| " + " | ".join(f"`{cell}`" for cell in cells) + " |")


if __name__ == "__main__":
    main()
