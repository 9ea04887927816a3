"""Show what of some inputs is released as it stands, with ▢ for every drawn word.

python examples/what_stays.py              # twenty inputs
python examples/what_stays.py --numbers    # forty with digits, with numbers= and dates=
"""

from __future__ import annotations

import sys
from typing import Any

from fastdx import Embedding, Tem
from fastdx.numbers import Date, Number

WORDS = [
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
NUMBERS = """
1,249.90 €|EUR 12.50|12 %|-3|-$5|(3.50)|5th|1e6|1'249.90|5, 10 and 15|+5|1,234,567
2026-05-03|3 May 2026|May 3rd, 2026|order of 3 May|03/05/2026|12/31/99|2026-05-03 10:30|3.5.2026
in 2019|5 pm|10:30|007|12345|1.249,90 €|version 2.5|192.168.0.1|4111 1111 1111 1111|5-10|1/2|5kg
5 kg|½ cup|999 g|1900 g|Jan. 5, 2026|3 may 2026|3rd of May|5 - 10|- 3|601⍽234⍽567
"""
SPACES = {"\N{NO-BREAK SPACE}": "⍽", "\n": "⏎"}


def shown(text: str) -> str:
    """Show a text with its white space, within a cell of a table."""
    for space, sign in SPACES.items():
        text = text.replace(space, sign)
    return "`" + text.replace("|", "\\|") + "`"


def main() -> None:
    inputs, legend, options = WORDS, "▢: a word that is drawn", dict[str, Any]()
    if sys.argv[1:] == ["--numbers"]:
        inputs = NUMBERS.strip().replace("\n", "|").split("|")
        legend = "▢: a word; 8: a number; 2000: a date"
        # Grids of one or two points: every number becomes 8, and every date with a year one in
        # 2000. The laws hardly move numbers.
        date = Date(1e9, low="2000-01-01", high="2000-01-02", order="dmy")
        options = {"numbers": Number(1.0, "linear", low=8, high=8.5), "dates": date}
    # A vocabulary of one word, so every word becomes it.
    tem = Tem(Embedding(["▢"], [[0.0]]), 1.0, **options)
    print(f"| written | released ({legend}) |\n|---|---|")
    for line in inputs:
        text = line.replace("⏎", "\n").replace("⍽", "\N{NO-BREAK SPACE}")
        print(f"| {shown(text)} | {shown(tem.privatize(text))} |")


if __name__ == "__main__":
    main()
