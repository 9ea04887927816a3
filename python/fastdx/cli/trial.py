"""``fastdx try`` shows what the recommended policy does to a sentence."""

from __future__ import annotations

import argparse
from math import ceil, exp

from fastdx import Tem
from fastdx.cli.messages import CommandError, step
from fastdx.cli.options import Commands

LESS, MORE = 1.8, 3.4
"""ε that tell less and more than the recommended one."""
SHOWN = 4
"""Replacements that are shown of a word."""
WIDTH = 14


def add(commands: Commands) -> None:
    """Add the command."""
    p = commands.add_parser(
        "try",
        description="Replace the words of a sentence by the recommended policy, at three ε, and "
        "show what each word could have become, the bound for a pair of words, and what a reader "
        "of the release would name.",
        examples="""
  fastdx try "I would like a cup of coffee, please."
  fastdx try "my sister has asthma" --pair asthma diabetes
""",
    )
    p.add_argument("text", metavar="TEXT", help="a sentence of English")
    p.add_argument("--pair", nargs=2, metavar=("WORD", "OTHER"), default=("coffee", "tea"),
                   help="the words of the bound (default: coffee tea)")  # fmt: skip
    p.set_defaults(run=_try)


def _row(name: str, *cells: str) -> None:
    print(f"  {name:<{WIDTH}}", *cells, flush=True)


def _try(args: argparse.Namespace) -> None:
    from fastdx.channel import Channel, NgramPrior

    recommended = Tem.recommended()
    words = recommended.tokenize(args.text)
    if not words:
        raise CommandError("the text has no words")
    print("One draw each; another call draws other words.")
    _row("written", args.text)
    shown = recommended.privatize(args.text)
    _row(f"ε = {LESS:g}", recommended.with_epsilon(LESS).privatize(args.text))
    _row(f"ε = {recommended.nominal:g}", shown, "(recommended)")
    _row(f"ε = {MORE:g}", recommended.with_epsilon(MORE).privatize(args.text))
    print("\nUnder the recommended policy: how often a word stays; what it becomes")
    space, vocabulary = recommended.space, recommended.space.words
    for word in dict.fromkeys(words):
        if word not in space:
            _row(word, "not in the vocabulary: becomes any word, by its frequency")
            continue
        law = recommended.probabilities(word)
        near = [(vocabulary[i], law[i]) for i in law.argsort()[::-1][: SHOWN + 1]]
        others = [f"{other} {share:.1%}" for other, share in near if other != word]
        _row(word, f"{law[space.ids([word])[0]]:5.1%};", ", ".join(others[:SHOWN]))
    word, other = args.pair
    odds = ceil(exp(recommended.guarantee.bound(word, other)))
    print(f'\nFor "{word}" and "{other}", any release has odds of at most {odds:,} to 1. That is '
          "proved.")  # fmt: skip
    with step("reading the release as an attacker"):
        found = Channel.of(recommended).decode(shown, NgramPrior.english())
        named = [found.top(i, 1)[0][0] for i in range(len(found))]
    if len(named) != len(words):
        print("\nTwo drawn words read as one: what a reader would name is not shown.")
        return
    right = sum(a == b for a, b in zip(named, words, strict=True))
    print(f"\nWhoever knows the mechanism and which words follow each other would read the "
          f"recommended release as\n  {' '.join(named)}\nand be right for {right} of "
          f"{len(words)} words.")  # fmt: skip
