"""Write small valid files from which fuzzers start: python tools/fuzz_seeds.py CORPUS."""

import sys
from pathlib import Path

import numpy as np

from fastdx import Embedding, Tem, WordGraph


def main() -> None:
    corpus = Path(sys.argv[1])
    rng = np.random.default_rng(1)
    for metric in ("euclidean", "manhattan", "poincare"):
        vectors = rng.uniform(-0.4, 0.4, (12, 3))
        embedding = Embedding([f"w{i}" for i in range(12)], vectors, metric=metric)
        tem = Tem(embedding, 1.0, gamma=0.4)
        embedding.save(corpus / "index" / f"{metric}")
        embedding.save(corpus / "index" / f"{metric}16", storage="int16")
        embedding.build_hnsw(2).save(corpus / "index" / f"{metric}-hnsw")
        tem.build_lists(5).save(corpus / "index" / f"{metric}-nearest")
    edges = [(f"w{i}", f"w{i // 2}") for i in range(1, 12)]
    for name, graph in (
        ("tree", WordGraph(edges)),
        ("circle", WordGraph([*edges, ("w3", "w11"), ("x", "y")])),
        ("weights", WordGraph(edges, rng.uniform(0, 3, 11), words=["w1", "w5", "w9"])),
    ):
        Tem.certified(graph, 0.5).save(corpus / "index" / name)
    text = corpus / "text_formats"
    (text / "glove").write_text("cat 1 2\ndog -3e1 4.5\n")
    (text / "word2vec").write_text("2 2\ncat 1 2\ndog 3 4\n")
    numbers = np.array([[1, 2], [3, 4]], np.float32)
    (text / "binary").write_bytes(
        b"2 2\ncat " + numbers[0].tobytes() + b"\ndog " + numbers[1].tobytes() + b"\n"
    )
    records = corpus / "records"
    (records / "lines").write_text('{"t": "a\\u00e9", "n": [1.5e3, null]}\n\n{"t": ["b"]}\n')
    (records / "array").write_text('[{"t": {"u": "a"}, "who": 7},\n {"t": null, "m": []}]')
    (records / "chat").write_text(
        '{"m": [{"who": "ann", "c": "a"}, {"c": [{"t": "b"}]}]} {"m": []}'
    )
    (records / "lists").write_text('{"a": [[{"b": "\\ud83d\\ude00"}], [null]], "x": "\\ud800"}')


if __name__ == "__main__":
    main()
