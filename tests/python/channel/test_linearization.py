"""The likeliest order of a bag's words, against all orders."""

from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest

import fastdx
from fastdx import Embedding, Tem
from fastdx.channel import Channel, NgramPrior
from fastdx.lab.attacks import linearize
from helpers.spaces import line

E = line(0.0, 0.3, 1.1, 2.0)
WORDS = "abcd"


def model(order: int, seed: int) -> NgramPrior:
    rng = np.random.default_rng(seed)
    return NgramPrior.train(E, [" ".join(rng.choice(list(WORDS), 7)) for _ in range(9)], order)


def score(words: tuple[str, ...], prior: NgramPrior) -> float:
    chances = (prior.next(words[:i])[E.ids([word])[0]] for i, word in enumerate(words))
    return float(np.log(list(chances)).sum())


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_likeliest_of_all_orders_and_of_all_words_behind_a_release(order: int) -> None:
    tem = Tem(E, 2.0, skip=["d"])
    law = {w: tem.probabilities(w) if w != "d" else np.eye(4)[3] for w in WORDS}
    law = {w: row * (w == "d" or np.arange(4) < 3) for w, row in law.items()}  # d shows itself
    for seed in range(5):
        prior = model(order, seed)
        bag = Counter(np.random.default_rng(seed).choice(list(WORDS), 4).tolist())
        plain = {words: score(words, prior) for words in set(permutations(bag.elements()))}
        behind: dict[tuple[str, ...], float] = {}
        for words, outputs in product(product(WORDS, repeat=4), plain):
            pairs = zip(words, E.ids(outputs), strict=True)
            if (chance := np.prod([law[word][i] for word, i in pairs])) > 0:
                here = score(words, prior) + float(np.log(chance))
                behind[words] = max(behind.get(words, -np.inf), here)
        posterior = Channel.of(tem).decode(bag, prior)
        for given, every in ((bag, plain), (posterior, behind)):
            found, narrow = linearize(given, prior), linearize(given, prior, beam=1, candidates=1)
            assert found.exact and not narrow.exact
            assert found.log_probability == pytest.approx(max(every.values()), abs=1e-9)
            for each in (found, narrow):  # what it says of its own words is true
                assert every[each.words] == pytest.approx(each.log_probability, abs=1e-9)


def test_bags_at_the_edges() -> None:
    prior = model(2, 0)
    assert linearize({}, prior).words == () and linearize({}, prior).log_probability == 0.0
    found = linearize(["b"], prior)
    assert str(found) == "[the order is the model's, not the writer's]\nb"
    # Unknown words are one word of the model, and one that it never writes has its place too.
    unknown = NgramPrior.train(E, ["zzz a b"] * 9, order=2)
    assert linearize(["b", "a", "yyy"], unknown).words == ("yyy", "a", "b")
    never = NgramPrior.of_frequencies(E, [0.0, 1.0, 1.0, 1.0])
    assert linearize(["a", "b"], never).log_probability < -600
    many, text = {"a": 10**6, "b": 1}, Channel.of(Tem(E, 1.0)).decode("a b", prior)
    for bag, language, beam, said in (
        (["b"], prior, 0, "beam"), (many, prior, 1000, "bag of 1,000,001 words with 2 choices"),
        ("text", prior, 1, "bag"), (text, prior, 1, "a bag is"),
        (["b"], Embedding(["b"], [[0.0]]), 1, "prior must be a NgramPrior"),
    ):  # fmt: skip
        with pytest.raises(fastdx.FastdxError, match=said):
            linearize(bag, language, beam=beam)  # type: ignore[arg-type]
