"""The same sentences by Tem and by Tem on a cover, at equal success of the attacker.

    python examples/beside.py [--epsilon 6]

The attacker knows the mechanism and the words' frequencies (by rank) and names the word behind each
output; Tem's ε is the largest at which that succeeds no more often than for the cover. The built-in
vocabulary; outputs are drawn at random, so they differ from run to run.
"""

from __future__ import annotations

import argparse

from fastdx import Cover, Embedding, Tem
from fastdx.calibration import choose_epsilon, reidentification

SENTENCES = (
    "cancer treatment in Boston",
    "I would like to book a table for two at the restaurant near the station.",
)
DRAWS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=6.0)
    args = parser.parse_args()
    e = Embedding.default()
    cover = Tem(e, args.epsilon, cover=Cover.balanced(e, 40, exclude="offensive"))
    named = reidentification(cover, "rank").success[1]
    choice = choose_epsilon(Tem(e, 3.0, exclude="offensive"), max_unchanged=1.0, min_outputs=1,
                            max_reidentified=named, prior="rank", words=["coffee"])  # fmt: skip
    tem = choice.mechanism
    print(f"An attacker names {named:.1%} of the words in both columns: Tem at ε = "
          f"{tem.epsilon:.2f}, on a balanced cover of k = 40 at ε = {cover.epsilon:g}.\n"
          )  # fmt: skip
    print("| written | Tem | Tem on a cover |\n|---|---|---|")
    for sentence in SENTENCES:
        for i in range(DRAWS):
            written = sentence if i == 0 else ""
            print(f"| {written} | {tem.privatize(sentence)} | {cover.privatize(sentence)} |")


if __name__ == "__main__":
    main()
