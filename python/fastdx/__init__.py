"""Metric differential privacy for text: words become other words, by a law with a proved bound.

>>> from fastdx import Tem
>>> tem = Tem.recommended()  # the default English vocabulary
>>> private = tem.privatize("I would like a cup of coffee, please.")
>>> print(tem.guarantee)  # doctest: +ELLIPSIS
Tem protects every word of its vocabulary with metric differential privacy of ε = 2.6 ...
"""

from fastdx import exceptions, mechanisms
from fastdx._core import (
    Certificate,
    Cover,
    Embedding,
    Guarantee,
    NearestDocuments,
    Transport,
    WordGraph,
    __version__,
    earth_movers_distance,
    nearest_documents,
    optimal_transport,
    pairwise_emd,
    tokenize,
    utility_bound,
)
from fastdx.bags import BagOfWords
from fastdx.exceptions import *  # noqa: F403, all of them, in `__all__` below
from fastdx.mechanisms import (
    FiniteLaw,
    HyperbolicLaplace,
    Mahalanobis,
    Mechanism,
    MultivariateLaplace,
    NeighborResponse,
    Tem,
    Unchanged,
    Vickrey,
    from_spec,
)

__all__ = [
    "BagOfWords",
    "Certificate",
    "Cover",
    "Embedding",
    "FiniteLaw",
    "Guarantee",
    "HyperbolicLaplace",
    "Mahalanobis",
    "Mechanism",
    "MultivariateLaplace",
    "NearestDocuments",
    "NeighborResponse",
    "Tem",
    "Transport",
    "Unchanged",
    "Vickrey",
    "WordGraph",
    "__version__",
    "earth_movers_distance",
    "from_spec",
    "mechanisms",
    "nearest_documents",
    "optimal_transport",
    "pairwise_emd",
    "tokenize",
    "utility_bound",
]
__all__ += exceptions.__all__
