"""The likeliest order of a bag's words, against all orders."""

from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest

import fastdx
from fastdx import Embedding, Tem
from fastdx.channel import Channel, NgramPrior, linearize
from helpers.spaces import line

E = line(*range(7))


def model(order: int, seed: int) -> NgramPrior:
    rng = np.random.default_rng(seed)
    texts = [
        " ".join(rng.choice(list("abcdef"), 8, p=rng.dirichlet(np.ones(6)))) for _ in range(30)
    ]
    return NgramPrior.train(E, texts, order=order)


def score(words: tuple[str, ...], prior: NgramPrior) -> float:
    found = (prior.next(words[:i])[prior.space.ids([w])[0]] for i, w in enumerate(words))
    return float(np.log(list(found)).sum())


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_likeliest_of_all_orders(order: int) -> None:
    for seed in range(6):
        prior = model(order, seed)
        bag = Counter(np.random.default_rng(seed).choice(list("abcdefg"), 6).tolist())
        every = {words: score(words, prior) for words in set(permutations(bag.elements()))}
        found = linearize(bag, prior)
        assert str(found).endswith(f"the writer's]\n{' '.join(found.words)}")
        assert found.exact and Counter(found.words) == bag
        assert found.log_probability == pytest.approx(max(every.values()), abs=1e-9)
        assert every[found.words] == pytest.approx(found.log_probability, abs=1e-9)
        # A beam of one word at a time is no proof, and no better.
        narrow = linearize(list(bag.elements()), prior, beam=1)
        assert not narrow.exact and Counter(narrow.words) == bag
        assert every[narrow.words] == pytest.approx(narrow.log_probability, abs=1e-9)
        assert narrow.log_probability <= found.log_probability + 1e-9


@pytest.mark.parametrize("order", [2, 3])
def test_words_and_order_behind_a_private_bag(order: int) -> None:
    few = line(0.0, 0.3, 1.1, 2.0)
    tem = Tem(few, 2.0, skip=["d"])
    for seed in range(5):
        rng = np.random.default_rng(seed)
        prior = NgramPrior.train(
            few, [" ".join(rng.choice(list("abcd"), 6)) for _ in range(9)], order
        )
        released = rng.choice(list("abcd"), 4).tolist()
        law = {w: tem.probabilities(w) for w in "abcd"}

        def emission(word: str, output: str, law: dict[str, np.ndarray] = law) -> float:
            if "d" in (word, output):  # it is skipped
                return float(word == output == "d")
            return float(law[word][few.ids([output])[0]])

        every = {}
        for words in product("abcd", repeat=4):
            for outputs in set(permutations(released)):
                chance = np.prod([emission(*pair) for pair in zip(words, outputs, strict=True)])
                if chance > 0:
                    here = score(words, prior) + np.log(chance)
                    every[words] = max(every.get(words, -np.inf), here)
        posterior = Channel.of(tem).decode(Counter(released), prior)
        found = linearize(posterior, prior)
        assert found.exact and found.log_probability == pytest.approx(max(every.values()), abs=1e-9)
        assert every[found.words] == pytest.approx(found.log_probability, abs=1e-9)
        assert not linearize(posterior, prior, candidates=1).exact or set(released) == {"d"}


def test_what_has_no_order() -> None:
    prior = model(2, 0)
    assert linearize({}, prior).words == () and linearize({}, prior).log_probability == 0.0
    assert linearize(["b"], prior).words == ("b",)
    # Unknown words are one word of the model.
    unknown = NgramPrior.train(E, ["zzz a b"] * 9, order=2)
    assert linearize(["b", "a", "yyy"], unknown).words == ("yyy", "a", "b")
    # A word that the model never writes has its place all the same, and the order no chance.
    never = NgramPrior.of_frequencies(E, [0.0, *[1.0] * 6])
    assert linearize(["a", "b"], never).log_probability < -600
    for bag, beam, error, said in (
        (["b"], 0, fastdx.ParameterError, "beam"),
        ({"a": 10**6, "b": 1}, 1000, fastdx.TooLargeError, "bag of 1,000,001 words with 2 choices"),
        ("text", 1000, fastdx.InputTypeError, "bag"),
    ):
        with pytest.raises(error, match=said):
            linearize(bag, prior, beam=beam)
    with pytest.raises(fastdx.InputTypeError, match="prior must be a NgramPrior"):
        linearize(["b"], Embedding(["b"], [[0.0]]))  # type: ignore[arg-type]
    text = Channel.of(Tem(E, 1.0)).decode("a b", prior)
    with pytest.raises(fastdx.InputTypeError, match="posterior of a bag"):
        linearize(text, prior)
