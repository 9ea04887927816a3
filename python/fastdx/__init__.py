"""Metric differential privacy for text: replace words so that nobody can tell which was written.

>>> from fastdx import Tem
>>> tem = Tem(epsilon=6.0)  # the default English vocabulary
>>> private = tem.privatize("I would like a cup of coffee, please.")
>>> print(tem.guarantee)  # doctest: +ELLIPSIS
Tem protects every word of its vocabulary with metric differential privacy of ε = 6 ...
"""

from fastdx import attribution, audit, budget, calibration, hyperbolic, noise, poincare
from fastdx._core import (
    Certificate,
    Embedding,
    Guarantee,
    HyperbolicLaplace,
    Mechanism,
    MultivariateLaplace,
    NearestDocuments,
    SearchQuality,
    Tem,
    Transport,
    WordGraph,
    __version__,
    earth_movers_distance,
    emd,
    nearest_documents,
    pairwise_emd,
    tokenize,
    utility_bound,
)
from fastdx.bags import BagGuarantee, BagOfWords
from fastdx.budget import BudgetExceededError
from fastdx.exceptions import (
    CorruptFileError,
    DuplicateWordError,
    FastdxError,
    FileError,
    FormatError,
    InputTypeError,
    MissingFileError,
    ParameterError,
    ShapeError,
    SystemResourceError,
    TooLargeError,
    UnknownWordError,
    VectorError,
    WordIdError,
)

__all__ = [
    "BagGuarantee",
    "BagOfWords",
    "BudgetExceededError",
    "Certificate",
    "CorruptFileError",
    "DuplicateWordError",
    "Embedding",
    "FastdxError",
    "FileError",
    "FormatError",
    "Guarantee",
    "HyperbolicLaplace",
    "InputTypeError",
    "Mechanism",
    "MissingFileError",
    "MultivariateLaplace",
    "NearestDocuments",
    "ParameterError",
    "SearchQuality",
    "ShapeError",
    "SystemResourceError",
    "Tem",
    "TooLargeError",
    "Transport",
    "UnknownWordError",
    "VectorError",
    "WordGraph",
    "WordIdError",
    "__version__",
    "attribution",
    "audit",
    "budget",
    "calibration",
    "earth_movers_distance",
    "emd",
    "hyperbolic",
    "nearest_documents",
    "noise",
    "pairwise_emd",
    "poincare",
    "tokenize",
    "utility_bound",
]
