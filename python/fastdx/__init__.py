"""Metric differential privacy for text: words become other words, by a law with a proved bound.

>>> from fastdx import Tem
>>> tem = Tem(epsilon=6.0)  # the default English vocabulary
>>> private = tem.privatize("I would like a cup of coffee, please.")
>>> print(tem.guarantee)  # doctest: +ELLIPSIS
Tem protects every word of its vocabulary with metric differential privacy of ε = 6 ...
"""

from fastdx import (
    attacks,
    audit,
    budget,
    calibration,
    hyperbolic,
    laws,
    mechanisms,
    noise,
    plots,
    poincare,
    report,
    selection,
)
from fastdx._core import (
    Certificate,
    Cover,
    Embedding,
    Guarantee,
    NearestDocuments,
    SearchQuality,
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
    FastdxWarning,
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
from fastdx.mechanisms import *  # noqa: F403 (what is registered is exported)

__all__ = [
    "BagGuarantee",
    "BagOfWords",
    "BudgetExceededError",
    "Certificate",
    "CorruptFileError",
    "Cover",
    "DuplicateWordError",
    "Embedding",
    "FastdxError",
    "FastdxWarning",
    "FileError",
    "FormatError",
    "Guarantee",
    "InputTypeError",
    "MissingFileError",
    "NearestDocuments",
    "ParameterError",
    "SearchQuality",
    "ShapeError",
    "SystemResourceError",
    "TooLargeError",
    "Transport",
    "UnknownWordError",
    "VectorError",
    "WordGraph",
    "WordIdError",
    "__version__",
    "attacks",
    "audit",
    "budget",
    "calibration",
    "earth_movers_distance",
    "emd",
    "hyperbolic",
    "laws",
    "mechanisms",
    "nearest_documents",
    "noise",
    "pairwise_emd",
    "plots",
    "poincare",
    "report",
    "selection",
    "tokenize",
    "utility_bound",
]
__all__ += mechanisms.__all__
