"""Next steps that papers name: texts from bags (POST'19), vectors of words in context (TEM'21).

The second needs `pip install 'fastdx[language-model]'`; with --quick a stand-in mixes each word's
vector with those before it, and its figures say nothing of encoders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from itertools import chain, pairwise
from typing import Any

import numpy as np

from experiments.data import Source, builtin
from experiments.measures import Numbers, ids_of
from experiments.releases import kind_of
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import BagOfWords, Embedding, MultivariateLaplace, Tem
from fastdx.channel import Channel, NgramPrior
from fastdx.channel.neural import smollm
from fastdx.lab.attacks import linearize
from fastdx.lab.evaluation import of_share

LONGEST = 12


def ordered(source: Source, epsilon: float | None, words: int, most: int) -> Any:
    """Words and pairs of neighbours, and those that come back from bags."""
    e, rows, first = builtin(words), [], ""
    requests = kind_of(source, "snips", e)
    prior = NgramPrior.train(e, requests.public.texts, order=2)
    texts = [row for row in map(str.split, requests.private.texts) if len(row) <= LONGEST][:most]
    channel = Channel.of(Tem(e, epsilon or 1.0, language="rank"))
    bags = BagOfWords(Tem(e, epsilon or 1.0, language="rank", seed=SEED))
    for text in texts:
        bag, alone = Counter(sorted(text)), text
        if epsilon is None:
            order = linearize(bag, prior)
        else:
            posterior = channel.decode(bags.privatize(bag), prior)
            alone = [e.words[i] for i in posterior.best]
            order = linearize(posterior, prior, beam=200)
        near = Counter(pairwise(text)) & Counter(pairwise(order.words))
        rows.append((len(text), (bag & Counter(alone)).total(), len(text) - 1, near.total(),
                     (bag & Counter(order.words)).total()))  # fmt: skip
        first = first or order.text
    return [*np.sum(rows, axis=0).tolist(), len(texts), first]


def order_table(run: Run) -> Table:
    words, most = run.of((20_000, 200), (2000, 20))
    table = Table("A text from a bag: requests to an assistant", [
        "bag", "words, one by one", "by the model [95%]", "neighbours [95%]", "the first one",
    ])  # fmt: skip
    for epsilon in (None, 2.6, 4.0, 6.0):
        count, alone, pairs, near, named, texts, first = run.ask(ordered, epsilon, words, most)
        bag = f"private, ε = {epsilon:g}" if epsilon else "as written"
        table.add(bag, f"{alone / count:.3f}", of_share(named, count), of_share(near, pairs), first)
    table.notes.append(
        f"{texts} requests of Snips of 5 to {LONGEST} words; {words:,} built-in words. "
        'Tem with `language="rank"` releases each as a bag; `linearize` finds words and order '
        "together, by the bigrams of other requests. *Words*: of those written, those that come "
        "back; one by one, by `Posterior.best`, which knows only how often each is written. "
        "*Neighbours*: of the pairs of neighbours as written, those that come back. One draw."
    )
    return table


def stand_in(words: list[str]) -> Numbers:
    v = builtin(2000).vectors[builtin(2000).ids(words)].astype(np.float64)
    return v + 0.3 * np.cumsum(v, axis=0) / np.arange(1, len(v) + 1)[:, None]


@cache
def smollm_model() -> Any:
    path = str(smollm())
    from llama_cpp import Llama

    return Llama(path, embedding=True, pooling_type=0, n_threads=1, n_threads_batch=1,
                 verbose=False)  # fmt: skip


def smollm_rows(words: list[str]) -> Numbers:
    """The last layer of SmolLM2-135M, at the last token of each word."""
    model = smollm_model()
    sizes = [len(model.tokenize(f" {word}".encode(), add_bos=False)) for word in words]
    found = np.array(model.embed(" " + " ".join(words)))
    return found[len(found) - sum(sizes) - 1 + np.cumsum(sizes)]


def measured(
    encode: Callable[[list[str]], Numbers], source: Source, count: int, public: int, private: int
) -> Any:
    """Words that come back from noisy rows, and how far one word moves them."""
    e, rng = builtin(count), np.random.default_rng(SEED)

    def encoded(texts: list[str], size: int) -> tuple[list[list[str]], Numbers, Any]:
        ids = [row[:20] for row in ids_of((t.lower() for t in texts[: 2 * size]), e)]
        kept = [[e.words[i] for i in row] for row in ids if len(row) > 2][:size]
        return kept, np.concatenate([encode(t) for t in kept]), np.array(list(chain(*kept)))

    _, rows, names = encoded(source.texts("snips", "train").some(2 * public).texts, public)
    _, others, other_names = encoded(source.texts("imdb", "train").some(2 * public).texts, public)
    texts, clear, truth = encoded(
        source.texts("snips", "validate").some(2 * private).texts, private
    )
    moved = []  # what one other word changes, in its own row and in the others
    for text in texts:
        at = int(rng.integers(len(text)))
        new = encode([*text[:at], str(rng.choice(names)), *text[at + 1 :]]) - encode(text)
        moved.append(np.roll(new, -at, axis=0))
    middle, found = rows.mean(axis=0), []
    axes = np.linalg.svd(rows - middle, full_matrices=False)[2].T
    for dim in (len(axes), 50, 20):
        # A public map: the first axes of public rows, in the unit of their mean distance.
        axis = axes[:, :dim] / np.linalg.norm((rows - rng.permutation(rows)) @ axes[:, :dim],
                                              axis=1).mean()  # fmt: skip
        types, place = np.unique(names, return_inverse=True)
        means = np.stack([rows[place == i].mean(axis=0) for i in range(len(types))])
        stores = {key: (told, Embedding([f"{i}" for i in range(len(v))], (v - middle) @ axis))
                  for key, told, v in (("word", types, means), ("row", names, rows),
                                       ("other", other_names, others))}  # fmt: skip
        change = [np.linalg.norm(new @ axis, axis=1) for new in moved]
        own, whole = np.mean([c[0] for c in change]), np.mean([c.sum() for c in change])
        for epsilon in (20.0, 50.0, 100.0, 300.0):
            noise = MultivariateLaplace(stores["word"][1], epsilon, seed=SEED)
            noisy = noise.perturb((clear - middle) @ axis)
            hits = {key: int((told[store.nearest(noisy)[0][:, 0]] == truth).sum())
                    for key, (told, store) in stores.items()}  # fmt: skip
            found.append({**hits, "dim": dim, "epsilon": epsilon, "words": len(truth),
                          "own": epsilon * own, "all": epsilon * whole})  # fmt: skip
    return found


def rows_table(run: Run) -> Table:
    count, public, private = run.of((20_000, 300, 60), (2000, 40, 10))
    name = "a stand-in, NO ENCODER" if run.quick else "SmolLM2-135M, last layer"
    table = Table(f"Noise on context vectors: {name}", [
        "dimensions", "ε", "nearest word [95%]", "nearest row [95%]", "row of other texts",
        "exponent, own row", "exponent, text",
    ])  # fmt: skip

    encode = stand_in if run.quick else smollm_rows
    made = partial(measured, encode, run.data, count, public, private)
    for f in run.step(made, name, count, public, private):
        word, row, other = (of_share(f[key], f["words"]) for key in ("word", "row", "other"))
        table.add(f["dim"], f"{f['epsilon']:g}", word, row, f"{other.mean:.3f}",
                  f"{f['own']:.0f}", f"{f['all']:.0f}")  # fmt: skip
    table.notes.append(
        f"{f['words']} words of {private} private requests (Snips); {public} public requests, and "
        "as many film reviews as *other texts*. ε is per mean distance of two public rows. Shares "
        "of the words that are named: by the nearest mean row of a word, and by the nearest row of "
        "a public word in its context. *Exponent*: ε times what changes where one word is replaced "
        "by a random one, in its own row and in all rows of the text; the latter is the bound."
    )
    return table


TABLES: dict[str, Experiment] = {"bags": order_table, "context": rows_table}
